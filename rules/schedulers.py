"""``torch.optim.lr_scheduler``: each scheduler as a schedule, a function of a count.

Where a schedule counts updates it goes into the optax transformation. Where the program steps it by itself, once an
epoch or under a condition, the helper ``LRScheduler`` sets the learning rate that ``optax.inject_hyperparams`` keeps.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from t2j_lsp.translate.rule.facts import Object
from t2j_lsp.translate.rule.library import Trait, torch_class, trait
from t2j_lsp.translate.rule.pieces import Piece, precedence
from t2j_lsp.translate.rule.record import CLOSE, Call, Refusal, refuse, rule
from t2j_lsp.translate.rule.traced_schedules import traced_body

from ._optimizer_links import INJECTED

Schedule = Callable[[Call, dict[str, Piece]], "str | Refusal"]
"""Makes the template of a schedule, and values of its holes that are no arguments.

``{base}`` is the learning rate that the optimizer starts with.
"""

PREFIX = "torch.optim.lr_scheduler."
NO_RATE = "Can't tell the learning rate that the optimizer starts with."
FACTORS = ("StepLR", "MultiStepLR", "ExponentialLR", "ConstantLR", "LinearLR", "PolynomialLR", "MultiplicativeLR")
"""Schedulers that multiply the learning rate, whatever it is: only these can be chained."""


def scheduler(call: Call, schedule: Schedule) -> Piece | Refusal:
    """``LRScheduler(optimizer, schedule)``, or the schedule alone."""
    plan = call.site.optimizer
    if plan is None or not (plan.rate or plan.rates):
        return call.refuse(plan.reason if plan is not None and plan.reason else NO_RATE)
    if "last_epoch" in call.arguments and call["last_epoch"].literal != -1 and not plan.begins:
        return call.refuse("A schedule that goes on from last_epoch: give the optimizer's count instead.")
    extra = {"base": _rate(plan.rate)} if plan.rate else {}
    text = schedule(call, extra)
    if isinstance(text, Refusal):
        return text
    if plan.holds_rate and text.startswith("lambda "):
        text = _evaluated_once(call, text)
    if plan.rates:
        extra |= {f"base_{label}": _rate(rate) for label, rate in plan.rates}
        each = [f'"{label}": {text.replace("{base}", f"{{base_{label}}}")}' for label, _ in plan.rates]
        return call.emit(f"GroupLRScheduler({{optimizer}}, {{{', '.join(each)}}})", **extra)
    return call.emit(text if plan.alone else f"LRScheduler({{optimizer}}, {text})", **extra)


def _evaluated_once(call: Call, schedule: str) -> str:
    """A function of the count whose rate is read when it is made, and not at each count."""
    parameter, _, body = schedule.removeprefix("lambda ").partition(":")
    name = "initial_lr"
    while name in ast.unparse(call.node):
        name += "_"
    return f"lambda {parameter}, {name}={{base}}:{body.replace('{base}', name)}"


def _rate(text: str) -> Piece:
    return Piece(text, precedence(ast.parse(text, mode="eval").body))


def register(signature: str, schedule: Schedule, jax: str) -> None:
    name = signature.partition("(")[0]

    @rule(PREFIX + signature, jax=jax, result=lambda call: Object("scheduler", PREFIX + name))
    def emit(call: Call) -> Piece | Refusal:
        return scheduler(call, schedule)


def plain(template: str) -> Schedule:
    return lambda call, extra: template


# Factors ----------------------------------------------------------------------------------------------------------

DECAY = "optax.exponential_decay({base}, {step_size}, {gamma}, staircase=True)"
register("StepLR(optimizer, step_size, gamma=0.1, last_epoch=-1)", plain(DECAY), DECAY)
register(
    "ExponentialLR(optimizer, gamma, last_epoch=-1)",
    plain("optax.exponential_decay({base}, 1, {gamma})"),
    "optax.exponential_decay(lr, 1, gamma)",
)
register(
    "ConstantLR(optimizer, factor=0.3333333333333333, total_iters=5, last_epoch=-1)",
    plain(
        "optax.join_schedules([optax.constant_schedule({base} * {factor}), optax.constant_schedule({base})], "
        "[{total_iters}])"
    ),
    "optax.join_schedules([optax.constant_schedule(lr * factor), optax.constant_schedule(lr)], [total_iters])",
)
register(
    "LinearLR(optimizer, start_factor=0.3333333333333333, end_factor=1.0, total_iters=5, last_epoch=-1)",
    lambda call, extra: f"optax.linear_schedule({{base}} * {{start_factor}}, {_end(call)}, {{total_iters}})",
    "optax.linear_schedule(lr * start_factor, lr * end_factor, total_iters)",
)
register(
    "PolynomialLR(optimizer, total_iters=5, power=1.0, last_epoch=-1)",
    plain("optax.polynomial_schedule({base}, 0.0, {power}, {total_iters})"),
    "optax.polynomial_schedule(lr, 0.0, power, total_iters)",
)


def _end(call: Call) -> str:
    return "{base}" if call["end_factor"].literal == 1 else "{base} * {end_factor}"


def multi_step(call: Call, extra: dict[str, Piece]) -> str:
    """A milestone that is named twice counts twice."""
    milestones = call["milestones"].literal
    if not isinstance(milestones, list | tuple):
        return "optax.piecewise_constant_schedule({base}, {step: {gamma} for step in {milestones}})"
    steps = []
    for milestone in sorted(set(milestones)):
        power = milestones.count(milestone)
        steps.append(f"{milestone}: {{gamma}}" + (f" ** {power}" if power > 1 else ""))
    return f"optax.piecewise_constant_schedule({{base}}, {{{', '.join(steps)}}})"


register(
    "MultiStepLR(optimizer, milestones, gamma=0.1, last_epoch=-1)",
    multi_step,
    "optax.piecewise_constant_schedule(lr, {milestone: gamma})",
)

# Cosines ----------------------------------------------------------------------------------------------------------


def cosine(call: Call, extra: dict[str, Piece]) -> str:
    rest = ", {eta_min}" if call.given("eta_min") else ""
    return f"cosine_annealing({{base}}, {{T_max}}{rest})"


def restarts(call: Call, extra: dict[str, Piece]) -> str:
    rest = ", {T_mult}" if call.given("T_mult") or call.given("eta_min") else ""
    return f"cosine_warm_restarts({{base}}, {{T_0}}{rest}{', {eta_min}' if call.given('eta_min') else ''})"


register(
    "CosineAnnealingLR(optimizer, T_max, eta_min=0.0, last_epoch=-1)", cosine, "cosine_annealing(lr, T_max, eta_min)"
)
register(
    "CosineAnnealingWarmRestarts(optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1)",
    restarts,
    "cosine_warm_restarts(lr, T_0, T_mult, eta_min)",
)

# Functions of the count -------------------------------------------------------------------------------------------


def of_lambda(call: Call, extra: dict[str, Piece]) -> str | Refusal:
    """``lambda epoch: 0.1 * 0.95 ** epoch``."""
    argument = call["lr_lambda"]
    if call.site.optimizer is not None and call.site.optimizer.alone and isinstance(argument.node, ast.Lambda):
        if (traced := traced_body(argument.node)) is not None:
            extra["body"] = _rate(traced)
            return f"lambda {argument.node.args.args[0].arg}: {{base}} * {{body}}"
    if isinstance(argument.node, ast.List | ast.Tuple):
        return call.refuse("One function for each parameter group: give each transformation its own schedule.")
    text = argument.piece.text
    try:
        made = ast.parse(text, mode="eval").body
    except SyntaxError:
        return call.refuse("The function can't be read.")
    if isinstance(made, ast.Lambda) and len(made.args.args) == 1 and not made.args.defaults:
        body = ast.get_source_segment(text, made.body) or ast.unparse(made.body)
        extra["body"] = Piece(body, precedence(made.body))
        return f"lambda {made.args.args[0].arg}: {{base}} * {{body}}"
    return "lambda count: {base} * {lr_lambda}(count)"


register("LambdaLR(optimizer, lr_lambda, last_epoch=-1)", of_lambda, "lambda count: lr * lr_lambda(count)")
register(
    "MultiplicativeLR(optimizer, lr_lambda, last_epoch=-1)",
    plain("lambda count: {base} * math.prod(map({lr_lambda}, range(1, count + 1)))"),
    "lambda count: lr * math.prod(map(lr_lambda, range(1, count + 1)))",
)

# Cycles -----------------------------------------------------------------------------------------------------------


def cycled(call: Call, rate: str, momentum: str) -> Piece | Refusal:
    """A scheduler that moves the momentum (Adam's beta1) against the learning rate."""
    plan = call.site.optimizer
    moves = call["cycle_momentum"].literal
    if plan is None or plan.reason or not isinstance(moves, bool):
        return call.refuse((plan.reason if plan is not None else "") or "Can't tell whether it moves the momentum.")
    if call["last_epoch"].literal != -1:
        return call.refuse("A schedule that goes on from last_epoch: give the optimizer's count instead.")
    if plan.alone:
        return call.emit(f"{rate}, {momentum}" if moves else rate)
    if not moves:
        return call.emit(f"LRScheduler({{optimizer}}, {rate})")
    if not plan.cycled:
        return call.refuse("Can't tell which optimizer it moves the momentum of.")
    return call.emit(f"MomentumLRScheduler({{optimizer}}, {rate}, {INJECTED[plan.cycled]}={momentum})")


@rule(
    PREFIX + "OneCycleLR(optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start=0.3, "
    "anneal_strategy='cos', cycle_momentum=True, base_momentum=0.85, max_momentum=0.95, div_factor=25.0, "
    "final_div_factor=10000.0, three_phase=False, last_epoch=-1)",
    jax="MomentumLRScheduler(optimizer, one_cycle(...), momentum=one_cycle(...))",
    result=lambda call: Object("scheduler", PREFIX + "OneCycleLR"),
)
def one_cycle(call: Call) -> Piece | Refusal:
    total = "{total_steps}" if call.given("total_steps") else "{epochs} * {steps_per_epoch}"
    options = [f"{name}={{{name}}}" for name in ("pct_start", "anneal_strategy", "three_phase") if call.given(name)]
    rest = ", ".join([total, *options])
    first = "{max_lr} / {div_factor}"
    rate = f"one_cycle({first}, {{max_lr}}, {first} / {{final_div_factor}}, {rest})"
    return cycled(call, rate, f"one_cycle({{max_momentum}}, {{base_momentum}}, {{max_momentum}}, {rest})")


@rule(
    PREFIX + "CyclicLR(optimizer, base_lr, max_lr, step_size_up=2000, step_size_down=None, mode='triangular', "
    "gamma=1.0, scale_fn=None, scale_mode='cycle', cycle_momentum=True, base_momentum=0.8, max_momentum=0.9, "
    "last_epoch=-1)",
    jax="MomentumLRScheduler(optimizer, cyclic(...), momentum=cyclic(...))",
    result=lambda call: Object("scheduler", PREFIX + "CyclicLR"),
)
def cyclic(call: Call) -> Piece | Refusal:
    if call.given("scale_fn"):
        return call.refuse("A scale_fn of its own: write the schedule as a function of the count.")
    names = ("step_size_up", "step_size_down", "mode", "gamma")
    rest = "".join(f", {name}={{{name}}}" for name in names if call.given(name))
    return cycled(call, f"cyclic({{base_lr}}, {{max_lr}}{rest})", f"cyclic({{max_momentum}}, {{base_momentum}}{rest})")


# Schedulers of schedulers -----------------------------------------------------------------------------------------

register(
    "SequentialLR(optimizer, schedulers, milestones, last_epoch=-1)",
    plain("optax.join_schedules({schedulers}, {milestones})"),
    "optax.join_schedules(schedules, milestones)",
)


@rule(
    PREFIX + "ChainedScheduler(schedulers, optimizer=None)",
    jax="multiply_schedules([optax.constant_schedule(lr), ...])",
    result=lambda call: Object("scheduler", PREFIX + "ChainedScheduler"),
)
def chained(call: Call) -> Piece | Refusal:
    """The schedules inside start from 1."""
    plan = call.site.optimizer
    if plan is None or not plan.rate or not plan.target:
        return call.refuse(plan.reason if plan is not None and plan.reason else NO_RATE)
    inner = "multiply_schedules([optax.constant_schedule({base}), *{schedulers}])"
    if isinstance(call["schedulers"].node, ast.List | ast.Tuple):
        items = call["schedulers"].piece.text.strip()[1:-1].strip().rstrip(",")
        inner = "multiply_schedules([optax.constant_schedule({base}), {items}])"
        return call.emit(f"LRScheduler({{target}}, {inner})", base=plan.rate, items=items, target=plan.target)
    return call.emit(f"LRScheduler({{target}}, {inner})", base=plan.rate, target=plan.target)


# Metrics ----------------------------------------------------------------------------------------------------------


@rule(
    PREFIX + "ReduceLROnPlateau(optimizer, mode='min', factor=0.1, patience=10, threshold=0.0001, "
    "threshold_mode='rel', cooldown=0, min_lr=0, eps=1e-08)",
    jax="ReduceLROnPlateau(optimizer, ...)",
    fidelity=CLOSE,
    note="The learning rate is set in Python between the steps, from the metric it is given.",
    result=lambda call: Object("scheduler", PREFIX + "ReduceLROnPlateau"),
)
def plateau(call: Call) -> Piece | Refusal:
    plan = call.site.optimizer
    if plan is None or plan.reason:
        return call.refuse(plan.reason if plan is not None else NO_RATE)
    if isinstance(call["min_lr"].node, ast.List | ast.Tuple):
        return call.refuse("One min_lr for each parameter group.")
    names = ("mode", "factor", "patience", "threshold", "threshold_mode", "cooldown", "min_lr", "eps")
    usual = ("min", "rel")  # the ways that PyTorch goes if nothing is said
    rest = "".join(f", {n}={{{n}}}" for n in names if call.given(n) and call[n].literal not in usual)
    return call.emit(f"ReduceLROnPlateau({{optimizer}}{rest})")


trait(Trait.SCHEDULE_OF_FUNCTION, PREFIX + "LambdaLR")
COSINES = ("CosineAnnealingLR", "CosineAnnealingWarmRestarts")
TRACED = (*FACTORS[:-1], *COSINES, "OneCycleLR", "CyclicLR")
trait(Trait.TRACED_SCHEDULE, *(PREFIX + name for name in TRACED))
for name in (*FACTORS, *COSINES, "LambdaLR", "OneCycleLR", "CyclicLR", "SequentialLR", "ChainedScheduler"):
    torch_class(PREFIX + name, annotation="", fact=Object("scheduler"))
torch_class(PREFIX + "ReduceLROnPlateau", annotation="", fact=Object("scheduler"))
trait(Trait.DERIVED_SCHEDULE, PREFIX + "LRScheduler", PREFIX + "_LRScheduler")
CUSTOM = "A custom schedule is written as a function of the count, for optax or LRScheduler."
refuse("torch.optim.lr_scheduler.LRScheduler", CUSTOM)
refuse("torch.optim.lr_scheduler._LRScheduler", CUSTOM)
