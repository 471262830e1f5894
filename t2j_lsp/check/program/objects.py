"""The objects of a file that a check is about: module classes and tensor functions at its top level."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from t2j_lsp.check.inputs import CommentError, comments_for
from t2j_lsp.symbols import bound_as, positional_parameters

from .frames import mentions
from .scopes import ModuleScope
from .slice import Slicer

_MODULE_BASES = frozenset({"Module", "Sequential", "ModuleList"})
_TENSOR_ROOTS = frozenset({"torch", "F", "nn", "functional"})
_NOT_TENSOR = frozenset({
    "backward", "optim", "optimizer", "DataLoader", "zero_grad", "load_state_dict", "save", "load", "manual_seed",
    "parse_args", "state_dict", "compile", "init", "device",
})  # fmt: skip
_TENSOR_METHODS = frozenset({
    "view", "reshape", "permute", "transpose", "unsqueeze", "squeeze", "sum", "mean", "softmax", "matmul", "sigmoid",
    "flatten", "clamp", "size", "dim", "expand", "repeat", "exp", "log", "sqrt", "pow", "abs", "norm", "contiguous",
})  # fmt: skip
_NOT_NUMPYS = frozenset({
    "view", "permute", "unsqueeze", "softmax", "matmul", "sigmoid", "clamp", "size", "dim", "expand", "exp", "log",
    "sqrt", "pow", "abs", "norm", "contiguous", "numpy", "detach", "cpu", "cuda", "to", "float", "long",
})  # fmt: skip
"""What arrays of numpy have not as methods."""


@dataclass(frozen=True)
class CheckedObject:
    """A class or function to check."""

    name: str
    node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)

    @property
    def parameters(self) -> list[ast.arg]:
        """The required parameters of ``forward`` or of the function."""
        node = self._method("forward") if isinstance(self.node, ast.ClassDef) else self.node
        if node is None:
            return []
        names = positional_parameters(node)
        required = names[: len(names) - len(node.args.defaults)]
        return required[1:] if self.is_class else required

    @property
    def has_parameters(self) -> bool:
        """Whether its constructor takes arguments."""
        init = self._method("__init__")
        return init is not None and len(init.args.args) > 1

    def uses(self, name: str) -> bool:
        """Whether its text names something."""
        return mentions(self.node, name)

    def _method(self, name: str) -> ast.FunctionDef | None:
        if not isinstance(self.node, ast.ClassDef):
            return None
        return next((s for s in self.node.body if isinstance(s, ast.FunctionDef) and s.name == name), None)


def find_objects(slicer: Slicer, names: Sequence[str] | None) -> list[CheckedObject]:
    """The named objects, or every module class and tensor function of the file, in the file's order."""
    objects: dict[str, CheckedObject] = {}
    for statement in slicer.scope.body:
        if not isinstance(statement, ast.ClassDef | ast.FunctionDef) or (
            names is not None and statement.name not in names
        ):
            continue
        if isinstance(statement, ast.ClassDef):
            wanted = is_module(slicer, slicer.main, statement.name) and _has_forward(
                slicer, slicer.main, statement.name
            )
        else:
            wanted = is_tensor_function(statement, tensor_roots(slicer.scope))
        if names is not None or wanted or _has_comment(slicer.text, statement):
            objects[statement.name] = CheckedObject(statement.name, statement)
    return list(objects.values())


def _has_comment(text: str, node: ast.ClassDef | ast.FunctionDef) -> bool:
    """Whether the user gave inputs for an object."""
    try:
        return bool(comments_for(text, node))
    except CommentError:
        return True


def checking_order(objects: list[CheckedObject]) -> list[CheckedObject]:
    """Classes that use others come before these, since their runs show how the others are called."""
    classes = {o.name for o in objects if o.is_class}
    used = {
        o.name: {n.id for n in ast.walk(o.node) if isinstance(n, ast.Name)} & classes - {o.name}
        for o in objects if o.is_class
    }  # fmt: skip
    order: list[str] = []

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in order or name in path:
            return
        for user, names in used.items():
            if name in names:
                visit(user, (*path, name))
        order.append(name)

    for o in objects:
        if o.is_class:
            visit(o.name, ())
    rank = {name: i for i, name in enumerate(order)}
    return sorted(objects, key=lambda o: rank.get(o.name, len(rank)))


def _class(slicer: Slicer, module: str, name: str) -> ast.ClassDef | None:
    definition = slicer.modules.load(module)
    for index in definition[0].bindings.get(name, ()) if definition else ():
        node = definition[0].body[index] if definition else None
        if isinstance(node, ast.ClassDef):
            return node
    return None


def is_module(slicer: Slicer, module: str, name: str, depth: int = 0) -> bool:
    """Whether a class of the workspace is an ``nn.Module``, as far as its bases can be followed."""
    node = _class(slicer, module, name)
    if node is None or depth > 20:
        return False
    for base in node.bases:
        text = ast.unparse(base)
        library = slicer.modules.library_name(module, text)
        if (
            library is not None
            and library.startswith("torch.nn.")
            and library.rpartition(".")[2].lstrip("_")[:1].isupper()
        ):
            return True
        home = slicer.modules.home(module, text)
        if home is not None and home != (module, name) and _class(slicer, *home) is not None:
            if is_module(slicer, *home, depth + 1):
                return True
        elif library is None and (text.startswith("nn.") or text in _MODULE_BASES):
            return True  # Behind a star import.
    return False


def _has_forward(slicer: Slicer, module: str, name: str, depth: int = 0) -> bool:
    """Whether a module class can be called: it has a ``forward``, or a base outside the workspace that may have."""
    node = _class(slicer, module, name)
    if node is None or depth > 20:
        return False
    if any(isinstance(s, ast.FunctionDef) and s.name == "forward" for s in node.body):
        return True
    for base in node.bases:
        text = ast.unparse(base)
        home = slicer.modules.home(module, text)
        if home is not None and home != (module, name):
            if _has_forward(slicer, *home, depth + 1):
                return True
        elif (slicer.modules.library_name(module, text) or text).rpartition(".")[2] not in ("Module", "ABC", "object"):
            return True
    return False


def tensor_roots(scope: ModuleScope) -> frozenset[str]:
    """The names of PyTorch's modules in a file: ``th`` behind ``import torch as th``."""
    names: set[str] = set()
    for statement in scope.body:
        if isinstance(statement, ast.Import):
            names |= {
                a.asname or "torch" for a in statement.names if a.name == "torch" or a.name.startswith("torch.nn")
            }
        elif isinstance(statement, ast.ImportFrom) and statement.module in ("torch", "torch.nn"):
            names |= {bound_as(a) for a in statement.names if a.name in ("nn", "functional")}
    return _TENSOR_ROOTS | names


def is_tensor_function(node: ast.FunctionDef, roots: frozenset[str] = _TENSOR_ROOTS) -> bool:
    """Whether a function computes tensors from its parameters. ``roots`` are the file's names of PyTorch's modules."""
    arguments = positional_parameters(node)
    if not arguments or node.name.startswith("test_") or node.name in ("main", "get_inputs", "get_init_inputs"):
        return False
    if any(a.annotation is not None and "Tensor" in ast.unparse(a.annotation) for a in arguments):
        return True
    names = {a.arg for a in arguments}
    attributes = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
    if attributes & _NOT_TENSOR or _is_numpys(node, roots):
        return False
    for call in (n for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)):
        assert isinstance(call.func, ast.Attribute)
        owner: ast.expr = call.func.value
        while isinstance(owner, ast.Attribute):
            owner = owner.value
        direct = {n.id for a in call.args for n in ast.walk(a) if isinstance(n, ast.Name)}
        if isinstance(owner, ast.Name) and owner.id in roots and direct & names and call.func.attr[0].islower():
            return True
        if isinstance(owner, ast.Name) and owner.id in names and call.func.attr in _TENSOR_METHODS:
            return True
    return False


def _is_numpys(node: ast.FunctionDef, roots: frozenset[str]) -> bool:
    """Whether a function calls numpy's functions, and nothing of PyTorch's or that only tensors have."""
    named = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    attributes = [n for n in ast.walk(node) if isinstance(n, ast.Attribute)]
    own = {n.attr for n in attributes if not _of_numpy(n)}
    return any(map(_of_numpy, attributes)) and not named & roots and not own & _NOT_NUMPYS


def _of_numpy(node: ast.expr) -> bool:
    """Whether it is a name in numpy: ``np.linalg.norm``."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in ("np", "numpy")
