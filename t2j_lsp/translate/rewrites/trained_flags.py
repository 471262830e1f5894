"""Who asks which parameters are trained, ``if p.requires_grad``, where the file freezes some in plain sight.

JAX's arrays carry no such flag; what a name says takes its place: ``if not name.startswith("features.")``. Where a file
that has gaps asks so, it is read as if it asked for names.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field

from t2j_lsp import symbols
from t2j_lsp.contract import Finding
from t2j_lsp.symbols import FunctionNode, ancestors
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.source.assignments import value_of
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText
from t2j_lsp.translate.source.scopes import is_main
from t2j_lsp.translate.source.text import Source
from t2j_lsp.translate.training.optimizers.frozen import frozen_module

_FLAGS = ("requires_grad", "requires_grad_")


@dataclass
class _TrainedFlags:
    """Which of a module's parameters are trained."""

    none: bool = False
    parts: list[str] = field(default_factory=list)
    """The frozen parts, or those that were made anew behind it where everything else is frozen."""

    def condition(self, name: str) -> str:
        """It as a condition on a parameter's name; "True" and "False" where there is nothing to ask."""
        if not self.parts:
            return str(not self.none)
        dotted = [f'"{part}."' for part in self.parts]
        given = dotted[0] if len(dotted) == 1 else f"({', '.join(dotted)})"
        return f"{'' if self.none else 'not '}{name}.startswith({given})"


@dataclass
class _Walk:
    """A loop or comprehension over the parameters of a module."""

    node: ast.For | ast.comprehension
    module: ast.expr
    name: str
    """The variable for the names; empty where the walk gives none."""


def with_trained_flags_by_name(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which names are asked for; None where the file asks for no flag, or it isn't sure what is frozen."""
    source = inference.source
    if "requires_grad" not in source.words or not any("requires_grad" in gap.name + gap.reason for gap in gaps):
        return None
    freezing = _freezing(inference)
    if not freezing:
        return None
    edits: Edits = []
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and node.attr == "requires_grad" and isinstance(node.ctx, ast.Load):
            walk = _walk(source, node)
            trained = _trained(source, walk, freezing) if walk is not None else None
            if walk is not None and trained is not None:
                edits += _asked_by_name(source, node, walk, trained)
    return RearrangedText.of(source.text, edits)


def _freezing(inference: Inference) -> list[tuple[ast.stmt, ast.expr]] | None:
    """The statements that freeze whole modules, with the modules; None where something else sets a flag."""
    source = inference.source
    freezing = [(n, m) for n in source.nodes if isinstance(n, ast.stmt) and (m := frozen_module(n)) is not None]
    inside = {n for statement, _ in freezing for n in symbols.walk(statement)}
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and node.attr in _FLAGS and node not in inside:
            if node.attr == "requires_grad_" or not isinstance(node.ctx, ast.Load):
                fact = inference.fact(node.value)
                if not isinstance(fact, Tensor) or fact.variable:
                    return None
    return freezing


def _walk(source: Source, node: ast.Attribute) -> _Walk | None:
    """What gives the variable whose flag is asked for."""
    if not isinstance(node.value, ast.Name):
        return None
    for around in ancestors(node, source.parents):
        loops: list[ast.For | ast.comprehension] = []
        if isinstance(around, ast.For):
            loops = [around]
        elif isinstance(around, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp):
            loops = list(around.generators)
        for loop in loops:
            match loop.target, loop.iter:
                case (
                    ast.Name(id=item),
                    ast.Call(func=ast.Attribute(value=module, attr="parameters"), args=[], keywords=[]),
                ) if item == node.value.id:
                    return _Walk(loop, module, "") if len(loops) == 1 else None
                case (
                    ast.Tuple(elts=[ast.Name(id=name), ast.Name(id=item)]),
                    ast.Call(func=ast.Attribute(value=module, attr="named_parameters"), args=[], keywords=[]),
                ) if item == node.value.id:
                    return _Walk(loop, module, name) if len(loops) == 1 else None
        if isinstance(around, FunctionNode | ast.Lambda | ast.ClassDef):
            return None
    return None


# --- which parameters are trained -------------------------------------------------------------------------------------


def _trained(source: Source, walk: _Walk, freezing: Iterable[tuple[ast.stmt, ast.expr]]) -> _TrainedFlags | None:
    """Which parameters of the module of a walk are trained where it stands; None where it isn't sure."""
    scope, module = _scope(source, walk.module), ast.unparse(walk.module)
    root = _root(walk.module)
    if root is None or (made := _made(source, scope, root)) is None:
        return None
    trained, whole = _TrainedFlags(), None
    for statement, frozen in freezing:
        other = _root(frozen)
        if _scope(source, statement) is not scope or not _always_runs(source, statement, scope) or other is None:
            return None
        if other != root:
            held = _made(source, scope, other)
            if held is None or root in _names(held) or other in _names(made) or _linked(scope, root, other):
                return None
        elif statement.lineno > walk.module.lineno:
            continue
        elif f"{module}.".startswith(f"{(part := ast.unparse(frozen))}."):
            trained.none, whole = True, statement
        elif part.startswith(f"{module}."):
            trained.parts.append(part[len(module) + 1 :])
    if any("[" in part for part in trained.parts):
        return None
    if trained.none:
        trained.parts = []
    return _with_new_parts(scope, walk, trained, whole)


def _with_new_parts(
    scope: ast.AST, walk: _Walk, trained: _TrainedFlags, whole: ast.stmt | None
) -> _TrainedFlags | None:
    """The same with what is assigned to the module between the freezing of all of it and the question."""
    module, root = ast.unparse(walk.module), _root(walk.module)
    for node in symbols.walk(scope):
        if not isinstance(node, ast.Attribute | ast.Subscript) or isinstance(node.ctx, ast.Load):
            continue
        if _root(node) == root and node.lineno < walk.module.lineno:
            new = isinstance(node, ast.Attribute) and ast.unparse(node.value) == module and whole is not None
            if not new or whole is None or node.lineno <= whole.lineno:
                if whole is None and not trained.parts or whole is not None and node.lineno < whole.lineno:
                    continue  # it is trained, or frozen, as all others are
                return None
            trained.parts.append(node.attr)  # type: ignore[union-attr]
    return trained


def _scope(source: Source, node: ast.AST) -> ast.AST:
    """The function or the file around a node."""
    return next((n for n in ancestors(node, source.parents) if isinstance(n, FunctionNode | ast.Lambda)), source.tree)


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in symbols.walk(node) if isinstance(n, ast.Name)}


def _made(source: Source, scope: ast.AST, name: str) -> ast.Call | None:
    """The call that a variable of a scope gets its only value from, if no parameter or loop gives it another one."""
    stores = [
        n for n in symbols.walk(scope) if isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load)
    ]
    if len(stores) != 1 or any(isinstance(n, ast.arg) and n.arg == name for n in symbols.walk(scope)):
        return None
    value = value_of(stores[0], source.parents)
    while (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr in names_with(Trait.TO_DEVICE)
    ):
        value = value.func.value
    return value if isinstance(value, ast.Call) else None


def _linked(scope: ast.AST, one: str, other: str) -> bool:
    """Whether a part of one of two modules may be the other, or a part of it."""
    for node in symbols.walk(scope):
        if isinstance(node, ast.Assign) and any(_root(t) in (one, other) for t in node.targets):
            if {one, other} <= _names(node):
                return True
    return False


def _always_runs(source: Source, node: ast.stmt, scope: ast.AST) -> bool:
    around = source.parents[node]
    return around is scope or is_main(around) and source.parents[around] is scope


# --- the text ---------------------------------------------------------------------------------------------------------


def _asked_by_name(source: Source, node: ast.Attribute, walk: _Walk, trained: _TrainedFlags) -> Edits:
    """The edits by which a name is asked for; none where that has no good form."""
    name, named = walk.name, Edits()
    if trained.parts and not name:
        if "name" in _names(source.parents[walk.node] if isinstance(walk.node, ast.comprehension) else source.tree):
            return []
        name = "name"
        target, walked = source.span(walk.node.target), source.span(walk.node.iter)
        named.append((*target, [Fragment(f"name, {source.segment(walk.node.target)}", *target)]))
        named.append((*walked, [Fragment(f"{source.segment(walk.module)}.named_parameters()", *walked)]))
    said, around = trained.condition(name), source.parents[node]
    start, end = source.span(node)
    if isinstance(walk.node, ast.comprehension) and walk.node.ifs == [node] and not trained.parts:
        if not trained.none:  # all of them: no condition is left
            before = source.span(walk.node.iter)[1]
            return [(before, end, [])]
        match source.parents[source.parents[walk.node]]:
            case ast.Call(func=ast.Name(id="sum"), args=[_], keywords=[]) as whole:
                span = source.span(whole)
                return [(*span, [Fragment("0", *span)])]
        return []
    if isinstance(around, ast.If) and around.test is node and said == "True":
        return _without_condition(source, around)
    if isinstance(around, ast.UnaryOp) and said.startswith("not "):
        start, said = source.span(around)[0], said.removeprefix("not ")
    return [*named, (start, end, [Fragment(said, start, end)])]


def _without_condition(source: Source, node: ast.If) -> Edits:
    """The statements under a condition that always holds, in its place."""
    if node.orelse or not source.starts_line(node) or node.body[0].lineno == node.lineno:
        return []
    start, end = source.span(node)
    first = source.starts[node.body[0].lineno - 1]
    body = textwrap.dedent(source.text[first:end])
    if '"""' in body or "'''" in body or "#" in source.text[start:first]:
        return []
    indent = source.indent(node.lineno)
    return [(start, end, [Fragment(textwrap.indent(body, indent).removeprefix(indent), start, end)])]
