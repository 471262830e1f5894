"""How many module classes of public libraries get working constructor arguments and inputs with no help.

    python -m benchmarks.inferred_inputs FOLDER... [--limit N] [--show]

Each FOLDER is a package or a part of one (``torchvision/models``, ``timm/layers``, ``vit_pytorch``), installed or
unpacked; only its sources are read. Every class at the top level of a file that is a module with a ``forward`` counts.
``plain`` are those whose constructor asks for numbers, strings, flags and layer classes only: not for other modules, a
configuration object, a function, or ``*args``; and that are meant to be run, not to be derived from. PyTorch builds and
calls each, in training and in evaluation mode; nothing is converted. A class whose file imports a package that is not
installed here is not counted; their number is printed.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from t2j_lsp.check.arguments.plans import constructor
from t2j_lsp.check.file_check import FileCheck
from t2j_lsp.check.inputs import CommentError
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.process.worker import RemoteError, WorkerError
from t2j_lsp.check.program.objects import CheckedObject, checking_order, find_objects
from t2j_lsp.check.program.slice import Slicer
from t2j_lsp.check.session import CheckSettings
from t2j_lsp.contract import SourceError

_OTHER_THINGS = re.compile(
    r"(\w+_)?(module|modules|model|net|block|layers|encoder|decoder|backbone|body|head|fn|func|config|cfg|args|conf"
    r"|extractor|classifier|transform|embedding|embedder|patcher|features|stages|tokenizer|vit|transformer|student|teacher)"
    r"(_fn|_cfg|_config|_args)?"
)
"""Names of unannotated parameters that stand for a module, a function or a configuration."""
_PLAIN_TYPES = re.compile(
    r"(\b(int|float|bool|str|None|Optional|Union|Tuple|tuple|List|list|Sequence|type|Type|Literal|nn"
    r"|torch|LayerType|Final)\b|Module(?=\])|['\"\w]*(?<=Literal)[^\]]*|[\[\],|. '\"]|\.\.\.)*"
)


@dataclass
class Tally:
    """Counts of one folder."""

    classes: int = 0
    working: int = 0
    plain: int = 0
    plain_working: int = 0

    def __str__(self) -> str:
        share = 100 * self.plain_working / self.plain if self.plain else 0.0
        every = f"{self.working:4} of {self.classes:4} classes"
        return f"{every}; plain: {self.plain_working:4} of {self.plain:4}, {share:5.1f} %"


def is_plain(slicer: Slicer, item: CheckedObject) -> bool:
    """Whether a class asks for numbers, strings, flags and layer classes only, and is meant to be run."""
    if "raise NotImplementedError" in ast.unparse(item.node) or "abstractmethod" in ast.unparse(item.node):
        return False
    init = constructor(slicer, slicer.main, item.name)
    if init is None:
        return True
    if init.args.vararg is not None:
        return False
    parameters = [*init.args.posonlyargs, *init.args.args][1:]
    required = parameters[: len(parameters) - len(init.args.defaults)]
    required += [p for p, d in zip(init.args.kwonlyargs, init.args.kw_defaults, strict=True) if d is None]
    return all(_plain_parameter(p) for p in required)


def _plain_parameter(parameter: ast.arg) -> bool:
    if parameter.annotation is None:
        return _OTHER_THINGS.fullmatch(parameter.arg) is None
    return _PLAIN_TYPES.fullmatch(ast.unparse(parameter.annotation)) is not None


def files_of(folder: Path) -> Iterator[Path]:
    """The Python files of a folder, without tests."""
    yield from (p for p in sorted(folder.rglob("*.py")) if "test" not in p.stem) if folder.is_dir() else [folder]


def tried(path: Path, pool: Pool) -> Iterator[tuple[CheckedObject, bool, str | None]]:
    """Each module class of a file, whether it is plain, and why it has no inputs (None: it has)."""
    try:
        slicer = Slicer(path)
    except SourceError:
        return
    check = FileCheck(pool, slicer, slicer, CheckSettings(timeout=60.0), lambda: False)
    for item in checking_order([o for o in find_objects(slicer, None) if o.is_class]):
        try:
            ready = check.inputs_for(item)
            problem = _reason(ready.problems) if ready.problems is not None else None
        except (RemoteError, WorkerError, CommentError) as error:
            problem = f"does not load: {error}"
        yield item, is_plain(slicer, item), problem


def _reason(problems: list[str]) -> str:
    """The first and the last thing that was tried."""
    return " ... ".join(dict.fromkeys([problems[0], problems[-1]])) if problems else "nothing to try"


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; see the module's docstring."""
    parser = argparse.ArgumentParser(description="Count the module classes that get working inputs with no help.")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--limit", type=int, default=0, help="at most so many files of each folder, evenly picked")
    parser.add_argument("--show", action="store_true", help="print every plain class without inputs, and why")
    options = parser.parse_args(arguments)
    total, reasons, missing = Tally(), Counter[str](), 0
    with Pool(None, None, "cpu") as pool:
        for folder in options.folders:
            tally = Tally()
            files = list(files_of(folder.resolve()))
            step = max(1, len(files) // options.limit) if options.limit else 1
            for path in files[::step]:
                for item, plain, problem in tried(path, pool):
                    if problem is not None and "ModuleNotFoundError" in problem:
                        missing += 1
                        continue
                    for counts in (tally, total):
                        counts.classes += 1
                        counts.working += problem is None
                        counts.plain += plain
                        counts.plain_working += plain and problem is None
                    if problem is not None and plain:
                        reasons[re.sub(r"\d+", "N", problem)[:70]] += 1
                        if options.show:
                            print(f"  {path.name}: {item.name}: {problem}")
            print(f"{folder.name:20} {tally}", flush=True)
    print(f"{'total':20} {total}; {missing} more need a package that is not installed")
    for reason, count in reasons.most_common(10):
        print(f"{count:5} {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
