"""The lines that stand for a call of a function: its body, with what it is given."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from t2j_lsp import symbols
from t2j_lsp.symbols import Comprehension, FunctionNode, ScopeNode, scopes_around
from t2j_lsp.translate.inference.call_sites import bound_arguments
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Class, FunctionInfo
from t2j_lsp.translate.rule.facts import is_tensor
from t2j_lsp.translate.source.own_lines import units
from t2j_lsp.translate.source.positions import spans_lines
from t2j_lsp.translate.source.rearranged import Fragment

from .steady_arguments import is_steady

_DIRECT = ast.Name | ast.Constant


class Keeps(Exception):
    """A function that stays where it is. Its text is the reason."""


@dataclass(frozen=True)
class CallPlace:
    """A call, the simple statement that it stands in, and those that share its lines."""

    call: ast.Call
    statement: ast.stmt
    unit: Sequence[ast.stmt]
    span: tuple[int, int]
    """What the lines take of the text."""
    indent: str
    begins_line: bool
    scopes: Sequence[ScopeNode]


class InlinedCall:
    """Writes one call of a function as its body. Raises Keeps if that isn't sure to mean the same."""

    def __init__(self, inference: Inference, info: FunctionInfo, place: CallPlace, first: bool) -> None:
        self.inference, self.source = inference, inference.source
        self.info, self.place = info, place
        self.first = first
        """Whether it is the first of the calls, which keeps what is said of the function."""
        self.body = list(info.node.body)
        self.docstring = ast.get_docstring(info.node, clean=True)
        if self.docstring is not None:
            del self.body[0]
        self.result: ast.expr | None = None
        if self.body and isinstance(last := self.body[-1], ast.Return):
            self.result = last.value
            self.body.pop()
        self._check_function()
        self.before: list[tuple[str, ast.expr]] = []
        """What is bound to names of its own in front of the body."""
        self.assigned: dict[ast.Name, str] = {}
        """Reads of a parameter in the first statement, which gives it its own value: they are the argument's."""
        self.names = self._names()
        self.decided = {s: known for s in self.body if isinstance(s, ast.If) and (known := self._known(s)) is not None}
        """Conditions on what is given a constant."""
        if self.body and all(isinstance(s, ast.If) and self.decided.get(s) is False for s in self.body):
            raise Keeps("nothing of it is left")

    # --- whether it can be ----------------------------------------------------------------------------------------

    def _check_function(self) -> None:
        node = self.info.node
        decorators = [ast.unparse(d) for d in node.decorator_list]
        if isinstance(node, ast.AsyncFunctionDef) or decorators not in ([], ["staticmethod"] * self.info.static):
            raise Keeps("it is no plain function")
        if node.args.vararg or node.args.kwarg:
            raise Keeps("it takes any arguments")
        refused = (
            ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.Delete, ast.Import,
            ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Match, ast.Try,
        )  # fmt: skip
        for statement in self.body:
            for inner in symbols.walk(statement):
                if isinstance(inner, refused) and not _deletes_items(inner):
                    raise Keeps("it has more than plain statements")
                if isinstance(inner, ast.Name) and (inner.id == "super" or inner.id.startswith("__")):
                    raise Keeps("it uses names that mean something else outside of its class")
                if spans_lines(inner):
                    raise Keeps("a text of it has several lines")
        if not self.body and self.result is None:
            raise Keeps("it has no statements")
        own = self.source.symbols.bound(node)
        for inner in symbols.walk(node):
            if isinstance(inner, Comprehension) and self.source.symbols.bound(inner) & own:
                raise Keeps("a comprehension of it has a name for something else")
        around = scopes_around(node, self.source.parents)
        read = {n.id for s in node.body for n in symbols.walk(s) if isinstance(n, ast.Name)} - own
        for name in read:
            if self.source.symbols.home(name, around) is not self.source.symbols.home(name, self.place.scopes):
                raise Keeps(f"{name} means something else where it is called")

    # --- its names ------------------------------------------------------------------------------------------------

    def _names(self) -> dict[str, str]:
        """What each parameter and variable of the function is called where it is put."""
        bound = self.source.symbols.bound(self.info.node)
        names: dict[str, str] = {}
        self.given = self._arguments()
        for parameter, value in self.given.items():
            stores = self._stores(parameter)
            text = self._direct(value)
            if text is not None and (not stores or self._writes_through(parameter, stores, value)):
                names[parameter] = text
                continue
            names[parameter] = self._own_name(parameter, value)
            if names[parameter] == ast.unparse(value):
                continue
            match next(iter(self.body), None):
                case ast.Assign(targets=[ast.Name(id=stored)], value=first) if text is not None and stored == parameter:
                    reads = [n for n in symbols.walk(first) if isinstance(n, ast.Name) and n.id == parameter]
                    self.assigned |= dict.fromkeys(reads, text)
                case _:
                    self.before.append((names[parameter], value))
        for name in sorted(bound - names.keys()):
            names[name] = self._returned_as(name, names) or self._free(name)
        return names

    def _stores(self, name: str) -> list[ast.AST]:
        """The statements that give a variable a value."""
        nodes = [n for s in self.body for n in symbols.walk(s)]
        stores = [n for n in nodes if isinstance(n, ast.Name) and n.id == name and not _is_load(n)]
        return [self.source.parents[n] for n in stores]

    def _writes_through(self, parameter: str, stores: list[ast.AST], value: ast.expr) -> bool:
        """Whether a function changes only in place what it is given: ``loss /= 4`` changes the caller's tensor.

        What has a gradient is a tensor: ``w -= rate * w.grad``.
        """
        in_place = isinstance(value, ast.Name) and (is_tensor(self.inference.fact(value)) or self._has_grad(parameter))
        return in_place and all(isinstance(one, ast.AugAssign) for one in stores)

    def _has_grad(self, parameter: str) -> bool:
        """Whether the function reads the gradient of what it is given."""
        nodes = (n for s in self.body for n in symbols.walk(s))
        return any(isinstance(n, ast.Attribute) and ast.unparse(n) == f"{parameter}.grad" for n in nodes)

    def _returned_as(self, name: str, names: dict[str, str]) -> str | None:
        """The name that the call's value is assigned to, where it is a variable of the function."""
        match self.place.statement, self.result:
            case ast.Assign(targets=[ast.Name(id=target)], value=value), ast.Name(id=result):
                known = {n for text in names.values() for n in text.split(".")}
                given = {n.id for n in symbols.walk(self.place.call) if isinstance(n, ast.Name)}
                own = {n.id for s in self.info.node.body for n in symbols.walk(s) if isinstance(n, ast.Name)} - {name}
                if value is self.place.call and result == name and target not in known | given | own:
                    return target
        return None

    def _arguments(self) -> dict[str, ast.expr]:
        """What every parameter is given, in the order of the call. Raises Keeps."""
        call, arguments = self.place.call, self.info.node.args
        if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
            raise Keeps("a call passes on what it is given")
        given = {parameter.arg: value for parameter, value in bound_arguments(call, self.info)}
        if len(given) != len(call.args) + len(call.keywords):
            raise Keeps("a call doesn't fit")
        plain = [*arguments.posonlyargs, *arguments.args]
        if self.info.owner is not None and not self.info.static:
            if not isinstance(call.func, ast.Attribute) or _dotted(call.func.value) is None or not plain:
                raise Keeps("it is called on what has no name")
            if isinstance(self.inference.fact(call.func.value), Class):
                raise Keeps("it is called through its class")
            given = {plain[0].arg: call.func.value, **given}
        defaults = dict(zip([a.arg for a in plain][::-1], arguments.defaults[::-1], strict=False))
        defaults |= {a.arg: d for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d}
        for parameter in [*plain, *arguments.kwonlyargs]:
            if parameter.arg not in given:
                default = defaults.get(parameter.arg)
                if not isinstance(default, ast.Constant):
                    raise Keeps("a default value is computed")
                given[parameter.arg] = default
        return given

    def _direct(self, value: ast.expr) -> str | None:
        """The code of an argument that may stand wherever its parameter is read; None if it is bound before."""
        if isinstance(value, _DIRECT):
            return ast.unparse(value)
        text = _dotted(value)
        if text is None:
            return None
        body = [*self.body, *([self.result] if self.result is not None else [])]
        return text if is_steady(self.inference, value, text, body) else None

    def _own_name(self, parameter: str, value: ast.expr) -> str:
        """A name for a parameter that is bound: the argument's, if nothing else reads that."""
        if isinstance(value, ast.Name):
            scope = self._scope()
            reads = [n for n in symbols.walk(scope) if isinstance(n, ast.Name) and n.id == value.id and _is_load(n)]
            home = self.source.symbols.home(value.id, self.place.scopes)
            if reads == [value] and home is (None if isinstance(scope, ast.Module) else scope):
                return value.id
        return self._free(parameter)

    def _free(self, name: str) -> str:
        """A name that where the function is put has for nothing else."""
        inner = set(symbols.walk(self.info.node))
        taken: set[str] = set()
        for node in symbols.walk(self._scope()):
            if node not in inner:
                match node:
                    case ast.Name(id=one) | ast.arg(arg=one) | ast.alias(asname=str(one)) | ast.alias(name=one):
                        taken.add(one)
                    case ast.FunctionDef(name=one) | ast.ClassDef(name=one):
                        taken.add(one)
        for candidate in self._candidates(name):
            if candidate not in taken:
                return candidate
        raise AssertionError

    def _candidates(self, name: str) -> Iterator[str]:
        yield name
        yield f"{self.info.name.strip('_')}_{name}"
        number = 2
        while True:
            yield f"{name}_{number}"
            number += 1

    def _scope(self) -> ast.AST:
        """The function that the call stands in, or the module."""
        for scope in self.place.scopes:
            if isinstance(scope, FunctionNode):
                return scope
            if not isinstance(scope, ast.ClassDef):
                raise Keeps("a call stands in an expression")
        return self.source.tree

    # --- conditions on constants -----------------------------------------------------------------------------------

    def _known(self, node: ast.If) -> bool | None:
        """Whether a condition on a parameter holds, as a constant or its default decides: ``if clip is not None:``."""
        if node.orelse or not self.source.starts_line(node.body[0]):
            return None
        match node.test:
            case ast.Compare(
                left=ast.Name(id=name), ops=[ast.IsNot() | ast.Is() as op], comparators=[ast.Constant(None)]
            ):
                value = self._constant(name)
                return None if value is None else (value.value is None) is isinstance(op, ast.Is)
            case ast.Name(id=name):
                value = self._constant(name)
                return None if value is None else bool(value.value)
        return None

    def _constant(self, name: str) -> ast.Constant | None:
        value = self.given.get(name)
        return value if isinstance(value, ast.Constant) and not self._stores(name) else None

    # --- writing --------------------------------------------------------------------------------------------------

    def parts(self) -> list[Fragment]:
        """The lines that the call's statement becomes, with the others on its line."""
        place, source = self.place, self.source
        newline = f"{source.newline}{place.indent}"
        parts: list[Fragment] = [] if place.begins_line else [self._new(newline)]
        for index, statement in enumerate(place.unit):
            if index:
                parts.append(self._new(newline))
            if statement is place.statement:
                parts += self._statement(newline)
            else:
                start, end = source.span(statement)
                parts.append(Fragment(source.text[start:end], start, end))
        return parts

    def _new(self, text: str) -> Fragment:
        start, end = self.source.span(self.place.statement)
        return Fragment(text, start, end)

    def _statement(self, newline: str) -> list[Fragment]:
        lines: list[list[Fragment]] = []
        for name, value in self.before:
            start, end = self.source.span(value)
            lines.append([self._new(f"{name} = "), Fragment(self.source.text[start:end], start, end)])
        if self.first and self.docstring:
            lines.append([self._new(f"# {self.docstring.splitlines()[0]}")])
        lines += self._body(self.body, self._head_end())
        lines += self._rest()
        out = lines[0]
        for line in lines[1:]:
            out = [*out, self._new(newline), *line]
        return out

    def _body(self, block: Sequence[ast.stmt], previous: int) -> Iterator[list[Fragment]]:
        """Statements of the function with their comments; ``previous`` is the line on which what is above them ends."""
        source = self.source
        for unit in units(block):
            first, last = unit[0], unit[-1]
            if isinstance(first, ast.If) and first in self.decided:
                if self.decided[first]:
                    yield from self._body(first.body, first.test.end_lineno or first.lineno)
                previous = last.end_lineno or previous
                continue
            start, end = source.span(first)[0], source.span(last)[1]
            on_line = source.starts_line(first)
            said = next((n for n in range(previous + 1, first.lineno) if source.line_text(n).strip()), None)
            if on_line and said is not None:
                start = source.starts[said - 1] + len(source.indent(said))
            previous = last.end_lineno or previous
            behind = source.line_text(previous)[end - source.starts[previous - 1] :]
            if behind.lstrip().startswith("#"):
                end += len(behind)
            yield self._moved(start, end, source.indent(first.lineno) if on_line else None)

    def _head_end(self) -> int:
        """The line on which the head of the function, or its docstring, ends."""
        node = self.info.node
        if self.docstring is not None:
            return node.body[0].end_lineno or node.lineno
        ends = [node.lineno, *(n.end_lineno or 0 for n in symbols.walk(node.args) if isinstance(n, ast.expr | ast.arg))]
        return max([*ends, (node.returns.end_lineno or 0) if node.returns is not None else 0])

    def _moved(self, start: int, end: int, indent: str | None) -> list[Fragment]:
        """A range of the function with its names and indent as they are where it is put."""
        source = self.source
        edits = [(*source.span(n), text) for n, text in self._renamed() if start <= source.span(n)[0] < end]
        if indent is not None:
            first, last = source.line_of(start), source.line_of(end)
            for line in range(first + 1, last + 1):
                at = source.starts[line - 1]
                old = source.indent(line)
                if source.line_text(line).strip() and old.startswith(indent):
                    edits.append((at, at + len(indent), self.place.indent))
        parts, at = list[Fragment](), start
        for begin, stop, text in sorted(edits):
            parts += [Fragment(source.text[at:begin], at, begin), Fragment(text, begin, stop)]
            at = stop
        return [part for part in [*parts, Fragment(source.text[at:end], at, end)] if part.text]

    def _renamed(self) -> Iterator[tuple[ast.Name, str]]:
        for statement in self.info.node.body:
            for node in symbols.walk(statement):
                if isinstance(node, ast.Name):
                    text = self.assigned.get(node) or self.names.get(node.id, node.id)
                    if text != node.id:
                        yield node, text

    def _rest(self) -> Iterator[list[Fragment]]:
        """The statement itself, with the value of the function in place of the call."""
        statement, call = self.place.statement, self.place.call
        alone = isinstance(statement, ast.Expr) and statement.value is call
        if alone and (self.result is None or not _computes(self.result)):
            return
        value = [self._new("None")] if self.result is None else self._moved(*self.source.span(self.result), None)
        whole = getattr(statement, "value", None) is call
        if not whole and not isinstance(self.result, ast.Name | ast.Attribute | ast.Call | ast.Subscript | None):
            value = [self._new("("), *value, self._new(")")]
        start, end = self.source.span(statement)
        begin, stop = self.source.span(call)
        text = self.source.text
        line = [Fragment(text[start:begin], start, begin), *value, Fragment(text[stop:end], stop, end)]
        code = "".join(part.text for part in line)
        left, _, right = code.partition(" = ")
        if left.strip() != right.strip() or not all(name.strip().isidentifier() for name in left.split(",")):
            yield [part for part in line if part.text]


def _computes(node: ast.expr) -> bool:
    return any(isinstance(n, ast.Call | ast.Await | ast.NamedExpr) for n in symbols.walk(node))


def _dotted(node: ast.expr) -> str | None:
    """``self.optimizer``; None for other expressions."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            owner = _dotted(value)
            return None if owner is None else f"{owner}.{attr}"
    return None


def _is_load(node: ast.Name | ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Load)


def _deletes_items(node: ast.AST) -> bool:
    """Whether a statement deletes what an object holds, and no name: ``del policy.rewards[:]``."""
    return isinstance(node, ast.Delete) and all(isinstance(target, ast.Subscript) for target in node.targets)
