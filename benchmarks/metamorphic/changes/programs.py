"""Code of programs moved into functions."""

from __future__ import annotations

import ast
import random
from collections import Counter
from collections.abc import Iterable

import libcst as cst
import libcst.matchers as m

from benchmarks.metamorphic.blocks import (
    Blocks,
    Statement,
    Uses,
    bound_in,
    code_of,
    exposed,
    is_run,
    line,
    parsed,
    read_by_definitions,
    single,
    tail,
    variables,
)
from benchmarks.metamorphic.change import change
from benchmarks.metamorphic.source import Source

SPACE = [cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)]
_BACKWARD = m.Call(func=m.Attribute(attr=m.Name("backward")))
_JUMPS = m.Return() | m.Yield() | m.Global() | m.Nonlocal() | m.Await()


class Extracting(Blocks):
    """Base of transforms that move code into functions in front of the statement of the module that has it."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.new: list[Statement] = []
        self.globals = read_by_definitions(source)

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        body: list[Statement] = []
        for statement in updated_node.body:
            assert isinstance(statement, cst.BaseStatement)
            body += self.statement(statement)
        place = tail(body)
        if place == len(body):
            place = max((i for i, s in enumerate(body) if is_run(s)), default=0)
        made = m.OneOf(*(m.Name(s.name.value) for s in self.new if isinstance(s, cst.FunctionDef)), m.Name(""))
        calling = (i for i, s in enumerate(body) if is_run(s) and m.findall(s, made))
        place = min(place, next(calling, place))
        new = [s.with_changes(leading_lines=SPACE) for s in self.new]
        after = body[place:]
        if new and after:
            lines = getattr(after[0], "leading_lines", ())
            after[0] = after[0].with_changes(leading_lines=[*SPACE, *lines])
        return updated_node.with_changes(body=[*body[:place], *new, *after])

    def given(self, uses: Uses) -> list[str]:
        """What a piece reads that its functions bind, or the module's variables at its level."""
        own = self.own
        return [name for name in uses.read if name in own]

    @property
    def own(self) -> set[str]:
        """What a function at the module's level has to be given: variables, and what is defined in functions."""
        if not self.functions:
            return variables(self.scope)
        return set().union(*map(bound_in, self.functions))

    def function(self, stem: str, parameters: list[str], body: str) -> str | None:
        """The name of a new function, which goes in front; None where it can't stand there."""
        if "super" in body or "self" in parameters and any("__" in p for p in parameters):
            return None
        name = self.fresh(stem)
        inside = "\n".join(f"    {row}" if row else row for row in body.rstrip().splitlines())
        self.new += parsed(f"def {name}({', '.join(parameters)}):\n{inside}\n")
        return name

    def expression(self, stem: str, value: cst.BaseExpression) -> cst.BaseExpression | None:
        """A call of a new function that returns what an expression gives."""
        code = code_of(value)
        if m.findall(value, m.NamedExpr() | m.Await() | m.Yield() | m.Lambda()) or "\n" in code:
            return None
        parameters = self.given(Uses(code))
        name = self.function(stem, parameters, f"return {code}")
        return None if name is None else cst.parse_expression(f"{name}({', '.join(parameters)})")

    def piece(self, stem: str, statements: list[Statement]) -> list[Statement] | None:
        """A call of a new function that does what statements do."""
        code = cst.Module(statements).code
        inner = m.FunctionDef() | m.ClassDef() | m.Lambda()
        if any(m.findall(s, _JUMPS | inner) for s in statements) or _jumps_out(code):
            return None
        uses = Uses(code)
        own = self.own
        parameters = [name for name in exposed(ast.parse(code).body, set()) if name in own]
        if not self.functions and set(uses.stored) & self.globals:
            return None
        whole = code_of(self.scope) if self.functions else self.source.text
        if isinstance(self.scope, cst.FunctionDef) and m.findall(self.scope, m.Global() | m.Nonlocal()):
            return None
        inside, everywhere = _count(code), _count(whole)
        results = [n for n in uses.stored if everywhere[n] > inside[n]]
        back = f"\nreturn {', '.join(results)}" if results else ""
        name = self.function(stem, parameters, code.rstrip() + back)
        if name is None:
            return None
        left = f"{', '.join(results)} = " if results else ""
        return parsed(f"{left}{name}({', '.join(parameters)})\n")


def _count(code: str) -> Counter[str]:
    return Counter(node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name))


def _jumps_out(code: str) -> bool:
    """Whether statements break or continue a loop around them."""
    try:
        compile(code, "<piece>", "exec")
    except SyntaxError:
        return True
    return False


class _Backward(Extracting):
    def statement(self, statement: Statement) -> Iterable[Statement]:
        small = single(statement)
        match small:
            case cst.Expr(
                value=cst.Call(func=cst.Attribute(value=cst.Name(value=loss), attr=cst.Name(value="backward")), args=[])
            ):
                if not self.new:
                    self.function("run_backward", [loss], f"{loss}.backward()")
                return [line(cst.Expr(cst.parse_expression(f"run_backward({loss})")), statement)]
        return [statement]


@change("backward in a function", programs=True)
def backward_in_a_function(source: Source, rng: random.Random) -> cst.Module:
    """run_backward(loss) for loss.backward()."""
    return source.module.visit(_Backward(source))


class _Update(Extracting):
    """``zero_grad``, ``backward`` and ``step`` that follow each other go into one function."""

    def block(self, body: list[Statement]) -> list[Statement]:
        wanted = ("zero_grad", "backward", "step")
        for index in range(len(body) - 1):
            count = 0
            while index + count < len(body) and any(_calls(body[index + count], w) for w in wanted):
                count += 1
            piece = body[index : index + count]
            if count >= 2 and any(_calls(s, "backward") for s in piece):
                made = self.piece("update", piece)
                return body if made is None else [*body[:index], *made, *body[index + count :]]
        return body

    def statement(self, statement: Statement) -> Iterable[Statement]:
        return [statement]


def _calls(statement: cst.CSTNode, method: str) -> bool:
    return m.matches(statement, m.SimpleStatementLine([m.Expr(m.Call(func=m.Attribute(attr=m.Name(method))))]))


@change("the update in a function", programs=True)
def update_in_a_function(source: Source, rng: random.Random) -> cst.Module:
    """update(optimizer, loss) for optimizer.zero_grad(), loss.backward() and optimizer.step()."""
    return source.module.visit(_Update(source))


class _Step(Extracting):
    """The body of an innermost loop with a backward pass."""

    def statement(self, statement: Statement) -> Iterable[Statement]:
        if isinstance(statement, cst.For | cst.While) and isinstance(statement.body, cst.IndentedBlock):
            inner = m.findall(statement.body, m.For() | m.While())
            if not inner and m.findall(statement.body, _BACKWARD):
                made = self.piece("train_batch", list(statement.body.body))
                if made is not None:
                    return [statement.with_changes(body=statement.body.with_changes(body=made))]
        return [statement]


@change("the step in a function", programs=True)
def step_in_a_function(source: Source, rng: random.Random) -> cst.Module:
    """Loss = train_batch(model, optimizer, x, y) for the body of the training loop."""
    return source.module.visit(_Step(source))


class _Epoch(Extracting):
    """An innermost loop with a backward pass."""

    def statement(self, statement: Statement) -> Iterable[Statement]:
        if isinstance(statement, cst.For | cst.While) and m.findall(statement, _BACKWARD):
            if not m.findall(statement.body, m.For() | m.While()):
                made = self.piece("train_epoch", [statement])
                if made is not None:
                    return made
        return [statement]


@change("the training loop in a function", programs=True)
def epoch_in_a_function(source: Source, rng: random.Random) -> cst.Module:
    """Total = train_epoch(model, loader, optimizer, total) for the innermost training loop."""
    return source.module.visit(_Epoch(source))


class _Evaluation(Extracting):
    def statement(self, statement: Statement) -> Iterable[Statement]:
        if isinstance(statement, cst.With) and "no_grad" in code_of(statement.items[0].item):
            made = self.piece("evaluate", [statement])
            if made is not None:
                return made
        return [statement]


@change("the evaluation in a function", programs=True)
def evaluation_in_a_function(source: Source, rng: random.Random) -> cst.Module:
    """Accuracy = evaluate(model, x, y) for a block without gradients."""
    return source.module.visit(_Evaluation(source))


class _Values(Extracting):
    """Right sides of assignments to one name that go into functions."""

    def __init__(self, source: Source, stem: str) -> None:
        super().__init__(source)
        self.stem = stem
        self.losses = {
            node.func.value.id
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "backward"
            and isinstance(node.func.value, ast.Name)
        }

    def statement(self, statement: Statement) -> Iterable[Statement]:
        match single(statement):
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)], value=value) if self.wanted(
                name.value, value
            ):
                if (new := self.expression(self.stem, value)) is not None:
                    return [line(cst.Assign([cst.AssignTarget(name)], new), statement)]
        return [statement]

    def wanted(self, name: str, value: cst.BaseExpression) -> bool:
        """Whether a value goes into a function."""
        full = (self.source.dotted(value.func) if isinstance(value, cst.Call) else None) or ""
        if self.stem == "make_optimizer":
            return full.startswith("torch.optim.")
        if self.stem == "compute_loss":
            return name in self.losses and isinstance(value, cst.Call | cst.BinaryOperation)
        own = isinstance(value, cst.Call) and isinstance(value.func, cst.Name) and value.func.value
        return own in self.source.classes and self.source.is_module_class(self.source.classes[str(own)])


@change("the optimizer from a function", programs=True)
def optimizer_from_a_function(source: Source, rng: random.Random) -> cst.Module:
    """Optimizer = make_optimizer(model) for optimizer = torch.optim.Adam(model.parameters())."""
    return source.module.visit(_Values(source, "make_optimizer"))


@change("the loss from a function", programs=True)
def loss_from_a_function(source: Source, rng: random.Random) -> cst.Module:
    """Loss = compute_loss(model, x, y) for loss = criterion(model(x), y)."""
    return source.module.visit(_Values(source, "compute_loss"))


@change("the model from a function", programs=True)
def model_from_a_function(source: Source, rng: random.Random) -> cst.Module:
    """Model = build_model(width) for model = Net(width)."""
    return source.module.visit(_Values(source, "build_model"))
