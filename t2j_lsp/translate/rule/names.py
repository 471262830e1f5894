"""Qualified names: every way to spell a torch object leads to one canonical name."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

ROOTS = (
    "torch",
    "torchvision",
    "numpy",
    "functools",
    "einops",
    "collections",
    "typing",
    "math",
    "random",
    "jax",
    "flax",
)

_CANONICAL: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), new)
    for pattern, new in (
        (r"^torch\.nn\.modules\.(?:\w+\.)?(?=[A-Z])", "torch.nn."),
        (r"^torch\.nn\.parameter\.", "torch.nn."),
        (r"^torch\.functional\.", "torch."),
        (r"^torch\._tensor\.Tensor", "torch.Tensor"),
        (r"^torch\.optim\.(?!lr_scheduler)\w+\.(?=[A-Z])", "torch.optim."),
        (r"^torch\.optim\.(?:optimizer|Optimizer)$", "torch.optim.Optimizer"),
        (r"^torch\.types\.Device$", "torch.device"),
        (r"^torch\.utils\.data\.(?:dataset|dataloader)\.", "torch.utils.data."),
        (r"^torch\.special\.(?=(?:expit)$)", "torch.special."),
    )
)


@lru_cache(maxsize=4096)
def canonical(name: str) -> str:
    """``torch.nn.modules.conv.Conv2d`` is ``torch.nn.Conv2d``."""
    if name.startswith("torch"):
        for pattern, new in _CANONICAL:
            name = pattern.sub(new, name)
    return name


def is_torch(name: str) -> bool:
    """Whether a qualified name belongs to torch itself, or to another library's layers for it."""
    return name == "torch" or name.startswith(("torch.", "einops.layers.torch"))


# Method names that torch tensors have and that arrays, data frames, strings, sets and dicts do not: a call of one
# of these on a receiver of unknown type is taken for a tensor's, and the conversion is noted.
TENSOR_ONLY = frozenset(
    [
        "unsqueeze",
        "permute",
        "masked_fill",
        "masked_select",
        "contiguous",
        "expand",
        "expand_as",
        "detach",
        "softmax",
        "log_softmax",
        "unbind",
        "chunk",
        "matmul",
        "bmm",
        "mm",
        "numel",
        "view_as",
        "reshape_as",
        "type_as",
        "index_select",
        "scatter",
        "scatter_add",
        "gather",
        "new_zeros",
        "new_ones",
        "new_full",
        "new_tensor",
        "new_empty",
        "requires_grad_",
        "long",
        "half",
        "bfloat16",
        "cuda",
        "addmm",
        "baddbmm",
        "logsumexp",
        "unfold",
        "narrow",
        "movedim",
        "is_contiguous",
        "is_floating_point",
        "sigmoid",
        "relu",
        "tanh",
        "erf",
        "lerp",
        "clamp",
        "clamp_min",
        "clamp_max",
        "amax",
        "amin",
        "rsqrt",
        "topk",
        "kthvalue",
        "zero_",
        "fill_",
        "add_",
        "sub_",
        "mul_",
        "div_",
        "copy_",
        "normal_",
        "uniform_",
        "clamp_",
        "masked_fill_",
        "scatter_",
        "scatter_add_",
        "index_add_",
        "index_copy_",
        "unsqueeze_",
        "squeeze_",
        "transpose_",
        "t_",
        "exp_",
        "sqrt_",
        "pow_",
        "neg_",
        "bernoulli_",
        "random_",
        "trunc_",
        "floor_",
        "ceil_",
        "round_",
        "sigmoid_",
        "relu_",
        "tanh_",
        "logical_not",
        "logical_and",
        "logical_or",
        "repeat_interleave",
        "triu",
        "tril",
        "take_along_dim",
        "flip",
        "unflatten",
        "index_add",
        "index_fill",
        "masked_scatter",
        "swapdims",
        "swapaxes",
        "broadcast_to",
        "nan_to_num",
        "argsort_",
        "log1p",
        "expm1",
        "var_mean",
    ]
) - {"argsort_", "swapaxes", "flip"}


MODULE_ONLY = frozenset(
    {"parameters", "named_parameters", "buffers", "named_buffers", "named_modules", "named_children", "children"}
)
"""Methods without arguments that only modules have."""

ARRAY_LIBRARIES = frozenset({"numpy", "jax", "scipy", "pandas", "xarray", "polars", "cupy", "PIL", "cv2", "tensorflow"})
"""Libraries whose values have methods of the same names as tensors, and aren't tensors."""

_TENSOR_KEYWORDS = frozenset({"dim", "keepdim", "dim0", "dim1", "dims", "start_dim", "end_dim"})
_NOT_SAME_ON_ARRAYS = frozenset(
    {"size", "view", "repeat", "max", "min", "sort", "std", "var", "median", "norm", "split"}
)
"""Methods that arrays have too, or that strings have, with another meaning."""


def only_tensor(name: str, node: ast.Call) -> bool:
    """Whether a method call with these arguments can only be a tensor's, whatever is known of its receiver."""
    if name in TENSOR_ONLY:
        return True
    if any(k.arg in _TENSOR_KEYWORDS and not _is_string(k.value) for k in node.keywords):
        return True
    count = len(node.args)
    match name:
        case "transpose":
            return count == 2
        case "size":
            return count == 1
        case "view":
            return count > 1 or any(_is_number(a) for a in node.args)
        case "repeat":
            return count > 2
        case "flatten":
            return any(_is_number(a) for a in node.args)
        case "t" | "dim" | "clone" | "float" | "double" | "int":
            return count == 0 and not node.keywords
        case "to":
            first = node.args[0] if node.args else None
            return isinstance(first, ast.Attribute) and first.attr in ("device", "dtype")
        case _:
            return False


def means_other_on_arrays(name: str, node: ast.Call) -> bool:
    """Whether arrays have a method of this name that does something else with these arguments."""
    if name in ("max", "min", "sort", "split", "norm"):
        return bool(node.args) and not any(_is_string(a) for a in node.args)
    return name in _NOT_SAME_ON_ARRAYS and not any(k.arg in ("axis", "ddof") for k in node.keywords)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant) and not _is_string(node)


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or isinstance(node, ast.Constant) and isinstance(node.value, str)
