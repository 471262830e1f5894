"""PyTorch's names of what stands in a module.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.named_parameters
"""

from collections.abc import Sequence

from flax import nnx

# The layers whose `kernel`, `scale` or `embedding` is called `weight` in PyTorch.
LAYERS_WITH_WEIGHTS = (
    nnx.Linear,
    nnx.Conv,
    nnx.ConvTranspose,
    nnx.Embed,
    nnx.BatchNorm,
    nnx.LayerNorm,
    nnx.GroupNorm,
    nnx.InstanceNorm,
    nnx.RMSNorm,
)


def torch_name(module: nnx.Module, path: Sequence[str | int]) -> str:
    """PyTorch's name of what stands at a path of `module`: of ("net", "layers", 0, "kernel"), `net.0.weight`.

    Flax walks a module in alphabetical order, PyTorch in the order of assignment.
    """
    owner, parts = module, []
    for part in path:
        if isinstance(owner, LAYERS_WITH_WEIGHTS) and part in ("kernel", "scale", "embedding"):
            parts.append("weight")
        elif not (isinstance(owner, nnx.Sequential) and part == "layers"):
            parts.append(str(part))
        owner = owner[part] if isinstance(part, int) else getattr(owner, part)
    return ".".join(parts)
