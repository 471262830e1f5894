"""Qualified names: every way to spell a torch object leads to one canonical name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import lru_cache

from .library import Trait, names_with

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
        (r"^torch\.(?:sparse|nn\.functional|nn\.init)\.torch\.", "torch."),
        (r"^torch\.nn\.modules\.(?:\w+\.)?(?=[A-Z])", "torch.nn."),
        (r"^torch\.nn\.parameter\.", "torch.nn."),
        (r"^torch\.functional\.", "torch."),
        (r"^torch\._tensor\.Tensor", "torch.Tensor"),
        (r"^torch\.optim\.(?!lr_scheduler|swa_utils)\w+\.(?=[A-Z])", "torch.optim."),
        (r"^torch\.optim\.(?:optimizer|Optimizer)$", "torch.optim.Optimizer"),
        (r"^torch\.types\.Device$", "torch.device"),
        (r"^torch\.GradScaler$", "torch.amp.GradScaler"),
        (r"^torch\.((?:cuda\.|cpu\.)?amp)\.(?:autocast_mode|grad_scaler)\.", r"torch.\1."),
        (r"^torch\.random\.(?=(?:manual_seed|seed|initial_seed|get_rng_state|set_rng_state)$)", "torch."),
        (
            r"^torch\.nn\.utils\.(?:clip_grad|convert_parameters|init|memory_format|spectral_norm|weight_norm)\.",
            "torch.nn.utils.",
        ),
        (r"^torch\.utils\.dlpack\.(?=from_dlpack$)", "torch."),
        (r"^torch\.utils\.data\.(?:dataset|dataloader)\.", "torch.utils.data."),
        (r"^torch\.special\.(?=(?:expit)$)", "torch.special."),
        (
            r"^(torch\.nn\.init\.(?:constant|dirac|eye|(?:kaiming|xavier)_(?:normal|uniform)|normal|orthogonal|sparse|uniform))$",
            r"\1_",
        ),
        (r"^functorch(?:\.experimental)?(?=\.|$)", "torch.func"),  # as it was called before
        (r"^timm\.(?:models\.)?layers\.(?:weight_init\.)?(?=trunc_normal_$)", "torch.nn.init."),
        (r"^timm\.(?:models\.)?layers\.(?:drop\.)?(?=DropPath$)", "timm.layers."),
    )
)


@lru_cache(maxsize=4096)
def canonical(name: str) -> str:
    """``torch.nn.modules.conv.Conv2d`` is ``torch.nn.Conv2d``, and what PyTorch took over from timm is PyTorch's."""
    if name.startswith(("torch", "timm.", "functorch")):
        for pattern, new in _CANONICAL:
            name = pattern.sub(new, name)
    return name


def is_jax(name: str) -> bool:
    """Whether a qualified name belongs to what conversions are written in."""
    return name.partition(".")[0] in ("jax", "flax", "optax")


def is_torch(name: str) -> bool:
    """Whether a qualified name belongs to torch itself, or to what another library has for its tensors."""
    return name == "torch" or name.startswith(
        (
            *("torch.", "einops.layers.torch", "safetensors.torch", "torchvision.utils", "torchvision.io."),
            *("torchaudio.load", "timm.layers.DropPath"),
        )
    )


def is_class(name: str) -> bool:
    """Whether a qualified name is that of a class of torch's, which all begin with a capital letter."""
    return is_torch(name) and name.rpartition(".")[2][:1].isupper()


_DTYPE = re.compile(r"torch\.(b?float\d*|double|half|u?int\d+|int|long|short|complex\d+|cfloat|cdouble|chalf|bool)")


def is_dtype(name: str) -> bool:
    """Whether a qualified name is one of torch's dtypes."""
    return _DTYPE.fullmatch(name) is not None


def is_complex_dtype(name: str) -> bool:
    """Whether a qualified name is one of torch's dtypes of complex numbers."""
    return is_dtype(name) and name.removeprefix("torch.").startswith("c")


def is_narrow_dtype(name: str) -> bool:
    """Whether a qualified name is one of torch's dtypes of real numbers in less than 32 bits."""
    return is_dtype(name) and name.endswith(("float16", "half"))


TENSOR_ONLY = names_with(Trait.TENSOR_ONLY)
"""A call of one of these on a receiver of unknown type is taken for a tensor's, and the conversion is noted."""
TENSOR_ONLY_BARE = names_with(Trait.TENSOR_ONLY_BARE)
TENSOR_ATTRIBUTES = names_with(Trait.TENSOR_ATTRIBUTE)
"""One of these of a value of unknown type, where tensors are computed with, is taken for a tensor's."""
TORCH_ONLY = names_with(Trait.TORCH_ONLY)
TORCH_ONLY_BARE = names_with(Trait.TORCH_ONLY_BARE)
OPERATOR_METHODS = names_with(Trait.OPERATOR_METHOD)
"""A call of one of these on a receiver of unknown type is taken for a tensor's where tensors are computed with."""
OUTPUT_METHODS = frozenset(
    {
        *("get_metadata", "get_value", "has_metadata", "kl_divergence", "set_metadata", "set_value", "todense"),
        *("opt_state", "tx", "update"),  # of Flax's optimizer
    }
)
"""What PyTorch's objects lack, and those have that stand for them: in a file that was converted before."""
AMBIGUOUS = names_with(Trait.AMBIGUOUS)
"""A call of one of these on a receiver of unknown type, where tensors are computed with, is a gap."""
MODULE_BY_NAME = names_with(Trait.NO_TENSOR)
MODULE_ONLY = names_with(Trait.MODULE_ONLY)
MODULE_HOOKS = names_with(Trait.MODULE_HOOK)

ARRAY_LIBRARIES = frozenset(
    {"numpy", "jax", "scipy", "pandas", "xarray", "polars", "cupy", "PIL", "cv2", "tensorflow", "h5py"}
)
"""Libraries whose values have methods of the same names as tensors, and aren't tensors."""

TENSOR_KEYWORDS = frozenset(
    {"dim", "keepdim", "dim0", "dim1", "dim2", "dims", "start_dim", "end_dim", "unbiased", "as_tuple"}
)
REDUCTIONS = names_with(Trait.REDUCTION)

OTHER_FRAMEWORKS = frozenset({"flax", "jax", "jittor", "keras", "mindspore", "mxnet", "paddle", "tensorflow"})
"""Libraries whose tensors have some of torch's methods."""


def may_use_torch(text: str) -> bool:
    """Whether a text may compute with torch; where not, it need not be parsed to know."""
    return "torch" in text or _telling().search(text) is not None


@lru_cache(maxsize=1)
def _telling() -> re.Pattern[str]:
    names = "|".join(sorted({*TORCH_ONLY, *TORCH_ONLY_BARE, "detach", "size", "view"}))
    return re.compile(rf"\.(?:{names})\(|\b(?:keep)?dim=")


def computes_with_torch(nodes: Iterable[ast.AST]) -> bool:
    """Whether code calls what only torch's objects have: it computes with what others give it, and imports nothing.

    So does code that imports a library of PyTorch's alone: ``torchaudio``.
    """
    telling = False
    detached: set[str] = set()
    computed: set[str] = set()
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="detach"), args=[], keywords=[]):
                detached.add(name)
            case ast.BinOp(left=left, right=right):
                computed.update(side.id for side in (left, right) if isinstance(side, ast.Name))
            case ast.Import(names=names) if any(a.name.partition(".")[0] in OTHER_FRAMEWORKS for a in names):
                return False
            case ast.ImportFrom(module=str() as module, level=0) if module.partition(".")[0] in OTHER_FRAMEWORKS:
                return False
            case ast.Import(names=names) if any(a.name.startswith("torch") for a in names):
                telling = True
            case ast.ImportFrom(module=str() as module, level=0) if module.startswith("torch"):
                telling = True
            case ast.Call(func=ast.Attribute(attr=attr)):
                telling = telling or _tells_of_torch(node, attr)
    return telling or not detached.isdisjoint(computed)


def _tells_of_torch(node: ast.Call, name: str) -> bool:
    """Whether a method call is one that no other library's objects have."""
    if name in TORCH_ONLY or any(k.arg == "keepdim" for k in node.keywords):
        return True
    if name in TORCH_ONLY_BARE:
        return not node.args and not node.keywords
    if any(k.arg == "dim" and _is_number(k.value) for k in node.keywords):
        return name in REDUCTIONS or name in ("cumsum", "max", "min", "sort") or _is_tensor_method(name)
    return name in ("size", "view") and any(map(_is_number, node.args)) and only_tensor(name, node)


def only_tensor(name: str, node: ast.Call) -> bool:
    """Whether a method call with these arguments can only be a tensor's, whatever is known of its receiver."""
    if name in TENSOR_ONLY or name in TENSOR_ONLY_BARE and not node.args and not node.keywords:
        return True
    if any(k.arg in TENSOR_KEYWORDS and not _is_string(k.value) for k in node.keywords):
        return True
    count = len(node.args)
    first = node.args[0] if node.args else None
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
        case "argsort":
            return count == 2 and _is_truth(node.args[1])
        case "reshape":
            return any(k.arg == "shape" for k in node.keywords)
        case "to":
            given = [first, *(k.value for k in node.keywords if k.arg in ("device", "dtype"))]
            return any(isinstance(value, ast.Attribute) and value.attr in ("device", "dtype") for value in given)
        case "type":
            given = [first] if count == 1 else [k.value for k in node.keywords if k.arg == "dtype"]
            return any(map(_names_dtype, given))
        case _ if name in REDUCTIONS:
            named = next((k.value for k in node.keywords if k.arg == "axis"), None)
            return isinstance(first or named, ast.List) or count == 2 and _is_truth(node.args[1])
        case _:
            return name.endswith("_") and not name.endswith("__") and _is_tensor_method(name[:-1])


def _names_dtype(node: ast.expr | None) -> bool:
    """Whether an argument is written as a dtype: ``torch.float32``, ``torch.FloatTensor``, ``x.dtype``."""
    if not isinstance(node, ast.Attribute):
        return False
    return node.attr == "dtype" or node.attr.endswith("Tensor") or is_dtype(f"torch.{node.attr}")


def _is_tensor_method(name: str) -> bool:
    """Whether arrays lack a method of this name that tensors have."""
    return any(name in names for names in (TENSOR_ONLY, TENSOR_ONLY_BARE, OPERATOR_METHODS, AMBIGUOUS))


def means_other_on_arrays(name: str, node: ast.Call) -> bool:
    """Whether arrays have a method of this name that does something else, or fails, with these arguments."""
    if any(map(_is_string, node.args)) or any(k.arg in ("axis", "ddof") for k in node.keywords):
        return False
    fewest = 0 if name in _OTHER else 1 if name in _OTHER_WITH_ONE else 2 if name in _OTHER_WITH_TWO else None
    return fewest is not None and len(node.args) >= fewest


_OTHER = names_with(Trait.OTHER_ON_ARRAYS)
_OTHER_WITH_ONE = names_with(Trait.OTHER_WITH_ONE)
_OTHER_WITH_TWO = names_with(Trait.OTHER_WITH_TWO)
HARMLESS = names_with(Trait.HARMLESS)
"""Methods that may be converted where the receiver is an array of another library: they do the same there."""


def _is_number(node: ast.expr) -> bool:
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant) and not _is_string(node)


def _is_truth(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or isinstance(node, ast.Constant) and isinstance(node.value, str)
