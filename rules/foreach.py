"""``torch._foreach_*``, one operation on every tensor of a list, which optimizers use: comprehensions in JAX.

XLA fuses what PyTorch has these functions for. They give tuples; the forms in place write into every tensor of the
list, which its owner sees.
"""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.facts import Fact, ListOf, Scalar, Tensor, Tuple
from t2j_lsp.translate.rule.library import Trait, trait
from t2j_lsp.translate.rule.pieces import ANY
from t2j_lsp.translate.rule.record import CLOSE, EXACT, Argument, Call, Piece, Refusal, refuse, rule

_UNARY = {
    **{name: f"jnp.{name}({{self}})" for name in ("ceil", "cos", "cosh", "exp", "expm1", "floor", "log")},
    **{name: f"jnp.{name}({{self}})" for name in ("log10", "log1p", "log2", "round", "sin", "sinh", "sqrt")},
    **{name: f"jnp.{name}({{self}})" for name in ("tan", "tanh", "trunc")},
    "abs": "absolute({self})",
    "acos": "jnp.arccos({self})",
    "asin": "jnp.arcsin({self})",
    "atan": "jnp.arctan({self})",
    "neg": "-{self}",
    "reciprocal": "1 / {self}",
    "rsqrt": "1 / jnp.sqrt({self})",
}
_BINARY = {"mul": "*", "div": "/"}
_SCALED = {"add": "+", "sub": "-"}
_ADDED = {"addcmul": "*", "addcdiv": "/"}
_LERP = "{self} + {weight} * ({tensors1} - {self})"
_EXTREMES = ("maximum", "minimum")
_IN_PLACE = (
    "PyTorch writes into every tensor of the list, which JAX can't: make new arrays, params = [p - lr * u for p, u in"
    " zip(params, updates)], and return them; a whole optimizer is an optax.GradientTransformation."
)


def _tensors(call: Call) -> Fact:
    return ListOf(Tensor())


def _is_list(argument: Argument) -> bool | None:
    """Whether an argument has a value for each tensor, or is one for all; None where that isn't known."""
    if isinstance(argument.fact, ListOf | Tuple):
        return True
    number = isinstance(argument.fact, Scalar) and argument.fact.kind in ("int", "float")
    tensor = isinstance(argument.fact, Tensor) and argument.fact.rank == 0
    return False if number or tensor or isinstance(argument.literal, int | float) else None


def _each(call: Call, value: str, *others: str) -> Piece | Refusal:
    """A tuple of ``value`` for the items of lists; ``others`` may be lists, or one value for all."""
    looped, read = ["self"], set[str]()
    for name in others:
        argument = call[name]
        one_for_each = _is_list(argument)
        if one_for_each is None:
            return call.refuse(f"whether {name} is a list or one number for all isn't known here: annotate it")
        if one_for_each:
            looped.append(name)
        elif argument.node is not None and any(isinstance(node, ast.Call) for node in ast.walk(argument.node)):
            return call.refuse(f"{name} is computed by a call, which a comprehension repeats: give it a name first")
        elif argument.node is not None:
            read |= {node.id for node in ast.walk(argument.node) if isinstance(node, ast.Name)}
    free = (letter for letter in "xyzuvwabcd" if letter not in read)
    letters = {f"each_{name}": next(free) for name in looped}
    for name in looped:
        value = value.replace(f"{{{name}}}", f"{{each_{name}}}")
    names = ", ".join(f"{{each_{name}}}" for name in looped)
    lists = ", ".join(f"{{{name}}}" for name in looped)
    given = lists if len(looped) == 1 else f"zip({lists}, strict=True)"
    return call.emit(f"tuple({value} for {names} in {given})", **letters)


def _unary(name: str, value: str) -> None:
    @rule(f"torch._foreach_{name}(self)", jax=f"tuple({value.format(self='x')} for x in xs)", result=_tensors)
    def emit(call: Call) -> Piece | Refusal:
        return _each(call, value)


def _binary(name: str, value: str, close: str | None = None) -> None:
    @rule(
        f"torch._foreach_{name}(self, other)",
        jax=f"tuple({value.format(self='x', other='y')} for x, y in zip(xs, ys, strict=True))",
        result=_tensors,
        fidelity=CLOSE if close else EXACT,
        note=close,
    )
    def emit(call: Call) -> Piece | Refusal:
        return _each(call, value, "other")


def _scaled(name: str, sign: str) -> None:
    @rule(
        f"torch._foreach_{name}(self, other, *, alpha=1)",
        jax=f"tuple(x {sign} alpha * y for x, y in zip(xs, ys, strict=True))",
        result=_tensors,
    )
    def emit(call: Call) -> Piece | Refusal:
        if call.given("alpha"):
            return _each(call, f"{{self}} {sign} {{alpha}} * {{other}}", "other", "alpha")
        return _each(call, f"{{self}} {sign} {{other}}", "other")


def _added(name: str, sign: str) -> None:
    @rule(
        f"torch._foreach_{name}(self, tensor1, tensor2, value=1)",
        jax=f"tuple(x + value * y {sign} z for x, y, z in zip(xs, ys, zs, strict=True))",
        result=_tensors,
    )
    def emit(call: Call) -> Piece | Refusal:
        if call.given("value"):
            return _each(call, f"{{self}} + {{value}} * {{tensor1}} {sign} {{tensor2}}", "tensor1", "tensor2", "value")
        return _each(call, f"{{self}} + {{tensor1}} {sign} {{tensor2}}", "tensor1", "tensor2")


for _name, _value in _UNARY.items():
    _unary(_name, _value)
for _name, _sign in _BINARY.items():
    _binary(_name, f"{{self}} {_sign} {{other}}")
for _name in _EXTREMES:
    _binary(_name, f"jnp.{_name}({{self}}, {{other}})", "Where both are equal, each gets half of the gradient.")
for _name, _sign in _SCALED.items():
    _scaled(_name, _sign)
for _name, _sign in _ADDED.items():
    _added(_name, _sign)


@rule(
    "torch._foreach_lerp(self, tensors1, weight)",
    jax="tuple(x + weight * (y - x) for x, y in zip(xs, ys, strict=True))",
    result=_tensors,
)
def lerp(call: Call) -> Piece | Refusal:
    return _each(call, _LERP, "tensors1", "weight")


@rule("torch._foreach_pow(self, exponent)", jax="tuple(x**exponent for x in xs)", result=_tensors)
def power(call: Call) -> Piece | Refusal:
    """Of a list by a list or a number, or of a number by a list."""
    if _is_list(call["self"]) is None:
        return call.refuse("whether what is raised is a list or one number isn't known here: annotate it")
    if _is_list(call["self"]):
        return _each(call, "{self} ** {exponent}", "exponent")
    if not call["self"].simple or not _is_list(call["exponent"]):
        return call.refuse("only lists, or a name or a number raised to a list, convert")
    each = next(letter for letter in "xyz" if letter != call["self"].text)
    return call.emit("tuple({self} ** {each} for {each} in {exponent})", each=each)


@rule("torch._foreach_norm(self, ord=2)", jax="tuple(vector_norm(x, ord) for x in xs)", result=_tensors)
def norm(call: Call) -> Piece | Refusal:
    return _each(call, "vector_norm({self}, {ord})", "ord")


def _in_place(name: str, signature: str, value: str, *others: str, scaled: str = "") -> None:
    """The form in place: of a list that the function made itself, the list is bound anew."""

    @rule(f"torch._foreach_{name}_(self{signature})", jax=f"xs = tuple({value} for x in xs)", result="none")
    def emit(call: Call) -> Piece | Refusal:
        node = call["self"].node
        if node is None or not call.site.owns(node):
            return call.refuse(_IN_PLACE)
        given = bool(scaled) and call.given(scaled)
        form = value if given else value.replace(f"{{{scaled}}} * ", "")
        made = _each(call, form, *(other for other in others if given or other != scaled))
        return made if isinstance(made, Refusal) else Piece(f"{ast.unparse(node)} = {made.text}", ANY)


for _name, _value in {**_UNARY, "zero": "jnp.zeros_like({self})"}.items():
    _in_place(_name, "", _value)
for _name, _sign in _BINARY.items():
    _in_place(_name, ", other", f"{{self}} {_sign} {{other}}", "other")
_in_place("lerp", ", tensors1, weight", _LERP, "tensors1", "weight")
_in_place("pow", ", exponent", "{self} ** {exponent}", "exponent")
for _name in _EXTREMES:
    _in_place(_name, ", other", f"jnp.{_name}({{self}}, {{other}})", "other")
for _name, _sign in _SCALED.items():
    _in_place(_name, ", other, *, alpha=1", f"{{self}} {_sign} {{alpha}} * {{other}}", "other", "alpha", scaled="alpha")
for _name, _sign in _ADDED.items():
    _value = f"{{self}} + {{value}} * {{tensor1}} {_sign} {{tensor2}}"
    _in_place(_name, ", tensor1, tensor2, value=1", _value, "tensor1", "tensor2", "value", scaled="value")
for _name in ("clamp_max", "clamp_min", "copy"):
    refuse(f"torch._foreach_{_name}_", _IN_PLACE)

_OPERATIONS = (*_UNARY, *_BINARY, *_SCALED, *_ADDED, *_EXTREMES, "lerp", "norm", "pow", "zero")
trait(Trait.OF_LISTS, *(f"torch._foreach_{name}{end}" for name in _OPERATIONS for end in ("", "_")))
