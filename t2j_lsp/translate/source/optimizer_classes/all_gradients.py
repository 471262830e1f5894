"""What a step computes of all gradients together before its walk, as their norm, by a method that collects them.

``scale = self._clip_scale()`` becomes one more function of the optimizer, which is given all gradients.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from t2j_lsp import symbols
from t2j_lsp.translate.rule.library import Trait, names_with

from .answers import answered
from .forms import raises_for_sparse
from .functions import is_text
from .names import is_gradient, writes_into
from .renaming import renamed
from .unfit import Unfit, need
from .walks import inner_loop, is_without_gradient

_VALUES = names_with(Trait.VALUE)


@dataclass(frozen=True)
class AllGradients:
    """The variable that a step gives such a value, and the method that computes it."""

    variable: str
    method: ast.FunctionDef


def without_all_gradients(
    step: ast.FunctionDef, methods: Mapping[str, ast.FunctionDef]
) -> tuple[ast.FunctionDef, AllGradients | None]:
    """The step without the statement that computes it, and what that computes. Raises Unfit."""
    for node in step.body:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=variable)],
                value=ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name), args=[], keywords=[]),
            ) if name in methods and any(map(_walks, methods[name].body)):
                stored = [n for n in symbols.walk(step) if isinstance(n, ast.Name) and n.id == variable]
                once = sum(not isinstance(n.ctx, ast.Load) for n in stored) == 1
                calls = [n for s in methods.values() for n in symbols.walk(s) if _names_method(n, name)]
                need(once and len(calls) == 1, f"how its method {name} is used", node)
                made = copy.copy(step)
                made.body = [s for s in step.body if s is not node]
                return made, AllGradients(variable, methods[name])
    return step, None


def _names_method(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name


def _walks(node: ast.stmt) -> bool:
    return isinstance(node, ast.For) and ast.unparse(node.iter) == "self.param_groups"


def body_of(
    shared: AllGradients, gradients: str, options: Mapping[str, str], attributes: Mapping[str, str]
) -> list[ast.stmt]:
    """What the method does with all ``gradients``; options and attributes are variables. Raises Unfit."""
    method = shared.method
    decorators = [ast.unparse(d).rpartition(".")[2].removesuffix("()") for d in method.decorator_list]
    need(set(decorators) <= {"no_grad"} and len(symbols.named_parameters(method)) == 1, "a method of its step", method)
    statements = [s for s in _flat(answered(method.body)) if not is_text(s)]
    loops = [s for s in statements if isinstance(s, ast.For) and _walks(s)]
    need(len(loops) == 1, f"how its method {method.name} walks over its parameters", method)
    collected = _collected(loops[0])
    variables = _Variables(options, attributes)
    out = []
    for node in statements:
        if node is loops[0] or _is_empty(node, collected) or _asks_for_none(node, collected):
            continue
        changed = renamed(variables.visit(copy.deepcopy(node)), {collected: gradients})
        if not (
            isinstance(changed, ast.Assign)
            and [ast.unparse(t) for t in changed.targets] == [ast.unparse(changed.value)]
        ):
            out.append(ast.fix_missing_locations(changed))
    inside = [n for s in out for n in ast.walk(s) if isinstance(n, ast.Name)]
    given = {*options.values(), *attributes.values(), gradients}
    stored = {n.id for n in inside if not isinstance(n.ctx, ast.Load)}
    need(not stored & given and not any(n.id == "self" for n in inside), f"what its method {method.name} does", method)
    _check_walks(out, gradients)
    _check_values(out, gradients)
    need(bool(out) and isinstance(out[-1], ast.Return), f"what its method {method.name} returns", method)
    return out


def _check_walks(body: Sequence[ast.stmt], gradients: str) -> None:
    """Raises Unfit where a tensor is walked over, which has its first axis for that, or a gradient is written into."""
    nodes = [n for s in body for n in ast.walk(s)]
    lists, items = {gradients}, set[str]()
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_list(value):
                lists.add(name)
            case ast.For(target=target) | ast.comprehension(target=target):
                items |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
    for node in nodes:
        match node:
            case ast.For(iter=walked) | ast.comprehension(iter=walked):
                known = isinstance(walked, ast.Name) and walked.id in lists - items
                need(known, f"what it walks over of all {gradients}", body[0])
            case ast.Call() if (into := writes_into(node)) is not None:
                own = into.id not in items | lists if isinstance(into, ast.Name) else isinstance(into, ast.BinOp)
                need(own, "what it writes into", body[0])
            case ast.AugAssign(target=target):
                need(isinstance(target, ast.Name) and target.id not in items | lists, "what it writes into", body[0])


def _check_values(body: Sequence[ast.stmt], gradients: str) -> None:
    """Raises Unfit where what is computed asks for values, which compiled code has not, or for PyTorch's order."""
    nodes = [n for s in body for n in ast.walk(s)]
    computed = {gradients}
    for _ in range(len(body) + 1):
        for node in nodes:
            match node:
                case ast.Assign(targets=targets, value=value) if _reads(value, computed):
                    computed |= {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
                case ast.AugAssign(target=ast.Name(id=name), value=value) if _reads(value, computed):
                    computed.add(name)
                case ast.For(target=target) | ast.comprehension(target=target):
                    computed |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
    for node in nodes:
        match node:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) | ast.Assert(test=test):
                need(_asks_none(test) or not _reads(test, computed), "a condition on what it computes", node)
            case ast.Call(func=ast.Name(id="sum" | "len" | "hasattr" | "zip" | "enumerate")):
                pass
            case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr=name)):
                need(not _reads(node, computed), f"{name}() of what it computes", node)
            case ast.Call(func=ast.Attribute(attr=name)) if name in _VALUES:
                raise Unfit("numbers that it takes out of tensors", node)
            case ast.For(body=inside):
                need(all(map(_is_sum, inside)), "the order in which it goes over gradients", node)


def _reads(node: ast.AST, names: Set[str]) -> bool:
    return any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(node))


def _asks_none(test: ast.expr) -> bool:
    match test:
        case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return True
    return False


def _is_sum(node: ast.stmt) -> bool:
    """``total += f(g)`` and ``total = total + f(g)``, which come to the same in any order."""
    match node:
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=added):
            return not _reads(added, {name})
        case ast.Assign(
            targets=[ast.Name(id=name)], value=ast.BinOp(left=ast.Name(id=first), op=ast.Add(), right=added)
        ):
            return first == name and not _reads(added, {name})
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="add_"), args=[added])):
            return not _reads(added, {name})
    return False


def _is_list(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name.startswith("_foreach_")
    return isinstance(node, ast.ListComp)


def _flat(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Statements with those of ``with torch.no_grad():`` among them."""
    out: list[ast.stmt] = []
    for node in body:
        out += _flat(node.body) if isinstance(node, ast.With) and is_without_gradient(node) else [node]
    return out


def _collected(loop: ast.For) -> str:
    """The list that a walk over all parameters puts every gradient in, and does no more. Raises Unfit."""
    _, inner = inner_loop(loop)
    need(isinstance(inner.target, ast.Name) and not inner.orelse, "how it walks over the parameters of a group", inner)
    assert isinstance(inner.target, ast.Name)
    parameter, body = inner.target.id, answered(inner.body)
    held = {parameter + ".grad"}
    match body:
        case [ast.If(test=test, body=under, orelse=[])] if _has_gradient(test, parameter) is True:
            body = under
    name = ""
    for node in body:
        match node:
            case ast.Pass():
                continue
            case ast.If(test=test, body=[ast.Continue()], orelse=[]) if _has_gradient(test, parameter) is False:
                continue
            case ast.Assign(targets=[ast.Name(id=alias)], value=value) if is_gradient(value, parameter):
                held.add(alias)
                continue
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[item])):
                if (ast.unparse(item) in held or is_gradient(item, parameter)) and node is body[-1]:
                    return name
            case _ if raises_for_sparse(node):
                continue
        raise Unfit("what it collects of all parameters", node)
    raise Unfit("what it collects of all parameters", loop)


def _has_gradient(test: ast.expr, parameter: str) -> bool | None:
    """Whether a test holds for parameters that have a gradient; None for other tests."""
    match test:
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]):
            return isinstance(op, ast.IsNot) if is_gradient(left, parameter) else None
    return None


def _is_empty(node: ast.stmt, name: str) -> bool:
    """``grads = []``."""
    match node:
        case ast.Assign(targets=[ast.Name(id=given)], value=ast.List(elts=[])):
            return given == name
        case ast.AnnAssign(target=ast.Name(id=given), value=ast.List(elts=[])):
            return given == name
    return False


def _asks_for_none(node: ast.stmt, name: str) -> bool:
    """``if not grads: return None``: without gradients there is no step."""
    match node:
        case ast.If(test=test, body=[ast.Return()], orelse=[]):
            return ast.unparse(test) in (f"not {name}", f"len({name}) == 0")
    return False


class _Variables(ast.NodeTransformer):
    """``self.defaults["eps"]`` and ``self.eps`` as the variables that have them."""

    def __init__(self, options: Mapping[str, str], attributes: Mapping[str, str]) -> None:
        self.options, self.attributes = options, attributes

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        match node:
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id="self"), attr="defaults"), slice=ast.Constant(value=str(key))
            ) if key in self.options:
                need(key != "lr", "the first learning rate that it reads, of which a schedule makes others", node)
                return ast.copy_location(ast.Name(self.options[key], node.ctx), node)
        self.generic_visit(node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id == "self" and node.attr in self.attributes:
            return ast.copy_location(ast.Name(self.attributes[node.attr], node.ctx), node)
        self.generic_visit(node)
        return node
