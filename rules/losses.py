"""Losses and distances as functions: ``F.cross_entropy``, ``F.mse_loss``, ``F.cosine_similarity``, ...

A plain expression stands where it is exact; a helper with PyTorch's reductions where the loss masks, weighs or clamps.
The loss layers (``nn.CrossEntropyLoss``) are in ``layers``.
"""

from __future__ import annotations

from collections.abc import Callable

from t2j_lsp.translate.rule.facts import Fact, Tensor
from t2j_lsp.translate.rule.library import Trait, trait
from t2j_lsp.translate.rule.record import Call, Piece, Refusal, Row, rule

from ._arguments import rank_of
from ._reductions import OLD, with_reduction

F = "torch.nn.functional"
REDUCTIONS = ("mean", "sum", "none")


def loss_fact(call: Call) -> Tensor:
    """A scalar, or with ``reduction="none"`` a tensor."""
    said = with_reduction(call)
    one = isinstance(said, Call) and said.literal("reduction") in ("mean", "sum", "batchmean")
    return Tensor(0 if one else None, "float")


def _loss(signature: str, helper: str, result: Callable[[Call], Tensor] = loss_fact) -> None:
    """A loss whose helper stands for every use."""

    def emit(call: Call) -> Piece | Refusal:
        said = with_reduction(call)
        return said if isinstance(said, Refusal) else said.emit(helper)

    shown = helper.replace("{", "").replace("}", "").replace("?", "")
    trait(Trait.LOSS_FUNCTION, f"{F}.{signature.partition('(')[0]}")
    rule(f"{F}.{signature}", jax=shown, result=result, value=helper.partition("(")[0])(emit)


def _elementwise(signature: str, loss: str, helper: str, plain: Callable[[Call], bool] = lambda call: True) -> None:
    """A loss that is a plain expression of each element, without weights and where ``plain`` says so."""

    def emit(call: Call) -> Piece | Refusal:
        said = with_reduction(call)
        if isinstance(said, Refusal):
            return said
        call, reduction = said, said.literal("reduction")
        weighted = any(name in call.arguments and not call[name].is_none for name in ("weight", "pos_weight"))
        if weighted or reduction not in REDUCTIONS or not plain(call):
            return call.emit(helper)
        return call.emit(loss if reduction == "none" else f"jnp.{reduction}({loss})")

    shown = f"jnp.mean({loss})".replace("{", "").replace("}", "")
    trait(Trait.LOSS_FUNCTION, f"{F}.{signature.partition('(')[0]}")
    rule(f"{F}.{signature}", jax=shown, result=loss_fact, value=helper.partition("(")[0])(emit)


PAIR = "{input}, {target}"
REDUCE = "reduction={reduction?}"

_elementwise(
    f"mse_loss(input, target, {OLD}, weight=None)",
    "jnp.square({input} - {target})",
    f"mse_loss({PAIR}, {REDUCE}, weight={{weight?}})",
)
_elementwise(
    f"l1_loss(input, target, {OLD}, weight=None)",
    "absolute({input} - {target})",
    f"l1_loss({PAIR}, {REDUCE}, weight={{weight?}})",
)
_elementwise(
    "huber_loss(input, target, reduction='mean', delta=1.0, weight=None)",
    "optax.huber_loss({input}, {target}, delta={delta?})",
    f"huber_loss({PAIR}, {REDUCE}, delta={{delta?}}, weight={{weight?}})",
)
_elementwise(
    f"smooth_l1_loss(input, target, {OLD}, beta=1.0)",
    "optax.huber_loss({input}, {target})",
    f"smooth_l1_loss({PAIR}, {REDUCE}, beta={{beta?}})",
    lambda call: call.literal("beta") == 1,
)
_elementwise(
    f"binary_cross_entropy_with_logits(input, target, weight=None, {OLD}, pos_weight=None)",
    "optax.sigmoid_binary_cross_entropy({input}, {target})",
    f"binary_cross_entropy_with_logits({PAIR}, weight={{weight?}}, {REDUCE}, pos_weight={{pos_weight?}})",
)

# Classes --------------------------------------------------------------------------------------------------------

_loss(
    "cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean',"
    " label_smoothing=0.0)",
    f"cross_entropy({PAIR}, weight={{weight?}}, ignore_index={{ignore_index?}}, {REDUCE},"
    " label_smoothing={label_smoothing?})",
)
_loss(
    "nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean')",
    f"nll_loss({PAIR}, weight={{weight?}}, ignore_index={{ignore_index?}}, {REDUCE})",
)
_loss(
    f"binary_cross_entropy(input, target, weight=None, {OLD})",
    f"binary_cross_entropy({PAIR}, weight={{weight?}}, {REDUCE})",
)
_loss(f"soft_margin_loss(input, target, {OLD})", f"soft_margin_loss({PAIR}, {REDUCE})")
_loss(
    f"multi_margin_loss(input, target, p=1, margin=1.0, weight=None, {OLD})",
    f"multi_margin_loss({PAIR}, p={{p?}}, margin={{margin?}}, weight={{weight?}}, {REDUCE})",
)
_loss(f"multilabel_margin_loss(input, target, {OLD})", f"multilabel_margin_loss({PAIR}, {REDUCE})")
_loss(
    f"multilabel_soft_margin_loss(input, target, weight=None, {OLD})",
    f"multilabel_soft_margin_loss({PAIR}, weight={{weight?}}, {REDUCE})",
)
_loss(
    "ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction='mean', zero_infinity=False)",
    "ctc_loss({log_probs}, {targets}, {input_lengths}, {target_lengths}, blank={blank?}, reduction={reduction?},"
    " zero_infinity={zero_infinity?})",
)

# Distributions --------------------------------------------------------------------------------------------------

_loss(
    f"kl_div(input, target, {OLD}, log_target=False)",
    f"kl_div({PAIR}, {REDUCE}, log_target={{log_target?}})",
)
_loss(
    "gaussian_nll_loss(input, target, var, full=False, eps=1e-06, reduction='mean')",
    f"gaussian_nll_loss({PAIR}, {{var}}, full={{full?}}, eps={{eps?}}, {REDUCE})",
)
_loss(
    "poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-08, reduce=None,"
    " reduction='mean')",
    f"poisson_nll_loss({PAIR}, log_input={{log_input?}}, full={{full?}}, eps={{eps?}}, {REDUCE})",
)

# Pairs and triplets ---------------------------------------------------------------------------------------------

_loss(
    f"cosine_embedding_loss(input1, input2, target, margin=0, {OLD})",
    f"cosine_embedding_loss({{input1}}, {{input2}}, {{target}}, margin={{margin?}}, {REDUCE})",
)
_loss(
    f"margin_ranking_loss(input1, input2, target, margin=0, {OLD})",
    f"margin_ranking_loss({{input1}}, {{input2}}, {{target}}, margin={{margin?}}, {REDUCE})",
)
_loss(
    f"hinge_embedding_loss(input, target, margin=1.0, {OLD})",
    f"hinge_embedding_loss({PAIR}, margin={{margin?}}, {REDUCE})",
)
_loss(
    "triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-06, swap=False, size_average=None,"
    " reduce=None, reduction='mean')",
    "triplet_margin_loss({anchor}, {positive}, {negative}, margin={margin?}, p={p?}, eps={eps?}, swap={swap?},"
    " reduction={reduction?})",
)
_loss(
    "triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False,"
    " reduction='mean')",
    "triplet_margin_with_distance_loss({anchor}, {positive}, {negative}, distance_function={distance_function?},"
    " margin={margin?}, swap={swap?}, reduction={reduction?})",
)


def _similarity(call: Call) -> Fact:
    """The two tensors, broadcast, without the axis ``dim``."""
    ranks = [rank_of(call[name]) for name in ("x1", "x2")]
    return Tensor(None if None in ranks else max(max(r for r in ranks if r is not None), 1) - 1, "float")


Row(
    f"{F}.cosine_similarity(x1, x2, dim=1, eps=1e-08)",
    "cosine_similarity({x1}, {x2}, dim={dim?}, eps={eps?})",
    aliases=["torch.cosine_similarity"],
    result=_similarity,
)
Row(
    f"{F}.pairwise_distance(x1, x2, p=2.0, eps=1e-06, keepdim=False)",
    "pairwise_distance({x1}, {x2}, p={p?}, eps={eps?}, keepdim={keepdim?})",
    aliases=["torch.pairwise_distance"],
    result="float tensor",
)


@rule(
    f"{F}.linear_cross_entropy(input, linear_weight, target, *, linear_bias=None, weight=None, reduction='mean',"
    " ignore_index=None, label_smoothing=0.0, options=None)",
    jax="cross_entropy(x @ weight.T, target)",
    ignore=["options"],
)
def linear_cross_entropy(call: Call) -> Piece | Refusal:
    """The weight may have axes between classes and features, which the logits have, too."""
    logits = "jnp.tensordot({input}, {linear_weight}, (-1, -1))"
    if rank_of(call["linear_weight"]) == 2:
        logits = "{input} @ {linear_weight}.T"
    if call.given("linear_bias"):
        if not isinstance(call["linear_bias"].fact, Tensor):
            return call.refuse("can't tell whether the linear_bias is None")
        logits += " + {linear_bias}"
    ignored = "" if call["ignore_index"].is_none else " ignore_index={ignore_index},"
    return call.emit(
        f"cross_entropy({logits}, {{target}}, weight={{weight?}},{ignored}"
        " reduction={reduction?}, label_smoothing={label_smoothing?})"
    )


Row(
    f"{F}.pdist(input, p=2.0)",
    "pdist({input}, p={p?})",
    aliases=["torch.pdist"],
    result=lambda call: Tensor(1, "float"),
)
