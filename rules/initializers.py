"""Initialisers: ``torch.nn.init.*`` and in-place fills of parameters (torch docs: torch.nn.init).

Flax's kernels are ``(*spatial, in, out)``; a parameter of the user's own keeps PyTorch's ``(out, in, *spatial)``, so
its fans are counted on other axes.
"""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.facts import INT, Tuple, layer_names
from t2j_lsp.translate.rule.pieces import ANY, Piece
from t2j_lsp.translate.rule.record import Call, Emit, Refusal, refuse, rule

INIT = "torch.nn.init"
CONVOLUTIONS = frozenset({"torch.nn.Conv1d", "torch.nn.Conv2d", "torch.nn.Conv3d"})


def assign(call: Call, template: str, *, fans: bool = False, rename: str = "") -> Piece | Refusal:
    """``variable[...] = initializer(key, shape, dtype)`` for the parameter that the call fills in place."""
    first = next(iter(call.arguments.values()))
    if first.node is None:
        return call.refuse("no parameter to initialise")
    target = call.site.parameter(first.node, constant=not fans)
    if target is None:
        return call.refuse(f"{first.piece.text} is not surely a parameter of a module; assign to its [...] explicitly")
    if not call.site.statement:
        return call.refuse("an initialiser inside an expression; put it on a line of its own")
    name, flax_layout = target
    axes = ", in_axis=1, out_axis=0" if fans and not flax_layout else ""
    initializer = call.emit(template.replace("{axes}", axes))
    rngs = call.site.rngs()
    return Piece(f"{name}[...] = {initializer.text}({rngs}.params(), {name}.shape, {name}.dtype)", ANY)


def _register(signature: str, template: str, *, fans: bool = False) -> None:
    @rule(
        signature,
        jax=f"param[...] = {template.replace('{axes}', '')}(rngs.params(), param.shape, param.dtype)",
        random=True,
        result="same",
    )
    def fill(call: Call) -> Piece | Refusal:
        return assign(call, template, fans=fans)


def _constant(value: str) -> Emit:
    def fill(call: Call) -> Piece | Refusal:
        first = next(iter(call.arguments.values()))
        target = call.site.parameter(first.node, constant=True) if first.node is not None else None
        if target is None:
            return call.refuse(
                f"{first.piece.text} is not surely a parameter of a module; assign to its [...] explicitly"
            )
        if not call.site.statement:
            return call.refuse("an initialiser inside an expression; put it on a line of its own")
        name = target[0]
        return Piece(f"{name}[...] = {call.emit(value, param=name).text}", ANY)

    return fill


rule(f"{INIT}.zeros_(tensor)", jax="param[...] = jnp.zeros_like(param[...])", result="same")(
    _constant("jnp.zeros_like({param}[...])")
)
rule(f"{INIT}.ones_(tensor)", jax="param[...] = jnp.ones_like(param[...])", result="same")(
    _constant("jnp.ones_like({param}[...])")
)
rule(f"{INIT}.constant_(tensor, val)", jax="param[...] = jnp.full_like(param[...], val)", result="same")(
    _constant("jnp.full_like({param}[...], {val})")
)
_register(f"{INIT}.uniform_(tensor, a=0.0, b=1.0, generator=None)", "uniform_between({a}, {b})")
_register(
    f"{INIT}.trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None)",
    "trunc_normal(mean={mean?}, std={std?}, a={a?}, b={b?})",
)
_register(
    f"{INIT}.kaiming_uniform_(tensor, a=0, mode='fan_in', nonlinearity='leaky_relu', generator=None)",
    "kaiming_uniform(a={a?}, mode={mode?}, nonlinearity={nonlinearity?}{axes})",
    fans=True,
)
_register(
    f"{INIT}.kaiming_normal_(tensor, a=0, mode='fan_in', nonlinearity='leaky_relu', generator=None)",
    "kaiming_normal(a={a?}, mode={mode?}, nonlinearity={nonlinearity?}{axes})",
    fans=True,
)


@rule(
    f"{INIT}.normal_(tensor, mean=0.0, std=1.0, generator=None)",
    jax="param[...] = nnx.initializers.normal(std)(rngs.params(), param.shape, param.dtype)",
    random=True,
    result="same",
)
def normal(call: Call) -> Piece | Refusal:
    if call.literal("mean") in (0, 0.0):
        return assign(call, "nnx.initializers.normal({std})")
    return assign(call, "normal_around({mean}, {std})")


def _xavier(distribution: str) -> Emit:
    def fill(call: Call) -> Piece | Refusal:
        gain = "1.0" if not call.given("gain") else "{gain} ** 2"
        return assign(
            call, f'nnx.initializers.variance_scaling({gain}, "fan_avg", "{distribution}"{{axes}})', fans=True
        )

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
    first = call["tensor"]
    target = call.site.parameter(first.node) if first.node is not None else None
    column = "" if target is not None and target[1] else ", column_axis=0"
    return assign(call, "nnx.initializers.orthogonal({gain}" + column + ")")


rule(f"{INIT}.calculate_gain(nonlinearity, param=None)", jax="calculate_gain(nonlinearity)", result="float")(
    lambda call: call.emit("calculate_gain({nonlinearity}, {param?})")
)
refuse(f"{INIT}.sparse_", "There is no rule for sparse_ yet: assign to the parameter's [...] explicitly.")


@rule(f"{INIT}.eye_(tensor)", jax="param[...] = jnp.eye(*param.shape, dtype=param.dtype)", result="same")
def eye(call: Call) -> Piece | Refusal | None:
    return _constant("jnp.eye(*{param}.shape, dtype={param}.dtype)")(call)


@rule(
    f"{INIT}.dirac_(tensor, groups=1)",
    jax="param[...] = dirac(groups)(rngs.params(), param.shape, param.dtype)",
    random=True,
    result="same",
)
def dirac(call: Call) -> Piece | Refusal:
    node = call["tensor"].node
    layers = layer_names(call.site.fact(node.value)) if isinstance(node, ast.Attribute) else frozenset[str]()
    if not layers or not layers <= CONVOLUTIONS:
        return call.refuse("only the kernel of a convolution has the axes that this fills")
    return assign(call, "dirac({groups?})")


rule(f"{INIT}._calculate_fan_in_and_fan_out(tensor)", jax="fans(x)", result=lambda call: Tuple((INT, INT)))(
    lambda call: call.emit("fans({tensor})")
)
