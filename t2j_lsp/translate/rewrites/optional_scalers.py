"""Gradient scalers that a program makes only if it is asked to: ``scaler = GradScaler() if args.amp else None``.

Where a file that has gaps does so, it is read as if there were none: of ``if scaler is not None: ... else: ...`` the
branch without a scaler stays, if the other one differs from it by nothing but the scaler and its autocast. The loop
runs in float32, where both are the same. So where only functions know of one (``def train(model, scaler=None)``), whose
parameter stays for those who call them.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator, Sequence

from t2j_lsp.contract import Finding
from t2j_lsp.symbols import named_parameters, walk
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function, defaults
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.source.rearranged import Edits, RearrangedText

from .left_out import ObjectLeftOut, Stays, is_plain
from .left_out_scalers import is_scaler, without_scalers

_GONE = frozenset({"update", "unscale_", "load_state_dict"})
_METHODS = frozenset({"scale", "step", "update"})


def with_optional_scalers_left_out(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which no scaler is ever made; None if none may be missing, or it is used otherwise."""
    made = [n for n in inference.source.nodes if isinstance(n, ast.Call) and is_scaler(inference, n)]
    given = [] if made else list(_given(inference))
    if not (made or given) or not list(gaps):
        return None
    try:
        edits = _OptionalScalers(inference, made, given).edits()
    except Stays:
        return None
    return without_scalers(inference, edits, [*made, *given])


def _given(inference: Inference) -> Iterator[ast.arg]:
    """Parameters that are a scaler or None, in a file that makes none."""
    for info in inference.functions.values():
        called: dict[str, set[str]] = {}
        for node in walk(info.node):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                called.setdefault(node.value.id, set()).add(node.attr)
        missing = {parameter for parameter, default in defaults(info) if _is_none(default)}
        yield from (p for p in named_parameters(info.node) if p in missing and called.get(p.arg, set()) >= _METHODS)


def _text(node: ast.AST) -> str:
    """A variable or an attribute of ``self``; empty for others."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id="self"), attr=attr):
            return f"self.{attr}"
    return ""


def _is_none(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


class _OptionalScalers(ObjectLeftOut):
    def __init__(self, inference: Inference, made: list[ast.Call], given: list[ast.arg]) -> None:
        super().__init__(inference)
        self.made = made
        self.names = {parameter.arg for parameter in given}
        """Variables and attributes of ``self`` that hold the scaler or None, wherever the file has one of that name."""
        self.parameters: dict[FunctionInfo, set[str]] = {}
        self.branches: list[tuple[ast.If, bool]] = []
        """Branches on a scaler, and whether their body is what runs with one."""
        self.may_be_none = bool(given)

    def edits(self) -> Edits:
        """What goes, and what stands for it. Raises Stays."""
        for call in self.made:
            self.names.add(self._target(call))
        while self._follow():
            pass
        held = list(self._held())
        for node in held:
            self._place(node)
        for info, own in self.parameters.items():
            self._drop_parameters(info, own)
        if not self.may_be_none:
            raise Stays
        without = _Without(self)
        for branch, with_one in self.branches:
            self._take(branch, with_one, without)
        return self.made_edits()

    def _target(self, call: ast.Call) -> str:
        """What a scaler is assigned to. Raises Stays."""
        value: ast.AST = call
        if isinstance(choice := self.parents.get(value), ast.IfExp):
            value = choice
        match self.parents.get(value):
            case ast.Assign(targets=[ast.Name() | ast.Attribute(value=ast.Name(id="self")) as target]):
                return ast.unparse(target)
        raise Stays

    def _held(self) -> Iterator[ast.Name | ast.Attribute]:
        for node in self.source.nodes:
            if isinstance(node, ast.Name | ast.Attribute) and _text(node) in self.names:
                yield node

    def _follow(self) -> bool:
        """Parameters that are handed a scaler hold one, too; whether there are new ones."""
        before = len(self.names)
        for node in list(self._held()):
            call, argument = self.parents.get(node), node
            if isinstance(call, ast.keyword):
                call = self.parents.get(call)
            if not isinstance(call, ast.Call) or call.func is node:
                continue
            info = called_function(self.inference.fact(call.func))
            if info is None or info.external:
                raise Stays
            bound = [parameter.arg for parameter, given in bound_arguments(call, info) if given is argument]
            if len(bound) != 1:
                raise Stays
            self.names.add(bound[0])
            self.parameters.setdefault(info, set()).add(bound[0])
        return len(self.names) > before

    # --- places in which it is named ------------------------------------------------------------------------------

    def _place(self, node: ast.Name | ast.Attribute) -> None:
        parent = self.parents.get(node)
        match parent:
            case ast.Assign(targets=[_]) if isinstance(node.ctx, ast.Store):
                self._check_value(parent.value)
                self._drop_store(parent)
            case ast.Compare(ops=[ast.IsNot() | ast.Is() as op], comparators=[right]) if _is_none(right):
                self._condition(parent, isinstance(op, ast.IsNot))
            case ast.If() if parent.test is node:
                self._condition(node, True)
            case ast.UnaryOp(op=ast.Not()):
                self._condition(parent, False)
            case ast.Attribute() | ast.Call() | ast.keyword():
                pass  # it stands in a branch that goes, or an argument that does: looked at there
            case _:
                raise Stays

    def _check_value(self, value: ast.expr) -> None:
        """Raises Stays unless a variable is given a scaler or None, or one that is another's."""
        if isinstance(value, ast.IfExp):
            self._check_value(value.body)
            self._check_value(value.orelse)
        elif _is_none(value):
            self.may_be_none = True
        elif value not in self.made and _text(value) not in self.names:
            raise Stays

    def _drop_store(self, statement: ast.Assign) -> None:
        """The assignment goes, and the branch with it that holds nothing else."""
        around = self.parents.get(statement)
        if isinstance(around, ast.If) and not around.orelse and around.body == [statement] and is_plain(around.test):
            self.may_be_none = True
            self.drop_or_pass(around)
        elif isinstance(around, ast.If) and around.orelse and self._only_stores(around) and is_plain(around.test):
            if statement is around.body[0]:
                self.drop_or_pass(around)
        else:
            self.drop_or_pass(statement)

    def _only_stores(self, branch: ast.If) -> bool:
        return all(
            isinstance(s, ast.Assign) and _text(s.targets[0]) in self.names for s in [*branch.body, *branch.orelse]
        )

    def _condition(self, test: ast.expr, with_one: bool) -> None:
        """``scaler is not None``: of a branch, the other one stays; elsewhere, it is False."""
        outer = self.parents.get(test)
        if isinstance(outer, ast.If) and outer.test is test:
            self.branches.append((outer, with_one))
        elif isinstance(outer, ast.keyword) and self._is_autocast(self.parents.get(outer)):
            self.put(test, str(not with_one))
        else:
            raise Stays

    def _is_autocast(self, node: ast.AST | None) -> bool:
        fact = self.inference.fact(node.func) if isinstance(node, ast.Call) else None
        return isinstance(fact, Qual) and fact.name in names_with(Trait.AUTOCAST)

    # --- branches -------------------------------------------------------------------------------------------------

    def _take(self, branch: ast.If, with_one: bool, without: _Without) -> None:
        """The branch without a scaler stands alone, if the other does the same. Raises Stays."""
        around = self.parents.get(branch)
        if isinstance(around, ast.If) and around.orelse == [branch]:
            raise Stays  # an elif
        scaled, plain = (branch.body, branch.orelse) if with_one else (branch.orelse, branch.body)
        if without.text(scaled) != without.text(plain):
            raise Stays
        if not plain:
            self.drop_or_pass(branch)
        elif self.source.text.startswith("elif", self.source.span(plain[0])[0]):
            raise Stays
        else:
            self.open(branch, plain)

    # --- arguments ------------------------------------------------------------------------------------------------

    def _drop_parameters(self, info: FunctionInfo, own: set[str]) -> None:
        """A parameter goes that holds a scaler or None wherever the function is called. Raises Stays."""
        everything = named_parameters(info.node)
        arguments = info.node.args
        if len(own) != 1 or arguments.posonlyargs or arguments.vararg or arguments.kwarg:
            raise Stays
        parameter = next(a for a in everything if a.arg in own)
        default = dict(defaults(info)).get(parameter)
        if default is not None and not _is_none(default):
            raise Stays
        self.may_be_none |= default is not None
        for use in [n for n in self.source.nodes if _names(n, info.name)]:
            call = self.parents.get(use)
            if not isinstance(call, ast.Call) or call.func is not use:
                raise Stays
            if called_function(self.inference.fact(use)) is not info:
                raise Stays
            self._drop_argument(call, info, parameter)
        self.without_parameter(info, parameter)

    def _drop_argument(self, call: ast.Call, info: FunctionInfo, parameter: ast.arg) -> None:
        if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
            raise Stays
        for one, given in bound_arguments(call, info):
            if one is parameter:
                if not _is_none(given) and _text(given) not in self.names:
                    raise Stays
                listed = [*call.args, *call.keywords]
                place = next(a for a in listed if a is given or isinstance(a, ast.keyword) and a.value is given)
                self.may_be_none |= _is_none(given)
                self.without(place, listed)


class _Without(ast.NodeTransformer):
    """Statements as they are without a scaler and its autocast."""

    def __init__(self, scalers: _OptionalScalers) -> None:
        self.names = scalers.names
        self.autocasts = {ast.unparse(n) for n in scalers.source.nodes if scalers._is_autocast(n)}

    def text(self, statements: Sequence[ast.stmt]) -> str:
        """What the statements say. Raises Stays where they use a scaler otherwise."""
        module = self.visit(ast.Module([copy.deepcopy(s) for s in statements], []))
        if any(_text(n) in self.names for n in walk(module)):
            raise Stays
        return "\n".join(map(ast.dump, module.body))

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        if self._method(node.value) in _GONE:
            return None
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        """``checkpoint["scaler"] = scaler.state_dict()`` goes."""
        return None if self._method(node.value) == "state_dict" else self.generic_visit(node)

    def visit_With(self, node: ast.With) -> ast.AST | list[ast.AST]:
        self.generic_visit(node)
        if all(ast.unparse(item.context_expr) in self.autocasts for item in node.items):
            return list(node.body)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match self._method(node), node.args:
            case "scale", [loss] if not node.keywords:
                return loss
            case "step", [optimizer] if not node.keywords:
                return ast.Call(ast.Attribute(optimizer, "step", ast.Load()), [], [])
        return node

    def _method(self, node: ast.expr) -> str | None:
        """The method of a scaler that is called."""
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr=attr)) if _text(owner) in self.names:
                return attr
        return None


def _names(node: ast.AST, name: str) -> bool:
    """Whether a function is named, on its own or as a method."""
    return isinstance(node, ast.Name) and node.id == name or isinstance(node, ast.Attribute) and node.attr == name
