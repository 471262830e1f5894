"""Data flow of statements: which variables they read and write, and which are still needed after a statement.

A variable is a name, or ``self.x`` in a method of a class that isn't a module. In a method of a module ``self`` is
one variable, the module.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from t2j_lsp.symbols import Symbols, parameter_names
from t2j_lsp.translate.source.positions import leaves

from .passed import PassedOn


@dataclass
class Uses:
    """Variables that some code reads and writes."""

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)


class DataFlow:
    """Reads and writes within one function (or the module level)."""

    def __init__(
        self,
        symbols: Symbols,
        self_name: str | None = None,
        passed: Mapping[ast.Call, PassedOn] | None = None,
        counted: Callable[[ast.Call], Sequence[ast.expr] | None] | None = None,
        effects: Callable[[ast.Call], Uses] | None = None,
    ) -> None:
        self.symbols = symbols
        self.passed = passed if passed is not None else {}
        """Calls that read more than stands in them."""
        self.counted = counted
        """What counts of a call: some of its arguments, or None for all of it."""
        self.effects = effects
        """The variables that a call as a statement reads and gives new values in the functions that it runs."""
        self.self_name = self_name
        """Name of the first parameter of a method whose attributes are variables of their own."""
        self.left_out: frozenset[ast.AST] = frozenset()
        """Code that isn't looked at."""
        self._uses: dict[ast.AST, Uses] = {}

    def uses(self, node: ast.AST) -> Uses:
        """Everything that a statement or expression reads and writes, with the statements inside it."""
        uses = self._uses.get(node)
        if uses is None:
            uses = self._uses[node] = Uses()
            self._collect(node, uses, frozenset())
        return uses

    def reads(self, node: ast.AST) -> set[str]:
        return self.uses(node).reads

    def writes(self, node: ast.AST) -> set[str]:
        return self.uses(node).writes

    def exposed(self, node: ast.AST) -> set[str]:
        """The variables of a statement that may be read before it gives them a value itself, if its loops run."""
        match node:
            case ast.For() | ast.AsyncFor():
                given = {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
                names = self.reads(node.iter) | self._exposed_in(node.body) - given
                return names.union(*(self.reads(child) for child in node.orelse))
            case ast.If() | ast.While():
                return self.reads(node.test) | self._exposed_in(node.body) | self._exposed_in(node.orelse)
            case ast.With():
                return self._exposed_in(node.body).union(*(self.reads(item.context_expr) for item in node.items))
        return set(self.reads(node))

    def _exposed_in(self, body: Sequence[ast.stmt]) -> set[str]:
        """The same for statements that run one after the other."""
        exposed: set[str] = set()
        given: set[str] = set()
        for child in body:
            exposed |= self.exposed(child) - given
            given |= surely_given(self, [child])
        return exposed

    def counting(self, counted: Callable[[ast.Call], Sequence[ast.expr] | None]) -> DataFlow:
        """The same where of some calls only some arguments count."""
        return DataFlow(self.symbols, self.self_name, self.passed, counted, self.effects)

    def without(self, nodes: Iterable[ast.AST]) -> DataFlow:
        """The same where some code isn't there."""
        flow = DataFlow(self.symbols, self.self_name, self.passed, self.counted, self.effects)
        flow.left_out = frozenset(nodes)
        return flow

    def variable(self, node: ast.AST) -> str | None:
        """The variable that an expression names: ``x`` or ``self.x``."""
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == self.self_name:
            return f"{node.value.id}.{node.attr}"
        return None

    def root(self, node: ast.AST) -> str | None:
        """The variable at the start of ``x.a[0].view(-1)``."""
        while True:
            variable = self.variable(node)
            if variable is not None:
                return variable
            match node:
                case ast.Attribute() | ast.Subscript() | ast.Starred():
                    node = node.value
                case ast.Call(func=ast.Attribute() as func):
                    node = func.value
                case _:
                    return None

    def _collect(self, node: ast.AST, out: Uses, bound: frozenset[str]) -> None:
        if node in self.left_out:
            return
        if self.counted is not None and isinstance(node, ast.Call) and (few := self.counted(node)) is not None:
            for one in few:
                self._collect(one, out, bound)
            return
        variable = self.variable(node)
        match node:
            case ast.Name() | ast.Attribute() if variable is not None:
                if variable not in bound:
                    context = getattr(node, "ctx", None)
                    (out.reads if isinstance(context, ast.Load) else out.writes).add(variable)
                    if isinstance(context, ast.Del):
                        out.reads.add(variable)
                return
            case ast.Subscript() | ast.Attribute() if not isinstance(node.ctx, ast.Load):
                root = self.root(node)
                if root is not None and root not in bound:
                    out.writes.add(root)
                    out.reads.add(root)
            case ast.AugAssign():
                target = self.root(node.target)
                if target is not None:
                    out.reads.add(target)
            case ast.Expr() if is_mode(node):
                pass  # it stays where it is: the step reads the mode when it is called
            case ast.Expr(value=ast.Call() as call):
                if self.effects is not None:
                    out.reads |= self.effects(call).reads - bound
                    out.writes |= self.effects(call).writes - bound
                if isinstance(call.func, ast.Attribute) and (self.counted is None or self.counted(call) is None):
                    self._mutated(call.func.value, out, bound)
            case ast.Call() if node in self.passed:
                self._collect_passed(node, out, bound)
                return
            case ast.Call(func=ast.Attribute() as func) if func.attr.endswith("_") and not func.attr.endswith("__"):
                self._mutated(func.value, out, bound)
            case ast.Global() | ast.Nonlocal():
                out.writes.update(node.names)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                inner = bound | {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
                self._collect(node.generators[0].iter, out, bound)
                for child in ast.iter_child_nodes(node):
                    self._collect(child, out, inner)
                return
            case ast.For() | ast.AsyncFor():
                self._collect(node.iter, out, bound)
                self._collect(node.target, out, bound)
                body = Uses()
                for child in [*node.body, *node.orelse]:
                    self._collect(child, body, bound)
                own = {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
                # The target has its value when the body starts; behind the loop it may have none.
                out.reads |= body.reads - own | {n for s in node.orelse for n in self.reads(s)} & own
                out.writes |= body.writes
                if any(_writes_weights(child, own) for child in node.body):
                    out.writes |= {root for walked in _walked(node.iter) if (root := self.root(walked))} - bound
                return
            case ast.Lambda():
                inner = bound | parameter_names(node)
                for child in ast.iter_child_nodes(node):
                    self._collect(child, out, inner)
                return
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                out.writes.add(node.name)
                inner = bound | self.symbols.bound(node)
                nested = Uses()
                for child in ast.iter_child_nodes(node):
                    self._collect(child, nested, inner)
                out.reads |= nested.reads
                return
        for child in ast.iter_child_nodes(node):
            self._collect(child, out, bound)

    def _collect_passed(self, node: ast.Call, out: Uses, bound: frozenset[str]) -> None:
        """A call of a function that is passed what it read from outside: ``self.loss(x)`` reads ``self.model``."""
        roots = {self.root(ast.parse(text, mode="eval").body) for text in self.passed[node].texts.values()}
        out.reads |= {root for root in roots if root is not None} - bound
        if isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) != self.self_name:
            self._collect(node.func, out, bound)
        for given in (*node.args, *node.keywords):
            self._collect(given, out, bound)

    def _mutated(self, receiver: ast.expr, out: Uses, bound: frozenset[str]) -> None:
        root = self.root(receiver)
        if root is not None and root not in bound:
            out.writes.add(root)
            out.reads.add(root)


def surely_given(flow: DataFlow, body: Sequence[ast.stmt], runs: bool = False) -> set[str]:
    """The variables that statements give a value whichever way they run, if their loops run where ``runs`` says so."""
    given: set[str] = set()
    for node in body:
        match node:
            case ast.Assign() | ast.AnnAssign():
                given |= flow.writes(node)
            case ast.With() | ast.AsyncWith():
                given |= surely_given(flow, node.body, runs)
            case ast.If():
                ways = [way for way in (node.body, node.orelse) if not leaves(way)]
                given |= set.intersection(*(surely_given(flow, way, runs) for way in ways)) if ways else set()
            case _ if runs:
                given |= flow.writes(node)
    return given


class Liveness:
    """Which variables may still be read after each statement of a body."""

    def __init__(self, flow: DataFlow, body: Sequence[ast.stmt], at_end: Iterable[str] = ()) -> None:
        self.flow = flow
        self.after: dict[ast.stmt, set[str]] = {}
        self._loops: list[set[str]] = []
        self._block(body, set(at_end))

    def _block(self, body: Sequence[ast.stmt], live: set[str]) -> set[str]:
        for node in reversed(body):
            self.after[node] = self.after.get(node, set()) | live
            live = self._statement(node, live)
        return live

    def _statement(self, node: ast.stmt, live: set[str]) -> set[str]:
        if node in self.flow.left_out:
            return live
        match node:
            case ast.If():
                branches = self._block(node.body, live) | self._block(node.orelse, live)
                return branches | self.flow.reads(node.test)
            case ast.For() | ast.AsyncFor() | ast.While():
                return self._loop(node, live)
            case ast.With() | ast.AsyncWith():
                inner = self._block(node.body, live)
                for item in node.items:
                    inner = inner | self.flow.reads(item)
                return inner
            case ast.Try():
                out = live | self.flow.reads(node)
                for body in (node.body, node.orelse, node.finalbody, *(h.body for h in node.handlers)):
                    self._block(body, out)
                return out
            case ast.Return() | ast.Raise():
                return set(self.flow.reads(node))
            case ast.Break() | ast.Continue():
                return live | (self._loops[-1] if self._loops else set())
            case _:
                kept = set() if isinstance(node, ast.Match | ast.ClassDef) else self._killed(node)
                return (live - kept) | self.flow.reads(node)

    def _killed(self, node: ast.stmt) -> set[str]:
        """Variables that a plain assignment gives a new value whatever they held."""
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = list(node.targets)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        out: set[str] = set()
        while targets:
            target = targets.pop()
            if isinstance(target, ast.Tuple | ast.List):
                targets.extend(target.elts)
            elif (variable := self.flow.variable(target)) is not None:
                out.add(variable)
        return out

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, live: set[str]) -> set[str]:
        head = self.flow.reads(node.test if isinstance(node, ast.While) else node.iter)
        out = live | self._block(node.orelse, live) | head
        for _ in range(2):
            self._loops.append(out)
            inner = self._block(node.body, out)
            self._loops.pop()
            if not isinstance(node, ast.While):
                inner = inner - self.flow.writes(node.target)
            out = out | inner
        return out


def _walked(node: ast.expr) -> Iterator[ast.expr]:
    """The modules over whose parameters a loop goes: `net` of ``zip(net.parameters(), others)``."""
    for call in (n for n in ast.walk(node) if isinstance(n, ast.Call)):
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("parameters", "named_parameters"):
            yield call.func.value


def _writes_weights(node: ast.stmt, names: Collection[str]) -> bool:
    """Whether a statement writes into the values of some variables: ``p.mul_(0.5)``, ``p.data = q.data``."""
    for inner in ast.walk(node):
        match inner:
            case ast.Call(func=ast.Attribute(value=written, attr=attr)) if (
                attr.endswith("_") and attr != "requires_grad_"
            ):
                pass
            case (
                ast.Attribute(attr="data", value=written, ctx=ast.Store())
                | ast.Subscript(value=written, ctx=ast.Store())
            ):
                pass
            case ast.AugAssign(target=written):
                pass
            case _:
                continue
        while isinstance(written, ast.Subscript) or isinstance(written, ast.Attribute) and written.attr == "data":
            written = written.value
        if isinstance(written, ast.Name) and written.id in names:
            return True
    return False


def is_mode(node: ast.AST) -> bool:
    """Whether a statement is ``model.train()`` or ``model.eval()``."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="train" | "eval"), args=[] | [ast.Constant()])):
            return True
        case _:
            return False
