"""Normalization layers (torch docs: torch.nn, Normalization Layers)."""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import INT, Scalar, Tensor
from t2j_lsp.translate.rule.layer import Border, Build, layer
from t2j_lsp.translate.rule.library import Trait, own_forward, trait
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.rule.record import Call

from ._arguments import use_bias

SAME = Tensor(dtype="same")
BATCH = {"weight": "scale", "running_mean": "mean", "running_var": "var"}


def _batch_channels_last(call: Call, axis: str = "") -> Piece | None:
    """BatchNorm (nnx's, with PyTorch's unbiased running variance) on the last axis."""
    momentum = call.literal("momentum")
    if call.given("dtype") or any(map(call.given, ("track_running_stats", "affine", "bias"))):
        return None
    if call.given("momentum"):
        if not isinstance(momentum, float | int) or isinstance(momentum, bool):
            return None
        kept = f", momentum={round(1 - momentum, 12)}"
    else:
        kept = ""
    return call.emit("BatchNorm({num_features}" + axis + kept + ", epsilon={eps?}, rngs={rngs})", rngs=call.site.rngs())


_FORWARD = """
if self.momentum is None:
    exponential_average_factor = 0.0
else:
    exponential_average_factor = self.momentum
if self.training and self.track_running_stats:
    if self.num_batches_tracked is not None:
        self.num_batches_tracked.add_(1)
        if self.momentum is None:
            exponential_average_factor = 1.0 / float(self.num_batches_tracked)
        else:
            exponential_average_factor = self.momentum
if self.training:
    bn_training = True
else:
    bn_training = (self.running_mean is None) and (self.running_var is None)
torch.nn.functional.batch_norm(
    input,
    self.running_mean if not self.training or self.track_running_stats else None,
    self.running_var if not self.training or self.track_running_stats else None,
    self.weight,
    self.bias,
    bn_training,
    exponential_average_factor,
    self.eps,
)
"""


def _instance_channels_last(call: Call) -> Piece | None:
    """nnx.InstanceNorm, where no running statistics are kept."""
    if call.given("dtype") or call.given("bias") or call.literal("track_running_stats") is not False:
        return None
    return _with_affine(call, "nnx.InstanceNorm({num_features}, epsilon={eps}")


def _group_channels_last(rank: int) -> Build:
    """nnx.GroupNorm, of any number of spatial axes."""

    def build(call: Call) -> Piece | None:
        if call.given("dtype") or call.given("bias"):
            return None
        return _with_affine(call, "nnx.GroupNorm({num_channels}, {num_groups}, epsilon={eps}")

    return build


def _with_affine(call: Call, head: str) -> Piece | None:
    affine = call.literal("affine")
    if not isinstance(affine, bool):
        return None
    parameters = "" if affine else ", use_scale=False, use_bias=False"
    return call.emit(head + parameters + ", use_fast_variance=False, rngs={rngs})", rngs=call.site.rngs())


for rank in (1, 2, 3):
    own_forward(
        f"torch.nn.BatchNorm{rank}d",
        *(_FORWARD.replace(".add_(1)", more) for more in (".add_(1)", " += 1", " = self.num_batches_tracked + 1")),
    )
    layer(
        f"torch.nn.BatchNorm{rank}d(num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True,"
        " device=None, dtype=None, *, bias=True)",
        channels_last=_batch_channels_last,
        channels_first=lambda call: _batch_channels_last(call, ", axis=1"),
        spatial=rank,
        flax="nnx.BatchNorm",
        attributes=BATCH,
        unheld=("momentum",),
        result=SAME,
    )
    layer(
        f"torch.nn.InstanceNorm{rank}d(num_features, eps=1e-05, momentum=0.1, affine=False, track_running_stats=False,"
        " device=None, dtype=None, *, bias=True)",
        channels_last=_instance_channels_last,
        spatial=rank,
        attributes=BATCH,
        result=SAME,
    )


def _one_axis(call: Call) -> bool:
    """Whether ``normalized_shape`` is surely one int: a literal, or an expression known to be an int."""
    argument = call["normalized_shape"]
    return isinstance(argument.literal, int) or (isinstance(argument.fact, Scalar) and argument.fact.kind == INT.kind)


def _layer_norm(call: Call) -> Piece | None:
    """nnx.LayerNorm over the last axis; other shapes take the helper."""
    if call.given("dtype") or not _one_axis(call) or call.given("elementwise_affine"):
        return None
    return call.emit(
        "nnx.LayerNorm({normalized_shape}, epsilon={eps}" + use_bias(call) + ", use_fast_variance=False, rngs={rngs})",
        rngs=call.site.rngs(),
    )


layer(
    "torch.nn.LayerNorm(normalized_shape, eps=1e-05, elementwise_affine=True, bias=True, device=None, dtype=None)",
    _layer_norm,
    base="nnx.LayerNorm",
    attributes={"weight": "scale", "eps": "epsilon"},
    switches={"weight": "use_scale", "bias": "use_bias"},
    result=SAME,
    jax="nnx.LayerNorm(normalized_shape, epsilon=1e-05, use_fast_variance=False, rngs=rngs)",
)
layer(
    "torch.nn.GroupNorm(num_groups, num_channels, eps=1e-05, affine=True, device=None, dtype=None, *, bias=True)",
    base="nnx.GroupNorm",
    attributes={"weight": "scale", "eps": "epsilon"},
    switches={"weight": "use_scale", "bias": "use_bias"},
    result=SAME,
    border=Border(takes_last=True, gives_last=True, form=_group_channels_last),
)
layer(
    "torch.nn.RMSNorm(normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None)",
    base="nnx.RMSNorm",
    attributes={"weight": "scale", "eps": "epsilon"},
    result=SAME,
)
layer("torch.nn.LocalResponseNorm(size, alpha=0.0001, beta=0.75, k=1.0)", result=SAME, random=False)
trait(
    Trait.SAME_SHAPE,
    *(f"torch.nn.{name}" for name in ("LayerNorm", "GroupNorm", "RMSNorm", "LocalResponseNorm")),
    *(f"torch.nn.{kind}Norm{rank}d" for kind in ("Batch", "Instance") for rank in (1, 2, 3)),
)
