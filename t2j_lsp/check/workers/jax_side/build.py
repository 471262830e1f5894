"""Builds a converted module or function in JAX, with given arguments and the torch program's state."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from flax import nnx

from t2j_lsp.check.inputs import Arguments, Code, map_values
from t2j_lsp.check.protocol import Array, Namespace, NdArray, RawArray
from t2j_lsp.check.requests import JaxInitialRequest, JaxRequest, SliceRequest
from t2j_lsp.check.workers.loading import Transform, loaded
from t2j_lsp.check.workers.widen import enables_x64, widen
from t2j_lsp.weights import WeightsError, load_torch_state

from .pairing import ParameterFunction, load_paired, own_entries, parameter_function

WIDE = {"float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128"}


def to_array(value: Any) -> Array | None:
    """An array's values; None for what is no array."""
    if isinstance(value, nnx.Variable):
        value = value.get_value()
    if not isinstance(value, jax.Array | np.ndarray | np.generic):
        return None
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        return np.asarray(jax.random.key_data(jnp.asarray(value)))
    array = np.asarray(value)
    if array.dtype.kind == "V" or array.dtype.name in ("bfloat16",) or array.dtype.name.startswith("float8"):
        bits = array.view({1: np.uint8, 2: np.uint16}[array.dtype.itemsize])
        return RawArray(array.dtype.name, bits)
    return array


def to_numpy(array: Array, wide: bool) -> NdArray:
    """The values as a program gets them; ``wide`` makes floats float64."""
    if isinstance(array, RawArray):
        array = array.bits.view(np.dtype(getattr(ml_dtypes, array.dtype)))
    assert isinstance(array, np.ndarray)
    return array.astype(WIDE.get(array.dtype.name, array.dtype.name)) if wide else array


def to_jax(array: Array, wide: bool) -> jax.Array:
    """A JAX array of an array; ``wide`` makes floats float64."""
    return jnp.array(to_numpy(array, wide))


_TORCH = ("nn", "torch.nn", "F", "torch", "nn.functional", "torch.nn.functional")


FIXED = "nnx.Rngs(0)"


class _Converted(ast.NodeTransformer):
    """An expression of the torch file as it is in the converted one.

    ``nn.BatchNorm2d`` is ``BatchNorm2d``, and what needs random numbers gets them.
    """

    def __init__(self, namespace: Namespace, rngs: str) -> None:
        self.namespace = namespace
        self.rngs = rngs

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if ast.unparse(node.value) in _TORCH and node.attr in self.namespace:
            return ast.Name(node.attr, ast.Load())
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = self._called(node.func)
        if callable(function) and takes_rngs(function) and all(k.arg != "rngs" for k in node.keywords):
            node.keywords.append(ast.keyword("rngs", ast.parse(self.rngs, mode="eval").body))
        return node

    def _called(self, node: ast.expr) -> Any:
        """What the program has under a name, or under that of a module it imports: ``layers.Block``."""
        match node:
            case ast.Name(id=name):
                return self.namespace.get(name)
            case ast.Attribute(value=held, attr=name):
                return getattr(self._called(held), name, None)
        return None


def evaluate(code: Code, namespace: Namespace, wide: bool, rngs: str = FIXED) -> Any:
    """An expression of the torch file, evaluated in the converted file's namespace.

    What the file hasn't itself (a helper that stands for ``nn.GELU``) comes from the expression's own conversion.
    """
    names = {"functools": functools, "nnx": nnx, **namespace}
    tree = ast.parse(code.text, mode="eval")
    if code.converted:
        module = ast.parse(code.converted)
        module = widen(module, "<arguments>") if wide else module
        (last,) = (s.body[-1] for s in module.body if isinstance(s, ast.FunctionDef) and s.name == "value")
        assert isinstance(last, ast.Return) and last.value is not None
        own: dict[str, Any] = {"__name__": "t2j_arguments", "rngs": eval(rngs, names)}
        exec(compile(module, "<arguments>", "exec"), own)
        names = {**own, **names}
        tree = ast.Expression(last.value)
    tree = ast.fix_missing_locations(_Converted(names, rngs).visit(tree))
    return eval(compile(tree, "<arguments>", "eval"), names)


def realise(value: Any, namespace: Namespace, wide: bool, rngs: str = FIXED) -> Any:
    """Arguments as the program gets them: code evaluated, arrays as JAX arrays.

    ``rngs`` is the expression of the generator that modules among them draw from.
    """

    def leaf(item: Any) -> Any:
        if isinstance(item, Code):
            return evaluate(item, namespace, wide, rngs)
        return to_jax(item, wide) if isinstance(item, np.ndarray | RawArray) else item

    return map_values(value, leaf)


@contextmanager
def program(
    request: SliceRequest, transform: Transform | None = None, names: dict[str, Any] | None = None
) -> Iterator[tuple[ModuleType, Any]]:
    """The request's slice, loaded in the request's precision, and its object."""
    wide = request.wide

    def change(tree: Any, path: str) -> Any:
        tree = widen(tree, path) if wide else tree
        return transform(tree, path) if transform else tree

    part = request.slice
    x64 = wide or any(enables_x64(m.text) for m in part.modules)
    with jax.enable_x64(x64), loaded(part, change, names) as module:
        target: Any = module
        for name in part.name.split("."):
            target = getattr(target, name)
        yield module, target


def takes_rngs(target: Any) -> bool:
    """Whether a class or function has a parameter ``rngs``."""
    is_class = isinstance(target, type)
    try:
        return "rngs" in inspect.signature(target.__init__ if is_class else target).parameters
    except (TypeError, ValueError):
        return False  # A built-in function.


def construct(target: Any, init: Arguments, namespace: Namespace, wide: bool) -> Any:
    """An instance of a module class, as its constructor leaves it."""
    args = realise(init.args, namespace, wide)
    kwargs = realise(init.kwargs, namespace, wide)
    if takes_rngs(target):
        kwargs["rngs"] = nnx.Rngs(0)
    return target(*args, **kwargs)


def build(target: Any, namespace: Namespace, request: JaxRequest) -> Any:
    """An instance of a module class, with torch's state; a function stays as it is, if it takes no parameters."""
    init, wide, pairing = request.init, request.wide, request.pairing
    if not isinstance(target, type):
        if not pairing.takes_parameters:
            return target
        model = function_of_parameters(target, namespace, request)
        _load(model, request)
        return model

    def create() -> Any:
        return construct(target, init, namespace, wide)

    model = _outlined(create, request)
    if model is None:
        model = create()
        if isinstance(model, nnx.Module):
            _load(model, request)
    return model


def function_of_parameters(
    target: Any, namespace: Namespace, request: JaxRequest | JaxInitialRequest, key: Any = None, rngs: str = FIXED
) -> Any:
    """A function of a tree of parameters as a module, with initial values that are drawn with ``key``."""
    init, wide, pairing = request.init, request.wide, request.pairing
    values = dict(zip(pairing.arguments, realise(init.args, namespace, wide, rngs), strict=False))
    values |= realise(init.kwargs, namespace, wide, rngs)
    return parameter_function(target, [namespace[name] for name in pairing.init], list(pairing.weights), values, key)


def _outlined(create: Callable[[], Any], request: JaxRequest) -> Any | None:
    """The module, built without computing its initial values, which would take longer than the rest of the check.

    None where torch's state does not fill it, or where the constructor looks at values: then it has to be run.
    """
    try:
        model = nnx.eval_shape(create)
    except Exception:  # noqa: BLE001 - whatever the reason, the constructor is then run for its own error
        return None
    if not isinstance(model, nnx.Module):
        return None
    _load(model, request)
    for index, (_, node) in enumerate(nnx.iter_graph(model)):
        if isinstance(node, nnx.RngKey | nnx.RngCount) and isinstance(node.get_value(), jax.ShapeDtypeStruct):
            _start(node, index)
    values = [*jax.tree.leaves(nnx.state(model)), *_plain(model)]
    return None if any(isinstance(v, jax.ShapeDtypeStruct | jax.core.Tracer) for v in values) else model


def _plain(model: nnx.Module) -> Iterator[Any]:
    """What the modules hold beside their variables: tables that a constructor computed, in containers too."""
    for _, node in nnx.iter_graph(model):
        if isinstance(node, nnx.Pytree):
            held = [v for v in vars(node).values() if not isinstance(v, nnx.Pytree | nnx.Variable)]
            yield from _held(held, set())


def _held(value: Any, seen: set[int]) -> Iterator[Any]:
    """The values in containers, in what functions close over and have as defaults, and in objects of plain classes."""
    for leaf in jax.tree.leaves(value):
        yield leaf
        if id(leaf) in seen or isinstance(leaf, type | ModuleType | nnx.Pytree | nnx.Variable):
            continue
        seen.add(id(leaf))
        match leaf:
            case FunctionType():
                cells = [cell.cell_contents for cell in leaf.__closure__ or () if not _is_empty(cell)]
                yield from _held([cells, leaf.__defaults__ or (), leaf.__kwdefaults__ or {}], seen)
            case MethodType():
                yield from _held(leaf.__self__, seen)
            case functools.partial():
                yield from _held([leaf.func, leaf.args, leaf.keywords], seen)
            case object(__dict__=dict() as attributes) if not isinstance(leaf, jax.Array | np.ndarray):
                yield from _held(attributes, seen)


def _is_empty(cell: CellType) -> bool:
    """Whether a variable that a function closes over has no value yet."""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False


def _start(variable: nnx.Variable[Any], index: int) -> None:
    """The first value of a random stream's key or count."""
    shape = variable.get_value().shape
    if isinstance(variable, nnx.RngCount):
        variable.set_value(jnp.zeros(shape, jnp.uint32))
    else:
        key = jax.random.key(index)
        variable.set_value(jax.random.split(key, shape) if shape else key)


def widen_module(model: nnx.Module) -> None:
    """Makes what a module computes with 64 bits wide, in place."""
    for _, node in nnx.iter_graph(model):
        if isinstance(node, nnx.Variable) and isinstance(node.get_value(), jax.Array):
            value = node.get_value()
            if str(value.dtype) in WIDE:
                node.set_value(jnp.asarray(value, WIDE[str(value.dtype)]))
        elif isinstance(node, nnx.Embed) and str(jnp.dtype(node.dtype)) in WIDE:
            node.dtype = jnp.dtype(WIDE[str(jnp.dtype(node.dtype))])  # It casts its table to what it was.


def _load(model: nnx.Module, request: JaxRequest) -> None:
    """Loads torch's state; in float64 everything else that is narrow is widened too.

    Where the user said how the names go together, where the object is named otherwise than torch's, or none of its
    names is torch's, the state is paired first: a person wrote it. A conversion keeps torch's names, all of them.
    """
    wide = request.wide
    if wide:
        widen_module(model)
    # Not yet JAX's, which would compile a program for each shape that is transposed.
    state = {name: to_numpy(array, wide) for name, array in (request.state or {}).items()}
    weights = request.pairing.weights
    if weights or isinstance(model, ParameterFunction):
        if not load_paired(model, state, weights, request.pairing.written):
            held = ", ".join(f"{n} {e.shape}" for n, e in own_entries(model).items())
            raise ValueError(f"torch's parameters can't be paired with {held}; say # t2j: weights={{...}}")
        return
    try:
        load_torch_state(model, state)
    except WeightsError as error:
        own = request.pairing.renamed or not set(own_entries(model)) & set(state)
        if not (own and error.missing and error.unexpected and load_paired(model, state, {})):
            raise
