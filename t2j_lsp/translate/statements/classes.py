"""Classes: nn.Module becomes nnx.Module."""

from __future__ import annotations

import ast
from collections.abc import Collection

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.alike_branches import unasked_tests
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.copying import Headers
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer, StatementRewriter
from t2j_lsp.translate.expressions.torch_only import abstract_elsewhere, left_whole, mixin_out_of_sight
from t2j_lsp.translate.rule.array_classes import is_array_class
from t2j_lsp.translate.rule.definitions import ClassInfo, Instance
from t2j_lsp.translate.rule.facts import Qual

from .bypassed_layers import BYPASSED, bypassed_layer
from .class_decorators import loses_rngs, report_lost_rngs
from .decorators import Decorators
from .layer_resets import called_by_layer, reset_of
from .module_statements import is_mixed_in

_METACLASSES = ("ABCMeta", "abc.ABCMeta")
"""What the metaclass of Flax's modules derives from itself."""
_METACLASS = "modules have a metaclass in Flax: derive yours from type(nnx.Module), and see that it does the same there"
_ABSTRACT = "{} asks for a method forward, which is __call__ in Flax: have it ask for __call__"
_FIELDS = (
    "its constructor is made of its fields, and takes no rngs, which modules in Flax are made with: write __init__,"
    " with what __post_init__ does"
)
_OF_FIELDS = ("dataclasses", "attr", "attrs", "pydantic")
_MIXIN_OUT_OF_SIGHT = "{} isn't in sight, and if it works on a PyTorch module it doesn't on Flax's: convert it along"


class Classes:
    """Rewrites classes."""

    def __init__(
        self,
        context: Context,
        renderer: ExpressionRenderer,
        statements: StatementRewriter,
        header: Headers,
        decorators: Decorators,
    ) -> None:
        self.ctx = context
        self.renderer = renderer
        self.statements = statements
        self.header = header
        self.decorators = decorators

    def rewrite(self, node: ast.ClassDef) -> bool:
        """A class, its head and its body. One that is PyTorch's own extension is left as it is."""
        info = self.ctx.inference.classes.get(node)
        if info is None:
            return True
        if (kept := left_whole(self.ctx, info)) is not None:
            self.ctx.report.gap(node, kept[0], "refused", kept[1])
            return True
        if is_array_class(info):
            self.decorators.register(node)
        for decorator in node.decorator_list:
            self.decorators.rewrite(decorator)
            if info.is_module:
                report_lost_rngs(self.ctx, node, decorator, loses_rngs)
        for base in node.bases:
            self.header.expression(node, "bases", base)
        for keyword in node.keywords:
            self.header.expression(keyword, "value", keyword.value)
            if keyword.arg == "metaclass" and info.is_module and ast.unparse(keyword.value) not in _METACLASSES:
                self.ctx.report.gap(node, ast.unparse(keyword.value), "refused", _METACLASS)
        saved_class, saved_functions = self.ctx.scope.class_info, self.ctx.scope.functions
        self.ctx.scope.class_info, self.ctx.scope.functions = info, []
        if (name := mixin_out_of_sight(info)) is not None:
            self.ctx.report.gap(node, name, "unsure", _MIXIN_OUT_OF_SIGHT.format(name))
        if (name := abstract_elsewhere(info)) is not None:
            self.ctx.report.gap(node, name, "unsure", _ABSTRACT.format(name))
        if (name := bypassed_layer(info, self.ctx.inference.facts)) is not None:
            self.ctx.report.gap(node, name, "unsure", BYPASSED.format(name))
        made_of_fields = info.is_module and self._is_made_of_fields(info)
        if made_of_fields:
            self.ctx.report.gap(node, info.name, "refused", _FIELDS)
        if info.is_module:
            self._module_head(node, info, writes_constructor=not made_of_fields)
        for statement in node.body:
            if info.calls_forward and _says_what_call_is(statement):
                self.ctx.edits.delete(statement)
            else:
                self.statements.visit(statement)
        self.ctx.scope.class_info, self.ctx.scope.functions = saved_class, saved_functions
        return True

    def _is_made_of_fields(self, info: ClassInfo) -> bool:
        """Whether a decorator or base makes a class's constructor of its fields, as of a dataclass."""
        if info.method("__init__") is not None:
            return False
        decorators = [d for one in info.ancestry() for d in one.node.decorator_list]
        facts = [self.ctx.inference.fact(symbols.called_decorator(d)) for d in decorators]
        decorated = any(isinstance(f, Qual) and f.name.partition(".")[0] in _OF_FIELDS for f in facts)
        return decorated or info.is_dataclass or info.method("__post_init__") is not None

    def _module_head(self, node: ast.ClassDef, info: ClassInfo, writes_constructor: bool) -> None:
        """What a module gets at its top: the mode flag it reads, and a constructor that takes rngs."""
        self.ctx.report.count_converted()
        lines: list[str] = []
        unread = {*self.ctx.plan.done_by_base, *unasked_tests(node, self.ctx.inference)}
        mixed_in = [one.node for one in info.ancestry()[1:] if not one.is_module and one.acts_as_module]
        reads = any(_reads_training(one, unread) for one in (node, *mixed_in))
        if reads or self._is_asked_for_training(info, unread):
            lines += ["deterministic: bool = False  # set by train() and eval()", ""]
        has_own = any(isinstance(c, ast.FunctionDef) and c.name == "__init__" for c in node.body)
        if writes_constructor and not has_own:
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
        else:
            self.ctx.edits.insert_before(first, lines, priority=1)

    def _is_asked_for_training(self, info: ClassInfo, unread: Collection[ast.AST]) -> bool:
        """Whether the mode of an instance is read elsewhere: ``net.training`` in a function."""
        inference = self.ctx.inference
        if "training" not in inference.source.words:
            return False
        reads = inference.attribute_reads.get((info, "training"), ())
        owners = (inference.fact(read.value) for read in reads if read not in unread)
        return any(isinstance(owner, Instance) and owner.cls.info is info for owner in owners)

    def _constructor(self, info: ClassInfo) -> list[str]:
        """A constructor for a module without one, so that every module takes ``rngs``."""
        nnx = self.renderer.need("nnx")
        inherited = any(
            base_info.method("__init__") or base_info.layer_base
            for base_info in info.ancestry()[1:]
            if base_info.is_module
        ) or (info.layer_base is not None)
        reset = called_by_layer(info)
        if inherited and not info.keeps_rngs and reset is None:
            return []
        if inherited:
            return [
                f"def __init__(self, *args, rngs: {nnx}.Rngs, **kwargs):",
                "    super().__init__(*args, rngs=rngs, **kwargs)",
                *(["    self.rngs = rngs.fork()"] if info.keeps_rngs else []),
                *([f"    {reset_of(reset, 'self')}"] if reset is not None else []),
                "",
            ]
        if info.keeps_rngs:
            return [f"def __init__(self, *, rngs: {nnx}.Rngs):", "    self.rngs = rngs.fork()", ""]
        if is_mixed_in(self.ctx.inference, info):
            return []
        return [f"def __init__(self, *, rngs: {nnx}.Rngs | None = None):", "    pass", ""]


def _reads_training(node: ast.ClassDef, without: Collection[ast.AST]) -> bool:
    return any(
        isinstance(n, ast.Attribute)
        and n.attr == "training"
        and isinstance(n.value, ast.Name)
        and n.value.id == "self"
        and isinstance(n.ctx, ast.Load)
        and n not in without
        for n in symbols.walk(node)
    )


def _says_what_call_is(statement: ast.stmt) -> bool:
    """``__call__ = forward``, which type checkers are told where PyTorch's own says nothing of the arguments."""
    match statement:
        case ast.Assign(targets=[ast.Name(id="__call__")], value=ast.Name(id="forward")):
            return True
        case ast.AnnAssign(target=ast.Name(id="__call__"), value=ast.Name(id="forward")):
            return True
        case ast.If(body=[inner], orelse=[]):
            return _says_what_call_is(inner)
        case _:
            return False
