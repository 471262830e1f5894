"""Linear layers, embeddings, dropout, and layers that only pass on or reshape (torch docs: torch.nn)."""

from __future__ import annotations

import ast
from collections.abc import Callable

from t2j_lsp.translate.rule.facts import TENSOR, Tensor
from t2j_lsp.translate.rule.layer import Border, Build, layer
from t2j_lsp.translate.rule.library import Trait, trait
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.rule.record import Call, Refusal

from ._arguments import use_bias

SAME = Tensor(dtype="same")


def _linear(call: Call) -> Piece | None:
    """nnx.Linear, with PyTorch's initialisation: U(±1/sqrt(in_features)) for kernel and bias."""
    no_bias = call.literal("bias") in (None, False)
    return _made(
        call, "nnx.Linear", call.site.init(", kernel_init=uniform_fan_in" if no_bias else ", **uniform_init({fan_in})")
    )


def _made(call: Call, head: str, init: str) -> Piece | None:
    if call.given("dtype"):
        return None
    return call.emit(
        f"{head}({{in_features}}, {{out_features}}{use_bias(call)}{init}, rngs={{rngs}})",
        fan_in=call["in_features"],
        rngs=call.site.rngs(),
    )


layer(
    "torch.nn.Linear(in_features, out_features, bias=True, device=None, dtype=None)",
    _linear,
    short=lambda call: _made(call, "linear", ""),
    base="nnx.Linear",
    attributes={"weight": "kernel"},
    switches={"bias": "use_bias"},
    held=("in_features", "out_features"),
    result=SAME,
    jax="nnx.Linear(in_features, out_features, **uniform_init(in_features), rngs=rngs)",
)
layer("torch.nn.Bilinear(in1_features, in2_features, out_features, bias=True, device=None, dtype=None)")


def _table(call: Call) -> Piece | None:
    """nnx.Embed with rows from N(0, 1); other arguments take the helper."""
    if any(call.given(name) for name in call.arguments if name not in ("num_embeddings", "embedding_dim", "sparse")):
        return None
    init = call.site.init(", embedding_init=jax.random.normal")
    return call.emit(f"nnx.Embed({{num_embeddings}}, {{embedding_dim}}{init}, rngs={{rngs}})", rngs=call.site.rngs())


layer(
    "torch.nn.Embedding(num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0,"
    " scale_grad_by_freq=False, sparse=False, _weight=None, _freeze=False, device=None, dtype=None)",
    _table,
    # The table is a Linear's weight (out, in): the Linear's fan-in is its last axis.
    on_linear="nnx.Embed({num_embeddings}, {embedding_dim},"
    ' embedding_init=nnx.initializers.variance_scaling(1 / 3, "fan_out", "uniform"), rngs={rngs})',
    base="nnx.Embed",
    attributes={"weight": "embedding", "embedding_dim": "features"},
    ignore=["sparse"],
    held=("num_embeddings",),
    unheld=("max_norm", "norm_type", "scale_grad_by_freq", "sparse"),
)


def _given_table(call: Call) -> Piece | Refusal | None:
    """A table of rows that are there; which of them pads matters for gradients alone."""
    if any(call.given(name) for name in ("max_norm", "norm_type", "scale_grad_by_freq")):
        return None
    freeze = call.literal("freeze") if call.given("freeze") else True
    if call.given("padding_idx") and freeze is not True:
        return call.refuse("a table that goes on training, and of which one row gets no gradient: mask its gradient")
    return call.emit("PretrainedEmbed({embeddings}, freeze={freeze?})")


layer(
    "torch.nn.Embedding.from_pretrained(embeddings, freeze=True, padding_idx=None, max_norm=None, norm_type=2.0,"
    " scale_grad_by_freq=False, sparse=False)",
    _given_table,
    helper="PretrainedEmbed",
    base="nnx.Embed",
    attributes={"weight": "embedding", "embedding_dim": "features"},
    ignore=["sparse"],
    held=("num_embeddings",),
    unheld=("max_norm", "norm_type", "scale_grad_by_freq", "sparse"),
    random=False,
)
layer(
    "torch.nn.EmbeddingBag(num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,"
    " mode='mean', sparse=False, _weight=None, include_last_offset=False, padding_idx=None, device=None, dtype=None)",
    base="EmbeddingBag",
    ignore=["sparse"],
)
trait(Trait.BAGS, "torch.nn.EmbeddingBag")


def _without_arguments(template: str) -> Build:
    """A function where the constructor is called without arguments; with some, the class."""

    def build(call: Call) -> Piece | None:
        arguments = isinstance(call.node, ast.Call) and (call.node.args or call.node.keywords)
        return None if arguments else call.emit(template)

    return build


layer(
    "torch.nn.Identity(*args, **kwargs)",
    _without_arguments("nnx.identity"),
    function=True,
    result=SAME,
    random=False,
    elementwise=True,
    jax="nnx.identity",
)


def _flatten(call: Call) -> Piece | None:
    """A function of the axes that are joined, where these are written as numbers."""
    start, end = call.literal("start_dim"), call.literal("end_dim")
    if not isinstance(start, int) or not isinstance(end, int):
        return None
    match start, end:
        case 1, -1:
            return call.emit("lambda x: x.reshape(x.shape[0], -1)")
        case 0, -1:
            return call.emit("jnp.ravel")
        case _, -1:
            return call.emit("lambda x: jax.lax.collapse(x, {start_dim})")
        case _:
            return call.emit("lambda x: jax.lax.collapse(x, {start_dim}, {stop})", stop=str(end + 1))


def _flatten_from_last(spatial: int) -> Build:
    """PyTorch's order of features, for the weights behind it, from channels-last values."""

    def build(call: Call) -> Piece | None:
        if (call.literal("start_dim"), call.literal("end_dim")) != (1, -1):
            return None
        return call.emit(f"lambda x: jnp.moveaxis(x, -1, {-spatial - 1}).reshape(x.shape[0], -1)")

    return build


def _sizes(call: Call) -> str | None:
    """The sizes that the axis behind the batch's becomes, where they are known."""
    sizes = call.literal("unflattened_size")
    if call.literal("dim") != 1 or not isinstance(sizes, tuple | list) or len(sizes) < 2:
        return None
    return ", ".join(map(str, sizes)) if all(isinstance(size, int) for size in sizes) else None


def _unflatten(call: Call) -> Piece | None:
    sizes = _sizes(call)
    return call.emit(f"lambda x: x.reshape(x.shape[0], {sizes}, *x.shape[2:])") if sizes is not None else None


def _unflatten_to_last(spatial: int) -> Build:
    """Channels-last values from features in PyTorch's order."""

    def build(call: Call) -> Piece | None:
        sizes = _sizes(call)
        if sizes is None or sizes.count(",") != spatial:
            return None
        return call.emit(f"lambda x: jnp.moveaxis(x.reshape(x.shape[0], {sizes}), 1, -1)")

    return build


layer(
    "torch.nn.Flatten(start_dim=1, end_dim=-1)",
    _flatten,
    function=True,
    result=TENSOR,
    random=False,
    border=Border(takes_last=True, gives_last=False, form=_flatten_from_last),
    jax="lambda x: x.reshape(x.shape[0], -1)",
)
layer(
    "torch.nn.Unflatten(dim, unflattened_size)",
    _unflatten,
    function=True,
    result=TENSOR,
    random=False,
    border=Border(takes_last=False, gives_last=True, form=_unflatten_to_last),
    jax="lambda x: x.reshape(x.shape[0], *unflattened_size, *x.shape[2:])",
)
layer(
    "torch.nn.Dropout(p=0.5, inplace=False)",
    "nnx.Dropout({p}, rngs={rngs})",
    base="nnx.Dropout",
    attributes={"p": "rate"},
    result=SAME,
)


def _dropped_channels(dropped: int) -> Callable[[int], Build]:
    """nnx.Dropout of whole channels on the last axis, where as many axes of space are as the layer is made for."""

    def form(spatial: int) -> Build:
        text = f"nnx.Dropout({{p}}, broadcast_dims={(*range(1, spatial + 1),)}, rngs={{rngs}})"
        return lambda call: call.emit(text, rngs=call.site.rngs()) if spatial == dropped else None

    return form


for rank in (1, 2, 3):
    border = Border(takes_last=True, gives_last=True, form=_dropped_channels(rank))
    layer(f"torch.nn.Dropout{rank}d(p=0.5, inplace=False)", result=SAME, border=border)
layer("torch.nn.AlphaDropout(p=0.5, inplace=False)", result=SAME)
layer("torch.nn.FeatureAlphaDropout(p=0.5, inplace=False)", result=SAME)
layer("timm.layers.DropPath(drop_prob=0.0, scale_by_keep=True)", result=SAME)

trait(Trait.MAKES_FROZEN, "torch.nn.Embedding.from_pretrained")
trait(Trait.LINEAR, "torch.nn.Linear", "torch.nn.LazyLinear")
trait(
    Trait.SAME_SHAPE,
    *(f"torch.nn.{name}" for name in ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout")),
)
