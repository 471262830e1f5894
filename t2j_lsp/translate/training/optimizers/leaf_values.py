"""What is known of the tensors that an optimizer updates: whether they have another name, and take gradients."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from t2j_lsp import symbols
from t2j_lsp.symbols import named_parameters
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.storage import ADDING, VIEWS
from t2j_lsp.translate.rule.definitions import Function, FunctionInfo
from t2j_lsp.translate.rule.facts import Fact, Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.tensors import is_array_tree
from t2j_lsp.translate.source.positions import are_alternatives
from t2j_lsp.translate.training.program.gradient_forms import is_flag
from t2j_lsp.translate.training.program.objects import Objects, VariableScope

_SAME = (VIEWS, names_with(Trait.SAME_TENSOR), names_with(Trait.SAME_VALUES))
"""Methods of a tensor that may give its own memory; of these some copy it."""
_COPIES = names_with(Trait.COPIES)
_WRAPS = (names_with(Trait.VARIABLE), names_with(Trait.MAKES_PARAMETER), names_with(Trait.FROM_NUMPY))
"""Functions that do, of what they are given."""


class LeafValues:
    """Asks it of variables of one scope."""

    def __init__(self, context: Context, objects: Objects, scope: VariableScope, made: ast.Call | None = None) -> None:
        self.ctx = context
        self.objects = objects
        self.scope = scope
        self.made = made
        """The optimizer, if it is known: what stands in another branch than it is none of its tensors."""

    def share(self, name: str) -> bool:
        """Whether a variable was given what another name holds, and that name is read elsewhere."""
        for value in self._given(name):
            held = with_this_memory(value, self.ctx.fact)
            if isinstance(held, ast.Name | ast.Attribute) and is_array_tree(self.ctx.fact(held)):
                own, text = set(ast.walk(value)), ast.unparse(held)
                reads = (n for n in self.ctx.source.nodes if isinstance(n, type(held)) and n not in own)
                if text != name and any(isinstance(n.ctx, ast.Load) and ast.unparse(n) == text for n in reads):
                    return True
        return False

    def _is_tensor(self, node: ast.expr) -> bool:
        return isinstance(self.ctx.fact(node), Tensor)

    def take_gradients(self, name: str) -> bool:
        """Whether the file says of all tensors of a variable that they take gradients; others stay as they are."""
        given = self._given(name)
        return bool(given) and all(self._takes_gradients(one) for one in given) or self._flag_is_set(name)

    def _takes_gradients(self, node: ast.expr) -> bool:
        match node:
            case ast.List() | ast.Tuple() | ast.Set():
                return all(map(self._takes_gradients, node.elts))
            case ast.Dict():
                return all(map(self._takes_gradients, node.values))
            case ast.ListComp() | ast.GeneratorExp():
                return self._takes_gradients(node.elt)
            case ast.DictComp():
                return self._takes_gradients(node.value)
            case ast.IfExp():
                return self._takes_gradients(node.body) and self._takes_gradients(node.orelse)
            case ast.Call(func=func) if isinstance(fact := self.ctx.fact(func), Function):
                return any(map(_sets_flag, symbols.walk(fact.info.node)))
        return any(map(_sets_flag, ast.walk(node)))

    def _flag_is_set(self, name: str) -> bool:
        """Whether a line says it: ``w.requires_grad = True``, ``for p in params: p.requires_grad_()``."""
        for node in self.ctx.source.nodes:
            if not isinstance(node, ast.Attribute) or not node.attr.startswith("requires_grad"):
                continue
            owner = node.value
            while isinstance(owner, ast.Subscript):
                owner = owner.value
            if isinstance(owner, ast.Name | ast.Attribute) and _sets_flag(self.ctx.source.parents[node]):
                if ast.unparse(owner) == name or isinstance(owner, ast.Name) and self._is_item(owner):
                    return True
        return False

    def _is_item(self, node: ast.Name) -> bool:
        """Whether a name is the variable of a loop."""
        loops = (n for n in self.ctx.source.nodes if isinstance(n, ast.For))
        return any(isinstance(n, ast.Name) and n.id == node.id for loop in loops for n in ast.walk(loop.target))

    # --- lists of tensors -----------------------------------------------------------------------------------------

    def hold_own(self, name: str) -> bool:
        """Whether the tensors of a list or dict were made for it: none has another name that keeps the old array."""
        given = self._given(name)
        return bool(given) and all(map(self._is_new, given))

    def _given(self, name: str) -> list[ast.expr]:
        """What a variable is given, and what is put into the list or dict that it holds."""
        if "." in name:
            given, made, parents = self.objects.assigned(name, self.scope), self.made, self.ctx.source.parents
            return [one for one in given if made is None or not are_alternatives(one, made, parents)]
        home = self.objects.home(name, self.scope)
        given = self.objects.assigned(name, home) or list(self._unpacked(name, home))
        return [*given, *self._added(name, home)]

    def _unpacked(self, name: str, home: VariableScope) -> Iterator[ast.expr]:
        """What gives a variable a part of it: ``w, b = [torch.zeros(2, requires_grad=True) for _ in range(2)]``."""
        for statement in self.objects.statements(home):
            match statement:
                case ast.Assign(targets=[ast.Tuple() as target], value=value) if name in symbols.bound_names([target]):
                    yield value

    def _added(self, name: str, home: VariableScope) -> Iterator[ast.expr]:
        for one in self.objects.named(name, home):
            match self.ctx.source.parents.get(one):
                case ast.Attribute() as method if method.attr in ADDING:
                    call = self.ctx.source.parents[method]
                    yield from (
                        [*call.args, *(k.value for k in call.keywords)] if isinstance(call, ast.Call) else [method]
                    )
                case ast.Subscript(ctx=ast.Store()) as item:
                    change = self.ctx.source.parents[item]
                    if not isinstance(self.ctx.fact(one), Tensor):
                        yield change.value if isinstance(change, ast.Assign) else item

    def _is_new(self, node: ast.expr) -> bool:
        """Whether an expression makes all tensors that it gives."""
        match node:
            case ast.List() | ast.Tuple() | ast.Set():
                return all(map(self._is_new, node.elts))
            case ast.Dict():
                return all(map(self._is_new, node.values))
            case ast.ListComp() | ast.GeneratorExp():
                return self._is_new(node.elt)
            case ast.DictComp():
                return self._is_new(node.value)
            case ast.IfExp():
                return self._is_new(node.body) and self._is_new(node.orelse)
            case ast.BinOp() | ast.UnaryOp():
                return self._is_tensor(node)
            case ast.Constant():
                return True
            case ast.Call(func=ast.Attribute(value=owner)) if self._is_tensor(owner):
                return self._is_new(owner)
            case ast.Call(func=func) if isinstance(fact := self.ctx.fact(func), Function):
                return self._gives_own(fact.info)
            case ast.Call(func=func, args=args) if isinstance(fact := self.ctx.fact(func), Qual):
                wraps = any(fact.name in names for names in _WRAPS)
                return is_array_tree(self.ctx.fact(node)) and (not wraps or all(map(self._is_new, args[:1])))
        return False

    def _gives_own(self, info: FunctionInfo) -> bool:
        """Whether what a function of the file returns is made in it."""
        own = self.ctx.source.symbols.bound(info.node) - {a.arg for a in named_parameters(info.node)}
        returned = [n.value for n in symbols.own_nodes(info.node) if isinstance(n, ast.Return)]
        names = [n for one in returned if one is not None for n in ast.walk(one) if isinstance(n, ast.Name)]
        return bool(returned) and all(n.id in own for n in names if is_array_tree(self.ctx.fact(n)))


def with_this_memory(node: ast.expr, fact: Callable[[ast.AST], Fact]) -> ast.expr:
    """The expression whose memory a value has: ``v`` of ``v.requires_grad_()`` and ``Variable(v)``; else it itself."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name, value=inner)) if isinstance(fact(inner), Tensor):
            same = any(name in names for names in _SAME) and name not in _COPIES
            return with_this_memory(inner, fact) if same else node
        case ast.Attribute(attr="data", value=inner):
            return with_this_memory(inner, fact)
        case ast.Call(func=func, args=[inner, *_]) if isinstance(called := fact(func), Qual):
            return with_this_memory(inner, fact) if any(called.name in names for names in _WRAPS) else node
    return node


def _sets_flag(node: ast.AST) -> bool:
    """``requires_grad=True``, ``x.requires_grad_()``, ``x.requires_grad = True``, ``nn.Parameter(x)``."""
    match node:
        case ast.Assign(targets=[ast.Attribute(attr="requires_grad")], value=ast.Constant(value=True)):
            return True
        case ast.Attribute(attr="Parameter") | ast.Name(id="Parameter"):
            return True
    return is_flag(node)
