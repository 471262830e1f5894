"""How long the output is, against its source. The bars: the median file at most 1.3 times as long, the worst 2.0.

    python -m benchmarks.output_length [FILE_OR_FOLDER ...] [--each] [--surplus]

Lines of code are counted: comments, empty lines and docstrings apart, on both sides. Files without torch are left out.
One row for each file of a small set, one for each folder: lines in, lines out, their ratio (median and worst file), the
share of helpers in the output, and the turns of axes that the source does not have. Without arguments, the project's
own training scripts, models and examples. `--surplus` says where the lines are that the source does not have: in
helpers, by name, in imports, and in statements that are broken over more lines than the source's are.
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

ROOT = Path(__file__).parent.parent
OWN = ("tests/translate/scripts", "tests/translate/models", "examples")
TURN = re.compile(r"\b(moveaxis|transpose|swapaxes)\(")


@dataclass(frozen=True)
class Lengths:
    """What one file became."""

    path: Path
    source: int
    output: int
    helpers: Counter[str]
    """Lines of each helper."""
    turns: int
    imports: int
    """More lines of imports than in the source."""
    broken: int
    """More lines behind the first of a statement that has no body; helpers apart."""

    @property
    def ratio(self) -> float:
        return self.output / self.source


def code_lines(text: str) -> set[int]:
    """The lines on which code stands."""
    tree = ast.parse(text.lstrip("\ufeff"))
    said: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            said.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    return {n for n, line in lines if line.strip() and not line.lstrip().startswith("#")} - said


def lengths(path: Path) -> Lengths | None:
    """The lengths of a file and its conversion; None without torch, or where it can't be converted."""
    try:
        text = path.read_text(encoding="utf-8")
        done = convert(text, path=str(path))
    except (SourceError, UnicodeDecodeError):
        return None
    if done.code == done.source or not code_lines(text):
        return None
    code = code_lines(done.code)
    copied = {name for name, _ in done.needs.written}
    helpers: Counter[str] = Counter()
    tree = ast.parse(done.code.lstrip("\ufeff"))
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else node
        name = getattr(target, "name", getattr(target, "id", None))
        if name in copied:
            helpers[name] += len(code & set(range(node.lineno, (node.end_lineno or node.lineno) + 1)))
    turns = len(TURN.findall(done.code)) - len(TURN.findall(text))
    own = [node for node in tree.body if getattr(node, "name", None) not in copied]
    before, after = ast.parse(text.lstrip("\ufeff")).body, own
    imports = _lines(after, ast.Import | ast.ImportFrom) - _lines(before, ast.Import | ast.ImportFrom)
    broken = _behind_the_first(after) - _behind_the_first(before)
    return Lengths(path, len(code_lines(text)), len(code), helpers, turns, imports, broken)


def _lines(body: Iterable[ast.stmt], kind: type[ast.stmt] | UnionType) -> int:
    return sum((n.end_lineno or n.lineno) - n.lineno + 1 for n in body if isinstance(n, kind))


def _behind_the_first(body: Iterable[ast.stmt]) -> int:
    """Lines behind the first of statements without a body, docstrings and imports apart."""
    nodes = [n for one in body for n in ast.walk(one) if isinstance(n, ast.stmt) and not hasattr(n, "body")]
    plain = [n for n in nodes if not isinstance(n, ast.Expr) or not isinstance(n.value, ast.Constant)]
    return _lines(plain, ast.stmt) - len(plain) - _lines(plain, ast.ImportFrom) + _count(plain, ast.ImportFrom)


def _count(body: Iterable[ast.stmt], kind: type[ast.stmt]) -> int:
    return sum(isinstance(n, kind) for n in body)


def surplus(found: list[Lengths]) -> Iterator[str]:
    """Where the lines are that the sources do not have."""
    helpers = sum((f.helpers for f in found), Counter[str]())
    files = Counter(name for f in found for name in f.helpers)
    more = sum(f.output - f.source for f in found)
    said = f"{more} more: helpers {helpers.total()}, imports {sum(f.imports for f in found)}"
    yield f"  {said}, broken statements {sum(f.broken for f in found)}"
    yield "  " + ", ".join(f"{name} {lines} in {files[name]}" for name, lines in helpers.most_common(12))


def files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def row(name: str, found: list[Lengths]) -> str:
    source, output = sum(f.source for f in found), sum(f.output for f in found)
    ratios = [f.ratio for f in found]
    return (
        f"{name:40} {len(found):5} {source:7} {output:7} {output / source:7.2f} {statistics.median(ratios):7.2f}"
        f" {max(ratios):7.2f} {sum(f.helpers.total() for f in found) / output:8.0%} {sum(f.turns for f in found):6}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", type=Path, nargs="*", default=[ROOT / own for own in OWN])
    parser.add_argument("--each", action="store_true", help="a row for each file, too")
    parser.add_argument("--surplus", action="store_true", help="where the lines are that the source does not have")
    options = parser.parse_args()
    print(f"{'':40} files      in     out   ratio  median   worst  helpers  turns")
    for path in options.paths:
        found = [f for f in map(lengths, files([path])) if f is not None]
        if options.each:
            for one in found:
                print(row(one.path.name, [one]))
        if found:
            print(row(str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name), found))
            if options.surplus:
                print("\n".join(surplus(found)))


if __name__ == "__main__":
    main()
