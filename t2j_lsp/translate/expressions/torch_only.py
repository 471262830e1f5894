"""Calls of what stays PyTorch's: compiled extensions, packages and classes given arrays, and libraries' models."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.contract import Options
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.looked_up import looked_up
from t2j_lsp.translate.inference.own_optimizers import why_it_stays
from t2j_lsp.translate.inference.storage import dotted
from t2j_lsp.translate.rule.definitions import Class, ClassInfo, Function, Instance, is_module
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, Layer, ListOf, Object, Qual, Tensor, Tuple
from t2j_lsp.translate.rule.library import CLASSES, TorchClass, Trait, names_with
from t2j_lsp.translate.rule.names import is_jax, is_torch
from t2j_lsp.translate.rule.packages import NO_MODULES, TAKE_ANYTHING
from t2j_lsp.translate.rule.record import copied_class

from .context import Context
from .handed_classes import was_converted

TORCH_PACKAGES = frozenset(
    (
        *(
            "torchvision",
            "torchaudio",
            "torchmetrics",
            "torch_scatter",
            "torch_sparse",
            "torch_cluster",
            "torch_geometric",
        ),
        *(
            "flash_attn",
            "xformers",
            "apex",
            "kornia",
            "fvcore",
            "mmcv",
            "detectron2",
            "pytorch3d",
            "spconv",
            "fairscale",
        ),
        *("causal_conv1d", "mamba_ssm", "bitsandbytes", "deepspeed", "pytorch_lightning", "lightning"),
    )
)
"""Packages whose functions take PyTorch's tensors, beside those that say so by their name."""
_MODELS = re.compile(
    r"torchvision\.models\.(?!_utils\.|(?:_api\.)?(?:list_|get_weight|get_model_weights|Weights)|.*_Weights\b)"
    r"|timm\.(?:create_model|(?:models|layers)\.(?:\w+\.)*(?:[A-Z]|create_))"
    r"|torchaudio\.models\."
    r"|segmentation_models_pytorch\.(?:[A-Z]|create_model)"
    r"|transformers\.(?:\w*Model|\w+For[A-Z]\w+)(?:\.from_\w+)?$"
    r"|open_clip\.create_model|clip\.load$|efficientnet_pytorch\.EfficientNet|lpips\.LPIPS|torch_geometric\.nn\.[A-Z]"
)
"""What makes a module of PyTorch: classes and functions of libraries, by their names."""
_CONVERTED_ALONG = re.compile(r"torchvision\.models\.(?!_api\.|get_model)")
"""Those of them that ``--with`` converts along."""
_BY_NAME = "; one that is named, as models.resnet18(...), is converted along by --with torchvision"
_REGISTERED = (
    "what stands behind timm's registry isn't converted along; copy the class from timm's file (for resnet18 "
    "timm/models/resnet.py) beside yours and convert both, or take torchvision's model, which --with torchvision "
    "converts"
)
_MODEL_FILES = re.compile(r"torchvision\.models|timm\.models|torchaudio\.models|segmentation_models_pytorch")
"""Namespaces of them."""
OWN_GRADIENT = (
    "a custom autograd.Function converts if it has static forward(ctx, ...) and backward(ctx, ...) and keeps nothing "
    "but attributes and saved tensors; write this one with jax.custom_vjp"
)
_COMPILED = re.compile(r"_C|_?ext|\w+_ext|\w*_cuda|\w*_cpp")
"""Names that compiled extensions of PyTorch have: ``_C``, ``selective_scan_cuda``, ``fused_act_ext``."""
_IMPORTS = re.compile(r"import|^locate$")
"""Names of functions that import what they are given the name of: ``import_module``, ``pydoc.locate``."""
_OUT_OF_SIGHT = (
    "{} isn't in sight, and what derives from a PyTorch module is one: convert it along, or derive from torch.nn.Module"
)


def stays_torch(ctx: Context, node: ast.Call) -> tuple[str, str] | None:
    """The name of what is called or imported and the reason why it can't take arrays; None where it can."""
    if (run := _code_in_text(ctx, node)) is not None:
        return run, "the code in its text stays PyTorch's: write it as statements"
    imported = _imported_by_name(ctx, node)
    if imported is not None:
        return imported, f"{imported} is PyTorch's, and what is imported of it takes no JAX arrays"
    if (made := library_model(ctx, node)) is not None:
        return made
    arguments = [*node.args, *(k.value for k in node.keywords)]
    if (given := _given_objects(ctx, node, arguments)) is not None:
        return given
    if not any(_is_array(ctx.fact(a.value if isinstance(a, ast.Starred) else a)) for a in arguments):
        return None
    fact = ctx.fact(node.func)
    if isinstance(fact, Qual):
        return _library(ctx.options, fact.name)
    info = _class(ctx.inference, node.func, fact)
    base = torch_base(ctx.options, info) if info is not None else None
    if info is None or base is None or info in (ctx.scope.class_info, getattr(ctx.scope.function, "owner", None)):
        return None
    return ast.unparse(node.func), f"{info.name} is still PyTorch, as its base {base} is, and takes no JAX arrays"


def _code_in_text(ctx: Context, node: ast.Call) -> str | None:
    """What runs code of PyTorch's from a text: ``exec("x = torch.ones(2)")``, a cell of an exported notebook."""
    match node.func:
        case ast.Name(id="exec" | "eval" as name) | ast.Attribute(attr="run_cell_magic" | "timeit" | "Timer" as name):
            texts = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        case _:
            return None
    for text in texts:
        try:
            used = {n.id for n in symbols.walk(ast.parse(text)) if isinstance(n, ast.Name)}
        except (SyntaxError, ValueError):
            continue
        for statement in ctx.inference.source.nodes:
            inside = isinstance(statement, ast.ImportFrom) and is_torch(statement.module or "")
            for alias in statement.names if isinstance(statement, ast.Import | ast.ImportFrom) else ():
                bound = symbols.bound_as(alias)
                if bound in used and (inside or isinstance(statement, ast.Import) and is_torch(alias.name)):
                    return name
    return None


def _imported_by_name(ctx: Context, node: ast.Call) -> str | None:
    """What a call imports of PyTorch: ``importlib.import_module("torch.nn")``, ``optional_import(...)``.

    Also a function that imports what it is given the name of, as ``load_class("torch.nn.ReLU")``.
    """
    if not isinstance(node.func, ast.Name | ast.Attribute):
        return None
    texts = [a.value for a in (*node.args, *(k.value for k in node.keywords)) if isinstance(a, ast.Constant)]
    for name in texts:
        parts = name.split(".") if isinstance(name, str) else []
        package = bool(parts) and parts[0] in TORCH_PACKAGES and not _own(ctx.options, parts[0])
        if ("torch" in parts or package) and all(map(str.isidentifier, parts)):
            called = dotted(node.func).rpartition(".")[2]
            if _IMPORTS.search(called) or len(parts) > 1 and _imports(ctx.fact(node.func)):
                return str(name)
    return None


def _imports(fact: Fact) -> bool:
    """Whether a function of the project calls one that imports what it is given the name of."""
    called = symbols.walk(fact.info.node) if isinstance(fact, Function) else ()
    funcs = [dotted(n.func).rpartition(".")[2] for n in called if isinstance(n, ast.Call)]
    return any(map(_IMPORTS.search, funcs))


def library_model(ctx: Context, node: ast.Call) -> tuple[str, str] | None:
    """A library's model that is made, by its name or by one that isn't known: ``getattr(models, name)()``."""
    fact, space = ctx.fact(node.func), namespace(ctx, node.func)
    if isinstance(fact, Qual) and _MODELS.match(fact.name):
        name = fact.name
    elif space is not None and _MODEL_FILES.fullmatch(space):
        name = ast.unparse(node.func)
    else:
        return None
    if _own(ctx.options, (space or name).partition(".")[0]):
        return None
    reason = f"{name} makes a PyTorch module, which takes no JAX arrays: "
    if space is None and _CONVERTED_ALONG.match(name):
        return name, f"{reason}t2j convert --with torchvision converts its source along"
    if name == "timm.create_model":
        return name, f"{reason}{_REGISTERED}"
    by_name = _BY_NAME if (space or name).startswith("torchvision.") else ""
    return name, f"{reason}convert its source along{by_name}"


def _given_objects(ctx: Context, node: ast.Call, arguments: list[ast.expr]) -> tuple[str, str] | None:
    """A package's function or object that is given a module or an optimizer: ``wandb.watch(model)``, ``EMA(model)``."""
    what = next(filter(None, (_converted(ctx.fact(a)) for a in arguments)), None)
    name = _outside(ctx, node.func) if what is not None else None
    if name is None:
        return None
    return name, f"{name} is given {what}: if it is written for PyTorch, leave it out or convert its source along"


def _converted(fact: Fact) -> str | None:
    """What an object of PyTorch has become that is another kind of object now."""
    match fact:
        case Instance() | Layer() if is_module(fact):
            return "a module, which is Flax's now"
        case Object(kind="optimizer"):
            return "an optimizer, which is an nnx.Optimizer now"
        case Object(kind="scheduler"):
            return "a schedule, which is no object of PyTorch's any more"
    return None


def _outside(ctx: Context, func: ast.expr) -> str | None:
    """The name of what a package has or made, by which it is called; None for what works on any object."""
    if not isinstance(func, ast.Attribute) or ctx.fact(func) != UNKNOWN or ctx.fact(func.value) != UNKNOWN:
        return _of_package(ctx, func)
    text = dotted(func.value)
    for made in ctx.source.nodes if text else ():
        if isinstance(made, ast.Assign) and isinstance(made.value, ast.Call) and text in map(dotted, made.targets):
            if _of_package(ctx, made.value.func) is not None:
                return ast.unparse(func)
    return None


def _of_package(ctx: Context, func: ast.expr) -> str | None:
    """The name of what a package has, but for those whose functions take any object."""
    fact = ctx.fact(func)
    if not isinstance(fact, Qual) or is_torch(fact.name):
        return None
    root = fact.name.partition(".")[0]
    return fact.name if root and root not in TAKE_ANYTHING and not _own(ctx.options, root) else None


def namespace(ctx: Context, func: ast.expr) -> str | None:
    """The library or file in which a name that isn't known is looked up: ``getattr(models, name)``."""
    asked = looked_up(func)
    fact = ctx.fact(asked[0]) if asked is not None and not isinstance(asked[1], ast.Constant) else None
    return fact.name if isinstance(fact, Qual) else None


def _is_array(fact: Fact) -> bool:
    """Whether a value is surely a tensor in PyTorch and so an array in JAX, or holds such values."""
    match fact:
        case Tensor():
            return fact.sure
        case Tuple():
            return any(map(_is_array, fact.items))
        case ListOf():
            return _is_array(fact.item)
        case _:
            return False


def _library(options: Options, name: str) -> tuple[str, str] | None:
    if is_torch(name):
        return None
    root, *parts = name.lstrip(".").split(".")
    if _is_of_torch(root) and not _own(options, root):
        along = "" if root in TORCH_PACKAGES else f"; what is used of it is converted along by --with {root}"
        return name, f"{root} takes PyTorch's tensors, and no JAX arrays{along}"
    compiled = next((part for part in (root, *parts[:-1]) if _COMPILED.fullmatch(part)), None)
    if compiled is not None:
        return name, f"{compiled} is compiled for PyTorch's tensors, and takes no JAX arrays"
    return None


def _is_of_torch(package: str) -> bool:
    """Whether a package works on PyTorch's objects: ``torch_einops_utils``, ``ema_pytorch``."""
    return package in TORCH_PACKAGES or "torch" in package


def _own(options: Options, package: str) -> bool:
    """Whether the file belongs to a package itself, which is converted with it."""
    return options.resolve is not None and options.resolve(0, package) is not None


def _class(inference: Inference, func: ast.expr, fact: Fact) -> ClassInfo | None:
    """The class of the file that a call makes an instance of, calls an instance of, or calls a method of."""
    if isinstance(fact, Function):
        return fact.info.owner if isinstance(func, ast.Attribute) else None
    if not isinstance(fact, Class | Instance) and isinstance(func, ast.Attribute):
        fact = inference.fact(func.value)
    if isinstance(fact, Instance):
        fact = fact.cls
    return fact.info if isinstance(fact, Class) else None


def torch_base(options: Options, info: ClassInfo) -> str | None:
    """The base that keeps a class PyTorch's; None for modules and classes that have nothing of PyTorch."""
    for one in info.ancestry():
        for base in one.bases:
            if isinstance(base, Qual) and base.name in names_with(Trait.OWN_GRADIENT):
                if problem_of_gradient(one) is None:
                    continue
            if isinstance(base, Qual) and not base.name.startswith("torch.nn") and copied_class([base.name]) is None:
                package = base.name.partition(".")[0]
                if is_torch(base.name) or _is_of_torch(package) and not _own(options, package):
                    return base.name
    return None


def left_whole(ctx: Context, info: ClassInfo) -> tuple[str, str] | None:
    """The base that keeps a class of the file as PyTorch's, and why; None for those that are rewritten."""
    for name in info.torch_bases:
        reason = CLASSES.get(name, TorchClass()).derived
        if reason is not None and ctx.plan.expression_handlers.keys().isdisjoint(info.node.bases):
            unfit = why_it_stays(ctx.source, info, ctx.inference.ask)
            return name, reason if unfit is None else f"{reason}: what stands in the way is {unfit}"
    if (name_out_of_sight := base_out_of_sight(info)) is not None:
        return name_out_of_sight, _OUT_OF_SIGHT.format(name_out_of_sight)
    problem = problem_of_gradient(info)
    return (info.torch_bases[0], problem) if problem is not None else None


def base_out_of_sight(info: ClassInfo) -> str | None:
    """A class that isn't read here, from which one with layers or a ``forward`` derives: it may be a PyTorch module.

    ``pl.LightningModule``, ``PreTrainedModel``, a name that ``from models import *`` binds. None for modules of the
    file's own making, and for other classes.
    """
    if info.is_module or info.mixed_in or any(map(is_jax, info.torch_bases)):
        return None
    held = [fact for one in info.ancestry() for fact in one.attributes.values()]
    is_like_module = info.method("forward") is not None or any(
        is_module(fact) or _was_module(fact) or isinstance(fact, Tensor) and fact.variable for fact in held
    )
    return next((name for one in info.ancestry() for name in _unseen_bases(one)), None) if is_like_module else None


def _was_module(fact: Fact) -> bool:
    """Whether it is an object of a class of Flax's modules, as a file has them that was converted before."""
    return isinstance(fact, Instance) and was_converted(fact.cls)


def mixin_out_of_sight(info: ClassInfo) -> str | None:
    """A class that isn't read here, beside ``nn.Module`` in a module's bases; its methods get Flax's module."""
    return next(_unseen_bases(info), None) if info.is_module else None


def abstract_elsewhere(info: ClassInfo) -> str | None:
    """A base of a module in another file that is none itself and asks for a ``forward``, which is ``__call__`` here."""
    for base in info.ancestry()[1:] if info.is_module else ():
        asked = base.methods.get("forward")
        if asked is not None and asked.external and not base.is_module:
            if any(ast.unparse(d).rpartition(".")[2] == "abstractmethod" for d in asked.node.decorator_list):
                return base.name
    return None


def _unseen_bases(info: ClassInfo) -> Iterator[str]:
    """The names of a class's bases that may be anything of PyTorch: other packages', and those that nothing binds."""
    for fact, node in zip(info.bases, info.node.bases, strict=True):
        if isinstance(fact, Qual):
            if not is_torch(fact.name) and fact.name.lstrip(".").partition(".")[0] not in NO_MODULES:
                yield fact.name
        elif fact == UNKNOWN:
            named = dotted(node.value if isinstance(node, ast.Subscript) else node)
            if named and not hasattr(builtins, named):
                yield named


def problem_of_gradient(info: ClassInfo) -> str | None:
    """Why a function with a gradient of its own can't be what the helper `Function` derives; None if it can."""
    if not names_with(Trait.OWN_GRADIENT) & set(info.torch_bases):
        return None
    if not {"forward", "backward"} <= info.methods.keys() or "setup_context" in info.methods:
        return OWN_GRADIENT
    for name in ("forward", "backward"):
        method = info.methods[name]
        first = next(iter(symbols.positional_parameters(method.node)), None)
        if not method.static or first is None:
            return OWN_GRADIENT
        for inner in symbols.walk(method.node):
            match inner:
                case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=called)) if owner == first.arg:
                    if called != "save_for_backward":
                        return f"{OWN_GRADIENT}: nothing is like ctx.{called}"
    return None
