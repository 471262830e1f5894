"""Applies rules: binds the arguments, asks the rule, which sees the place of the call, and says where it isn't sure."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from t2j_lsp import symbols
from t2j_lsp.contract import NOTE_CODES
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.rule.binding import arguments_of, bind
from t2j_lsp.translate.rule.contexts import context_name
from t2j_lsp.translate.rule.facts import Fact, Layer, Object, Partial, Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with, stands_alone
from t2j_lsp.translate.rule.optimizer_plan import OptimizerPlan
from t2j_lsp.translate.rule.pieces import Piece, assigned
from t2j_lsp.translate.rule.record import (
    CHANNELS_LAST,
    IGNORED,
    REGISTRY,
    Argument,
    Call,
    CannotHoist,
    Refusal,
    Rule,
    Signature,
    is_simple,
    may_need_values,
)
from t2j_lsp.translate.source import assignments
from t2j_lsp.translate.source.evaluation import asked_before
from t2j_lsp.translate.source.walked import walked_by
from t2j_lsp.translate.source.width import lines_with

from .axisless import of_vectors, without_axes
from .called_layers import called_layer
from .context import Context
from .detached import becomes_a_number, is_detached
from .evaluation_order import depends_on_order
from .given_names import reads_the_same
from .handlers import ExpressionRenderer
from .known_values import KnownValues
from .needs import NeededNames
from .own_files import resumes_optimizer, was_written
from .own_lists import is_own_list
from .own_parameters import is_handed_flag, walked_parameters
from .rngs import rngs_expression
from .variables import Variables

_WITHOUT = names_with(Trait.NO_GRADIENT)
_SWITCHING = (_WITHOUT, names_with(Trait.FORWARD), names_with(Trait.GRADIENT_SWITCH))
INITIAL_VALUES = "the initial values of layers are Flax's, not PyTorch's (--init flax)"


def _function(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> symbols.FunctionNode | None:
    """The function that a node stands in."""
    return next((at for at in ancestors(node, parents) if isinstance(at, ast.FunctionDef | ast.AsyncFunctionDef)), None)


class CallSite:
    """Implements ``rule.Site`` for one call node."""

    def __init__(
        self, context: Context, needs: NeededNames, variables: Callable[[], Variables], node: ast.expr, name: str
    ) -> None:
        self.ctx = context
        self._needs = needs
        self._variables = variables
        self.node = node
        self.name = name

    @property
    def x64(self) -> bool:
        return self.ctx.options.x64

    def init(self, arguments: str) -> str:
        """The arguments that give a layer PyTorch's initial values; where they are left to Flax, noted once."""
        if self.ctx.options.init == "torch":
            return arguments
        if all(finding.reason != INITIAL_VALUES for finding in self.ctx.report.findings):
            self.note(INITIAL_VALUES)
        return ""

    @property
    def hands_flag(self) -> bool:
        return is_handed_flag(self.node, self.ctx.source.parents)

    @property
    def copies(self) -> bool:
        return self.node in self.ctx.plan.writes.copied

    @property
    def rereads(self) -> bool:
        return was_written(self.ctx, self.node)

    @property
    def resumes(self) -> bool:
        return resumes_optimizer(self.ctx, self.node)

    @property
    def renames(self) -> Mapping[str, str]:
        return self._needs.renames

    def claim(self, names: frozenset[str]) -> None:
        """Use a template's free names here."""
        self._needs.claim(names, self.ctx)

    @property
    def statement(self) -> bool:
        current = self.ctx.scope.statement
        return current is not None and isinstance(current.node, ast.Expr) and current.node.value is self.node

    def made(self, node: ast.expr, handed: bool = False) -> list[tuple[str, ast.Call]]:
        parents, function = self.ctx.source.parents, _function(node, self.ctx.source.parents)
        calls = self.ctx.source.assigned_calls.get(ast.unparse(node), ()) if is_simple(node) else ()
        parameters = symbols.named_parameters(function) if handed and function is not None else ()
        anywhere = isinstance(node, ast.Name) and any(one.arg == node.id for one in parameters)
        near = [assignments.first_of_chain(call) for call in calls if anywhere or _function(call, parents) is function]
        return [(fact.name, call) for call in near if isinstance(fact := self.ctx.fact(call.func), Qual)]

    def computed(self, node: ast.expr) -> bool:
        function = _function(node, self.ctx.source.parents)
        if isinstance(node, ast.BinOp) or not isinstance(node, ast.Name) or function is None:
            return isinstance(node, ast.BinOp)
        pairs = (pair for n in symbols.walk(function) if n is not function for pair in assignments.assigned(n))
        return any(isinstance(value, ast.BinOp) and ast.unparse(target) == node.id for target, value in pairs)

    def walked(self, node: ast.expr) -> ast.expr | None:
        return walked_by(node, self.ctx.source.parents)

    @property
    def unpacked(self) -> int:
        current = self.ctx.scope.statement
        if current is not None and isinstance(current.node, ast.Assign) and current.node.value is self.node:
            target = current.node.targets[0]
            if isinstance(target, ast.Tuple | ast.List) and len(current.node.targets) == 1:
                return len(target.elts)
        return 0

    @property
    def mapped(self) -> ast.expr | None:
        """What ``map`` hands to the function that is named here, ``map(f, xs)``; None if that is something else."""
        match self.ctx.source.parents.get(self.node):
            case ast.Call(func=ast.Name(id="map"), args=[function, values]) if function is self.node:
                return values
        return None

    @property
    def index(self) -> int | str | None:
        """The constant index or attribute read from the call's value (``x.max(1)[0]``, ``.values``), None otherwise."""
        parent = self.ctx.source.parents.get(self.node)
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
            return assignments.only_used(parent.targets[0])
        if isinstance(parent, ast.Subscript) and parent.value is self.node:
            index = parent.slice
            if isinstance(index, ast.Constant) and isinstance(index.value, int):
                return index.value
        if isinstance(parent, ast.Attribute) and parent.value is self.node:
            return parent.attr
        return None

    @property
    def in_module(self) -> bool:
        """Whether the call stands in a method of an nn.Module."""
        return self.ctx.scope.class_info is not None and self.ctx.scope.class_info.is_module

    @property
    def without_gradient(self) -> bool:
        """Whether the source takes no gradient of the call's value, or of the part of it that is read."""
        parents = self.ctx.source.parents
        value: ast.AST = self.node
        if isinstance(self.node, ast.Call) and isinstance(self.node.func, ast.Attribute):
            if is_detached(self.ctx.source, self.node.func.value):
                return True
        if becomes_a_number(self.node, parents):
            return True
        for node in ancestors(self.node, parents):
            match node:
                case ast.Attribute(value=part, attr="detach") if part is value:
                    return True
                case ast.Attribute(value=part) | ast.Subscript(value=part) if part is value:
                    value = node
                case ast.With() if names := [self._name_of(item.context_expr) for item in node.items]:
                    if any(name in known for known in _SWITCHING for name in names):
                        return all(name in _WITHOUT for name in names)
                case ast.FunctionDef() | ast.AsyncFunctionDef() if node.decorator_list:
                    return any(self._name_of(d) in _WITHOUT for d in node.decorator_list)
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                    return False
        return False

    @property
    def traced(self) -> bool:
        """Whether the call takes values out of an array where gradients are traced."""
        return self.node in self.ctx.plan.traced

    def _name_of(self, node: ast.expr) -> str:
        """The name of a library's context or decorator."""
        return context_name(self.ctx.fact(node.func if isinstance(node, ast.Call) else node), node)

    @property
    def optimizer(self) -> OptimizerPlan | None:
        """What the file does with the optimizer that this call makes."""
        return self.ctx.plan.optimizers.get(self.node)

    def owns(self, node: ast.expr) -> bool:
        return self.statement and is_own_list(self.ctx, node)

    def fact(self, node: ast.expr) -> Fact:
        """What is known of any expression."""
        return self.ctx.fact(node)

    def called(self, node: ast.expr) -> Layer | None:
        return called_layer(self.ctx, node)

    def note(self, reason: str) -> None:
        self.ctx.report.note(self.node, self.name, "note", reason)

    def fresh(self, hint: str) -> str:
        return self.ctx.names.fresh(hint)

    def hoist(self, piece: Piece, hint: str, node: ast.expr | None = None) -> Piece | None:
        current = self.ctx.scope.statement
        if current is None or not current.hoistable:
            return None
        asked = asked_before(self.node, self.ctx.source.parents)  # `x is not None and f(x)`: f(x) may fail before that
        if asked and any(isinstance(n, ast.Name) and n.id in asked for n in symbols.walk(self.node)):
            return None
        if depends_on_order(node if node is not None else self.node, self.ctx.source.parents):
            return None
        name = self.ctx.names.fresh(hint)
        current.before.append(f"{name} = {assigned(piece)}")
        return Piece(name)

    def lines(self, text: str) -> int:
        return lines_with(self.ctx.source.lines, self.node, text, self.ctx.source.line_limit)

    def rngs(self) -> str:
        return rngs_expression(self.ctx, self.node)

    def parameter(self, node: ast.expr, constant: bool = False) -> tuple[str, bool] | None:
        return self._variables().parameter(node, constant)

    def walked_parameters(self) -> tuple[list[Tensor], bool]:
        """The parameters of the user's own that a walk over all meets, as in PyTorch, and whether there are others."""
        return walked_parameters(self.ctx)


Sites = Callable[[ast.expr, str], CallSite]
"""Makes the site of a call, under the name that findings have."""


class RuleApplication:
    """Rules applied to calls and attributes."""

    def __init__(
        self, context: Context, renderer: ExpressionRenderer, site: Sites, values: Callable[[], KnownValues]
    ) -> None:
        self.ctx = context
        self.renderer = renderer
        self.site = site
        self.values = values

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
        if receiver is None or not self.ctx.inference.has_jax:
            self.ctx.report.gap(node, rule.name, "arguments", f"the arguments do not fit {rule.signatures[0].text}")
        return None  # x.transpose(0, 2, 1), in a file that was converted before, is a method of arrays

    def apply_partial(self, node: ast.Call, fact: Partial, name: str) -> Piece | None:
        """A call of ``partial(torch.arange, device=device)``: as if all arguments stood in the call."""
        made = fact.node
        if (
            made is None
            or any(k.arg is None for k in made.keywords)
            or any(isinstance(a, ast.Starred) for a in made.args)
        ):
            return None
        if not reads_the_same(self.ctx.source, made, node):
            if not node.keywords and self.ctx.edits.partials.get(made) == len(node.args):
                return None  # it is a function of JAX now
            reason = f"a partial of {name} is called here, and what it was given is not in reach or may have changed"
            self.ctx.report.gap(node, name, "function-value", reason)
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

    def apply_value(self, rule: Rule, node: ast.expr) -> Piece | None:
        """A rule without parameters: ``torch.float32``."""
        return self._emit(rule, rule.signatures[0], node, {}, False)

    def apply_attribute(self, rule: Rule, node: ast.Attribute, owner: Fact) -> Piece | None:
        """A rule for an attribute of a tensor: ``x.mT``."""
        assert rule.emit is not None
        site = self.site(node, rule.name)
        receiver = Argument("self", self.renderer.argument(node.value), owner, node.value)
        result = rule.emit(Call(rule.signatures[0], {"self": receiver}, site, node, True))
        if isinstance(result, Refusal):
            self.ctx.report.gap(node, rule.name, "refused", result.reason)
            return None
        if result is not None and rule.note is not None:
            self.ctx.report.note(node, rule.name, NOTE_CODES[rule.fidelity], rule.note)
        return result

    def _emit(
        self, rule: Rule, signature: Signature, node: ast.expr, bound: dict[str, list[ast.expr]], method: bool
    ) -> Piece | None:
        site = self.site(node, rule.name)
        keywords = node.keywords if isinstance(node, ast.Call) else ()
        arguments = arguments_of(
            signature,
            bound,
            self.renderer.argument,
            self.ctx.fact,
            keywords,
            self._silent_argument,
            partial(self.renderer.argument, needed=True),
            *([self.ctx.plan.layout.shown] if self.ctx.plan.layout.texts else []),
        )
        objects = [a for a in arguments.values() if isinstance(a.fact, Object) and a.name != "self"]
        if objects and rule.name not in names_with(Trait.TAKES_ANY_OBJECT):
            for kind in (a.fact.kind for a in objects if stands_alone(a.fact)):
                reason = f"{rule.name} of JAX takes no {kind} matrix: take its to_dense()"
                self.ctx.report.gap(node, rule.name, "refused", reason)
                return None
        call = Call(signature, arguments, site, node, method)
        assert rule.emit is not None
        emit = CHANNELS_LAST[rule.name][1] if node in self.ctx.plan.layout.functions else rule.emit
        try:
            vectors = of_vectors(rule, call) if _of_axisless(arguments) else None
            if vectors is not None:
                arguments, call = vectors, replace(call, arguments=vectors)
            result = emit(call)
            if vectors is not None and isinstance(result, Piece):
                result = without_axes(rule, call, result)
        except CannotHoist as error:
            result = Refusal(f"the argument {error.args[0]!r} would be evaluated twice; assign it to a name first")
        except Exception as error:  # noqa: BLE001 - a rule that fails must be a finding, not a dead server
            self.ctx.report.gap(
                node, rule.name, "rule-error", f"the rule for {rule.name} failed: {type(error).__name__}: {error}"
            )
            return None
        dropped = [name for name in arguments.unseen(IGNORED | rule.ignore) if call.given(name)]
        if isinstance(result, Piece) and dropped:
            result = Refusal(f"no rule for the argument {dropped[0]!r} of {rule.name}")
        if isinstance(result, Refusal):
            self.ctx.report.gap(node, rule.name, "refused", result.reason)
            return None
        if result is None:
            self.ctx.report.gap(node, rule.name, "unsure", f"no sure JAX form for this use of {rule.name}")
            return None
        self.ctx.report.count_converted()
        if rule.note is not None:
            self.ctx.report.note(node, rule.name, NOTE_CODES[rule.fidelity], rule.note)
        if may_need_values(arguments):
            self.values().asked(node, rule, arguments)
        return result

    def _silent_argument(self, node: ast.expr) -> Piece:
        """An argument that is about to be dropped: nothing in it is reported."""
        with self.ctx.report.silent():
            return self.renderer.argument(node)


def _of_axisless(arguments: Mapping[str, Argument]) -> bool:
    """Whether a call's tensor is known to have no axes."""
    fact = next((argument.fact for argument in arguments.values()), None)
    return isinstance(fact, Tensor) and fact.rank == 0
