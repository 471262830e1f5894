"""Which values of a function are held channels-last: its statements are followed in their order, branch by branch.

A name holds what was assigned to it last. Where an operation takes channels-last values it gets them as they are;
everywhere else the value is moved back where it is read, so that what is written is right whatever the rest of the
function does. An assignment is kept in PyTorch's axes (``kept``) where a name would mean two things: behind branches
that part, in code that runs later, where the value is changed in place; and where nobody takes it channels-last.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from t2j_lsp import symbols
from t2j_lsp.translate.source.positions import leaves

from .scene import Last, Marks, NamedValue, Scene

ARITHMETIC = ast.Add | ast.Sub | ast.Mult | ast.Div | ast.Pow
_STORING = frozenset({"append", "extend", "insert", "add"})
"""Methods of containers: what they are given stays as it is."""


class Values:
    """The values of one function."""

    def __init__(
        self,
        scene: Scene,
        node: ast.FunctionDef | ast.AsyncFunctionDef,
        taken: Mapping[ast.arg, int],
        given: int,
        kept: set[ast.AST],
    ) -> None:
        self.scene, self.node, self.given, self.kept = scene, node, given, kept
        self.taken = {arg: rank for arg, rank in taken.items() if rank and arg not in kept}
        self.marks = Marks()
        self.state: dict[str, NamedValue] = {}
        self.parting: set[ast.AST] = set()

    def follow(self) -> Marks:
        """Mark the function. What has to be kept in PyTorch's axes is added to ``kept``."""
        while True:
            self.marks, self.parting = Marks(), set()
            given = {a.arg: NamedValue(Last(r), frozenset({a})) for a, r in self.taken.items() if a not in self.kept}
            self.state = given
            self._block(self.node.body)
            more = (self.parting | self._useless()) - self.kept
            if not more:
                return self.marks
            self.kept |= more

    def _useless(self) -> set[ast.AST]:
        """Assignments whose value costs fewer moves in PyTorch's axes: one there, and one wherever it is taken."""
        taken, moved = self.marks.uses()
        return {one for one in moved if not isinstance(one, ast.arg) and moved[one] >= 1 + taken[one]}

    def part(self, name: str) -> None:
        """A name can't be held channels-last where it was last assigned."""
        held = self.state.pop(name, None)
        if held is not None:
            self.parting |= held.bindings

    def want(self, node: ast.expr, rank: int, free: bool = False) -> None:
        """Something takes a value channels-last; ``free``: it would do with PyTorch's axes as well."""
        self.marks.wanted[node] = rank
        if free:
            self.marks.free.add(node)

    # --- statements -----------------------------------------------------------------------------------------------

    def _block(self, body: Iterable[ast.stmt]) -> None:
        for node in body:
            self._statement(node)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                self._assign(node, name, value)
            case ast.Assign(targets=targets, value=value):
                done, parts = self.scene.axes(self, node)
                if not done:
                    self.mark(value)
                for target in targets:
                    self._stored(target)
                if parts is not None:
                    held = NamedValue(parts, frozenset({node}))
                    self.state |= {n.id: held for t in targets for n in symbols.walk(t) if isinstance(n, ast.Name)}
            case ast.AugAssign():
                self._augmented(node)
            case ast.Return(value=ast.expr() as value):
                self._returned(value)
            case ast.Return():
                self.marks.plain_return = True
            case ast.Expr(value=value):
                self._alone(value)
            case ast.If(test=test, body=body, orelse=orelse):
                self.mark(test)
                self._branches([body, orelse])
            case ast.For() | ast.AsyncFor():
                self.mark(node.iter)
                self._loop(node.body, node.target)
                self._block(node.orelse)
            case ast.While():
                self._loop(node.body, None, node.test)
                self._block(node.orelse)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    self.mark(item.context_expr)
                    if item.optional_vars is not None:
                        self._stored(item.optional_vars)
                self._block(node.body)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._later(node)
            case ast.Try() | ast.TryStar() | ast.Match():
                self._unordered(node)
            case _:
                for child in symbols.children(node):
                    if isinstance(child, ast.expr):
                        self.mark(child)
                for bound in _bound([node]):
                    self.part(bound)

    def _assign(self, node: ast.stmt, name: str, value: ast.expr) -> None:
        held = self.mark(value) or self._spread(node, value)
        self.state.pop(name, None)
        if held is not None and node not in self.kept:
            self.want(value, held.rank)
            self.state[name] = NamedValue(held, frozenset({node}))

    def _spread(self, node: ast.stmt, value: ast.expr) -> Last | None:
        """A value for each channel: channels-last, if it is read so."""
        rank = self.scene.spread(value)
        if not rank or node in self.kept:
            return None
        return self.spread(value, rank)

    def spread(self, value: ast.expr, rank: int) -> Last:
        """Write ``v.view(b, c, 1, 1)`` as ``v.view(b, 1, 1, c)``."""
        assert isinstance(value, ast.Call)
        channels, last = value.args[1], value.args[-1]
        self.marks.texts[channels], self.marks.texts[last] = "1", channels
        self.marks.natural[value] = rank
        return Last(rank)

    def _augmented(self, node: ast.AugAssign) -> None:
        value = self.mark(node.value)
        if not isinstance(node.target, ast.Name):
            self._stored(node.target)
            return
        held = self.state.get(node.target.id)
        if held is None:
            return
        if value is not None and value.rank == held.value.rank and isinstance(node.op, ARITHMETIC):
            self.want(node.value, value.rank)
        elif value is not None or not self.scene.is_number(node.value):
            self.part(node.target.id)

    def _stored(self, target: ast.expr) -> None:
        """What is bound or changed by an assignment to something else than a name."""
        for name in (n for n in symbols.walk(target) if isinstance(n, ast.Name)):
            if isinstance(name.ctx, ast.Load):
                self.part(name.id)
            else:
                self.state.pop(name.id, None)

    def _returned(self, value: ast.expr) -> None:
        held = self.mark(value)
        if held is None:
            self.marks.plain_return = True
            return
        self.marks.returned.add(held.rank)
        if self.given == held.rank:
            self.want(value, held.rank)

    def _alone(self, value: ast.expr) -> None:
        """An expression that is a statement: what it is called on, or given, may be changed in place."""
        self.mark(value)
        call = value.value if isinstance(value, ast.Await) else value
        if isinstance(call, ast.Call):
            method = call.func if isinstance(call.func, ast.Attribute) else None
            if method is None or method.attr not in _STORING:
                for one in [*call.args, *(k.value for k in call.keywords), *([method.value] if method else [])]:
                    if isinstance(one, ast.Name):
                        self.part(one.id)

    def _branches(self, blocks: Iterable[list[ast.stmt]]) -> None:
        before, ends = self.state, []
        for block in blocks:
            self.state = dict(before)
            self._block(block)
            if not leaves(block):
                ends.append(self.state)
        self.state = self._joined(ends) if ends else {}

    def _joined(self, states: list[dict[str, NamedValue]]) -> dict[str, NamedValue]:
        """What holds behind branches; an assignment of one of them that the others don't share is kept."""
        joined: dict[str, NamedValue] = {}
        for name in {name for state in states for name in state}:
            held = [state[name] for state in states if name in state]
            bindings = frozenset(b for one in held for b in one.bindings)
            if len(held) == len(states) and len({one.value.rank for one in held}) == 1:
                single = all(one.value.single for one in held)
                joined[name] = NamedValue(Last(held[0].value.rank, single), bindings)
            else:
                self.parting |= bindings
        return joined

    def _loop(self, body: list[ast.stmt], target: ast.expr | None, test: ast.expr | None = None) -> None:
        """A loop may run any number of times, and end early."""
        while True:
            before = dict(self.state)
            if test is not None:
                self.mark(test)
            if target is not None:
                self._stored(target)
            self._block(body)
            after = self.state
            self.state = self._joined([before, after])
            if self.state == before:
                break
        if any(isinstance(n, ast.Break | ast.Continue) for one in body for n in symbols.walk(one)):
            for name in _bound(body):
                self.part(name)

    def _unordered(self, node: ast.stmt) -> None:
        """Parts of which any may have run when the next begins: what they bind is kept."""
        bound = _bound([node])
        for name in bound:
            self.part(name)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.mark(child)
        for block in _blocks(node):
            before = dict(self.state)
            self._block(block)
            for name in bound:
                self.part(name)
            self.state = {n: h for n, h in before.items() if n not in bound}

    def _later(self, node: ast.AST) -> None:
        """What is read in code that runs later may be something else by then."""
        for name in (n for n in symbols.walk(node) if isinstance(n, ast.Name)):
            self.part(name.id)

    # --- expressions ----------------------------------------------------------------------------------------------

    def mark(self, node: ast.expr) -> Last | None:
        """Mark an expression and those in it; what it is if its value is channels-last."""
        self.marks.natural.pop(node, None)  # as a loop's body was marked before
        self.marks.wanted.pop(node, None)
        self.marks.free.discard(node)
        value = self._value(node)
        if value is not None:
            self.marks.natural[node] = value.rank
        return value

    def _value(self, node: ast.expr) -> Last | None:
        match node:
            case ast.Name():
                held = self.state.get(node.id)
                if held is None or not isinstance(node.ctx, ast.Load):
                    return None
                self.marks.reads[node] = held
                return held.value
            case ast.Call():
                return self._call(node)
            case ast.BinOp(op=op, left=left, right=right) if isinstance(op, ARITHMETIC):
                return self._arithmetic(node, left, right)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                value = self.mark(operand)
                if value is not None:
                    self.want(operand, value.rank)
                return value
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self.mark(test)
                return self.both(body, orelse)
            case ast.Lambda() | ast.GeneratorExp():
                self._later(node)
                saved, self.state = self.state, {}
                self._inside(node)
                self.state = saved
                return None
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                self.mark(value)
                self.part(name)
                return None
            case ast.ListComp() | ast.SetComp() | ast.DictComp():
                saved = self.state
                bound = {n.id for g in node.generators for n in symbols.walk(g.target) if isinstance(n, ast.Name)}
                self.state = {n: h for n, h in saved.items() if n not in bound}
                self._inside(node)
                self.state = {n: h for n, h in saved.items() if n in self.state or n in bound}
                return None
        done, value = self.scene.axes(self, node)
        if not done:
            self._inside(node)
        return value

    def _inside(self, node: ast.AST) -> None:
        for child in symbols.children(node):
            if isinstance(child, ast.expr):
                self.mark(child)
            elif isinstance(child, ast.keyword | ast.comprehension):
                self._inside(child)

    def _arithmetic(self, node: ast.expr, left: ast.expr, right: ast.expr) -> Last | None:
        first, second = self.mark(left), self.mark(right)
        if first is not None and second is not None:
            return self._agreed(left, first, right, second)
        value, of, other = (first, left, right) if first is not None else (second, right, left)
        if value is None:
            return None
        if not self.scene.is_number(other):
            if self.scene.spread(other) != value.rank:
                return None
            self.spread(other, value.rank)
            self.want(other, value.rank)
        self.want(of, value.rank)
        return Last(value.rank)

    def both(self, left: ast.expr, right: ast.expr) -> Last | None:
        """Mark two values that have to be alike."""
        first, second = self.mark(left), self.mark(right)
        return self._agreed(left, first, right, second) if first is not None and second is not None else None

    def _agreed(self, left: ast.expr, first: Last, right: ast.expr, second: Last) -> Last | None:
        if first.rank != second.rank:
            return None
        self.want(left, first.rank)
        self.want(right, first.rank)
        return Last(first.rank, first.single and second.single)

    def _call(self, node: ast.Call) -> Last | None:
        called = self.scene.called(node)
        if called is not None:
            self.marks.met.add(node)
            self._inside(node)
            for taken, rank in called.takes.items():
                if rank:
                    self.want(taken, rank)
            return Last(called.gives, self.scene.single(node)) if called.gives else None
        if rank := self.scene.function(node):
            self._inside(node)
            if self.marks.natural.get(node.args[0]) != rank:
                return None
            self.marks.functions.add(node)
            self.want(node.args[0], rank)
            return Last(rank, self.scene.single(node))
        argument = self.scene.alike(node)
        if argument is not None:
            value: Last | None = None
            for child in [node.func, *node.args, *(k.value for k in node.keywords)]:
                if child is argument:
                    value = self.mark(child)
                elif isinstance(child, ast.Attribute) and child.value is argument:
                    value = self.mark(argument)
                else:
                    self.mark(child)
            if value is not None:
                self.want(argument, value.rank)
            return value
        done, value = self.scene.axes(self, node)
        if not done:
            self._inside(node)
            method = node.func
            if isinstance(method, ast.Attribute) and isinstance(method.value, ast.Name) and method.attr.endswith("_"):
                self.part(method.value.id)  # changed in place
        return value


def _bound(body: Iterable[ast.stmt]) -> set[str]:
    names = (n for one in body for n in symbols.walk(one) if isinstance(n, ast.Name))
    return {n.id for n in names if not isinstance(n.ctx, ast.Load)}


def _blocks(node: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks of a statement, those of its handlers and cases among them."""
    blocks = [getattr(node, part, []) for part in ("body", "handlers", "cases", "orelse", "finalbody")]
    return [
        inner.body if isinstance(inner, ast.ExceptHandler | ast.match_case) else [inner]
        for block in blocks
        for inner in block
    ]
