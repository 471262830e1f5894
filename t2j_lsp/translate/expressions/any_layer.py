"""``branch.weight`` and ``bn.running_mean`` of layers whose class isn't known: looked up when the program runs.

A layer of Flax has its kernel under another name and in another layout than PyTorch's weight. Where the value is read
and no more, or all of it is written, a helper finds it, whatever class the layer has; where the parameter itself is
handed on (to an optimizer, to another module, under a second name), only its own class would do.
"""

from __future__ import annotations

import ast
from typing import TypeGuard

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.inference.fillers import runs_in_forward, written_argument
from t2j_lsp.translate.inference.forward_pass import UnknownParameter, is_known
from t2j_lsp.translate.inference.named_layers import RENAMED, holders, is_named_part, named_as_layer
from t2j_lsp.translate.rule.definitions import Function, layer_names
from t2j_lsp.translate.rule.facts import UNKNOWN, AnyModule, Fact, Qual
from t2j_lsp.translate.rule.layer import flax_names
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.pieces import ATOM, Piece
from t2j_lsp.translate.rule.record import REGISTRY
from t2j_lsp.translate.rule.tensors import behind_data

from .context import Context
from .handlers import ExpressionRenderer
from .wrapped_layers import is_wrapped

_HANDED = names_with(Trait.OF_PARAMETER)
_SHARING = frozenset({"detach", "data"})
"""What gives the same memory once more."""


class ParametersOfAnyLayer:
    """Reads and writes of parameters whose layer may be of any class."""

    def __init__(self, context: Context, renderer: ExpressionRenderer) -> None:
        self.ctx = context
        self.renderer = renderer

    def read(self, node: ast.Attribute) -> Piece | None:
        """The value in PyTorch's layout; None where it is more than a value."""
        if not self._may_be_any(node, RENAMED) or not self._is_value(node):
            return None
        return self.looked_up(node.value, node.attr)

    def is_of_layer(self, node: ast.Attribute) -> bool:
        """Whether its owner is a layer, for sure or by what it is called: ``model.encoder.fc``.

        The helper gives what isn't a layer's under its own name.
        """
        return is_named_part(node.value) or any(isinstance(self.ctx.fact(o), AnyModule) for o in holders(node.value))

    def by_name(self, node: ast.Call) -> Piece | None:
        """``hasattr(m, "weight")``, ``getattr(bn, "weight", None) is not None``: whether a layer has it, no more."""
        match node:
            case ast.Call(func=ast.Name(id="hasattr"), args=[owner, ast.Constant(value=str() as name)]):
                if name not in RENAMED or self.ctx.options.target != "nnx":
                    return None
                text = self.renderer.argument(owner).text
                return Piece(f'hasattr({text}, {self.renderer.need("flax_name")}({text}, "{name}"))', ATOM)
        match self.ctx.source.parents.get(node), node:
            case (
                ast.Compare(left=left, ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]),
                ast.Call(func=ast.Name(id="getattr"), args=[owner, ast.Constant(value=str() as name), *default]),
            ) if left is node and name in RENAMED and self.ctx.options.target == "nnx":
                return self.looked_up(owner, name, *(self.renderer.render(given).text for given in default))
        return None

    def looked_up(self, owner: ast.expr, name: str, *default: str) -> Piece:
        """What the helper finds under a name of PyTorch's."""
        arguments = ", ".join((self.renderer.argument(owner).text, f'"{name}"', *default))
        return Piece(f"{self.renderer.need('torch_parameter')}({arguments})", ATOM)

    def writes(self, target: ast.expr) -> TypeGuard[ast.Attribute]:
        """Whether it names a parameter that the helper writes.

        Not in a forward pass: PyTorch goes on with the gradient of what is overwritten without gradients.
        """
        around = self.ctx.scope.function
        if around is not None and runs_in_forward(around):
            return False
        return isinstance(target, ast.Attribute) and self._may_be_any(target, RENAMED | {"bias"})

    def write(self, target: ast.expr, value: Piece) -> str | None:
        """The call that writes all of a parameter; None where the target is something else."""
        if not self.writes(target):
            return None
        if not is_known(self.ctx.fact(target.value)):
            self.ctx.report.note(
                target, f"Module.{target.attr}", "probable", f"{ast.unparse(target.value)!r} is taken for a layer"
            )
        owner = self.renderer.argument(target.value).text
        return f'{self.renderer.need("set_torch_parameter")}({owner}, "{target.attr}", {value.text})'

    def _may_be_any(self, node: ast.Attribute, names: frozenset[str]) -> bool:
        """Whether it has such a name, and is of a layer of which several classes are left, or of something unknown."""
        owner: Fact = self.ctx.fact(node.value)
        if node.attr not in names or self.ctx.options.target != "nnx" or not self.ctx.inference.imports_torch:
            return False
        if is_wrapped(owner):
            return False
        known = isinstance(owner, AnyModule) and bool(layer_names(owner)) and len(flax_names(owner, node.attr)) < 2
        named = isinstance(owner, UnknownParameter) and named_as_layer(node.value)
        return not known and (isinstance(owner, AnyModule) or owner == UNKNOWN or named)

    def _is_value(self, node: ast.expr) -> bool:
        """Whether only the value of an expression is asked for, where it stands or under a local name."""
        parent = self.ctx.source.parents.get(node)
        match parent:
            case ast.Attribute(attr=name) if name in _SHARING:
                return self._is_value(parent)
            case ast.Attribute(attr=name):
                rules = [REGISTRY.get(f"torch.Tensor.{form}") for form in (name, name.rstrip("_"))]
                return name not in _HANDED and any(rule is not None and rule.emit is not None for rule in rules)
            case ast.Call(func=func) if func is node:  # .detach()
                return self._is_value(parent)
            case ast.BinOp() | ast.UnaryOp():
                return True
            case ast.Compare(ops=operators, comparators=others):
                identity = any(isinstance(operator, ast.Is | ast.IsNot) for operator in operators)
                return not identity or all(isinstance(o, ast.Constant) and o.value is None for o in others)
            case ast.Assign(targets=[ast.Attribute(attr="data")]):
                return True
            case ast.Subscript(value=value, ctx=ast.Load()):
                return value is node and self._is_value(parent)
            case ast.Call():
                return self._is_given_to_function(parent, node)
            case ast.keyword() | ast.List() | ast.Tuple():
                call = self.ctx.source.parents.get(parent)
                return isinstance(call, ast.Call) and self._is_given_to_function(call, node)
        return self._is_named(node)

    def _is_given_to_function(self, call: ast.Call, given: ast.expr) -> bool:
        """Whether a function of PyTorch's computes with it, and neither writes into it nor keeps it.

        Or one of the file's writes into it, which hands it back, so that it is stored again.
        """
        fact = self.ctx.fact(call.func)
        if isinstance(fact, Function) and isinstance(self.ctx.source.parents.get(call), ast.Expr):
            filled = written_argument(call, self.ctx.inference)
            return filled is not None and self.writes(behind_data(filled)) and behind_data(filled) is behind_data(given)
        if not isinstance(fact, Qual) or any(keyword.arg == "out" for keyword in call.keywords):
            return False
        group, _, name = fact.name.rpartition(".")
        return group in ("torch", "torch.nn.functional") and not name.endswith("_")

    def _is_named(self, node: ast.expr) -> bool:
        """Whether it is given a local name, of which only the value is asked for."""
        parents = self.ctx.source.parents
        around = next((n for n in ancestors(node, parents) if isinstance(n, symbols.FunctionNode)), None)
        statement = parents.get(node)
        if around is None or not isinstance(statement, ast.Assign):
            return False
        match statement.targets:
            case [ast.Name(id=name)] if statement.value is node:
                pass
            case _:
                return False
        uses = [n for n in symbols.walk(around) if isinstance(n, ast.Name) and n.id == name]
        declared = any(isinstance(n, ast.Global | ast.Nonlocal) and name in n.names for n in symbols.walk(around))
        return not declared and all(self._only_reads(use) for use in uses)

    def _only_reads(self, use: ast.Name) -> bool:
        """Whether one use of a local name takes its value, writes nothing into it, and gives it no other name."""
        if isinstance(use.ctx, ast.Store):
            return not isinstance(self.ctx.source.parents.get(use), ast.AugAssign)
        held: ast.AST | None = use
        while isinstance(held, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
            parent = self.ctx.source.parents.get(held)
            if isinstance(parent, ast.Attribute) and parent.attr.endswith("_") or isinstance(parent, ast.AugAssign):
                return False
            held = parent if isinstance(held, ast.Name) or parent is not None else None
        return not isinstance(held, ast.Assign) and self._is_value(use)
