"""What a parameter's default says of it: its kind, and not that it is this one; callers may give another."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.rule.definitions import Class, FunctionInfo, is_module_class
from t2j_lsp.translate.rule.facts import (
    FLOAT,
    NONE,
    UNKNOWN,
    AnyModule,
    Fact,
    ModuleClass,
    Object,
    Partial,
    Qual,
    Scalar,
    Tensor,
)
from t2j_lsp.translate.rule.join import join
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.names import is_dtype, is_torch
from t2j_lsp.translate.rule.optimizer_values import transformation_of
from t2j_lsp.translate.rule.record import REGISTRY

_ANY_CLASS = ModuleClass()
_TENSORS = ("same", "tensor", "float tensor")
_NUMBERS = ("inf", "nan", "pi", "e", "eps")


def said_class(stated: Fact, default: Fact, name: str, info: FunctionInfo) -> bool:
    """Whether an annotation says a module of what is a class of modules: ``norm: nn.Module = nn.LayerNorm``.

    So it does where the default is None, and a constructor makes layers of it: ``self.norm = norm(dim)``.
    """
    if not isinstance(stated, AnyModule):
        return False
    return is_module_class(default, LAYERS) or default == NONE and info.name == "__init__" and _is_made(name, info)


def _is_made(name: str, info: FunctionInfo) -> bool:
    """Whether what a call of a parameter gives is kept, and the call is given no value that another one gave."""
    given = {a.arg for a in symbols.named_parameters(info.node)}
    for node in symbols.walk(info.node):
        match node:
            case ast.Assign(targets=[ast.Attribute()], value=ast.Call(func=ast.Name(id=called), args=arguments)):
                if called == name and all(isinstance(a, ast.Name) and a.id in given for a in arguments):
                    return True
    return False


def of_default(fact: Fact) -> Fact:
    """The fact of a parameter with this default."""
    match fact:
        case Scalar():
            return Scalar(fact.kind)
        case Class() if fact.info.is_module:
            return join(fact, _ANY_CLASS)
        case Qual() if fact.name in LAYERS:
            return join(fact, _ANY_CLASS)
        case Qual() if transformation_of(fact):
            return UNKNOWN
        case Qual():
            return _of_library(fact.name)
        case Partial(function=Qual() as inner) if inner.name not in LAYERS:
            return _of_library(inner.name)
        case _:
            return fact


def _of_library(name: str) -> Fact:
    """A library's object: some dtype, some function that gives a tensor, a number."""
    if is_dtype(name):
        return Object("dtype")
    if name.rpartition(".")[2] in _NUMBERS:
        return FLOAT
    rule = REGISTRY.get(name) if is_torch(name) else None
    if rule is None or rule.emit is None or rule.signatures[0].parameters is None:
        return UNKNOWN
    return Partial(Tensor(sure=False)) if callable(rule.result) or rule.result in _TENSORS else UNKNOWN
