"""Random numbers: ``torch.randn``, ``torch.randint``, ``x.uniform_()``, ... (https://pytorch.org/docs/stable/torch.html#random-sampling).

PyTorch draws from a global generator, JAX from explicit keys, which ``nnx.Rngs`` counts. The same seed gives other
numbers, so the rules keep the distribution and not the draws.
"""

from __future__ import annotations

import ast
import copy
from dataclasses import replace
from typing import cast

from t2j_lsp.translate.rule.facts import Fact, Tensor, is_tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.record import Argument, Call, Piece, Refusal, Row, refuse, rule, shape_text

from ._arguments import FACTORY, LIKE, dtype_kind, dtype_of, holder, integer, is_number, rank_of, size_rank
from .creation import REQUIRES_GRAD, made


def draw(call: Call, template: str, **extra: str) -> Piece:
    """Fill a template that draws from ``{rngs}``."""
    if "requires_grad" in call.arguments and call.given("requires_grad"):
        call.note(REQUIRES_GRAD)
    return call.emit(template, rngs=call.site.rngs(), **extra)


def size_and_dtype(call: Call, name: str = "size") -> str:
    """Shape and dtype of a constructor as positional arguments: ``(2, 3), jnp.float16``. A number is a 1-tuple."""
    argument = call[name]
    items = argument.items or (argument,)
    text = shape_text(argument)
    single = len(items) == 1 and is_number(items[0]) and not isinstance(items[0].node, ast.Starred)
    shape = f"({text},)" if single else text
    dtype = call["dtype"].text if call.given("dtype") else call.emit("jnp.float32").text if call.site.x64 else ""
    return f"{shape}, {dtype}" if dtype else shape


def of_tensor(call: Call, name: str = "self") -> tuple[str, str]:
    """Text for the shape and the dtype of a tensor that is filled: ``x.shape`` and ``x.dtype``.

    A tensor that is only made to be filled, ``torch.empty(2, 3).normal_()``, is never made. The dtype is empty where
    it is the default.
    """
    argument = call[name]
    filled = _only_filled(argument.piece.text.strip())
    if filled is not None:
        return filled
    variable = call.site.parameter(argument.node) if argument.node is not None else None
    if variable is not None and variable[1] and name != "self":  # A new array has PyTorch's axes.
        return f"{argument.atom}.shape", f"{variable[0]}.dtype"
    owner = variable[0] if variable is not None else holder(argument) if argument.simple else None
    if owner is None:
        hoisted = call.site.hoist(argument.piece, "x")
        owner = hoisted.text if hoisted is not None else argument.atom
    return f"{owner}.shape", f"{owner}.dtype"


UNSET = ("jnp.empty", "jnp.zeros")


def _only_filled(text: str, makers: tuple[str, ...] = UNSET) -> tuple[str, str] | None:
    """Shape and dtype of ``jnp.empty(shape, dtype=dtype)`` or ``jnp.zeros(shape).astype(dtype)``."""
    if not text.startswith(tuple(f"{maker}(" for maker in makers)):
        return None
    match ast.parse(text, mode="eval").body:
        case ast.Call(func=ast.Attribute(value=ast.Call() as made, attr="astype"), args=[kind], keywords=[]):
            dtype = ast.unparse(kind)
        case ast.Call(keywords=[ast.keyword(arg="dtype", value=kind)]) as made:
            dtype = ast.unparse(kind)
        case ast.Call(keywords=[]) as made:
            dtype = ""
        case _:
            return None
    if ast.unparse(made.func) not in makers or len(made.args) != 1:
        return None
    shape = ast.get_source_segment(text, made.args[0]) or ast.unparse(made.args[0])
    return f"({shape},)" if isinstance(made.args[0], ast.Constant) else shape, dtype


def joined(shape_and_dtype: tuple[str, str]) -> str:
    return ", ".join(filter(None, shape_and_dtype))


def scaled(call: Call, drawn: str, mean: str = "mean", std: str = "std") -> str:
    """The template ``mean + std * drawn`` without a mean of 0 and a std of 1."""
    text = drawn if call[std].literal == 1 else f"{{{std}}} * {drawn}"
    return text if call[mean].literal == 0 else f"{{{mean}}} + {text}"


# New arrays -----------------------------------------------------------------------------------------------------

for name, jax in {"rand": "uniform", "randn": "normal"}.items():

    @rule(f"torch.{name}(*size, generator=None, {FACTORY})", jax=f"rngs.{jax}(size, dtype)", random=True, result=made)
    def drawn(call: Call, jax: str = jax) -> Piece | Refusal:
        if jax == "uniform" and str(dtype_kind(call["dtype"])).startswith("torch.complex"):
            return call.refuse("JAX draws no uniform complex numbers: draw the real and the imaginary part.")
        return draw(call, f"{{rngs}}.{jax}({{size}})", size=size_and_dtype(call))

    @rule(
        f"torch.{name}_like(input, *, {LIKE})",
        jax=f"rngs.{jax}(x.shape, x.dtype)",
        random=True,
        result="same",
    )
    def drawn_like(call: Call, jax: str = jax) -> Piece:
        shape, dtype = of_tensor(call, "input")
        dtype = call["dtype"].text if call.given("dtype") else dtype
        return draw(call, f"{{rngs}}.{jax}({{size}})", size=joined((shape, dtype)))


def _integers(call: Call) -> Fact:
    return Tensor(size_rank(call["size"]), dtype_kind(call["dtype"]) if call.given("dtype") else "int")


def _cast(call: Call) -> str:
    """``.astype(dtype)`` where a dtype is asked for that isn't the default."""
    return f".astype({call['dtype'].text})" if call.given("dtype") and dtype_kind(call["dtype"]) != "int" else ""


@rule(
    f"torch.randint(high, size, *, generator=None, {FACTORY})",
    f"torch.randint(low, high, size, *, generator=None, {FACTORY})",
    jax="rngs.randint(size, low, high)",
    random=True,
    result=_integers,
)
def randint(call: Call) -> Piece:
    items = call["size"].items or (call["size"],)
    size = f"({items[0].text},)" if is_number(items[0]) else shape_text(call["size"])
    low = "{low}" if "low" in call.arguments else "0"
    return draw(call, f"{{rngs}}.randint({{size}}, {low}, {{high}}){_cast(call)}", size=size)


@rule(
    f"torch.randint_like(input, high, *, {LIKE})",
    f"torch.randint_like(input, low, high, *, {LIKE})",
    jax="rngs.randint(x.shape, low, high).astype(x.dtype)",
    random=True,
    result="same",
)
def randint_like(call: Call) -> Piece:
    shape, dtype = of_tensor(call, "input")
    dtype = call["dtype"].text if call.given("dtype") else dtype
    low = "{low}" if "low" in call.arguments else "0"
    return draw(call, f"{{rngs}}.randint({{shape}}, {low}, {{high}}).astype({{dtype}})", shape=shape, dtype=dtype)


@rule(
    f"torch.randperm(n, *, generator=None, {FACTORY.replace('dtype=None', 'dtype=torch.int64')})",
    jax="rngs.permutation(n)",
    random=True,
    result=lambda call: Tensor(1, "int"),
)
def randperm(call: Call) -> Piece:
    return draw(call, f"{{rngs}}.permutation({{n}}){_cast(call)}")


def _normal(call: Call) -> Fact:
    if "size" in call.arguments:
        return Tensor(size_rank(call["size"]), "float")
    ranks = [rank_of(call[name]) for name in ("mean", "std") if not is_number(call[name])]
    return Tensor(None if None in ranks else max((r for r in ranks if r), default=0), dtype_of(call["mean"]))


@rule(
    f"torch.normal(mean, std, size, *, generator=None, {FACTORY})",
    "torch.normal(mean, std=1.0, *, generator=None)",
    jax="jax.lax.stop_gradient(mean + std * rngs.normal(size))",
    random=True,
    result=_normal,
)
def normal(call: Call) -> Piece | None:
    if "size" in call.arguments:
        return draw(call, scaled(call, "{rngs}.normal({size})"), size=size_and_dtype(call))
    named = next((name for name in ("mean", "std") if is_tensor(call[name].fact)), None)
    if named is None:
        return None
    size = _made_of(call, named, ("jnp.zeros",) if named == "mean" else ("jnp.ones",))
    if size is not None:
        call = _with(call, named, "0" if named == "mean" else "1")
        if named == "mean" and _made_of(call, "std", ("jnp.ones",)) == size:
            call = _with(call, "std", "1")
    elif not call[named].simple:
        hoisted = call.site.hoist(call[named].piece, named)
        if hoisted is None:
            return None
        call = _with(call, named, hoisted.text)
    return _drawn_for_both(call, named, size or of_tensor(call, named))


def _drawn_for_both(call: Call, named: str, size: tuple[str, str]) -> Piece | None:
    """A number of its own for each element of mean and std, which are broadcast."""
    other = "std" if named == "mean" else "mean"
    if not _fits(call[other], call[named]):
        if not call[other].simple:
            hoisted = call.site.hoist(call[other].piece, other)
            if hoisted is None:
                return None
            call = _with(call, other, hoisted.text)
        shape = f"{call[other].atom}.shape" if is_tensor(call[other].fact) else f"jnp.shape({call[other].text})"
        size = call.emit("jnp.broadcast_shapes({first}, {shape})", first=size[0], shape=shape).text, size[1]
    drawn = scaled(call, "{rngs}.normal({size})")
    if drawn != "{rngs}.normal({size})" and not call.site.without_gradient:
        drawn = (
            f"jax.lax.stop_gradient({drawn})"  # PyTorch's gradient by mean and std is zero, unlike Normal.rsample's.
        )
    return draw(call, drawn, size=joined(size))


def _fits(argument: Argument, other: Argument) -> bool:
    """Whether it surely has no more elements than another: one number, or what is computed of nothing else."""
    if is_number(argument) or rank_of(argument) == 0 or argument.literal in (0, 1) or argument.node is None:
        return True
    if not isinstance(other.node, ast.Name):
        return False
    for node in ast.walk(argument.node):
        match node:
            case ast.Name(id=name) if name not in (other.node.id, "torch"):
                return False
            case ast.Attribute(attr=attr) if attr not in names_with(Trait.NEW_TENSOR):
                return False
            case ast.Subscript():
                return False
    return True


def _made_of(call: Call, name: str, makers: tuple[str, ...]) -> tuple[str, str] | None:
    """Shape and dtype of an argument that is made of zeros, or of ones, on the spot."""
    return _only_filled(call[name].piece.text.strip(), makers)


def _with(call: Call, name: str, text: str) -> Call:
    """The call with another text for an argument."""
    arguments = copy.copy(cast("dict[str, Argument]", call.arguments))
    arguments[name] = replace(call[name], piece=Piece(text), node=ast.parse(text, mode="eval").body)
    return replace(call, arguments=arguments)


# Draws whose parameters are arrays ------------------------------------------------------------------------------


@rule("torch.poisson(input, generator=None)", jax="rngs.poisson(x).astype(x.dtype)", random=True, result="same")
def poisson(call: Call) -> Piece:
    return draw(call, "{rngs}.poisson({input}).astype({input}.dtype)")


@rule(
    "torch.bernoulli(input, *, generator=None)",
    "torch.bernoulli(input, p, *, generator=None)",
    jax="rngs.bernoulli(x).astype(x.dtype)",
    method=True,
    random=True,
    result="same",
)
def bernoulli(call: Call) -> Piece:
    """With ``p`` only shape and dtype of the tensor count."""
    if "p" not in call.arguments:
        return draw(call, "{rngs}.bernoulli({input}).astype({input}.dtype)")
    shape, dtype = of_tensor(call, "input")
    return draw(call, "{rngs}.bernoulli({p}, {shape}).astype({dtype})", shape=shape, dtype=dtype or "jnp.float32")


@rule(
    "torch.multinomial(input, num_samples, replacement=False, *, generator=None)",
    jax="rngs.categorical(jnp.log(x))",
    method=True,
    random=True,
    result=lambda call: Tensor(rank_of(call["input"]), "int"),
)
def multinomial(call: Call) -> Piece:
    if integer(call["num_samples"]) == 1:
        call.given("replacement")  # of no consequence for one draw
        return draw(call, "{rngs}.categorical(jnp.log({input}))[..., None]")
    return draw(call, "multinomial({rngs}, {input}, {num_samples}, replacement={replacement?})")


# Filling a tensor -----------------------------------------------------------------------------------------------


@rule(
    "torch.Tensor.uniform_(self, from_=0, to=1, *, generator=None)",
    jax="rngs.uniform(x.shape, x.dtype, minval=low, maxval=high)",
    random=True,
    result="same",
)
def uniform_(call: Call) -> Piece:
    size = joined(of_tensor(call))
    return draw(call, "{rngs}.uniform({size}, minval={from_?}, maxval={to?})", size=size)


@rule(
    "torch.Tensor.normal_(self, mean=0, std=1, *, generator=None)",
    jax="mean + std * rngs.normal(x.shape, x.dtype)",
    random=True,
    result="same",
)
def normal_(call: Call) -> Piece:
    return draw(call, scaled(call, "{rngs}.normal({size})"), size=joined(of_tensor(call)))


@rule(
    "torch.Tensor.log_normal_(self, mean=1, std=2, *, generator=None)",
    jax="jnp.exp(mean + std * rngs.normal(x.shape, x.dtype))",
    random=True,
    result="same",
)
def log_normal_(call: Call) -> Piece:
    return draw(call, f"jnp.exp({scaled(call, '{rngs}.normal({size})')})", size=joined(of_tensor(call)))


@rule(
    "torch.Tensor.cauchy_(self, median=0, sigma=1, *, generator=None)",
    jax="median + sigma * rngs.cauchy(x.shape, x.dtype)",
    random=True,
    result="same",
)
def cauchy_(call: Call) -> Piece:
    template = scaled(call, "{rngs}.cauchy({size})", "median", "sigma")
    return draw(call, template, size=joined(of_tensor(call)))


@rule(
    "torch.Tensor.exponential_(self, lambd=1, *, generator=None)",
    jax="rngs.exponential(x.shape, x.dtype) / lambd",
    random=True,
    result="same",
)
def exponential_(call: Call) -> Piece:
    rate = "" if call["lambd"].literal == 1 else " / {lambd}"
    return draw(call, f"{{rngs}}.exponential({{size}}){rate}", size=joined(of_tensor(call)))


@rule(
    "torch.Tensor.bernoulli_(self, p=0.5, *, generator=None)",
    jax="rngs.bernoulli(p, x.shape).astype(x.dtype)",
    random=True,
    result="same",
)
def bernoulli_(call: Call) -> Piece:
    shape, dtype = of_tensor(call)
    return draw(call, "{rngs}.bernoulli({p}, {shape}).astype({dtype})", shape=shape, dtype=dtype or "jnp.float32")


@rule(
    "torch.Tensor.geometric_(self, p, *, generator=None)",
    jax="rngs.geometric(p, x.shape).astype(x.dtype)",
    random=True,
    result="same",
)
def geometric_(call: Call) -> Piece:
    shape, dtype = of_tensor(call)
    return draw(call, "{rngs}.geometric({p}, {shape}).astype({dtype})", shape=shape, dtype=dtype or "jnp.float32")


@rule(
    "torch.Tensor.random_(self, from_=0, to=None, *, generator=None)",
    jax="rngs.randint(x.shape, low, high).astype(x.dtype)",
    random=True,
    result="same",
)
def random_(call: Call) -> Piece | Refusal:
    """``random_(n)`` draws below n, ``random_(low, high)`` from low on."""
    if not call["from_"].given:
        return call.refuse("random_() without bounds depends on the dtype: draw with rngs.randint(shape, low, high).")
    shape, dtype = of_tensor(call)
    bounds = "{from_}, {to}" if call.given("to") else "0, {from_}"
    template = f"{{rngs}}.randint({{shape}}, {bounds}).astype({{dtype}})"
    return draw(call, template, shape=shape, dtype=dtype or "jnp.float32")


STATE = "JAX has no global generator: the state of the random numbers is in nnx.Rngs."
refuse(
    "torch.Generator",
    "Flax draws from nnx.Rngs: rngs = nnx.Rngs(seed), then rngs.normal(shape) for torch.randn(shape, generator=g).",
)
for name in ("seed", "initial_seed", "get_rng_state", "set_rng_state", "random.fork_rng", "random.seed"):
    refuse(f"torch.{name}", STATE)
STATES = "get_state set_state clone_state get_offset set_offset graphsafe_get_state graphsafe_set_state"
for name in ("manual_seed", "seed", "initial_seed", *STATES.split()):
    refuse(f"torch.Generator.{name}", "nnx.Rngs has no state to get or set: make another, nnx.Rngs(seed).")
Row("torch.Generator.device", "jax.devices()[0]", ignore=["self"], result="device")
