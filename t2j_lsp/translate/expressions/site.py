"""The place of one call, as rule functions see it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, Sequence

from t2j_lsp.symbols import FunctionNode, scopes_around
from t2j_lsp.translate.rule.facts import Fact, FunctionInfo
from t2j_lsp.translate.rule.optimizer_plan import OptimizerPlan
from t2j_lsp.translate.rule.precedence import Piece

from .context import Context
from .needs import Needs
from .variables import Variables


class CallSite:
    """Implements ``rule.Site`` for one call node."""

    def __init__(self, context: Context, needs: Needs, variables: Variables, node: ast.expr, name: str) -> None:
        self.ctx = context
        self._needs = needs
        self._variables = variables
        self.node = node
        self.name = name

    @property
    def x64(self) -> bool:
        return self.ctx.options.x64

    @property
    def renames(self) -> Mapping[str, str]:
        return self._needs.renames

    def claim(self, names: frozenset[str]) -> None:
        """Use a template's free names here."""
        self._needs.claim(names, self.ctx)

    @property
    def statement(self) -> bool:
        current = self.ctx.scope.statement
        return current is not None and isinstance(current.node, ast.Expr) and current.node.value is self.node

    @property
    def unpacked(self) -> int:
        current = self.ctx.scope.statement
        if current is not None and isinstance(current.node, ast.Assign) and current.node.value is self.node:
            target = current.node.targets[0]
            if isinstance(target, ast.Tuple | ast.List) and len(current.node.targets) == 1:
                return len(target.elts)
        return 0

    @property
    def index(self) -> int | str | None:
        """The constant index or attribute read from the call's value (``x.max(1)[0]``, ``.values``), None otherwise."""
        parent = self.ctx.source.parents.get(self.node)
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
            return used_of_pair(parent.targets[0])
        if isinstance(parent, ast.Subscript) and parent.value is self.node:
            index = parent.slice
            if isinstance(index, ast.Constant) and isinstance(index.value, int):
                return index.value
        if isinstance(parent, ast.Attribute) and parent.value is self.node:
            return parent.attr
        return None

    @property
    def in_module(self) -> bool:
        """Whether the call stands in a method of an nn.Module."""
        return self.ctx.scope.class_info is not None and self.ctx.scope.class_info.is_module

    @property
    def optimizer(self) -> OptimizerPlan | None:
        """What the file does with the optimizer that this call makes."""
        return self.ctx.plan.optimizers.get(self.node)

    def fact(self, node: ast.expr) -> Fact:
        """What is known of any expression."""
        return self.ctx.fact(node)

    def note(self, reason: str) -> None:
        self.ctx.report.note(self.node, self.name, "note", reason)

    def fresh(self, hint: str) -> str:
        return self.ctx.names.fresh(hint)

    def hoist(self, piece: Piece, hint: str) -> Piece | None:
        current = self.ctx.scope.statement
        if current is None or not current.hoistable:
            return None
        name = self.ctx.names.fresh(hint)
        current.before.append(f"{name} = {piece.text}")
        return Piece(name)

    def rngs(self) -> str:
        return rngs_expression(self.ctx)

    def parameter(self, node: ast.expr, constant: bool = False) -> tuple[str, bool] | None:
        """The ``nnx.Variable`` that a node names, and whether it has Flax's layout; None if it is not one."""
        return self._variables.parameter(node, constant)


Sites = Callable[[ast.expr, str], CallSite]
"""Makes the site of a call, under the name that findings have."""


def used_of_pair(target: ast.expr) -> int | None:
    """Which of two names is used in ``_, indices = f(x)``; None if both are, or if it isn't such a pair."""
    if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
        return None
    ignored = [isinstance(e, ast.Name) and e.id == "_" for e in target.elts]
    return ignored.index(False) if sum(ignored) == 1 else None


TAKEN = "the name 'rngs' is taken here, and generators of random numbers go by it: call yours something else"


def rngs_expression(ctx: Context) -> str:
    """How to reach an ``nnx.Rngs`` from the current statement; a function that none reaches is noted down for it."""
    function = _function_around(ctx)
    if function is None:
        _check_free(ctx, ctx.source.symbols.module)
        if ctx.rngs.module is None and ctx.scope.statement is not None and not ctx.report.quiet:
            ctx.rngs.module = ctx.scope.statement.node
        return "rngs"
    owner = function.owner
    if owner is not None and owner.is_module and owner.keeps_rngs and not function.takes_rngs and not function.static:
        _check_free(ctx, [name for info in owner.ancestry() for name in info.attributes])
        first = function.node.args.posonlyargs + function.node.args.args
        return f"{first[0].arg}.rngs" if first else "self.rngs"
    has_own = function.makes_rngs or function.seeds and _is_seeded(ctx, function)
    if not function.takes_rngs and not has_own:
        ctx.rngs.drawing.add(function.node)
    _check_free(ctx, ctx.source.symbols.within(function.node))
    return "rngs"


def _function_around(ctx: Context) -> FunctionInfo | None:
    """The function whose ``rngs`` the current statement sees: a method, or the outermost function around it."""
    function = ctx.scope.function
    if function is None and ctx.scope.statement is not None:
        around = scopes_around(ctx.scope.statement.node, ctx.source.parents)
        nodes = (scope for scope in around if isinstance(scope, FunctionNode))
        function = next((ctx.inference.functions.get(node) for node in nodes), None)
    while function is not None and function.outer is not None and not function.seeds and function.owner is None:
        function = function.outer
    return function


def _check_free(ctx: Context, names: Collection[str]) -> None:
    """Report that the user calls something else ``rngs``; in a file with ``nnx`` an earlier conversion wrote it."""
    if "rngs" in names and "nnx" not in ctx.source.symbols.names and ctx.scope.statement is not None:
        ctx.report.gap(ctx.scope.statement.node, "rngs", "unsure", TAKEN)


def _is_seeded(ctx: Context, function: FunctionInfo) -> bool:
    """Whether a statement that sets the seed is always run before the current one."""
    node: ast.AST | None = ctx.scope.statement.node if ctx.scope.statement is not None else None
    while node is not None and node is not function.node:
        block = ctx.source.block_of(node) if isinstance(node, ast.stmt) else None
        if block is not None and _seeds(ctx, block[: block.index(node)]):  # type: ignore[arg-type]
            return True
        node = ctx.source.parents.get(node)
    return False


def _seeds(ctx: Context, block: Sequence[ast.stmt]) -> bool:
    """Whether statements set the seed, whichever way they are run through."""
    for node in block:
        match node:
            case ast.If() if _seeds(ctx, node.body) and _seeds(ctx, node.orelse):
                return True
            case ast.With() if _seeds(ctx, node.body):
                return True
            case ast.Expr() if node in ctx.rngs.seeds:
                return True
    return False
