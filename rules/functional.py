"""The rest of ``torch.nn.functional``: linear maps, dropout, normalisation, embeddings and distances."""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.rule.library import Trait, numbered_by, takes_tensors, trait
from t2j_lsp.translate.rule.pieces import NOT
from t2j_lsp.translate.rule.record import Call, Piece, Refusal, Row, rule

from ._facts import as_float, same

numbered_by("num_groups", "normalized_shape")

F = "torch.nn.functional"


@rule(f"{F}.linear(input, weight, bias=None)", jax="x @ weight.T", result=as_float)
def linear(call: Call) -> Piece:
    """A bias that is given may still be None, which the helper looks at."""
    return call.emit("affine({input}, {weight}, {bias})" if call.given("bias") else "{input} @ {weight}.T")


@rule(
    f"{F}.bilinear(input1, input2, weight, bias=None)", jax='jnp.einsum("...i,oij,...j->...o", x1, weight, x2) + bias'
)
def bilinear(call: Call) -> Piece | Refusal:
    product = 'jnp.einsum("...i,oij,...j->...o", {input1}, {weight}, {input2})'
    if not call.given("bias"):
        return call.emit(product)
    if not isinstance(call["bias"].fact, Tensor):
        return call.refuse("can't tell whether the bias is None")
    return call.emit(product + " + {bias}")


# Dropout --------------------------------------------------------------------------------------------------------


def deterministic(call: Call, name: str = "training") -> str:
    """JAX's ``deterministic`` is PyTorch's ``training`` negated."""
    piece = call[name].piece
    if piece.precedence == NOT and piece.text.startswith("not "):
        return piece.text[4:]
    return {"True": "False", "False": "True"}.get(piece.text, f"not {call[name].operand(NOT)}")


HELPERS = {"feature_alpha_dropout": "alpha_dropout"}


def _dropout(call: Call, name: str, training: str = "training") -> Piece:
    if call.literal(training) is False:
        return call.emit("{input}")
    return call.emit(
        f"{HELPERS.get(name, name)}({{input}}, {{p}}, deterministic={{deterministic}}, rngs={{rngs}}"
        + (", channels=True)" if name in HELPERS else ")"),
        deterministic=deterministic(call, training),
        rngs=call.site.rngs(),
    )


for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"):

    def emit(call: Call, name: str = name) -> Piece:
        return _dropout(call, name)

    training = "False" if name.endswith("alpha_dropout") else "True"
    rule(
        f"{F}.{name}(input, p=0.5, training={training}, inplace=False)",
        jax=f"{HELPERS.get(name, name)}(x, p, deterministic=not training, rngs=rngs)",
        ignore=["p"],
        result=same,
        random=True,
    )(emit)


@rule(
    "torch.dropout(input, p, train)",
    jax="dropout(x, p, deterministic=not train, rngs=rngs)",
    ignore=["p"],
    result=same,
    random=True,
)
def torch_dropout(call: Call) -> Piece:
    return _dropout(call, "dropout", "train")


# Normalisation --------------------------------------------------------------------------------------------------

AFFINE = "weight={weight?}, bias={bias?}, eps={eps?}"
Row(
    f"{F}.normalize(input, p=2.0, dim=1, eps=1e-12, out=None)",
    "normalize({input}, p={p?}, dim={dim?}, eps={eps?})",
    result=same,
)
Row(
    f"{F}.layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05)",
    f"layer_norm({{input}}, {{normalized_shape}}, {AFFINE})",
    result=same,
)
Row(
    "torch.layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=True)",
    f"layer_norm({{input}}, {{normalized_shape}}, {AFFINE})",
    ignore=["cudnn_enable"],
    result=same,
)
Row(
    f"{F}.group_norm(input, num_groups, weight=None, bias=None, eps=1e-05)",
    f"group_norm({{input}}, {{num_groups}}, {AFFINE})",
    result=same,
)
Row(
    "torch.group_norm(input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=True)",
    f"group_norm({{input}}, {{num_groups}}, {AFFINE})",
    ignore=["cudnn_enabled"],
    result=same,
)
Row(
    f"{F}.rms_norm(input, normalized_shape, weight=None, eps=None)",
    "rms_norm({input}, {normalized_shape}, weight={weight?}, eps={eps?})",
    aliases=["torch.rms_norm"],
    result=same,
)
Row(
    f"{F}.local_response_norm(input, size, alpha=0.0001, beta=0.75, k=1.0)",
    "local_response_norm({input}, {size}, alpha={alpha?}, beta={beta?}, k={k?})",
    result=same,
)


@rule(
    f"{F}.batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1,"
    " eps=1e-05)",
    jax="batch_norm(x, mean, var, weight, bias)",
    ignore=["momentum"],
    result=same,
)
def batch_norm(call: Call) -> Piece | Refusal:
    if updates_statistics(call, "training"):
        return call.refuse(
            "in training it updates the running statistics in place: use nn.BatchNorm, which t2j converts"
        )
    return call.emit(
        "batch_norm({input}, {running_mean}, {running_var}, weight={weight?}, bias={bias?}, training={training?},"
        " eps={eps?})"
    )


def updates_statistics(call: Call, asked: str) -> bool:
    """Whether somebody may see that running statistics are updated: not those of copies, nor out of training."""
    held = call["running_mean"].node
    held = held.body if isinstance(held, ast.IfExp) else held
    is_copy = isinstance(held, ast.Call) and isinstance(held.func, ast.Attribute) and held.func.attr == "clone"
    return not is_copy and call.literal(asked) is not False and not call["running_mean"].is_none


@rule(
    f"{F}.instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True,"
    " momentum=0.1, eps=1e-05)",
    jax="instance_norm(x, weight, bias)",
    ignore=["momentum", "running_mean", "running_var"],
    result=same,
)
def instance_norm(call: Call) -> Piece | Refusal:
    if updates_statistics(call, "use_input_stats"):
        return call.refuse("with running statistics it is not a function: use nn.InstanceNorm")
    own = f"instance_norm({{input}}, {AFFINE})"
    if call.literal("use_input_stats") is True:
        return call.emit(own)
    kept = f"batch_norm({{input}}, {{running_mean}}, {{running_var}}, {AFFINE})"
    return call.emit(kept if call.literal("use_input_stats") is False else f"{own} if {{use_input_stats}} else {kept}")


trait(Trait.KEEPS_STATISTICS, f"{F}.batch_norm", f"{F}.instance_norm", "torch.native_batch_norm")

# Embeddings -----------------------------------------------------------------------------------------------------


@rule(
    f"{F}.embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,"
    " sparse=False)",
    jax="jnp.take(weight, ids, axis=0)",
    ignore=["norm_type", "sparse"],
    result="float tensor",
)
def embedding(call: Call) -> Piece | Refusal:
    if not call["max_norm"].is_none:
        node = call["weight"].node
        table = call.site.parameter(node) if isinstance(node, ast.Attribute) else None
        if table is None or table[1]:
            return call.refuse("max_norm renormalises the weight in place: nn.Embedding(max_norm=...) converts")
        return call.emit(
            "embedding_of_bounded_rows({input}, {table}, {max_norm}, norm_type={norm_type?}, "
            "padding_idx={padding_idx?}, scale_grad_by_freq={scale_grad_by_freq?})",
            table=Piece(table[0]),
        )
    if call["padding_idx"].is_none and call.literal("scale_grad_by_freq") is False:
        return call.emit("jnp.take({weight}, {input}, axis=0)")
    return call.emit(
        "embedding({input}, {weight}, padding_idx={padding_idx?}, scale_grad_by_freq={scale_grad_by_freq?})"
    )


@rule(
    "torch.embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False)",
    jax="jnp.take(weight, ids, axis=0)",
    ignore=["sparse"],
    result="float tensor",
)
def torch_embedding(call: Call) -> Piece | Refusal:
    if call.literal("padding_idx") != -1 or call.literal("scale_grad_by_freq") is not False:
        return call.refuse("padding_idx and scale_grad_by_freq act on gradients: use F.embedding")
    return call.emit("jnp.take({weight}, {indices}, axis=0)")


@rule(
    f"{F}.embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode='mean',"
    " sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None)",
    jax="embedding_bag(ids, weight, offsets, mode)",
    ignore=["norm_type", "sparse"],
    result="float tensor",
)
def embedding_bag(call: Call) -> Piece | Refusal:
    if not call["max_norm"].is_none:
        return call.refuse("max_norm renormalises the weight in place: nn.EmbeddingBag(max_norm=...) converts")
    if call.literal("scale_grad_by_freq") is not False:
        return call.refuse("scale_grad_by_freq: PyTorch on the CPU divides gradients by how often another id is there")
    return call.emit(
        "embedding_bag({input}, {weight}, offsets={offsets?}, mode={mode?}, per_sample_weights={per_sample_weights?},"
        " include_last_offset={include_last_offset?}, padding_idx={padding_idx?})"
    )


@rule(f"{F}.one_hot(input, num_classes=-1)", jax="jax.nn.one_hot(x, num_classes, dtype=jnp.int32)", result="int tensor")
def one_hot(call: Call) -> Piece:
    if call.literal("num_classes") == -1:
        call.note("The number of classes is read from the values, which jax.jit can't do: give num_classes.")
        return call.emit("one_hot({input})")
    dtype = "jnp.int64" if call.site.x64 else "jnp.int32"
    return call.emit(f"jax.nn.one_hot({{input}}, {{num_classes}}, dtype={dtype})")


takes_tensors(f"{F}.linear", 3)
