"""A tensor without axes that is given a dim: PyTorch takes it for a vector of one element, JAX raises.

``loss.sum(0)`` of a 0-d ``loss`` becomes ``jnp.atleast_1d(loss).sum(axis=0)``. Which rules read a 0-d tensor so is not
listed anywhere: a rule's own facts say that the result has no axes either, whatever axis ``dim`` names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from t2j_lsp.translate.rule.binding import Bound
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, Tensor, Tuple
from t2j_lsp.translate.rule.pieces import Part, Piece
from t2j_lsp.translate.rule.record import NO_LITERAL, Argument, Call, Rule

AXES = (0, -1)
"""The dims that PyTorch takes for a tensor without axes."""


def of_vectors(rule: Rule, call: Call) -> Bound | None:
    """The arguments with 0-d tensors as vectors, where PyTorch reads them so; None for every other call."""
    arguments = dict(call.arguments)
    tensor, dim, keepdim = next(iter(arguments.values()), None), arguments.get("dim"), arguments.get("keepdim")
    if tensor is None or dim is None or not _has_no_axes(tensor.fact) or not _is_axis(dim):
        return None
    if any(rank != 0 for rank in _ranks(_result(rule, replace(call, arguments=arguments)))):
        return None
    if keepdim is not None:
        if keepdim.literal is NO_LITERAL:
            return None
        # there is no axis to keep
        arguments["keepdim"] = replace(keepdim, piece=Piece("False"), node=None, given=False)
    for name, argument in arguments.items():
        if _has_no_axes(argument.fact):
            arguments[name] = _as_vector(call, argument)
    if None in _ranks(_result(rule, replace(call, arguments=arguments))):
        return None
    vectors = Bound()
    vectors.update(arguments)
    return vectors


def without_axes(rule: Rule, call: Call, piece: Piece) -> Piece:
    """What a call of vectors gives, as the 0-d tensor that PyTorch gives."""
    result = _result(rule, replace(call, arguments=dict(call.arguments)))
    if all(rank == 0 for rank in _ranks(result)):
        return piece
    if isinstance(piece, Part):
        squeezed = call.emit("{part}.squeeze()", part=piece)
        return Part(squeezed.text, squeezed.precedence)
    if isinstance(result, Tuple):
        return call.emit("jax.tree.map(jnp.squeeze, {pair})", pair=piece)
    return call.emit("{vector}.squeeze()", vector=piece)


def _has_no_axes(fact: Fact) -> bool:
    return isinstance(fact, Tensor) and fact.rank == 0


def _is_axis(dim: Argument) -> bool:
    """Whether a dim is the one axis of a vector; of a tensor without axes, one that is not written out is."""
    value = dim.literal
    if isinstance(value, tuple | list):
        return len(value) == 1 and value[0] in AXES
    return value is NO_LITERAL or not isinstance(value, bool) and value in AXES


def _as_vector(call: Call, argument: Argument) -> Argument:
    piece = call.emit("jnp.atleast_1d({scalar})", scalar=argument)
    return replace(argument, piece=piece, fact=Tensor(1, getattr(argument.fact, "dtype", None)))


def _result(rule: Rule, call: Call) -> Fact:
    if callable(rule.result):
        return rule.result(call)
    return next(iter(call.arguments.values())).fact if rule.result == "same" else UNKNOWN


def _ranks(fact: Fact) -> Iterator[int | None]:
    items = fact.items if isinstance(fact, Tuple) else (fact,)
    return (item.rank if isinstance(item, Tensor) else None for item in items)
