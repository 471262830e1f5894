"""Renders expressions: each by its kind, calls by what is called. What has a rule is rewritten, the rest is copied.

A part knows one kind of expression or call, and is made when the first of them is met.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from t2j_lsp.translate.inference.fillers import written_argument
from t2j_lsp.translate.rule.definitions import Class, Function
from t2j_lsp.translate.rule.facts import Fact, Qual, Tensor, TypeAlias
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.names import is_torch
from t2j_lsp.translate.rule.pieces import ANY, ATOM, Piece, enclosed_tuple, precedence
from t2j_lsp.translate.rule.record import REGISTRY, Rule, rule_of

from .annotations import Annotations
from .any_layer import ParametersOfAnyLayer
from .array_numbers import numbers_of_format
from .attributes import BY_NAME, Attributes
from .comprehensions import PICKED, Comprehensions
from .context import Context
from .copying import Copier
from .described_models import report_what_stays
from .foreign_children import ForeignChildren
from .function_values import PARTIAL, FunctionValues
from .handlers import ExpressionRenderer
from .in_place import InPlace
from .kinds import Kinds
from .known_values import KnownValues
from .layers import Layers
from .library_objects import LibraryObjects
from .loaded_modules import READS_FILES, WHOLE, is_used_as_module
from .module_methods import DICTS, FIRST, ModuleMethods
from .needs import NeededNames
from .one_of_functions import OneOfFunctions
from .operators import ASKED, KNOWN, Operators
from .other_calls import OtherCalls
from .rule_application import CallSite, RuleApplication
from .shared_parameters import report_shared_parameters
from .subscripts import Subscripts
from .tensor_code import TensorCode
from .tensor_methods import TensorMethods
from .truth import Truth
from .unknown_makers import asks_by_name
from .variables import Variables

Handler = Callable[[Any], Piece | None]
"""What an expression of one kind becomes; None where it is copied, or another handler knows."""


class Renderer:
    """Asks the handlers of an expression's kind in turn. Each expression is rendered once."""

    def __init__(self, context: Context, needs: NeededNames) -> None:
        self.ctx = context
        self.needs = needs
        self.rendered: dict[ast.expr, Piece] = {}
        """Each expression with its code: a second look must not report or hoist again."""
        self.copier = Copier(context, self, lambda: self.variables)
        self._handlers: dict[type[ast.expr], tuple[Handler, ...]] = {}
        """Those of the kinds that the file was found to have."""
        self._parts: dict[type[ast.expr], Callable[[], tuple[Handler, ...]]] = {
            ast.Call: self._of_calls,
            ast.Name: lambda: (self._name,),
            ast.Attribute: lambda: (self.attributes.attribute,),
            ast.Subscript: lambda: (self.attributes.child_by_name, self.layers.child, self.subscripts.subscript),
            ast.Compare: lambda: (self.operators.known, self.kinds.compared, self.operators.compare),
            ast.BinOp: lambda: (self._percent, self.operators.of_object, self.operators.power),
            ast.UnaryOp: lambda: (self.operators.known, self.operators.negation),
            ast.BoolOp: lambda: (self.operators.boolean,),
            ast.Tuple: lambda: (self.kinds.together,),
            ast.IfExp: lambda: (self.operators.conditional,),
            ast.Lambda: lambda: (self.comprehensions.function,),
            ast.Dict: lambda: (self.comprehensions.display,),
            ast.Set: lambda: (self.comprehensions.display,),
            ast.ListComp: lambda: (self.operators.filtered, self.comprehensions.comprehension),
            ast.SetComp: lambda: (self.operators.filtered, self.comprehensions.comprehension),
            ast.DictComp: lambda: (
                self.operators.filtered,
                self.comprehensions.dict_of_arrays,
                self.comprehensions.comprehension,
            ),
            ast.GeneratorExp: lambda: (self.operators.filtered, self.comprehensions.comprehension),
            ast.JoinedStr: lambda: (self.comprehensions.fstring,),
        }

    def _of_kind(self, kind: type[ast.expr]) -> tuple[Handler, ...]:
        """The handlers of a kind of expression; the first that answers is right."""
        handlers = self._handlers.get(kind)
        if handlers is None:
            handlers = self._parts[kind]() if kind in self._parts else ()
            handlers = self._handlers[kind] = (*self._of_other_files(kind), *handlers)
        return handlers

    def _of_other_files(self, kind: type[ast.expr]) -> tuple[Handler, ...]:
        """The handlers that only a file needs which imports others of its project."""
        if kind not in (ast.Name, ast.Attribute, ast.Subscript) or not any(self.ctx.inference.imported.values()):
            return ()
        return (self.foreign.child if kind is ast.Subscript else self.foreign.children,)

    def _of_calls(self) -> tuple[Handler, ...]:
        has = self.ctx.inference.has
        known: tuple[Handler, ...] = (self.operators.known,) if has(KNOWN) else ()
        first: tuple[Handler, ...] = (self.methods.first_parameter,) if has(FIRST) else ()
        dicts: tuple[Handler, ...] = (self.methods.dict_of_arrays,) if has(DICTS) else ()
        named: tuple[Handler, ...] = (self.attributes.by_name, self.objects.member) if has(BY_NAME) else ()
        asked: tuple[Handler, ...] = (self.operators.asked,) if has(ASKED) else ()
        picked: tuple[Handler, ...] = (self.comprehensions.trained,) if has(PICKED) else ()
        last = (self.functions.partial, self.calls.call) if has(PARTIAL) else (self.calls.call,)
        return (*known, *first, *dicts, *named, *asked, *picked, *last)

    def _name(self, node: ast.Name) -> Piece | None:
        """A name that is read, where it is known for a library's object or a function."""
        scope = self.ctx.scope
        if node.id == "forward" and not scope.functions and scope.class_info and scope.class_info.calls_forward:
            return Piece("__call__")
        known = isinstance(node.ctx, ast.Load) and isinstance(self.ctx.fact(node), Qual | Function | Class)
        return self.objects.value(node) if known else None

    def _percent(self, node: ast.BinOp) -> None:
        """``"%.3f" % x``."""
        if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            self.known_values.text(node)
            numbers_of_format(self.ctx, self, node)

    # --- the parts, each made when it is first asked for ----------------------------------------------------------

    @cached_property
    def variables(self) -> Variables:
        return Variables(self.ctx, self)

    @cached_property
    def annotations(self) -> Annotations:
        return Annotations(self.ctx.inference, self, self.ctx.scope)

    @cached_property
    def subscripts(self) -> Subscripts:
        return Subscripts(self.ctx, self, self.copier, self.known_values)

    @cached_property
    def kinds(self) -> Kinds:
        return Kinds(self.ctx, self)

    @cached_property
    def in_place(self) -> InPlace:
        return InPlace(self.ctx, self, self.variables, self.copier, self.subscripts, self.any_layer)

    @cached_property
    def foreign(self) -> ForeignChildren:
        return ForeignChildren(self.ctx, self)

    @cached_property
    def layers(self) -> Layers:
        return Layers(self.ctx, self, self.copier, self._site)

    @cached_property
    def methods(self) -> ModuleMethods:
        return ModuleMethods(self.ctx, self, self.copier)

    @cached_property
    def rules(self) -> RuleApplication:
        return RuleApplication(self.ctx, self, self._site, lambda: self.known_values)

    @cached_property
    def functions(self) -> FunctionValues:
        return FunctionValues(self.ctx, self, self._site)

    @cached_property
    def tensors(self) -> TensorMethods:
        return TensorMethods(self.ctx, self.copier, self.rules, self.in_place, self.tensor_code)

    @cached_property
    def tensor_code(self) -> TensorCode:
        return TensorCode(self.ctx)

    @cached_property
    def known_values(self) -> KnownValues:
        return KnownValues(self.ctx, self.tensor_code)

    @cached_property
    def calls(self) -> Calls:
        return Calls(
            self.ctx,
            self,
            self.copier,
            self.rules,
            in_place=lambda: self.in_place,
            layers=lambda: self.layers,
            values=lambda: self.known_values,
            others=lambda: self.other_calls,
        )

    @cached_property
    def other_calls(self) -> OtherCalls:
        return OtherCalls(
            self.ctx,
            self,
            self.copier,
            self.rules,
            in_place=lambda: self.in_place,
            layers=lambda: self.layers,
            methods=lambda: self.methods,
            tensors=lambda: self.tensors,
            values=lambda: self.known_values,
            code=lambda: self.tensor_code,
            several=lambda: OneOfFunctions(self.ctx, self, self.rules, self.functions),
        )

    @cached_property
    def objects(self) -> LibraryObjects:
        return LibraryObjects(self.ctx, self, self.copier, self.rules, self.functions)

    @cached_property
    def any_layer(self) -> ParametersOfAnyLayer:
        return ParametersOfAnyLayer(self.ctx, self)

    @cached_property
    def attributes(self) -> Attributes:
        return Attributes(self.ctx, self, self.variables, self.rules, self.objects, self.any_layer, self.tensor_code)

    @cached_property
    def operators(self) -> Operators:
        return Operators(self.ctx.inference, self, self.copier, Truth(self.ctx, self.tensor_code), self.variables)

    @cached_property
    def comprehensions(self) -> Comprehensions:
        return Comprehensions(self.ctx, self, self.copier, self.known_values)

    def _site(self, node: ast.expr, name: str) -> CallSite:
        return CallSite(self.ctx, self.needs, lambda: self.variables, node, name)

    # --- rendering ------------------------------------------------------------------------------------------------

    def render(self, node: ast.expr) -> Piece:
        """The JAX code of one expression."""
        if getattr(node, "lineno", 1) == 0:
            return Piece("")
        done = self.rendered.get(node)
        if done is None:
            done = self._planned(node) or self.usual(node)
            if done.precedence == ANY and precedence(node) == ATOM and done.text and self._is_part(node):
                done = Piece(f"({done.text})")  # it stood inside the brackets of a call or a subscript
            if node in self.ctx.plan.layout.natural or node in self.ctx.plan.layout.wanted:
                moved = self.ctx.plan.layout.wrap(node, done.text, self.need("jnp"))
                done = Piece(moved) if moved is not None else done
            if isinstance(node, ast.Call):
                done = self.needs.shortened(done)
            if (behind := self.ctx.scope.stopped.get(node)) is not None:
                bare = isinstance(node, ast.Tuple) and not enclosed_tuple(done.text)
                done = Piece(f"{self.need('jax')}.lax.stop_gradient({f'({done.text})' if bare else done.text}){behind}")
            self.rendered[node] = done
        return done

    def _is_part(self, node: ast.expr) -> bool:
        """Whether an expression is more than a statement of its own, which may become an assignment."""
        return not isinstance(self.ctx.source.parents.get(node), ast.Expr)

    def _planned(self, node: ast.expr) -> Piece | None:
        """What a planner makes of an expression."""
        if node in self.ctx.scope.renamed:
            return Piece(self.ctx.scope.renamed[node])
        planned = self.ctx.plan.expression_handlers.get(node)
        return planned(self) if planned is not None else None

    def usual(self, node: ast.expr) -> Piece:
        """What an expression becomes but for its plan."""
        is_type = self.ctx.scope.annotation or isinstance(self.ctx.fact(node), TypeAlias)
        if is_type and (piece := self.annotations.piece(node)) is not None:
            return piece
        for handler in self._of_kind(type(node)):
            if (piece := handler(node)) is not None:
                return piece
        return self.copier.generic(node)

    def put(self, node: ast.expr, piece: Piece) -> None:
        """Say what an expression becomes, before it is rendered."""
        self.rendered[node] = piece

    def forget(self, nodes: Iterable[ast.AST]) -> None:
        """Have expressions rendered anew, because names in them mean something else where they stand next."""
        for node in nodes:
            if isinstance(node, ast.expr):
                self.rendered.pop(node, None)

    def argument(self, node: ast.expr, needed: bool = False) -> Piece:
        """An argument of a call: a variable is read with ``[...]``; ``needed`` where it can't be None."""
        piece = self.render(node)
        return self.variables.read(node, piece, needed) if isinstance(node, ast.Attribute) else piece

    def need(self, name: str) -> str:
        """A helper or imported name for the output, renamed if the user's code has taken it."""
        self.needs.claim(frozenset({name.partition(".")[0]}), self.ctx)
        return self.needs.text(name)


# --- calls ------------------------------------------------------------------------------------------------------------


class Calls:
    """What calls become: here those of PyTorch."""

    def __init__(
        self,
        context: Context,
        renderer: ExpressionRenderer,
        copier: Copier,
        rules: RuleApplication,
        in_place: Callable[[], InPlace],
        layers: Callable[[], Layers],
        values: Callable[[], KnownValues],
        others: Callable[[], OtherCalls],
    ) -> None:
        self.ctx = context
        self.renderer = renderer
        self.copier = copier
        self.rules = rules
        self.in_place = in_place
        self.layers = layers
        self.values = values
        self.others = others

    def call(self, node: ast.Call) -> Piece | None:
        """What a call becomes; None where only its arguments may change."""
        fact = self.ctx.fact(node.func)
        torch = isinstance(fact, Qual) and is_torch(fact.name)
        if not torch:
            self.values().held(node)
            report_what_stays(self.ctx, node)
        if isinstance(node.func, ast.Call | ast.Subscript) and asks_by_name(self.ctx, node):
            return self.copier.append_rngs(node)
        written = written_argument(node, self.ctx.inference) if self._writes(node, fact) else None
        if written is not None:
            return self.in_place().by_function(
                node, fact, written, lambda: self._called(node, fact) or self.copier.copy_arguments(node)
            )
        if isinstance(getattr(self.ctx.scope.statement, "node", None), ast.Expr):
            self.in_place().in_expression(node, fact, alone=self.ctx.is_statement(node))
        return self._called(node, fact)

    def _writes(self, node: ast.Call, fact: Fact) -> bool:
        """Whether a call may write into an argument that is to be bound anew."""
        return self.ctx.is_statement(node) or isinstance(fact, Qual) and fact.name.startswith("torch.nn.init.")

    def _called(self, node: ast.Call, fact: Fact) -> Piece | None:
        if isinstance(fact, Qual) and is_torch(fact.name):
            if isinstance(made := self.ctx.fact(node), Tensor) and made.variable:
                report_shared_parameters(self.ctx, node, fact)
            return self._torch_call(node, fact)
        return self.others().call(node, fact)

    def _torch_call(self, node: ast.Call, fact: Qual) -> Piece | None:
        name = fact.name
        if name in LAYERS:
            return self.layers().call(node, LAYERS[name])
        if name in READS_FILES and is_used_as_module(self.ctx, node):
            self.ctx.report.gap(node, name, "refused", WHOLE)
            return self.copier.copy_arguments(node)
        rule = rule_of(fact)
        changing = _changing(name) if name.endswith("_") and node.args else None
        if changing is not None:
            return self.in_place().call(node, node.args[0], lambda: self.rules.apply(changing, node, None))
        if rule is None or rule.emit is None:
            reason = rule.reason if rule is not None and rule.reason else f"t2j has no rule for {name}"
            self.ctx.report.gap(node, name, "refused" if rule is not None else "no-rule", reason)
            return self.copier.copy_arguments(node)
        out = next((k for k in node.keywords if k.arg == "out"), None)
        if out is not None and not _is_none(out.value):
            return self._with_out(rule, node, out)
        return self.rules.apply(rule, node, None) or self.copier.copy_arguments(node)

    def _with_out(self, rule: Rule, node: ast.Call, out: ast.keyword) -> Piece | None:
        target = out.value
        if not self.ctx.is_statement(node):
            self.ctx.report.gap(node, rule.name, "out", "out= writes into a tensor; assign the result instead")
            return self.copier.copy_arguments(node)
        piece = self.rules.apply(rule, node, None, skip=out)
        if piece is None:
            return self.copier.copy_arguments(node)
        return self.in_place().assign_to(target, piece, node) or self.copier.copy_arguments(node)


def _changing(name: str) -> Rule | None:
    """The rule of a function that writes into its argument, ``torch.zero_``, or of the one without: ``torch.relu``."""
    if (own := REGISTRY.get(name)) is None:
        return REGISTRY.get(name[:-1])
    of_one = name.count(".") == 1 and name not in names_with(Trait.OF_LISTS)
    return own if of_one and own.emit is not None else None


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
