"""States of modules that a program keeps and puts back: its best weights, a copy for a target network.

PyTorch's ``state_dict`` is a dictionary under PyTorch's names that follows the module. A copy of it converts where the
file does nothing with the copy but to load it into a module of the same class: it is a tree of arrays then.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.inference.gates import Gate
from t2j_lsp.translate.rule.definitions import Instance, is_module
from t2j_lsp.translate.rule.facts import Fact, Layer, Object, Qual
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.pieces import Piece

NEEDS = Gate(words=frozenset({"load_state_dict"}))
_SAME_VALUES, _COPIES = names_with(Trait.SAME_VALUES), names_with(Trait.COPIES)
_UNCHECKED = "nnx.update doesn't compare names and shapes; load_state_dict fails where they differ"


@dataclass
class _HeldState:
    """A name or attribute that holds a state, wherever in the file it does."""

    states: list[tuple[ast.expr, ast.expr]] = field(default_factory=list)
    """The copies that are assigned to it, and their modules."""
    loads: list[tuple[ast.Call, ast.expr]] = field(default_factory=list)
    """Where it is loaded, and into which modules."""
    other: bool = False
    """Whether anything else is done with it."""


def plan_saved_states(context: Context) -> None:
    """Have states that are only kept to be loaded again held as trees of arrays."""
    kept: dict[str, _HeldState] = {}
    for node in context.source.nodes:
        if (pair := _load(context, node)) is not None:
            call, module = pair
            source = _copied(context, call.args[0]) or _state_of(context, call.args[0])
            if source is not None and _same_class(context, [module, source]):
                _plan_load(context, call, module, source)
    for node in context.source.nodes:
        if isinstance(node, ast.Name | ast.Attribute):
            _add_use(context, node, kept.setdefault(_called(node), _HeldState()))
        elif isinstance(node, ast.arg):
            kept.setdefault(node.arg, _HeldState()).other = True
    for one in kept.values():
        modules = [module for _, module in [*one.states, *one.loads]]
        if one.states and one.loads and not one.other and _same_class(context, modules):
            for state, module in one.states:
                _plan_copy(context, state, module)
            for call, module in one.loads:
                _plan_load(context, call, module, None, one_module=len(set(map(ast.unparse, modules))) == 1)


def _called(node: ast.Name | ast.Attribute) -> str:
    """What a name or attribute is called; nothing is said of whose attribute it is."""
    return node.id if isinstance(node, ast.Name) else f".{node.attr}"


def _add_use(context: Context, node: ast.Name | ast.Attribute, kept: _HeldState) -> None:
    parent = context.source.parents.get(node)
    match parent:
        case ast.Assign(targets=[target], value=value) if target is node:
            module = _copied(context, value)
            if module is not None:
                kept.states.append((value, module))
            elif not (isinstance(value, ast.Constant) and value.value is None):
                kept.other = True
        case ast.Call() if (pair := _load(context, parent)) is not None and parent.args == [node]:
            kept.loads.append(pair)
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
            kept.other |= left is not node
        case ast.If(test=test) if test is node:
            pass
        case _:
            kept.other = True


def _load(context: Context, node: ast.AST | None) -> tuple[ast.Call, ast.expr] | None:
    """A call that loads a whole state and asks for no answer, with its module."""
    match node:
        case ast.Call(func=ast.Attribute(value=module, attr="load_state_dict"), args=[_], keywords=keywords):
            whole = all(
                k.arg == "strict" and isinstance(k.value, ast.Constant) and k.value.value is True for k in keywords
            )
            alone = isinstance(context.source.parents.get(node), ast.Expr)
            return (node, module) if whole and alone and is_module(context.fact(module)) else None
    return None


def _state_of(context: Context, node: ast.expr) -> ast.expr | None:
    """The module of ``module.state_dict()``."""
    match node:
        case ast.Call(func=ast.Attribute(value=module, attr="state_dict"), args=[], keywords=[]):
            return module if is_module(context.fact(module)) else None
    return None


def _copied(context: Context, node: ast.expr) -> ast.expr | None:
    """The module of a copy of its state: by ``deepcopy``, or tensor by tensor."""
    match node:
        case ast.Call(func=func, args=[state], keywords=[]) if context.fact(func) == Qual("copy.deepcopy"):
            return _state_of(context, state)
        case ast.DictComp(
            key=ast.Name(id=key),
            value=value,
            generators=[
                ast.comprehension(
                    target=ast.Tuple(elts=[ast.Name(id=first), ast.Name(id=second)]),
                    iter=ast.Call(func=ast.Attribute(value=state, attr="items"), args=[], keywords=[]),
                    ifs=[],
                )
            ],
        ) if key == first and _is_copy(context, value, second):
            return _state_of(context, state)
    return None


def _is_copy(context: Context, node: ast.expr, name: str) -> bool:
    """Whether an expression is a copy of the tensor that a name holds."""
    copies = False
    while True:
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr=method), args=[], keywords=[]) if method in _SAME_VALUES:
                copies |= method in _COPIES
                node = inner
            case ast.Call(func=func, args=[inner], keywords=[]) if context.fact(func) == Qual("copy.deepcopy"):
                copies, node = True, inner
            case ast.Name(id=read):
                return copies and read == name
            case _:
                return False


def _same_class(context: Context, modules: list[ast.expr]) -> bool:
    """Whether modules are of one class, so that their states have the same names and axes."""
    facts = [context.fact(module) for module in modules]
    if all(isinstance(f, Instance) and f.cls.info is facts[0].cls.info for f in facts):  # type: ignore[attr-defined]
        return True
    if all(isinstance(f, Layer) and f == facts[0] for f in facts):
        return True
    return len({ast.unparse(module) for module in modules}) == 1


def _state(context: Context, renderer: ExpressionRenderer, module: ast.expr) -> str:
    """The state of a module. PyTorch's has no optimizer in it, Flax's has the one that an attribute holds."""
    nnx = renderer.need("nnx")
    filters = f", {nnx}.Not({nnx}.OptState)" if _holds_optimizer(context.fact(module), set()) else ""
    return f"{nnx}.state({renderer.render(module).text}{filters})"


def _holds_optimizer(fact: Fact, seen: set[str]) -> bool:
    """Whether a module, or a part of it, holds an optimizer in an attribute."""
    if not isinstance(fact, Instance) or fact.cls.info.name in seen:
        return isinstance(fact, Object) and fact.kind == "optimizer"
    seen.add(fact.cls.info.name)
    return any(_holds_optimizer(held, seen) for info in fact.cls.info.ancestry() for held in info.attributes.values())


def _plan_copy(context: Context, node: ast.expr, module: ast.expr) -> None:
    def handler(renderer: ExpressionRenderer) -> Piece:
        jax, jnp = (renderer.need(name) for name in ("jax", "jnp"))
        context.report.count_converted()
        return Piece(f"{jax}.tree.map({jnp}.copy, {_state(context, renderer, module)})")

    context.plan.on_expression(node, handler)


def _plan_load(
    context: Context, node: ast.Call, module: ast.expr, source: ast.expr | None, one_module: bool = False
) -> None:
    """``source``: the module whose state is loaded; None where the argument is a copy."""

    def handler(renderer: ExpressionRenderer) -> Piece:
        assert isinstance(node.func, ast.Attribute)
        nnx = renderer.need("nnx")
        if not one_module:
            context.report.note(node, f"torch.nn.Module.{node.func.attr}", "note", _UNCHECKED)
        context.report.count_converted()
        state = renderer.render(node.args[0]).text if source is None else _state(context, renderer, source)
        return Piece(f"{nnx}.update({renderer.render(module).text}, {state})")

    context.plan.on_expression(node, handler)
