"""The loop: a model is asked for what the rules refused, its answer is read, run and judged, and what failed goes back.

Nothing but the judge, a run of both programs, makes an answer verified. What it did not see to be equivalent is a
draft.
"""

from __future__ import annotations

import ast
import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from t2j_lsp.contract import ObjectVerdict, Translation, VerdictKind
from t2j_lsp.fixes.record import BugIndex, Pair, Query

from . import lint
from .answers import Answer, AnswerError, read_answer
from .dialogue import Dialogue, State, Turn
from .drafts import Budget, Draft, Repair, Round
from .judging import Judge, Tester, failure_of
from .model import Endpoint, ModelClient, ModelError, Reply
from .prompts import ChatMessage, Prompt, Style, as_json, first_prompt
from .simhash import Fingerprint, fingerprint
from .spans import MARK, RefusedSpan, definition, indented, place_of, refused_spans, replaced, users, with_all

FEEDBACK_TOKENS = 2000


async def repair_async(
    translation: Translation,
    models: Sequence[Endpoint],
    judge: Judge,
    index: BugIndex | None = None,
    *,
    style: Style = "augmented",
    pairs: Sequence[Pair] | None = None,
    budget: Budget | None = None,
    client: ModelClient | None = None,
    python: str | None = None,
    tester: Tester | None = None,
    always: bool = False,
    on_progress: Callable[[str], None] = lambda line: None,
    on_text: Callable[[str], None] = lambda text: None,
) -> Repair:
    """Asks for the refused spans of a translation until each is verified or the budget ends.

    Args:
        translation: what the rules made of a file.
        models: cheap ones first; each gets the spans that those before it did not solve.
        judge: runs both programs; called in a thread.
        index: fixed bugs for the prompts and for what went wrong.
        style: of the first prompt.
        pairs: fixed bugs for the first prompt, where it is not to show those that ``index`` finds.
        budget: when to end without success.
        client: to keep connections and a cache; one is made and closed otherwise.
        python: the interpreter with jax, flax and optax, to look names up.
        tester: runs unit tests on what is judged, for the dialogue; called in a thread. It decides nothing.
        always: ask for what the rules converted, too. Their code stays unless an answer is verified.
        on_progress: called with a line for each step.
        on_text: called with the answer as it comes.

    Returns:
        The code with the answers, what is verified, and the dialogue. A model that can't be reached or says nothing of
        use is no error: its spans stay as they were.

    Cancelling the task ends the request that runs; a check that has begun ends by itself.
    """
    own = client is None
    loop = _Repair(translation, judge, index, budget or Budget(), client or ModelClient(), python, on_progress, on_text)
    loop.tester = tester
    if always:
        loop.asked = with_all(translation)
        loop.spans = refused_spans(loop.asked)
    try:
        return await loop.run(models, style, pairs)
    finally:
        if own:
            await loop.client.close()


class _Repair:
    def __init__(
        self,
        translation: Translation,
        judge: Judge,
        index: BugIndex | None,
        budget: Budget,
        client: ModelClient,
        python: str | None,
        on_progress: Callable[[str], None],
        on_text: Callable[[str], None],
    ) -> None:
        self.translation, self.judge, self.index, self.budget, self.client = translation, judge, index, budget, client
        self.python, self.on_progress, self.on_text = python, on_progress, on_text
        self.tester: Tester | None = None
        self.started = time.monotonic()
        self.asked = translation
        """What prompts are made of: its gaps are the spans."""
        self.spans = refused_spans(translation)
        self.result = Repair(translation, dialogue=Dialogue(translation.source))
        self.heads: list[str] = []
        self.failed: list[tuple[dict[int, Fingerprint], str]] = []
        """Answers that were judged together, by span (the head's is 0), and what was wrong with them."""
        self.judged: dict[str, str] = {}
        """Of each verified definition the program in which it was run."""

    async def run(self, models: Sequence[Endpoint], style: Style, pairs: Sequence[Pair] | None) -> Repair:
        # In a thread: an index with embeddings waits for answers.
        prompt = await asyncio.to_thread(first_prompt, self.asked, style, self.index, pairs)
        self.result.left, self.result.pairs = prompt.spans, prompt.pairs
        if not prompt.spans:
            self.result.ended = "nothing to ask"
        for endpoint in models:
            if self.result.ended in ("", "rounds", "no gain", "no answer") and self.result.left:
                await self._with(endpoint, prompt)
        if self.result.drafts:
            self.result.translation = self._written(self.result.drafts)
        self.result.dialogue.code = self.result.code
        self.result.dialogue.verified = not self.result.left
        return self.result

    async def _with(self, endpoint: Endpoint, prompt: Prompt) -> None:
        """Rounds with one model, until all is verified, nothing is gained, or the budget ends."""
        messages = list(prompt.messages)
        gained = [self._score(None)]
        for number in range(1, self.budget.rounds + 1):
            if why := self._spent():
                self.result.ended = why
                return
            self.on_progress(f"{endpoint.model}: round {number}")
            started = time.monotonic()
            try:
                reply = await self.client.ask(endpoint, messages, self.on_text)
            except ModelError as error:
                self.on_progress(str(error))
                self.result.ended = "no answer"
                return
            judged = await self._judged(reply)
            self._keep(judged, endpoint)
            self._record(judged, number, "translate" if number == 1 else "repair", endpoint, prompt, messages, started)
            if not self.result.left:
                self.result.ended = "all verified"
                return
            gained.append(max(gained[-1], self._score(judged)))
            if len(gained) > self.budget.patience and gained[-1] <= gained[-1 - self.budget.patience]:
                self.result.ended = "no gain"
                return
            feedback = await asyncio.to_thread(self._feedback, judged)
            messages = [*prompt.messages, {"role": "assistant", "content": reply.text}, feedback]
        self.result.ended = "rounds"

    def _spent(self) -> str:
        if self.result.tokens >= self.budget.tokens:
            return "tokens"
        if self.result.cost >= self.budget.cost:
            return "cost"
        return "time" if time.monotonic() - self.started >= self.budget.seconds else ""

    async def _judged(self, reply: Reply) -> Round:
        """Reads an answer, looks at it, and has it run."""
        judged_round = Round(reply)
        numbers = {span.number for span in self.result.left}
        if reply.finish != "stop":
            why = reply.finish or "the connection ended"
            return self._refused(judged_round, numbers, "no answer", f"The answer was cut off ({why}). Answer shorter.")
        try:
            judged_round.answer = read_answer(reply.text, numbers)
        except AnswerError as error:
            return self._refused(judged_round, numbers, "no answer", str(error))
        for group in self._together(judged_round.answer):
            twin = next((why for old, why in self.failed if _same(old, group)), None)
            if twin is not None:
                judged_round.results |= dict.fromkeys(
                    set(group) - {0}, f"This is the same code as before, which failed: {twin}"
                )
                judged_round.tags.append("duplicate")
        fresh = {n: code for n, code in judged_round.answer.spans.items() if n not in judged_round.results}
        if not fresh:
            return judged_round
        judged_round.code = self._candidate(fresh, judged_round.answer.head)
        written = "\n".join([judged_round.answer.head, *("\n".join(indented(code)) for code in fresh.values())])
        known = frozenset(_roots(self.translation.code)) - {"torch", "torchvision"}
        wrong = await asyncio.to_thread(lint.problems, written, judged_round.code, known, self.python)
        if wrong:
            return self._refused(judged_round, set(fresh), "lint", "; ".join(wrong))
        await self._run(judged_round, fresh)
        return judged_round

    async def _run(self, round_: Round, fresh: Mapping[int, str]) -> None:
        """Has every class and function with a fresh answer in it judged: all of its spans must have one."""
        round_.ran = True
        left = {span.number: span for span in self.result.left}
        needed = {number: code for number, code in fresh.items() if not left[number].optional}
        for name, numbers in self._by_object(sorted(fresh, key=lambda n: left[n].source_line)).items():
            if not name:
                round_.results |= dict.fromkeys(
                    numbers, "it stands outside of any class or function, so no check runs it"
                )
                round_.tags.append("not run")
                continue
            accepted = {n: fresh[n] for n in round_.verified}
            code = self._candidate({**needed, **accepted, **{n: fresh[n] for n in numbers}}, round_.head)
            verdict = await self._judge(name, code)
            await self._test(round_, name, code)
            if verdict.verdict is VerdictKind.EQUIVALENT:
                verdict = await self._users_judged(name, code) or verdict
            if verdict.verdict is VerdictKind.EQUIVALENT:
                self.judged[name] = code
                round_.verified |= set(numbers)
                continue
            failure = failure_of(verdict)
            round_.code = code if round_.failure is None else round_.code
            round_.failure = round_.failure or failure
            round_.tags.append(failure.outcome if failure else "unchecked")
            where = f" (line {failure.lines[1]} of your program)" if failure and failure.lines[1] else ""
            round_.results |= dict.fromkeys(numbers, f"{verdict.verdict}: {verdict.reason}{where}")

    async def _judge(self, name: str, code: str) -> ObjectVerdict:
        self.on_progress(f"checking {name}")
        return await asyncio.to_thread(self.judge, self.translation.source, code, name)

    async def _users_judged(self, name: str, code: str) -> ObjectVerdict | None:
        """Runs again what is verified, uses this definition, and ran beside another text of it; what then differs."""
        for user in sorted(users(self.translation.source, name) & self.judged.keys()):
            if definition(self.judged[user], name) == definition(code, name):
                continue
            verdict = await self._judge(user, code)
            if verdict.verdict is not VerdictKind.EQUIVALENT:
                return replace(verdict, reason=f"with it, {user} is {verdict.verdict}: {verdict.reason}")
            self.judged[user] = code
        return None

    async def _test(self, round_: Round, name: str, code: str) -> None:
        """Notes how unit tests of a class or function end on an answer."""
        if self.tester is None:
            return
        self.on_progress(f"testing {name}")
        run = await asyncio.to_thread(self.tester, self.translation.source, code, name)
        if run is not None:
            self.result.dialogue.tests[name] = {"torch": run.torch, "jax": run.jax}
            round_.tests |= run.results

    def _by_object(self, numbers: Iterable[int]) -> dict[str, list[int]]:
        """Spans by the class or function in which they stand; "" where it is none."""
        left = {span.number: span for span in self.result.left}
        objects: dict[str, list[int]] = {}
        for number in numbers:
            objects.setdefault(self._object(left[number]), []).append(number)
        return objects

    def _together(self, answer: Answer) -> list[dict[int, Fingerprint]]:
        """Answers that a check judges together. Which of them is wrong, it can't say: one may be right again."""
        fingerprints = self._by_object(answer.spans).items()
        groups = [group for name, numbers in fingerprints for group in ([numbers] if name else [[n] for n in numbers])]
        head = fingerprint(answer.head)
        return [{0: head} | {n: fingerprint(answer.spans[n]) for n in numbers} for numbers in groups]

    def _refused(self, round_: Round, numbers: set[int], tag: str, why: str) -> Round:
        round_.tags.append(tag)
        round_.results |= dict.fromkeys(numbers, why)
        return round_

    def _keep(self, round_: Round, endpoint: Endpoint) -> None:
        """Takes verified answers out of the pool, and remembers the others as drafts."""
        self.result.tokens += round_.reply.tokens_in + round_.reply.tokens_out
        self.result.cost += round_.reply.cost(endpoint)
        if round_.answer is None:
            return
        for number, code in round_.answer.spans.items():
            verified, why = number in round_.verified, round_.results.get(number, "")
            old = self.result.drafts.get(number)
            if round_.ran or old is None or not old.ran:
                self.result.drafts[number] = Draft(code, endpoint.model, verified, why, round_.ran)
        for group in self._together(round_.answer):
            if why := next((round_.results[n] for n in group if n in round_.results), ""):
                self.failed.append((group, why))
        if round_.verified and round_.answer.head.strip():
            self.heads.append(round_.answer.head.strip("\n"))
        self.result.left = tuple(span for span in self.result.left if span.number not in round_.verified)

    def _score(self, round_: Round | None) -> tuple[int, int]:
        """How far the repair is: spans verified, then how far the best answer of this round came."""
        solved = sum(draft.verified for draft in self.result.drafts.values())
        order = ("no answer", "lint", "duplicate", "does not load", "raises", "differs")
        reached = max((order.index(tag) for tag in round_.tags if tag in order), default=-1) if round_ else -1
        return solved, reached

    def _candidate(self, fresh: Mapping[int, str], head: str) -> str:
        """The conversion with what is verified and these answers."""
        done = {n: draft.code for n, draft in self.result.drafts.items() if draft.verified}
        return replaced(self.translation, {**done, **fresh}, "\n".join([*self.heads, head]), self.spans).code

    def _written(self, drafts: Mapping[int, Draft]) -> Translation:
        """The conversion with all drafts that were run: those that are not verified say so on the line above.

        Where the rules have code, only a verified answer takes its place.
        """
        answers = {}
        optional = {span.number for span in self.spans if span.optional}
        for number, draft in drafts.items():
            if not draft.ran or (number in optional and not draft.verified):
                continue
            why = " ".join(draft.reason.split())
            mark = "" if draft.verified else f"{MARK}unverified draft by {draft.model}: {why}\n"
            answers[number] = mark + "\n".join(indented(draft.code))
        left = {finding for span in self.result.left for finding in span.findings}
        asked = {finding for span in self.spans for finding in span.findings}
        translation = replaced(self.translation, answers, "\n".join(self.heads), self.spans)
        return replace(translation, findings=tuple(f for f in translation.findings if f not in asked or f in left))

    def _object(self, span: RefusedSpan) -> str:
        """The class or function of the source in which a span stands; empty outside of any."""
        for node in ast.parse(self.translation.source).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.lineno <= span.source_line <= (
                node.end_lineno or 0
            ):
                return node.name
        return ""

    def _feedback(self, round_: Round) -> ChatMessage:
        """What the model is told: what was wrong with each span, and fixed bugs that are like it."""
        left = {span.number: span for span in self.result.left}
        parts = [f"SPAN {n} failed: {why}" for n, why in sorted(round_.results.items()) if n in left]
        parts += [f"SPAN {n} has no answer yet." for n in sorted(set(left) - set(round_.results))]
        if self.index is not None and round_.answer is not None:
            query = self._query(round_, round_.answer)
            pairs = [f.pair for f in self.index.search(query, limit=4, tokens=FEEDBACK_TOKENS, distinct=True)]
            if pairs:
                parts.append(f"Mistakes like this that were fixed:\n\n{as_json(pairs)}")
        parts.append("Answer again in the same form, for these spans only.")
        return {"role": "user", "content": "\n\n".join(parts)}

    def _query(self, round_: Round, answer: Answer) -> Query:
        """What fixed bugs are looked for with: the first answer that failed, in its program where it stood in one."""
        error = round_.failure.message if round_.failure else " ".join(round_.results.values())
        source, rules = self.translation.source, self.translation.code
        failed = next(
            (code for n, code in answer.spans.items() if n in round_.results), "\n".join(answer.spans.values())
        )
        if lines := place_of(failed, round_.code):
            return Query(source, round_.code, error, reference=rules, lines=lines)
        return Query(source, failed, error, reference=rules)

    def _record(
        self,
        round_: Round,
        number: int,
        state: State,
        endpoint: Endpoint,
        prompt: Prompt,
        asked: list[ChatMessage],
        started: float,
    ) -> None:
        results = "; ".join(dict.fromkeys(round_.results.values()))
        self.result.dialogue.turns.append(
            Turn(
                number,
                state,
                endpoint.model,
                prompt.version,
                list(asked),
                round_.reply.text,
                round_.tags,
                round_.code,
                results or "equivalent",
                bool(round_.verified) and not round_.results,
                round_.answer.claim if round_.answer else None,
                round_.reply.tokens_in,
                round_.reply.tokens_out,
                round(time.monotonic() - started, 3),
                round_.tests,
            )
        )


def _same(one: Mapping[int, Fingerprint], other: Mapping[int, Fingerprint]) -> bool:
    return one.keys() == other.keys() and all(one[number].same(other[number]) for number in one)


def _roots(code: str) -> set[str]:
    """The packages that a program imports."""
    roots = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            roots |= {a.name.split(".")[0] for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            roots.add(node.module.split(".")[0])
    return roots
