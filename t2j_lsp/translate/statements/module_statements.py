"""Statements that only make sense inside a module: ``super().__init__()``, buffers, children, ``apply``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.frozen_parameters import is_frozen_as_made
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.expressions.module_methods import DROPPED_METHODS, ModuleMethods, registration
from t2j_lsp.translate.expressions.rngs import rngs_expression
from t2j_lsp.translate.expressions.unknown_makers import report_unknown_makers
from t2j_lsp.translate.expressions.variables import Variables
from t2j_lsp.translate.expressions.wrapped_layers import LOST, filler_of_computed_weight
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import (
    Class,
    ClassInfo,
    Function,
    Instance,
    is_module,
    is_module_base,
    layer_names,
)
from t2j_lsp.translate.rule.facts import Fact, Qual
from t2j_lsp.translate.rule.layer import OWN_MEANING, means_something_else
from t2j_lsp.translate.rule.pieces import ATOM, assigned, bracket

from .module_loops import walk_of

_NOT_HANDED_ON = "{}'s constructor comes in front of a module's and hands it no rngs: have it take and hand on **kwargs"


class ModuleStatements:
    """Calls of nn.Module's methods for their effect."""

    def __init__(
        self, context: Context, renderer: ExpressionRenderer, methods: ModuleMethods, variables: Variables
    ) -> None:
        self.ctx = context
        self.variables = variables
        self.renderer = renderer
        self.methods = methods

    def call(self, node: ast.Expr) -> bool:
        """Statements that call a method of nn.Module for its effect; whether it was one."""
        call = node.value
        if not isinstance(call, ast.Call) or not isinstance(func := call.func, ast.Attribute):
            return False
        if is_super_init(call):
            return self._super_init(node, call)
        if (filler := filler_of_computed_weight(self.ctx, call)) is not None:
            self.ctx.report.note(node, filler, "note", LOST)
            self.ctx.edits.delete(node)
            self.ctx.report.count_converted()
            return True
        owner = self.ctx.fact(func.value)
        if func.attr == "__init__" and self._is_module_init(call, owner):
            self._delete_super(node)
            return True
        name = func.attr
        if self.methods.moves_base(func):
            piece = self.methods.super_call(call, func)
            if piece is not None and piece.text.isidentifier():
                self.ctx.edits.delete(node)
                self.ctx.report.converted += 1
                return True
        if not is_module(owner) or self.methods.defines(owner, name):
            return False
        if name in ("register_buffer", "register_parameter") and isinstance(owner, Instance):
            return self._register(node, call, name)
        if name in ("add_module", "register_module") and len(call.args) == 2:
            return self._add_module(node, call, func)
        if name == "apply" and len(call.args) == 1:
            return self._apply(node, call, func)
        if name in DROPPED_METHODS | {"to", "double", "to_empty"}:
            if name == "requires_grad_" and is_frozen_as_made(self.ctx, call):
                self.ctx.edits.replace(node, f"{self.renderer.need('freeze')}({self.renderer.render(func.value).text})")
                self.ctx.report.count_converted()
                return True
            if name == "requires_grad_" and call.args:
                self.ctx.report.gap(
                    node,
                    "Module.requires_grad_",
                    "refused",
                    "freeze parameters with nnx.DiffState and an optimizer mask",
                )
                return True
            piece = self.methods.method(call, func, owner)
            if piece is not None and piece.text == self.renderer.render(func.value).text:
                self.ctx.edits.delete(node)
                self.ctx.report.count_converted()
                return True
        return False

    def _super_init(self, node: ast.Expr, call: ast.Call) -> bool:
        info = self.ctx.scope.class_info
        if info is None or not info.is_module:
            return False
        if super_does_nothing(info, call):
            if not _calls_layer(self.ctx.inference, info):
                self._delete_super(node)
            return True
        info = info.asked_by(call)
        if (
            any(isinstance(b, Qual) and b.name == "torch.nn.Module" for b in info.bases)
            and not call.args
            and not call.keywords
        ):
            mixins = [b for b in info.bases if not (isinstance(b, Qual) and b.name == "torch.nn.Module")]
            if all(
                not isinstance(b, Class) or b.info.method("__init__") is None and not b.info.is_module for b in mixins
            ):
                return True
        if (between := _between(info)) is not None:
            self.ctx.report.gap(node, f"{between}.__init__", "unsure", _NOT_HANDED_ON.format(between))
        return False

    def _is_module_init(self, call: ast.Call, owner: Fact) -> bool:
        """Whether this is ``nn.Module.__init__(self)``, which does nothing in nnx.Module."""
        function = self.ctx.scope.function
        if function is None or function.owner is None or not function.owner.is_module:
            return False
        names = [a.arg for a in symbols.positional_parameters(function.node)[:1]]
        match call:
            case ast.Call(args=[ast.Name(id=name)], keywords=[]) if name in names:
                return isinstance(owner, Qual) and owner.name == "torch.nn.Module"
        return False

    def _delete_super(self, node: ast.Expr) -> None:
        """``super().__init__()`` does nothing in nnx.Module; the blank line behind it goes too."""
        source = self.ctx.source
        block = self.ctx.source.block_of(node)
        self.ctx.edits.delete(node)
        if block is None or len(block) < 2 or node not in self.ctx.edits.deleted:
            return
        line = node.lineno + 1
        if (
            block[0] is node
            and line <= len(source.starts)
            and not source.line_text(line).strip()
            and line < len(source.starts)
        ):
            end = source.starts[line]
            self.ctx.edits.add(source.starts[line - 1], end, "", -1)

    def _register(self, node: ast.Expr, call: ast.Call, name: str) -> bool:
        """``self.register_buffer("mask", value)`` is an assignment."""
        parts = registration(call)
        if parts is None:
            return False
        key, value, persistent = parts
        assert isinstance(call.func, ast.Attribute)
        if isinstance(key, ast.Constant) and means_something_else(self.ctx.fact(call.func.value), str(key.value)):
            self.ctx.report.gap(node, f"Module.{name}", "refused", OWN_MEANING)
            return True
        if name == "register_parameter" and self.variables.refuses_second_name(node, value, f"Module.{name}"):
            return True
        variable = self.variables.parameter(value) if name == "register_parameter" else None
        text = self.methods.registered(value, name, persistent) if variable is None else variable[0]
        holder = bracket(self.renderer.render(call.func.value), ATOM)
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.isidentifier():
            if text == f"{holder}.{key.value}":  # it is an attribute already, and a parameter by that
                self.ctx.edits.delete(node)
            else:
                self.ctx.edits.replace(call, f"{holder}.{key.value} = {text}")
        else:
            self.ctx.edits.replace(call, f"setattr({holder}, {self.renderer.render(key).text}, {text})")
        self.ctx.report.count_converted()
        return True

    def _add_module(self, node: ast.Expr, call: ast.Call, func: ast.Attribute) -> bool:
        report_unknown_makers(self.ctx, call.args[1:])
        owner = bracket(self.renderer.render(func.value), ATOM)
        value = assigned(self.renderer.render(call.args[1]))
        key = call.args[0]
        container = layer_names(self.ctx.fact(func.value)) & {"torch.nn.Sequential", "torch.nn.ModuleDict"}
        if container == {"torch.nn.Sequential"}:
            return False
        if container:
            self.ctx.edits.replace(call, f"{owner}[{self.renderer.render(key).text}] = {value}")
            self.ctx.report.count_converted()
            return True
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.isidentifier():
            self.ctx.edits.replace(call, f"{owner}.{key.value} = {value}")
        else:
            self.ctx.edits.replace(call, f"setattr({owner}, {self.renderer.render(key).text}, {value})")
        self.ctx.report.count_converted()
        return True

    def _apply(self, node: ast.Expr, call: ast.Call, func: ast.Attribute) -> bool:
        """``self.apply(init)`` calls it on every submodule."""
        if not self.ctx.source.starts_line(node):
            return False
        fact = self.ctx.fact(call.args[0])
        function = bracket(self.renderer.render(call.args[0]), ATOM)
        rngs = ""
        if isinstance(fact, Function) and fact.info.takes_rngs:
            rngs = f", rngs={rngs_expression(self.ctx)}"
        indent = self.ctx.edits.indent(node.lineno)
        module = self.ctx.names.fresh("module")
        walk = walk_of(self.ctx, self.renderer, func.value, "modules", drawn=bool(rngs), parts_first=True)
        header = f"for _, {module} in {walk}:"
        text = f"{header}{self.ctx.source.newline}{indent}    "
        self.ctx.edits.replace(call, f"{text}{function}({module}{rngs})")
        self.ctx.report.count_converted()
        return True


def is_super_init(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "__init__"
        and isinstance(node.func.value, ast.Call)
        and isinstance(node.func.value.func, ast.Name)
        and node.func.value.func.id == "super"
    )


def _between(info: ClassInfo) -> str | None:
    """The class whose constructor is called in front of those of modules, is none itself and takes no ``rngs``."""
    bases = info.ancestry()[1:]
    first = next((one for one in bases if "__init__" in one.methods), None)
    if first is None or first.is_module or first.methods["__init__"].takes_rngs:
        return None
    return first.name if any(one.is_module and "__init__" in one.methods for one in bases) else None


def is_mixed_in(inference: Inference, info: ClassInfo) -> bool:
    """Whether a class stands in front of another base, whose constructor a subclass then takes."""
    return any(is_module_base(behind[-1]) for behind in _bases_behind(inference, info))


def _calls_layer(inference: Inference, info: ClassInfo) -> bool:
    """Whether its ``super().__init__()`` is a layer's somewhere: ``class Net(Streaming, nn.Sequential)``."""
    behind = [base for bases in _bases_behind(inference, info) for base in bases]
    return any(isinstance(b, Qual) and b.name != "torch.nn.Module" and is_module_base(b) for b in behind)


def _bases_behind(inference: Inference, info: ClassInfo) -> Iterator[tuple[Fact, ...]]:
    """The bases that stand behind a class, or one that derives from it, in each class with several."""
    for other in inference.state.classes.values():
        for at, base in enumerate(other.bases[:-1]):
            if isinstance(base, Class) and info in base.info.ancestry():
                yield other.bases[at + 1 :]


def super_does_nothing(info: ClassInfo, call: ast.expr) -> bool:
    """Whether this is ``super().__init__()`` of a class whose only base is nn.Module."""
    plain = all(isinstance(b, Qual) and b.name == "torch.nn.Module" for b in info.asked_by(call).bases)
    return plain and isinstance(call, ast.Call) and not call.args and not call.keywords
