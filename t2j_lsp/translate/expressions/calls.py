"""Renders calls: finds the rule, binds the arguments, and says so where no rule is sure."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager

from t2j_lsp.translate.inference.shared_storage import works_in_place
from t2j_lsp.translate.inference.state import Parameter
from t2j_lsp.translate.rule.binding import bind
from t2j_lsp.translate.rule.facts import (
    AnyModule,
    Class,
    Fact,
    Function,
    Instance,
    Layer,
    ListOf,
    ModuleClass,
    Object,
    Partial,
    Qual,
    Scalar,
    Shape,
    Tensor,
    Tuple,
    is_module,
    is_module_class,
)
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.names import MODULE_ONLY, TENSOR_ONLY, is_torch, means_other_on_arrays, only_tensor
from t2j_lsp.translate.rule.precedence import ATOM, Piece, bracket
from t2j_lsp.translate.rule.record import REGISTRY, Rule

from .context import Context
from .fold import fold
from .module_methods import arguments_only
from .needs import Needs
from .rule_application import RuleApplication
from .torch_only import stays_torch


class CallRenderer(RuleApplication):
    """Calls of functions and methods."""

    def __init__(self, context: Context, needs: Needs) -> None:
        self.ctx = context
        self.needs = needs
        self.in_annotation = 0
        self.rendered: dict[ast.expr, Piece] = {}
        """Each expression is rendered once: a second look must not report or hoist again."""
        self.picks: set[tuple[int, str]] = set()
        self.picked: dict[ast.expr, str] = {}
        """Names that statements in front give to parameters which one of two kinds of modules may have."""
        self.unsure: set[ast.expr] = set()
        """Attributes of modules that are marked and stay as they stand."""

    def ctx_name(self, name: str) -> str:
        return self.need(name)

    def need(self, name: str) -> str:
        """A helper or imported name for the output, renamed if the user's code has taken it."""
        self.needs.claim(frozenset({name.partition(".")[0]}), self.ctx)
        return self.needs.text(name)

    @contextmanager
    def not_hoistable(self) -> Iterator[None]:
        """Inside a lambda or comprehension nothing can be put in front of the statement."""
        current = self.ctx.statement
        saved = current.hoistable if current is not None else False
        if current is not None:
            current.hoistable = False
        try:
            yield
        finally:
            if current is not None:
                current.hoistable = saved

    # --- dispatch -------------------------------------------------------------------------------------------------

    def call(self, node: ast.Call) -> Piece | None:
        known = fold(node, self.ctx)
        if known is not None:
            return Piece(str(known))
        if (first := self.first_parameter(node)) is not None:
            return first
        fact = self.ctx.fact(node.func)
        if (stays := stays_torch(self.ctx, node)) is not None:
            self.ctx.gap(node, stays[0], "torch-only", stays[1])
        if self._only_effect(node) and works_in_place(node, self.ctx.inference.facts) and node.args:
            return self.in_place(node, node.args[0], lambda: self._called(node, fact) or self.copy_arguments(node))
        return self._called(node, fact)

    def _only_effect(self, node: ast.Call) -> bool:
        """Whether the call is a statement, of which only the effect matters."""
        statement = self.ctx.statement
        return statement is not None and isinstance(statement.node, ast.Expr) and statement.node.value is node

    def _called(self, node: ast.Call, fact: Fact) -> Piece | None:
        match fact:
            case Qual() if is_torch(fact.name):
                return self._torch_call(node, fact.name)
            case Qual():
                return self._library_call(node, fact.name)
            case Class():
                return self._class_call(node, fact)
            case ModuleClass():
                return self.append_rngs(node)
            case Partial() if is_module_class(fact.function, LAYERS) or is_module(fact.function):
                return self.append_rngs(node) if not is_module(fact.function) else None
            case Partial(function=Qual() as inner) if is_torch(inner.name) and inner.name not in LAYERS:
                return self._partial_call(node, fact, inner.name)
            case Function() if fact.info.takes_rngs:
                return self._function_call(node)
            case Function():
                return self._function_call(node, rngs=False)
            case _:
                pass
        if isinstance(node.func, ast.Attribute):
            return self._method_call(node, node.func)
        return None

    def _function_call(self, node: ast.Call, rngs: bool = True) -> Piece | None:
        func = node.func
        if isinstance(func, ast.Attribute) and func.attr == "forward" and is_module(self.ctx.fact(func.value)):
            return self._forward_call(node, func)
        return self.append_rngs(node) if rngs else None

    def _class_call(self, node: ast.Call, fact: Class) -> Piece | None:
        if fact.info.is_module:
            return self.append_rngs(node)
        init = fact.info.method("__init__")
        return self.append_rngs(node) if init is not None and init.takes_rngs else None

    def _torch_call(self, node: ast.Call, name: str) -> Piece | None:
        if name in LAYERS:
            return self.layer_call(node, LAYERS[name])
        rule = REGISTRY.get(name)
        if rule is None and name.endswith("_") and REGISTRY.get(name[:-1]) is not None and node.args:
            base = REGISTRY.get(name[:-1])
            assert base is not None
            return self.in_place(node, node.args[0], lambda: self.apply(base, node, None))
        if rule is None or rule.emit is None:
            reason = rule.reason if rule is not None and rule.reason else f"t2j has no rule for {name}"
            self.ctx.gap(node, name, "refused" if rule is not None else "no-rule", reason)
            return self.copy_arguments(node)
        out = next((k for k in node.keywords if k.arg == "out"), None)
        if out is not None and not _is_none(out.value):
            return self._with_out(rule, node, out)
        return self.apply(rule, node, None) or self.copy_arguments(node)

    def _library_call(self, node: ast.Call, name: str) -> Piece | None:
        rule = REGISTRY.get(name)
        if rule is None:
            return None
        return self.apply(rule, node, None)

    def _method_call(self, node: ast.Call, func: ast.Attribute) -> Piece | None:
        owner = self.ctx.fact(func.value)
        if _is_super(func.value):
            return self.super_call(node, func)
        if isinstance(owner, Tensor):
            return self._tensor_method(node, func, owner)
        if is_module(owner):
            return self.module_method(node, func, owner)
        if isinstance(owner, Shape) and func.attr == "numel":
            return Piece(f"{self.need('math')}.prod({self.render(func.value).text})")
        if isinstance(owner, ListOf | Tuple | Qual | Class | Instance | Layer | AnyModule | Shape):
            return None
        if (
            self.ctx.inference.imports_torch
            and not self._bound_elsewhere(owner)
            and not isinstance(owner, Scalar | Object)
        ):
            return self._unknown_method(node, func)
        return None

    def _unknown_method(self, node: ast.Call, func: ast.Attribute) -> Piece | None:
        """A method of something of unknown type: a tensor's where its name or arguments say so, else it stays."""
        name = func.attr
        if name in MODULE_ONLY and not node.args:
            return self.module_method(node, func, AnyModule())
        rule = self._method_rule(name)
        owner = self.ctx.fact(func.value)
        if rule is None or (isinstance(owner, Parameter) and owner.foreign and name not in TENSOR_ONLY):
            return None
        other = means_other_on_arrays(name, node)
        here = self.ctx.function
        in_module = here is not None and here.owner is not None and here.owner.is_module and here.name != "__init__"
        if only_tensor(name, node) or (in_module and other):
            piece = self._tensor_method(node, func, Tensor(sure=False))
            certain = name in TENSOR_ONLY
            why = f"only tensors have .{name}()" if certain else f"of how .{name}() is called"
            receiver = self.ctx.source.segment(func.value)
            receiver = f"'{receiver}'" if len(receiver) <= 30 and "\n" not in receiver else "this"
            reason = f"{receiver} is taken for a tensor, because {why}"
            self.ctx.note(node, f"torch.Tensor.{name}", "tensor-method" if certain else "probable", reason)
            return piece
        if other and isinstance(owner, Parameter):
            reason = f"if this is a tensor, .{name}() means something else in JAX: annotate it as torch.Tensor"
            self.ctx.gap(node, f"torch.Tensor.{name}", "unsure", reason)
        return None

    def _bound_elsewhere(self, owner: Fact) -> bool:
        return isinstance(owner, Qual) and not is_torch(owner.name)

    def _method_rule(self, name: str) -> Rule | None:
        rule = REGISTRY.get(f"torch.Tensor.{name}")
        if rule is None and name.endswith("_") and not name.endswith("__"):
            rule = REGISTRY.get(f"torch.Tensor.{name[:-1]}")
        return rule

    def _tensor_method(self, node: ast.Call, func: ast.Attribute, owner: Tensor) -> Piece | None:
        name = func.attr
        explicit = REGISTRY.get(f"torch.Tensor.{name}")
        rule = explicit or self._method_rule(name)
        if rule is None or rule.emit is None:
            if rule is None and not owner.sure and name not in TENSOR_ONLY:
                return None
            if rule is None and name in _SAME_IN_JAX:
                return None
            reason = rule.reason if rule is not None and rule.reason else f"t2j has no rule for torch.Tensor.{name}"
            code = "refused" if rule is not None else "no-rule"
            self.ctx.gap(node, f"torch.Tensor.{name}", code, reason)
            return self.copy_arguments(node)
        if name.endswith("_") and not name.endswith("__"):
            return self.in_place(node, func.value, lambda: self.apply(rule, node, func.value))
        return self.apply(rule, node, func.value) or self.copy_arguments(node)

    def copy_arguments(self, node: ast.Call) -> Piece:
        """The call as it stands, with only its arguments rendered: for calls that are left alone."""
        start, end = self.ctx.source.span(node)
        func_start, func_end = self.ctx.source.span(node.func)
        if isinstance(node.func, ast.Attribute) and not isinstance(self.ctx.fact(node.func), Qual):
            head = bracket(self.render(node.func.value), ATOM) + "." + node.func.attr
        else:
            head = self.ctx.source.text[func_start:func_end]
        return Piece(head + self.splice(arguments_only(node), func_end, end))

    def _partial_call(self, node: ast.Call, fact: Partial, name: str) -> Piece | None:
        """A call of ``partial(torch.arange, device=device)``: as if all arguments stood in the call."""
        made = fact.node
        if (
            made is None
            or any(k.arg is None for k in made.keywords)
            or any(isinstance(a, ast.Starred) for a in made.args)
        ):
            return None
        given = {k.arg for k in node.keywords}
        merged = ast.Call(
            node.func,
            [*made.args[1:], *node.args],
            [*(k for k in made.keywords if k.arg not in given), *node.keywords],
        )
        rule = REGISTRY.get(name)
        if rule is None or rule.emit is None:
            return None
        for signature in rule.signatures:
            bound = bind(signature, merged, None)
            if bound is not None:
                return self._emit(rule, signature, node, bound, False)
        return None

    def _with_out(self, rule: Rule, node: ast.Call, out: ast.keyword) -> Piece | None:
        target = out.value
        if not self._only_effect(node):
            self.ctx.gap(node, rule.name, "out", "out= writes into a tensor; assign the result instead")
            return self.copy_arguments(node)
        piece = self.apply(rule, node, None, skip=out)
        if piece is None:
            return self.copy_arguments(node)
        return self.assign_to(target, piece, node) or self.copy_arguments(node)


_SAME_IN_JAX = frozenset({"item", "tolist", "any", "all", "astype", "dot", "round", "conj", "copy", "ravel"})


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
