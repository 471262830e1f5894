"""Functions: ``forward`` becomes ``__call__``, and ``rngs`` are threaded."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from t2j_lsp.contract import ChannelsLast
from t2j_lsp.symbols import all_parameters, function_around, positional_parameters, walk
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.copying import Headers
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer, StatementRewriter
from t2j_lsp.translate.inference.fillers import filled, hands_nothing_back, values_of
from t2j_lsp.translate.inference.rngs import draws_from_module, start_of_rngs
from t2j_lsp.translate.rule.definitions import ClassInfo, FunctionInfo
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.library import CLASSES, Trait, names_with
from t2j_lsp.translate.source.folding.annotations import is_annotated
from t2j_lsp.translate.source.syntax import IN_PLACE
from t2j_lsp.translate.source.width import MIN_WIDTH, lines_of_signature

from .class_decorators import report_lost_rngs, wraps_and_loses_rngs
from .decorators import Decorators
from .given_parameters import give_parameters
from .layer_resets import NOT_CALLED, called_by_layer, reset_of
from .module_statements import is_super_init, super_does_nothing
from .no_gradient import NoGradient
from .own_new import no_place_for

STUBS = names_with(Trait.STUB)
_STORED = "PyTorch's {} writes into what it is given, JAX's returns the new array: store it where this is called"


class Functions:
    """Rewrites functions."""

    def __init__(
        self,
        context: Context,
        renderer: ExpressionRenderer,
        statements: StatementRewriter,
        header: Headers,
        decorators: Callable[[], Decorators],
        no_gradient: Callable[[], NoGradient],
    ) -> None:
        self.ctx = context
        self.renderer = renderer
        self.statements = statements
        self.header = header
        self.decorators = decorators
        self.no_gradient = no_gradient

    def rewrite(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        """A function: decorators, name, signature and body."""
        info = self.ctx.inference.functions.get(node)
        if info is None or node in self.ctx.inference.settled:
            return True
        if any(self.decorators().name(d) in STUBS for d in node.decorator_list):
            self.ctx.edits.delete(node)
            return True
        owner = self.ctx.scope.class_info if not self.ctx.scope.functions else None
        left_before = self.ctx.source.is_marked(node)
        switches = node.name == "eval" or node.name == "train" and _takes_a_mode(node)
        if owner is not None and (owner.is_module or left_before) and switches:
            reason = f"PyTorch calls {node.name}() of every module inside, NNX sets a flag and calls nothing"
            self.ctx.report.gap(node, f"torch.nn.Module.{node.name}", "refused", reason)
            return True
        makes = owner is not None and (owner.is_module or left_before) and node.name == "__new__"
        unfit = no_place_for(node, owner) if owner is not None and makes else None
        if unfit is not None:
            self.ctx.report.gap(node, f"torch.nn.Module.{node.name}", "refused", unfit)
            return True
        no_grad = False
        in_constructor = owner is not None and owner.is_module and node.name == "__init__"
        for decorator in node.decorator_list:
            no_grad |= self.decorators().rewrite(decorator)
            if in_constructor and info.takes_rngs:
                report_lost_rngs(self.ctx, node, decorator, wraps_and_loses_rngs)
        if node.decorator_list:
            self.decorators().cached(node, info)
        in_module = owner is not None and owner.acts_as_module
        if owner is not None and node.name == "forward" and owner.calls_forward:
            self._rename(node, "__call__")
        self._signature(node, info)
        self._say_layout(node, info)
        if rebound := self.ctx.plan.rebound.get(node):
            self._first_line(node, f"global {', '.join(sorted(rebound))}")
        self.ctx.scope.functions.append(info)
        try:
            if in_module and owner is not None and node.name == "__init__":
                self._init_head(node, owner)
            if no_grad:
                self.no_gradient().enter_function(node)
            self.statements.block(node.body)
            outer = "nonlocal" if _sees_rngs(info) else "global" if info.reads_rngs else ""
            if outer and self._sets_seed(node):
                self._first_line(node, f"{outer} rngs")
            if no_grad:
                self.no_gradient().wrap_returns(node)
                self.no_gradient().leave_function(node)
            if IN_PLACE in self.ctx.source.words:
                self._hand_back(node, info)
        finally:
            self.ctx.scope.functions.pop()
        return True

    def _hand_back(self, node: ast.FunctionDef | ast.AsyncFunctionDef, info: FunctionInfo) -> None:
        """``return t`` behind a function that fills ``t`` and returns nothing: who calls it stores the array."""
        name = filled(info, self.ctx.inference)
        if name is None:
            return
        nothing = hands_nothing_back(info)
        for use in values_of(info, self.ctx.inference):
            tell = self.ctx.report.gap if nothing else self.ctx.report.note
            tell(use, node.name, "in-place", _STORED.format(node.name))
        if nothing and node.body[-1].lineno == node.lineno:
            self.ctx.report.gap(node, node.name, "refused", f"It needs return {name}, and has no line for it")
        elif nothing:
            self.ctx.edits.insert_after(node.body[-1], [f"return {name}"])
            if isinstance(node.returns, ast.Constant):
                self.ctx.edits.replace(node.returns, f"{self.renderer.need('jax')}.Array")

    def _without_annotation(self, node: ast.arg | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        """``scheduler: LRScheduler``: an annotation goes that names a class for which JAX has none."""
        annotation = node.annotation if isinstance(node, ast.arg) else node.returns
        if annotation is None or not self._names_nothing(annotation):
            return False
        start, end = self.ctx.source.span(annotation)
        text = self.ctx.source.text
        begin = text.rindex(":" if isinstance(node, ast.arg) else "->", 0, start)
        default = re.compile(r"\s*=\s*").match(text, end) if isinstance(node, ast.arg) else None
        self.ctx.edits.add(len(text[:begin].rstrip()), default.end() if default else end, "=" if default else "")
        return True

    def _names_nothing(self, annotation: ast.expr) -> bool:
        facts = (self.ctx.fact(n) for n in walk(annotation) if isinstance(n, ast.Name | ast.Attribute))
        return any(isinstance(f, Qual) and f.name in CLASSES and CLASSES[f.name].annotation == "" for f in facts)

    def _rename(self, node: ast.FunctionDef | ast.AsyncFunctionDef, new: str) -> None:
        start, _ = self.ctx.source.span(node)
        match = re.compile(r"(?:async\s+)?def\s+(\w+)").match(self.ctx.source.text, start)
        if match is not None:
            self.ctx.edits.add(match.start(1), match.end(1), new)

    def _signature(self, node: ast.FunctionDef | ast.AsyncFunctionDef, info: FunctionInfo) -> None:
        arguments = node.args
        everything = all_parameters(node)
        for argument in everything:
            if not self._without_annotation(argument):
                self.header.annotation(argument.annotation)
        for default in [*arguments.defaults, *filter(None, arguments.kw_defaults)]:
            self.header.expression(arguments, "defaults", default)
        if not self._without_annotation(node):
            self.header.annotation(node.returns)
        if (given := self.ctx.plan.parameters.get(node)) is not None:
            give_parameters(self.ctx.edits, info, *given)
        if info.makes_rngs and "rngs" not in self.ctx.source.symbols.bound(node):
            self._make_rngs(node, info)
        seeds = info.seeds and not info.takes_rngs and not info.called_by and not info.is_seeder
        if seeds and draws_from_module(self.ctx.inference):
            self._first_line(node, "global rngs")
        if info.takes_rngs and not any(a.arg == "rngs" for a in everything):
            if info.called_by == "pytest":
                self.ctx.rngs.asking.append(info)
            self._add_rngs(node, info.called_by == "pytest")

    def _make_rngs(self, node: ast.FunctionDef | ast.AsyncFunctionDef, info: FunctionInfo) -> None:
        """A generator for a function that nobody passes one."""
        self._first_line(node, start_of_rngs(info, f"{self.renderer.need('nnx')}.Rngs(0)"))

    def _sets_seed(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        """Whether one of its own statements made a generator."""
        return any(function_around(one, self.ctx.source.parents) is node for one in self.ctx.rngs.seeds)

    def _say_layout(self, node: ast.FunctionDef | ast.AsyncFunctionDef, info: FunctionInfo) -> None:
        """A comment on what a function takes and gives channels-last."""
        interface = self.ctx.plan.layout.interfaces.get(info)
        if interface is None:
            return
        named = tuple(arg.arg for arg in node.args.args if interface.takes.get(arg))
        rank = max([*interface.takes.values(), interface.gives])
        comment = ChannelsLast(rank, named, bool(interface.gives)).comment
        if node.body[0].lineno == node.lineno:
            self.ctx.edits.insert_before(node, [comment])
        else:
            self._first_line(node, comment)

    def _first_line(self, node: ast.FunctionDef | ast.AsyncFunctionDef, line: str) -> None:
        """A line in front of a function's body, behind its docstring."""
        first = node.body[0]
        if first.lineno == node.lineno:
            self.ctx.report.gap(node, node.name, "refused", f"It needs {line}, and has no line for it")
        elif isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            self.ctx.edits.insert_after(first, [line])
        else:
            self.ctx.edits.insert_before(first, [line], priority=-1)

    def _add_rngs(self, node: ast.FunctionDef | ast.AsyncFunctionDef, fixture: bool = False) -> None:
        """Add a keyword-only ``rngs: nnx.Rngs`` to a parameter list, in the list's own layout, or a ``fixture``."""
        source, arguments = self.ctx.source, node.args
        parameter = "rngs" if fixture else self._rngs_parameter(node)
        star = "" if arguments.vararg or arguments.kwonlyargs or fixture and not arguments.defaults else "*"
        ends: list[tuple[int, ast.AST]] = []
        plain = positional_parameters(node)
        for argument in [*plain, *arguments.kwonlyargs, *filter(None, (arguments.vararg,))]:
            ends.append((source.span(argument)[1], argument))
        for default in [*arguments.defaults, *filter(None, arguments.kw_defaults)]:
            ends.append((source.span(default)[1], default))
        if arguments.kwarg is not None:
            begin = source.text.rindex("**", 0, source.span(arguments.kwarg)[0])
            line = source.line_of(begin)
            separator = ", "
            if not source.text[source.starts[line - 1] : begin].strip():
                separator = "," + source.newline + source.indent(line)
            parts = [p for p in (star, parameter) if p]
            self.ctx.edits.add(begin, begin, separator.join(parts) + separator, 0)
            return
        parts = [p for p in (star, parameter) if p]
        if not ends:
            start, _ = source.span(node)
            at = source.text.index("(", source.text.index(node.name, start)) + 1
            self.ctx.edits.add(at, at, ", ".join(parts), 9)
            return
        last, _ = max(ends, key=lambda e: e[0])
        last = self._past_bracket(last)
        if (slash := re.compile(r"\s*,\s*/").match(source.text, last)) is not None:
            last = slash.end()
        given = [*plain, *arguments.kwonlyargs, *filter(None, (arguments.vararg,))]
        begins = sorted(source.span(argument)[0] for argument in given)
        lines = [source.line_of(begin) for begin in begins]
        # One to a line, and no line that went on below: there is place behind the last of those.
        pairs = list(zip(begins, lines, strict=True))[-2:]
        alone = all(not source.text[source.starts[line - 1] : at].strip(" *\t") for at, line in pairs)
        each = alone and len(set(lines[-2:])) == len(lines[-2:]) and lines[-1] > node.lineno
        separator = "," + source.newline + source.indent(lines[-1]) if each else ", "
        self.ctx.edits.add(last, last, "".join(separator + p for p in parts), 9)

    def _rngs_parameter(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
        """``rngs: nnx.Rngs``; only ``rngs`` where the annotation, the file's only one, would break the signature."""
        annotated = f"rngs: {self.renderer.need('nnx')}.Rngs"
        line = self.ctx.source.lines[node.lineno - 1].rstrip()
        fits = len(f"{line}, *, {annotated}") <= MIN_WIDTH
        if fits or not line.endswith(":") or is_annotated(self.ctx.source):
            return annotated
        limit = self.ctx.source.line_limit
        plain, whole = (lines_of_signature(line, f", *, {one}", limit) for one in ("rngs", annotated))
        return "rngs" if plain < whole else annotated

    def _past_bracket(self, index: int) -> int:
        """Past the closing brackets of a parenthesised default: ``x=(a + b)``."""
        text = self.ctx.source.text
        match = re.compile(r"\s*\)(?=\s*[,)])").match(text, index)
        while match is not None:
            opened = text.count("(", text.rfind("def ", 0, index), match.end()) - text.count(
                ")", text.rfind("def ", 0, index), match.end()
            )
            if opened < 1:
                break
            index = match.end()
            match = re.compile(r"\s*\)(?=\s*[,)])").match(text, index)
        return index

    def _init_head(self, node: ast.FunctionDef | ast.AsyncFunctionDef, owner: ClassInfo) -> None:
        """``self.rngs`` for modules that draw numbers while they run, and initial values, behind the base's."""
        instance, reset = next((a.arg for a in positional_parameters(node)), "self"), called_by_layer(owner)
        calls = [s.value for s in node.body if isinstance(s, ast.Expr) and is_super_init(s.value)]
        above = (owner.asked_by(calls[0]) if calls else owner).ancestry()[1:]
        keeps = owner.keeps_rngs and not any(c.keeps_rngs for c in above)
        lines = [f"{instance}.rngs = rngs.fork()"] if keeps else []
        if any(ast.unparse(statement) in lines for statement in node.body):
            lines = []  # an earlier conversion wrote it
        resets = [reset_of(reset, instance)] if reset is not None else []
        overload = any(ast.unparse(d).rpartition(".")[2] == "overload" for d in node.decorator_list)
        if overload or not lines and not resets:
            return
        first = node.body[0]
        docstring = (
            isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
        )
        for statement in node.body:
            if isinstance(statement, ast.Expr) and is_super_init(statement.value):
                if super_does_nothing(owner, statement.value):
                    self.ctx.edits.insert_before(statement, lines)
                else:
                    self.ctx.edits.insert_after(statement, lines + resets)
                return
        if reset is not None:
            self.ctx.report.gap(reset.node, reset.name, "refused", NOT_CALLED)
        if docstring and lines:
            self.ctx.edits.insert_after(first, lines)
        elif lines:
            self.ctx.edits.insert_before(first, lines)


def _sees_rngs(info: FunctionInfo) -> bool:
    """Whether a function has no generator of its own where one around it has."""
    if info.takes_rngs or info.makes_rngs or info.outer is None:
        return False
    return info.outer.takes_rngs or info.outer.makes_rngs or _sees_rngs(info.outer)


def _takes_a_mode(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether PyTorch can set the mode by this ``train``: one that takes nothing is the file's own."""
    arguments = node.args
    return len(arguments.posonlyargs) + len(arguments.args) > 1 or arguments.vararg is not None
