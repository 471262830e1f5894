"""Functions that are a part of a training step, put where they are called: ``def backward(loss): loss.backward()``.

A compiled step computes the loss and its gradient in one place, so a function that is only given the loss has no form
of its own. Where a file has such functions, it is read as if their bodies stood where they are called.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from t2j_lsp import symbols
from t2j_lsp.contract import Finding, Severity
from t2j_lsp.symbols import ancestors, scopes_around
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Function, FunctionInfo
from t2j_lsp.translate.rule.facts import Object, Qual, Tensor
from t2j_lsp.translate.source.folding.uses import runs
from t2j_lsp.translate.source.own_lines import lines, units
from t2j_lsp.translate.source.positions import first_line
from t2j_lsp.translate.source.rearranged import Edits, Rearranged, RearrangedText
from t2j_lsp.translate.training.program.step_calls import Reader, Refused, StepCall, clip_of

from .inlined_call import CallPlace, InlinedCall, Keeps

MOVED = "its lines are part of the training step now; other files that call it make the step as this file does"


def with_parts_of_steps_inlined(inference: Inference, gaps: Iterable[Finding]) -> Iterator[RearrangedText]:
    """The texts in which the functions stand where they are called that make part of a step; the surest first.

    First those that are given the loss, then also those that compute it and leave the update to others, or that are a
    gap as a whole, then also those that keep what these read in the object: ``self.fake = self.net(self.real)``; and
    those that update what they are given by hand: ``def sgd(params, rate): ...``, and those that clip gradients.
    """
    left = {gap.span for gap in gaps}
    step_parts = {info: _parts(inference, info) for info in inference.functions.values() if not info.external}
    given = [info for info, parts in step_parts.items() if parts and not _computes_loss(info, parts)]
    others = [
        info
        for info, parts in step_parts.items()
        if info not in given
        and _makes_gradient(info, parts)
        and (_leaves_update(parts) or inference.source.contract_span(info.node) in left)
    ]
    parts_of_steps = [*given, *others]
    makers = [
        info for info in step_parts if info not in parts_of_steps and _keeps_values_for(inference, info, parts_of_steps)
    ]
    by_hand = [i for i in step_parts if i not in parts_of_steps and (_updates_by_hand(i) or _clips(inference, i))]
    ways = [given, *([parts_of_steps] if others else []), *([[*parts_of_steps, *makers]] if makers else [])]
    if by_hand:
        ways.append([*parts_of_steps, *by_hand])
    for infos in ways:
        text = Inlining(inference, dict.fromkeys(infos)).text()
        if text is not None:
            yield text


def _parts(inference: Inference, info: FunctionInfo) -> list[StepCall]:
    """The statements of a function that are part of a training step, if none of them stands in a loop."""
    reader, parts = Reader(inference), []
    try:
        for block in symbols.blocks(info.node.body):
            for statement in block:
                part = reader.read(statement)
                if part is not None and part.kind != "clip":
                    parts.append(part)
                    around = ancestors(statement, inference.source.parents)
                    if any(isinstance(at, ast.For | ast.While | ast.AsyncFor) for at in _up_to(around, info.node)):
                        return []
    except Refused:
        return []
    return parts


def _up_to(nodes: Iterable[ast.AST], last: ast.AST) -> Iterator[ast.AST]:
    for node in nodes:
        if node is last:
            return
        yield node


def _keeps_values_for(inference: Inference, info: FunctionInfo, others: Sequence[FunctionInfo]) -> bool:
    """Whether a method of an object computes what others of its methods read: ``self.fake = self.net(self.real)``."""
    if info.owner is None or info.owner.acts_as_module or all(other.owner is not info.owner for other in others):
        return False
    stored = {
        ast.unparse(target)
        for statement in info.node.body
        if isinstance(statement, ast.Assign) and Reader(inference).calls_module(statement.value)
        for target in statement.targets
        if isinstance(target, ast.Attribute)
    }
    read = (n for other in others for n in symbols.walk(other.node) if isinstance(n, ast.Attribute))
    return any(isinstance(n.ctx, ast.Load) and ast.unparse(n) in stored for n in read)


def _makes_gradient(info: FunctionInfo, parts: Sequence[StepCall]) -> bool:
    """Whether a function computes gradients, and makes no update by hand with them."""
    reads = any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in symbols.walk(info.node))
    return any(part.kind == "backward" for part in parts) and not reads


def _updates_by_hand(info: FunctionInfo) -> bool:
    """Whether a function changes what it is given by gradients that others have computed: ``w -= rate * w.grad``."""
    grads = [n for n in symbols.walk(info.node) if isinstance(n, ast.Attribute) and n.attr == "grad"]
    backward = any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in symbols.walk(info.node))
    return bool(grads) and not backward and info.owner is None


def _clips(inference: Inference, info: FunctionInfo) -> bool:
    """Whether a function clips gradients, and is no training code besides."""
    facts = [inference.fact(n.func) for n in symbols.walk(info.node) if isinstance(n, ast.Call)]
    clips = any(isinstance(fact, Qual) and clip_of(fact.name) is not None for fact in facts)
    return clips and not _parts(inference, info) and not any(isinstance(f, Object) for f in facts)


def _leaves_update(parts: Sequence[StepCall]) -> bool:
    """Whether the update stands elsewhere."""
    return all(part.kind != "step" for part in parts)


def _computes_loss(info: FunctionInfo, parts: Sequence[StepCall]) -> bool:
    """Whether what a function differentiates is the value of a call that it makes itself."""
    names = {text for p in parts if p.kind == "backward" for text in _variables(p.subject)}
    for node in symbols.walk(info.node):
        if isinstance(node, ast.Assign) and any(isinstance(n, ast.Call) for n in symbols.walk(node.value)):
            if {text for t in node.targets for text in _variables(t)} & names:
                return True
    return False


def _variables(node: ast.AST) -> Iterator[str]:
    """The names and attributes that an expression reads or writes: ``self.loss``, and no ``self`` for it."""
    match node:
        case ast.Name(id=name):
            yield name
        case ast.Attribute(value=ast.Name()):
            yield ast.unparse(node)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _variables(child)


class Inlining:
    """Puts the functions of one file that are asked for where they are called, as far as that is sure."""

    def __init__(self, inference: Inference, wanted: Iterable[FunctionInfo]) -> None:
        self.inference, self.source = inference, inference.source
        self.wanted = list(wanted)
        self.edits: Edits = []
        self.findings: list[Finding] = []
        self._taken: set[ast.AST] = set()
        """Statements whose lines are written anew."""

    def text(self) -> RearrangedText | None:
        """The text without these functions; None if all stay."""
        for info in self.wanted:
            try:
                self._inline(info)
            except Keeps:
                continue
        if not self.edits:
            return None
        text = Rearranged.of(self.source.text, self.edits)
        try:
            ast.parse(text.new)
        except SyntaxError:
            return None
        return RearrangedText((text,), tuple(self.findings))

    def _inline(self, info: FunctionInfo) -> None:
        """Plan one function. Raises Keeps."""
        calls = [self._place(call) for call in self._calls(info)]
        if not calls:
            raise Keeps("nobody calls it")
        owners = [one.statement for one in calls]
        beside = [s for one in calls for s in one.unit]
        if len(set(owners)) < len(owners) or len(set(beside)) < len(beside) or not self._taken.isdisjoint(beside):
            raise Keeps("two calls stand on one line")
        if any(isinstance(n, ast.Name | ast.Attribute) and self._is_wanted(n, info) for n in symbols.walk(info.node)):
            raise Keeps("it calls another one, which goes first")
        edits = [
            (*one.span, InlinedCall(self.inference, info, one, first=index == 0).parts())
            for index, one in enumerate(calls)
        ]
        self.edits += [*edits, (*self._definition(info), [])]
        self._taken.update(beside)
        if not runs(self.source.tree) and not info.name.startswith("_"):
            span = self.source.contract_span(info.node)
            self.findings.append(Finding(span, info.name, "note", Severity.NOTE, f"{info.name}: {MOVED}"))

    def _is_wanted(self, node: ast.expr, info: FunctionInfo) -> bool:
        fact = self.inference.fact(node)
        return isinstance(fact, Function) and (fact.info is info or fact.info in self.wanted)

    # --- its calls ------------------------------------------------------------------------------------------------

    def _calls(self, info: FunctionInfo) -> list[ast.Call]:
        """All calls of a function, if it has no other use. Raises Keeps."""
        calls: list[ast.Call] = []
        inner = set(symbols.walk(info.node))
        for node in self.source.nodes:
            if not self._names(node, info):
                continue
            assert isinstance(node, ast.expr)
            fact, parent = self.inference.fact(node), self.source.parents.get(node)
            if isinstance(fact, Function) and fact.info is not info or self._is_of_library(node):
                continue
            if not isinstance(fact, Function) or not isinstance(parent, ast.Call) or parent.func is not node:
                raise Keeps("it is used as a value, or can't be told from others")
            if node in inner:
                raise Keeps("it calls itself")
            calls.append(parent)
        return calls

    def _is_of_library(self, node: ast.expr) -> bool:
        """Whether it is a method of PyTorch's: ``optimizer.step`` in a class that has a ``step``, too."""
        owner = self.inference.fact(node.value) if isinstance(node, ast.Attribute) else None
        return isinstance(owner, Object | Tensor)

    def _names(self, node: ast.AST, info: FunctionInfo) -> bool:
        """Whether a node may mean the function, by its name."""
        match node:
            case ast.Name(id=name):
                return name == info.name and info.owner is None
            case ast.Attribute(attr=name):
                return name == info.name and info.owner is not None
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name == info.name:
                if node is not info.node and info.owner is not None:
                    raise Keeps("another class has a method of this name")
            case ast.Constant(value=str() as text) if text == info.name:
                raise Keeps("it is named in a string")
        return False

    def _place(self, call: ast.Call) -> CallPlace:
        """Where a call stands. Raises Keeps unless nothing is computed before it in its statement."""
        parents = self.source.parents
        statement = next((at for at in ancestors(call, parents) if isinstance(at, ast.stmt)), None)
        if not isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return):
            raise Keeps("a call stands in the head of another statement")
        around = list(_up_to(ancestors(call, parents), statement))
        if not all(isinstance(n, ast.Call | ast.Attribute | ast.Tuple | ast.List | ast.keyword) for n in around):
            raise Keeps("a call stands in an expression")
        effects = (ast.Call, ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)
        inside = set(symbols.walk(call))
        others = [n for n in symbols.walk(statement) if isinstance(n, effects) and n not in around and n not in inside]
        if others or isinstance(statement, ast.AugAssign) and not isinstance(statement.target, ast.Name):
            raise Keeps("something is computed before a call, in its statement")
        block = self.source.block_of(statement)
        if block is None:
            raise Keeps("a call stands in a case")
        unit = next(unit for unit in units(block) if statement in unit)
        return CallPlace(call, statement, unit, *lines(self.source, unit), scopes_around(call, parents))

    # --- the text -------------------------------------------------------------------------------------------------

    def _definition(self, info: FunctionInfo) -> tuple[int, int]:
        """The lines of a function, with the blank ones behind it. Raises Keeps if it is all that its block has."""
        node, source = info.node, self.source
        block = source.block_of(node) or []
        others = [s for s in block if s is not node and not any(s is w.node for w in self.wanted)]
        if not others or not source.starts_line(node) or node.end_lineno is None:
            raise Keeps("it is all that its block has")
        begin = source.starts[first_line(node) - 1]
        last = node.end_lineno
        while last < len(source.starts) and not source.line_text(last + 1).strip() and last + 1 < len(source.starts):
            last += 1
        return begin, source.line_end(last)
