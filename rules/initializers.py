"""Initialisers: ``torch.nn.init.*`` and in-place fills of parameters (torch docs: torch.nn.init).

Flax's kernels are ``(*spatial, in, out)``; a parameter of the user's own keeps PyTorch's ``(out, in, *spatial)``, so
its fans are counted on other axes.
"""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.definitions import layer_names
from t2j_lsp.translate.rule.facts import INT, Tensor, Tuple
from t2j_lsp.translate.rule.pieces import ANY, Piece
from t2j_lsp.translate.rule.record import Argument, Call, Emit, Refusal, refuse, rule
from t2j_lsp.translate.rule.tensors import behind_data

from .random import joined, of_tensor, scaled

INIT = "torch.nn.init"
_OTHER_FANS = (
    "this goes over kernels, whose inputs are on other axes in Flax, and over parameters that stay as in PyTorch: "
    "initialise those by themselves"
)
CONVOLUTIONS = frozenset({"torch.nn.Conv1d", "torch.nn.Conv2d", "torch.nn.Conv3d"})


def assign(call: Call, template: str, *, fans: bool = False) -> Piece | Refusal:
    """``variable[...] = initializer(key, shape, dtype)`` for the parameter that the call fills in place."""
    if fans and _meets_own(call, 3 if "fan_avg" in template or "xavier" in template else 2):
        return call.refuse(_OTHER_FANS)
    axes = _axes(call)
    initializer = template.replace("{axes}", axes).replace("{first_axes}", axes.removeprefix(", "))
    return _filled(call, initializer + "({rngs}.params(), {size})", constant=not fans)


def _meets_own(call: Call, rank: int) -> bool:
    """Whether a walk over kernels meets parameters of the user's own, too, of which these fans would be others.

    ``rank``: from how many axes on; the sum of both fans is the same for two, and few have more.
    """
    own, layers = _walked(call)
    return layers and any(one.rank is None and rank < 3 or one.rank is not None and one.rank >= rank for one in own)


def _walked(call: Call) -> tuple[list[Tensor], bool]:
    """What ``for p in self.parameters()`` goes over; nothing for a parameter that is named."""
    node = behind_data(next(iter(call.arguments.values())).node)
    fact = call.site.fact(node) if node is not None else None
    return call.site.walked_parameters() if isinstance(fact, Tensor) and fact.any_layout else ([], True)


def _is_kernel(call: Call) -> bool:
    """Whether a parameter has Flax's layout: a layer's, or one of a walk that goes over others than the user's own."""
    first = next(iter(call.arguments.values()))
    target = call.site.parameter(first.node) if first.node is not None else None
    return target is not None and target[1] and _walked(call)[1]


def _axes(call: Call) -> str:
    """Which axes are counted for the fans of a parameter in PyTorch's layout."""
    return "" if _is_kernel(call) else ", in_axis=1, out_axis=0"


def _filled(call: Call, template: str, *, constant: bool = True) -> Piece | Refusal:
    """``variable[...] = value`` for the parameter that the call fills in place; ``{size}`` is its shape and dtype."""
    first = next(iter(call.arguments.values()))
    if first.node is None:
        return call.refuse("no parameter to initialise")
    target = call.site.parameter(first.node, constant=constant)
    if target is None and _is_array(call, first):
        return call.emit(template, rngs=call.site.rngs(), size=joined(of_tensor(call, "tensor")))
    if target is None:
        return call.refuse(f"{first.piece.text} is not surely a parameter of a module; assign to its [...] explicitly")
    if not call.site.statement:
        return call.refuse("an initialiser inside an expression; put it on a line of its own")
    name = target[0]
    value = call.emit(template, rngs=call.site.rngs(), size=f"{name}.shape, {name}.dtype")
    return Piece(f"{name}[...] = {value.text}", ANY)


def _is_array(call: Call, first: Argument) -> bool:
    """Whether what is filled is an array, which the renderer binds anew, and no parameter of a module."""
    node = behind_data(first.node)
    fact = call.site.fact(node) if node is not None else None
    return isinstance(fact, Tensor) and not fact.variable


def _constant(value: str, array: str) -> Emit:
    """The ``value`` that a parameter is filled with, and what an array is that is none, which is bound anew."""

    def fill(call: Call) -> Piece | Refusal:
        first = next(iter(call.arguments.values()))
        target = call.site.parameter(first.node, constant=True) if first.node is not None else None
        if target is None and _is_array(call, first):
            return call.emit(array)
        if target is None:
            return call.refuse(
                f"{first.piece.text} is not surely a parameter of a module; assign to its [...] explicitly"
            )
        if not call.site.statement:
            return call.refuse("an initialiser inside an expression; put it on a line of its own")
        name = target[0]
        return Piece(f"{name}[...] = {call.emit(value, param=name).text}", ANY)

    return fill


rule(f"{INIT}.zeros_(tensor)", jax="param[...] = 0", result="same")(_constant("0", "jnp.zeros_like({tensor})"))
rule(f"{INIT}.ones_(tensor)", jax="param[...] = 1", result="same")(_constant("1", "jnp.ones_like({tensor})"))
rule(f"{INIT}.constant_(tensor, val)", jax="param[...] = val", result="same")(
    _constant("{val}", "jnp.full_like({tensor}, {val})")
)


@rule(
    f"{INIT}.trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None)",
    jax="param[...] = std * rngs.params.truncated_normal(-2 / std, 2 / std, param.shape, param.dtype)",
    random=True,
    result="same",
)
def trunc_normal(call: Call) -> Piece | Refusal:
    """The bounds are values in PyTorch, and multiples of the standard deviation in JAX."""
    std = call["std"]
    if call.literal("mean") != 0 or (call.literal("a"), call.literal("b")) != (-2, 2) or not std.simple:
        return assign(call, "trunc_normal(mean={mean?}, std={std?}, a={a?}, b={b?})")
    bound = "2 / {std}"
    if isinstance(std.literal, int | float) and std.literal > 0 and (2 / std.literal).is_integer():
        bound = f"{2 / std.literal:.0f}"
    drawn = f"{{rngs}}.params.truncated_normal(-{bound}, {bound}, {{size}})"
    return _filled(call, drawn if std.literal == 1 else f"{{std}} * {drawn}")


@rule(
    f"{INIT}.uniform_(tensor, a=0.0, b=1.0, generator=None)",
    jax="param[...] = rngs.params.uniform(param.shape, param.dtype, minval=a, maxval=b)",
    random=True,
    result="same",
)
def uniform(call: Call) -> Piece | Refusal:
    return _filled(call, "{rngs}.params.uniform({size}, minval={a?}, maxval={b?})")


@rule(
    f"{INIT}.normal_(tensor, mean=0.0, std=1.0, generator=None)",
    jax="param[...] = mean + std * rngs.params.normal(param.shape, param.dtype)",
    random=True,
    result="same",
)
def normal(call: Call) -> Piece | Refusal:
    return _filled(call, scaled(call, "{rngs}.params.normal({size})"))


_GAINS = {"relu": ("math.sqrt(2.0)", "2.0"), "tanh": ("5 / 3", "25 / 9"), "selu": ("3 / 4", "9 / 16")}
_GAINS |= dict.fromkeys(("sigmoid", "linear", "conv1d", "conv2d", "conv3d"), ("1.0", "1.0"))
"""The gain that PyTorch recommends for a nonlinearity, and its square."""
_STOCK = {("1.0", "fan_avg", "uniform"): "xavier_uniform(", ("2.0", "fan_in", "uniform"): "he_uniform("}
"""JAX's names for what PyTorch has too; its normal ones are truncated."""


def _scaling(gain: str, mode: str, distribution: str) -> str:
    """The initializer whose variance is a squared gain over the fan; ``{axes}`` is left to be filled."""
    if name := _STOCK.get((gain, mode, distribution)):
        return f"nnx.initializers.{name}{{axes}})".replace("({axes}", "({first_axes}")
    return f'nnx.initializers.variance_scaling({gain}, "{mode}", "{distribution}"{{axes}})'


def _squared_gain(call: Call) -> str | None:
    """The gain of a nonlinearity that is named, squared; None where it isn't known."""
    kind, slope = call["nonlinearity"].literal, call["a"]
    if kind != "leaky_relu":  # which alone has a slope
        return _GAINS[kind][1] if isinstance(kind, str) and kind in _GAINS else None
    match slope:
        case a if a.literal == 0:
            return "2.0"
        case a if isinstance(a.node, ast.Call) and ast.unparse(a.node) == "math.sqrt(5)":
            return "1 / 3"
    return None


def _kaiming(distribution: str) -> Emit:
    def fill(call: Call) -> Piece | Refusal:
        gain, mode = _squared_gain(call), call["mode"].literal
        if gain is None or not isinstance(mode, str) or mode not in ("fan_in", "fan_out"):
            helper = f"kaiming_{distribution}(a={{a?}}, mode={{mode?}}, nonlinearity={{nonlinearity?}}{{axes}})"
            return assign(call, helper, fans=True)
        return assign(call, _scaling(gain, mode, distribution), fans=True)

    return fill


for distribution in ("uniform", "normal"):
    rule(
        f"{INIT}.kaiming_{distribution}_(tensor, a=0, mode='fan_in', nonlinearity='leaky_relu', generator=None)",
        jax=f'param[...] = nnx.initializers.variance_scaling(gain**2, mode, "{distribution}")'
        "(rngs.params(), param.shape, param.dtype)",
        random=True,
        result="same",
    )(_kaiming(distribution))


def _square(gain: Argument) -> str:
    """The square of a gain: 1.0 of 1, and ``x`` of ``math.sqrt(x)``."""
    if gain.literal == 1:
        return "1.0"
    root = ast.parse(gain.text, mode="eval").body
    match root:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr="sqrt"), args=[ast.Constant() as of]):
            return ast.unparse(of)
    return next((square for name, square in _GAINS.values() if name == gain.text), "{gain} ** 2")


def _xavier(distribution: str) -> Emit:
    def fill(call: Call) -> Piece | Refusal:
        return assign(call, _scaling(_square(call["gain"]), "fan_avg", distribution), fans=True)

    return fill


for distribution in ("uniform", "normal"):
    rule(
        f"{INIT}.xavier_{distribution}_(tensor, gain=1.0, generator=None)",
        jax=f'param[...] = nnx.initializers.variance_scaling(1.0, "fan_avg", "{distribution}")'
        "(rngs.params(), param.shape, param.dtype)",
        random=True,
        result="same",
    )(_xavier(distribution))


@rule(
    f"{INIT}.orthogonal_(tensor, gain=1, generator=None)",
    jax="param[...] = nnx.initializers.orthogonal(gain)(rngs.params(), param.shape, param.dtype)",
    random=True,
    result="same",
)
def orthogonal(call: Call) -> Piece | Refusal:
    if _meets_own(call, 2):
        return call.refuse(_OTHER_FANS)
    column = "" if _is_kernel(call) else ", column_axis=0"
    return assign(call, "nnx.initializers.orthogonal({gain}" + column + ")")


@rule(f"{INIT}.calculate_gain(nonlinearity, param=None)", jax="calculate_gain(nonlinearity)", result="float")
def calculate_gain(call: Call) -> Piece:
    kind = call["nonlinearity"].literal
    if isinstance(kind, str) and kind in _GAINS:
        return call.emit(_GAINS[kind][0])
    return call.emit(
        "calculate_gain({nonlinearity}, {param})" if call.given("param") else "calculate_gain({nonlinearity})"
    )


refuse(f"{INIT}.sparse_", "There is no rule for sparse_ yet: assign to the parameter's [...] explicitly.")


@rule(f"{INIT}.eye_(tensor)", jax="param[...] = jnp.eye(*param.shape, dtype=param.dtype)", result="same")
def eye(call: Call) -> Piece | Refusal | None:
    return _constant("jnp.eye(*{param}.shape, dtype={param}.dtype)", "jnp.eye(*{tensor}.shape, dtype={tensor}.dtype)")(
        call
    )


@rule(
    f"{INIT}.dirac_(tensor, groups=1)",
    jax="param[...] = dirac(groups)(rngs.params(), param.shape, param.dtype)",
    random=True,
    result="same",
)
def dirac(call: Call) -> Piece | Refusal:
    node = call["tensor"].node
    layers = layer_names(call.site.fact(node.value)) if isinstance(node, ast.Attribute) else frozenset[str]()
    target = call.site.parameter(node) if node is not None and not layers else None
    own = target is not None and not target[1]
    if not own and (not layers or not layers <= CONVOLUTIONS):
        return call.refuse("only the kernel of a convolution has the axes that this fills")
    return assign(call, "dirac({groups}{axes})" if call.given("groups") else "dirac({first_axes})")


rule(f"{INIT}._calculate_fan_in_and_fan_out(tensor)", jax="fans(x)", result=lambda call: Tuple((INT, INT)))(
    lambda call: call.emit("fans({tensor})")
)
