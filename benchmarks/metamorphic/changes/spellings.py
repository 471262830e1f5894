"""Functions, methods, layers and operators that compute the same."""

from __future__ import annotations

import random
from collections.abc import Sequence

import libcst as cst

from benchmarks.metamorphic.change import change
from benchmarks.metamorphic.source import Source
from benchmarks.metamorphic.tensors import TensorPlaces

from .imports import FUNCTIONAL

_METHODS = frozenset({
    "relu", "tanh", "sigmoid", "softmax", "log_softmax", "exp", "log", "sqrt", "rsqrt", "flatten", "transpose",
    "matmul", "bmm", "sum", "mean", "clamp", "abs", "unsqueeze", "squeeze", "chunk", "cumsum", "argmax", "sin", "cos",
    "masked_fill", "gather", "roll", "topk", "prod", "norm", "var", "std",
})  # fmt: skip
"""Functions whose first argument is a tensor, and that tensors have as methods with the other arguments."""
_FUNCTIONS = _METHODS - {"log_softmax", "norm", "std", "var"}
_LAYERS = {
    "relu": "ReLU", "gelu": "GELU", "silu": "SiLU", "tanh": "Tanh", "sigmoid": "Sigmoid", "softplus": "Softplus",
    "elu": "ELU", "leaky_relu": "LeakyReLU", "max_pool2d": "MaxPool2d", "avg_pool2d": "AvgPool2d",
    "adaptive_avg_pool2d": "AdaptiveAvgPool2d", "hardswish": "Hardswish", "relu6": "ReLU6", "softmax": "Softmax",
    "log_softmax": "LogSoftmax", "mish": "Mish",
}  # fmt: skip
"""Functions, and the layers with the same other arguments in the same order."""
_IN_PLACE = frozenset({"inplace", "out", "dtype", "return_indices", "_stacklevel"})
_OPERATORS: dict[type[cst.BaseBinaryOp], str] = {
    cst.Add: "add", cst.Subtract: "sub", cst.Multiply: "mul", cst.Divide: "div", cst.MatrixMultiply: "matmul",
    cst.Power: "pow",
}  # fmt: skip
_AUGMENTED: dict[type[cst.BaseAugOp], str] = {
    cst.AddAssign: "add_", cst.SubtractAssign: "sub_", cst.MultiplyAssign: "mul_", cst.DivideAssign: "div_",
}  # fmt: skip


def _plain_first(args: Sequence[cst.Arg]) -> bool:
    return bool(args) and args[0].keyword is None and not args[0].star


def _named(source: Source, full: str) -> str | None:
    """The name that a module has in the file."""
    return next((name for name, meaning in source.imports.items() if meaning == full), None)


def _call(function: str, args: Sequence[cst.Arg]) -> cst.Call:
    return cst.Call(cst.parse_expression(function), list(args))


def _bracketed(node: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(node, cst.Name | cst.Attribute | cst.Call | cst.Subscript) or node.lpar:
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _given(args: Sequence[cst.Arg]) -> set[str]:
    return {a.keyword.value for a in args if a.keyword is not None}


class _ToMethods(cst.CSTTransformer):
    def __init__(self, source: Source) -> None:
        self.source = source

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        home, _, name = (self.source.dotted(original_node.func) or "").rpartition(".")
        args = updated_node.args
        if home not in ("torch", FUNCTIONAL) or name not in _METHODS or not _plain_first(args):
            return updated_node
        if _given(args) & {"inplace", "out", "_stacklevel"} or home == FUNCTIONAL and len(args) > 2:
            return updated_node
        if name == "relu" and len(args) > 1:
            return updated_node
        return updated_node.with_changes(func=cst.Attribute(_bracketed(args[0].value), cst.Name(name)), args=args[1:])


@change("functions to methods")
def functions_to_methods(source: Source, rng: random.Random) -> cst.Module:
    """x.relu() for torch.relu(x) and F.relu(x)."""
    return source.module.visit(_ToMethods(source))


class _ToFunctions(TensorPlaces):
    def __init__(self, source: Source, torch: str) -> None:
        super().__init__(source)
        self.torch = torch

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        func = original_node.func
        known = isinstance(func, cst.Attribute) and func.attr.value in _FUNCTIONS and self.sure(func.value)
        if not known or not isinstance(updated_node.func, cst.Attribute):
            return updated_node
        first = cst.Arg(updated_node.func.value)
        return _call(f"{self.torch}.{updated_node.func.attr.value}", [first, *updated_node.args])


@change("methods to functions")
def methods_to_functions(source: Source, rng: random.Random) -> cst.Module:
    """torch.transpose(x, 1, 2) for x.transpose(1, 2)."""
    torch = _named(source, "torch")
    return source.module if torch is None else source.module.visit(_ToFunctions(source, torch))


class _ToLayers(cst.CSTTransformer):
    def __init__(self, source: Source, nn: str) -> None:
        self.source = source
        self.nn = nn

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        home, _, name = (self.source.dotted(original_node.func) or "").rpartition(".")
        args = updated_node.args
        if (
            home not in ("torch", FUNCTIONAL)
            or name not in _LAYERS
            or not _plain_first(args)
            or any(a.star for a in args)
        ):
            return updated_node
        if _given(args) & _IN_PLACE or "softmax" in name and not (_given(args) == {"dim"} and len(args) == 2):
            return updated_node
        return cst.Call(_call(f"{self.nn}.{_LAYERS[name]}", args[1:]), [cst.Arg(args[0].value)])


@change("functions to layers")
def functions_to_layers(source: Source, rng: random.Random) -> cst.Module:
    """nn.ReLU()(x) for F.relu(x)."""
    nn = _named(source, "torch.nn")
    return source.module if nn is None else source.module.visit(_ToLayers(source, nn))


class _FromLayers(TensorPlaces):
    """Calls of activation layers that have no settings; the layers stay where they are."""

    def __init__(self, source: Source, functional: str) -> None:
        super().__init__(source)
        self.functional = functional

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        match original_node:
            case cst.Call(
                func=cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value=attribute)),
                args=[cst.Arg() as only],
            ) if self.tensors is not None and attribute in self.tensors.layers and not only.star:
                kind, made = self.tensors.layers[attribute]
                function = next((f for f, layer in _LAYERS.items() if layer == kind), None)
                if function in ("relu", "gelu", "silu", "tanh", "sigmoid") and not made.args and not made.keywords:
                    return _call(f"{self.functional}.{function}", [cst.Arg(updated_node.args[0].value)])
        return updated_node


@change("layers to functions")
def layers_to_functions(source: Source, rng: random.Random) -> cst.Module:
    """F.relu(x) for self.relu(x)."""
    functional = _named(source, FUNCTIONAL) or (f"{nn}.functional" if (nn := _named(source, "torch.nn")) else None)
    return source.module if functional is None else source.module.visit(_FromLayers(source, functional))


class _ToCalls(TensorPlaces):
    def __init__(self, source: Source, torch: str) -> None:
        super().__init__(source)
        self.torch = torch

    def leave_BinaryOperation(
        self, original_node: cst.BinaryOperation, updated_node: cst.BinaryOperation
    ) -> cst.BaseExpression:
        name = _OPERATORS.get(type(original_node.operator))
        if name is None or not self.sure(original_node.left):
            return updated_node
        return _call(f"{self.torch}.{name}", [cst.Arg(updated_node.left), cst.Arg(updated_node.right)])

    def leave_UnaryOperation(
        self, original_node: cst.UnaryOperation, updated_node: cst.UnaryOperation
    ) -> cst.BaseExpression:
        if not isinstance(original_node.operator, cst.Minus) or not self.sure(original_node.expression):
            return updated_node
        return _call(f"{self.torch}.neg", [cst.Arg(updated_node.expression)])


@change("operators to functions")
def operators_to_functions(source: Source, rng: random.Random) -> cst.Module:
    """torch.add(a, b) for a + b, torch.neg(x) for -x, torch.matmul(a, b) for a @ b."""
    torch = _named(source, "torch")
    return source.module if torch is None else source.module.visit(_ToCalls(source, torch))


_SIGNS = {
    "torch.add": cst.Add, "torch.sub": cst.Subtract, "torch.mul": cst.Multiply, "torch.div": cst.Divide,
    "torch.matmul": cst.MatrixMultiply, "torch.bmm": cst.MatrixMultiply, "torch.pow": cst.Power,
}  # fmt: skip
_METHOD_SIGNS = {"matmul": cst.MatrixMultiply, "mul": cst.Multiply, "add": cst.Add, "pow": cst.Power, "div": cst.Divide}


class _ToOperators(TensorPlaces):
    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        args = updated_node.args
        if any(a.keyword is not None or a.star for a in args):
            return updated_node
        sign = _SIGNS.get(self.source.dotted(original_node.func) or "")
        operands = [a.value for a in args]
        if sign is None and isinstance(original_node.func, cst.Attribute) and self.sure(original_node.func.value):
            sign = _METHOD_SIGNS.get(original_node.func.attr.value)
            assert isinstance(updated_node.func, cst.Attribute)
            operands = [updated_node.func.value, *operands]
        if sign is None or len(operands) != 2:
            return updated_node
        left, right = map(_bracketed, operands)
        return cst.BinaryOperation(left, sign(), right, lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


@change("functions to operators")
def functions_to_operators(source: Source, rng: random.Random) -> cst.Module:
    """A @ b for torch.matmul(a, b), a * b for torch.mul(a, b)."""
    return source.module.visit(_ToOperators(source))


class _ToInPlace(TensorPlaces):
    """Augmented assignments to what a statement before in the block made a tensor."""

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        known: set[str] = set()
        body: list[cst.BaseStatement] = []
        for before, statement in zip(original_node.body, updated_node.body, strict=True):
            match before:
                case cst.SimpleStatementLine(
                    body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value)]
                ):
                    known = known | {name} if self.sure(value) else known - {name}
                case cst.SimpleStatementLine(body=[cst.AugAssign(target=cst.Name(value=name)) as augmented]):
                    method = _AUGMENTED.get(type(augmented.operator))
                    if name in known and method is not None:
                        call = cst.Call(cst.Attribute(cst.Name(name), cst.Name(method)), [cst.Arg(augmented.value)])
                        statement = statement.with_changes(body=[cst.Expr(call)])
                case cst.SimpleStatementLine():
                    pass
                case _:
                    known = set()
            body.append(statement)
        return updated_node.with_changes(body=body)


@change("augmented assignments to methods")
def augmented_to_methods(source: Source, rng: random.Random) -> cst.Module:
    """x.add_(y) for x += y, where x is a tensor."""
    return source.module.visit(_ToInPlace(source))
