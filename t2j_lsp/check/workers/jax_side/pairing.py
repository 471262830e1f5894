"""Which parameter of hand-written JAX is which of torch's, and parameters that a function takes as a tree.

A converted module keeps torch's names. Code that a person wrote has names of its own, and a pure function takes its
parameters as an argument. Both become modules here whose state has torch's names and layouts: as the ``# t2j:``
comment says, or by name, shape and order. A pairing by order alone is not sure.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from t2j_lsp.check.arguments.pairing import COUNTER, Pair, Pairing, inferred
from t2j_lsp.check.protocol import NdArray
from t2j_lsp.weights import torch_layout, torch_names
from t2j_lsp.weights.names import TorchEntry
from t2j_lsp.weights.stacks import part_of, whole_of

_MODES = {"train": False, "training": False, "is_training": False, "deterministic": True, "inference": True}
"""Parameters that say the mode, and whether they are true in evaluation."""
_KEYS = {"key", "rng", "rng_key", "prng", "prng_key"}


_STATES = {"state", "batch_stats", "buffers", "model_state"}
"""Second parameters that hold what is no parameter: running statistics and other buffers."""


class ParameterFunction(nnx.Module):
    """A function of parameters and inputs, as a module that holds the parameters.

    ``tree`` is what its function for initial values gives: the parameters, or these and a state, if the function takes
    one. ``settings`` are arguments of torch's constructor, of which it gets the keywords that it has.
    """

    def __init__(self, function: Callable[..., Any], tree: Any, settings: Mapping[str, Any] | None = None) -> None:
        parameters = inspect.signature(function).parameters
        self.function = function
        self.stateful = len(parameters) > 1 and list(parameters)[1] in _STATES and _is_pair(tree)
        leaves, self.treedef = jax.tree.flatten(tree)
        held = len(jax.tree.leaves(tree[0])) if self.stateful else len(leaves)
        self.values = nnx.List([_variable(leaf, number < held) for number, leaf in enumerate(leaves)])
        keywords = {n for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY and n not in (*_MODES, *_KEYS)}
        self.settings = nnx.static({n: v for n, v in (settings or {}).items() if n in keywords})
        self.rngs = nnx.Rngs(0)
        self.deterministic = False
        numbers = dict(self._named(jax.tree.unflatten(self.treedef, list(range(len(leaves))))))
        self.names = tuple((name, numbers[name]) for name, _ in self._named(tree))

    def _named(self, tree: Any) -> Iterator[tuple[str, Any]]:
        for part in tree if self.stateful else (tree,):
            yield from _walk(part, "")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function with its parameters as the tree that it takes; a state that it gives back is kept."""
        tree = jax.tree.unflatten(self.treedef, [v.get_value() for v in self.values])
        filled = len(args) + (2 if self.stateful else 1)
        for place, name in enumerate(inspect.signature(self.function).parameters):
            if place < filled or name in kwargs:
                continue
            if name in _MODES:
                kwargs[name] = self.deterministic == _MODES[name]
            elif name in _KEYS:
                kwargs[name] = self.rngs()
        kwargs = {**self.settings, **kwargs}
        if not self.stateful:
            return self.function(tree, *args, **kwargs)
        output = self.function(*tree, *args, **kwargs)
        if not _is_pair(output) or {n for n, _ in _walk(output[1], "")} != {n for n, _ in _walk(tree[1], "")}:
            return output
        for variable, leaf in zip(self.values, jax.tree.leaves((tree[0], output[1])), strict=True):
            if not isinstance(variable, nnx.Param):
                variable.set_value(leaf)
        return output[0]


def _is_pair(tree: Any) -> bool:
    return isinstance(tree, tuple) and len(tree) == 2 and not hasattr(tree, "_fields")


def _variable(leaf: Any, trained: bool) -> nnx.Variable[Any]:
    array = jnp.asarray(leaf)
    return nnx.Param(array) if trained and jnp.issubdtype(array.dtype, jnp.inexact) else nnx.Variable(array)


def _walk(tree: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """The leaves of a tree by their dotted paths, in the order in which it was written."""
    if not isinstance(tree, Mapping | list | tuple):
        yield prefix, tree
        return
    fields = getattr(tree, "_fields", None)
    pairs: Any = zip(fields, tree, strict=True) if fields else tree.items() if isinstance(tree, Mapping) else None
    for key, value in pairs if pairs is not None else enumerate(tree):
        yield from _walk(value, f"{prefix}.{key}" if prefix else str(key))


def parameter_function(
    function: Callable[..., Any],
    inits: Sequence[Callable[..., Any]],
    weights: Sequence[str],
    arguments: dict[str, Any],
    key: Any = None,
) -> Any:
    """The function as a module. ``inits`` may make its tree; ``weights`` are the names in it, if given.

    ``arguments`` are the torch constructor's, by name; initial values are drawn with ``key``. Raises ValueError where
    the tree can't be made.
    """
    problems = []
    for init in inits:
        try:
            return ParameterFunction(function, _made(init, arguments, key), arguments)
        except Exception as error:  # noqa: BLE001 - the user's code may raise anything; the next one may do
            problems.append(f"{init.__name__}: {type(error).__name__}: {error}")
    if weights:
        nested = _nested(dict.fromkeys(weights, np.zeros(())))
        return ParameterFunction(function, nested, arguments)
    tried = f" (tried: {problems[0]})" if problems else ""
    raise ValueError(
        f'no parameters for {function.__name__}; write above it: # t2j: weights={{"w1": "fc1.weight.T"}}{tried}'
    )


def _made(init: Callable[..., Any], arguments: dict[str, Any], key: Any = None) -> Any:
    values = iter(list(arguments.values()))
    given: dict[str, Any] = {}
    for name, parameter in inspect.signature(init).parameters.items():
        if name in _KEYS or name == "rngs":
            given[name] = nnx.Rngs(0) if name == "rngs" else jax.random.key(0) if key is None else key
        elif name in arguments:
            given[name] = arguments[name]
        elif parameter.default is parameter.empty:
            given[name] = next(values)
    return init(**given)


def _nested(flat: Mapping[str, Any]) -> Any:
    """``{"layers.0.w": a}`` as dictionaries, with a list where all keys are numbers."""
    tree: dict[str, Any] = {}
    for path, value in flat.items():
        *above, last = path.split(".")
        place = tree
        for key in above:
            place = place.setdefault(key, {})
        place[last] = value

    def listed(node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        inner = {k: listed(v) for k, v in node.items()}
        return [inner[k] for k in sorted(inner, key=int)] if inner and all(k.isdigit() for k in inner) else inner

    return listed(tree)


# Torch's names for a model's state ----------------------------------------------------------------------------------


def own_entries(model: nnx.Module) -> dict[str, TorchEntry]:
    """The state of a model by its own names, without counters; a module's in torch's layouts."""
    if not isinstance(model, ParameterFunction):
        return {n: e for n, e in torch_names(model).items() if e.variables}
    entries = {}
    for name, number in model.names:
        variable = model.values[number]
        kind: Any = "parameter" if isinstance(variable, nnx.Param) else "buffer"
        entries[name] = TorchEntry(name, kind, (("values", number),), (variable,), lambda a: a, lambda a: (a,))
    return entries


def value_of(entry: TorchEntry) -> NdArray:
    """The present value in torch's layout. JAX would compile a program for each shape that is transposed."""
    return np.asarray(entry.to_torch(*(np.asarray(variable.get_value()) for variable in entry.variables)))


def names_of(model: nnx.Module) -> dict[str, TorchEntry]:
    """The state of a model by torch's names, through its pairing where it has one."""
    pairs: tuple[Pair, ...] | None = getattr(model, "t2j_pairs", None)
    if pairs is None:
        return torch_names(model)
    own = own_entries(model)
    return {torch: _permuted(replace(own[own_name], name=torch), axes) for torch, own_name, axes in pairs}


def _permuted(entry: TorchEntry, axes: tuple[int, ...] | None) -> TorchEntry:
    if axes is None:
        return entry
    back = tuple(int(i) for i in np.argsort(axes))
    return replace(
        entry,
        to_torch=lambda *arrays: entry.to_torch(*arrays).transpose(back),
        from_torch=lambda array: entry.from_torch(array.transpose(axes)),
    )


def layout_of(model: nnx.Module, state: Any) -> dict[str, Any]:
    """The arrays of a state with the model's paths (gradients), by torch's names and in torch's layouts."""
    if getattr(model, "t2j_pairs", None) is None:
        return torch_layout(model, state)
    flat = nnx.to_flat_state(nnx.State(state))
    values = {path: leaf.get_value() if isinstance(leaf, nnx.Variable) else leaf for path, leaf in flat}
    graph = nnx.iter_graph(model)
    held = {id(node): values[path] for path, node in graph if isinstance(node, nnx.Variable) and path in values}
    entries = names_of(model).items()
    return {
        n: e.to_torch(*(part_of(v, held[id(whole_of(v))]) for v in e.variables))
        for n, e in entries
        if id(whole_of(e.variables[0])) in held
    }


def load_paired(
    model: nnx.Module, state: Mapping[str, NdArray], weights: Mapping[str, str], own_names: bool = False
) -> bool:
    """Pairs the model's state with torch's and loads it. False where no pairing takes in everything.

    ``own_names``: t2j wrote the model, and what has torch's name is in torch's layout.
    """
    shapes = _shapes(model)
    if weights:
        pairing: Pairing | None = _given(model, state, weights)
    elif own_names and set(shapes) == {n for n in state if not n.endswith(COUNTER)}:
        pairing = Pairing(tuple((name, name, None) for name in shapes), True)
    else:
        pairing = inferred(state, shapes, _order(model))
    if pairing is None:
        return False
    vars(model)["t2j_pairs"], vars(model)["t2j_pairs_sure"] = pairing.pairs, pairing.sure
    for name, entry in names_of(model).items():
        for variable, part in zip(entry.variables, entry.from_torch(state[name]), strict=True):
            variable.set_value(jnp.array(part, copy=True))
    return True


def _shapes(model: nnx.Module) -> dict[str, tuple[int, ...]]:
    return {name: entry.shape for name, entry in own_entries(model).items()}


def _order(model: nnx.Module) -> bool:
    """Whether the layouts of the model's arrays are its own affair, and not known from its layers."""
    return isinstance(model, ParameterFunction)


def _given(model: nnx.Module, state: Mapping[str, Any], weights: Mapping[str, str]) -> Pairing:
    """The pairing of the user's comment: ``{"w1": "fc1.weight.T"}``. Raises ValueError where it can't be."""
    own, pairs = own_entries(model), []
    by_path = {".".join(map(str, e.paths[0])): name for name, e in own.items()}
    for own_name, text in weights.items():
        match = re.fullmatch(r"([\w.]+?)(?:\.T|\.(?:permute|transpose)\(([\d, ]+)\))?", text)
        name = match[1] if match else text
        if match is None or name not in state:
            raise ValueError(f"weights: torch has no {name!r}; it has {', '.join(state)}")
        if own_name not in own and own_name not in by_path:
            raise ValueError(f"weights: the JAX code has no {own_name!r}; it has {', '.join(own)}")
        rank = state[name].ndim
        axes = tuple(map(int, match[2].split(","))) if match[2] else None
        axes = tuple(range(rank))[::-1] if text.endswith(".T") else axes
        pairs.append((name, own_name if own_name in own else by_path[own_name], axes))
    missing = {n for n in state if not n.endswith(COUNTER)} - {name for name, _, _ in pairs}
    if missing:
        raise ValueError(f"weights: nothing is said of torch's {', '.join(sorted(missing))}")
    return Pairing(tuple(pairs), True)
