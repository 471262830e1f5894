"""What a module keeps between passes in evaluation mode: where a file has gaps, it is computed in each.

A dict of the module has the value under a key, ``train()`` empties it, and a pass in training mode doesn't ask for it::

    if key not in self.cache:
        self.cache[key] = self.bias[:, self.index]
    return self.cache[key]

Under jit a dict would keep tracers, and NNX calls no ``train()`` of the modules inside. The value must follow from the
module's own attributes and the key, without calls. It is left as it is where anything else is done with the dict.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from t2j_lsp import symbols
from t2j_lsp.contract import Finding, Severity
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.source.rearranged import Rearranged, RearrangedText

from .left_out import ObjectLeftOut, Stays

_OVERRIDDEN = frozenset({"train", "_apply"})
"""Methods of `torch.nn.Module` that go where all that they do more is to empty a dict."""
_COMPUTED = "{} isn't kept between passes in evaluation mode: what it held is computed in each, as in training mode"


def with_caches_left_out(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text without such dicts; None where there are none, or no ``train()`` is a gap."""
    source = inference.source
    if "train" not in source.words or not any(gap.name.endswith(".train") for gap in gaps):
        return None
    left, findings = ObjectLeftOut(inference), list[Finding]()
    for info in inference.classes.values():
        if not info.is_module or "train" not in info.methods or info.node not in source.nodes:
            continue
        for name, made in _empty_dicts(info.node).items():
            before = dict(left.instead)
            try:
                _Cache(left, info.node, name).leave_out()
            except Stays:
                left.instead = before
                continue
            reason = _COMPUTED.format(f"self.{name}")
            findings.append(Finding(source.contract_span(made), f"self.{name}", "note", Severity.NOTE, reason))
    edits = left.made_edits()
    return (
        RearrangedText((Rearranged.of(source.text, sorted(edits, key=lambda e: e[:2])),), tuple(findings))
        if edits
        else None
    )


def _empty_dicts(cls: ast.ClassDef) -> dict[str, ast.Assign]:
    """The attributes to which a class assigns an empty dict, with the first such statement."""
    emptied: dict[str, ast.Assign] = {}
    for node in symbols.walk(cls):
        if isinstance(node, ast.Assign) and (name := _emptied(node)):
            emptied.setdefault(name, node)
    return emptied


def _emptied(node: ast.stmt) -> str:
    """The attribute of ``self.name = {}``."""
    match node:
        case ast.Assign(targets=[ast.Attribute(value=ast.Name("self"), attr=name)], value=ast.Dict(keys=[])):
            return name
    return ""


class _Cache:
    """One dict of a class. Methods raise Stays where it is more than that."""

    def __init__(self, left: ObjectLeftOut, cls: ast.ClassDef, name: str) -> None:
        self.left, self.cls, self.name = left, cls, name
        self.source = left.source
        self.uses = [a for a in left.source.attributes.get(name, []) if self._class_of(a) is cls]

    def leave_out(self) -> None:
        """All that is done with it goes."""
        if not self._is_own():
            raise Stays
        accounted = set[ast.AST]()
        for statement in [n for n in symbols.walk(self.cls) if isinstance(n, ast.stmt)]:
            if statement in accounted:
                continue
            if self._empties(statement):
                accounted.update(symbols.walk(statement))
                self.left.drop_or_pass(statement)
            elif isinstance(statement, ast.If) and self._computes(statement):
                accounted.update(self._computed_anew(statement))
        if not accounted.issuperset(self.uses):
            raise Stays
        for method in self.cls.body:
            if isinstance(method, ast.AnnAssign) and method.value is None and ast.unparse(method.target) == self.name:
                self.left.drop(method)
            if isinstance(method, ast.FunctionDef) and method.name in _OVERRIDDEN:
                self._without(method)

    def _is_own(self) -> bool:
        """Whether every use of an attribute of this name is of ``self``, in a class that keeps such a dict itself."""
        everywhere = self.source.attributes.get(self.name, [])
        if not all(isinstance(a.value, ast.Name) and a.value.id == "self" for a in everywhere):
            return False
        return all((cls := self._class_of(a)) is not None and self.name in _empty_dicts(cls) for a in everywhere)

    def _class_of(self, node: ast.AST) -> ast.ClassDef | None:
        return next((n for n in symbols.ancestors(node, self.source.parents) if isinstance(n, ast.ClassDef)), None)

    def _is_it(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Attribute) and node in self.uses

    def _empties(self, statement: ast.stmt) -> bool:
        """``self.cache = {}``, also where it isn't empty."""
        if isinstance(statement, ast.If) and not statement.orelse and len(statement.body) == 1:
            asked = statement.test.values if isinstance(statement.test, ast.BoolOp) else [statement.test]
            plain = all(self._is_it(one) or isinstance(one, ast.Name) for one in asked)
            return plain and any(map(self._is_it, asked)) and self._empties(statement.body[0])
        return _emptied(statement) == self.name

    def _computes(self, statement: ast.If) -> bool:
        """``if key not in self.cache: self.cache[key] = value``, in evaluation mode, of what follows from key."""
        match statement:
            case ast.If(
                test=ast.Compare(left=ast.Name(id=asked), ops=[ast.NotIn()], comparators=[held]),
                body=[ast.Assign(targets=[ast.Subscript(value=store, slice=ast.Name(id=key))], value=value)],
                orelse=[],
            ) if asked == key and self._is_it(held) and self._is_it(store):
                pass
            case _:
                return False
        inside = [*symbols.walk(value)]
        own = {n.id for n in inside if isinstance(n, ast.Name)} - {"self", key}
        return not own and not any(isinstance(n, ast.Call) for n in inside) and self._in_evaluation(statement)

    def _in_evaluation(self, statement: ast.stmt) -> bool:
        """Whether it stands in the other branch of a condition that holds in training mode."""
        inner: ast.AST = statement
        for place in symbols.ancestors(statement, self.source.parents):
            if isinstance(place, ast.If) and inner in place.orelse and _holds_in_training(place.test):
                return True
            if isinstance(place, ast.FunctionDef):
                return False
            inner = place
        return False

    def _computed_anew(self, statement: ast.If) -> Iterator[ast.AST]:
        """The value in the place of ``return self.cache[key]`` behind the condition; what was written by it."""
        block = self.source.block_of(statement) or []
        following = block[block.index(statement) + 1 : block.index(statement) + 2]
        store = statement.body[0]
        assert isinstance(store, ast.Assign) and isinstance(store.targets[0], ast.Subscript)
        match following:
            case [ast.Return(value=ast.Subscript(value=held, slice=ast.Name(id=key)) as read)] if self._is_it(held):
                if key != ast.unparse(store.targets[0].slice):
                    raise Stays
            case _:
                raise Stays
        if "\n" in self.source.segment(store.value):
            raise Stays
        self.left.drop(statement)
        self.left.put(read, self.source.segment(store.value))
        yield from symbols.walk(statement)
        yield from symbols.walk(read)

    def _without(self, method: ast.FunctionDef) -> None:
        """A method that only empties the dict and does what PyTorch's own does goes. Raises Stays for ``train()``."""
        body = [s for s in method.body if not self._empties(s)]
        if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]
        rest = [s for s in body if not (isinstance(s, ast.Return) and ast.unparse(s) == "return self")]
        called = [s.value for s in rest if isinstance(s, ast.Expr | ast.Return)]
        match called:
            case [ast.Call(func=ast.Attribute(value=owner, attr=name))] if len(rest) == 1 and symbols.is_super(owner):
                if name == method.name:
                    self._drop(method)
                    return
        if method.name == "train":
            raise Stays

    def _drop(self, method: ast.FunctionDef) -> None:
        block = self.cls.body
        begin = self._first_line(method)
        behind = block[block.index(method) + 1 : block.index(method) + 2]
        end = self.source.line_end(method.end_lineno or 0)
        for one in behind:
            start = self._first_line(one)
            end = start if not [*self.source.comments_between(end, start)] else end
        if len(block) < 2:
            raise Stays
        self.left.instead = {s: t for s, t in self.left.instead.items() if not begin <= s[0] < end}
        self.left.instead[begin, end] = ""

    def _first_line(self, statement: ast.stmt) -> int:
        """Where a statement begins with its line, or its decorators do."""
        decorators = statement.decorator_list if isinstance(statement, ast.FunctionDef | ast.ClassDef) else []
        return self.source.starts[min([statement.lineno, *(n.lineno for n in decorators)]) - 1]


def _holds_in_training(test: ast.expr) -> bool:
    """Whether a condition holds wherever ``self.training`` does."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return any(map(_holds_in_training, test.values))
    return ast.unparse(test) == "self.training"
