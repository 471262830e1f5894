"""Tries the edits that usually mend a difference, and keeps the first after which the values agree.

The torch side is not run again. Where values of statements part, one run of the edited program decides, by the
statement that parted; where only buffers, precision or the state's form do, the whole comparison. An edit that mends
nothing is never mentioned: a cause that is said was measured.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from t2j_lsp.check.messages import Failure, Traced
from t2j_lsp.check.process.worker import RemoteError, WorkerError
from t2j_lsp.check.program.rewriting import ParsedText
from t2j_lsp.check.program.slice import Slicer
from t2j_lsp.check.verdict.compare import arrays_of, kind_of
from t2j_lsp.check.verdict.evidence import Judgement
from t2j_lsp.contract import Divergence, Fix, Location, VerdictKind

from . import causes
from .causes import CAUSES, Candidate, Cause, candidates
from .localise import TELLING, Alignment, Places, TracedEvent

TRIALS, WHOLE_TRIALS = 80, 6
"""Edits that are tried at most, by one run and by the whole comparison."""
SECONDS = 10.0
_WHOLE: tuple[tuple[str, tuple[Cause, ...]], ...] = (
    ("in float32", (causes.fast_variance,)),
    ("buffer", (causes.momentum, causes.correction, causes.number)),
)
"""Causes of differences that no statement shows, by the start of the observation's name."""


class Experiment:
    """The search for the cause of one difference, whose lines are known.

    ``run`` gives the values of one run of an edited text, and ``whole`` the judgement on it.
    """

    def __init__(
        self,
        torch: Slicer,
        jax: Slicer,
        judgement: Judgement,
        alignment: Alignment | None,
        run: Callable[[str], Traced],
        whole: Callable[[str], Judgement],
    ) -> None:
        self.torch_side, self.jax_side = torch, jax
        self.judgement = judgement
        self.alignment = alignment
        self.run_edited, self.judge_edited = run, whole
        self.path = str(jax.path)
        self.mended: TracedEvent | None = None
        """The first of torch's events whose value the last trial had and the program has not."""

    def run(self) -> None:
        """Adds the cause and its edit to the verdict, if one is found."""
        divergence = self.judgement.verdict.divergence
        if divergence is None or self.judgement.verdict.verdict is not VerdictKind.DIFFERENT:
            return
        text = ParsedText(self.jax_side.text)
        deadline = time.monotonic() + SECONDS
        try:
            for candidate, trial in self._trials(text):
                changed = text.applied(candidate.edit)
                if changed is not None and trial(changed):
                    edit = candidate.edit
                    done = candidate.title[0].lower() + candidate.title[1:]
                    cause = f"{candidate.cause}; tried: {done}, and the values agree here"
                    fix = Fix(self.path, edit.span, edit.new, candidate.title)
                    places = self._places(text, edit.span.line, divergence)
                    self.judgement.verdict.divergence = Divergence(*places, divergence.what, cause, fix)
                    return
                if time.monotonic() > deadline:
                    return
        except WorkerError:
            return

    def _trials(self, text: ParsedText) -> Iterator[tuple[Candidate, Callable[[str], bool]]]:
        alignment, lines = self.alignment, self._lines()
        name = self.judgement.difference.name if self.judgement.difference else ""
        if alignment is not None and (alignment.parting() is not None or alignment.error is not None):
            match = candidates(text, lines, self._torch_statements(), CAUSES)
            yield from ((c, self._run_mends) for c, _ in zip(match, range(TRIALS), strict=False))
            return
        wanted = next((match for start, match in _WHOLE if name.startswith(start)), ())
        error = self.judgement.error
        if isinstance(error, Failure) and error.type == "WeightsError":
            wanted = (causes.bias, causes.number)
        match = candidates(text, lines, self._torch_statements(), wanted)
        yield from ((c, self._whole_mends) for c, _ in zip(match, range(WHOLE_TRIALS), strict=False))

    # --- one trial ------------------------------------------------------------------------------------------------

    def _run_mends(self, text: str) -> bool:
        """Whether the edited program agrees where the two parted."""
        old = self.alignment
        assert old is not None
        try:
            run = self.run_edited(text)
        except RemoteError:
            return False
        new = Alignment(old.torch_run, run, old.wide, (old.texts[0], text), old.names)
        if new.error is not None:
            return False
        before, after = old.parting(), new.parting()
        gained = _agreeing(new) - _agreeing(old)
        self.mended = old.torch[min(gained)] if gained else None
        if after is None:
            return len(new.named) >= len(old.named)
        # Later statements may have mistakes of their own: then this one is mended if more of torch's values are there,
        # ahead of what still parts. A run that only gets further than the error it raised shows nothing.
        further = old.error is None and (before is None or after >= before)
        return further and any(t < after[0] for t in gained) and not _agreeing(old) - _agreeing(new)

    def _whole_mends(self, text: str) -> bool:
        """Whether the whole comparison finds no difference any more, or no longer this one."""
        try:
            judgement = self.judge_edited(text)
        except RemoteError:
            return False
        if judgement.verdict.verdict is not VerdictKind.DIFFERENT:
            return True
        before, after = ({d.name for d in j.differences} for j in (self.judgement, judgement))
        return bool(before) and bool(after) and after < before and judgement.error is None

    # --- where to look --------------------------------------------------------------------------------------------

    def _lines(self) -> list[int]:
        """The lines of the converted file where the mistake may be, best first.

        Where it was found; statements before it that torch's side lacks, back to the last that agrees; and those that
        agree but for an axis of 1.
        """
        divergence = self.judgement.verdict.divergence
        lines = [divergence.jax.line] if divergence is not None and divergence.jax is not None else []
        if self.alignment is not None:
            lines += [e.site.line for e in self._between(1) if e.site.file == self.path and e.site.line]
            lines += [e.site.line for e in self._squeezed() if e.site.file == self.path]
        return lines

    def _between(self, side: int) -> list[TracedEvent]:
        """The events of one side behind the last pair that agrees, as far as the first that parts."""
        alignment = self.alignment
        assert alignment is not None
        events = (alignment.torch, alignment.jax)[side]
        parting = alignment.parting()
        agreeing = [p[side] for p in alignment.pairs if parting is None or p < parting]
        last = parting[side] if parting is not None else len(events) - 1
        first = max(agreeing, default=-1) + 1
        return list(reversed(events[first : last + 1]))

    def _squeezed(self) -> Iterator[TracedEvent]:
        alignment = self.alignment
        assert alignment is not None
        parting = alignment.parting()
        for t, j in reversed([p for p in alignment.pairs if parting is None or p < parting]):
            torch, jax = (list(arrays_of(e.value).values()) for e in (alignment.torch[t], alignment.jax[j]))
            if any(len(a.shape) != len(b.shape) for a, b in zip(torch, jax, strict=False)):
                yield alignment.jax[j]

    def _torch_statements(self) -> tuple[ast.AST, ...]:
        """The PyTorch statements beside these lines."""
        side, divergence = self.torch_side, self.judgement.verdict.divergence
        lines = [divergence.torch.line] if divergence is not None and divergence.torch is not None else []
        if self.alignment is not None:
            lines += [e.site.line for e in self._between(0) if e.site.file == str(side.path) and e.site.line]
        tree = ast.parse(side.text)
        statements: Sequence[ast.stmt | None] = [causes.statement(tree, line) for line in dict.fromkeys(lines)]
        return tuple(s for s in statements if s is not None and not hasattr(s, "body"))

    def _places(self, text: ParsedText, line: int, divergence: Divergence) -> Places:
        """The statement that the edit is in: the place of the difference, once its cause is known.

        Where that is another one than was thought, torch's is the first whose value is there after the edit.
        """
        known = divergence.jax
        places = causes.statement(text.tree, line)
        if known is not None and places is causes.statement(text.tree, known.line):
            return divergence.torch, known
        place = Location(self.path, places.lineno if places is not None else line)
        site = self.mended.site if self.mended is not None else None
        torch = Location(site.file, site.line) if site is not None and site.line else divergence.torch
        return torch, place


def _agreeing(alignment: Alignment) -> set[int]:
    """The torch events whose values are there in JAX too, as far as that can be no accident."""
    pairs = [(t, alignment.torch[t], alignment.jax[j]) for t, j in alignment.pairs]
    return {t for t, torch, jax in pairs if _tells(torch) and _tells(jax) and alignment.agree(torch, jax)}


def _tells(event: TracedEvent) -> bool:
    arrays = arrays_of(event.value).values()
    return any(kind_of(a) in ("floating", "complex") and int(np.prod(a.shape)) >= TELLING for a in arrays)
