"""Gradient scalers that functions are handed: ``train(model, loader, optimizer, scaler)``.

They guard float16, and the loop runs in float32, so that a loop goes without. Where a file that has gaps hands its
scaler on, it is read as if there were none: neither the scaler nor the parameters that it is handed to.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp import symbols
from t2j_lsp.contract import Finding, Severity
from t2j_lsp.symbols import ancestors, named_parameters
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Function, FunctionInfo
from t2j_lsp.translate.rule.facts import Object
from t2j_lsp.translate.source.rearranged import Edits, Rearranged, RearrangedText
from t2j_lsp.translate.training.steps.outside_updates import SCALER

from .left_out import ObjectLeftOut, Stays

_GONE = frozenset({"update", "unscale_"})


def with_scalers_left_out(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text without gradient scalers; None if none is handed on, or one is used otherwise."""
    names = [n for n in inference.source.nodes if isinstance(n, ast.Name) and is_scaler(inference, n)]
    if not names or not list(gaps):
        return None
    try:
        edits = _Scalers(inference, names).edits()
    except Stays:
        return None
    parents = inference.source.parents
    made = (n.value for name in names if isinstance(n := parents.get(name), ast.Assign))
    return without_scalers(inference, edits, made)


def without_scalers(inference: Inference, edits: Edits, made: Iterable[ast.expr | ast.arg]) -> RearrangedText:
    """A text in which these are made no more, each with the note that the loop goes without."""
    name, source = "torch.amp.GradScaler", inference.source
    notes = (Finding(source.contract_span(n), name, "note", Severity.NOTE, SCALER) for n in made)
    return RearrangedText((Rearranged.of(source.text, edits),), tuple(notes))


def is_scaler(inference: Inference, node: ast.AST) -> bool:
    fact = inference.fact(node)
    return isinstance(fact, Object) and fact.kind == "scaler"


class _Scalers(ObjectLeftOut):
    def __init__(self, inference: Inference, names: list[ast.Name]) -> None:
        super().__init__(inference)
        self.names = names
        self.branches: list[ast.If] = []
        self.parameters: dict[FunctionInfo, set[str]] = {}

    def edits(self) -> Edits:
        """What goes. Raises Stays."""
        called = {name.id for name in self.names}
        for node in self.source.nodes:
            if isinstance(node, ast.Name) and node.id in called and node not in self.names:
                raise Stays  # it may be something else as well
        for name in self.names:
            self._name(name)
        if not self.parameters:
            raise Stays
        for info, own in self.parameters.items():
            self._check(info, own)
        for branch in self.branches:
            self._open(branch)
        return self.made_edits()

    def _name(self, name: ast.Name) -> None:
        """One place in which a scaler is named."""
        parent = self.parents.get(name)
        match parent:
            case ast.Assign(targets=[ast.Name()], value=ast.Call()) if isinstance(name.ctx, ast.Store):
                self.drop(parent)
            case ast.Attribute(attr=attr):
                self._method(attr, parent)
            case ast.Call() if name in parent.args:
                self._handed(parent, name)
            case ast.keyword():
                call = self.parents.get(parent)
                if not isinstance(call, ast.Call):
                    raise Stays
                self._handed(call, parent)
            case ast.Compare(ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
                outer = self.parents.get(parent)
                if isinstance(outer, ast.If) and outer.test is parent:
                    self.branches.append(outer)
                else:
                    self.instead[self.source.span(parent)] = "True"
            case ast.If() if parent.test is name:
                self.branches.append(parent)
            case _:
                raise Stays

    def _method(self, attr: str, node: ast.Attribute) -> None:
        """``scaler.scale(loss)`` is the loss, and ``scaler.step(optimizer)`` a step of the optimizer."""
        call = self.parents.get(node)
        if not isinstance(call, ast.Call) or call.func is not node or call.keywords:
            raise Stays
        statement = self.parents.get(call)
        if attr in _GONE and isinstance(statement, ast.Expr):
            self.drop(statement)
        elif attr == "scale" and len(call.args) == 1:
            text = self.source.segment(call.args[0])
            whole = isinstance(call.args[0], ast.Name | ast.Attribute | ast.Call)
            self.instead[self.source.span(call)] = text if whole else f"({text})"
        elif attr == "step" and len(call.args) == 1 and isinstance(statement, ast.Expr):
            self.instead[self.source.span(call)] = f"{self.source.segment(call.args[0])}.step()"
        else:
            raise Stays

    def _handed(self, call: ast.Call, argument: ast.Name | ast.keyword) -> None:
        """A scaler as an argument of a function of the file."""
        fact = self.inference.fact(call.func)
        if not isinstance(fact, Function) or fact.info.external or fact.info.owner is not None:
            raise Stays
        value = argument.value if isinstance(argument, ast.keyword) else argument
        bound = [parameter.arg for parameter, given in bound_arguments(call, fact.info) if given is value]
        if len(bound) != 1 or any(isinstance(a, ast.Starred) for a in call.args):
            raise Stays
        self.parameters.setdefault(fact.info, set()).add(bound[0])
        self.without(argument, [*call.args, *call.keywords])

    def _check(self, info: FunctionInfo, own: set[str]) -> None:
        """Raises Stays unless every call hands a scaler to a parameter, and only that; then the parameter goes."""
        arguments = info.node.args
        everything = named_parameters(info.node)
        if len(own) != 1 or arguments.posonlyargs or arguments.kwonlyargs:
            raise Stays
        parameter = next(a for a in everything if a.arg in own)
        has_default = everything.index(parameter) >= len(everything) - len(arguments.defaults)
        if has_default or parameter.annotation is not None or arguments.vararg or arguments.kwarg:
            raise Stays
        uses = [n for n in self.source.nodes if isinstance(n, ast.Name) and n.id == info.name]
        for use in uses:
            call = self.parents.get(use)
            if (
                not isinstance(call, ast.Call)
                or call.func is not use
                or called_function(self.inference.fact(use)) is not info
            ):
                raise Stays
            given = [value for one, value in bound_arguments(call, info) if one.arg == parameter.arg]
            if len(given) != 1 or given[0] not in self.names:
                raise Stays
        for node in symbols.walk(info.node):
            if isinstance(node, ast.Name) and node.id == parameter.arg and node not in self.names:
                raise Stays
        self.without(parameter, everything)

    def _open(self, branch: ast.If) -> None:
        """The statements of ``if scaler is not None:``, without it."""
        if any(other in ancestors(branch, self.parents) for other in self.branches) or not self._is_first(branch):
            raise Stays
        self.open(branch)

    def _is_first(self, branch: ast.If) -> bool:
        """Whether it is no ``elif``, and only such names are read in the branch that goes."""
        parent = self.parents.get(branch)
        return not (isinstance(parent, ast.If) and parent.orelse == [branch])
