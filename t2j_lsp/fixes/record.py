"""The values about fixed bugs that cross t2j's borders: pairs of faulty and fixed code, questions, and what was found.

The fields are those of the published T2J data set, and where each pair came from and what running it showed. Standard
library only, as ``contract``.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Protocol

from t2j_lsp.contract import Finding

Origin = Literal["authored", "injected", "captured"]
"""Written by hand as models write it; planted by a program; or kept from a user's own fix."""
Outcome = Literal["raises", "differs", "does not load"]

CATEGORIES: dict[str, tuple[str, ...]] = {
    "training": (
        "rng key", "train state", "step returns", "static arguments", "epoch loop", "optimizer update", "batches",
        "wrappers", "vectorisation", "mode", "metrics",
    ),
    "model definitions": (
        "parameter shapes", "initialisation", "encoders and decoders", "normalization", "convolution", "recurrent",
        "attention", "embedding", "old API",
    ),
    "losses and gradients": ("loss function", "gradient", "reduction"),
    "JAX constructs": ("jit", "grad", "PRNG", "tracer", "in-place"),
    "iteration": ("loops",),
    "parameter updates": ("updates",),
    "last layers and returns": ("outputs",),
    "arrays and dtypes": ("shapes", "axes", "dtypes", "indexing", "values"),
    "products": ("dot products", "sums"),
    "incomplete code": ("placeholders", "undefined names", "hallucinated API"),
}  # fmt: skip
"""Categories of the published study (its section on bugs), each with the sub-categories that are used here."""


@dataclass(frozen=True)
class Verification:
    """What running a pair showed: the faulty code failed as said, the fixed code was equivalent.

    ``first_difference`` is the pair of lines (PyTorch, JAX) at which the check placed it, ``versions`` those of the
    packages, ``seconds`` how long the check of the faulty code took.
    """

    outcome: Outcome
    first_difference: tuple[int | None, int | None]
    versions: dict[str, str]
    seconds: float


@dataclass(frozen=True)
class FixedBug:
    """One error of a draft and its fix.

    ``root_cause`` is the same word for the same mistake in every program. ``error`` is the message as it really
    appears: of the exception, or of the check where values differ in silence.
    """

    root_cause: str
    category: str
    sub_category: str
    error_code: str
    fixed_code: str
    fix_info: str
    error: str = ""
    origin: Origin = "authored"
    verification: Verification | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "Error_Code": self.error_code,
            "Error": self.error,
            "Fix_info": self.fix_info,
            "Fixed_Code": self.fixed_code,
            "Category": self.category,
            "Sub_category": self.sub_category,
            "Root_cause": self.root_cause,
            "Origin": self.origin,
            "Verification": asdict(self.verification) if self.verification else None,
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> FixedBug:
        """Raises KeyError where a field is missing."""
        shown = data["Verification"]
        verification = (
            Verification(
                shown["outcome"],
                (shown["first_difference"][0], shown["first_difference"][1]),
                shown["versions"],
                shown["seconds"],
            )
            if shown
            else None
        )
        return FixedBug(
            data["Root_cause"],
            data["Category"],
            data["Sub_category"],
            data["Error_Code"],
            data["Fixed_Code"],
            data["Fix_info"],
            data["Error"],
            data["Origin"],
            verification,
        )


@dataclass(frozen=True)
class Example:
    """One program: its PyTorch source, a faulty draft in JAX, the draft with all errors fixed, and those errors.

    Each error's ``fixed_code`` stands once in the fixed program. ``object`` is the class or function that a check
    compares. Errors of one program that can't stand in one draft together make several examples of one ``program``.
    """

    example_id: str
    program: str
    title: str
    object: str
    input_code: str
    fix_output: str
    errors: tuple[FixedBug, ...]

    @property
    def weak_output(self) -> str:
        """The draft: the fixed program with every error in it."""
        text = self.fix_output
        for bug in self.errors:
            text = planted(text, bug)
        return text

    @property
    def pairs(self) -> Iterator[Pair]:
        for bug in self.errors:
            yield Pair(self, bug)

    def with_errors(self, errors: Iterable[FixedBug]) -> Example:
        return replace(self, errors=tuple(errors))

    def drafts(self) -> Iterator[Example]:
        """Examples that share out the errors, so that those of each can stand in one draft together."""
        left, number = list(self.errors), 1
        while left:
            text = self.fix_output
            taken: list[FixedBug] = []
            later: list[FixedBug] = []
            for bug in left:
                both = planted(text, bug) if text.count(bug.fixed_code) == 1 else ""
                fits = bool(both) and all(one.error_code in both for one in taken)
                text = both if fits else text
                (taken if fits else later).append(bug)
            if not taken:
                raise ValueError(f"{later[0].root_cause}: its fixed code does not stand once in the program")
            name = self.program if number == 1 else f"{self.program}-{number}"
            yield replace(self, example_id=name, errors=tuple(taken))
            left, number = later, number + 1

    def to_json(self) -> dict[str, Any]:
        return {
            "Example_id": self.example_id,
            "Program": self.program,
            "Title": self.title,
            "Object": self.object,
            "Input_Code": self.input_code,
            "LLM_weak_output": self.weak_output,
            "LLM_fix_output": self.fix_output,
            "Errors": [bug.to_json() for bug in self.errors],
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> Example:
        """Raises KeyError where a field is missing, ValueError where the draft is not the fix with its errors."""
        example = Example(
            data["Example_id"],
            data["Program"],
            data["Title"],
            data["Object"],
            data["Input_Code"],
            data["LLM_fix_output"],
            tuple(FixedBug.from_json(bug) for bug in data["Errors"]),
        )
        if example.weak_output != data["LLM_weak_output"]:
            raise ValueError(f"{example.example_id}: the draft is not the fixed program with its errors put back")
        return example


@dataclass(frozen=True)
class Pair:
    """One fixed bug in its program."""

    example: Example
    bug: FixedBug

    @property
    def id(self) -> str:
        """``program/root-cause``: unique in a data set."""
        return f"{self.example.program}/{self.bug.root_cause}"

    @property
    def faulty(self) -> str:
        """The fixed program with this one error in it."""
        return planted(self.example.fix_output, self.bug)

    @property
    def lines(self) -> tuple[int, int]:
        """First and last line, from 1, of the faulty code in the faulty program."""
        before = self.example.fix_output[: self.example.fix_output.index(self.bug.fixed_code)]
        first = before.count("\n") + 1
        return first, first + self.bug.error_code.rstrip("\n").count("\n")

    def to_json(self) -> dict[str, Any]:
        """The form in which a prompt shows it: the published fields, without the whole programs."""
        bug = self.bug
        return {
            "Example_id": self.id,
            "Error_Code": bug.error_code,
            "Error": bug.error,
            "Fix_info": bug.fix_info,
            "Fixed_Code": bug.fixed_code,
        }


@dataclass(frozen=True)
class Query:
    """What is known: the PyTorch source, the JAX that failed, what it said, and words of the user's.

    ``reference`` is what the rules make of the source, and ``lines`` are the first and last line of ``code`` that are
    at fault, where that is known.
    """

    source: str = ""
    code: str = ""
    error: str = ""
    words: str = ""
    reference: str = ""
    lines: tuple[int, int] | None = None


@dataclass(frozen=True)
class Case:
    """Something that went wrong at one place: both programs, the lines (from 1) at which they part, and the message.

    ``edit`` are lines of the JAX program and what was found to mend them, where that is known.
    """

    source: str
    source_line: int | None
    code: str
    code_line: int | None
    error: str
    outcome: Outcome
    edit: tuple[str, str] | None = None


@dataclass(frozen=True)
class SimilarPair:
    """A pair and how well it fits; larger is better."""

    pair: Pair
    score: float


CHARACTERS_PER_TOKEN = 3.5
"""Of code in the usual tokenizers, about; what a budget is counted by where no tokenizer is known."""


def prompt_tokens(pairs: Iterable[Pair]) -> int:
    """About how many tokens pairs take in a prompt."""
    return round(sum(len(json.dumps(pair.to_json())) for pair in pairs) / CHARACTERS_PER_TOKEN)


def chosen(
    ranked: Iterable[SimilarPair], limit: int, tokens: int | None = None, distinct: bool = False
) -> list[SimilarPair]:
    """The first of a ranking that fit into a prompt; the arguments are those of ``BugIndex.search``."""
    pairs: list[SimilarPair] = []
    causes: set[str] = set()
    left = tokens
    for one in ranked:
        if len(pairs) == limit:
            break
        if distinct and one.pair.bug.root_cause in causes:
            continue
        if left is not None:
            size = prompt_tokens([one.pair])
            if size > left:
                continue
            left -= size
        causes.add(one.pair.bug.root_cause)
        pairs.append(one)
    return pairs


class BugIndex(Protocol):
    """Finds the fixed bugs that help."""

    def __len__(self) -> int: ...

    def search(
        self,
        query: Query,
        limit: int = 5,
        but: Callable[[Pair], bool] = ...,
        tokens: int | None = None,
        distinct: bool = False,
    ) -> list[SimilarPair]:
        """The pairs that fit best, best first.

        ``but`` says which to leave out: those of the same program, in an evaluation. ``tokens`` is a budget for all of
        them together, as they stand in a prompt. With ``distinct``, one pair of each root cause.
        """


class SimilarBugs(Protocol):
    """Knows which fixed bugs are really like something that went wrong. Likeness is between 0 and 1."""

    def __len__(self) -> int: ...

    def similar(self, case: Case, limit: int = 3, but: Callable[[Pair], bool] = ...) -> list[SimilarPair]:
        """The pairs that are like a case, best first; none where none is. ``but`` says which to leave out."""

    def about(self, name: str, limit: int = 3, but: Callable[[Pair], bool] = ...) -> list[SimilarPair]:
        """The pairs in which the call of one qualified torch name was converted wrongly."""

    def for_gap(
        self, finding: Finding, source: str, limit: int = 3, but: Callable[[Pair], bool] = ...
    ) -> list[SimilarPair]:
        """The pairs in which something of the kind that a rule refused in a program was converted wrongly."""


def planted(text: str, bug: FixedBug) -> str:
    """A right program with one error put in. Raises ValueError unless the fixed code stands in it exactly once."""
    count = text.count(bug.fixed_code)
    if count != 1:
        raise ValueError(f"{bug.root_cause}: its fixed code stands {count} times in the program, not once")
    return text.replace(bug.fixed_code, bug.error_code)


def statement_lines(text: str, line: int | None) -> tuple[int, int] | None:
    """First and last line of the innermost statement on a line (from 1); of one with a body of its own that line."""
    try:
        tree = ast.parse(text) if line is not None else None
    except (SyntaxError, ValueError):
        return None
    if tree is None or line is None:
        return None
    inside = [n for n in ast.walk(tree) if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or line)]
    node = min(inside, key=lambda n: (n.end_lineno or n.lineno) - n.lineno, default=None)
    if node is None:
        return None
    return (line, line) if hasattr(node, "body") else (node.lineno, node.end_lineno or node.lineno)


def statement_at(text: str, line: int | None) -> str:
    """The lines of `statement_lines`; empty where there is no statement."""
    place = statement_lines(text, line)
    return "\n".join(text.splitlines()[place[0] - 1 : place[1]]) if place is not None else ""


def to_jsonl(examples: Iterable[Example]) -> str:
    """One JSON object a line."""
    return "".join(json.dumps(e.to_json(), ensure_ascii=False) + "\n" for e in examples)


def from_jsonl(text: str) -> tuple[Example, ...]:
    """Raises ValueError or KeyError where a line is not an example."""
    return tuple(Example.from_json(json.loads(line)) for line in text.splitlines() if line.strip())
