"""``torch.optim``: each optimizer as an ``nnx.Optimizer`` over the ``optax`` transformation with PyTorch's update rule.

What differs by default is written out (AdamW's decay of 0.01, RMSprop's eps outside the root), what optax does
otherwise comes from a helper (dampening, AMSGrad, Adagrad, NAdam, RAdam). Options of speed and memory (``foreach``,
``fused``, ``capturable``) go.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace

from t2j_lsp.translate.rule.facts import Object, Qual
from t2j_lsp.translate.rule.library import Trait, torch_class, trait
from t2j_lsp.translate.rule.optimizer_plan import Group, OptimizerPlan
from t2j_lsp.translate.rule.optimizer_values import transformation_of
from t2j_lsp.translate.rule.pieces import NOT, Piece, bracket, precedence
from t2j_lsp.translate.rule.record import CLOSE, EXACT, Call, Refusal, rule

from ._optimizer_links import (
    INJECTED,
    Links,
    Options,
    Unsure,
    adadelta,
    adafactor,
    adagrad,
    adam_links,
    adamax,
    adamw_links,
    arguments,
    asgd,
    is_own,
    moment_scaled,
    rmsprop,
    rprop,
    sgd,
)

SPEED = ("foreach", "fused", "capturable")


NO_GRADIENT = (
    "Some of its parameters are reached by no step, and have no gradient: PyTorch doesn't decay them, and optax would."
    " Freeze them."
)
OPTIMIZER = "nnx.Optimizer({target}, {tx}, wrt={wrt})"


def transformation(call: Call, links: Links, plan: OptimizerPlan, extra: dict[str, Piece]) -> str:
    """The optax transformation as a template. Raises Unsure."""
    plan = _without_decay(call, plan)
    injected = tuple(n for n in INJECTED if n in plan.injected and n in call.arguments)
    group = plan.groups[0] if len(plan.groups) == 1 else None
    everything = Options(call, extra, injected, group, rate=plan.schedule, momentum=plan.momentum)
    made = grouped(everything, links, plan) if len(plan.groups) > 1 else chain(everything, links)
    if not plan.made_by:
        return made
    head = transformation_of(Qual(call.signature.name))
    if not made.startswith(f"{head}(") or made.endswith("))"):
        raise Unsure("its class is a value, for which no function of optax with the same arguments stands")
    return plan.made_by + made.removeprefix(head)


def _without_decay(call: Call, plan: OptimizerPlan) -> OptimizerPlan:
    """The plan with a group of its own for what has no gradient, if the rest is decayed. Raises Unsure."""
    if not plan.undecayed or "weight_decay" not in call.arguments:
        return plan
    averaged = "lambd" in call.arguments
    if call["weight_decay"].literal == 0 and not plan.groups and not averaged:
        return plan
    if averaged or plan.groups and _still(call, plan) is None:
        raise Unsure(NO_GRADIENT)
    if plan.groups:
        first, other = plan.groups
        joined = f"({plan.undecayed}) or ({first.condition})"
        if _still(call, plan) is other:
            joined = f"({first.condition}) and not ({plan.undecayed})"
        condition = ast.unparse(ast.parse(joined, mode="eval")).replace("'", '"')
        return replace(plan, groups=(replace(first, condition=condition), other))
    given = ast.parse(call["weight_decay"].piece.text, mode="eval").body
    still, decaying = ({"weight_decay": value} for value in (ast.Constant(0), given))
    return replace(plan, groups=(Group("unused", plan.undecayed, still), Group("used", None, decaying)))


def _still(call: Call, plan: OptimizerPlan) -> Group | None:
    """Which of two groups isn't decayed, if that is all that they differ in."""
    if len(plan.groups) != 2 or any(set(g.options) != {"weight_decay"} for g in plan.groups):
        return None
    still = [g for g in plan.groups if Options(call, {}, group=g).zero("weight_decay")]
    return still[0] if len(still) == 1 else None


def chain(o: Options, links: Links) -> str:
    made = [inject(o, link) for link in links(o)]
    return made[0] if len(made) == 1 else f"optax.chain({', '.join(made)})"


def inject(o: Options, link: str) -> str:
    """A link whose hyperparameters can be set later: ``optax.inject_hyperparams(optax.sgd)(learning_rate=0.1)``."""
    head, _, rest = link.partition("(")
    parts = rest[:-1].split(", ")
    names = {INJECTED[n]: n for n in o.injected}
    given = [name for name in names if name in parts or f"{name}={name}" in parts]
    if not given:
        return link
    if is_own(o.call):
        return f"optax.inject_hyperparams(lambda learning_rate: {link})(learning_rate={_first(o, 'lr')})"
    values = [f"{n}={_first(o, names[n])}" for n in given]
    others = [p for p in parts if p not in given and p.partition("=")[0] not in given]
    if head == "optax.trace":
        return f"optax.inject_hyperparams(lambda momentum: optax.trace(momentum))({values[0]})"
    return f"optax.inject_hyperparams({head})({arguments(values, others)})"


def _first(o: Options, name: str) -> str:
    """What a hyperparameter begins with, or the schedule that it follows."""
    if scheduled := o.rate if name == "lr" else o.momentum:
        _ = o.call[name]  # said by the schedule
        return scheduled
    plain = Options(o.call, o.extra, group=o.group)
    return plain.part(name, 0) if name == "betas" else _float(plain, name)


def _float(o: Options, name: str) -> str:
    """A hyperparameter's first value: a whole number would make it an integer."""
    value = o.argument(name).literal
    return f"{float(value)}" if type(value) is int else o.hole(name)


def grouped(o: Options, links: Links, plan: OptimizerPlan) -> str:
    """One transformation for each parameter group. Raises Unsure."""
    masked = None if plan.apart else _masked(o, links, plan)
    if masked is not None:
        return masked
    made = []
    for group in plan.groups:
        one = Options(o.call, o.extra, o.injected, group, o.rate)
        made.append(f'"{group.label}": {"optax.set_to_zero()" if group.frozen else chain(one, links)}')
    label = f'"{plan.groups[-1].label}"'
    for group in reversed(plan.groups[:-1]):
        label = _labelled(group, label)
    return f"optax.multi_transform({{{', '.join(made)}}}, {_for_each(label, plan.groups)})"


def _for_each(said: str, groups: Sequence[Group]) -> str:
    """What is said of each parameter by its ``name`` and ``parameter``, as a function of all of them."""
    reads = {name for group in groups for name in group.reads}
    if "torch_name" in reads:
        said = re.sub(r"\btorch_name\b", "name", said)
        return f"label_parameters(lambda name, parameter: {said}, {{target}})"
    return f"label_parameters(lambda name, parameter: {said})"


def _labelled(group: Group, others: str) -> str:
    """The label of a parameter: the group's where its condition holds, which is said without a negation."""
    tree = ast.parse(group.condition or "True", mode="eval").body
    if (
        isinstance(tree, ast.UnaryOp)
        and isinstance(tree.op, ast.Not)
        and others.startswith('"')
        and " if " not in others
    ):
        asked = ast.unparse(tree.operand).replace("'", '"')
        return f'{others} if {asked} else "{group.label}"'
    return f'"{group.label}" if {group.condition} else {others}'


def _masked(o: Options, links: Links, plan: OptimizerPlan) -> str | None:
    """An optimizer whose groups only say what is decayed and what is not: a mask."""
    still = _still(o.call, plan)
    condition = plan.groups[0].condition or ""
    if still is None or not condition:
        return None
    if still is plan.groups[0]:
        condition = _negated(condition)
    decaying = next(g for g in plan.groups if g is not still)
    made = chain(Options(o.call, o.extra, o.injected, decaying, o.rate), links)
    mask = f"lambda params: jax.tree.map(lambda p: {condition.replace('parameter.', 'p.')}, params)"
    if not {"name", "torch_name"}.isdisjoint(plan.groups[0].reads):
        mask = _for_each(condition, plan.groups)
    added = re.findall(r"optax\.add_decayed_weights\(\{\w+\}\)", made)
    if len(added) == 1:
        return made.replace(added[0], f"{added[0][:-1]}, mask={mask})")
    if links is not adamw_links or "optax.chain" in made:
        return None
    # inject_hyperparams takes what can be called for a schedule, and calls it with the number of updates.
    made = made.replace("inject_hyperparams(optax.adamw)", 'inject_hyperparams(optax.adamw, static_args="mask")', 1)
    return f"{made[:-1]}, mask={mask})"


def _negated(condition: str) -> str:
    tree = ast.parse(condition, mode="eval").body
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        return ast.unparse(tree.operand).replace("'", '"')
    return f"not {bracket(Piece(condition, precedence(tree)), NOT)}"


def optimizer(call: Call, links: Links) -> Piece | Refusal:
    """``nnx.Optimizer(model, transformation, wrt=nnx.Param)``, with a name for the transformation where it is long."""
    plan = call.site.optimizer
    if plan is None or not (plan.target or plan.leaves):
        return call.refuse(plan.reason if plan is not None and plan.reason else NO_TARGET)
    if "differentiable" in call.arguments and call["differentiable"].literal is not False:
        return call.refuse("Differentiating through the update is done by jax.grad over optax's functions.")
    extra: dict[str, Piece] = {"target": Piece(plan.target)}
    try:
        text = transformation(call, links, plan, extra)
    except Unsure as problem:
        return call.refuse(str(problem))
    made = call.emit(text, **extra)
    if plan.leaves:
        return made
    extra["wrt"] = call.emit(_filter(plan))
    whole = call.emit(OPTIMIZER, tx=made, **extra)
    named = call.site.hoist(made, "tx") if call.site.lines(whole.text) > 1 else None
    return whole if named is None else call.emit(OPTIMIZER, tx=named, **extra)


def _filter(plan: OptimizerPlan) -> str:
    """Which variables of its module an optimizer updates."""
    if plan.flagged:
        return "is_trainable"
    if not plan.part:
        return "nnx.Param"
    names = plan.part.split(".")
    inside = f'path[0] == "{plan.part}"' if len(names) == 1 else f"path[:{len(names)}] == {tuple(names)}"
    return f"nnx.All(nnx.Param, lambda path, _: {inside})".replace("'", '"')


NO_TARGET = "Can't tell which module these parameters are of: nnx.Optimizer takes the module itself."


ADAM = "params, lr=0.001, betas=(0.9, 0.999), eps=1e-08"
SIGNATURES: dict[str, tuple[str, Links, str]] = {
    "SGD": (
        "params, lr=0.001, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False, foreach=None, "
        "differentiable=False, fused=None",
        sgd,
        "optax.sgd(lr, momentum)",
    ),
    "Adam": (
        f"{ADAM}, weight_decay=0, amsgrad=False, *, foreach=None, maximize=False, capturable=False, "
        "differentiable=False, fused=None, decoupled_weight_decay=False",
        adam_links,
        "optax.adam(lr)",
    ),
    "AdamW": (
        f"{ADAM}, weight_decay=0.01, amsgrad=False, *, maximize=False, foreach=None, capturable=False, "
        "differentiable=False, fused=None",
        adamw_links,
        "optax.adamw(lr, weight_decay=0.01)",
    ),
    "RMSprop": (
        "params, lr=0.01, alpha=0.99, eps=1e-08, weight_decay=0, momentum=0, centered=False, capturable=False, "
        "foreach=None, maximize=False, differentiable=False",
        rmsprop,
        "optax.rmsprop(lr, decay=0.99, eps_in_sqrt=False)",
    ),
    "Adagrad": (
        "params, lr=0.01, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, foreach=None, *, "
        "maximize=False, differentiable=False, fused=None",
        adagrad,
        "optax.chain(scale_by_adagrad(), optax.scale_by_learning_rate(lr))",
    ),
    "Adadelta": (
        "params, lr=1.0, rho=0.9, eps=1e-06, weight_decay=0, foreach=None, *, capturable=False, maximize=False, "
        "differentiable=False",
        adadelta,
        "optax.adadelta(lr)",
    ),
    "Adamax": (
        "params, lr=0.002, betas=(0.9, 0.999), eps=1e-08, weight_decay=0, foreach=None, *, maximize=False, "
        "differentiable=False, capturable=False",
        adamax,
        "optax.adamax(lr)",
    ),
    "NAdam": (
        "params, lr=0.002, betas=(0.9, 0.999), eps=1e-08, weight_decay=0, momentum_decay=0.004, "
        "decoupled_weight_decay=False, *, foreach=None, maximize=False, capturable=False, differentiable=False",
        lambda o: moment_scaled(o, "scale_by_nadam", "momentum_decay"),
        "optax.chain(scale_by_nadam(), optax.scale_by_learning_rate(lr))",
    ),
    "RAdam": (
        f"{ADAM}, weight_decay=0, decoupled_weight_decay=False, *, foreach=None, maximize=False, capturable=False, "
        "differentiable=False",
        lambda o: moment_scaled(o, "scale_by_radam"),
        "optax.chain(scale_by_radam(), optax.scale_by_learning_rate(lr))",
    ),
    "Rprop": (
        "params, lr=0.01, etas=(0.5, 1.2), step_sizes=(1e-06, 50), *, capturable=False, foreach=None, maximize=False, "
        "differentiable=False",
        rprop,
        "rprop(lr)",
    ),
    "ASGD": (
        "params, lr=0.01, lambd=0.0001, alpha=0.75, t0=1000000.0, weight_decay=0, foreach=None, maximize=False, "
        "differentiable=False, capturable=False",
        asgd,
        "asgd(lr)",
    ),
    "Adafactor": (
        "params, lr=0.01, beta2_decay=-0.8, eps=(None, 0.001), d=1.0, weight_decay=0.0, *, foreach=None, "
        "maximize=False",
        adafactor,
        "adafactor(lr)",
    ),
}


def register(name: str, signature: str, links: Links, shown: str, note: str | None = None) -> None:
    """The rule of an optimizer that is an optax transformation; ``note`` says how its updates differ."""
    torch_class(f"torch.optim.{name}", annotation="nnx.Optimizer", fact=Object("optimizer"))

    @rule(
        f"torch.optim.{name}({signature})",
        jax=f"nnx.Optimizer(model, {shown}, wrt=nnx.Param)",
        fidelity=CLOSE if note else EXACT,
        note=note,
        result=lambda call: Object("optimizer", f"torch.optim.{name}"),
        ignore=SPEED,
    )
    def emit(call: Call) -> Piece | Refusal:
        return optimizer(call, links)


for name, (signature, links, shown) in SIGNATURES.items():
    register(name, signature, links, shown)

trait(Trait.PLAIN_STEPS, "torch.optim.SGD")
trait(Trait.DECAYS, *(f"torch.optim.{name}" for name in ("AdamW", "Muon", "ASGD")))
SCHEDULED = ("SGD", "Adam", "AdamW", "RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam")
trait(Trait.TAKES_SCHEDULE, *(f"torch.optim.{name}" for name in SCHEDULED))
