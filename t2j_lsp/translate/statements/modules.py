"""Rewrites classes and functions: nn.Module becomes nnx.Module, ``forward`` becomes ``__call__``, rngs are threaded."""

from __future__ import annotations

import ast
import re

from t2j_lsp.translate.inference.rngs import start_of_rngs
from t2j_lsp.translate.rule.facts import ClassInfo, FunctionInfo, Qual, Tensor

from .module_statements import ModuleStatements, is_super_init
from .no_gradient import NO_GRAD

LEFT_ALONE = {
    "torch.autograd.Function": "a custom autograd.Function has its own backward; write it with jax.custom_vjp",
    "torch.optim.Optimizer": "a custom optimizer; write it as an optax.GradientTransformation",
    "torch.optim.lr_scheduler.LRScheduler": "a custom schedule; write it as a function of the step for optax",
    "torch.optim.lr_scheduler._LRScheduler": "a custom schedule; write it as a function of the step for optax",
}
OVERLOADS = ("torch.jit._overload_method", "torch.jit._overload")
"""Decorators of type stubs for TorchScript: the stub goes."""
DROPPED_DECORATORS = (
    "torch.jit.script",
    "torch.jit.ignore",
    "torch.jit.unused",
    "torch.jit.export",
    "torch.jit.script_method",
    "torch.jit._script_if_tracing",
    "torch.jit.interface",
    "torch.fx.wrap",
    "torch.compile",
    "torch.compiler.disable",
    "torch._dynamo.disable",
    "torch.autocast",
    "torch.amp.autocast",
)


class Modules(ModuleStatements):
    """Classes, functions, and the statements that only make sense inside a module."""

    # --- classes --------------------------------------------------------------------------------------------------

    def class_def(self, node: ast.ClassDef) -> None:
        info = self.ctx.inference.classes.get(node)
        if info is None:
            return
        refused = next((b for b in info.torch_bases if b in LEFT_ALONE), None)
        if refused is not None:
            self.ctx.report.gap(node, refused, "refused", LEFT_ALONE[refused])
            return
        for decorator in node.decorator_list:
            self._decorator(decorator)
        for base in node.bases:
            self.expression(node, "bases", base)
        for keyword in node.keywords:
            self.expression(keyword, "value", keyword.value)
        saved_class, saved_functions = self.ctx.scope.class_info, self.ctx.scope.functions
        self.ctx.scope.class_info, self.ctx.scope.functions = info, []
        if info.is_module:
            self._module_head(node, info)
        self.block(node.body)
        self.ctx.scope.class_info, self.ctx.scope.functions = saved_class, saved_functions

    def _module_head(self, node: ast.ClassDef, info: ClassInfo) -> None:
        """What a module gets at its top: the mode flag it reads, and a constructor that takes rngs."""
        self.ctx.report.converted += 1
        lines: list[str] = []
        if _reads_training(node):
            lines += ["deterministic: bool = False  # set by train() and eval()", ""]
        if not any(isinstance(c, ast.FunctionDef) and c.name == "__init__" for c in node.body):
            lines += self._constructor(info)
        if not lines:
            return
        first = node.body[0]
        docstring = (
            isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
        )
        if first.lineno == node.lineno:
            return
        if docstring:
            after = [""] + [line.rstrip() for line in (lines[:-1] if lines[-1] == "" else lines)]
            self.ctx.edits.insert_after(first, after)
            self._strip_blank(first)
        else:
            self.ctx.edits.insert_before(first, lines, priority=1)

    def _strip_blank(self, first: ast.stmt) -> None:
        return None

    def _constructor(self, info: ClassInfo) -> list[str]:
        """A constructor for a module without one, so that every module takes ``rngs``."""
        nnx = self.renderer.need("nnx")
        inherited = any(
            base_info.method("__init__") or base_info.layer_base
            for base_info in info.ancestry()[1:]
            if base_info.is_module
        ) or (info.layer_base is not None)
        if inherited and not info.keeps_rngs:
            return []
        if inherited:
            return [
                f"def __init__(self, *args, rngs: {nnx}.Rngs, **kwargs):",
                "    super().__init__(*args, rngs=rngs, **kwargs)",
                "    self.rngs = rngs.fork()",
                "",
            ]
        if info.keeps_rngs:
            return [f"def __init__(self, *, rngs: {nnx}.Rngs):", "    self.rngs = rngs.fork()", ""]
        return [f"def __init__(self, *, rngs: {nnx}.Rngs | None = None):", "    pass", ""]

    # --- functions ------------------------------------------------------------------------------------------------

    def function_def(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        info = self.ctx.inference.functions.get(node)
        if info is None:
            return
        if any(self._decorator_name(d) in OVERLOADS for d in node.decorator_list):
            self.ctx.edits.delete(node)
            return
        no_grad = False
        for decorator in node.decorator_list:
            no_grad |= self._decorator(decorator)
        owner = self.ctx.scope.class_info if not self.ctx.scope.functions else None
        in_module = owner is not None and owner.acts_as_module
        if in_module and node.name == "forward" and "__call__" not in (owner.methods if owner else {}):
            self._rename(node, "__call__")
        self._signature(node, info)
        self.ctx.scope.functions.append(info)
        try:
            if in_module and owner is not None and node.name == "__init__":
                self._init_head(node, owner)
            self.block(node.body)
            if no_grad:
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Return) and inner.value is not None:
                        fact = self.ctx.fact(inner.value)
                        if isinstance(fact, Tensor) and fact.dtype not in ("int", "bool"):
                            self._wrap_return(inner)
        finally:
            self.ctx.scope.functions.pop()

    def _decorator(self, node: ast.expr) -> bool:
        """Drop decorators that JAX has no use for; whether it was ``no_grad``."""
        name = self._decorator_name(node)
        if name in NO_GRAD or name in DROPPED_DECORATORS:
            start, end = self.ctx.source.span(node)
            line = self.ctx.source.line_of(start)
            last = self.ctx.source.line_of(end)
            stop = self.ctx.source.starts[last] if last < len(self.ctx.source.starts) else end
            self.ctx.edits.add(self.ctx.source.starts[line - 1], stop, "")
            if name == "torch.compile":
                self.ctx.report.note(
                    node, name, "note", "torch.compile is dropped; put the training or inference step under nnx.jit"
                )
            return name in NO_GRAD
        self.expression(ast.Module([], []), "value", node)
        return False

    def _decorator_name(self, node: ast.expr) -> str:
        fact = self.ctx.fact(node.func if isinstance(node, ast.Call) else node)
        return fact.name if isinstance(fact, Qual) else ""

    def _rename(self, node: ast.FunctionDef | ast.AsyncFunctionDef, new: str) -> None:
        start, _ = self.ctx.source.span(node)
        match = re.compile(r"(?:async\s+)?def\s+(\w+)").match(self.ctx.source.text, start)
        if match is not None:
            self.ctx.edits.add(match.start(1), match.end(1), new)

    def _signature(self, node: ast.FunctionDef | ast.AsyncFunctionDef, info: FunctionInfo) -> None:
        arguments = node.args
        everything = arguments.posonlyargs + arguments.args + arguments.kwonlyargs
        for argument in [*everything, *filter(None, (arguments.vararg, arguments.kwarg))]:
            self.annotation(argument.annotation)
        for default in [*arguments.defaults, *filter(None, arguments.kw_defaults)]:
            self.expression(arguments, "defaults", default)
        self.annotation(node.returns)
        if info.makes_rngs:
            self._make_rngs(node, info)
        if info.takes_rngs and not any(a.arg == "rngs" for a in everything):
            if info.called_by == "pytest":
                self.ctx.rngs.asking.append(info)
            self._add_rngs(node, info.called_by == "pytest")

    def _make_rngs(self, node: ast.FunctionDef | ast.AsyncFunctionDef, info: FunctionInfo) -> None:
        """A generator for a function that nobody passes one."""
        line = start_of_rngs(info, f"{self.renderer.need('nnx')}.Rngs(0)")
        first = node.body[0]
        if first.lineno == node.lineno:
            self.ctx.report.gap(node, node.name, "refused", "It needs an nnx.Rngs, and has no line for it")
        elif isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            self.ctx.edits.insert_after(first, [line])
        else:
            self.ctx.edits.insert_before(first, [line], priority=-1)

    def _add_rngs(self, node: ast.FunctionDef | ast.AsyncFunctionDef, fixture: bool = False) -> None:
        """Add a keyword-only ``rngs: nnx.Rngs`` to a parameter list, in the list's own layout, or a ``fixture``."""
        source, arguments = self.ctx.source, node.args
        parameter = "rngs" if fixture else f"rngs: {self.renderer.need('nnx')}.Rngs"
        star = "" if arguments.vararg or arguments.kwonlyargs or fixture and not arguments.defaults else "*"
        ends: list[tuple[int, ast.AST]] = []
        plain = arguments.posonlyargs + arguments.args
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
        last_argument = max(
            [*plain, *arguments.kwonlyargs, *filter(None, (arguments.vararg,))], key=lambda a: source.span(a)[0]
        )
        begin = source.span(last_argument)[0]
        line = source.line_of(begin)
        alone = not source.text[source.starts[line - 1] : begin].strip(" *\t")
        separator = "," + source.newline + source.indent(line) if alone and line > node.lineno else ", "
        self.ctx.edits.add(last, last, "".join(separator + p for p in parts), 9)

    def _past_bracket(self, index: int) -> int:
        """Past the closing brackets of a parenthesised default: ``x=(a + b)``."""
        text = self.ctx.source.text
        match = re.compile(r"[ \t]*\)(?=\s*[,)])").match(text, index)
        while match is not None:
            opened = text.count("(", text.rfind("def ", 0, index), match.end()) - text.count(
                ")", text.rfind("def ", 0, index), match.end()
            )
            if opened < 1:
                break
            index = match.end()
            match = re.compile(r"[ \t]*\)(?=\s*[,)])").match(text, index)
        return index

    def _init_head(self, node: ast.FunctionDef | ast.AsyncFunctionDef, owner: ClassInfo) -> None:
        """``self.rngs`` for modules that draw numbers while they run, behind ``super().__init__()``."""
        if not owner.keeps_rngs or any(c.keeps_rngs for c in owner.ancestry()[1:]):
            return
        line = f"{node.args.args[0].arg}.rngs = rngs.fork()"
        first = node.body[0]
        docstring = (
            isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
        )
        for statement in node.body:
            if isinstance(statement, ast.Expr) and is_super_init(statement.value):
                if self._super_does_nothing(owner, statement.value):
                    self.ctx.edits.insert_before(statement, [line])
                else:
                    self.ctx.edits.insert_after(statement, [line])
                return
        if docstring:
            self.ctx.edits.insert_after(first, [line])
        else:
            self.ctx.edits.insert_before(first, [line])

    # --- statements of modules ------------------------------------------------------------------------------------


def _reads_training(node: ast.ClassDef) -> bool:
    return any(
        isinstance(n, ast.Attribute)
        and n.attr == "training"
        and isinstance(n.value, ast.Name)
        and n.value.id == "self"
        and isinstance(n.ctx, ast.Load)
        for n in ast.walk(node)
    )
