"""The walk of a step over all parameters: what is done once, for each group, and for each parameter."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from t2j_lsp import symbols

from .unfit import Unfit, need

_SEVERAL = "it walks over its parameters more than once"
_BESIDE = "something beside the walk over its parameters"
_WITHOUT_GRADIENT = ("no_grad", "_use_grad_for_differentiable", "inference_mode")


@dataclass
class Walk:
    """The parts of a step."""

    group: str
    parameter: str
    body: list[ast.stmt]
    """What is done for each parameter."""
    before: list[ast.stmt] = field(default_factory=list)
    """What is done before that, once or for each group."""
    after: list[ast.stmt] = field(default_factory=list)


def read_walk(method: ast.FunctionDef) -> Walk:
    """The parts of a step. Raises Unfit."""
    closure = [a.arg for a in symbols.named_parameters(method)][1:]
    need(len(closure) <= 1 and not method.args.vararg and not method.args.kwarg, "what its step takes", method)
    for decorator in method.decorator_list:
        name = ast.unparse(symbols.called_decorator(decorator)).rpartition(".")[2]
        need(name in _WITHOUT_GRADIENT, f"the decorator {name} of its step", decorator)
    losses = {"loss"} | {n.id for s in method.body if isinstance(s, ast.Return) for n in _names(s)}
    walk: Walk | None = None
    before, after = list[ast.stmt](), list[ast.stmt]()
    for statement in _flat(method.body, closure):
        if _is_of_closure(statement, closure, losses):
            need(walk is None or not _asks(statement, closure), "its closure is evaluated behind its step", statement)
            continue
        if isinstance(statement, ast.For) and ast.unparse(statement.iter) == "self.param_groups":
            need(walk is None, _SEVERAL, statement)
            walk = _of_group(statement)
            continue
        need(isinstance(statement, ast.AugAssign | ast.Assign | ast.If), _BESIDE, statement)
        (before if walk is None else after).append(statement)
    if walk is None:
        raise Unfit("its step doesn't walk over self.param_groups", method)
    walk.before[:0] = before
    walk.after += after
    return walk


def _flat(body: list[ast.stmt], closure: list[str]) -> list[ast.stmt]:
    """Statements with those of ``with torch.no_grad():`` among them."""
    out: list[ast.stmt] = []
    for statement in body:
        out += _flat(statement.body, closure) if is_without_gradient(statement) else [statement]  # type: ignore[attr-defined]
    return out


def is_without_gradient(node: ast.stmt) -> bool:
    """Whether it is ``with torch.no_grad():``."""
    return isinstance(node, ast.With) and all(
        isinstance(i.context_expr, ast.Call)
        and ast.unparse(i.context_expr.func).rpartition(".")[2] in _WITHOUT_GRADIENT
        for i in node.items
    )


def _names(node: ast.AST) -> list[ast.Name]:
    return [n for n in symbols.walk(node) if isinstance(n, ast.Name)]


def _is_of_closure(node: ast.stmt, closure: list[str], losses: set[str]) -> bool:
    """What evaluates the closure first, which whoever calls the step does, and what hands its loss back."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Pass():
            return True
        case ast.Return(value=value):
            return value is None or isinstance(value, ast.Name | ast.Constant)
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=None)):
            return name in losses
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name))):
            return name.startswith("_") and name.endswith("_graph_capture_health_check")
        case ast.If(test=ast.Call(func=ast.Name(id="hasattr")), body=body, orelse=orelse):
            return all(_is_of_closure(s, closure, losses) for s in (*body, *orelse))
    stored = {n.id for n in _names(node) if isinstance(n.ctx, ast.Store)}
    return _asks(node, closure) and stored <= losses and not any(isinstance(n, ast.For) for n in symbols.walk(node))


def _asks(node: ast.stmt, closure: list[str]) -> bool:
    return any(n.id in closure for n in _names(node))


def inner_loop(loop: ast.For) -> tuple[str, ast.For]:
    """The variable of the groups, and the loop over the parameters of each, which is all there is. Raises Unfit."""
    match loop:
        case ast.For(target=ast.Name(id=group), body=[ast.For() as inner], orelse=[]):
            need(ast.unparse(inner.iter) == f"{group}['params']", "how it walks over the parameters of a group", inner)
            return group, inner
    raise Unfit("how it walks over its groups", loop)


def _of_group(loop: ast.For) -> Walk:
    """The walk over a group's parameters."""
    need(isinstance(loop.target, ast.Name) and not loop.orelse, "how it walks over its groups", loop)
    assert isinstance(loop.target, ast.Name)
    group = loop.target.id
    walk: Walk | None = None
    before, after = list[ast.stmt](), list[ast.stmt]()
    for statement in loop.body:
        if isinstance(statement, ast.For) and any(n.id == group for n in _names(statement.iter)):
            need(walk is None, _SEVERAL, statement)
            iterated = ast.unparse(statement.iter).replace('"', "'")
            plain = iterated == f"{group}['params']" and isinstance(statement.target, ast.Name) and not statement.orelse
            need(plain, "how it walks over the parameters of a group", statement)
            assert isinstance(statement.target, ast.Name)
            walk = Walk(group, statement.target.id, statement.body)
            continue
        if _leaves_groups_alone(statement, group):
            continue
        known = isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.If | ast.Expr)
        need(known or walk is not None and isinstance(statement, ast.For), _BESIDE, statement)
        (before if walk is None else after).append(statement)
    if walk is None:
        raise Unfit("its step doesn't walk over the parameters of each group", loop)
    walk.before, walk.after = before, after
    return walk


def _leaves_groups_alone(node: ast.stmt, group: str) -> bool:
    """Whether it passes a group over none of whose parameters has a gradient: in JAX all that are updated have one."""
    match node:
        case ast.If(
            test=ast.UnaryOp(
                op=ast.Not(), operand=ast.Call(func=ast.Name(id="any"), args=[ast.GeneratorExp() as each])
            ),
            body=[ast.Continue()],
            orelse=[],
        ):
            walked = [ast.unparse(g.iter).replace('"', "'") for g in each.generators]
            asked = ast.unparse(each.elt)
            return (
                walked == [f"{group}['params']"]
                and asked == f"{ast.unparse(each.generators[0].target)}.grad is not None"
            )
    return False
