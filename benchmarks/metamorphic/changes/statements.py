"""Statements split, joined and written in other forms."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import libcst as cst
import libcst.matchers as m

from benchmarks.metamorphic.change import change
from benchmarks.metamorphic.source import Source

_Line = cst.SimpleStatementLine


class _InFunctions(cst.CSTTransformer):
    """Base of transforms of the blocks of functions that have no functions, classes or generators in them."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.numbers: Counter[str] = Counter()
        self.functions: list[cst.FunctionDef] = []
        self.counts: Counter[str] = Counter()

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.functions.append(node)
        self.counts = Counter(n.value for n in m.findall(node, m.Name()) if isinstance(n, cst.Name))

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self.functions.pop()
        return updated_node

    @property
    def plain(self) -> bool:
        """Whether the block that is left belongs to such a function."""
        inner = m.FunctionDef() | m.Lambda() | m.ClassDef() | m.Yield() | m.Global() | m.Nonlocal()
        return len(self.functions) == 1 and not m.findall(self.functions[0].body, inner)

    def fresh(self, stem: str) -> str:
        self.numbers[stem] += 1
        return self.source.fresh(f"{stem}_{self.numbers[stem]}")

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        if not self.functions or not self.plain:
            return updated_node
        return updated_node.with_changes(body=self.block(list(updated_node.body)))

    def block(self, body: list[cst.BaseStatement]) -> Sequence[cst.BaseStatement]:
        """The statements that take the place of a block's."""
        raise NotImplementedError


def _single(statement: cst.BaseStatement) -> cst.BaseSmallStatement | None:
    return statement.body[0] if isinstance(statement, _Line) and len(statement.body) == 1 else None


def _value(statement: cst.BaseSmallStatement | None) -> cst.BaseExpression | None:
    """What a return or an assignment to one name evaluates first."""
    match statement:
        case cst.Return(value=value):
            return value
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name())], value=value):
            return value
    return None


def _assigned(name: str, value: cst.BaseExpression) -> _Line:
    if "\n" in _code(value) and not value.lpar:
        value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return _Line([cst.Assign([cst.AssignTarget(cst.Name(name))], value)])


def _is_path(node: cst.BaseExpression) -> bool:
    """``self.a.b``: names whose evaluation does nothing."""
    while isinstance(node, cst.Attribute):
        node = node.value
    return isinstance(node, cst.Name)


class _Split(_InFunctions):
    """The innermost call that is evaluated first gets a name of its own, again and again."""

    def block(self, body: list[cst.BaseStatement]) -> Sequence[cst.BaseStatement]:
        out: list[cst.BaseStatement] = []
        for statement in body:
            small = _single(statement)
            value = _value(small)
            while value is not None and (first := self._first(value)) is not None:
                name = self.fresh("part")
                out += self._expanded(name, first)
                value = value.deep_replace(first, cst.Name(name))  # type: ignore[arg-type]
            if value is not None and small is not None and isinstance(statement, _Line):
                statement = statement.with_changes(body=[small.with_changes(value=value)])
            out.append(statement)
        return out

    def _expanded(self, name: str, value: cst.BaseExpression) -> list[cst.BaseStatement]:
        inner = self._first(value)
        if inner is None:
            return [_assigned(name, value)]
        own = self.fresh("part")
        return [*self._expanded(own, inner), _assigned(name, value.deep_replace(inner, cst.Name(own)))]  # type: ignore[arg-type]

    def _first(self, node: cst.BaseExpression) -> cst.Call | None:
        """A call inside an expression that is evaluated before anything else that does something."""
        match node:
            case cst.Call(func=cst.Attribute(value=cst.Call() as inner)) if self._is_plain(inner):
                return inner
            case cst.Call(func=func, args=[cst.Arg(value=cst.Call() as inner, star="", keyword=None), *_]) if _is_path(
                func
            ) and self._is_plain(inner):
                return inner
            case cst.BinaryOperation(left=cst.Call() as inner) if self._is_plain(inner):
                return inner
        return None

    def _is_plain(self, node: cst.Call) -> bool:
        return not m.matches(node.func, m.Name("super")) and not m.findall(node, m.Await() | m.NamedExpr())


@change("temporaries split off")
def temporaries_split(source: Source, rng: random.Random) -> cst.Module:
    """part_1 = self.a(x) and return self.b(part_1) for return self.b(self.a(x))."""
    return source.module.visit(_Split(source))


def _reads_first(node: cst.BaseExpression, name: str) -> cst.Name | None:
    """The name where it is what an expression evaluates first, apart from paths of attributes."""
    match node:
        case cst.Name(value=value):
            return node if value == name else None
        case cst.Call(func=cst.Attribute(value=owner), args=args):
            reads_first = _reads_first(owner, name)
            if reads_first is None and _is_path(node.func) and args and not args[0].star:
                reads_first = _reads_first(args[0].value, name)
            return reads_first
        case cst.Call(func=cst.Name(), args=[cst.Arg(value=first, star=""), *_]):
            return _reads_first(first, name)
        case cst.BinaryOperation(left=left):
            return _reads_first(left, name)
        case cst.Subscript(value=owner):
            return _reads_first(owner, name)
    return None


def _with_brackets(value: cst.BaseExpression) -> cst.BaseExpression:
    plain = isinstance(value, cst.Name | cst.Attribute | cst.Call | cst.Subscript) or value.lpar
    return value if plain else value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _name_of(statement: cst.BaseSmallStatement | None) -> str | None:
    match statement:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
            return name
    return None


class _Join(_InFunctions):
    """A value that only the next statement reads, and reads first, moves there."""

    def block(self, body: list[cst.BaseStatement]) -> Sequence[cst.BaseStatement]:
        out: list[cst.BaseStatement] = []
        for statement in body:
            joined = self._joined(out[-1], statement) if out else None
            if joined is not None:
                out[-1] = joined
            else:
                out.append(statement)
        return out

    def _joined(self, before: cst.BaseStatement, statement: cst.BaseStatement) -> cst.BaseStatement | None:
        first, second = _single(before), _single(statement)
        name, value = _name_of(first), _value(second)
        if name is None or value is None or not isinstance(first, cst.Assign) or not isinstance(statement, _Line):
            return None
        place = _reads_first(value, name)
        reads = len(m.findall(value, m.Name(name)))
        dies = _name_of(second) == name or self.counts[name] == 2
        if place is None or reads != 1 or not dies or isinstance(first.value, cst.Tuple):
            return None
        if (
            len(cst.Module([]).code_for_node(first.value)) > 90
            or statement.leading_lines
            or m.findall(first.value, m.NamedExpr())
        ):
            return None
        moved = _with_brackets(first.value)
        new = moved if value is place else value.deep_replace(place, moved)  # type: ignore[arg-type]
        assert second is not None and isinstance(before, _Line)
        return statement.with_changes(body=[second.with_changes(value=new)], leading_lines=before.leading_lines)


@change("temporaries joined")
def temporaries_joined(source: Source, rng: random.Random) -> cst.Module:
    """Return self.b(self.a(x)) for x = self.a(x) and return self.b(x)."""
    return source.module.visit(_Join(source))


class _Walrus(_InFunctions):
    def block(self, body: list[cst.BaseStatement]) -> Sequence[cst.BaseStatement]:
        out: list[cst.BaseStatement] = []
        for statement in body:
            named = self._named(out[-1], statement) if out else None
            if named is not None:
                out[-1] = named
            else:
                out.append(statement)
        return out

    def _named(self, before: cst.BaseStatement, statement: cst.BaseStatement) -> cst.BaseStatement | None:
        first, second = _single(before), _single(statement)
        name, value = _name_of(first), _value(second)
        if name is None or value is None or not isinstance(first, cst.Assign) or not isinstance(statement, _Line):
            return None
        place = _reads_first(value, name)
        if place is None or place is value or isinstance(first.value, cst.Tuple | cst.Yield | cst.NamedExpr):
            return None
        walrus = cst.NamedExpr(cst.Name(name), first.value, lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        assert second is not None and isinstance(before, _Line)
        new = second.with_changes(value=value.deep_replace(place, walrus))  # type: ignore[arg-type]
        return statement.with_changes(body=[new], leading_lines=before.leading_lines)


@change("walrus")
def walrus(source: Source, rng: random.Random) -> cst.Module:
    """Return self.b((y := self.a(x))) for y = self.a(x) and return self.b(y)."""
    return source.module.visit(_Walrus(source))


class _ToIf(_InFunctions):
    def block(self, body: list[cst.BaseStatement]) -> Sequence[cst.BaseStatement]:
        return [self._branched(s) for s in body]

    def _branched(self, statement: cst.BaseStatement) -> cst.BaseStatement:
        small = _single(statement)
        match small:
            case (
                cst.Return(value=cst.IfExp() as choice)
                | cst.Assign(
                    targets=[cst.AssignTarget(target=cst.Name() | cst.Attribute())], value=cst.IfExp() as choice
                )
            ):
                assert isinstance(statement, _Line)
                then, other = (
                    cst.IndentedBlock([_Line([small.with_changes(value=value)])])
                    for value in (choice.body, choice.orelse)
                )
                test = choice.test.with_changes(lpar=[], rpar=[]) if "\n" not in _code(choice.test) else choice.test
                space = cst.SimpleWhitespace(" ")
                return cst.If(
                    test,
                    then,
                    orelse=cst.Else(other),
                    leading_lines=statement.leading_lines,
                    whitespace_before_test=space,
                )
        return statement


def _code(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


@change("conditional expressions to if")
def conditional_to_if(source: Source, rng: random.Random) -> cst.Module:
    """If c: x = a else: x = b for x = a if c else b."""
    return source.module.visit(_ToIf(source))


class _FromIf(_InFunctions):
    def block(self, body: list[cst.BaseStatement]) -> Sequence[cst.BaseStatement]:
        return [self._chosen(s) for s in body]

    def _chosen(self, statement: cst.BaseStatement) -> cst.BaseStatement:
        match statement:
            case cst.If(
                test=test,
                body=cst.IndentedBlock(body=[_Line(body=[cst.Assign(targets=[left], value=then)])]),
                orelse=cst.Else(body=cst.IndentedBlock(body=[_Line(body=[cst.Assign(targets=[right], value=other)])])),
            ) if isinstance(left.target, cst.Name | cst.Attribute) and left.target.deep_equals(right.target):
                parts = [_with_brackets(part) for part in (then, test, other)]
                if any("#" in _code(part) or isinstance(part, cst.Tuple) for part in (then, test, other)):
                    return statement
                choice = cst.IfExp(body=parts[0], test=parts[1], orelse=parts[2])
                line = _Line([cst.Assign([cst.AssignTarget(left.target)], choice)])
                return line.with_changes(leading_lines=statement.leading_lines)
        return statement


@change("if to conditional expressions")
def if_to_conditional(source: Source, rng: random.Random) -> cst.Module:
    """X = a if c else b for if c: x = a else: x = b."""
    return source.module.visit(_FromIf(source))


class _Indices(_InFunctions):
    def block(self, body: list[cst.BaseStatement]) -> Sequence[cst.BaseStatement]:
        return [s for statement in body for s in self._indexed(statement)]

    def _indexed(self, statement: cst.BaseStatement) -> list[cst.BaseStatement]:
        match _single(statement):
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=elements))], value=value) if all(
                isinstance(e.value, cst.Name) and isinstance(e, cst.Element) for e in elements
            ) and _is_sequence(value):
                name = self.fresh("items")
                made = [_assigned(name, value).with_changes(leading_lines=getattr(statement, "leading_lines", ()))]
                names = [e.value.value for e in elements if isinstance(e.value, cst.Name)]
                return [*made, *(_assigned(n, cst.parse_expression(f"{name}[{i}]")) for i, n in enumerate(names))]
        return [statement]


def _is_sequence(value: cst.BaseExpression) -> bool:
    """Shapes, and what tensors are cut into."""
    is_shape = m.matches(
        value, m.Attribute(attr=m.Name("shape")) | m.Call(func=m.Attribute(attr=m.Name("size")), args=[])
    )
    return is_shape or m.matches(
        value, m.Call(func=m.Attribute(attr=m.Name("chunk") | m.Name("split") | m.Name("unbind")))
    )


@change("unpacking to indices")
def unpacking_to_indices(source: Source, rng: random.Random) -> cst.Module:
    """Items = x.shape, b = items[0], ... for b, n, c = x.shape."""
    return source.module.visit(_Indices(source))


class _Twice(_InFunctions):
    def block(self, body: list[cst.BaseStatement]) -> Sequence[cst.BaseStatement]:
        in_init = self.functions[0].name.value == "__init__"
        return [self._both(s) if in_init else s for s in body]

    def _both(self, statement: cst.BaseStatement) -> cst.BaseStatement:
        small = _single(statement)
        match small:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Attribute(value=cst.Name(value="self"))) as target],
                value=cst.Call(),
            ):
                assert isinstance(statement, _Line)
                own = cst.AssignTarget(cst.Name(self.fresh("made")))
                return statement.with_changes(body=[small.with_changes(targets=[target, own])])
        return statement


@change("two targets")
def two_targets(source: Source, rng: random.Random) -> cst.Module:
    """self.a = made_1 = nn.Linear(3, 4) for self.a = nn.Linear(3, 4)."""
    return source.module.visit(_Twice(source))
