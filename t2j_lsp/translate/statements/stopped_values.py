"""Values made without gradient that are stopped where they are made, because behind the block it is too late.

``return self.net(x), x`` under ``torch.no_grad()`` stops the one and not the other; so does a name that has either, and
a list that is filled there or an attribute that is set has no name of its own to be stopped by.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from itertools import takewhile

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.tensor_code import TensorCode
from t2j_lsp.translate.rule.definitions import Instance
from t2j_lsp.translate.rule.facts import UNKNOWN, AnyModule, Layer, ListOf, Tensor, Tuple

from .overwriting import assigned_names, overwritten
from .unknown_passes import UnknownPasses, differentiable

_FILLING = frozenset({"add", "append", "appendleft", "extend", "insert", "setdefault", "update"})
_LOOPS = ast.For | ast.AsyncFor | ast.While


class StoppedValues:
    """Finds them, and marks them for whoever renders them."""

    def __init__(
        self,
        context: Context,
        code: TensorCode,
        is_buffer: Callable[[ast.expr], bool],
        is_trained: Callable[[ast.expr], bool],
    ) -> None:
        self.ctx = context
        self.code = code
        self.is_buffer = is_buffer
        self.is_trained = is_trained
        self.returns: set[ast.Return] = set()
        """Returns of which parts are stopped."""
        self.targets: set[ast.Name] = set()
        """Names whose values are stopped as they are assigned."""

    def plan(self, block: ast.stmt, around: ast.AST, used_later: set[str]) -> None:
        """Mark what one block, or function, makes."""
        for statement, values in self._stopped(block, around, used_later):
            self.ctx.scope.stopped |= dict.fromkeys(values, "")
            if isinstance(statement, ast.Return):
                self.returns.add(statement)
            else:
                self.targets |= {name for name in assigned_names(statement) if name.id in used_later}

    def stops(self, block: ast.stmt, around: ast.AST, used_later: set[str]) -> bool:
        """Whether a block makes such values."""
        return any(values for _, values in self._stopped(block, around, used_later))

    def filled(self, block: ast.stmt, around: ast.AST, used_later: set[str]) -> list[str]:
        """Arrays of before a block that it writes into what may carry a gradient: ``h += self.net(x)``."""
        if not self._is_differentiated(block, around):
            return []
        passes, names = UnknownPasses(self.ctx, block), dict[str, None]()
        for statement in (n for n in symbols.walk(block) if isinstance(n, ast.stmt)):
            for name in overwritten(statement):
                outside = name.id in used_later and name.id not in self.bound_before(name, block)
                if outside and passes.carries(name) and any(map(passes.carries, _written(statement))):
                    names.setdefault(name.id)
        return list(names)

    def _stopped(
        self, block: ast.stmt, around: ast.AST, used_later: set[str]
    ) -> Iterator[tuple[ast.AST, list[ast.expr]]]:
        """The statements of a block whose values are stopped in parts or one by one, with these values."""
        passes = UnknownPasses(self.ctx, block)
        mixed = self._mixed_names(block, used_later, passes)
        stores = self._is_differentiated(block, around)
        for node in symbols.walk(block):
            match node:
                case ast.Return(value=ast.expr() as value) if self._is_mixed(value, block, passes):
                    yield node, self._parts(value, block, passes)
                case ast.Assign() | ast.AnnAssign() | ast.NamedExpr() if mixed & {n.id for n in assigned_names(node)}:
                    values = [value_of(node, name) or node.value for name in assigned_names(node) if name.id in mixed]
                    yield node, [part for v in values if v is not None for part in self._parts(v, block, passes)]
                case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Expr() if stores:
                    for kept in self._stored(node, block, around, used_later):
                        yield node, self._parts(kept, block, passes)
            if isinstance(node, ast.stmt) and stores:
                for place, sources in writes(node):
                    if self._is_read_elsewhere(place):
                        fed = [source for source in sources if self._reads_others(source, place, passes)]
                        yield node, [part for source in fed for part in self._parts(source, block, passes)]

    def _mixed_names(self, block: ast.stmt, used_later: set[str], passes: UnknownPasses) -> set[str]:
        """Names that are read behind a block and stand for what it made and for what was there, as it comes."""
        outside: dict[str, list[bool]] = {}
        unclear = overwritten_inside(block)
        for node in symbols.walk(block):
            for name in assigned_names(node):
                value = value_of(node, name)
                if name.id not in used_later or name.id in unclear:
                    continue
                from_outside = outside.setdefault(name.id, [])
                if value is None:
                    from_outside.append(False)
                elif self._is_mixed(value, block, passes):
                    from_outside += [True, False]
                elif passes.carries(value):
                    from_outside.append(self._is_from_outside(value, block))
        return {name for name, from_outside in outside.items() if len(set(from_outside)) == 2}

    def _is_mixed(self, value: ast.expr, block: ast.stmt, passes: UnknownPasses) -> bool:
        """Whether something has parts that were there before a block, beside others or alone."""
        if isinstance(value, ast.Name | ast.Attribute):
            return False
        leaves = [leaf for leaf in _leaves(value) if passes.carries(leaf) or self._may_be_there(leaf)]
        return leaves != [value] and any(self._is_from_outside(leaf, block) for leaf in leaves)

    def _may_be_there(self, value: ast.expr) -> bool:
        """Whether a part of something is a parameter or a name of which nothing is known."""
        return self.is_trained(value) or isinstance(value, ast.Name) and self.ctx.fact(value) is UNKNOWN

    def _parts(self, value: ast.expr, block: ast.stmt, passes: UnknownPasses) -> list[ast.expr]:
        """The parts of a value that a block made."""
        leaves = [leaf for leaf in _leaves(value) if passes.carries(leaf)]
        if len(leaves) > 1 and not any(self._is_from_outside(leaf, block) for leaf in leaves):
            return [value]
        return [leaf for leaf in leaves if not self._is_from_outside(leaf, block)]

    def _is_from_outside(self, value: ast.expr, block: ast.stmt) -> bool:
        """Whether this is a parameter or names an array that was there before: these have a gradient of their own."""
        if isinstance(value, ast.Name):
            changed = value.id in overwritten_inside(block)
            return not changed and value.id not in self.bound_before(value, block)
        return self.is_trained(value)

    def bound_before(self, value: ast.expr, block: ast.stmt) -> set[str]:
        """The names that a block may have bound when it comes to a value."""
        around = takewhile(lambda at: at is not block, ancestors(value, self.ctx.source.parents))
        again = any(isinstance(at, _LOOPS) for at in around) or isinstance(block, _LOOPS)
        parts = (n for n in symbols.walk(block) if again or getattr(n, "lineno", value.lineno) < value.lineno)
        return {name.id for part in parts for name in assigned_names(part)}

    def _stored(self, node: ast.stmt, block: ast.stmt, around: ast.AST, used_later: set[str]) -> Iterator[ast.expr]:
        """What a statement puts into a container or an attribute that is read behind the block."""
        match node:
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript() as place], value=value):
                places, values = [place], [value]
            case ast.AnnAssign(target=ast.Attribute() | ast.Subscript() as place, value=ast.expr() as value):
                places, values = [place], [value]
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name, value=place) as called) as call) if (
                name in _FILLING
            ):
                places, values = [called], [*call.args, *(k.value for k in call.keywords)]
            case ast.AugAssign(target=ast.Name(id=name) as filled, value=value):
                if isinstance(self.ctx.fact(filled), ListOf | Tuple) and name in used_later:
                    yield value
                return
            case _:
                return
        if all(self._is_read(place, block, around, used_later) for place in places):
            yield from values

    def _is_read(
        self, place: ast.Attribute | ast.Subscript, block: ast.stmt, around: ast.AST, used_later: set[str]
    ) -> bool:
        """Whether what a place belongs to is no array or module, and is read later."""
        owner = self.ctx.fact(place.value)
        if isinstance(place, ast.Attribute) and isinstance(place.ctx, ast.Store):
            fact = self.ctx.fact(place)
            if not isinstance(owner, Instance) or isinstance(fact, Tensor) and fact.variable:
                return False
            return _is_read_behind(block, place, around)
        if isinstance(owner, Tensor | Layer | AnyModule | Instance):
            return False
        if isinstance(place.value, ast.Attribute):
            return _is_read_behind(block, place.value, around)
        root: ast.expr = place.value
        while isinstance(root, ast.Subscript | ast.Attribute):
            root = root.value
        local = isinstance(place.value, ast.Name | ast.Subscript) and isinstance(root, ast.Name)
        return local and isinstance(root, ast.Name) and root.id in used_later

    def _is_read_elsewhere(self, place: ast.expr) -> bool:
        """Whether something is a buffer, or another array of the module, that other methods of the class read."""
        info, function = self.ctx.scope.class_info, self.ctx.scope.function
        if info is None or function is None or not function.runs_in_module or not isinstance(place, ast.Attribute):
            return False
        fact = self.ctx.fact(place)
        if not isinstance(fact, Tensor) or fact.variable and not self.is_buffer(place) or not _is_self(place.value):
            return False
        others = (n for n in info.node.body if isinstance(n, ast.FunctionDef) and n is not function.node)
        reads = (n for method in others if method.name != "__init__" for n in symbols.walk(method))
        return any(
            isinstance(n, ast.Attribute) and n.attr == place.attr and isinstance(n.ctx, ast.Load) and _is_self(n.value)
            for n in reads
        )

    def _reads_others(self, value: ast.expr, place: ast.expr, passes: UnknownPasses) -> bool:
        """Whether a value is made from arrays that may carry a gradient, other than the one it is written to."""
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "detach":
            return False
        if isinstance(value, ast.Name) and passes.carries(value):
            return True
        if isinstance(value, ast.Attribute) and ast.unparse(value) != ast.unparse(place):
            if differentiable(self.ctx.fact(value)):
                return not self.is_buffer(value)
        parts = (n for n in ast.iter_child_nodes(value) if isinstance(n, ast.expr | ast.keyword))
        return any(self._reads_others(n.value if isinstance(n, ast.keyword) else n, place, passes) for n in parts)

    def _is_differentiated(self, block: ast.stmt, around: ast.AST) -> bool:
        """Whether what is kept may reach a loss: in a step, a module, or a function of arrays that gives some."""
        if block in self.ctx.plan.train_steps:
            return True
        function = self.ctx.scope.function
        if function is None or not self.code.is_traced:
            return False
        passes = UnknownPasses(self.ctx, function.node)
        returned = [n.value for n in symbols.walk(around) if isinstance(n, ast.Return) and n.value is not None]
        return function.runs_in_module or any(map(passes.carries, returned))


def _is_read_behind(block: ast.stmt, place: ast.Attribute, around: ast.AST) -> bool:
    """Whether an attribute is read behind a block."""
    text = ast.unparse(place)
    loads = (n for n in symbols.walk(around) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load))
    return any(ast.unparse(n) == text for n in loads if n.lineno > (block.end_lineno or 0))


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _leaves(value: ast.expr) -> Iterator[ast.expr]:
    """The parts of a display, and what a condition chooses from; else the value itself."""
    match value:
        case ast.Tuple(elts=items) | ast.List(elts=items):
            parts = items
        case ast.Dict(values=parts):
            pass
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
            parts = [keyword.value for keyword in keywords]
        case ast.IfExp(body=body, orelse=orelse):
            parts = [body, orelse]
        case ast.Starred(value=inner):
            parts = [inner]
        case _:
            yield value
            return
    for part in parts:
        yield from _leaves(part)


def _written(statement: ast.stmt) -> list[ast.expr]:
    """What a statement writes into an array."""
    match statement:
        case ast.Assign(value=ast.expr() as value) | ast.AugAssign(value=value):
            return [value]
        case ast.Expr(value=ast.Call() as call):
            return [*call.args, *(k.value for k in call.keywords)]
    return []


def overwritten_inside(block: ast.stmt) -> set[str]:
    """The names of the arrays whose values a block changes in place."""
    return {name.id for part in symbols.walk(block) if isinstance(part, ast.stmt) for name in overwritten(part)}


def loads_after(function: ast.AST, node: ast.stmt) -> set[str]:
    """The names that are read behind a statement."""
    return {
        n.id
        for n in symbols.walk(function)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.lineno > (node.end_lineno or node.lineno)
    }


def value_of(statement: ast.AST, name: ast.Name) -> ast.expr | None:
    """What an assignment gives one of its names, also in ``a, b = y, y * 2``; None where that isn't to be seen."""
    pairs: list[tuple[ast.expr, ast.expr]]
    match statement:
        case ast.Assign(targets=[*targets], value=value):
            pairs = [(target, value) for target in targets]
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            pairs = [(target, value)]
        case _:
            return None
    for place, given in pairs:
        if place is name:
            return given
        match place, given:
            case ast.Tuple(elts=names) | ast.List(elts=names), ast.Tuple(elts=items) | ast.List(elts=items):
                starred = any(isinstance(e, ast.Starred) for e in (*names, *items))
                if name in names and not starred and len(names) == len(items):
                    return items[names.index(name)]
    return None


def writes(node: ast.stmt) -> list[tuple[ast.expr, list[ast.expr]]]:
    """Attributes that a statement may write into, each with what the new value is made from."""
    match node:
        case ast.Assign():
            pairs = [(t, [node.value]) for t in node.targets]
        case ast.AugAssign():
            pairs = [(node.target, [node.value])]
        case ast.Expr(value=ast.Call(func=ast.Attribute()) as call):
            sources: list[ast.expr] = []
            place: ast.expr = call
            while isinstance(place, ast.Call) and isinstance(place.func, ast.Attribute):
                sources += [*place.args, *(k.value for k in place.keywords)]
                place = place.func.value
            pairs = [(place, sources)]
        case _:
            return []
    out: list[tuple[ast.expr, list[ast.expr]]] = []
    for target, sources in pairs:
        while isinstance(target, ast.Subscript) or isinstance(target, ast.Attribute) and target.attr == "data":
            target = target.value
        if isinstance(target, ast.Attribute):
            out.append((target, sources))
    return out
