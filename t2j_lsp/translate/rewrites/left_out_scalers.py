"""Gradient scalers that functions are handed: ``train(model, loader, optimizer, scaler)``.

They guard float16, and the loop runs in float32, so that a loop goes without. Where a file that has gaps hands its
scaler on, saves its state in checkpoints, or unscales under a condition, it is read as if there were none: neither the
scaler nor the parameters that it is handed to, nor its part of what is saved and loaded.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp import symbols
from t2j_lsp.contract import Finding, Severity
from t2j_lsp.symbols import ancestors, named_parameters
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function, defaults
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Function, FunctionInfo
from t2j_lsp.translate.rule.facts import Object
from t2j_lsp.translate.source.rearranged import Edits, Rearranged, RearrangedText
from t2j_lsp.translate.training.steps.outside_updates import SCALER

from .left_out import ObjectLeftOut, Stays, is_plain, only_reads

_GONE = frozenset({"update", "unscale_"})


def with_scalers_left_out(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text without gradient scalers; None if none is handed on, or one is used otherwise."""
    held = [n for n in inference.source.nodes if isinstance(n, ast.Name | ast.Attribute) and is_scaler(inference, n)]
    if not held or not list(gaps):
        return None
    try:
        edits = _Scalers(inference, held).edits()
    except Stays:
        return None
    parents = inference.source.parents
    made = (n.value for one in held if isinstance(n := parents.get(one), ast.Assign))
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
    def __init__(self, inference: Inference, held: list[ast.Name | ast.Attribute]) -> None:
        super().__init__(inference)
        self.held = held
        self.branches: list[ast.If] = []
        self.parameters: dict[FunctionInfo, set[str]] = {}
        self.saves = False
        """Whether its state is saved or loaded."""
        self.unscales = False
        """Whether it unscales under a condition, to clip: ``if clip: scaler.unscale_(optimizer); ...``."""

    def edits(self) -> Edits:
        """What goes. Raises Stays."""
        called = {ast.unparse(node) for node in self.held}
        for node in self.source.nodes:
            if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in called and node not in self.held:
                raise Stays  # it may be something else as well
        for node in self.held:
            self._place(node)
        if not (self.parameters or self.saves or self.unscales):
            raise Stays
        for info, own in self.parameters.items():
            self._check(info, own)
        for branch in self.branches:
            if not self.is_gone(branch):
                self._open(branch)
        return self.made_edits()

    def _place(self, node: ast.Name | ast.Attribute) -> None:
        """One place in which a scaler is named."""
        if self.is_gone(node):
            return
        parent = self.parents.get(node)
        match parent:
            case ast.Assign(targets=[_], value=ast.Call()) if isinstance(node.ctx, ast.Store):
                self.drop_or_pass(parent)
            case ast.Attribute(attr=attr):
                self._method(attr, parent)
            case ast.Call() if node in parent.args:
                self._handed(parent, node)
            case ast.keyword():
                call = self.parents.get(parent)
                if not isinstance(call, ast.Call):
                    raise Stays
                self._handed(call, parent)
            case ast.Compare(ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
                self._condition(parent)
            case ast.If() | ast.IfExp() if parent.test is node:
                self._condition(node)
            case _:
                raise Stays

    def _condition(self, test: ast.expr) -> None:
        """Whether there is a scaler: yes."""
        outer = self.parents.get(test)
        if isinstance(outer, ast.If) and outer.test is test:
            self.branches.append(outer)
        else:
            self.instead[self.source.span(test)] = "True"

    def _method(self, attr: str, node: ast.Attribute) -> None:
        """``scaler.scale(loss)`` is the loss, and ``scaler.step(optimizer)`` a step of the optimizer."""
        call = self.parents.get(node)
        if not isinstance(call, ast.Call) or call.func is not node or call.keywords:
            raise Stays
        statement = self.parents.get(call)
        if attr in _GONE and isinstance(statement, ast.Expr):
            self.unscales |= attr == "unscale_" and isinstance(self.parents.get(statement), ast.If)
            self.drop_or_pass(statement)
        elif attr == "scale" and len(call.args) == 1:
            text = self.source.segment(call.args[0])
            whole = isinstance(call.args[0], ast.Name | ast.Attribute | ast.Call)
            self.instead[self.source.span(call)] = text if whole else f"({text})"
        elif attr == "step" and len(call.args) == 1 and isinstance(statement, ast.Expr):
            self.instead[self.source.span(call)] = f"{self.source.segment(call.args[0])}.step()"
        elif attr == "load_state_dict" and isinstance(statement, ast.Expr) and all(map(only_reads, call.args)):
            self.saves = True
            self.drop_with_branches(statement)
        elif attr == "state_dict" and not call.args:
            self.saves = True
            self._saved(call)
        else:
            raise Stays

    def _saved(self, state: ast.expr) -> None:
        """``{"scaler": scaler.state_dict(), ...}`` and ``saved["scaler"] = scaler.state_dict()``, without it."""
        around = self.parents.get(state)
        if isinstance(around, ast.IfExp) and around.body is state and is_plain(around.test):
            state, around = around, self.parents.get(around)
        match around:
            case ast.Dict():
                self.without_entry(around, state)
            case ast.Assign(targets=[ast.Subscript() as target]) if only_reads(target):
                self.drop_with_branches(around)
            case _:
                raise Stays

    def _handed(self, call: ast.Call, argument: ast.expr | ast.keyword) -> None:
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
        if len(own) != 1 or arguments.posonlyargs or arguments.vararg or arguments.kwarg:
            raise Stays
        parameter = next(a for a in named_parameters(info.node) if a.arg in own)
        if parameter in dict(defaults(info)):
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
            if len(given) != 1 or given[0] not in self.held:
                raise Stays
        for node in symbols.walk(info.node):
            if isinstance(node, ast.Name) and node.id == parameter.arg and node not in self.held:
                raise Stays
        self.without_parameter(info, parameter)

    def _open(self, branch: ast.If) -> None:
        """The statements of ``if scaler is not None:``, without it."""
        if any(other in ancestors(branch, self.parents) for other in self.branches) or not self._is_first(branch):
            raise Stays
        self.open(branch)

    def _is_first(self, branch: ast.If) -> bool:
        """Whether it is no ``elif``, and only such names are read in the branch that goes."""
        parent = self.parents.get(branch)
        return not (isinstance(parent, ast.If) and parent.orelse == [branch])
