"""Optimizers as chains of optax's transformations: the options of a parameter group, and the links they ask for."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from t2j_lsp.translate.rule.facts import OptimizerFunction
from t2j_lsp.translate.rule.optimizer_plan import Group
from t2j_lsp.translate.rule.pieces import Piece, precedence
from t2j_lsp.translate.rule.record import Argument, Call

INJECTED = {"lr": "learning_rate", "momentum": "momentum", "betas": "b1"}
"""Options that a program may change while it runs, and their names in optax."""


class Unsure(Exception):
    """An option that no transformation can be chosen by."""


@dataclass
class Options:
    """The options of one parameter group, as holes of a template or names of injected hyperparameters."""

    call: Call
    extra: dict[str, Piece]
    """Values of holes that are no arguments of the call."""
    injected: tuple[str, ...] = ()
    group: Group | None = None
    rate: str | None = None
    """A schedule in place of the learning rate."""
    momentum: str = ""
    """One in place of the momentum."""

    def argument(self, name: str) -> Argument:
        if self.group is not None and name in self.group.options:
            node = self.group.options[name]
            _ = self.call[name]  # the default of groups that don't set it: seen, where every group does
            return Argument(name, Piece(ast.unparse(node), precedence(node)), node=node)
        return self.call[name]

    def given(self, name: str) -> bool:
        """Whether an option is set to something else than PyTorch's default."""
        if name in self.injected or (self.group is not None and name in self.group.options):
            return True
        return self.call.given(name)

    def zero(self, name: str) -> bool:
        """Whether an option is known to be 0 or False."""
        return name not in self.injected and self.argument(name).literal in (0, False)

    def flag(self, name: str) -> bool:
        """An option that chooses the transformation, so that its value must be known. Raises Unsure."""
        value = self.argument(name).literal
        if not isinstance(value, bool):
            raise Unsure(f"{name} decides which transformation it is: write True or False")
        return value

    def hole(self, name: str) -> str:
        """The option as a hole of the template, or the name it is injected by."""
        if name in self.injected:
            return INJECTED[name]
        if name == "lr" and self.rate is not None:
            _ = self.call["lr"]  # said by the schedule
            return self.rate
        if self.group is not None and name in self.group.options:
            key = f"{name}_of_{self.group.label}"
            self.extra[key] = self.argument(name).piece
            return "{" + key + "}"
        return "{" + name + "}"

    def part(self, name: str, index: int) -> str:
        """One of a pair: ``betas=(0.9, beta2)``."""
        if index == 0 and name in self.injected:
            return INJECTED[name]
        node = self.argument(name).node
        if node is None:
            node = ast.parse(self.argument(name).piece.text, mode="eval").body
        if isinstance(node, ast.Tuple | ast.List) and len(node.elts) == 2:
            key = f"{name}_{index}" + (f"_of_{self.group.label}" if self.group is not None else "")
            self.extra[key] = Piece(ast.unparse(node.elts[index]), precedence(node.elts[index]))
            return "{" + key + "}"
        return self.hole(name) + f"[{index}]"

    def moments(self, *, eps: str = "1e-8") -> list[str]:
        """``b1``, ``b2`` and ``eps``, where they are not the defaults that optax shares."""
        out = []
        if self.given("betas"):
            defaults = (0.9, 0.999)
            for index in (0, 1):
                text = self.part("betas", index)
                value = self.extra.get(text.strip("{}"))
                if value is None or value.text != str(defaults[index]):
                    out.append(f"b{index + 1}={text}")
        if self.given("eps"):
            out.append(f"eps={self.hole('eps')}")
        return out


Links = Callable[[Options], list[str]]
"""Makes the links of the chain for one group of options."""


def before(o: Options, coupled: bool = True) -> list[str]:
    """What happens to the gradient first: its sign, and weight decay that is added to it."""
    links = ["optax.scale(-1.0)"] if o.flag("maximize") else []
    if coupled and not o.zero("weight_decay"):
        links.append(f"optax.add_decayed_weights({o.hole('weight_decay')})")
    return links


def arguments(*parts: str | list[str]) -> str:
    flat = [p for part in parts for p in ([part] if isinstance(part, str) else part)]
    return ", ".join(p for p in flat if p)


def rated(o: Options, *links: str) -> list[str]:
    return [*links, f"optax.scale_by_learning_rate({o.hole('lr')})"]


# Update rules -----------------------------------------------------------------------------------------------------


def sgd(o: Options) -> list[str]:
    links = before(o)
    momentum = "" if o.zero("momentum") else o.hole("momentum")
    if momentum and not o.zero("dampening"):
        return links + rated(o, f"dampened_trace({momentum}, dampening={o.hole('dampening')})")
    nesterov = f"nesterov={o.hole('nesterov')}" if momentum and o.given("nesterov") else ""
    return [*links, f"optax.sgd({arguments(o.hole('lr'), momentum and f'momentum={momentum}', nesterov)})"]


def adam(o: Options, decoupled: bool = False) -> list[str]:
    links = before(o, not decoupled)
    decay = o.hole("weight_decay") if decoupled else ""
    if o.flag("amsgrad"):
        links.append(f"scale_by_amsgrad({arguments(o.moments())})")
        return links + rated(o, *([f"optax.add_decayed_weights({decay})"] if decoupled else []))
    if decoupled:
        return [*links, f"optax.adamw({arguments(o.hole('lr'), o.moments(), f'weight_decay={decay}')})"]
    return [*links, f"optax.adam({arguments(o.hole('lr'), o.moments())})"]


def rmsprop(o: Options) -> list[str]:
    links = before(o)
    centered = o.flag("centered")
    eps = f"eps={o.hole('eps')}" if o.given("eps") else ""
    decay = f"decay={o.hole('alpha')}"
    if o.zero("momentum"):
        rest = arguments(o.hole("lr"), decay, eps, "eps_in_sqrt=False", "centered=True" if centered else "")
        return [*links, f"optax.rmsprop({rest})"]
    scale = "optax.scale_by_stddev" if centered else "optax.scale_by_rms"
    trace = f"optax.trace({o.hole('momentum')})"
    return links + rated(o, f"{scale}({arguments(decay, eps, 'eps_in_sqrt=False')})", trace)


def adagrad(o: Options) -> list[str]:
    names = ("lr_decay", "initial_accumulator_value", "eps")
    return before(o) + rated(o, f"scale_by_adagrad({arguments([f'{n}={o.hole(n)}' for n in names if o.given(n)])})")


def adadelta(o: Options) -> list[str]:
    rest = [f"{n}={o.hole(n)}" for n in ("rho", "eps") if o.given(n)]
    return [*before(o), f"optax.adadelta({arguments(o.hole('lr'), rest)})"]


def adamax(o: Options) -> list[str]:
    return [*before(o), f"optax.adamax({arguments(o.hole('lr'), o.moments())})"]


def moment_scaled(o: Options, scale: str, *options: str) -> list[str]:
    """NAdam and RAdam: a scaling, and weight decay before or after it."""
    decoupled = o.flag("decoupled_weight_decay") and not o.zero("weight_decay")
    rest = [f"{n}={o.hole(n)}" for n in options if o.given(n)]
    decay = [f"optax.add_decayed_weights({o.hole('weight_decay')})"] if decoupled else []
    return before(o, not decoupled) + rated(o, f"{scale}({arguments(o.moments(), rest)})", *decay)


def rprop(o: Options) -> list[str]:
    if o.injected or o.rate:
        raise Unsure("Rprop's learning rate is only the first size of its steps; it can't be changed later")
    names = {"etas": ("eta_minus", "eta_plus"), "step_sizes": ("min_step_size", "max_step_size")}
    rest = [f"{new[i]}={o.part(n, i)}" for n, new in names.items() if o.given(n) for i in (0, 1)]
    return [*before(o, False), f"rprop({arguments(o.hole('lr'), rest)})"]


def asgd(o: Options) -> list[str]:
    if o.injected or o.rate:
        raise Unsure("each step of ASGD comes from the learning rate of the step before; it can't be changed later")
    rest = [f"{n}={o.hole(n)}" for n in ("lambd", "alpha", "t0") if o.given(n)]
    return [*before(o), f"asgd({arguments(o.hole('lr'), rest)})"]


def adafactor(o: Options) -> list[str]:
    if o.rate:
        raise Unsure("Adafactor's learning rate is a bound of its steps: set it at each step")
    eps = [f"eps{i + 1}={o.part('eps', i)}" for i in (0, 1)] if o.given("eps") else []
    rest = [f"{n}={o.hole(n)}" for n in ("beta2_decay", "d", "weight_decay") if o.given(n)]
    return [*before(o, False), f"adafactor({arguments(o.hole('lr'), rest, eps)})"]


def is_own(call: Call) -> bool:
    """Whether a call is one of a class of the user's own, for which a function stands."""
    return not call.signature.name.startswith("torch.")


def own_links(o: Options) -> list[str]:
    """A call of that function, by the names of the options."""
    if unfit := [name for name in o.injected if name != "lr"]:
        raise Unsure(f"its {unfit[0]} changes while it runs, by which its function may choose what it computes")
    names = [p.name for p in o.call.signature.parameters or ()][1:]
    if unknown := sorted(set(o.group.options if o.group is not None else ()) - set(names)):
        raise Unsure(f"a group has the option {unknown[0]}, which its constructor doesn't take")
    assert isinstance(o.call.node, ast.Call)
    made = o.call.site.fact(o.call.node.func)
    if isinstance(made, OptimizerFunction) and made.keeps_rate and o.group is not None and "lr" in o.group.options:
        raise Unsure("a group has its own rate, and its constructor keeps what it computes of that of the optimizer")
    if isinstance(made, OptimizerFunction) and made.of_all_gradients and o.group is not None:
        raise Unsure("each step computes something of the gradients of all groups together")
    given = [f"{INJECTED[n] if n == 'lr' else n}={o.hole(n)}" for n in names if o.given(n)]
    _ = [o.call[n] for n in names]  # those at their defaults are seen
    return [f"{ast.unparse(o.call.node.func)}({arguments(given)})"]


# The whole optimizer ----------------------------------------------------------------------------------------------


def adamw_links(o: Options) -> list[str]:
    return adam(o, decoupled=True)


def adam_links(o: Options) -> list[str]:
    return adam(o, o.flag("decoupled_weight_decay"))
