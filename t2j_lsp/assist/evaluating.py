"""Evaluates the model lane on a folder: reads its programs, and gives an evaluation the check and the fixed bugs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2j_lsp.api import convert_file
from t2j_lsp.assist.evaluation.cases import EvaluatedProgram
from t2j_lsp.assist.evaluation.recording import Placed
from t2j_lsp.assist.evaluation.run import Bench, Evaluation, EvaluationSettings, evaluate
from t2j_lsp.contract import Options, SourceError, T2JError
from t2j_lsp.files.sources import python_files, read_source
from t2j_lsp.migration.state import SUFFIX
from t2j_lsp.plugins import brought_fixed_bugs, load_fixed_bugs

from .alike import same_program
from .asking import Interpreters, file_judge, workers
from .dialogue import append
from .judging import Judge

if TYPE_CHECKING:
    from t2j_lsp.check.process.pool import Pool


def programs_of(folder: Path) -> tuple[list[EvaluatedProgram], list[str]]:
    """The programs of a folder (or the one of a file) and what could not be read of it.

    ``net_jax.py`` beside ``net.py`` is its reference conversion. Raises T2JError where there is none.
    """
    files = [p for p in python_files(folder) if p.suffix == ".py"] if folder.is_dir() else [folder]
    files = [p for p in files if not (p.stem.endswith(SUFFIX) and _source_of(p).exists())]
    if not files:
        raise T2JError(f"{folder} holds no .py files")
    programs, errors = [], []
    for path in files:
        try:
            translation = convert_file(path, Options()).translation
            beside = path.with_name(f"{path.stem}{SUFFIX}.py")
            reference = read_source(beside).text if beside.is_file() else None
        except SourceError as error:
            errors.append(str(error))
            continue
        name = path.relative_to(folder).as_posix() if folder.is_dir() else path.name
        same = same_program(path, translation.source, brought_fixed_bugs())
        programs.append(EvaluatedProgram(name, path, translation, same, reference))
    return programs, errors


def evaluated(
    programs: Sequence[EvaluatedProgram],
    settings: EvaluationSettings,
    client: Placed,
    *,
    interpreters: Interpreters | None = None,
    dialogues: Path | None = None,
    on_progress: Callable[[str], None] = lambda line: None,
    on_case: Callable[[], Any] = lambda: None,
) -> tuple[list[EvaluatedProgram], Evaluation]:
    """Runs an evaluation, in one pair of workers. The programs come back with what the check says of their references.

    Runs code of the programs, and sends their text to the models, unless ``client`` is one that replays.
    """
    where = interpreters or Interpreters()
    pairs = [pair for example in brought_fixed_bugs() for pair in example.pairs]
    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(workers([program.path for program in programs], where))

        def judge_of(program: EvaluatedProgram) -> Judge:
            return stack.enter_context(file_judge(program.path, where, pool=pool))

        def timing(program: EvaluatedProgram, code: str, objects: Sequence[str]) -> dict[str, float] | None:
            from t2j_lsp.check.timing import run_time

            return run_time(program.path, code, objects, pool)

        checked = [_with_verdict(program, pool, on_progress) for program in programs]
        bench = Bench(
            judge_of, load_fixed_bugs(), pairs, client, where.jax, timing, on_progress, lambda *case: on_case()
        )
        result = asyncio.run(_run(checked, settings, bench))
    if dialogues is not None:
        for dialogue in result.dialogues:
            append(dialogues, dialogue)
    return checked, result


async def _run(programs: Sequence[EvaluatedProgram], settings: EvaluationSettings, bench: Bench) -> Evaluation:
    try:
        return await evaluate(programs, settings, bench)
    finally:
        await bench.client.close()


def _with_verdict(program: EvaluatedProgram, pool: Pool, on_progress: Callable[[str], None]) -> EvaluatedProgram:
    """A program with what the check says of its reference, where models are asked about it."""
    from t2j_lsp.check.run import check_files

    if program.reference is None or not program.translation.gaps:
        return program
    on_progress(f"{program.name}: checking its reference")
    return replace(program, reference_verdict=str(check_files(program.path, program.reference, pool=pool).verdict))


def _source_of(path: Path) -> Path:
    """The program of which a file is the reference conversion."""
    return path.with_name(f"{path.stem.removesuffix(SUFFIX)}.py")
