"""The check of a file: `check_files`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from t2j_lsp.check.process.compile_cache import project_of
from t2j_lsp.check.process.containment import projects
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.process.recall import Recall
from t2j_lsp.check.program.objects import checking_order, find_objects
from t2j_lsp.check.program.slice import Slicer
from t2j_lsp.check.program.workspace import read_text
from t2j_lsp.check.verdict.coverage import decided_by
from t2j_lsp.contract import CheckReport, ObjectVerdict, SourceMapEntry, T2JError

from .file_check import FileCheck
from .session import CheckSettings


def check_files(
    source: Path,
    converted: Path | str,
    objects: Sequence[str] | None = None,
    *,
    stage: str | None = None,
    device: str = "auto",
    torch_python: str | None = None,
    jax_python: str | None = None,
    timeout: float | None = None,
    readable: Sequence[Path | str] = (),
    on_progress: Callable[[str], None] | None = None,
    source_map: Sequence[SourceMapEntry] | None = None,
    neighbour: Callable[[Path], str] | None = None,
    expression: Callable[[str], str] | None = None,
    pool: Pool | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    budget: float | None = None,
    seed: int = 0,
    eager: bool = True,
    initial: bool = True,
    explain: bool = False,
    causes: bool = True,
    recall: Recall | None = None,
    source_text: str | None = None,
    converted_text: str | None = None,
    packages: Mapping[str, Path] | None = None,
) -> CheckReport:
    """Runs objects of a PyTorch file and of its conversion side by side and compares them.

    Args:
        source: the PyTorch file.
        converted: the converted file, or its text, whose imports are then found as those of ``source`` are.
        objects: names of classes and functions; None for every module class and tensor function of the file.
        stage: the last stage to run: ``spec``, ``numeric`` or ``behavioral`` (the default).
        device: ``cpu``, ``gpu``, or ``auto``, which is the CPU. Where a framework has no GPU, both run on the CPU.
        torch_python, jax_python: interpreters of the two workers; None for this one.
        timeout: seconds for each run of an object; 120 by default.
        budget: seconds for an object, after which what only repeats is left out, and said; three tenths of ``timeout``
            by default.
        on_progress: called with one line for each step.
        source_map: which lines of ``source`` became which of ``converted``.
        neighbour: gives the converted text of a file of the project that ``converted`` imports; without it, such
            files are taken as they are.
        expression: gives a module whose function ``value`` returns what an expression of a PyTorch file becomes, for
            arguments such as ``nn.GELU``; without it, they are what the converted file calls so.
        readable: folders that the code may read, besides the projects of the two files; for workers made here.
        pool: workers to use, which stay; without it, two are started and ended.
        cancelled: asked often; True ends the check.
        seed: of inputs, parameters and cotangents.
        eager: run the JAX side without ``jit`` too.
        recall: what torch did in earlier checks, where these are to be remembered.
        initial: compare the distributions of initial values: False for code that is only to load torch's weights.
        explain: give each verdict the values of both sides, statement by statement.
        causes: where the two differ, try the edits that usually mend it, and name the first that does.
        source_text, converted_text: the contents of the two files where they are not those on disk.
        packages: the folders of converted packages that stand elsewhere, by the names under which a text imports them.

    Raises:
        SourceError: a file can't be read or parsed.
        T2JError: ``objects`` names something that the file has not.

        Whatever goes wrong later is a verdict ``unchecked``.
    """
    torch_side = Slicer(source, source_text)
    if isinstance(converted, Path):
        jax_side = Slicer(converted, converted_text)
    else:
        jax_side = Slicer(source, converted, neighbour or read_text, packages)
    settings = CheckSettings(stage or "behavioral", timeout or 120.0, seed, eager, initial, explain, causes, budget)
    checked = find_objects(torch_side, objects)
    unknown = [name for name in objects or () if all(item.name != name for item in checked)]
    if unknown:
        raise T2JError(f"{source} has no class or function {', '.join(unknown)} at its top level.")
    own = pool is None
    if pool is None:
        folders = [*readable, *projects(source, *([converted] if isinstance(converted, Path) else []))]
        pool = Pool(torch_python, jax_python, device, project=project_of(source), readable=folders)
    verdicts: dict[str, ObjectVerdict] = {}
    check = FileCheck(pool, torch_side, jax_side, settings, cancelled, source_map or (), recall, expression)
    try:
        if own:
            pool.start()
        for item in checking_order(checked):
            if on_progress is not None:
                on_progress(f"checking {item.name}")
            verdicts[item.name] = check.object(item)
    finally:
        if own:
            pool.close()
    check.settle(verdicts)
    order = list(objects) if objects is not None else [item.name for item in checked]
    coverage = check.covered.coverage(*decided_by(verdicts.values())) if objects is None else None
    not_run = list(coverage.training) if coverage is not None else []
    judged = [verdicts[name] for name in order]
    return CheckReport(pool.device_name, judged, pool.fallback, not_run, coverage, containment=pool.containment)
