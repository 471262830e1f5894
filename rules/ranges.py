"""Evenly spaced numbers: ``torch.arange``, ``torch.linspace``, ``torch.logspace``.

Bounds may be tensors; PyTorch takes their values, so that no gradient flows through them.
"""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import Tensor, is_tensor
from t2j_lsp.translate.rule.library import sized_by
from t2j_lsp.translate.rule.record import Argument, Call, Piece, Refusal, refuse, rule

from ._arguments import FACTORY, dtype_kind, has_float
from ._facts import is_integer
from ._unknown_values import is_unknown_parameter, may_be_tensor, operands
from .creation import fill

sized_by("start", "end", "step", of="torch.arange")


def _is_whole(call: Call) -> bool:
    """Whether the dtype that is asked for is surely one of integers."""
    return call.given("dtype") and is_integer(Tensor(dtype=dtype_kind(call["dtype"])))


def _arange(call: Call) -> Tensor:
    numbers = [call[n] for n in ("start", "end", "step") if n in call.arguments]
    whole = all(is_integer(a.fact) for a in numbers)
    kind = "float" if any(map(has_float, numbers)) else "int" if whole else None
    return Tensor(1, dtype_kind(call["dtype"]) if call.given("dtype") else kind)


@rule(
    f"torch.arange(end, *, {FACTORY})",
    f"torch.arange(start, end, step=1, *, {FACTORY})",
    jax="jnp.arange(start, end, step, dtype)",
    result=_arange,
)
def arange(call: Call) -> Piece | Refusal:
    bounds = [call[n] for n in ("start", "end", "step") if n in call.arguments]
    floats = any(map(has_float, bounds))
    if floats and _is_whole(call):
        # with an integer dtype PyTorch cuts the fractions off first
        return call.emit("jnp.arange({bounds}, dtype={dtype})", bounds=", ".join(map(_cut, bounds)))
    if "start" not in call.arguments or (call["start"].literal == 0 and not call.given("step")):
        return fill(call, "jnp.arange({end}, dtype={dtype?})", floats)
    step = ", {step}" if call.given("step") else ""
    return fill(call, f"jnp.arange({{start}}, {{end}}{step}, dtype={{dtype?}})", floats)


def _cut(number: Argument) -> str:
    """A number without its fraction, as int() cuts it."""
    value = number.literal
    if isinstance(value, int | float):
        return str(int(value))
    return f"int({number.text})" if has_float(number) else number.text


def _linspace(call: Call) -> Tensor:
    return Tensor(1, dtype_kind(call["dtype"]) if call.given("dtype") else "float")


def _whole_steps(call: Call, name: str, rest: str) -> Piece:
    """An integer dtype cuts the ends' fractions off first, and of each step what is behind the point."""
    call.note("A step that rounding puts just below a whole number is cut to the one before, in either library.")
    names = ("start", "end")
    whole = {f"whole_{n}": _cut(call[n]) for n in names if not is_tensor(call[n].fact)}
    ends = [f"{{whole_{n}}}" if f"whole_{n}" in whole else f"{{{n}}}.astype({{dtype}})" for n in names]
    return call.emit(f"jnp.{name}({', '.join(ends)}, {rest}).astype({{dtype}})", **whole)


def _ends(call: Call) -> str:
    """Where steps begin and end: of tensors PyTorch takes the values, through which no gradient flows."""
    stops = {name: not call.site.without_gradient and _may_carry_gradient(call, name) for name in ("start", "end")}
    return ", ".join(f"jax.lax.stop_gradient({{{name}}})" if stop else f"{{{name}}}" for name, stop in stops.items())


def _may_carry_gradient(call: Call, name: str) -> bool:
    """Whether an end is a tensor, or named or computed and may be one: what counts steps as well is a number."""
    end, steps = call[name], call["steps"].node
    if is_tensor(end.fact) or end.node is None:
        return is_tensor(end.fact)
    counting = list(operands(steps)) if steps is not None else []
    counts = {name.id for name in counting}
    known = [fact for name in counting if is_unknown_parameter(fact := call.site.fact(name))]  # also n of m = n + 1
    named = [n for n in operands(end.node) if n.id not in counts and call.site.fact(n) not in known]
    return any(is_unknown_parameter(call.site.fact(name)) or may_be_tensor(name, call) for name in named)


@rule(
    f"torch.linspace(start, end, steps, *, {FACTORY})",
    jax="jnp.linspace(start, end, steps, dtype)",
    result=_linspace,
)
def linspace(call: Call) -> Piece | Refusal:
    if _is_whole(call):
        return _whole_steps(call, "linspace", "{steps}")
    return fill(call, f"jnp.linspace({_ends(call)}, {{steps}}, dtype={{dtype?}})")


@rule(
    f"torch.logspace(start, end, steps, base=10.0, *, {FACTORY})",
    jax="jnp.logspace(start, end, steps, base, dtype)",
    result="float tensor",
)
def logspace(call: Call) -> Piece | Refusal:
    if _is_whole(call):
        return _whole_steps(call, "logspace", "{steps}, base={base?}")
    return fill(call, f"jnp.logspace({_ends(call)}, {{steps}}, base={{base?}}, dtype={{dtype?}})")


refuse("torch.range", "torch.range is deprecated and includes its end: write jnp.arange(start, end + step, step).")
