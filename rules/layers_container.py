"""Containers of modules and parameters, and the parameter itself (torch docs: torch.nn, Containers)."""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.rule.layer import layer
from t2j_lsp.translate.rule.library import Trait, trait
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.rule.record import Call, rule

from ._arguments import flag_of, without_stop_gradient
from ._unknown_values import has_gradient

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
LEARNING = """
Bilinear Embedding EmbeddingBag GRU GRUCell GroupNorm LSTM LSTMCell LayerNorm Linear MultiheadAttention PReLU RMSNorm
RNN RNNCell SyncBatchNorm Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder
TransformerEncoderLayer AdaptiveLogSoftmaxWithLoss LazyLinear
"""
"""The layers that have parameters, besides those of one, two and three dimensions."""
CONVOLUTIONS = ("Conv", "ConvTranspose", "LazyConv", "LazyConvTranspose", "BatchNorm", "LazyBatchNorm")
LEARNING_LAYERS = (*LEARNING.split(), *(f"{name}{n}d" for name in CONVOLUTIONS for n in (1, 2, 3)))
trait(Trait.LEARNS, *(f"torch.nn.{name}" for name in LEARNING_LAYERS))


@rule("torch.nn.Parameter(data, requires_grad=True)", jax="nnx.Param(data)", result=lambda call: PARAMETER)
def parameter(call: Call) -> Piece:
    """A parameter without gradient is state that is saved and not trained: a buffer."""
    trained = call.literal("requires_grad")
    outside = not call.site.in_module and not call.site.without_gradient
    is_cut = outside and has_gradient(call["data"].node, call)  # PyTorch's parameter is a leaf
    data = without_stop_gradient(call["data"]) if is_cut else call["data"].piece
    held = "jax.lax.stop_gradient({data})" if is_cut else "{data}"
    if trained is True:
        return call.emit(f"nnx.Param({held})", data=data)
    if trained is False:
        return call.emit(f"Buffer({held})", data=data)
    other = flag_of(call["requires_grad"], call)
    if other is not None:  # a variable of the same kind, frozen or trained
        return call.emit(f"{{other}}.replace({held})", other=Piece(other), data=data)
    return call.emit(f"(nnx.Param if {{requires_grad}} else Buffer)({held})", data=data)


@rule("torch.nn.Buffer(data, persistent=True)", jax="Buffer(data)", result=lambda call: PARAMETER)
def buffer(call: Call) -> Piece:
    return call.emit("Buffer({data}, persistent={persistent?})")


trait(Trait.PARAMETER, *(f"torch.nn.{name}" for name in ("Parameter", "Buffer", "UninitializedParameter")))
