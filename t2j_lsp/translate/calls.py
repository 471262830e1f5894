"""Renders calls: finds the rule, binds the arguments, and says so where no rule is sure."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager

from .aliases import works_in_place
from .binding import arguments_of, bind
from .context import Context
from .facts import (
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
from .fold import fold
from .infer_state import Parameter
from .layer import LAYERS
from .layer_calls import LayerCalls
from .module_methods import arguments_only
from .names import MODULE_ONLY, TENSOR_ONLY, is_torch, means_other_on_arrays, only_tensor
from .needs import Needs, Restart
from .precedence import ANY, ATOM, Piece, bracket
from .rule import IGNORED, REGISTRY, Argument, Call, CannotHoist, Refusal, Rule, Signature, is_simple
from .site import CallSite


class CallRenderer(LayerCalls):
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
            reason = rule.reason if rule is not None and rule.reason else f"{name} has no rule"
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
            why = f"only tensors have .{name}()" if name in TENSOR_ONLY else f"of how .{name}() is called"
            self.ctx.note(node, f"torch.Tensor.{name}", "probable", f"taken for a tensor because {why}")
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
            reason = rule.reason if rule is not None and rule.reason else f"torch.Tensor.{name} has no rule"
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

    # --- applying rules -------------------------------------------------------------------------------------------

    def apply(
        self, rule: Rule, node: ast.Call, receiver: ast.expr | None, skip: ast.keyword | None = None
    ) -> Piece | None:
        """The rule's piece for this call; None after reporting why not."""
        target = node
        if skip is not None:
            target = ast.Call(node.func, node.args, [k for k in node.keywords if k is not skip])
            ast.copy_location(target, node)
        for signature in rule.signatures:
            bound = bind(signature, target, receiver)
            if bound is None:
                continue
            piece = self._emit(rule, signature, node, bound, receiver is not None)
            if piece is not None:
                return piece
            return None
        self.ctx.gap(node, rule.name, "arguments", f"the arguments do not fit {rule.signatures[0].text}")
        return None

    def _emit(
        self, rule: Rule, signature: Signature, node: ast.expr, bound: dict[str, list[ast.expr]], method: bool
    ) -> Piece | None:
        site = CallSite(self, node, rule.name)
        keywords = node.keywords if isinstance(node, ast.Call) else ()
        arguments = arguments_of(signature, bound, self.argument, self.ctx.fact, keywords, self.silent_argument)
        call = Call(signature, arguments, site, node, method)
        assert rule.emit is not None
        try:
            result = rule.emit(call)
        except CannotHoist as error:
            result = Refusal(f"the argument {error.args[0]!r} would be evaluated twice; assign it to a name first")
        except Restart:
            raise
        except Exception as error:  # a rule that fails must be a finding, not a dead server
            self.ctx.gap(
                node, rule.name, "rule-error", f"the rule for {rule.name} failed: {type(error).__name__}: {error}"
            )
            return None
        dropped = arguments.unseen(IGNORED | rule.ignore)
        if isinstance(result, Piece) and dropped:
            result = Refusal(f"no rule for the argument {dropped[0]!r} of {rule.name}")
        if isinstance(result, Refusal):
            self.ctx.gap(node, rule.name, "refused", result.reason)
            return None
        if result is None:
            self.ctx.gap(node, rule.name, "unsure", f"no sure JAX form for this use of {rule.name}")
            return None
        self.ctx.converted += not self.ctx.quiet
        if rule.note is not None:
            self.ctx.note(node, rule.name, str(rule.fidelity), rule.note)
        return result

    def argument(self, node: ast.expr) -> Piece:
        """An argument of a call: a variable is read with ``[...]``."""
        piece = self.render(node)
        fact = self.ctx.fact(node)
        if isinstance(node, ast.Attribute) and isinstance(fact, Tensor) and fact.variable:
            return self.variable_value(node, piece)
        return piece

    def silent_argument(self, node: ast.expr) -> Piece:
        """An argument that is about to be dropped: nothing in it is reported."""
        self.ctx.quiet += 1
        try:
            return self.argument(node)
        finally:
            self.ctx.quiet -= 1

    def apply_value(self, rule: Rule, node: ast.expr) -> Piece | None:
        """A rule without parameters: ``torch.float32``."""
        return self._emit(rule, rule.signatures[0], node, {}, False)

    def apply_attribute(self, rule: Rule, node: ast.Attribute, owner: Fact) -> Piece | None:
        """A rule for an attribute of a tensor: ``x.mT``."""
        assert rule.emit is not None
        site = CallSite(self, node, rule.name)
        receiver = Argument("self", self.argument(node.value), owner, node.value)
        result = rule.emit(Call(rule.signatures[0], {"self": receiver}, site, node, True))
        if isinstance(result, Refusal):
            self.ctx.gap(node, rule.name, "refused", result.reason)
            return None
        if result is not None and rule.note is not None:
            self.ctx.note(node, rule.name, str(rule.fidelity), rule.note)
        return result

    def function_value(self, rule: Rule, node: ast.expr) -> Piece | None:
        """A torch function passed as a value: the JAX function itself where its arguments line up.

        The rule is asked for a call with made-up arguments; ``f(a, b)`` gives ``f``, ``f(a, axis=1)`` gives
        ``functools.partial(f, axis=1)``, anything else has no function to pass.
        """
        if rule.value is not None:
            self.ctx.converted += not self.ctx.quiet
            return Piece(self.need(rule.value))
        parameters = [p for p in rule.signatures[0].parameters or () if p.default is None and p.kind == "normal"]
        names = [f"argument{i}_" for i in range(len(parameters))]
        made_up = ast.Call(node, [ast.Name(name, ast.Load()) for name in names], [])
        bound = bind(rule.signatures[0], made_up, None)
        parent = self.ctx.parents.get(node)
        if (
            isinstance(parent, ast.Call)
            and node in parent.args
            and self.ctx.fact(parent.func) == Qual("functools.partial")
        ):
            return None
        if bound is not None and parameters and not rule.random:
            arguments = arguments_of(rule.signatures[0], bound, lambda n: Piece(ast.unparse(n)), lambda n: Tensor())
            call = Call(rule.signatures[0], arguments, CallSite(self, node, rule.name), node)
            try:
                result = rule.emit(call) if rule.emit is not None else None
            except CannotHoist:
                result = None
            function = _as_function(result.text, names) if isinstance(result, Piece) else None
            if function is not None:
                head, fixed = function
                self.ctx.converted += not self.ctx.quiet
                return Piece(f"{self.need('functools')}.partial({head}, {fixed})" if fixed else head)
        self.ctx.gap(
            node,
            rule.name,
            "function-value",
            f"{rule.name} passed as a value has no JAX function with the same arguments",
        )
        return None

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


def _as_function(text: str, names: list[str]) -> tuple[str, str] | None:
    """``f(a, b, k=1)`` as ``("f", "k=1")`` if its positional arguments are ``names`` in order and nothing else is."""
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name | ast.Attribute):
        return None
    if [a.id if isinstance(a, ast.Name) else "" for a in tree.args] != names:
        return None
    if any(n.id in names for k in tree.keywords for n in ast.walk(k.value) if isinstance(n, ast.Name)):
        return None
    if any(n.id in names for n in ast.walk(tree.func) if isinstance(n, ast.Name)):
        return None
    return ast.unparse(tree.func), ", ".join(ast.unparse(k) for k in tree.keywords)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


__all__ = ["ANY", "CallRenderer", "is_simple"]
