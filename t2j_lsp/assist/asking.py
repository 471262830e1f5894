"""Asks a language model for what the rules refused in a file, with the check as the judge of its answers."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from t2j_lsp.api import CONVERSIONS, FileConversion, convert_expression, convert_file
from t2j_lsp.contract import ObjectVerdict, Options, T2JError, Translation
from t2j_lsp.fixes.record import BugIndex
from t2j_lsp.plugins import brought_fixed_bugs, load_fixed_bugs

from .dialogue import append
from .drafts import Budget, Repair
from .embeddings import EmbeddedIndex, Embedder
from .judging import Judge, Tester, TestRun
from .model import Endpoint, ModelClient, key_from_environment
from .prompts import Style
from .repair import repair_async

if TYPE_CHECKING:
    from t2j_lsp.check.process.pool import Pool

MODELS, BASE_URL, EMBEDDINGS = "T2J_LLM_MODELS", "T2J_LLM_BASE_URL", "T2J_LLM_EMBEDDINGS"
"""Environment variables: models in the order in which they are asked, where they are, and a model of embeddings."""


@dataclass(frozen=True)
class Interpreters:
    """Where torch and jax are; None for this interpreter."""

    torch: str | None = None
    jax: str | None = None


def endpoints(models: str | None = None, base_url: str | None = None) -> list[Endpoint]:
    """The models to ask, as given or as the environment names them. T2JError where none is named.

    Keys come from the environment alone (``T2J_LLM_KEY``, ``OPENAI_API_KEY``).
    """
    names = [name.strip() for name in (models or os.environ.get(MODELS, "")).split(",") if name.strip()]
    if not names:
        raise T2JError(f"no model is named: use --model NAME, or set {MODELS}")
    return [Endpoint(name, base_url or os.environ.get(BASE_URL) or None, key_from_environment()) for name in names]


def embeddings(model: str | None = None, base_url: str | None = None) -> Endpoint | None:
    """The embedding model, as given or as the environment names it; None where none is named."""
    name = model or os.environ.get(EMBEDDINGS, "")
    base_url = base_url or os.environ.get(BASE_URL) or None
    return Endpoint(name, base_url, key_from_environment(), timeout=60, retries=2) if name else None


def index_with(embed: Endpoint | None, on_progress: Callable[[str], None] = lambda line: None) -> BugIndex:
    """The index of fixed bugs; with a model of embeddings its ranking counts as well, its vectors kept in the cache."""
    from t2j_lsp.check.process.compile_cache import cache_folder

    index = load_fixed_bugs()
    if embed is None:
        return index
    pairs = [pair for example in brought_fixed_bugs() for pair in example.pairs]
    return EmbeddedIndex(index, pairs, Embedder(embed, cache_folder() / "embeddings.sqlite"), on_progress)


@contextlib.contextmanager
def workers(paths: Sequence[Path], interpreters: Interpreters) -> Iterator[Pool]:
    """Workers for checks of these files, as long as the context lasts."""
    from t2j_lsp.check.process.compile_cache import project_of
    from t2j_lsp.check.process.containment import projects
    from t2j_lsp.check.process.pool import Pool

    where = interpreters.torch, interpreters.jax
    with Pool(*where, project=project_of(paths[0]), readable=projects(*paths)) as pool:
        yield pool


@contextlib.contextmanager
def file_judge(
    path: Path, interpreters: Interpreters, timeout: float = 120.0, pool: Pool | None = None
) -> Iterator[Judge]:
    """Judges conversions of one file by checks, in these workers or in own ones that last as long as the context."""
    from t2j_lsp.check.process.recall import Recall
    from t2j_lsp.check.run import check_files

    with contextlib.nullcontext(pool) if pool is not None else workers([path], interpreters) as pool:
        recall = Recall()

        def judge(source: str, candidate: str, name: str) -> ObjectVerdict:
            return check_files(
                path, candidate, [name], pool=pool, recall=recall, timeout=timeout, causes=False, source_text=source,
                neighbour=lambda other: CONVERSIONS.of(other).code, expression=convert_expression,
            ).objects[0]  # fmt: skip

        yield judge


@contextlib.contextmanager
def file_tester(path: Path, interpreters: Interpreters, timeout: float = 120.0) -> Iterator[Tester]:
    """Runs written unit tests of one file on conversions of it, in workers that last as long as the context.

    Tests of a class or function are written once. None where there are none, or nothing can be run.
    """
    from t2j_lsp.check.process.compile_cache import project_of
    from t2j_lsp.check.process.containment import projects
    from t2j_lsp.check.process.pool import Pool
    from t2j_lsp.check.process.worker import RemoteError, WorkerError
    from t2j_lsp.check.program.slice import Slicer
    from t2j_lsp.check.unit_tests.compare import Programs, PytestMissing, TestReport, compare_tests
    from t2j_lsp.check.unit_tests.writer import write_tests

    tests = path.with_name(f"test_{path.stem}.py")
    texts: dict[str, str] = {}

    def neighbour(other: Path) -> str:
        return CONVERSIONS.of(other).code

    def translated(_: Path, text: str) -> Translation:
        return convert_file(tests, Options(), text.encode()).translation

    with Pool(
        interpreters.torch, interpreters.jax, project=project_of(path), readable=projects(path), quick=False
    ) as pool:

        def test(source: str, candidate: str, name: str) -> TestRun | None:
            try:
                if name not in texts:
                    texts[name] = write_tests(pool, Slicer(path, source), tests, [name], timeout).code
                if not texts[name]:
                    return None
                programs = Programs(path, candidate, neighbour)
                report: TestReport = compare_tests(pool, programs, tests, texts[name], translated, timeout)
            except (PytestMissing, RemoteError, WorkerError, T2JError):
                return None
            ends = dict.fromkeys(report.agree, "passed") | {one.name: one.message for one in report.differ}
            return TestRun(report.torch_code, report.jax_code, ends) if ends else None

        yield test


def ask(
    conversion: FileConversion,
    models: Sequence[Endpoint],
    *,
    interpreters: Interpreters | None = None,
    style: Style = "augmented",
    budget: Budget | None = None,
    cache: Path | None = None,
    dialogues: Path | None = None,
    always: bool = False,
    embed: Endpoint | None = None,
    on_progress: Callable[[str], None] = lambda line: None,
) -> tuple[FileConversion, Repair]:
    """Asks for the refused spans of a converted file. Runs code of the file, and sends its text to the models.

    With ``always`` also for what the rules converted: that stays unless an answer is verified. ``cache`` keeps
    answers, ``dialogues`` is the file to which what was said is added, with unit tests of the file and how they end on
    each answer, ``embed`` is a model of embeddings for the search of fixed bugs. Returns the conversion with the
    answers, and what came of each. Raises T2JError where the openai package is missing.
    """
    where = interpreters or Interpreters()
    index = index_with(embed, on_progress)

    async def run(judge: Judge, tester: Tester | None) -> Repair:
        client = ModelClient(cache)
        try:
            return await repair_async(
                conversion.translation, models, judge, index, style=style, budget=budget, client=client,
                python=where.jax, always=always, tester=tester, on_progress=on_progress,
            )  # fmt: skip
        finally:
            await client.close()

    recorded = file_tester(conversion.path, where) if dialogues is not None else contextlib.nullcontext()
    with file_judge(conversion.path, where) as judge, recorded as tester:
        result = asyncio.run(run(judge, tester))
    if dialogues is not None and result.dialogue.turns:
        append(dialogues, result.dialogue)
    return replace(conversion, translation=result.translation), result
