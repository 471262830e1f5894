"""Functions that freeze what they are given: ``def set_requires_grad(nets, flag)``, put where they are called.

PyTorch programs freeze modules and train them again through such a function. Where a file has one, and has gaps, it is
read as if each call said it of the module: ``net.requires_grad_(flag)``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp.contract import Finding
from t2j_lsp.symbols import named_parameters
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function, defaults
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import FunctionInfo, is_module
from t2j_lsp.translate.source.own_lines import units
from t2j_lsp.translate.source.positions import first_line
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText


def with_flag_setters_inlined(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text without these functions; None if there are none, or everything converts."""
    source = inference.source
    flags = {"requires_grad", "requires_grad_"}
    if flags.isdisjoint(source.words) or not any("requires_grad" in f"{g.name} {g.reason}" for g in gaps):
        return None
    edits: Edits = []
    for info in inference.functions.values():
        if not info.external and (setter := _Setter.of(info)) is not None:
            edits += setter.edits(inference) or []
    return RearrangedText.of(source.text, edits)


class _Setter:
    """A function that gives the parameters of one module, or of each in a list, a flag."""

    def __init__(self, info: FunctionInfo, modules: str, flag: ast.expr, several: bool) -> None:
        self.info, self.modules, self.flag = info, modules, flag
        self.several = several
        """Whether it may be given a list."""

    @classmethod
    def of(cls, info: FunctionInfo) -> _Setter | None:
        """What a function is as one; None for others."""
        arguments = info.node.args
        names = [a.arg for a in named_parameters(info.node)]
        body = [s for s in info.node.body if not _says_nothing(s)]
        decorators = [ast.unparse(d) for d in info.node.decorator_list]
        if arguments.vararg or arguments.kwarg or decorators not in ([], ["staticmethod"]):
            return None
        parts = _set_in(_single(body))
        if parts is None:
            return None
        module, flag = parts
        known = isinstance(flag, ast.Constant) and isinstance(flag.value, bool)
        if module not in names or not known and not (isinstance(flag, ast.Name) and flag.id in names):
            return None
        return cls(info, module, flag, len(body) > 1)

    def edits(self, inference: Inference) -> Edits | None:
        """The edits by which its calls say it; None if it has another use."""
        source, edits = inference.source, Edits()
        for node in source.nodes:
            if not self._is_named(node):
                continue
            call = source.parents.get(node)
            if not isinstance(node, ast.expr) or not isinstance(call, ast.Call) or call.func is not node:
                return None
            statement = source.parents.get(call)
            if called_function(inference.fact(node)) is not self.info or not isinstance(statement, ast.Expr):
                return None
            lines = self._lines(inference, call)
            block = source.block_of(statement) or []
            alone = next((len(unit) == 1 for unit in units(block) if statement in unit), False)
            if lines is None or not alone or not source.starts_line(statement):
                return None
            start, end = source.span(statement)
            text = f"{source.newline}{source.indent(statement.lineno)}".join(lines)
            edits.append((start, end, [Fragment(text, start, end)]))
        definition = without_definition(inference, self.info)
        return None if not edits or definition is None else [*edits, definition]

    def _is_named(self, node: ast.AST) -> bool:
        match node:
            case ast.Name(id=name):
                return self.info.owner is None and name == self.info.name
            case ast.Attribute(attr=name):
                return self.info.owner is not None and name == self.info.name
        return False

    def _lines(self, inference: Inference, call: ast.Call) -> list[str] | None:
        given = {p.arg: value for p, value in defaults(self.info)}
        given |= {p.arg: value for p, value in bound_arguments(call, self.info)}
        flag = given.get(self.flag.id) if isinstance(self.flag, ast.Name) else self.flag
        modules = given.get(self.modules)
        if not isinstance(flag, ast.Constant) or not isinstance(flag.value, bool) or modules is None:
            return None
        each = modules.elts if isinstance(modules, ast.List | ast.Tuple) else [modules]
        if not each or not all(isinstance(m, ast.Name | ast.Attribute) for m in each):
            return None
        if self.several and not all(is_module(inference.fact(m)) for m in each):
            return None
        return [f"{inference.source.segment(module)}.requires_grad_({flag.value})" for module in each]


def without_definition(inference: Inference, info: FunctionInfo) -> tuple[int, int, list[Fragment]] | None:
    """The edit that takes a function away, with the blank lines behind it; None if its block has nothing else."""
    node, source = info.node, inference.source
    block = source.block_of(node) or []
    if len(block) < 2 or not source.starts_line(node) or node.end_lineno is None:
        return None
    last = node.end_lineno
    while last + 1 < len(source.starts) and not source.line_text(last + 1).strip():
        last += 1
    return (
        source.starts[first_line(node) - 1],
        source.line_end(last),
        [],
    )


def _says_nothing(node: ast.stmt) -> bool:
    """A docstring, or ``return``."""
    match node:
        case ast.Expr(value=ast.Constant(value=str())) | ast.Return(value=None | ast.Constant(value=None)) | ast.Pass():
            return True
    return False


def _single(body: list[ast.stmt]) -> ast.stmt | None:
    """The statement that is done for one module: without ``if not isinstance(nets, list): nets = [nets]``.

    In it the module has the name of the parameter that holds it, or them.
    """
    match body:
        case [ast.If(body=[ast.Assign(targets=[ast.Name(id=many)], value=ast.List(elts=[ast.Name(id=one)]))]), loop]:
            head = body[0]
            assert isinstance(head, ast.If)
            asked = ast.unparse(head.test)
            if many != one or head.orelse or asked not in (
                f"not isinstance({many}, list)", f"not isinstance({many}, (list, tuple))"
            ):  # fmt: skip
                return None
            return _for_each(loop, many)
        case [only]:
            return only
    return None


def _for_each(loop: ast.stmt, many: str) -> ast.stmt | None:
    """What a loop over modules does for each of them, as a loop over the parameters of ``many``."""
    match loop:
        case ast.For(target=ast.Name(id=one), iter=ast.Name(id=walked), body=[inner], orelse=[]) if walked == many:
            pass
        case _:
            return None
    if isinstance(inner, ast.If) and not inner.orelse and len(inner.body) == 1:
        if ast.unparse(inner.test) not in (f"{one} is not None", one):
            return None
        inner = inner.body[0]
    match inner:
        case ast.For(iter=ast.Call(func=ast.Attribute(value=ast.Name(id=walked)) as func, args=[], keywords=[])):
            if walked != one:
                return None
            module = ast.copy_location(ast.Name(many, ast.Load()), func)
            walk = ast.Call(ast.Attribute(module, func.attr, ast.Load()), [], [])
            return ast.For(inner.target, walk, inner.body, inner.orelse)
    return None


def _set_in(node: ast.stmt | None) -> tuple[str, ast.expr] | None:
    """The module and the flag of ``for p in module.parameters(): p.requires_grad = flag``."""
    match node:
        case ast.For(
            target=ast.Name(id=name),
            iter=ast.Call(func=ast.Attribute(attr="parameters", value=ast.Name(id=module)), args=[], keywords=[]),
            body=[inner],
            orelse=[],
        ):
            pass
        case ast.For(
            target=ast.Tuple(elts=[ast.Name(), ast.Name(id=name)]),
            iter=ast.Call(func=ast.Attribute(attr="named_parameters", value=ast.Name(id=module)), args=[], keywords=[]),
            body=[inner],
            orelse=[],
        ):
            pass
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(attr="requires_grad_", value=ast.Name(id=module)), args=[flag])
        ):
            return module, flag
        case _:
            return None
    match inner:
        case ast.Assign(targets=[ast.Attribute(attr="requires_grad", value=ast.Name(id=owner))], value=flag):
            return (module, flag) if owner == name else None
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="requires_grad_", value=ast.Name(id=owner)), args=[flag])):
            return (module, flag) if owner == name else None
    return None
