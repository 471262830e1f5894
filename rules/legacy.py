"""Old spellings: ``torch.FloatTensor(2, 3)``, ``torch.Tensor([1.0])``, ``x.new(2)``, ``autograd.Variable(x)``."""

from __future__ import annotations

import ast
from functools import partial

from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, ListOf, Qual, Scalar, Shape, Tensor, Tuple, is_tensor
from t2j_lsp.translate.rule.library import Trait, trait
from t2j_lsp.translate.rule.packages import OF_NUMPY
from t2j_lsp.translate.rule.record import Argument, Call, Piece, Refusal, rule

from ._arguments import KINDS, LEGACY, holder, size_rank
from ._facts import is_integer
from ._numbers_of_tensors import as_numbers, is_flat
from .creation import REQUIRES_GRAD
from .dtypes import jax_dtype

_OF_LISTS = frozenset(f"numpy.{name}" for name in ("array", "asarray", "stack", "concatenate", "vstack", "hstack"))
"""NumPy's functions that give arrays of at least one axis of a list."""
_OF_AXES = frozenset(("numpy.arange", "numpy.linspace", "numpy.eye"))
"""Those that give arrays of at least one axis, whatever they are given: what is computed of these has one."""
_OF_SIZES = {"normal": 2, "uniform": 2, "randint": 2, "random": 0, "zeros": 0, "ones": 0, "full": 0, "empty": 0}
"""Those that give arrays of a size, with the place of that."""
_GENERATORS = frozenset(("numpy.random.RandomState", "numpy.random.default_rng"))
"""What makes objects whose methods are those of ``numpy.random``."""


def is_size(call: Call) -> bool | None:
    """Whether the arguments of an old constructor are sizes (True) or data (False); None where that can't be told."""
    items = call["data"].items
    if not items or len(items) > 1 or is_integer(items[0].fact) or _is_torch_size(call, items[0]):
        return True
    known = isinstance(items[0].fact, Tuple | ListOf) or is_tensor(items[0].fact)
    return False if known or _is_array(call, items[0].node) or _is_shape_of_numpy(call, items[0].node) else None


def _is_array(call: Call, node: ast.expr | None) -> bool:
    """Whether it can only be an array of NumPy, or a part of several axes of one, ``batch[:, :4]``."""
    match node:
        case ast.Subscript(slice=ast.Tuple(elts=parts)):
            return any(isinstance(part, ast.Slice) for part in parts)
        case ast.Call(func=ast.Attribute(attr="astype", value=value)):
            return _is_array(call, value)
        case ast.Call(func=func, args=[ast.List() | ast.Tuple() | ast.ListComp(), *_]):
            known = call.site.fact(func)
            return isinstance(known, Qual) and known.name in _OF_LISTS or _is_array_of_size(call, node)
        case ast.Call():
            listed = _named(call, node) in _OF_LISTS and node.args and isinstance(call.site.fact(node.args[0]), ListOf)
            return listed or _named(call, node) in _OF_AXES or _is_array_of_size(call, node)
        case ast.BinOp(left=left, op=op, right=right) if not isinstance(op, ast.MatMult):
            return any(isinstance(n, ast.Call) and _named(call, n) in _OF_AXES for n in (left, right))
    return False


def _named(call: Call, node: ast.Call) -> str:
    """The full name of the library's function that is called; none for others."""
    known = call.site.fact(node.func)
    return known.name if isinstance(known, Qual) else ""


def _is_array_of_size(call: Call, node: ast.Call) -> bool:
    """Whether it is ``np.random.normal(0, 1, (n, 2))``, a function of NumPy's that is told a size."""
    library, _, name = _named(call, node).rpartition(".")
    if isinstance(node.func, ast.Attribute) and not library:
        made = {maker for maker, _ in call.site.made(node.func.value)}
        library, name = "numpy.random" if made and made <= _GENERATORS else "", node.func.attr
    if library not in ("numpy", "numpy.random") or name not in _OF_SIZES:
        return False
    size = next((k.value for k in node.keywords if k.arg in ("size", "shape")), None)
    if size is None and len(node.args) > _OF_SIZES[name]:
        size = node.args[_OF_SIZES[name]]
    fact = call.site.fact(size) if size is not None else UNKNOWN
    return isinstance(fact, Tuple | Shape) or is_integer(fact)


def _is_shape_of_numpy(call: Call, node: ast.expr | None) -> bool:
    """Whether it is the shape, a tuple of numbers, of what a package without tensors made: ``envs.space.shape``."""
    root = _whose_shape(node)
    if root is None:
        return False
    while isinstance(root, ast.Attribute):
        root = root.value
    made = [name.partition(".")[0] for name, _ in call.site.made(root)]
    return bool(made) and all(package in OF_NUMPY for package in made)


def _is_torch_size(call: Call, argument: Argument) -> bool:
    """Whether it is ``x.size()``, which no array of NumPy has, or ``x.shape`` of what is surely a tensor."""
    if (owner := _whose_shape(argument.node)) is not None:
        fact = call.site.fact(owner)
        return isinstance(fact, Tensor) and fact.sure
    match argument.node:
        case ast.Call(func=ast.Attribute(attr="size"), args=[], keywords=[]):
            return isinstance(argument.fact, Shape)
        case _:
            return False


def _whose_shape(node: ast.expr | None) -> ast.expr | None:
    """What ``x.shape`` is the shape of."""
    return node.value if isinstance(node, ast.Attribute) and node.attr == "shape" else None


def built(call: Call, dtype: str | None) -> Piece | Refusal:
    """Sizes make an array of that shape with values that nobody set; a list or a tensor gives its values."""
    match is_size(call):
        case None if isinstance((data := call["data"].items[0]).fact, Shape) or _whose_shape(data.node) is not None:
            return call.refuse("Can't tell whether the sizes are a torch.Size or values: write torch.empty(size).")
        case None:
            rest = f", dtype={dtype}" if dtype is not None else ""
            return call.emit(f"of_size_or_values({{data}}{rest})", data=call["data"].items[0])
        case False:
            data = call["data"].items[0]
            template = "jax.lax.stop_gradient({data})" if is_tensor(data.fact) else "jnp.array({data})"
            if dtype is not None:
                template = template[:-1] + f", dtype={dtype})" if "array" in template else f"{template}.astype({dtype})"
            return call.emit(template + ".ravel()" * is_flat(call, data), data=as_numbers(call, data))
    size = "{data:shape}" if call["data"].items else "0"
    return call.emit(f"jnp.empty({size}, dtype={dtype})" if dtype is not None else f"jnp.empty({size})")


def _kind(dtype: str, call: Call) -> Fact:
    if call.signature.parameters is None:
        return UNKNOWN
    return Tensor(size_rank(call["data"]) if is_size(call) else _rank_of_data(call), KINDS.get(dtype, f"torch.{dtype}"))


def _rank_of_data(call: Call) -> int | None:
    """The rank of ``torch.Tensor([0.5])``, a list of plain numbers."""
    fact = call["data"].items[0].fact if call["data"].items else UNKNOWN
    numbers = isinstance(fact, Tuple) and all(isinstance(item, Scalar) for item in fact.items)
    flat = numbers and fact != Tuple(()) or bool(call["data"].items) and is_flat(call, call["data"].items[0])
    return 1 if is_size(call) is False and flat else None


def named(call: Call, dtype: str) -> Piece | Refusal:
    """The class itself: a type, or what ``map`` makes arrays by, of values. What ``zip`` gives are tuples of them."""
    given = call.site.mapped
    if given is None:
        return call.emit("jax.Array")
    lists = call.site.fact(given)
    zipped = isinstance(given, ast.Call) and isinstance(given.func, ast.Name) and given.func.id == "zip"
    if zipped or isinstance(lists, ListOf) and isinstance(lists.item, ListOf | Tuple):
        return call.emit(f"lambda values: jnp.array(values, dtype={dtype})")
    return call.refuse("map() may hand it sizes or values: call it in a comprehension.")


@rule("torch.Tensor", "torch.Tensor(*data, device=None)", jax="jnp.empty(size)", result=partial(_kind, "float32"))
def tensor(call: Call) -> Piece | Refusal:
    """``torch.Tensor`` makes float32 of everything, integers too."""
    if call.signature.parameters is None:
        return named(call, "jnp.float32")
    floats = call.site.x64 or is_size(call) is False
    return built(call, "jnp.float32" if floats else None)


for name, dtype in LEGACY.items():

    @rule(
        f"torch.{name}",
        f"torch.{name}(*data, device=None)",
        jax=f"jnp.empty(size, dtype=jnp.{dtype})",
        aliases=[f"torch.cuda.{name}"],
        result=partial(_kind, dtype),
    )
    def typed(call: Call, dtype: str = dtype) -> Piece | Refusal:
        if call.signature.parameters is None:
            return named(call, jax_dtype(call, dtype))
        return built(call, jax_dtype(call, dtype))


@rule("torch.Tensor.new(self, *data, device=None)", jax="jnp.empty(size, dtype=x.dtype)", result="tensor")
def new(call: Call) -> Piece | Refusal:
    """Of another tensor it is that tensor, of which PyTorch wants the same type."""
    sizes = is_size(call)
    data = call["data"].items[0] if sizes is False else None
    if data is not None and is_tensor(data.fact):
        return call.emit("{data}", data=data)
    if data is not None and isinstance(data.fact, Tuple | ListOf):
        return call.emit("jnp.array({data}, dtype={holder}.dtype)", data=data, holder=holder(call["self"]))
    if sizes is not True:
        return call.refuse("x.new() takes sizes or data: write x.new_empty(size) or x.new_tensor(data).")
    size = "{data:shape}" if call["data"].items else "0"
    return call.emit(f"jnp.empty({size}, dtype={{holder}}.dtype)", holder=holder(call["self"]))


@rule("torch.autograd.Variable(data, requires_grad=False, volatile=False)", jax="x", result="same", ignore=["volatile"])
def variable(call: Call) -> Piece:
    """A Variable is a plain tensor since PyTorch 0.4, a new leaf of the graph; ``volatile`` says nothing any more."""
    if call.given("requires_grad"):
        call.note(REQUIRES_GRAD)
    data = call["data"].node
    cut = data is not None and call.site.computed(data) and not call.site.without_gradient
    return call.emit("jax.lax.stop_gradient({data})" if cut else "{data}")


trait(Trait.GIVES_ARGUMENT, "new")
trait(Trait.FROM_VALUES, "torch.Tensor", *(f"torch.{name}" for name in LEGACY))
trait(Trait.DEFAULT_TYPE, "torch.FloatTensor", "torch.Tensor")
trait(Trait.VARIABLE, "torch.autograd.Variable")
