"""How long the output is, against its source. The bars: the median file at most 1.3 times as long, the worst 2.0.

    python -m benchmarks.output_length [FILE_OR_FOLDER ...] [--each] [--surplus]

Lines of code are counted: comments, empty lines and docstrings apart, on both sides. Files without torch are left out.
One row for each file of a small set, one for each folder: lines in; lines of the converted files themselves, of the
modules of helpers beside them, where these are long, and the sum of both; its ratio to the source (of all, of the
median file, of the worst); the share of helpers in the sum; the turns of axes that the source does not have. A module
beside a file makes the file shorter and not the sum: every ratio is of the sum. Without arguments, the project's own
training scripts, models and examples. `--surplus` says where the lines are that the source does not have: in helpers,
by name, in imports, and in statements that are broken over more lines than the source's are.
"""

from __future__ import annotations

import argparse
import ast
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import UnionType

from t2j_lsp import convert
from t2j_lsp.contract import SourceError
from t2j_lsp.translate.source.code_lines import code_lines

ROOT = Path(__file__).parent.parent
OWN = ("tests/translate/scripts", "tests/translate/models", "examples")
TURN = re.compile(r"\b(moveaxis|transpose|swapaxes)\(")


@dataclass(frozen=True)
class Lengths:
    """What one file became."""

    path: Path
    source: int
    own: int
    """Lines of the converted file itself."""
    module: int
    """Lines of the module of helpers beside it; 0 where they are in the file."""
    helpers: Counter[str]
    """Lines of each helper."""
    turns: int
    imports: int
    """More lines of imports than in the source."""
    broken: int
    """More lines behind the first of a statement that has no body; helpers apart."""

    @property
    def output(self) -> int:
        """All lines of the output, wherever they stand."""
        return self.own + self.module

    @property
    def ratio(self) -> float:
        return self.output / self.source


def lengths(path: Path) -> Lengths | None:
    """The lengths of a file and its conversion; None without torch, or where it can't be converted."""
    try:
        text = path.read_text(encoding="utf-8")
        done = convert(text, helpers="auto", path=str(path))
    except (SourceError, UnicodeDecodeError):
        return None
    if done.code == done.source or not code_lines(text):
        return None
    code, module = code_lines(done.code), done.helper_source or ""
    copied = {name for name, _ in done.needs.written}
    helpers: Counter[str] = Counter()
    tree = ast.parse(done.code.lstrip("\ufeff"))
    for body, lines, names in ((tree.body, code, copied), (ast.parse(module).body, code_lines(module), None)):
        for node in body:
            target = node.targets[0] if isinstance(node, ast.Assign) else node
            name = getattr(target, "name", getattr(target, "id", None))
            if name is not None and (names is None or name in names):
                helpers[name] += len(lines & set(range(node.lineno, (node.end_lineno or node.lineno) + 1)))
    turns = len(TURN.findall(done.code + module)) - len(TURN.findall(text))
    own = [node for node in tree.body if getattr(node, "name", None) not in copied]
    before, after = ast.parse(text.lstrip("\ufeff")).body, own
    after_imports = [*after, *ast.parse(module).body]
    imports = _lines(after_imports, ast.Import | ast.ImportFrom) - _lines(before, ast.Import | ast.ImportFrom)
    broken = _behind_the_first(after) - _behind_the_first(before)
    beside = len(code_lines(module))
    return Lengths(path, len(code_lines(text)), len(code), beside, helpers, turns, imports, broken)


def _lines(body: Iterable[ast.stmt], kind: type[ast.stmt] | UnionType) -> int:
    return sum((n.end_lineno or n.lineno) - n.lineno + 1 for n in body if isinstance(n, kind))


def _behind_the_first(body: Iterable[ast.stmt]) -> int:
    """Lines behind the first of statements without a body, docstrings and imports apart."""
    nodes = [n for one in body for n in ast.walk(one) if isinstance(n, ast.stmt) and not hasattr(n, "body")]
    plain = [n for n in nodes if not isinstance(n, ast.Expr) or not isinstance(n.value, ast.Constant)]
    return _lines(plain, ast.stmt) - len(plain) - _lines(plain, ast.ImportFrom) + _count(plain, ast.ImportFrom)


def _count(body: Iterable[ast.stmt], kind: type[ast.stmt]) -> int:
    return sum(isinstance(n, kind) for n in body)


def surplus(each: list[Lengths]) -> Iterator[str]:
    """Where the lines are that the sources do not have."""
    helpers = sum((f.helpers for f in each), Counter[str]())
    files = Counter(name for f in each for name in f.helpers)
    more = sum(f.output - f.source for f in each)
    said = f"{more} more: helpers {helpers.total()}, imports {sum(f.imports for f in each)}"
    yield f"  {said}, broken statements {sum(f.broken for f in each)}"
    yield "  " + ", ".join(f"{name} {lines} in {files[name]}" for name, lines in helpers.most_common(12))


def files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def row(name: str, each: list[Lengths]) -> str:
    source, output = sum(f.source for f in each), sum(f.output for f in each)
    ratios = [f.ratio for f in each]
    return (
        f"{name:40} {len(each):5} {source:7} {sum(f.own for f in each):7} {sum(f.module for f in each):7} {output:7}"
        f" {output / source:7.2f} {statistics.median(ratios):7.2f}"
        f" {max(ratios):7.2f} {sum(f.helpers.total() for f in each) / output:8.0%} {sum(f.turns for f in each):6}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", type=Path, nargs="*", default=[ROOT / own for own in OWN])
    parser.add_argument("--each", action="store_true", help="a row for each file, too")
    parser.add_argument("--surplus", action="store_true", help="where the lines are that the source does not have")
    options = parser.parse_args()
    print(f"{'':40} files      in     own  module     sum   ratio  median   worst  helpers  turns")
    for path in options.paths:
        each = [f for f in map(lengths, files([path])) if f is not None]
        if options.each:
            for one in each:
                print(row(one.path.name, [one]))
        if each:
            print(row(str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name), each))
            if options.surplus:
                print("\n".join(surplus(each)))


if __name__ == "__main__":
    main()
