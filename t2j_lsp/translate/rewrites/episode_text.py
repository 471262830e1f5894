"""The text of a policy gradient whose episode is recorded: what acts is compiled, and its gradients are pulled back.

``policy_loss.backward()`` of what an episode kept becomes the gradient of a function of the kept values, and each goes
back to the parameters by what the compiled function gave with it. Lists that stood in the module stand beside it, as
the module is handed to compiled code.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.rule.facts import Fact, Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.source.given import Given
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText
from t2j_lsp.translate.training.program.text import replaced

from .episode_loops import Loops, compiled_from, inputs, is_alias, lines_of, spans
from .episode_parts import KeptList, RecordedEpisode, called_attribute, reads
from .episodes import find

HELPERS = frozenset({"recorded", "pull_back", "stacked", "apply_gradients", "clip_grad_norm", "jax"})
_WRITTEN = HELPERS | {"pullback", "pullbacks", "cotangents", "loss_fn", "episode_loss", "episode_gradients", "term"}
_ACT = ("act", "forward_and_draw", "act_on")


def with_recorded_episodes(context: Context) -> tuple[RearrangedText, Given] | None:
    """The text in which the episodes of a policy gradient are recorded; None if there are none."""
    episode = find(context)
    source = context.source
    names = {n.id for n in source.nodes if isinstance(n, ast.Name)} | {
        n.arg for n in source.nodes if isinstance(n, ast.arg)
    }
    if episode is None or not names.isdisjoint(_WRITTEN) or not source.words.isdisjoint(HELPERS - {"stacked"}):
        return None
    writer = _EpisodeWriter(context, episode, names)
    edits = writer.edits()
    text = RearrangedText.of(source.text, edits) if edits is not None else None
    if text is None:
        return None
    return text, Given(parameters=writer.parameters, helpers=HELPERS, original=source.text)


class _EpisodeWriter:
    def __init__(self, context: Context, episode: RecordedEpisode, names: set[str]) -> None:
        self.ctx, self.source, self.episode = context, context.source, episode
        self.names = names
        self.act = next((name for name in _ACT if name not in names), "")
        self.parameters: dict[tuple[str, str], Fact] = {}
        """What the parameters of the loss are."""
        self.plain: dict[ast.AST, str] = {use: kept.name for kept in episode.lists for use in kept.uses}
        """What stands for a list wherever it is used."""

    def edits(self) -> Edits | None:
        """The edits of the whole file; None if a name that they need is taken."""
        episode, source = self.episode, self.source
        in_update = set(symbols.walk(episode.update))
        for kept in (one for one in episode.lists if one.in_module):
            aliases = {n for s in episode.block if is_alias(s, self.plain) for n in symbols.walk(s)}
            others = [n for n in source.nodes if isinstance(n, ast.Name) and n.id == kept.name]
            if any(n not in in_update or not aliases for n in others):
                return None
        acting, update = self._acting(), self._update()
        if not self.act or acting is None or update is None:
            return None
        written = {n for s in (*episode.acting.compiled, *episode.acting.tail, *episode.block) for n in symbols.walk(s)}
        out: Edits = [acting, *update, *self._definition(), *self._lists()]
        for use, text in self.plain.items():
            if use not in written:
                start, end = source.span(use)
                out.append((start, end, [Fragment(text, start, end)]))
        return out

    def _lines(self, statements: Sequence[ast.stmt]) -> tuple[int, int]:
        """The range of the whole lines of some statements."""
        first, last = statements[0], statements[-1]
        assert last.end_lineno is not None
        starts = self.source.starts
        end = starts[last.end_lineno] if last.end_lineno < len(starts) else len(self.source.text)
        return starts[first.lineno - 1], end

    # --- lists ----------------------------------------------------------------------------------------------------

    def _lists(self) -> Edits:
        """The lists beside the module, and no longer in it."""
        source, out = self.source, list[tuple[int, int, list[Fragment]]]()
        comments: list[str] = []
        moved = [kept for kept in self.episode.lists if kept.in_module]
        for kept in moved:
            start, end = self._lines([kept.made])
            line = kept.made.lineno - 1
            while source.line_text(line).strip().startswith("#"):
                comments.append(source.line_text(line).strip())
                start = source.starts[line - 1]
                line -= 1
            out.append((start, end, []))
        first = min((kept.made.lineno for kept in moved), default=1)
        lines = range(first - 1, 0, -1)
        blank = next(
            (n for n in lines if source.line_text(n).strip() and not source.line_text(n).strip().startswith("#")), first
        )
        for line in range(blank + 1, first):
            if not source.line_text(line).strip():
                out.append((source.starts[line - 1], source.starts[line], []))
        _, at = self._lines([self.episode.made])
        made = [*comments, *(f"{kept.name} = []" for kept in moved), "pullbacks = []"]
        out.append((at, at, [Fragment(lines_of(self.source, *made), at, at)]))
        return out

    # --- what acts ------------------------------------------------------------------------------------------------

    def _items(self) -> list[tuple[ast.expr, str]]:
        """What is kept with its gradient, and the names that it gets where it is kept."""
        taken = self.source.symbols.within(self.episode.acting.node) | self.source.symbols.module
        out = []
        for kept in self.episode.recorded:
            item = kept.item
            assert item is not None
            name = f"{kept.name[:-3]}y" if kept.name.endswith("ies") else kept.name.removesuffix("s")
            hints = [name.removeprefix("saved_"), name, f"{name}_kept", f"{name}_of_step"]
            name = item.id if isinstance(item, ast.Name) else next(h for h in hints if h not in taken)
            taken |= {name}
            out.append((item, name))
        return out

    def _acting(self) -> tuple[int, int, list[Fragment]] | None:
        """What calls the compiled function."""
        acting, items = self.episode.acting, self._items()
        start, end = self._lines([*acting.compiled, *acting.tail])
        _, after = self._lines(acting.compiled)
        blank = len(self.source.text[after:end]) - len(self.source.text[after:end].lstrip("\r\n"))
        after += blank
        indent = self.source.indent(acting.compiled[0].lineno)
        values = _tuple([name for _, name in items])
        others = _tuple([_name(text) for text in acting.taken]) or "_"
        if len(items) > 1:
            values = f"({values})"
        if len(acting.taken) > 1:
            others = f"({others})"
        if len(set(map(_name, acting.taken))) < len(acting.taken):
            return None
        given = ", ".join([self.episode.module, *acting.inputs])
        call = lines_of(
            self.source,
            f"{indent}{values}, {others}, pullback = {self.act}({given})",
            f"{indent}pullbacks.append(pullback)",
        )
        taken = [(node, _name(text)) for text, nodes in acting.taken.items() for node in nodes]
        tail = replaced(self.source, after, end, spans(self.source, [*self.plain.items(), *items, *taken]))
        return start, end, [Fragment(call, start, after), Fragment(tail, after, end)]

    def _definition(self) -> Edits:
        """The compiled function, in front of the one that calls it."""
        acting = self.episode.acting
        start, end = self._lines(acting.compiled)
        indent = self.source.indent(acting.compiled[0].lineno)
        values = _tuple([self.source.segment(item) for item, _ in self._items()])
        others = _tuple([self.source.segment(nodes[0]) for nodes in acting.taken.values()]) or "None"
        if len(self._items()) > 1:
            values = f"({values})"
        if len(acting.taken) > 1:
            others = f"({others})"
        given = ", ".join([self.episode.module, *acting.inputs])
        head = lines_of(self.source, "@recorded", f"def {self.act}({given}):")
        body = replaced(self.source, start, end, {})
        last = lines_of(self.source, f"{indent}return {values}, {others}", "", "")
        at = self.source.span(acting.node)[0]
        return [(at, at, [Fragment(head, at, at), Fragment(body, start, end), Fragment(last, at, at)])]

    # --- the update -----------------------------------------------------------------------------------------------

    def _update(self) -> Edits | None:
        """The gradient of a function of the kept values, and the update by what goes back of it."""
        episode, source = self.episode, self.source
        loops = Loops(self.ctx, episode, self.plain)
        names = [kept.name for kept in episode.recorded]
        if loops.open and any(len(items) > 1 for items in map(_parts, episode.recorded)):
            return None
        first = [*episode.block[:1], *episode.zeroing]
        start, _ = self._lines([min(first, key=lambda s: s.lineno)])
        _, end = self._lines([episode.step])
        back, _ = self._lines([episode.backward])
        indent = source.indent(episode.backward.lineno)
        at = compiled_from(self.ctx, episode, loops)
        given = inputs(episode, loops, episode.block[at:]) if at is not None else []
        begin = self._lines([episode.block[at]])[0] if at is not None else start
        instead = spans(source, self.plain.items()) | loops.instead
        for node in (n for s in episode.block for n in symbols.walk(s) if at is None and n not in loops.nodes):
            value = called_attribute(node, "item")
            if value is not None and isinstance(self.ctx.fact(value), Tensor):
                instead[source.span(node)] = f"{source.segment(value)}.detach().item()"
        instead |= self._cut(episode.block if at is None else episode.block[at:])
        before = self._fragments(start, begin, loops, instead, "")
        body = self._fragments(begin, back, loops, instead, indent if at is None else "")
        loss = source.segment(episode.loss)
        read = isinstance(episode.loss, ast.Name) and any(
            n.id == episode.loss.id for s in episode.rest for n in reads(s)
        )
        kind, target = ("value_and_grad", f"{loss}, cotangents") if read else ("grad", "cotangents")
        places = f", argnums=({', '.join(map(str, range(len(names))))})" if len(names) > 1 else ""
        kept = ", ".join(f"stacked({name})" for name in names)
        taken = ", ".join([*names, *given])
        grads = "pull_back(pullbacks, cotangents)"
        if episode.clip is not None:
            grads = f"clip_grad_norm({grads}, {source.segment(episode.clip)})"
        update = (
            f"{indent}apply_gradients({episode.module}, {episode.optimizer}, {grads})",
            f"{indent}del pullbacks[:]",
        )
        returned = f"return {loss}"
        if at is None:
            head = Fragment(lines_of(source, f"{indent}def loss_fn({taken}):"), begin, begin)
            call = f"{indent}{target} = jax.{kind}(loss_fn{places})({kept})"
            last = Fragment(lines_of(source, f"{indent * 2}{returned}", "", call, *update), back, end)
            return [(start, end, [*before, head, *body, last])]
        place = source.span(episode.update)[0]
        head = Fragment(lines_of(source, f"def episode_loss({taken}):"), begin, begin)
        made = f"episode_gradients = jax.jit(jax.{kind}(episode_loss{places}))"
        last = Fragment(lines_of(source, f"{indent}{returned}", "", "", made, "", ""), back, back)
        call = f"{indent}{target} = episode_gradients({', '.join([kept, *given])})"
        for node in (n for s in episode.block[at:] for n in reads(s) if n.id in given):
            self.parameters.setdefault(("episode_loss", node.id), self.ctx.fact(node))
        return [
            (place, place, [head, *body, last]),
            (start, end, [*before, Fragment(lines_of(source, call, *update), back, end)]),
        ]

    def _cut(self, statements: Sequence[ast.stmt]) -> dict[tuple[int, int], str]:
        """``.detach()`` behind calls that make a tensor of values, through which no gradient flows."""
        out = {}
        for node in (n for s in statements for n in symbols.walk(s) if isinstance(n, ast.Call)):
            fact = self.ctx.fact(node.func)
            if isinstance(fact, Qual) and fact.name in names_with(Trait.FROM_VALUES):
                _, end = self.source.span(node)
                out[end, end] = ".detach()"
        return out

    def _fragments(
        self, start: int, end: int, loops: Loops, instead: dict[tuple[int, int], str], indent: str
    ) -> list[Fragment]:
        """A range of the update without what goes, its loops as functions."""
        out, at = list[Fragment](), start
        aliases = [s for s in self.episode.block if is_alias(s, self.plain)]
        for one in sorted([*self.episode.zeroing, *aliases, *loops.gone, *loops.loops], key=lambda s: s.lineno):
            begin, stop = self._lines([one])
            if begin < at or begin >= end:
                continue
            out.append(Fragment(replaced(self.source, at, begin, instead, indent), at, begin))
            if isinstance(one, ast.For):
                own = self.source.indent(one.lineno)
                out.append(Fragment(loops.text(one, indent + own, own, instead), begin, stop))
            at = stop
        out.append(Fragment(replaced(self.source, at, end, instead, indent), at, end))
        return out


def _parts(kept: KeptList) -> list[ast.expr]:
    """The arrays of what is kept."""
    match kept.item:
        case ast.Tuple(elts=elts):
            return elts
        case ast.Call(func=ast.Name(), args=args):
            return args
    return [kept.item] if kept.item is not None else []


def _tuple(parts: Sequence[str]) -> str:
    return ", ".join(parts)


def _name(text: str) -> str:
    return text if text.isidentifier() else "drawn"
