"""Calls that are statements: those that go, and those that set a seed."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.alike_branches import DEVICE_TESTS
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.expressions.rngs import seeded_generator
from t2j_lsp.translate.expressions.scope import CurrentStatement
from t2j_lsp.translate.inference.call_sites import bound_arguments, defaults
from t2j_lsp.translate.inference.rngs import draws_from_module, start_of_rngs
from t2j_lsp.translate.inference.unit_tests import seeds_all
from t2j_lsp.translate.rule.binding import argument
from t2j_lsp.translate.rule.definitions import Function, FunctionInfo
from t2j_lsp.translate.rule.facts import Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.record import REGISTRY

SEEDS = names_with(Trait.SEED)
_OF_MODULE = "Seeds the generator of this module: those of its parts go on from where they are."
_NOT_REACHED = "functions that draw from the rngs of the module level don't see a seed of those that are passed here"


def _is_about_memory(call: ast.Call) -> bool:
    """Whether a call says where the parameters of a recurrent layer lie, which nothing else has a method for."""
    return isinstance(call.func, ast.Attribute) and call.func.attr == "flatten_parameters" and not call.args


def _writes(func: ast.expr) -> bool:
    """Whether what is called says by its name that it writes into what it is given."""
    name = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
    return name.endswith("_") and not name.endswith("__")


class Effects:
    """Calls for their effect."""

    def __init__(self, context: Context, renderer: ExpressionRenderer) -> None:
        self.ctx = context
        self.renderer = renderer

    def dropped(self, node: ast.Expr) -> bool:
        """``torch.backends...(True)`` and ``rnn.flatten_parameters()``: a call that goes."""
        if isinstance(node.value, ast.Call) and _is_about_memory(node.value):
            self.ctx.edits.delete(node)
            self.ctx.report.count_converted()
            return True
        fact = self.ctx.fact(node.value.func) if isinstance(node.value, ast.Call) else None
        rule = REGISTRY.get(fact.name) if isinstance(fact, Qual) else None
        if rule is None or not rule.drop:
            return False
        self.ctx.edits.delete(node)
        self.ctx.report.count_converted()
        return True

    def chosen(self, node: ast.Expr) -> bool:
        """``normal_(w) if big else zeros_(w)``, for what it does: a statement for each of the two."""
        if not isinstance(node.value, ast.IfExp) or not self.ctx.source.starts_line(node):
            return False
        if not all(isinstance(one, ast.Call) and _writes(one.func) for one in (node.value.body, node.value.orelse)):
            return False
        if any(isinstance(self.ctx.fact(part), Tensor) for part in symbols.walk(node.value.test)):
            return False
        test = self.renderer.render(node.value.test).text
        body, otherwise = (self._as_statement(one) for one in (node.value.body, node.value.orelse))
        if body == ast.unparse(node.value.body) and otherwise == ast.unparse(node.value.orelse):
            return False  # It is not PyTorch's.
        indent, newline = self.ctx.edits.indent(node.lineno), self.ctx.source.newline
        lines = [f"if {test}:", f"    {body}", "else:", f"    {otherwise}"]
        self.ctx.edits.replace(node, f"{newline}{indent}".join(lines))
        return True

    def _as_statement(self, node: ast.expr) -> str:
        """The line that an expression is as a statement of its own."""
        around = self.ctx.scope.statement
        alone = ast.copy_location(ast.Expr(node), node)
        self.ctx.scope.statement = CurrentStatement(alone, hoistable=False)
        try:
            return self.renderer.usual(node).text
        finally:
            self.ctx.scope.statement = around

    def seed(self, node: ast.Expr) -> bool:
        """``torch.manual_seed(0)`` becomes the seed of the Rngs that the code after it uses."""
        call = node.value
        fact = self.ctx.fact(call.func) if isinstance(call, ast.Call) else None
        given = argument(call, 0, "seed") if isinstance(call, ast.Call) else None
        if given is None or not isinstance(fact, Qual) or fact.name not in SEEDS:
            return False
        assert isinstance(call, ast.Call)
        seed = self.renderer.render(given).text
        function = self.ctx.scope.function
        self.ctx.report.count_converted()
        if function is not None and (function.is_seeder or seeds_all(function, self.ctx.inference)):
            self.ctx.edits.delete(node)
            return True
        generator = f"{self.renderer.need('nnx')}.Rngs({seed})"
        if node in self.ctx.plan.seeds_torch:
            self.ctx.edits.insert_before(node, [self.ctx.source.segment(node)])
        if (kept := seeded_generator(self.ctx)) is not None:
            self.ctx.report.note(node, fact.name, "note", _OF_MODULE)
            self.ctx.edits.replace(call, f"{kept} = {generator}")
            return True
        self.ctx.edits.replace(call, start_of_rngs(function, generator) if function else f"rngs = {generator}")
        self.ctx.rngs.seeds[node] = "rngs"
        if not self._seeds_the_module(node, function):
            self.ctx.edits.removable[node] = "rngs"
        return True

    def _seeds_the_module(self, node: ast.stmt, function: FunctionInfo | None) -> bool:
        """Whether a seed in a function is that of functions that draw from the ``rngs`` of the module level, too."""
        if function is None or function.called_by or not draws_from_module(self.ctx.inference):
            return False
        if function.takes_rngs:
            self.ctx.report.gap(node, "rngs", "unsure", _NOT_REACHED)
        return True

    def seeded_by_function(self, node: ast.Expr) -> bool:
        """``set_seed(args.seed)``, a function that seeds all generators: the Rngs behind it has the same seed."""
        call = node.value
        fact = self.ctx.fact(call.func) if isinstance(call, ast.Call) else None
        if not isinstance(call, ast.Call) or not isinstance(fact, Function) or not fact.info.is_seeder:
            return False
        given = {parameter.arg: value for parameter, value in defaults(fact.info)}
        given |= {parameter.arg: value for parameter, value in bound_arguments(call, fact.info)}
        seed = given.get(fact.info.seeds_with)
        if seed is None or not self.ctx.source.starts_line(node) or not self.ctx.inference.draws:
            return False
        if seed in symbols.walk(call):
            text = self.renderer.render(seed).text
        else:  # a name means something else here than where the function is defined
            text = "0" if fact.info.external and not isinstance(seed, ast.Constant) else ast.unparse(seed)
        generator = f"{self.renderer.need('nnx')}.Rngs({text})"
        function = self.ctx.scope.function
        line = start_of_rngs(function, generator) if function else f"rngs = {generator}"
        self.ctx.rngs.seeds[node] = "rngs"
        block = self.ctx.source.block_of(node) or [node]
        if [self.ctx.source.segment(one) for one in block[block.index(node) + 1 :][:1]] == [line]:
            return False  # A conversion that is converted once more has it.
        written = self.ctx.edits.insert_after(node, [line])
        if not self._seeds_the_module(node, function):
            self.ctx.edits.removable_lines[written] = "rngs"
        return False  # The call stays, and is rendered as any other.

    def dropped_condition(self, node: ast.If) -> bool:
        """``if torch.cuda.is_available(): torch.cuda.manual_seed_all(0)``: a condition with nothing left in it."""
        asked = [n for n in symbols.walk(node.test) if isinstance(n, ast.Call)]
        if node.orelse or not asked or not all(self._is_of_device(call) for call in asked):
            return False
        if not all(map(self._goes, node.body)):
            return False
        self.ctx.edits.delete(node)
        self.ctx.report.count_converted(len(node.body))
        return True

    def _goes(self, node: ast.stmt) -> bool:
        """Whether a statement is one that goes: ``torch.cuda.manual_seed_all(0)``, ``cudnn.benchmark = True``."""
        match node:
            case ast.Expr(value=ast.Call(func=func)):
                fact, last = self.ctx.fact(func), ""
            case ast.Assign(targets=[ast.Attribute(value=owner, attr=attr)]):
                fact, last = self.ctx.fact(owner), f".{attr}"
            case _:
                return False
        rule = REGISTRY.get(f"{fact.name}{last}") if isinstance(fact, Qual) else None
        return rule is not None and bool(rule.drop)

    def _is_of_device(self, call: ast.Call) -> bool:
        """Whether a call asks what devices there are."""
        fact = self.ctx.fact(call.func)
        return isinstance(fact, Qual) and fact.name in DEVICE_TESTS
