"""Functions that a loss is computed with, and that read from outside what a compiled step has to be given.

What `nnx.jit` compiles keeps what its functions read from outside as it was in the first call: parameters that no
update reaches, a weight of the loss that never grows. ``def loss_of(x): return F.mse_loss(model(x), x)`` becomes
``def loss_of(model, x)``, and every call of it passes the model. A method of a class that isn't a module goes static; a
function that stands in another one moves to the module level, where the step is.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer, StatementRewriter
from t2j_lsp.translate.inference.call_sites import called_function
from t2j_lsp.translate.rule.definitions import Class, Function, FunctionInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import Fact, Object, Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.source.folding.uses import runs
from t2j_lsp.translate.training.program.flow import DataFlow
from t2j_lsp.translate.training.program.objects import Objects, VariableScope
from t2j_lsp.translate.training.program.once import only_fills
from t2j_lsp.translate.training.program.passed import Input, PassedOn, name_passed
from t2j_lsp.translate.training.program.step_calls import Refused
from t2j_lsp.translate.training.program.text import converted, lead_comments

from .host_values import is_numpy
from .inputs import Inputs
from .loss_calls import LossCalls
from .step import renamed

IS_GIVEN = "is given {} by its callers now; in other files that call it, pass it too"
_NO_GRADIENT = names_with(Trait.NO_GRADIENT)
_RANK = {"module": 0, "function": 1, "array": 2, "limit": 3, "static": 4, "optimizer": 5}


class Lifting:
    """Finds these functions, and plans what becomes of them and of their calls."""

    def __init__(self, context: Context, objects: Objects, insert: Callable[[ast.AST, list[str]], None]) -> None:
        self.ctx = context
        self.insert = insert
        self.loss_calls = LossCalls(context, objects)
        self.objects = objects
        self.passed: dict[ast.Call, PassedOn] = {}
        """What calls of such functions pass on."""
        self.lifted: set[ast.AST] = set()
        self.reasons: dict[ast.AST, str] = {}
        """Why a function that reads from outside what a step must be given can't be given it."""
        self._seen: set[ast.AST] = set()

    def plan(self) -> None:
        for info in [None, *self.ctx.inference.functions.values()]:
            if info is None or not info.external:
                for called in self.loss_calls.of(VariableScope(info)):
                    self._reach(called)

    def reason(self, scope: VariableScope) -> str | None:
        """Why a function on the way to a loss of a scope reads what the step can't give it."""
        return next((self.reasons[f.node] for f in self.loss_calls.of(scope) if f.node in self.reasons), None)

    # --- one function ---------------------------------------------------------------------------------------------

    def _reach(self, info: FunctionInfo) -> None:
        if info.node in self._seen:
            return
        self._seen.add(info.node)
        settled = info.node in self.ctx.inference.settled  # it was converted before, and stays as it is
        if settled or self._acts(info) or self._gives_pipeline(info):
            return
        called = list(self.loss_calls.called(info.node))
        for one in called:
            self._reach(one)
        try:
            self._lift(info, called)
        except Refused as problem:
            self.reasons[info.node] = str(problem)

    def _acts(self, info: FunctionInfo) -> bool:
        """Whether a method changes its object, which is no module, and reads none: no compiled step runs it."""
        if info.owner is None or info.owner.is_module or info.static or self.loss_calls.reads_module(info):
            return False
        flow = DataFlow(self.ctx.source.symbols, "self")
        return any(name.startswith("self.") for statement in info.node.body for name in flow.writes(statement))

    def _gives_pipeline(self, info: FunctionInfo) -> bool:
        """Whether all that a function gives stays PyTorch's, a loader: no compiled step runs it."""
        given = [n.value for n in symbols.walk(info.node) if isinstance(n, ast.Return) and n.value is not None]
        return bool(given) and all(self.ctx.plan.keeps(value, self.ctx.source.parents) for value in given)

    def leave(self, statement: ast.stmt, reason: str, planned: bool = True) -> None:
        """Have functions that code calls which stays PyTorch stay as they are, when the file is written again.

        ``planned``: what calls pass on is known. Where it isn't yet, none that the code calls is lifted.
        """
        for node in symbols.walk(statement):
            if (
                isinstance(node, ast.Call)
                and (node in self.passed or not planned)
                and isinstance(f := self.ctx.fact(node.func), Function)
            ):
                self.ctx.plan.left.setdefault(f.info.node, reason)

    def _lift(self, info: FunctionInfo, called: list[FunctionInfo]) -> None:
        """Plan the parameters of a function, and what its calls pass. Raises Refused."""
        for one in called:
            if one.node in self.reasons:
                raise Refused(self.reasons[one.node])
        if info.node in self.ctx.plan.left:
            raise Refused(self.ctx.plan.left[info.node])
        bound = info.owner is not None and not info.static
        flow = DataFlow(self.ctx.source.symbols, "self" if bound else self._self_name(info), self.passed)
        self._check_changes(info, flow)
        inputs = self._inputs(info, flow)
        if not inputs and not bound and info.outer is None:
            return
        if any(one is info for one in called):
            raise Refused(f"{info.name} reads variables from outside, and calls itself.")
        self._check(info, flow, inputs)
        calls = {call: self._texts(call, info, inputs) for call in self._calls(info)}
        front = self._ends(info, inputs, calls)
        self.passed |= {call: PassedOn(inputs, texts, front) for call, texts in calls.items()}
        self.lifted.add(info.node)
        renamed(inputs, [info.node], self.ctx)
        name_passed([info.node], self.passed, inputs)
        self.ctx.plan.parameters[info.node] = (
            [one.name for one in inputs[:front]],
            [one.name for one in inputs[front:]],
        )
        for call in calls:
            self.ctx.plan.on_expression(call, lambda renderer, call=call: self._write(call, info, renderer))  # type: ignore[misc]
        if inputs and info.outer is None and not info.name.startswith("_") and not runs(self.ctx.source.tree):
            given = ", ".join(one.text for one in inputs)
            self.ctx.report.note(info.node, info.name, "note", f"{info.name} {IS_GIVEN.format(given)}")
        if info.outer is not None:
            self.ctx.plan.on_statement(info.node, lambda statements: self._move(info, statements))

    def _self_name(self, info: FunctionInfo) -> str | None:
        """``self``, where a function stands in a method of a class that isn't a module."""
        owner = self.objects.owner(VariableScope(info))
        return None if owner is None or owner.is_module else "self"

    def _inputs(self, info: FunctionInfo, flow: DataFlow) -> list[Input]:
        """What a function reads from outside and has to be given. Raises Refused."""
        try:
            by_text = _Outside(self.ctx, flow, VariableScope(info.outer), self.objects).of([info.node], ())
        except Refused as problem:
            raise Refused(f"In {info.name}, {problem}") from problem
        return sorted(by_text.values(), key=lambda one: (_RANK[one.kind], self._first(one.text)))

    def _first(self, text: str) -> int:
        """The line in which a variable first gets a value."""
        named = (n for n in self.ctx.source.nodes if isinstance(n, ast.Name | ast.Attribute) and not _is_load(n))
        return min((n.lineno for n in named if ast.unparse(n) == text), default=0)

    def _ends(self, info: FunctionInfo, inputs: list[Input], calls: Iterable[ast.Call]) -> int:
        """How many of the parameters come in front: modules, where the others can come behind the function's own."""
        arguments = info.node.args
        own = len(symbols.positional_parameters(info.node)) - (info.owner is not None and not info.static)
        plain = not (arguments.vararg or arguments.kwonlyargs or arguments.kwarg or arguments.defaults)
        for call in calls:
            starred = any(isinstance(a, ast.Starred) for a in call.args)
            plain = plain and not starred and not call.keywords and len(call.args) == own
        if not plain or not own or info.takes_rngs:
            return len(inputs)
        return sum(one.kind == "module" for one in inputs)

    def _check_changes(self, info: FunctionInfo, flow: DataFlow) -> None:
        """Raises Refused if a function changes what is outside of it: a compiled one does so in its first call only."""
        written = {n for s in info.node.body for n in flow.writes(s)} - self.ctx.source.symbols.bound(info.node)
        changed = {n for n in written if not isinstance(self.ctx.inference.env.get(n), Qual)}
        changed -= {n for n in changed if only_fills(self.ctx.inference, flow, info, n)}
        if changed:
            raise Refused(f"{info.name} changes {', '.join(sorted(changed))}, which is outside of it.")

    def _check(self, info: FunctionInfo, flow: DataFlow, inputs: list[Input]) -> None:
        """Raises Refused if a function can't get what it reads as parameters."""
        node, source = info.node, self.ctx.source
        read = ", ".join(one.text for one in inputs) or "self"
        names = [one.name for one in inputs]
        own = source.symbols.bound(node)
        if isinstance(node, ast.AsyncFunctionDef) or any(
            isinstance(n, ast.Yield | ast.YieldFrom) for n in symbols.walk(node)
        ):
            raise Refused(f"{info.name} reads {read} from outside, and is no plain function.")
        if set(names) & own or len(set(names)) < len(names) or not source.starts_line(node.body[0]):
            raise Refused(f"{info.name} reads {read} from outside, and uses these names itself.")
        if info.owner is not None:
            self._check_method(info)
        if info.outer is not None:
            self._check_nested(info, inputs)

    def _check_method(self, info: FunctionInfo) -> None:
        """Raises Refused unless a method uses ``self`` for its attributes alone, and no other class has its name."""
        owner, node = info.owner, info.node
        assert owner is not None
        reason = f"{owner.name}.{info.name} reads self, which can't be passed to a compiled function"
        if info.static:
            if any(ast.unparse(d) != "staticmethod" for d in self._decorators(node)):
                raise Refused(f"{reason}.")
            return
        first = symbols.positional_parameters(node)[:1]
        if self._decorators(node) or not first or first[0].arg != "self" or owner.node not in self.ctx.source.tree.body:
            raise Refused(f"{reason}.")
        others = [c for c in self.ctx.inference.classes.values() if c is not owner and info.name in c.methods]
        if any(owner in c.ancestry() or c in owner.ancestry() for c in others) or owner.has_generator:
            raise Refused(f"{reason}: another class has a method of this name.")
        for inner in symbols.walk(node):
            if isinstance(inner, ast.Name) and inner.id == "self":
                parent = self.ctx.source.parents.get(inner)
                if not isinstance(parent, ast.Attribute) or not isinstance(parent.ctx, ast.Load):
                    raise Refused(f"{reason}.")

    def _decorators(self, node: symbols.FunctionNode) -> list[ast.expr]:
        """What decorates a function, but for what says that it takes no gradients: its values are cut off instead."""
        facts = ((d, self.ctx.fact(symbols.called_decorator(d))) for d in node.decorator_list)
        return [d for d, fact in facts if not (isinstance(fact, Qual) and fact.name in _NO_GRADIENT)]

    def _check_nested(self, info: FunctionInfo, inputs: list[Input]) -> None:
        """Raises Refused unless a function that stands in another one can move to the module level."""
        node, source = info.node, self.ctx.source
        local = set[str]()
        for outer in VariableScope(info.outer).functions:
            local |= source.symbols.bound(outer.node)
        reason = f"{info.name} stands in another function"
        taken = info.name in self.ctx.inference.env or any(
            getattr(f, "name", "") == info.name for f in self.lifted if f is not node
        )
        stores = [n for n in source.nodes if isinstance(n, ast.Name) and n.id == info.name and not _is_load(n)]
        if taken or stores or node.decorator_list or info.builds or info.draws:
            raise Refused(f"{reason}, and can't move to the module level.")
        given = {text for one in inputs for text in (one.text, one.name)}
        lifted = {getattr(f, "name", "") for f in self.lifted}
        for name in DataFlow(source.symbols).reads(node):
            if name in local and name not in given and name not in lifted and not self._is_passed(name, inputs):
                raise Refused(f"{reason}, whose {name} it uses.")

    def _is_passed(self, name: str, inputs: list[Input]) -> bool:
        """Whether all that is read of a variable is among what is passed: ``args.beta`` of ``args``."""
        return any(one.text.partition(".")[0] == name for one in inputs)

    # --- its calls ------------------------------------------------------------------------------------------------

    def _calls(self, info: FunctionInfo) -> list[ast.Call]:
        """All calls of a function. Raises Refused if it is used otherwise."""
        calls = []
        block = self.ctx.source.block_of(info.node)
        for other in self.ctx.inference.functions.values():
            same = other.name == info.name and other.outer is info.outer and other.owner is None is info.owner
            if same and self.ctx.source.block_of(other.node) is not block:
                raise Refused(f"{info.name} reads variables from outside, and which one is called depends.")
        for node in self.ctx.source.nodes:
            match node:
                case ast.Name(id=name) if name == info.name and info.owner is None and _is_load(node):
                    if called_function(self.ctx.fact(node)) is not info:
                        continue
                case ast.Attribute(attr=name) if name == info.name and info.owner is not None:
                    if not self._may_be(node, info):
                        continue
                case _:
                    continue
            parent = self.ctx.source.parents.get(node)
            if not isinstance(parent, ast.Call) or parent.func is not node or _is_generator(parent):
                raise Refused(f"{info.name} reads variables from outside, and is used as a value.")
            calls.append(parent)
        return calls

    def _may_be(self, node: ast.Attribute, info: FunctionInfo) -> bool:
        """Whether an attribute is this method. Raises Refused if that can't be told."""
        fact, owner = self.ctx.fact(node), self.ctx.fact(node.value)
        if isinstance(fact, Function) and fact.info is info:
            return True
        if isinstance(fact, Function) or _is_known(owner):
            return False
        raise Refused(f"Can't tell whether {ast.unparse(node)} is {info.owner and info.owner.name}.{info.name}.")

    def _texts(self, call: ast.Call, info: FunctionInfo, inputs: list[Input]) -> dict[str, str]:
        """What a call names what it passes. Raises Refused if it doesn't see it."""
        out: dict[str, str] = {}
        scope = self.objects.scope(call)
        for one in inputs:
            base = one.text.partition(".")[0]
            if base == "self" and info.owner is not None and isinstance(call.func, ast.Attribute):
                receiver: ast.expr = call.func.value
                while isinstance(receiver, ast.Attribute):
                    receiver = receiver.value
                if not isinstance(receiver, ast.Name) or isinstance(self.ctx.fact(call.func.value), Class):
                    raise Refused(f"{ast.unparse(call.func)} is called on what has no name.")
                out[one.text] = ast.unparse(call.func.value) + one.text.removeprefix("self")
                continue
            if self.objects.home(base, scope) != self.objects.home(base, VariableScope(info.outer)):
                raise Refused(f"{info.name} reads {base} from outside, which is something else where it is called.")
            out[one.text] = one.text
        return out

    # --- writing --------------------------------------------------------------------------------------------------

    def _write(self, call: ast.Call, info: FunctionInfo, renderer: ExpressionRenderer) -> Piece:
        """The call with what it passes on in front of its own arguments."""
        passed = self.passed[call]
        if passed.moved and info.owner is not None and isinstance(call.func, ast.Attribute):
            renderer.put(call.func, Piece(f"{info.owner.name}.{info.name}"))
        head, piece = renderer.render(call.func).text, renderer.usual(call)
        at = piece.text.index("(", len(head)) + 1
        rest = piece.text[at:].lstrip()
        space = piece.text[at : len(piece.text) - len(rest)]
        between = f",{space}" if "\n" in space else ", "
        given = passed.given()
        front, behind = between.join(given[: passed.front]), between.join(given[passed.front :])
        if front and not rest.startswith(")"):
            front += between
        if behind:
            inside = rest[:-1].rstrip().rstrip(",")
            rest = f"{inside}{between}{behind}{rest[len(rest[:-1].rstrip()) :]}"
        return Piece(f"{piece.text[:at]}{space}{front}{rest}", piece.precedence)

    def _move(self, info: FunctionInfo, statements: StatementRewriter) -> None:
        """The function goes to the module level, in front of the one that it stands in."""
        node, source = info.node, self.ctx.source
        above = lead_comments(source, node)
        self.ctx.edits.placed_comments.update(above)
        self.ctx.edits.placed_comments.update(source.comments_between(*source.span(node)))
        lines = [*above, *converted(self.ctx, statements, node)]
        self.insert(node, lines)
        self.ctx.edits.delete(node, above=len(above))


class _Outside(Inputs):
    """What a function reads from outside of it, as a whole: there is no place to make anything of it."""

    def _made(self, node: ast.expr, exposed: set[str]) -> None:
        """Nothing: the function makes it itself."""

    def _pass_positions(self, inputs: dict[str, Input], parts: Sequence[ast.AST]) -> None:
        """A function that selects by masks is called by steps alone that aren't compiled."""

    def _stays_global(self, variable: str, fact: Fact) -> bool:
        """An array of the module level that stays the same may be compiled in."""
        if isinstance(fact, Function) and fact.info.outer is not None:
            return True
        if (isinstance(fact, Tensor) or is_numpy(fact)) and "." not in variable and variable not in self.local:
            still = self.constant(variable) and not self._is_written(variable)
            return still and variable not in self.objects.trained.leaves
        return super()._stays_global(variable, fact)

    def _is_written(self, name: str) -> bool:
        """Whether something writes into an array of the module level."""
        for node in self.ctx.source.nodes:
            match node:
                case ast.Subscript(value=ast.Name(id=written), ctx=ast.Store()) if written == name:
                    return True
                case ast.Call(func=ast.Attribute(value=ast.Name(id=written), attr=attr)) if written == name:
                    if attr.endswith("_"):
                        return True
        return False


def _is_load(node: ast.expr) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Load)


def _is_known(fact: Fact) -> bool:
    """Whether it is known what methods a value has: also of what a library's constructor made, no guess by its name."""
    made = isinstance(fact, Object) and bool(fact.name)
    return made or isinstance(fact, Instance | Class | Tensor) or is_module(fact)


def _is_generator(call: ast.Call) -> bool:
    return len(call.args) == 1 and isinstance(call.args[0], ast.GeneratorExp)
