"""Lists of parameters that have a gradient, for clipping: ``[p for p in net.parameters() if p.grad is not None]``.

What works on gradients passes over parameters without one, and those that are frozen have none. Where a file that has
gaps makes such a list and does nothing else with it, it is read as if ``net.parameters()`` stood there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from t2j_lsp import symbols
from t2j_lsp.contract import Finding
from t2j_lsp.symbols import Comprehension, FunctionNode, ancestors
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.source.rearranged import RearrangedText
from t2j_lsp.translate.training.program.gradient_forms import asks_for_gradient, is_name
from t2j_lsp.translate.training.program.step_calls import clip_of

from .left_out import ObjectLeftOut, Stays

_LISTS = frozenset({"list", "tuple"})
_NAMED = "named_parameters"


def with_clipped_lists_walked(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text without such lists; None if there are none, or everything converts."""
    source = inference.source
    if "parameters" not in source.words or not list(gaps):
        return None
    written = _ClippedLists(inference)
    for node in source.nodes:
        try:
            written.of(node)
        except Stays:
            continue
    return RearrangedText.of(source.text, written.made_edits())


class _ClippedLists(ObjectLeftOut):
    def of(self, node: ast.AST) -> None:
        """A list in a call that clips, or one with a name. Raises Stays."""
        match node:
            case ast.Assign(targets=[ast.Name() as name], value=value) if (walked := self._walked(value)) is not None:
                self._named(node, name, walked)
            case ast.expr() if self._is_clipped(node) and (walked := self._walked(node)) not in (None, node):
                self.put(node, self._text(walked))

    def _named(self, made: ast.Assign, name: ast.Name, walked: ast.expr) -> None:
        """``params = [...]``: the list goes, and what it is of stands where it was read. Raises Stays."""
        home, block = self.source.home(name), self.source.block_of(made) or []
        uses = [n for n in self.source.names.get(name.id, ()) if self.source.home(n) is home and n is not name]
        own = isinstance(walked, ast.Name) and walked.id == name.id
        reads = [n for n in uses if n is not walked]
        behind = {n for s in block[block.index(made) + 1 :] for n in symbols.walk(s)}
        if not reads or not all(n in behind and isinstance(n.ctx, ast.Load) for n in reads):
            raise Stays
        if isinstance(walked, ast.Name) and not (own and isinstance(home, FunctionNode)):
            raise Stays
        asking = [branch for n in reads if (branch := self._asked(n)) is not None]
        walks = [n for n in reads if self._asked(n) is None]
        if not all(self._is_of_gradients(n) for n in walks) or len(walks) > 1 and not self._is_list(made.value):
            raise Stays
        if any(self._loop(n) is not self._loop(made) for n in walks):
            raise Stays  # by then flags may be others, or an iterator be used up
        self.drop(made)
        for read in walks:
            self.put(read, self._text(walked))
        for branch in asking:
            self.open(branch)

    def _is_list(self, value: ast.expr) -> bool:
        """Whether it may be walked over more than once."""
        called = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in _LISTS
        return called or isinstance(value, ast.ListComp)

    def _loop(self, node: ast.AST) -> ast.AST | None:
        """The loop in which it stands, but one that it is walked over by."""
        loops = (at for at in ancestors(node, self.parents) if isinstance(at, ast.For | ast.While))
        return next((loop for loop in loops if not (isinstance(loop, ast.For) and loop.iter is node)), None)

    def _asked(self, read: ast.Name) -> ast.If | None:
        """``if len(params) > 0:``, which holds: a module has parameters."""
        test: ast.AST = read
        match self.parents.get(test):
            case ast.Call(func=ast.Name(id="len")) as call:
                test = call
                match self.parents.get(test):
                    case ast.Compare(ops=[ast.Gt() | ast.NotEq()], comparators=[ast.Constant(value=0)]) as compared:
                        test = compared
        branch = self.parents.get(test)
        return branch if isinstance(branch, ast.If) and branch.test is test and not branch.orelse else None

    def _is_of_gradients(self, read: ast.Name) -> bool:
        """Whether it is clipped, or walked over for nothing but its gradients."""
        around = self.parents.get(read)
        match around:
            case ast.For(iter=walked, target=ast.Name(id=item)) if walked is read:
                inside: Iterator[ast.AST] = (n for s in around.body for n in symbols.walk(s))
            case ast.comprehension(iter=walked, target=ast.Name(id=item)) if walked is read:
                inside = iter(symbols.walk(made) if isinstance(made := self.parents.get(around), Comprehension) else ())
                inside = (n for n in inside if n is not around.target)
            case _:
                return self._is_clipped(read)
        items = [n for n in inside if is_name(n, item)]
        return bool(items) and all(
            isinstance(held := self.parents.get(n), ast.Attribute) and held.attr == "grad" for n in items
        )

    def _is_clipped(self, node: ast.expr) -> bool:
        """Whether it is what a call of PyTorch's clips."""
        call = self.parents.get(node)
        if isinstance(call, ast.keyword):
            given, call = call.arg == "parameters", self.parents.get(call)
        else:
            given = isinstance(call, ast.Call) and call.args[:1] == [node]
        fact = self.inference.fact(call.func) if isinstance(call, ast.Call) else None
        return given and isinstance(fact, Qual) and clip_of(fact.name) is not None

    # --- the lists ------------------------------------------------------------------------------------------------

    def _text(self, walked: ast.expr) -> str:
        match walked:
            case ast.Call(func=ast.Attribute(value=module)):
                return f"{self.source.segment(module)}.parameters()"
        return self.source.segment(walked)

    def _walked(self, node: ast.expr) -> ast.expr | None:
        """The parameters of which these are all that may have a gradient; None for others."""
        match node:
            case (
                ast.ListComp(elt=ast.Name(id=item), generators=[walk])
                | ast.GeneratorExp(elt=ast.Name(id=item), generators=[walk])
            ) if not walk.is_async and all(_asks(test, item) for test in walk.ifs):
                named = _second(walk.target) == item
                return self._parameters(walk.iter, named) if named or is_name(walk.target, item) else None
            case ast.Call(func=ast.Name(id="filter"), args=[ast.Lambda(args=given, body=body), walked], keywords=[]):
                items = [a.arg for a in given.args]
                return self._parameters(walked, named=False) if len(items) == 1 and _asks(body, items[0]) else None
            case ast.Call(func=ast.Name(id=made), args=[inner], keywords=[]) if made in _LISTS:
                return self._walked(inner)
        return self._parameters(node, named=False)

    def _parameters(self, node: ast.expr, named: bool) -> ast.expr | None:
        """``net.parameters()``, or a variable of that name in a function: ``def clip(params): ...``."""
        match node:
            case ast.Call(func=ast.Attribute(attr=attr, value=module), args=[], keywords=[]):
                wanted = _NAMED if named else "parameters"
                plain = all(isinstance(n, ast.Name | ast.Attribute | ast.expr_context) for n in symbols.walk(module))
                return node if attr == wanted and plain and is_module(self.inference.fact(module)) else None
            case ast.Name():
                return None if named else node
        return None


def _second(target: ast.expr) -> str:
    """``p`` of ``name, p``."""
    match target:
        case ast.Tuple(elts=[ast.Name(), ast.Name(id=name)]):
            return name
    return ""


def _asks(test: ast.expr, item: str) -> bool:
    """``p.requires_grad``, ``p.grad is not None``, and both."""
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            return all(_asks(value, item) for value in values)
        case ast.Attribute(attr="requires_grad", value=ast.Name(id=name)):
            return name == item
        case ast.Compare(left=ast.Attribute(value=ast.Name(id=name))):
            return name == item and asks_for_gradient(test)
    return False
