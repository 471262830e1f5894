"""Dicts that come back from compiled functions: JAX gives their items in the order of the keys, PyTorch as they were.

An `OrderedDict` keeps its order. Where a program reads the order of dicts of tensors, those that a train step gives or
that a batch is are made one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence, Set

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors, function_around
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.forward_pass import is_known
from t2j_lsp.translate.inference.kept_answers import kept_answers
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, ListOf, MixedDict, Scalar, Tuple
from t2j_lsp.translate.source.text import Source

from .step_calls import Refused

_VIEWS = frozenset({"items", "keys", "values", "popitem"})
_TELLING = frozenset({"list", "tuple", "iter", "enumerate", "zip", "print", "str", "repr", "map", "filter", "reversed"})
_WRITING = frozenset({"dump", "dumps", "DataFrame", "from_records", "writerow", "writerows"})
"""Methods and functions of libraries that write out what they are given in its order."""
_SHOWING = frozenset({"print", "str", "repr"})
NESTED = "A dict in another container comes back from a compiled function in the order of its keys."


class DictOrder:
    """Which values are dicts, in a file that reads the order of some."""

    def __init__(self, context: Context) -> None:
        self.ctx = context

    @property
    def is_read(self) -> bool:
        """Whether the file reads the order of anything that may be a dict of tensors."""
        return _order_is_read(self.ctx.inference)

    def is_batch(self, target: ast.Name) -> bool:
        """Whether what a loop over a loader gives is a dict."""
        fact = self.ctx.fact(target)
        return self.is_dict(target) or isinstance(fact, ListOf) and _items_are_dicts(self.ctx.inference)

    def is_dict(self, node: ast.expr) -> bool:
        """Whether a value is a dict by what is known of it, or by what is done with it under its name."""
        fact = self.ctx.fact(node)
        return (
            is_dict(fact) or not is_known(fact) and isinstance(node, ast.Name) and self._is_used_as_dict(node.id, node)
        )

    def _is_used_as_dict(self, name: str, place: ast.AST) -> bool:
        """Whether a function uses a variable as dicts are used: ``batch["x"]``, ``batch.items()``."""
        around = ancestors(place, self.ctx.source.parents)
        scope = next((a for a in around if isinstance(a, ast.FunctionDef | ast.Lambda)), self.ctx.source.tree)
        for node in symbols.walk(scope):
            match node:
                case ast.Subscript(value=ast.Name(id=used), slice=ast.Constant(value=str())) if used == name:
                    return True
                case ast.Attribute(value=ast.Name(id=used), attr=attr) if used == name and attr in _VIEWS:
                    return True
        return False

    def loses(self, name: str, parts: Sequence[ast.AST]) -> bool:
        """Whether a variable that some code gives is a dict, which would come back in another order. Raises Refused."""
        inside = [n for part in parts for n in symbols.walk(part)]
        given = [n for n in inside if isinstance(n, ast.Assign) and name in map(ast.unparse, n.targets)]
        unpacked = [n for n in inside if isinstance(n, ast.Name) and n.id == name and self._is_unpacked(n)]
        dicts = [n.value for n in given if is_dict(self.ctx.fact(n.value)) or self._is_unknown_dict(n, name)]
        dicts += [n for n in unpacked if is_dict(self.ctx.fact(n))]
        if self.is_read and any(_has_dict(self.ctx.fact(n.value)) for n in given if n.value not in dicts):
            raise Refused(NESTED)
        if not dicts or not self.is_read:
            return False
        if any(is_dict(element_of(self.ctx.fact(value))) for value in dicts):
            raise Refused(NESTED)
        grows = any(_adds(n) == name for n in inside)
        return grows or not all(map(_is_sorted, dicts))

    def _is_unpacked(self, node: ast.Name) -> bool:
        """Whether a variable is given an item of what is assigned: ``pred, info = model(x)``."""
        return isinstance(node.ctx, ast.Store) and isinstance(self.ctx.source.parents.get(node), ast.Tuple)

    def _is_unknown_dict(self, node: ast.Assign, name: str) -> bool:
        return not is_known(self.ctx.fact(node.value)) and self._is_used_as_dict(name, node)


@kept_answers
def _order_is_read(inference: Inference) -> bool:
    return any(_reads_order(node, inference) for node in inference.source.nodes)


def _reads_order(node: ast.AST, inference: Inference) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in _VIEWS:
            fact = inference.fact(owner)
            return (
                not is_known(fact) or isinstance(fact, ListOf | MixedDict) and not isinstance(element_of(fact), Scalar)
            )
        case ast.Call(func=ast.Attribute(attr=name)) if name in _WRITING:
            return True
        case ast.Call(func=ast.Name(id=name)) if name in _TELLING:
            given = [a.value if isinstance(a, ast.Starred) else a for a in node.args]
            return any(_is_of_tensors(one, inference) for one in given)
        case ast.For(iter=walked) | ast.comprehension(iter=walked) | ast.FormattedValue(value=walked):
            return _is_of_tensors(walked, inference)
        case ast.Assign(targets=[ast.Tuple() | ast.List()], value=value):
            return _is_of_tensors(value, inference)
    return False


def _is_of_tensors(node: ast.expr, inference: Inference) -> bool:
    fact = inference.fact(node)
    if isinstance(fact, ListOf) and fact.keys is None and isinstance(node, ast.Name):
        return _items_are_dicts(inference) and fact in _batches(inference).get(node.id, ())
    return is_dict(fact) and not isinstance(element_of(fact), Scalar)


@kept_answers
def _items_are_dicts(inference: Inference) -> bool:
    """Whether every data set of the file gives dicts, of which a loader makes dicts."""
    sets = [info for info in inference.classes.values() if "__getitem__" in info.methods]
    given = [info.methods["__getitem__"].result for info in sets]
    return bool(given) and all(fact is not None and is_dict(fact) for fact in given)


@kept_answers
def _batches(inference: Inference) -> dict[str, list[Fact]]:
    """What is known of the variables of loops, by their names."""
    batches: dict[str, list[Fact]] = {}
    for node in inference.source.nodes:
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            batches.setdefault(node.target.id, []).append(inference.fact(node.target))
    return batches


def is_dict(fact: Fact) -> bool:
    """Whether a value is known to be a dict."""
    return isinstance(fact, ListOf) and fact.keys is not None or isinstance(fact, MixedDict)


def _has_dict(fact: Fact) -> bool:
    """Whether a value is a tuple or a list with a dict in it, at any depth."""
    items = fact.items if isinstance(fact, Tuple) else [fact.item] if isinstance(fact, ListOf) else []
    return any(is_dict(item) or _has_dict(item) for item in items)


def element_of(fact: Fact) -> Fact:
    """What a dict holds."""
    return fact.item if isinstance(fact, ListOf) else UNKNOWN


def _adds(node: ast.AST) -> str | None:
    """What is given another item: ``losses["total"] = total``, ``losses.update(more)``."""
    match node:
        case ast.Subscript(value=owner, ctx=ast.Store()) | ast.Attribute(value=owner, attr="update" | "setdefault"):
            return ast.unparse(owner)
    return None


def _is_sorted(node: ast.expr) -> bool:
    """Whether a dict is written with its keys in order: ``{"acc": acc, "loss": loss}``."""
    keys = [k.value for k in node.keys if isinstance(k, ast.Constant)] if isinstance(node, ast.Dict) else []
    return bool(keys) and len(keys) == len(getattr(node, "keys", ())) and keys == sorted(keys, key=str)


def shown_dicts(source: Source, loop: ast.For, names: Set[str]) -> Iterator[ast.Name]:
    """Where a program shows such a batch, or its keys, as a whole: an `OrderedDict` shows itself as one."""
    around = function_around(loop, source.parents) or source.tree
    for node in symbols.walk(around) if names else ():
        if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load):
            whole: ast.AST = node
            match attribute := source.parents.get(node):
                case ast.Attribute(attr=name) if name in _VIEWS:
                    whole = source.parents[attribute]
            match source.parents.get(whole):
                case ast.Call(func=ast.Name(id=name)) if name in _SHOWING:
                    yield node
                case ast.FormattedValue():
                    yield node
