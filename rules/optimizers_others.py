"""Optimizers of ``torch.optim`` that are no ``optax`` transformation.

``LBFGS`` is a helper with PyTorch's steps and line search, whose closure gives the loss and its gradients.
"""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import Object
from t2j_lsp.translate.rule.library import Trait, trait
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.rule.record import Call, Refusal, refuse, rule

from .optimizers import NO_TARGET

GROUPS = "It has no parameter groups, and updates all parameters of a module."
CHANGED = "Its learning rate changes while it runs, which no optax state holds: set learning_rate of the helper."


@rule(
    "torch.optim.LBFGS(params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-07, tolerance_change=1e-09, "
    "history_size=100, line_search_fn=None)",
    jax="LBFGS(model, learning_rate=lr)",
    result=lambda call: Object("optimizer", "torch.optim.LBFGS"),
)
def lbfgs(call: Call) -> Piece | Refusal:
    plan = call.site.optimizer
    if plan is None or not plan.target:
        return call.refuse(plan.reason if plan is not None and plan.reason else NO_TARGET)
    if plan.groups:
        return call.refuse(GROUPS)
    if plan.injected:
        return call.refuse(CHANGED)
    names = {"lr": "learning_rate"}
    options = ("lr", "max_iter", "max_eval", "tolerance_grad", "tolerance_change", "history_size", "line_search_fn")
    given = [f"{names.get(o, o)}={{{o}}}" for o in options if call.given(o)]
    return call.emit(f"LBFGS({', '.join(['{target}', *given])})", target=Piece(plan.target))


trait(Trait.EVALUATES_CLOSURE, "torch.optim.LBFGS")

refuse(
    "torch.optim.SparseAdam",
    "It updates the rows that were looked up, which JAX's dense gradients don't tell: use Adam, which updates all.",
)
refuse(
    "torch.optim.Muon",
    "PyTorch orthogonalises in bfloat16, optax.contrib.muon in the parameters' dtype: the updates are others.",
)
refuse("torch.optim.Optimizer", "A custom optimizer is written as an optax.GradientTransformation.")
refuse("torch.optim.swa_utils.*", "Keep an average of nnx.state(model, nnx.Param) with optax.incremental_update.")
