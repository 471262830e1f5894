"""Whether a loss is computed with the same parameters whichever way its code goes: by a draw, or by an array's value.

PyTorch leaves a parameter as it is that a step did not reach; optax moves it on by what it remembers of earlier steps.
So a step may only go one of two ways if both reach the same: ``teacher[t] if random.random() < 0.5 else output``.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors, named_parameters, with_ancestors
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.host_random import is_host_draw, takes_out
from t2j_lsp.translate.rule.definitions import Class, Function, FunctionInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import Qual, Tensor
from t2j_lsp.translate.rule.library import is_loss
from t2j_lsp.translate.training.program.once import leaves

from .carried import is_cut

_BINDING = ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr | ast.For | ast.comprehension
_Arm = Sequence[ast.AST]


class EvenReach:
    """Looks at the statements of one step, and at the functions and forward passes of the file that they run."""

    def __init__(self, inference: Inference, code: Collection[ast.AST], written: Collection[str]) -> None:
        self.inference = inference
        self.source = inference.source
        self.code = [*code]
        self.losses = [part for part in code if isinstance(part, ast.expr)]
        self.written = written
        """What the step computes: other variables come from outside of it, and no gradient flows through them."""
        self.functions = run_by(inference, self.code)
        self._mine: dict[ast.AST | None, FunctionInfo] = {info.node: info for info in self.functions}
        self.nodes = [n for part in (*self.code, *(info.node for info in self.functions)) for n in symbols.walk(part)]
        self.calls = [n for n in self.nodes if isinstance(n, ast.Call)]
        self.chosen = self._chosen()

    def holds(self) -> bool:
        """Whether no parameter is left out."""
        deciding = [n for n in self.nodes if isinstance(n, ast.If | ast.IfExp) and self._is_chosen(n.test)]
        return all(map(self._is_even, deciding)) and not any(map(self._picks, self.nodes))

    # --- what a draw or a value decides ---------------------------------------------------------------------------

    def _chosen(self) -> set[tuple[ast.AST | None, str]]:
        """The variables that differ from one step to the next by a draw or by an array's value."""
        chosen: set[tuple[ast.AST | None, str]] = set()
        while True:
            self.chosen, before = chosen, len(chosen)
            chosen = {*chosen, *self._bound_by_choice(), *self._given_by_choice()}
            if len(chosen) == before:
                return chosen

    def _bound_by_choice(self) -> Iterator[tuple[ast.AST | None, str]]:
        for node in self.nodes:
            value = getattr(node, "value", None) or getattr(node, "iter", None)
            if not isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.NamedExpr | ast.For):
                continue
            around = [a for a in ancestors(node, self.source.parents) if isinstance(a, ast.If)]
            if value is not None and self._is_chosen(value) or any(self._is_chosen(a.test) for a in around):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in (n for t in targets for n in symbols.walk(t)):
                    if isinstance(target, ast.Name | ast.Attribute) and not isinstance(self._fact(target), Tensor):
                        yield self._key(target)

    def _given_by_choice(self) -> Iterator[tuple[ast.AST | None, str]]:
        for call in self.calls:
            info = _called(self.inference, call)
            for parameter, value in bound_arguments(call, info) if info is not None else ():
                if not isinstance(self._fact(value), Tensor) and self._is_chosen(value):
                    yield info.node if info is not None else None, parameter.arg

    def _key(self, node: ast.Name | ast.Attribute) -> tuple[ast.AST | None, str]:
        if isinstance(node, ast.Attribute):
            return None, node.attr
        return self._function(node), node.id

    def _is_chosen(self, node: ast.AST) -> bool:
        """Whether a draw, or an array's value, decides what an expression is; or it may do so."""
        if isinstance(node, ast.expr) and isinstance(self._fact(node), Tensor) and self._decides(node):
            return True
        return any(map(self._chooses, symbols.walk(node)))

    def _decides(self, node: ast.AST) -> bool:
        """Whether an array stands where one of two ways is gone."""
        at = self.source.parents.get(node)
        return isinstance(at, ast.If | ast.IfExp) and at.test is node

    def _chooses(self, node: ast.AST) -> bool:
        match node:
            case ast.Call(func=func):
                return is_host_draw(self.inference.fact(func)) or takes_out(node, self.inference.facts)
            case ast.BoolOp(values=values):
                return any(isinstance(self._fact(value), Tensor) for value in values)
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return isinstance(self._fact(inner), Tensor)
            case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()):
                return self._key(node) in self.chosen
        return False

    def _picks(self, node: ast.AST) -> bool:
        """Whether a choice says which module is called, or how often: ``random.choice(self.layers)(x)``."""
        match node:
            case ast.Call(func=ast.Attribute(value=owner) as func) if not is_module(self.inference.fact(func)):
                return is_module(self.inference.fact(owner)) and self._is_chosen(owner)
            case ast.Call(func=func):
                return self._is_chosen(func)
            case ast.For(iter=chosen) | ast.While(test=chosen) | ast.comprehension(iter=chosen):
                tests = node.ifs if isinstance(node, ast.comprehension) else []
                around = self.source.parents[node] if isinstance(node, ast.comprehension) else node
                return any(map(self._is_chosen, (chosen, *tests))) and bool(self._modules([around]))
            case ast.BoolOp():
                return self._is_chosen(node) and bool(self._modules([node]))
            case ast.Try() | ast.Match():
                return bool(self._modules([node]))
        return False

    # --- the two ways ---------------------------------------------------------------------------------------------

    def _is_even(self, node: ast.If | ast.IfExp) -> bool:
        first, second = [[*arm] if isinstance(arm, list) else [arm] for arm in (node.body, node.orelse)]
        if any(isinstance(inner, ast.Raise) for inner in (*first, *second)):
            return True  # no step is made of the other one
        if not all(self._goes_on(node, inner) for arm in (first, second) for inner in arm):
            return False
        if self._modules(first) != self._modules(second):
            return False
        one, other = self._reads(first), self._reads(second)
        inside = {n for part in (*first, *second, node.test) for n in symbols.walk(part)}
        where = self._function(node)
        bound = self._bound(first) | self._bound(second)
        before = {name for name in bound if self._is_bound_outside(name, where, inside)}
        one |= before - self._bound(first)  # what it was before stays in the arm that doesn't bind it
        other |= before - self._bound(second)
        return all(self._is_reached(name, where, inside, node) for name in one ^ other)

    def _goes_on(self, node: ast.AST, inner: ast.AST) -> bool:
        """Whether an arm runs on to what comes behind it; or leaves a loop when the first round is over."""
        loop = self.source.parents.get(node)
        last = isinstance(loop, ast.For) and loop.body[-1] is node and isinstance(inner, ast.Break | ast.Continue)
        return last or not leaves(inner)

    def _modules(self, arm: _Arm) -> set[str]:
        """What an arm calls that has parameters, and those that it names."""
        return set().union(*(self._modules_of(part, ()) for part in arm))

    def _modules_of(self, part: ast.AST, running: Collection[FunctionInfo]) -> set[str]:
        out: set[str] = set()
        for node in self._carrying(part):
            if isinstance(node, ast.Call):
                fact, info = self.inference.fact(node.func), _called(self.inference, node)
                if is_module(fact) and not is_loss(fact):
                    out.add(ast.unparse(node.func))
                elif info is not None and info not in running and not info.external:
                    held = set().union(*(self._modules_of(s, (*running, info)) for s in info.node.body))
                    out |= {ast.unparse(node.func)} if held else set()
            elif isinstance(node, ast.Attribute) and is_module(self.inference.fact(node.value)):
                out |= {ast.unparse(node)} if isinstance(self._fact(node), Tensor) else set()
        return out

    def _reads(self, arm: _Arm) -> set[str]:
        """The variables by which gradients may flow into what an arm computes."""
        nodes = [n for part in arm for n in self._read_in(part)]
        return {n.id for n in nodes if self._carries(n.id, self._function(n), ())}

    def _read_in(self, part: ast.AST) -> Iterator[ast.Name]:
        for node in self._carrying(part):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                fact = self.inference.fact(node)
                if not isinstance(fact, Qual | Function | Class) and not is_module(fact):
                    yield node

    def _bound(self, arm: _Arm) -> set[str]:
        names = [n for part in arm for n in symbols.walk(part) if isinstance(n, ast.Name)]
        bound = {n.id for n in names if isinstance(n.ctx, ast.Store)}
        where = self._function(arm[0]) if arm else None
        return {name for name in bound if self._carries(name, where, ())}

    def _is_bound_outside(self, name: str, where: ast.AST | None, inside: Collection[ast.AST]) -> bool:
        """Whether a variable that an arm binds has a value without it, too."""
        info = self._mine.get(where)
        if info is not None and any(a.arg == name for a in named_parameters(info.node)):
            return True
        nodes = (n for n in self.nodes if isinstance(n, ast.Name) and n.id == name and n not in inside)
        return any(isinstance(n.ctx, ast.Store) and self._function(n) is where for n in nodes)

    def _carrying(self, part: ast.AST) -> Iterator[ast.AST]:
        """The nodes of some code, without those that no gradient flows through."""
        if not is_cut(self.inference, part):
            yield part
            for child in symbols.children(part):
                yield from self._carrying(child)

    # --- where else a value is read -------------------------------------------------------------------------------

    def _carries(self, name: str, where: ast.AST | None, seen: Collection[tuple[str, ast.AST | None]]) -> bool:
        """Whether gradients of parameters may flow through a variable."""
        if (name, where) in seen:
            return False
        seen = (*seen, (name, where))
        info = self._mine.get(where)
        if info is None and name not in self.written:
            return False
        if info is not None and any(a.arg == name for a in named_parameters(info.node)):
            given = list(self._given(info, name))
            return not given or any(self._may_carry(value, seen) for value in given)
        values = list(self._values(name, where))
        return not values or any(value is None or self._may_carry(value, seen) for value in values)

    def _may_carry(self, value: ast.expr, seen: Collection[tuple[str, ast.AST | None]]) -> bool:
        if self._modules([value]):
            return True
        return any(self._carries(n.id, self._function(n), seen) for n in self._read_in(value))

    def _given(self, info: FunctionInfo, name: str) -> Iterator[ast.expr]:
        for call in self.calls:
            if _called(self.inference, call) is info:
                yield from (value for parameter, value in bound_arguments(call, info) if parameter.arg == name)

    def _values(self, name: str, where: ast.AST | None) -> Iterator[ast.expr | None]:
        """What a variable is given; None for what isn't an assignment."""
        for node in self.nodes:
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
                if self._function(node) is where:
                    around = with_ancestors(node, self.source.parents)
                    at = next((a for a in around if isinstance(a, _BINDING)), None)
                    yield getattr(at, "value", None) or getattr(at, "iter", None)

    def _is_reached(
        self, name: str, where: ast.AST | None, inside: Collection[ast.AST], deciding: ast.If | ast.IfExp
    ) -> bool:
        """Whether the loss depends on a variable also outside of two arms: behind them only if it keeps its value."""
        names = [n for n in self.nodes if isinstance(n, ast.Name) and n.id == name and self._function(n) is where]
        changes = any(isinstance(n.ctx, ast.Store) and n.lineno >= deciding.lineno for n in names)
        for part in (statement for statement in self._statements(where) if statement not in inside):
            if changes and part.lineno >= deciding.lineno:
                continue
            reads = any(n.id == name for n in self._read_in(part) if n not in inside)
            if reads and self._flows(part, where, ()):
                return True
        return False

    def _statements(self, where: ast.AST | None) -> list[ast.stmt]:
        """The simple statements of a function, or of the step, that always run."""
        nodes = [n for n in self.nodes if isinstance(n, ast.stmt) and self._function(n) is where]
        parents = self.source.parents
        chosen = [n for n in nodes if isinstance(n, ast.If) and self._is_chosen(n.test)]
        plain = [n for n in nodes if not hasattr(n, "body")]
        return [
            n for n in plain if not any(a in chosen or isinstance(a, ast.ExceptHandler) for a in ancestors(n, parents))
        ]

    def _flows(self, statement: ast.stmt, where: ast.AST | None, seen: Collection[ast.stmt]) -> bool:
        """Whether what a statement computes goes on into what the function gives, or into the loss."""
        if isinstance(statement, ast.Return):
            return True
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        names = {n.id for t in targets if t is not None for n in symbols.walk(t) if isinstance(n, ast.Name)}
        if where is None and any(names & {n.id for n in self._read_in(loss)} for loss in self.losses):
            return True
        for other in self._statements(where):
            if other in seen or other is statement:
                continue
            read = {n.id for n in self._read_in(other)}
            if names & read and self._flows(other, where, (*seen, statement)):
                return True
        return False

    # --- places ---------------------------------------------------------------------------------------------------

    def _function(self, node: ast.AST) -> ast.AST | None:
        """The function of the file that a node of the step's code stands in; None for the step's own statements."""
        return next((a for a in ancestors(node, self.source.parents) if a in self._mine), None)

    def _fact(self, node: ast.AST) -> object:
        return self.inference.fact(node) if isinstance(node, ast.expr) else None


def run_by(inference: Inference, code: Iterable[ast.AST]) -> list[FunctionInfo]:
    """The functions of the file that some code runs, with the forward passes, and those that these run."""
    seen: dict[FunctionInfo, None] = {}
    waiting = [*code]
    while waiting:
        for call in (n for n in symbols.walk(waiting.pop()) if isinstance(n, ast.Call)):
            info = _called(inference, call)
            if info is not None and info not in seen and not info.external:
                seen[info] = None
                waiting.append(info.node)
    return list(seen)


def _called(inference: Inference, call: ast.Call) -> FunctionInfo | None:
    fact = inference.fact(call.func)
    if isinstance(fact, Instance) and is_module(fact):
        return fact.cls.info.method("forward")
    return called_function(fact)
