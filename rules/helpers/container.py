"""Containers of modules and buffers that keep PyTorch's names, order and list methods.

Children are attributes under PyTorch's names, so that a parameter's path is its name in the state dict. Their order is
held apart as static data: Flax rebuilds a module with its attributes sorted (in `nnx.jit`, `nnx.clone`, `nnx.merge`),
so that `nnx.Dict` forgets the order in which it was filled.
Source: https://docs.pytorch.org/docs/stable/nn.html#containers
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jax
from flax import nnx


class Buffer(nnx.Variable[jax.Array]):
    """State that is saved and is not trained, as PyTorch's `register_buffer`; a type of its own for nnx's filters.

    `Buffer(x, persistent=False)` stays out of the state dict.
    """


def freeze(module: nnx.Module) -> None:
    """Makes the parameters of a module buffers: `requires_grad_(False)` of what is never trained."""
    for _, part in nnx.iter_modules(module):
        for name, variable in list(vars(part).items()):
            if isinstance(variable, nnx.Param):
                setattr(part, name, Buffer(variable[...]))


class IndexedSequential(nnx.Sequential):
    """An `nnx.Sequential` that is indexed, sliced and iterated as PyTorch's is: like the list of its layers."""

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.layers)

    def __getitem__(self, index: int | slice) -> Any:
        layers = self.layers[index]
        return IndexedSequential(*layers) if isinstance(index, slice) else layers

    def __setitem__(self, index: int, layer: Callable[..., Any]) -> None:
        layers = list(self.layers)
        layers[index] = layer
        self.layers = nnx.List(layers)  # a function is static data and a module is not: the list must start afresh


class Sequential(nnx.Sequential):
    """PyTorch's `nn.Sequential`: of modules or of one dict of names; indexed, sliced and iterated like a list.

    `nnx.Sequential` spreads a tuple that a module returns over the arguments of the next; here it stays one argument.
    """

    def __init__(self, *modules: Any, rngs: nnx.Rngs | None = None):
        named = len(modules) == 1 and isinstance(modules[0], Mapping)
        children = dict(modules[0] if named else enumerate(modules))
        self._names = tuple(map(str, children))
        for name, module in children.items():
            setattr(self, str(name), module)

    def add_module(self, name: str, module: Callable[..., Any]) -> None:
        """Adds a module under a name of its own, or replaces the one of that name."""
        if name in self._names:
            delattr(self, name)  # a function is static data and a module is not: the attribute must start afresh
        else:
            self._names += (name,)
        setattr(self, name, module)

    def append(self, module: Callable[..., Any]) -> "Sequential":
        """Adds a module under its position."""
        self.add_module(str(len(self._names)), module)
        return self

    def extend(self, modules: Iterable[Callable[..., Any]]) -> "Sequential":
        """Adds modules under their positions."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Callable[..., Any]) -> "Sequential":
        """Inserts a module before `index`; all get their positions for names."""
        modules = list(self)
        modules.insert(index, module)
        return self._assign(modules)

    def _assign(self, modules: list[Any]) -> "Sequential":
        for name in self._names:
            delattr(self, name)
        self._names = ()
        return self.extend(modules)

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[Any]:
        return iter([getattr(self, name) for name in self._names])

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return Sequential({name: getattr(self, name) for name in self._names[index]})
        return getattr(self, self._names[index])

    def __setitem__(self, index: int, module: Callable[..., Any]) -> None:
        self.add_module(self._names[index], module)

    def __delitem__(self, index: int | slice) -> None:
        modules = list(self)
        del modules[index]
        self._assign(modules)

    def __call__(self, x: Any) -> Any:
        """Applies the modules one after the other."""
        for name in self._names:
            x = getattr(self, name)(x)
        return x


class ModuleList(nnx.List):
    """PyTorch's `nn.ModuleList` and `nn.ParameterList`: an `nnx.List` whose slices and sums are such lists again.

    `nnx.List` gives a Python list for a slice, which cannot be assigned to an attribute, and keeps a second reference
    to the last element when one before it is deleted.
    """

    def __init__(self, modules: Iterable[Any] | None = None, *, rngs: nnx.Rngs | None = None):
        super().__init__(modules)

    def __getitem__(self, index: int | slice) -> Any:
        modules = super().__getitem__(index)
        return ModuleList(modules) if isinstance(index, slice) else modules

    def __delitem__(self, index: int | slice) -> None:
        modules = list(self)
        del modules[index]
        for position in range(len(self)):
            delattr(self, str(position))
        self._length = 0
        self.extend(modules)

    def __add__(self, other: Iterable[Any]) -> "ModuleList":
        return ModuleList([*self, *other])


class ModuleDict(nnx.Dict):
    """PyTorch's `nn.ModuleDict` and `nn.ParameterDict`: an `nnx.Dict` that keeps its order and finds only children."""

    def __init__(self, modules: Mapping[str, Any] | Iterable[tuple[str, Any]] = (), *, rngs: nnx.Rngs | None = None):
        self._names: tuple[str, ...] = ()
        self.update(modules)

    def __setitem__(self, name: str, module: Any) -> None:
        if name in self._names:
            delattr(self, name)
        else:
            self._names += (name,)
        setattr(self, name, module)

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        return getattr(self, name)

    def __delitem__(self, name: str) -> None:
        delattr(self, name)
        self._names = tuple(other for other in self._names if other != name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)
