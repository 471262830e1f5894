"""PyTorch's names of what stands in a module.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.named_parameters
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from flax import nnx

NORMS = nnx.BatchNorm, nnx.LayerNorm, nnx.GroupNorm, nnx.InstanceNorm, nnx.RMSNorm

# The layers whose `kernel`, `scale` or `embedding` is called `weight` in PyTorch.
LAYERS_WITH_WEIGHTS = nnx.Linear, nnx.Conv, nnx.ConvTranspose, nnx.Embed, *NORMS


def torch_name(module: nnx.Module, path: Sequence[str | int]) -> str:
    """PyTorch's name of what stands at a path of `module`: of ("net", "layers", 0, "kernel"), `net.0.weight`.

    Flax walks a module in alphabetical order, PyTorch in the order of assignment.
    """
    owner, parts = module, []
    for part in path:
        if isinstance(owner, LAYERS_WITH_WEIGHTS) and part in ("kernel", "scale", "embedding"):
            parts.append("weight")
        elif not is_nameless(owner, part):
            parts.append(str(part))
        owner = owner[part] if isinstance(part, int) else getattr(owner, part)
    return ".".join(parts)


def is_nameless(owner: nnx.Module, key: str | int) -> bool:
    """Whether PyTorch's names leave a part out: the list of `nnx.Sequential`, and a layer that another one norms.

    A `Sequential` that has its parts under their `_names` may have one of the name "layers".
    """
    return (isinstance(owner, nnx.Sequential) and key == "layers" and not hasattr(owner, "_names")) or (
        isinstance(owner, nnx.SpectralNorm | nnx.WeightNorm) and key == "layer_instance"
    )


def named_children(module: nnx.Module) -> list[tuple[str, nnx.Module]]:
    """The modules right inside a module, each once, with PyTorch's names and in its order, that of assignment.

    Those of `nnx.Sequential` are its layers; functions among them, which PyTorch has modules for, are left out.
    """
    while nameless := [key for key in ("layers", "layer_instance") if is_nameless(module, key)]:
        module = getattr(module, nameless[0])
    walk = (((key,), child) for key, child in nnx.iter_module_children(module))
    children: dict[int, tuple[str, nnx.Module]] = {}
    for (key,), child in in_torch_order(module, walk):
        children.setdefault(id(child), (str(key), child))
    return list(children.values())


def named_contents(container: Any) -> list[tuple[str, Any]]:
    """The children of a `Sequential` or a list under PyTorch's names and in its order, each module once.

    Functions are among them where PyTorch has modules: these containers hold nothing else.
    """
    if (names := getattr(container, "_names", None)) is not None:
        pairs = [(name, getattr(container, name)) for name in names]
    else:
        pairs = [(str(place), child) for place, child in enumerate(getattr(container, "layers", container))]
    modules = {id(child): name for name, child in reversed(pairs) if isinstance(child, nnx.Pytree)}
    return [(name, child) for name, child in pairs if child is not None and modules.get(id(child), name) == name]


def get_submodule(module: Any, target: str) -> Any:
    """The part of a module that has PyTorch's name, `blocks.0.attn`; the module itself at "".

    Raises AttributeError where there is none.
    """
    for name in target.split(".") if target else []:
        while nameless := [key for key in ("layers", "layer_instance") if is_nameless(module, key)]:
            module = getattr(module, nameless[0])
        if isinstance(module, list | tuple | nnx.List) and name.isdigit() and int(name) < len(module):
            module = module[int(name)]
        else:
            module = getattr(module, name)
        if isinstance(module, nnx.Variable) or not callable(module) and not isinstance(module, nnx.Pytree):
            raise AttributeError(f"`{name}` is not an nn.Module")
    return module


def in_torch_order(
    module: nnx.Module, walk: Iterable[tuple[tuple[Any, ...], Any]], parts_first: bool = False
) -> list[tuple[tuple[Any, ...], Any]]:
    """Paths in `module` and what stands there in PyTorch's order, that of assignment; Flax walks by names.

    A module's own parameters come before those of its parts, and a module before its parts, or with `parts_first`
    behind them, as `Module.apply` has it.
    """

    def places(item: tuple[tuple[Any, ...], Any]) -> list[tuple[bool, float]]:
        owner, order = module, []
        for part in item[0]:
            counted, nodes = isinstance(part, int), list(owner._pytree__nodes)
            owner = owner[part] if counted else getattr(owner, part)
            order.append((not isinstance(owner, nnx.Variable), part if counted else nodes.index(part)))
        if parts_first:
            order.append((True, math.inf))
        return order

    return sorted(walk, key=places)
