"""Loops of a loss over what an episode kept: a term for each step, which one function gives for all of them at once."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.definitions import Class, Function
from t2j_lsp.translate.rule.facts import Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.source.positions import header_end
from t2j_lsp.translate.source.text import Source
from t2j_lsp.translate.training.program.step_calls import Reader
from t2j_lsp.translate.training.program.text import replaced
from t2j_lsp.translate.training.steps.jittable import Jittable

from .episode_parts import RecordedEpisode, called_attribute, reads, stores


def spans(source: Source, nodes: Iterable[tuple[ast.AST, str]]) -> dict[tuple[int, int], str]:
    """What stands in the places of some nodes, by their ranges."""
    return {source.span(node): text for node, text in nodes}


def lines_of(source: Source, *lines: str) -> str:
    """Some lines as text."""
    return "".join(f"{line}{source.newline}" for line in lines)


def is_alias(node: ast.stmt, plain: Mapping[ast.AST, str]) -> bool:
    """``saved_actions = model.saved_actions``."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return plain.get(value) == name
    return False


class Loops:
    """Loops over kept values that collect a term for each: one function of a step, over all of them at once."""

    def __init__(self, context: Context, episode: RecordedEpisode, plain: Mapping[ast.AST, str]) -> None:
        self.ctx, self.source, self.episode, self.plain = context, context.source, episode, plain
        self.loops: list[ast.For] = []
        self.gone: list[ast.stmt] = []
        """``policy_losses = []``."""
        self.nodes: set[ast.AST] = set()
        self.instead: dict[tuple[int, int], str] = {}
        self.collected: dict[ast.stmt, list[tuple[str, ast.expr]]] = {}
        uses = {use for kept in self.episode.recorded for use in kept.uses}
        names = {kept.name for kept in self.episode.recorded}
        loops = [s for s in self.episode.block if isinstance(s, ast.For)]
        for loop in loops if len([s for s in loops if self._goes_over(s, uses, names)]) == 1 else ():
            if self._goes_over(loop, uses, names):
                self._vectorize(loop)
        inside = {
            n
            for s in (*self.loops, *self.episode.block)
            if s in self.loops or is_alias(s, plain)
            for n in symbols.walk(s)
        }
        self.open = any(
            n not in inside and (n in uses or isinstance(n, ast.Name) and n.id in names)
            for s in self.episode.block
            for n in symbols.walk(s)
        )
        """Whether kept values are used elsewhere in the block."""

    def _goes_over(self, loop: ast.For, uses: set[ast.expr], names: set[str]) -> bool:
        return any(n in uses or isinstance(n, ast.Name) and n.id in names for n in symbols.walk(loop.iter))

    def _vectorize(self, loop: ast.For) -> None:
        match loop:
            case ast.For(
                target=ast.Tuple(elts=targets),
                iter=ast.Call(func=ast.Name(id="zip"), args=args, keywords=[]),
                orelse=[],
                body=body,
            ) if len(targets) == len(args):
                pass
            case _:
                return
        kept = {kept.name for kept in self.episode.recorded}
        for target, given in zip(targets, args, strict=True):
            is_kept = self.plain.get(given) in kept or isinstance(given, ast.Name) and given.id in kept
            if not is_kept and not isinstance(self.ctx.fact(given), Tensor):
                return
            if not is_kept and not isinstance(target, ast.Name):
                return
        collected: list[tuple[str, ast.expr]] = []
        for statement in body:
            match statement:
                case ast.Expr(
                    value=ast.Call(
                        func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value], keywords=[]
                    )
                ):
                    collected.append((name, value))
                case ast.Assign(targets=[ast.Name()]) if not collected:
                    pass
                case _:
                    return
        lists = [name for name, _ in collected]
        made = [s for s in self.episode.block if self._makes_list(s, lists)]
        if not lists or len(set(lists)) < len(lists) or len(made) != len(lists):
            return
        block = {n for s in self.episode.block for n in symbols.walk(s)} - set(symbols.walk(loop))
        for name in lists:
            uses = [n for n in block if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
            joined = [self._joined(n) for n in uses if n.lineno > (loop.end_lineno or 0)]
            first = next(
                (n for n in block if isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load)), None
            )
            if len(joined) != 1 or len(uses) != 1 or joined[0] is None or first is None:
                return
            self.instead[self.source.span(joined[0])] = name
        self.loops.append(loop)
        self.gone += made
        self.nodes |= set(symbols.walk(loop))
        self.collected[loop] = collected

    def _makes_list(self, node: ast.stmt, names: Sequence[str]) -> bool:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.List(elts=[])):
                return name in names
        return False

    def _joined(self, node: ast.Name) -> ast.expr | None:
        """``torch.cat(losses)`` whose sum or mean is taken, where ``losses`` stands."""
        call = self.source.parents.get(node)
        if not isinstance(call, ast.Call) or call.args != [node] or call.keywords:
            return None
        fact = self.ctx.fact(call.func)
        if getattr(fact, "name", "") not in names_with(Trait.JOINS):
            return None
        method = self.source.parents.get(call)
        reduced = self.source.parents.get(method) if method is not None else None
        if not isinstance(method, ast.Attribute) or method.attr not in ("sum", "mean"):
            return None
        whole = isinstance(reduced, ast.Call) and reduced.func is method and not reduced.args and not reduced.keywords
        return call if whole else None

    def text(self, loop: ast.For, indent: str, step: str, replaces: Mapping[tuple[int, int], str]) -> str:
        """The function of one step, and what it gives for all."""
        source = self.source
        assert isinstance(loop.target, ast.Tuple) and isinstance(loop.iter, ast.Call)
        collected = self.collected[loop]
        named = [t.id if isinstance(t, ast.Name) else f"step{i or ''}" for i, t in enumerate(loop.target.elts)]
        instead = dict(replaces)
        for node in symbols.walk(loop):
            value = called_attribute(node, "item")
            if value is not None:
                instead[source.span(node)] = f"{source.segment(value)}.detach().reshape(())"
        comments = (source.statement(s).behind for s in self.gone)
        lines = [] if not source.line_text(loop.lineno - 1).strip() else [""]
        lines += [source.text[slice(*at)] for at in comments if at is not None]
        lines += [f"def term({', '.join(named)}):"]
        for name, target in zip(named, loop.target.elts, strict=True):
            if not isinstance(target, ast.Name):
                lines.append(f"{step}{source.segment(target).strip('()')} = {name}")
        line = header_end(loop)
        for statement in loop.body:
            above = (source.line_text(at).strip() for at in range(line + 1, statement.lineno))
            lines += [step + text for text in above if text.startswith("#")]
            line = statement.end_lineno or line
            if isinstance(statement, ast.Assign):
                lines.append(step + self._code(statement, instead))
        lines.append(f"{step}return {', '.join(self._code(value, instead) for _, value in collected)}")
        given = ", ".join(self._code(a, instead) for a in loop.iter.args)
        lines.append("")
        lines.append(f"{', '.join(name for name, _ in collected)} = jax.vmap(term)({given})")
        return lines_of(source, *(f"{indent}{line}" if line else "" for line in lines))

    def _code(self, node: ast.AST, instead: dict[tuple[int, int], str]) -> str:
        return replaced(self.source, *self.source.span(node), instead).rstrip("\r\n")


def compiled_from(context: Context, episode: RecordedEpisode, loops: Loops) -> int | None:
    """From which statement of the update on the loss can be compiled, with arrays for what is there before.

    None if something that is made of kept values can't be.
    """
    jittable = Jittable(context.inference, Reader(context.inference, context.plan.switches), (), {})
    kept = {use for one in episode.recorded for use in one.uses}
    names = {one.name for one in episode.recorded}
    at = len(episode.block)
    while at and _compiles(context, jittable, episode.block[at - 1], loops):
        at -= 1
    while at < len(episode.block) and not _takes_arrays(context, episode, loops, at):
        at += 1
    for statement in episode.block[:at]:
        if not is_alias(statement, loops.plain):
            if any(n in kept or isinstance(n, ast.Name) and n.id in names for n in symbols.walk(statement)):
                return None
    return at if any(s in loops.loops or not is_alias(s, loops.plain) for s in episode.block[at:]) else None


def _compiles(context: Context, jittable: Jittable, node: ast.stmt, loops: Loops) -> bool:
    if is_alias(node, loops.plain) or node in loops.gone:
        return True
    if node in loops.loops:
        assert isinstance(node, ast.For)
        inner = [n for s in node.body for n in symbols.walk(s) if called_attribute(n, "item") is not None]
        return all(jittable.problem(part, inner) is None for s in node.body for part in _values(s))
    if not isinstance(node, ast.Assign) or any(isinstance(n, ast.Lambda | ast.IfExp) for n in symbols.walk(node)):
        return False
    targets = [one for t in node.targets for one in (t.elts if isinstance(t, ast.Tuple) else [t])]
    if not all(isinstance(one, ast.Name) for one in targets):
        return False
    return isinstance(context.fact(node.value), Tensor) and jittable.problem(node, loops.plain.keys()) is None


def _values(node: ast.stmt) -> list[ast.expr]:
    """What a statement of a loop computes."""
    match node:
        case ast.Expr(value=ast.Call(args=[value])):
            return [value]
        case ast.Assign(value=value):
            return [value]
    return []


def inputs(episode: RecordedEpisode, loops: Loops, statements: Sequence[ast.stmt]) -> list[str]:
    """The variables of the update that some of its statements read before they give them values."""
    before = {name for s in episode.block if s not in statements for name in stores(s)}
    before |= symbols.parameter_names(episode.update)
    kept = {one.name for one in episode.lists}
    out: list[str] = []
    bound: set[str] = set()
    for statement in statements:
        own = stores(statement) if isinstance(statement, ast.For) else set()
        own |= {name for name, _ in loops.collected.get(statement, ())}
        for node in reads(statement):
            if node.id in before and node.id not in bound | own | kept and node.id not in out:
                out.append(node.id)
        bound |= stores(statement) | own
    return out


def _takes_arrays(context: Context, episode: RecordedEpisode, loops: Loops, at: int) -> bool:
    """Whether what the statements from one on read is an array, or never changes."""
    given = set(inputs(episode, loops, episode.block[at:]))
    own = context.source.symbols.bound(episode.update)
    seen: set[str] = set()
    owners: set[ast.AST] = {use.value for use in loops.plain if isinstance(use, ast.Attribute)} | {*loops.plain}
    for node in (n for s in episode.block[at:] for n in reads(s) if n not in owners):
        fact = context.fact(node)
        if node.id in given and node.id not in seen:
            seen.add(node.id)
            if not isinstance(fact, Tensor):
                return False
        elif node.id not in own and node.id in context.source.symbols.module and not isinstance(fact, Qual):
            if not isinstance(fact, Class | Function) and not _is_number(context, node.id):
                return False
    return True


def _is_number(context: Context, name: str) -> bool:
    """Whether a variable of the module level is only ever a number that is written down, or a library's."""
    nodes = context.source.nodes
    values = [
        n.value
        for n in nodes
        if isinstance(n, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in n.targets)
    ]
    named = [n for n in nodes if isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load)]
    if len(values) != 1 or len(named) != 1 or name in context.source.symbols.bound_again:
        return False
    if isinstance(values[0], ast.Constant):
        return isinstance(values[0].value, int | float)
    taken = called_attribute(values[0], "item") or values[0]
    return isinstance(taken, ast.Attribute) and taken.attr in ("eps", "tiny", "max", "min", "pi")
