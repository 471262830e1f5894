"""What ``t2j check`` says of torchvision's 17 families of models, in all stages.

    python -m benchmarks.torchvision_verdicts [--wheel PATH] [--only resnet,vgg] [--seed N] [--device gpu]

The models are those of `torchvision_models`, each inside a module at the end of its file, with dropout and stochastic
depth at a rate of 0.1: the checker records PyTorch's draws and replays them in JAX. The sources are copied into a
temporary folder, where the checker reads them as it reads anybody's; torchvision is not imported. One line each and the
total. The exit status is 0 if all are equivalent.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from t2j_lsp.api import convert_file
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.run import check_files
from t2j_lsp.contract import STAGES, ObjectVerdict, Options, VerdictKind

from .torchvision_cases import CASES, FAMILIES, MODEL, Case
from .torchvision_sources import PACKAGE, SourcesNotFound, find_sources


def checked(case: Case, root: Path, pool: Pool, seed: int, timeout: float = 600.0) -> ObjectVerdict:
    """The verdict on one case, whose file below ``root`` is changed."""
    path = root / case.file
    original = path.read_text(encoding="utf-8")
    path.write_text(case.with_model(original), encoding="utf-8")
    try:
        translation = convert_file(path, Options()).translation
        report = check_files(
            path,
            translation.code,
            [MODEL],
            timeout=timeout,
            source_map=translation.source_map,
            neighbour=lambda other: convert_file(other, Options()).translation.code,
            pool=pool,
            seed=seed,
        )
    finally:
        path.write_text(original, encoding="utf-8")
    return report.objects[0]


def line(case: Case, verdict: ObjectVerdict, seconds: float) -> str:
    """One line: the verdict, each stage's result and largest error relative to the scale."""
    stages = [verdict.stages.get(name) for name in STAGES]
    shown = [f"{s.result if s else 'not run':8}" for s in stages]
    errors = [s.max_rel_err for s in stages if s and s.max_rel_err is not None]
    worst = f"{max(errors):8.1e}" if errors else " " * 8
    return f"{case.label:30} {verdict.verdict:11} {' '.join(shown)} {worst} {seconds:6.1f} s"


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; see the module's docstring."""
    parser = argparse.ArgumentParser(description="Check torchvision's models in all stages.")
    parser.add_argument("--wheel", type=Path, help="a torchvision wheel, or a folder that holds torchvision/")
    parser.add_argument("--only", default="", help=f"families, with commas between them: {', '.join(FAMILIES)}")
    parser.add_argument("--seed", type=int, default=0, help="of inputs and weights")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    options = parser.parse_args(arguments)
    try:
        sources = find_sources(options.wheel)
    except SourcesNotFound as error:
        parser.error(str(error))
    with Pool(device=options.device) as pool:
        return 0 if report(sources, options.only, options.seed, pool) else 1


def report(sources: Path, only: str, seed: int, pool: Pool) -> bool:
    """Prints the verdicts on the families in ``only``, or on all; whether all are equivalent."""
    names = {name for name in only.split(",") if name}
    cases = [case for case in CASES if not names or case.family in names]
    verdicts: dict[str, list[VerdictKind]] = {}
    start = time.perf_counter()
    print(f"{'model':30} {'verdict':11} {' '.join(f'{s:8}' for s in STAGES)} {'largest':>8}")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        shutil.copytree(sources / PACKAGE, root / PACKAGE, ignore=shutil.ignore_patterns("*.so*", "*.pyc", "*.pyd"))
        for case in cases:
            began = time.perf_counter()
            verdict = checked(case, root, pool, seed)
            verdicts.setdefault(case.family, []).append(verdict.verdict)
            print(line(case, verdict, time.perf_counter() - began), flush=True)
            if verdict.verdict is not VerdictKind.EQUIVALENT:
                print(f"  {verdict.reason}")
                if verdict.divergence:
                    print(f"  {verdict.divergence.torch} {verdict.divergence.jax}")
    counts = Counter(v for of_model in verdicts.values() for v in of_model)
    whole = sum(all(v is VerdictKind.EQUIVALENT for v in of_model) for of_model in verdicts.values())
    every = ", ".join(f"{n} {v}" for v, n in counts.most_common())
    device = pool.device_name + (f" ({pool.fallback})" if pool.fallback else "")
    seconds = time.perf_counter() - start
    print(f"equivalent: {whole} of {len(verdicts)} families; models: {every}; {seconds:.0f} s; {device}")
    return whole == len(verdicts)


if __name__ == "__main__":
    sys.exit(main())
