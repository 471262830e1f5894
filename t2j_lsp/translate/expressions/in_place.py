"""In-place operations as values that are bound again."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Mapping, Sequence

from t2j_lsp.symbols import scopes_around
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.fillers import runs_in_forward, stops_gradients, written_argument
from t2j_lsp.translate.inference.forward_pass import is_known
from t2j_lsp.translate.inference.parsed_numbers import is_parsed_number
from t2j_lsp.translate.inference.written_parameters import is_used_before, is_used_beside
from t2j_lsp.translate.rule.definitions import Function, Instance
from t2j_lsp.translate.rule.facts import Fact, Partial, Scalar, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.pieces import ANY, ATOM, Piece, assigned, bracket
from t2j_lsp.translate.rule.tensors import behind_data
from t2j_lsp.translate.source.evaluation import evaluated_once
from t2j_lsp.translate.source.text import Source

from .alike import writes_alike
from .any_layer import ParametersOfAnyLayer
from .context import Context
from .copying import Copier
from .handlers import ExpressionRenderer
from .own_parameters import buffer_names, is_handed_flag
from .properties import property_of
from .scope import CurrentStatement
from .subscripts import Subscripts
from .variables import Variables

FREE = "this changes {}, which is bound outside of the function: return the new array instead"

KEPT = "PyTorch keeps the gradient of what is overwritten without gradients here: say x + stop_gradient(new - x)"

OF_PROPERTY = (
    "a property gives {}, and what is written into that is no part of the object in JAX: write it where it is held"
)

FREEZES = "this freezes a parameter: leave it out of nnx.DiffState(0, filter) and nnx.Optimizer(..., wrt=filter)"
INSIDE = "an in-place operation inside an expression; put it on a line of its own"
WRITES = "{} may write into {}, and JAX's arrays can't be written to: store what a function of JAX's returns"
_OF_SOME_LAYER = "{} may be a parameter, of a module whose class isn't known here"
_INITIALISES = re.compile(r"(?:\w+_)?(?:re)?(?:init|initiali[sz]e|fill)(?:_\w+)?$")
"""Names of functions that initialise what they are given."""


class InPlace:
    """Writes into what an operation in place changes."""

    def __init__(
        self,
        context: Context,
        renderer: ExpressionRenderer,
        variables: Variables,
        copier: Copier,
        subscripts: Subscripts,
        any_layer: ParametersOfAnyLayer,
    ) -> None:
        self.ctx = context
        self.renderer = renderer
        self.variables = variables
        self.copier = copier
        self.subscripts = subscripts
        self.any_layer = any_layer

    def call(self, node: ast.Call, receiver: ast.expr, value: Callable[[], Piece | None]) -> Piece | None:
        """``x.add_(y)``: the new value, bound to what held the old one."""
        receiver = _written_through(receiver)
        statement = self.ctx.scope.statement
        alone = statement is not None and isinstance(statement.node, ast.Expr) and statement.node.value is node
        raw = self._in_kernel_layout(node, receiver) or (
            statement is not None and alone and writes_alike(self.ctx.inference, statement.node)
        )
        in_front = len(statement.before) if statement is not None else 0
        piece = value()
        if piece is None:
            return self.copier.copy_arguments(node)
        before = self.ctx.fact(receiver)
        if isinstance(before, Tensor) and _yields_bool(node) and before.dtype != "bool":
            piece = self._of_its_dtype(receiver, piece)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
            # A flag that JAX does not have: the array is what it was, and a variable takes over that of another.
            if node.args and is_handed_flag(node.args[0], self.ctx.source.parents):
                return piece
            if alone and statement is not None and not self.ctx.report.quiet:
                self.ctx.edits.delete(statement.node)
                return Piece(self.ctx.source.segment(node))
            return piece
        if alone and self._freezes(node, receiver, before):
            self._unseen(node, FREEZES)
            return Piece(self.ctx.source.segment(node))
        if alone:
            done = self.assign_to(receiver, piece, node, raw)
            if done is None and statement is not None:
                del statement.before[in_front:]  # nothing reads it: the call stays as it was
            return done if done is not None else Piece(self.ctx.source.segment(node))
        variable, parents = isinstance(before, Tensor) and before.variable, self.ctx.source.parents
        if _stands_for(statement, node, receiver, variable, parents):
            return piece
        if self._is_outside(receiver):
            self._unseen(node, FREE.format(ast.unparse(receiver)))
            return self.copier.copy_arguments(node)
        if isinstance(receiver, ast.Name) and statement is not None and statement.hoistable:
            if evaluated_once(node, parents) and not is_used_before(node, receiver.id, statement.node, parents):
                statement.before.append(f"{receiver.id} = {assigned(piece)}")
                return Piece(receiver.id)
        self._unseen(node, INSIDE)
        return self.copier.copy_arguments(node)

    def _freezes(self, node: ast.Call, receiver: ast.expr, held: Fact) -> bool:
        """Whether it is ``detach_()`` of a parameter, which has no gradient from then on; a buffer never has one."""
        if not isinstance(node.func, ast.Attribute) or node.func.attr != "detach_":
            return False
        owner = self.ctx.fact(receiver.value) if isinstance(receiver, ast.Attribute) else None
        classes = owner.cls.info.ancestry() if isinstance(owner, Instance) else ()
        buffers = set[str]().union(*map(buffer_names, classes))
        named = isinstance(receiver, ast.Attribute) and receiver.attr in buffers
        return isinstance(held, Tensor) and held.variable and not named

    def by_function(self, node: ast.Call, fact: Fact, receiver: ast.expr, value: Callable[[], Piece]) -> Piece | None:
        """``trunc_(self.weight)``, where a function writes into what it is given: what it returns, bound to that."""
        around = self.ctx.scope.function
        variable = isinstance(held := self.ctx.fact(receiver), Tensor) and held.variable
        variable = variable or self.any_layer.writes(behind_data(receiver))
        differentiated = around is not None and (runs_in_forward(around) if variable else around.runs_in_module)
        if isinstance(fact, Function) and around is not None and differentiated:
            if any(stops_gradients(info, self.ctx.inference) for info in (fact.info, around)):
                self._unseen(node, KEPT)
                return self.copier.copy_arguments(node)
        return self.call(node, receiver, value)

    def in_expression(self, node: ast.Call, fact: Fact, alone: bool) -> None:
        """``init_fn(self.weight)``, of a function from outside, and ``[zero(p) for p in ps]`` as a statement."""
        if alone and not is_known(fact) and not isinstance(node.func, ast.Attribute):
            name = ast.unparse(node.func)
            written = next((a for a in node.args if isinstance(f := self.ctx.fact(a), Tensor) and f.variable), None)
            if written is not None and not hasattr(builtins, name):
                self._unseen(node, WRITES.format(name, ast.unparse(written)))
        elif not alone and isinstance(fact, Function | Partial):
            if isinstance(written_argument(node, self.ctx.inference), ast.Name | ast.Attribute):
                self._unseen(node, INSIDE)

    def by_unknown(self, node: ast.Call) -> None:
        """``trunc_normal_(self.weight)`` of a library: by its name it writes into what it is given."""
        name = ast.unparse(node.func).rpartition(".")[2]
        if (name.endswith("_") and not name.endswith("__")) or _INITIALISES.match(name):
            for argument in [*node.args, *(k.value for k in node.keywords)]:
                fact = self.ctx.fact(argument)
                if isinstance(fact, Tensor) and (fact.variable or name.endswith("_")):
                    self._unseen(node, WRITES.format(name, ast.unparse(argument)))
                    return

    def _of_its_dtype(self, receiver: ast.expr, piece: Piece) -> Piece:
        """A comparison in place keeps the tensor's dtype in PyTorch: ``x.eq_(y)`` gives zeros and ones."""
        holder = bracket(self.renderer.render(receiver), ATOM)
        return Piece(f"{bracket(piece, ATOM)}.astype({holder}.dtype)", ATOM)

    def _in_kernel_layout(self, node: ast.Call, receiver: ast.expr) -> bool:
        """Render a kernel as it is, not in PyTorch's layout, where the operation treats all its elements alike."""
        arguments = [*node.args, *(k.value for k in node.keywords)]
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in _ELEMENTWISE:
            return False
        parameter = self.variables.parameter(receiver, constant=True)
        numbers = node.func.attr in _GIVEN_NUMBERS or all(map(self._is_number, arguments))
        if parameter is None or not parameter[1] or not numbers:
            return False
        self.renderer.put(receiver, Piece(f"{parameter[0]}[...]"))
        return True

    def _is_number(self, node: ast.expr) -> bool:
        """Whether an argument is a number, or an array of none of the axes that a kernel has."""
        fact = self.ctx.fact(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self._is_number(node.operand)
        scalar = isinstance(fact, Scalar) or isinstance(fact, Tensor) and fact.rank == 0
        return scalar or is_parsed_number(self.ctx.source, node)

    def assign_to(self, target: ast.expr, piece: Piece, node: ast.expr, raw: bool = False) -> Piece | None:
        """The statement that binds ``piece`` to what ``target`` names; None after reporting why it can't.

        ``raw``: the value of a kernel has Flax's layout already, and not PyTorch's.
        """
        of_data = isinstance(target, ast.Attribute) and target.attr == "data"
        target = behind_data(target)
        parameter = self.variables.parameter(target, constant=raw)
        if parameter is not None:
            text, flax_layout = parameter
            value = self.variables.in_flax_layout(target, piece) if flax_layout and not raw else assigned(piece)
            if value is None:
                self._unseen(node, f"whether {text} is a kernel in Flax's layout is not known here")
                return None
            return Piece(f"{text}[...] = {value}", ANY)
        holder = behind_data(target.value) if isinstance(target, ast.Subscript) else target
        if isinstance(holder, ast.Attribute) and (reason := why_not_bound(self.ctx.inference, holder)) is not None:
            self._unseen(node, reason)
            return None
        if self._is_outside(holder):
            self._unseen(node, FREE.format(ast.unparse(holder)))
            return None
        of_some_layer = isinstance(target, ast.Attribute) and self.variables.is_of_some_layer(target)
        if isinstance(target, ast.Attribute) and of_some_layer and target.attr == "bias":
            # Every layer calls it so, and it has one axis.
            return Piece(f"{self.renderer.render(target.value).text}.bias[...] = {assigned(piece)}", ANY)
        if (written := self.any_layer.write(target, piece)) is not None:
            return Piece(written, ANY)
        if of_some_layer:
            self._unseen(node, _OF_SOME_LAYER.format(ast.unparse(target)))
            return None
        match target:
            case ast.Name():
                return Piece(f"{target.id} = {assigned(piece)}", ANY)
            case ast.Attribute() if of_data and not isinstance(self.ctx.fact(target), Tensor):
                self._unseen(node, _OF_SOME_LAYER.format(ast.unparse(target)))
                return None
            case ast.Attribute(value=ast.Name() as owner) if target.attr not in (
                "data",
                "grad",
                "T",
            ) and not isinstance(self.ctx.fact(owner), Tensor):
                return Piece(f"{self.renderer.render(target.value).text}.{target.attr} = {assigned(piece)}", ANY)
            case ast.Tuple(elts=[ast.Name(), *_] as names) if all(isinstance(n, ast.Name) for n in names):
                return self._unpack(names, piece, node)
            case ast.Subscript(value=ast.Name() | ast.Attribute()):
                return self._assign_to_part(target, piece, node)
            case _:
                self._unseen(node, "an in-place operation on a view or temporary value is not seen by its owner in JAX")
                return None

    def _unpack(self, names: Sequence[ast.expr], piece: Piece, node: ast.expr) -> Piece | None:
        """``out=(values, indices)`` of a call with several results: what is unpacked into these names."""
        free = next((name for name in names if self._is_outside(name)), None)
        if free is not None:
            self._unseen(node, FREE.format(ast.unparse(free)))
            return None
        return Piece(f"{', '.join(map(ast.unparse, names))} = {assigned(piece)}", ANY)

    def _assign_to_part(self, target: ast.Subscript, piece: Piece, node: ast.expr) -> Piece | None:
        held = behind_data(target.value)
        base = self.ctx.fact(held)
        index = self.subscripts.index(target)
        variable = self.variables.parameter(held)
        if variable is not None:
            if variable[1]:
                stored = self.variables.with_part(
                    held, variable[0], lambda weight: f"{weight}.at[{index}].set({piece.text})"
                )
                if stored is None:
                    self._unseen(node, f"whether {variable[0]} is a kernel in Flax's layout is not known here")
                return Piece(stored, ANY) if stored is not None else None
            return Piece(f"{variable[0]}[{index}] = {assigned(piece)}", ANY)
        holder = bracket(self.renderer.render(held if isinstance(base, Tensor) else target.value), ATOM)
        if isinstance(base, Tensor) and not base.variable:
            return Piece(f"{holder} = {holder}.at[{index}].set({piece.text})", ANY)
        return Piece(f"{holder}[{index}] = {assigned(piece)}", ANY)

    def _is_outside(self, holder: ast.expr) -> bool:
        """Whether what holds an array has a name from outside, which the function isn't to give a new value."""
        around = scopes_around(holder, self.ctx.source.parents)
        rebound = any(getattr(holder, "id", "") in self.ctx.plan.rebound.get(scope, ()) for scope in around)
        return not rebound and is_free(self.ctx.source, holder)

    def _unseen(self, node: ast.expr, reason: str) -> None:
        self.ctx.report.gap(node, "in-place", "in-place", reason)


def is_free(source: Source, holder: ast.expr) -> bool:
    """Whether what holds an array is a name that the function around it has from outside.

    Binding the name there makes another one, and what is outside keeps the old array.
    """
    return isinstance(holder, ast.Name) and source.symbols.is_free(holder.id, scopes_around(holder, source.parents))


def why_not_bound(inference: Inference, holder: ast.expr) -> str | None:
    """Why what holds an array can't get a new one: it has a name from outside, or a property gives it."""
    if is_free(inference.source, holder):
        return FREE.format(ast.unparse(holder))
    if isinstance(holder, ast.Attribute) and property_of(inference.fact(holder.value), holder.attr) is not None:
        return OF_PROPERTY.format(ast.unparse(holder))
    return None


_ELEMENTWISE = names_with(Trait.ELEMENTWISE_IN_PLACE)
_GIVEN_NUMBERS = names_with(Trait.GIVEN_NUMBERS)


def _stands_for(
    statement: CurrentStatement | None,
    node: ast.Call,
    receiver: ast.expr,
    variable: bool,
    parents: Mapping[ast.AST, ast.AST],
) -> bool:
    """Whether nothing reads what an operation wrote into but through its value."""
    if variable and _is_link(statement, node):
        return True
    if not isinstance(receiver, ast.Name):
        match statement.node if statement is not None else None:
            case ast.Assign(targets=[ast.Attribute(attr=attr)], value=value) as made if value is node:
                if attr not in ("data", "grad") and _changed(made) is value:
                    return True
        temporary = isinstance(receiver, ast.BinOp | ast.UnaryOp | ast.Compare)
        return temporary or _is_link(statement, node) or isinstance(receiver, ast.Call) and not _is_view(receiver)
    match statement.node if statement is not None else None:
        case ast.Return() as returned:
            return not is_used_beside(node, receiver.id, returned, parents)
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return value is node and name == receiver.id
        case _:
            return False


def _is_link(statement: CurrentStatement | None, node: ast.Call) -> bool:
    """Whether a statement's last in-place method goes on from this one: ``x.mul_(0.9)`` of ``x.mul_(0.9).add_(y)``."""
    outer = _changed(statement.node) if statement is not None else None
    while isinstance(outer, ast.Call) and isinstance(outer.func, ast.Attribute):
        if not outer.func.attr.endswith("_") or outer.func.attr.endswith("__"):
            return False
        outer = outer.func.value
        if outer is node:
            return True
    return False


def _changed(statement: ast.stmt) -> ast.expr | None:
    """What a statement computes to change something in place: ``x.mul_(0.9)``, ``self.x = self.x.mul_(0.9)``."""
    match statement:
        case ast.Expr(value=value):
            return value
        case ast.Assign(targets=[ast.Attribute() as target], value=value):
            return value if ast.unparse(_written_through(value)) == ast.unparse(target) else None
    return None


def _written_through(node: ast.expr) -> ast.expr:
    """What a chain of in-place methods writes into: ``x`` of ``x.mul_(2).add_(1)``."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        if not name.endswith("_") or name.endswith("__"):
            break
        node = node.func.value
    return node


def _yields_bool(node: ast.Call) -> bool:
    """Whether the operation's own value is boolean (``eq_``, ``logical_not_``)."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    return name in names_with(Trait.BOOLEAN_IN_PLACE) or name.startswith("logical_")


def _is_view(node: ast.Call) -> bool:
    """Whether the call returns a view of its receiver, so that a write through it changes the receiver."""
    return isinstance(node.func, ast.Attribute) and node.func.attr in names_with(Trait.WRITABLE_VIEW)
