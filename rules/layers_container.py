"""Containers of modules and parameters, and the parameter itself (torch docs: torch.nn, Containers)."""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.rule.layer import layer
from t2j_lsp.translate.rule.library import Trait, trait
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.rule.record import Call, rule

from ._arguments import flag_of

PARAMETER = Tensor(variable=True)


def _list(call: Call) -> Piece | None:
    """nnx.List, which indexes, iterates and appends as ModuleList does; slices take the helper."""
    items = call["modules"]
    if items.is_none:
        return call.emit("nnx.List([])")
    return call.emit("nnx.List({modules})")


layer("torch.nn.Sequential(*args)", base="nnx.Sequential", random=False, jax="nnx.Sequential(*args)")
layer("torch.nn.ModuleList(modules=None)", _list, base="nnx.List", random=False, jax="nnx.List(modules)")
layer("torch.nn.ModuleDict(modules=None)", base="nnx.Dict", random=False)
layer("torch.nn.ParameterList(values=None)", helper="ModuleList", base="nnx.List", random=False)
layer("torch.nn.ParameterDict(parameters=None)", helper="ModuleDict", base="nnx.Dict", random=False)


trait(Trait.MAKES_PARAMETER, "torch.nn.Parameter")


@rule("torch.nn.Parameter(data, requires_grad=True)", jax="nnx.Param(data)", result=lambda call: PARAMETER)
def parameter(call: Call) -> Piece:
    """A parameter without gradient is state that is saved and not trained: a buffer."""
    trained = call.literal("requires_grad")
    if trained is True:
        return call.emit("nnx.Param({data})")
    if trained is False:
        return call.emit("Buffer({data})")
    other = flag_of(call["requires_grad"], call)
    if other is not None:  # a variable of the same kind, frozen or trained
        return call.emit("{other}.replace({data})", other=Piece(other))
    return call.emit("(nnx.Param if {requires_grad} else Buffer)({data})")


@rule("torch.nn.Buffer(data, persistent=True)", jax="Buffer(data)", result=lambda call: PARAMETER)
def buffer(call: Call) -> Piece:
    return call.emit("Buffer({data}, persistent={persistent?})")


trait(Trait.PARAMETER, *(f"torch.nn.{name}" for name in ("Parameter", "Buffer", "UninitializedParameter")))
