"""Losses and distances as layers (torch docs: torch.nn, Loss Functions and Distance Functions).

A loss that holds no arrays is its function, with the arguments that were given: ``functools.partial(cross_entropy,
ignore_index=0)``. One with class weights, which PyTorch saves as a buffer, and one whose class is passed around, is the
helper class of torch's name.
"""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.rule.layer import Build, layer
from t2j_lsp.translate.rule.library import Trait, trait
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.rule.record import Call, Refusal, refuse

from ._reductions import OLD, with_reduction

FLOATS = Tensor(dtype="float")
ARRAYS = ("weight", "pos_weight")


def _function(name: str, cls: str) -> Build:
    """The function itself, with the arguments that differ from their defaults bound; its class if it has weights."""

    def build(call: Call) -> Piece | Refusal | None:
        said = with_reduction(call)
        if isinstance(said, Refusal):
            return said
        is_old, call = said is not call, said
        given = [p.name for p in call.signature.parameters or () if call.given(p.name)]
        if any(one in given for one in ARRAYS):
            return call.emit(f"{cls}({', '.join(f'{one}={{{one}}}' for one in given)})") if is_old else None
        if not given:
            return call.emit(name)
        return call.emit(f"functools.partial({name}, " + ", ".join(f"{one}={{{one}}}" for one in given) + ")")

    return build


def _loss(signature: str, function: str) -> None:
    layer(
        f"torch.nn.{signature}",
        _function(function, signature.partition("(")[0]),
        result=FLOATS,
        random=False,
        function=True,
        jax=function,
    )


for signature, function in (
    (f"L1Loss({OLD})", "l1_loss"),
    (f"MSELoss({OLD})", "mse_loss"),
    (f"SmoothL1Loss({OLD}, beta=1.0)", "smooth_l1_loss"),
    ("HuberLoss(reduction='mean', delta=1.0)", "huber_loss"),
    (f"KLDivLoss({OLD}, log_target=False)", "kl_div"),
    ("GaussianNLLLoss(*, full=False, eps=1e-06, reduction='mean')", "gaussian_nll_loss"),
    (
        "PoissonNLLLoss(log_input=True, full=False, size_average=None, eps=1e-08, reduce=None, reduction='mean')",
        "poisson_nll_loss",
    ),
    (
        "CrossEntropyLoss(weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean',"
        " label_smoothing=0.0)",
        "cross_entropy",
    ),
    ("NLLLoss(weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean')", "nll_loss"),
    (f"BCELoss(weight=None, {OLD})", "binary_cross_entropy"),
    (f"BCEWithLogitsLoss(weight=None, {OLD}, pos_weight=None)", "binary_cross_entropy_with_logits"),
    (f"SoftMarginLoss({OLD})", "soft_margin_loss"),
    (f"MultiMarginLoss(p=1, margin=1.0, weight=None, {OLD})", "multi_margin_loss"),
    (f"MultiLabelMarginLoss({OLD})", "multilabel_margin_loss"),
    (f"MultiLabelSoftMarginLoss(weight=None, {OLD})", "multilabel_soft_margin_loss"),
    (f"CosineEmbeddingLoss(margin=0.0, {OLD})", "cosine_embedding_loss"),
    (f"MarginRankingLoss(margin=0.0, {OLD})", "margin_ranking_loss"),
    (f"HingeEmbeddingLoss(margin=1.0, {OLD})", "hinge_embedding_loss"),
    (f"TripletMarginLoss(margin=1.0, p=2.0, eps=1e-06, swap=False, {OLD})", "triplet_margin_loss"),
    (
        "TripletMarginWithDistanceLoss(*, distance_function=None, margin=1.0, swap=False, reduction='mean')",
        "triplet_margin_with_distance_loss",
    ),
    ("CTCLoss(blank=0, reduction='mean', zero_infinity=False)", "ctc_loss"),
    ("CosineSimilarity(dim=1, eps=1e-08)", "cosine_similarity"),
    ("PairwiseDistance(p=2.0, eps=1e-06, keepdim=False)", "pairwise_distance"),
):
    _loss(signature, function)

layer(
    "torch.nn.LinearCrossEntropyLoss(in_features, num_classes, *, out_features=(), bias=False, device=None, dtype=None,"
    " reduction='mean', weight=None, ignore_index=None, label_smoothing=0.0, options=None)",
    result=FLOATS,
    ignore=["options"],
)

for name, reason in {
    "NLLLoss2d": "A deprecated name of nn.NLLLoss, which takes images too.",
    "AdaptiveLogSoftmaxWithLoss": "Its clusters have shapes that depend on the targets; use nn.CrossEntropyLoss.",
    "LinearCrossEntropyOptions": "Options of a fused kernel of PyTorch's.",
}.items():
    refuse(f"torch.nn.{name}", reason)

trait(Trait.LOSS, "torch.nn.CosineSimilarity", "torch.nn.PairwiseDistance")

# What losses derive from, PyTorch's own and people's --------------------------------------------------------------

layer(f"torch.nn.modules.loss._Loss({OLD})", helper="Loss", result=FLOATS, random=False)
layer(
    "torch.nn.modules.loss._WeightedLoss(weight=None, size_average=None, reduce=None, reduction='mean')",
    helper="WeightedLoss",
    result=FLOATS,
    random=False,
)
