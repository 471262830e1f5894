"""Optimizers of ``torch.optim`` for some parameters only, and those that are no ``optax`` transformation.

``LBFGS`` is a helper with PyTorch's steps and line search, whose closure gives the loss and its gradients. ``Muon`` is
for matrices, ``SparseAdam`` for tables that rows are looked up in.
"""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import KERNELS, OPTIMIZER_BASE, Object
from t2j_lsp.translate.rule.library import Trait, torch_class, trait
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.rule.record import Call, Refusal, refuse, rule

from ._optimizer_links import Options, arguments, before, is_own, own_links, rated
from .optimizers import NO_TARGET, optimizer, register

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
    if plan is None or not plan.target or plan.part:
        return call.refuse(plan.reason if plan is not None and plan.reason else NO_TARGET)
    if plan.groups:
        return call.refuse(GROUPS)
    if plan.injected:
        return call.refuse(CHANGED)
    names = {"lr": "learning_rate"}
    options = ("lr", "max_iter", "max_eval", "tolerance_grad", "tolerance_change", "history_size", "line_search_fn")
    given = [f"{names.get(o, o)}={{{o}}}" for o in options if call.given(o)]
    return call.emit(f"LBFGS({', '.join(['{target}', *given])})", target=Piece(plan.target))


torch_class("torch.optim.LBFGS", annotation="", fact=Object("optimizer"))
trait(Trait.EVALUATES_CLOSURE, "torch.optim.LBFGS")


def muon(o: Options) -> list[str]:
    names = ("momentum", "nesterov", "ns_coefficients", "eps", "ns_steps", "adjust_lr_fn")
    scale = f"scale_by_muon({arguments([f'{n}={o.hole(n)}' for n in names if o.given(n)])})"
    decay = "" if o.zero("weight_decay") else f"optax.add_decayed_weights({o.hole('weight_decay')})"
    return rated(o, scale, *([decay] if decay else []))


register(
    "Muon",
    "params, lr=0.001, weight_decay=0.1, momentum=0.95, nesterov=True, ns_coefficients=(3.4445, -4.775, 2.0315), "
    "eps=1e-07, ns_steps=5, adjust_lr_fn=None",
    muon,
    "optax.chain(scale_by_muon(), optax.add_decayed_weights(0.1), optax.scale_by_learning_rate(lr))",
    note="The update is orthogonalised in bfloat16, as PyTorch does: of large matrices sums in another order round "
    "otherwise.",
)


def sparse_adam(o: Options) -> list[str]:
    return before(o, False) + rated(o, f"scale_by_sparse_adam({arguments(o.moments())})")


register(
    "SparseAdam",
    "params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, maximize=False",
    sparse_adam,
    "optax.chain(scale_by_sparse_adam(), optax.scale_by_learning_rate(lr))",
    note="Rows whose gradient is zero are left alone: those that were not looked up, and in JAX also those that were, "
    "without making a difference to the loss.",
)


@rule(
    "torch.optim.Optimizer(params, defaults)",
    jax="for_each_parameter(init_state, update_parameter)",
    result=lambda call: Object("optimizer", OPTIMIZER_BASE),
)
def own(call: Call) -> Piece | Refusal:
    """A call of a class of the user's own; and what makes it, in the function that stands for the class."""
    if is_own(call):
        return optimizer(call, own_links)
    given = [call["params"].text, call["defaults"].text]
    if given == ["init_state", "(update_parameter, of_all_gradients)"]:
        return call.emit("for_each_parameter_given({params}, update_parameter, of_all_gradients)")
    if given != ["init_state", "update_parameter"]:
        return call.refuse("A custom optimizer is written as an optax.GradientTransformation.")
    return call.emit("for_each_parameter({params}, {defaults})")


refuse(f"{KERNELS}.*", "What a step does with lists of tensors stands in the function of its optimizer.")
refuse(
    "torch.optim.swa_utils.SWALR",
    "Write the schedule: optax.join_schedules, from the rate that it starts at to swa_lr.",
)
refuse(
    "torch.optim.swa_utils.update_bn",
    "Reset the statistics of each nnx.BatchNorm, and call the averaged model on the batches in train mode.",
)
refuse("torch.optim.swa_utils.*", "Keep an average of nnx.state(model, nnx.Param) with optax.incremental_update.")
