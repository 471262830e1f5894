"""Loops, conditions and assignments of programs in other forms."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import libcst as cst
import libcst.matchers as m

from benchmarks.metamorphic.blocks import Blocks, Statement, Uses, code_of, line, parsed, single, small_statements
from benchmarks.metamorphic.change import change
from benchmarks.metamorphic.source import Source


def _names(target: cst.CSTNode) -> set[str]:
    return {n.value for n in m.findall(target, m.Name()) if isinstance(n, cst.Name)}


def _block(node: cst.For | cst.While | cst.If | cst.With) -> list[Statement] | None:
    return [*node.body.body] if isinstance(node.body, cst.IndentedBlock) else None


def _with_block(node: cst.For, body: Sequence[Statement]) -> cst.For:
    return node.with_changes(body=node.body.with_changes(body=body))


class _Loops(Blocks):
    """Base of transforms of plain ``for`` loops whose body neither jumps nor stores the loop's variables."""

    def statement(self, statement: Statement) -> Iterable[Statement]:
        if not isinstance(statement, cst.For) or statement.orelse is not None or statement.asynchronous:
            return [statement]
        body = _block(statement)
        if body is None or m.findall(statement.body, m.Continue()):
            return [statement]
        return self.loop(statement, body)

    def loop(self, loop: cst.For, body: list[Statement]) -> Iterable[Statement]:
        """What stands for a loop."""
        raise NotImplementedError

    def is_left(self, loop: cst.For, name: str) -> bool:
        """Whether a loop's variable is read by nothing but the loop, and stored by nothing in it."""
        if not isinstance(loop.body, cst.IndentedBlock):
            return False
        inside, everywhere = m.findall(loop.body, m.Name(name)), m.findall(self.scope, m.Name(name))
        stored = Uses(cst.Module(list(loop.body.body)).code).stored
        return name not in stored and len(everywhere) == len(inside) + 1


class _While(_Loops):
    def loop(self, loop: cst.For, body: list[Statement]) -> Iterable[Statement]:
        match loop:
            case cst.For(
                target=cst.Name(value=name),
                iter=cst.Call(func=cst.Name(value="range"), args=[cst.Arg(value=end, star="")]),
            ) if isinstance(end, cst.Name | cst.Integer | cst.Attribute) and self.is_left(loop, name):
                first, *_ = parsed(f"{name} = 0\n")
                count = parsed(f"{name} += 1\n")
                test = cst.parse_expression(f"{name} < {code_of(end)}")
                block = loop.body.with_changes(body=[*body, *count])
                return [first.with_changes(leading_lines=loop.leading_lines), cst.While(test, block)]
        return [loop]


@change("for to while", programs=True)
def for_to_while(source: Source, rng: random.Random) -> cst.Module:
    """I = 0, while i < n: ..., i += 1 for for i in range(n): ..."""
    return source.module.visit(_While(source))


class _Counter(_Loops):
    def loop(self, loop: cst.For, body: list[Statement]) -> Iterable[Statement]:
        match loop:
            case cst.For(
                target=cst.Tuple(elements=[cst.Element(value=cst.Name(value=name)), cst.Element(value=item)]),
                iter=cst.Call(func=cst.Name(value="enumerate"), args=[cst.Arg(value=values, star="")]),
            ) if self.is_left(loop, name):
                first, *_ = parsed(f"{name} = 0\n")
                new = loop.with_changes(
                    target=item,
                    iter=values,
                    leading_lines=(),
                    body=loop.body.with_changes(body=[*body, *parsed(f"{name} += 1\n")]),
                )
                return [first.with_changes(leading_lines=loop.leading_lines), new]
        return [loop]


@change("enumerate to a counter", programs=True)
def enumerate_to_counter(source: Source, rng: random.Random) -> cst.Module:
    """I = 0, for x in xs: ..., i += 1 for for i, x in enumerate(xs): ..."""
    return source.module.visit(_Counter(source))


class _Enumerate(_Loops):
    def loop(self, loop: cst.For, body: list[Statement]) -> Iterable[Statement]:
        if m.matches(loop.iter, m.Call(func=m.Name("enumerate") | m.Name("range") | m.Name("zip"))):
            return [loop]
        item = loop.target
        if isinstance(item, cst.Tuple) and not item.lpar:
            item = item.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        index = cst.Element(cst.Name(self.fresh("index")))
        target = cst.Tuple([index, cst.Element(item)], lpar=[], rpar=[])
        return [loop.with_changes(target=target, iter=cst.Call(cst.Name("enumerate"), [cst.Arg(loop.iter)]))]


@change("loops enumerated", programs=True)
def loops_enumerated(source: Source, rng: random.Random) -> cst.Module:
    """For index, x in enumerate(xs) for for x in xs."""
    return source.module.visit(_Enumerate(source))


class _Batches(_Loops):
    def loop(self, loop: cst.For, body: list[Statement]) -> Iterable[Statement]:
        target = loop.target
        if isinstance(target, cst.Tuple) and not m.matches(loop.iter, m.Call(func=m.Name("enumerate"))):
            name = self.fresh("batch")
            bare = code_of(target.with_changes(lpar=[], rpar=[]))
            block = loop.body.with_changes(body=[*parsed(f"{bare} = {name}\n"), *body])
            return [loop.with_changes(target=cst.Name(name), body=block)]
        return [loop]


@change("batches unpacked in the body", programs=True)
def batches_unpacked(source: Source, rng: random.Random) -> cst.Module:
    """For batch in loader: x, y = batch for for x, y in loader."""
    return source.module.visit(_Batches(source))


_GRADIENT = m.Attribute(attr=m.Name("grad"))


class _Spelled(cst.CSTTransformer):
    def leave_AugAssign(self, original_node: cst.AugAssign, updated_node: cst.AugAssign) -> cst.BaseSmallStatement:
        if not isinstance(updated_node.target, cst.Name | cst.Attribute):
            return updated_node
        if isinstance(updated_node.target, cst.Name) and m.findall(updated_node.value, _GRADIENT):
            return updated_node  # another tensor would be the variable's
        target = code_of(updated_node.target)
        operator = code_of(updated_node.operator).strip()[:-1]
        value = code_of(updated_node.value)
        if not isinstance(updated_node.value, cst.Name | cst.Call | cst.Attribute | cst.Integer | cst.Float):
            value = f"({value})"
        new = cst.parse_statement(f"{target} = {target} {operator} {value}")
        return small_statements(new)[0]


@change("augmented assignments spelled out", programs=True)
def augmented_spelled(source: Source, rng: random.Random) -> cst.Module:
    """X = x + y for x += y."""
    return source.module.visit(_Spelled())


class _Paired(Blocks):
    """Two assignments to names, of which the second reads nothing of the first, become one."""

    def block(self, body: list[Statement]) -> Sequence[Statement]:
        out: list[Statement] = []
        for statement in body:
            paired = self._paired(out[-1], statement) if out else None
            if paired is None:
                out.append(statement)
            else:
                out[-1] = paired
        return out

    def _paired(self, before: Statement, statement: Statement) -> Statement | None:
        match single(before), single(statement):
            case (
                cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as first)], value=one),
                cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as second)], value=other),
            ) if not m.findall(other, m.Name(first.value)) and not m.findall(one, m.Lambda()):
                if any(isinstance(v, cst.Tuple | cst.IfExp | cst.Lambda) or "\n" in code_of(v) for v in (one, other)):
                    return None
                text = f"{first.value}, {second.value} = {code_of(one)}, {code_of(other)}\n"
                (new,) = parsed(text)
                return new.with_changes(leading_lines=getattr(before, "leading_lines", ()))
        return None


@change("assignments joined into tuples", programs=True)
def assignments_joined(source: Source, rng: random.Random) -> cst.Module:
    """a, b = f(x), g(x) for a = f(x) and b = g(x)."""
    return source.module.visit(_Paired(source))


class _Unpaired(Blocks):
    def statement(self, statement: Statement) -> Iterable[Statement]:
        match single(statement):
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple() as left)], value=cst.Tuple() as right):
                names = [e.value for e in left.elements]
                values = [e.value for e in right.elements]
                plain = all(isinstance(n, cst.Name | cst.Attribute) for n in names)
                stars = any(isinstance(e, cst.StarredElement) for e in (*left.elements, *right.elements))
                later = set().union(*(_names(v) for v in values[1:])) if values else set()
                if plain and not stars and len(names) == len(values) and not later & set(map(_last, names)):
                    lines = [
                        line(cst.Assign([cst.AssignTarget(n)], v), statement if not i else None)  # type: ignore[arg-type]
                        for i, (n, v) in enumerate(zip(names, values, strict=True))
                    ]
                    return lines
        return [statement]


def _last(node: cst.BaseExpression) -> str:
    return node.attr.value if isinstance(node, cst.Attribute) else code_of(node)


@change("tuples of assignments split", programs=True)
def assignments_split(source: Source, rng: random.Random) -> cst.Module:
    """A = x and b = y for a, b = x, y."""
    return source.module.visit(_Unpaired(source))


class _OneLine(Blocks):
    """Expressions that follow each other as statements of one line."""

    def block(self, body: list[Statement]) -> Sequence[Statement]:
        out: list[Statement] = []
        for statement in body:
            small = single(statement)
            call = isinstance(small, cst.Expr) and isinstance(small.value, cst.Call) and "\n" not in code_of(small)
            last = out[-1] if out else None
            if call and isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], cst.Expr | cst.Assign):
                if isinstance(statement, cst.SimpleStatementLine) and not statement.leading_lines:
                    if last.trailing_whitespace.comment is None and "\n" not in code_of(last.body[-1]):
                        plain = cst.MaybeSentinel.DEFAULT
                        body_ = [s.with_changes(semicolon=plain) for s in (*last.body, *statement.body)]
                        out[-1] = last.with_changes(body=body_)
                        continue
            out.append(statement)
        return out


@change("statements on one line", programs=True)
def one_line(source: Source, rng: random.Random) -> cst.Module:
    """optimizer.zero_grad(); loss.backward() on one line."""
    return source.module.visit(_OneLine(source))


class _Inverted(Blocks):
    def statement(self, statement: Statement) -> Iterable[Statement]:
        match statement:
            case cst.If(
                test=test, body=cst.IndentedBlock() as then, orelse=cst.Else(body=cst.IndentedBlock() as other)
            ):
                if "\n" in code_of(test):
                    return [statement]
                new = cst.parse_expression(f"not ({code_of(test)})")
                assert statement.orelse is not None
                return [statement.with_changes(test=new, body=other, orelse=statement.orelse.with_changes(body=then))]
        return [statement]


@change("conditions inverted", programs=True)
def conditions_inverted(source: Source, rng: random.Random) -> cst.Module:
    """If not c: b else: a for if c: a else: b."""
    return source.module.visit(_Inverted(source))


class _Guards(Blocks):
    """A condition around all that is left of a loop's body or a function becomes an early end of it."""

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> cst.For:
        return updated_node.with_changes(body=self._early(updated_node.body, "continue"))

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.BaseStatement:
        super().leave_FunctionDef(original_node, updated_node)
        return updated_node.with_changes(body=self._early(updated_node.body, "return"))

    def _early(self, block: cst.BaseSuite, word: str) -> cst.BaseSuite:
        if not isinstance(block, cst.IndentedBlock):
            return block
        match block.body[-1]:
            case cst.If(test=test, orelse=None, body=cst.IndentedBlock(body=inner)) as last if "\n" not in code_of(
                test
            ):
                (guard,) = parsed(f"if not ({code_of(test)}):\n    {word}\n")
                guard = guard.with_changes(leading_lines=last.leading_lines)
                return block.with_changes(body=[*block.body[:-1], guard, *inner])
        return block

    def statement(self, statement: Statement) -> Iterable[Statement]:
        return [statement]


@change("early ends", programs=True)
def early_ends(source: Source, rng: random.Random) -> cst.Module:
    """If not c: continue and a for if c: a at the end of a loop, and return in functions."""
    return source.module.visit(_Guards(source))


class _Returns(Blocks):
    """What follows ``if c: return a`` goes under ``else``, or comes out of it."""

    def block(self, body: list[Statement]) -> Sequence[Statement]:
        for index, statement in enumerate(body):
            match statement:
                case cst.If(body=cst.IndentedBlock(body=[*_, last]), orelse=None) if body[index + 1 :]:
                    if isinstance(single(last), cst.Return) and self.functions:
                        other = cst.Else(cst.IndentedBlock(list(self.block(body[index + 1 :]))))
                        return [*body[:index], statement.with_changes(orelse=other)]
                case cst.If(
                    body=cst.IndentedBlock(body=[*_, last]), orelse=cst.Else(body=cst.IndentedBlock(body=inner))
                ) if isinstance(single(last), cst.Return):
                    return [*body[:index], statement.with_changes(orelse=None), *inner, *body[index + 1 :]]
        return body


@change("else behind return", programs=True)
def else_behind_return(source: Source, rng: random.Random) -> cst.Module:
    """If c: return a else: ... for if c: return a and ..., and the other way round."""
    return source.module.visit(_Returns(source))


class _Comprehensions(Blocks):
    def statement(self, statement: Statement) -> Iterable[Statement]:
        match single(statement):
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Name(value=name))],
                value=cst.ListComp(elt=element, for_in=cst.CompFor(inner_for_in=None, ifs=[]) as part),
            ) if not m.findall(part, m.Name(name)) and not m.findall(element, m.Name(name)):
                taken = _names(part.target)
                if any(len(m.findall(self.scope, m.Name(n))) > len(m.findall(statement, m.Name(n))) for n in taken):
                    return [statement]
                head = f"for {code_of(part.target)} in {code_of(part.iter)}:"
                first, loop = parsed(f"{name} = []\n{head}\n    {name}.append({code_of(element)})\n")
                return [first.with_changes(leading_lines=getattr(statement, "leading_lines", ())), loop]
        return [statement]


@change("comprehensions to loops", programs=True)
def comprehensions_to_loops(source: Source, rng: random.Random) -> cst.Module:
    """Xs = [], for y in ys: xs.append(f(y)) for xs = [f(y) for y in ys]."""
    return source.module.visit(_Comprehensions(source))
