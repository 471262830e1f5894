"""Which expressions of a function are tensors for sure, as far as the text alone tells."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

import libcst as cst
import torch

from .source import Source

LAYERS = frozenset({
    "Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose2d", "BatchNorm1d", "BatchNorm2d", "LayerNorm", "GroupNorm",
    "ReLU", "GELU", "Tanh", "Sigmoid", "SiLU", "LeakyReLU", "Dropout", "Dropout2d", "Softmax", "MaxPool2d",
    "AvgPool2d", "AdaptiveAvgPool2d", "Embedding", "Hardswish", "ReLU6", "InstanceNorm2d",
})  # fmt: skip
"""Layers that take one tensor and give one."""
FUNCTIONS = frozenset({
    "torch.relu", "torch.tanh", "torch.sigmoid", "torch.exp", "torch.cat", "torch.stack", "torch.matmul", "torch.bmm",
    "torch.softmax", "torch.sum", "torch.mean", "torch.sqrt", "torch.rsqrt", "torch.sin", "torch.cos", "torch.abs",
    "torch.zeros", "torch.ones", "torch.arange", "torch.randn", "torch.zeros_like", "torch.ones_like", "torch.flatten",
    "torch.einsum", "torch.randn_like", "torch.linspace", "torch.tensor", "torch.log", "torch.pow", "torch.transpose",
})  # fmt: skip
"""Functions of torch that give one tensor."""
_METHODS = frozenset({"view", "reshape", "permute", "transpose", "unsqueeze", "contiguous", "flatten", "softmax"})
"""Methods of tensors that give a tensor again; on what is a tensor."""


def is_function(full: str | None) -> bool:
    """Whether a full name is that of a function that gives one tensor."""
    if full is None:
        return False
    name = full.rpartition(".")[2]
    return full in FUNCTIONS or full.startswith("torch.nn.functional.") and hasattr(torch.nn.functional, name)


class Tensors:
    """Tensors of one class or function: ``layers`` are attributes of ``self`` that are layers of `LAYERS`."""

    def __init__(self, source: Source, function: ast.FunctionDef, owner: ast.ClassDef | None) -> None:
        self.source = source
        self.layers = layer_attributes(source, owner) if owner is not None else {}
        self.names = set(self._names(function))

    def _names(self, function: ast.FunctionDef) -> Iterator[str]:
        """Variables that are given nothing but tensors, and parameters that are annotated so or given to a layer."""
        given: dict[str, list[ast.expr | None]] = {}
        inner = [n for n in ast.walk(function) if isinstance(n, ast.FunctionDef | ast.Lambda) and n is not function]
        if inner:
            return
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                given.setdefault(node.targets[0].id, []).append(node.value)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                given.setdefault(node.target.id, []).append(node.target)
            elif isinstance(node, ast.Assign | ast.For | ast.comprehension | ast.With | ast.NamedExpr | ast.AnnAssign):
                for inside in ast.walk(node):
                    if isinstance(inside, ast.Name) and isinstance(inside.ctx, ast.Store):
                        given.setdefault(inside.id, []).append(None)
        parameters = {a.arg for a in function.args.args if self._annotated(a)}
        parameters |= set(self._fed(function))
        self.names: set[str] = parameters
        for _ in range(3):
            sure = {n for n, values in given.items() if all(v is not None and self.is_tensor(v) for v in values)}
            own = {a.arg for a in function.args.args}
            self.names = {n for n in parameters if n not in given or n in sure} | (sure - own)
        yield from self.names

    def _annotated(self, argument: ast.arg) -> bool:
        if argument.annotation is None:
            return False
        node = cst.parse_expression(ast.unparse(argument.annotation))
        return self.source.dotted(node) == "torch.Tensor"

    def _fed(self, function: ast.FunctionDef) -> Iterator[str]:
        """Parameters that the first statement to use them hands to a layer of this class."""
        for statement in function.body:
            for node in ast.walk(statement):
                if isinstance(node, ast.Call) and self._is_layer_call(node) and isinstance(node.args[0], ast.Name):
                    yield node.args[0].id
            if not isinstance(statement, ast.Expr | ast.Assign | ast.Return):
                return

    def _is_layer_call(self, node: ast.Call) -> bool:
        func = node.func
        of_self = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self"
        return of_self and isinstance(func, ast.Attribute) and func.attr in self.layers and len(node.args) == 1

    def is_tensor(self, node: ast.expr) -> bool:
        """Whether an expression is a tensor for sure."""
        match node:
            case ast.Name(id=name):
                return name in self.names
            case ast.Call(func=func):
                if self._is_layer_call(node) or is_function(self._full(func)):
                    return True
                return isinstance(func, ast.Attribute) and func.attr in _METHODS and self.is_tensor(func.value)
            case ast.BinOp(left=left, right=right):
                return self.is_tensor(left) or self.is_tensor(right)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.is_tensor(operand)
        return False

    def _full(self, func: ast.expr) -> str | None:
        if not isinstance(func, ast.Name | ast.Attribute):
            return None
        return self.source.dotted(cst.parse_expression(ast.unparse(func)))


def layer_attributes(source: Source, owner: ast.ClassDef) -> dict[str, tuple[str, ast.Call]]:
    """Attributes that only ``__init__`` gives, once, and that are a layer of `LAYERS`: its class and constructor."""
    if not source.is_module_class(owner):
        return {}
    stores = Counter(
        node.attr
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    )
    calls: dict[str, tuple[str, ast.Call]] = {}
    for item in owner.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            for statement in item.body:
                match statement:
                    case ast.Assign(
                        targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=ast.Call() as call
                    ) if stores[name] == 1 and _layer(source, call) in LAYERS:
                        calls[name] = _layer(source, call), call
    return calls


def _layer(source: Source, value: ast.expr) -> str:
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name | ast.Attribute):
        return ""
    home, _, name = (source.dotted(cst.parse_expression(ast.unparse(value.func))) or "").rpartition(".")
    return name if home == "torch.nn" else ""


class TensorPlaces(cst.CSTTransformer):
    """Base of transforms that ask whether an expression of the outermost function around them is a tensor."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.owner: ast.ClassDef | None = None
        self.depth = 0
        self.tensors: Tensors | None = None

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        if not self.depth:
            self.owner = self.source.classes.get(node.name.value)

    def leave_ClassDef(self, original_node: cst.ClassDef, updated_node: cst.ClassDef) -> cst.ClassDef:
        if not self.depth:
            self.owner = None
        return updated_node

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        if not self.depth:
            function = ast.parse(cst.Module([]).code_for_node(node)).body[0]
            assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
            plain = isinstance(function, ast.FunctionDef)
            self.tensors = Tensors(self.source, function, self.owner) if plain else None
        self.depth += 1

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self.depth -= 1
        if not self.depth:
            self.tensors = None
        return updated_node

    def sure(self, node: cst.BaseExpression) -> bool:
        """Whether an expression is a tensor for sure."""
        return self.tensors is not None and self.tensors.is_tensor(as_ast(node))


def as_ast(node: cst.BaseExpression) -> ast.expr:
    """The same expression as Python's own tree."""
    return ast.parse(f"({cst.Module([]).code_for_node(node)})", mode="eval").body
