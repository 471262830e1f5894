"""Loss modules with PyTorch's constructors; those of vectors and triplets are in `loss_pair_modules`.

Every `reduction` is "mean", "sum" or "none". PyTorch's deprecated `size_average` and `reduce` are not there, so what
follows them must be named. Source: https://docs.pytorch.org/docs/stable/nn.html#loss-functions
"""

import math
from collections.abc import Sequence

import jax
from flax import nnx

from .container import Buffer
from .init import uniform_init
from .loss import gaussian_nll_loss, huber_loss, kl_div, l1_loss, mse_loss, poisson_nll_loss, smooth_l1_loss
from .loss_classes import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    nll_loss,
    soft_margin_loss,
)
from .loss_ctc import ctc_loss


class Loss(nnx.Module):
    """A loss with a reduction."""

    def __init__(self, *, reduction: str = "mean", rngs: nnx.Rngs | None = None):
        self.reduction = reduction


class WeightedLoss(Loss):
    """A loss with a reduction and a weight, for example of each class, in a buffer."""

    def __init__(self, weight: jax.Array | None = None, *, reduction: str = "mean", rngs: nnx.Rngs | None = None):
        super().__init__(reduction=reduction)
        self.weight = nnx.data(None) if weight is None else Buffer(weight)

    def weight_array(self) -> jax.Array | None:
        """The weight, if there is one."""
        return None if self.weight is None else self.weight[...]


class MSELoss(Loss):
    """PyTorch's `nn.MSELoss`."""

    def __call__(self, x: jax.Array, target: jax.Array) -> jax.Array:
        return mse_loss(x, target, self.reduction)


class L1Loss(Loss):
    """PyTorch's `nn.L1Loss`."""

    def __call__(self, x: jax.Array, target: jax.Array) -> jax.Array:
        return l1_loss(x, target, self.reduction)


class SmoothL1Loss(Loss):
    """PyTorch's `nn.SmoothL1Loss`."""

    def __init__(self, *, reduction: str = "mean", beta: float = 1.0, rngs: nnx.Rngs | None = None):
        super().__init__(reduction=reduction)
        self.beta = beta

    def __call__(self, x: jax.Array, target: jax.Array) -> jax.Array:
        return smooth_l1_loss(x, target, self.reduction, self.beta)


class HuberLoss(Loss):
    """PyTorch's `nn.HuberLoss`."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0, *, rngs: nnx.Rngs | None = None):
        super().__init__(reduction=reduction)
        self.delta = delta

    def __call__(self, x: jax.Array, target: jax.Array) -> jax.Array:
        return huber_loss(x, target, self.reduction, self.delta)


class KLDivLoss(Loss):
    """PyTorch's `nn.KLDivLoss`; its reduction may be "batchmean", too."""

    def __init__(self, *, reduction: str = "mean", log_target: bool = False, rngs: nnx.Rngs | None = None):
        super().__init__(reduction=reduction)
        self.log_target = log_target

    def __call__(self, log_probs: jax.Array, target: jax.Array) -> jax.Array:
        return kl_div(log_probs, target, self.reduction, self.log_target)


class GaussianNLLLoss(Loss):
    """PyTorch's `nn.GaussianNLLLoss`."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean", rngs: nnx.Rngs | None = None):
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def __call__(self, x: jax.Array, target: jax.Array, var: jax.Array | float) -> jax.Array:
        return gaussian_nll_loss(x, target, var, self.full, self.eps, self.reduction)


class PoissonNLLLoss(Loss):
    """PyTorch's `nn.PoissonNLLLoss`."""

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        *,
        eps: float = 1e-8,
        reduction: str = "mean",
        rngs: nnx.Rngs | None = None,
    ):
        super().__init__(reduction=reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def __call__(self, x: jax.Array, target: jax.Array) -> jax.Array:
        return poisson_nll_loss(x, target, self.log_input, self.full, self.eps, self.reduction)


class CrossEntropyLoss(WeightedLoss):
    """PyTorch's `nn.CrossEntropyLoss`, of logits with the classes on axis 1."""

    def __init__(
        self,
        weight: jax.Array | None = None,
        *,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        rngs: nnx.Rngs | None = None,
    ):
        super().__init__(weight, reduction=reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def __call__(self, logits: jax.Array, target: jax.Array) -> jax.Array:
        options = (self.ignore_index, self.reduction, self.label_smoothing)
        return cross_entropy(logits, target, self.weight_array(), *options)


class LinearCrossEntropyLoss(CrossEntropyLoss):
    """PyTorch's `nn.LinearCrossEntropyLoss`: a linear layer, and the cross entropy of what it gives.

    `out_features` are axes of the logits behind their classes, which the target has, too.
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        reduction: str = "mean",
        weight: jax.Array | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        rngs: nnx.Rngs,
    ):
        ignored = -100 if ignore_index is None else ignore_index
        super().__init__(weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing)
        outputs = math.prod(out_features, start=num_classes)
        self.linear = nnx.Linear(in_features, outputs, use_bias=bias, **uniform_init(in_features), rngs=rngs)
        self.shape = (num_classes, *out_features)

    def __call__(self, x: jax.Array, target: jax.Array) -> jax.Array:
        return super().__call__(self.linear(x).reshape(*x.shape[:-1], *self.shape), target)


class NLLLoss(WeightedLoss):
    """PyTorch's `nn.NLLLoss`, of log probabilities with the classes on axis 1."""

    def __init__(
        self,
        weight: jax.Array | None = None,
        *,
        ignore_index: int = -100,
        reduction: str = "mean",
        rngs: nnx.Rngs | None = None,
    ):
        super().__init__(weight, reduction=reduction)
        self.ignore_index = ignore_index

    def __call__(self, log_probs: jax.Array, target: jax.Array) -> jax.Array:
        return nll_loss(log_probs, target, self.weight_array(), self.ignore_index, self.reduction)


class BCELoss(WeightedLoss):
    """PyTorch's `nn.BCELoss`, of probabilities."""

    def __call__(self, probs: jax.Array, target: jax.Array) -> jax.Array:
        return binary_cross_entropy(probs, target, self.weight_array(), self.reduction)


class BCEWithLogitsLoss(WeightedLoss):
    """PyTorch's `nn.BCEWithLogitsLoss`; `pos_weight` is a buffer, too."""

    def __init__(
        self,
        weight: jax.Array | None = None,
        *,
        reduction: str = "mean",
        pos_weight: jax.Array | None = None,
        rngs: nnx.Rngs | None = None,
    ):
        super().__init__(weight, reduction=reduction)
        self.pos_weight = nnx.data(None) if pos_weight is None else Buffer(pos_weight)

    def __call__(self, logits: jax.Array, target: jax.Array) -> jax.Array:
        pos_weight = None if self.pos_weight is None else self.pos_weight[...]
        return binary_cross_entropy_with_logits(logits, target, self.weight_array(), self.reduction, pos_weight)


class SoftMarginLoss(Loss):
    """PyTorch's `nn.SoftMarginLoss`."""

    def __call__(self, x: jax.Array, target: jax.Array) -> jax.Array:
        return soft_margin_loss(x, target, self.reduction)


class MultiMarginLoss(WeightedLoss):
    """PyTorch's `nn.MultiMarginLoss`."""

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: jax.Array | None = None,
        *,
        reduction: str = "mean",
        rngs: nnx.Rngs | None = None,
    ):
        super().__init__(weight, reduction=reduction)
        self.p = p
        self.margin = margin

    def __call__(self, x: jax.Array, target: jax.Array) -> jax.Array:
        return multi_margin_loss(x, target, self.p, self.margin, self.weight_array(), self.reduction)


class MultiLabelMarginLoss(Loss):
    """PyTorch's `nn.MultiLabelMarginLoss`."""

    def __call__(self, x: jax.Array, target: jax.Array) -> jax.Array:
        return multilabel_margin_loss(x, target, self.reduction)


class MultiLabelSoftMarginLoss(WeightedLoss):
    """PyTorch's `nn.MultiLabelSoftMarginLoss`."""

    def __call__(self, x: jax.Array, target: jax.Array) -> jax.Array:
        return multilabel_soft_margin_loss(x, target, self.weight_array(), self.reduction)


class CTCLoss(Loss):
    """PyTorch's `nn.CTCLoss`."""

    def __init__(
        self,
        blank: int = 0,
        reduction: str = "mean",
        zero_infinity: bool = False,
        *,
        rngs: nnx.Rngs | None = None,
    ):
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def __call__(
        self,
        log_probs: jax.Array,
        targets: jax.Array,
        input_lengths: jax.Array | Sequence[int],
        target_lengths: jax.Array | Sequence[int],
    ) -> jax.Array:
        options = (self.blank, self.reduction, self.zero_infinity)
        return ctc_loss(log_probs, targets, input_lengths, target_lengths, *options)
