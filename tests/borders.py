"""Who may import whom: the table of the design, and what each module imports."""

from __future__ import annotations

import ast
import functools
import gc
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "t2j_lsp"
STDLIB = sys.stdlib_module_names | {"__future__"}

TORCH = frozenset({"torch"})
JAX = frozenset({"jax", "flax", "optax"})
RULES = ("t2j_lsp.translate.rule",)
"""What a rule is made of: its record, and the facts, pieces of text and optimizer groups that its functions work on."""
SHARED_WITH_WORKERS = tuple(
    f"t2j_lsp.check.{name}"
    for name in (
        "protocol",
        "crossing",
        "messages",
        "requests",
        "inputs",
        "program.slice",
        "program.marks",
        "program.digest",
        "program.names",
        "program.project",
        "program.trimming",
        "arguments.command_line",
        "arguments.recipe",
        "arguments.pairing",
        "process.budget",
        "process.processes",
        "verdict.initial",
        "difference.trace",
    )
)
"""What a slice of a program is and what goes into it, for both sides of the process border."""
FLOORS = {
    "t2j_lsp.translate": (
        "rule",
        "source",
        "inference",
        "layout",
        "expressions",
        "statements",
        "output",
        "training",
        "rewrites",
        "scan",
        "pure",
    ),
    "t2j_lsp.translate.training": ("program", "optimizers", "data", "steps"),
    "t2j_lsp.check": (
        "program",
        "arguments",
        "process",
        "verdict",
        "difference",
        "training",
        "unit_tests",
        "programs",
    ),
}
"""The packages of a part, lowest first: each imports only itself and those below it."""


@dataclass(frozen=True)
class Border:
    """What one part may import besides the standard library and itself (``part``, as a dotted prefix)."""

    part: str
    own: tuple[str, ...] = ()
    third_party: frozenset[str] = frozenset()


# The most specific prefix that matches a module is its border.
BORDERS = (
    Border("t2j_lsp", own=("t2j_lsp.api", "t2j_lsp.weights")),
    Border("t2j_lsp.contract"),
    Border("t2j_lsp.symbols"),
    Border("t2j_lsp.fixes.record", ("t2j_lsp.contract",)),
    Border("t2j_lsp.plugins", ("t2j_lsp.fixes.record",)),
    Border(
        "t2j_lsp.fixes.offers",
        ("t2j_lsp.assist.judging", "t2j_lsp.contract", "t2j_lsp.files.sources", "t2j_lsp.fixes.record"),
    ),
    Border(
        "t2j_lsp.fixes.own_fixes",
        (
            "t2j_lsp.assist.judging",
            "t2j_lsp.check.program.slice",
            "t2j_lsp.contract",
            "t2j_lsp.fixes.record",
            "t2j_lsp.fixes.offers",
            "t2j_lsp.plugins",
            "t2j_lsp.files.written",
        ),
    ),
    Border(
        "t2j_lsp.translate",
        ("t2j_lsp.contract", "t2j_lsp.plugins", "t2j_lsp.symbols"),
        frozenset({"libcst", "pyflakes"}),
    ),
    Border("t2j_lsp.rules", ("t2j_lsp.contract", *RULES)),
    Border("t2j_lsp.rules.helpers", (), JAX | {"numpy", "PIL"}),
    Border("t2j_lsp.weights", ("t2j_lsp.contract",), JAX | TORCH | {"numpy", "safetensors"}),
    Border("t2j_lsp.retrieval", ("t2j_lsp.contract", "t2j_lsp.fixes.record")),
    Border("t2j_lsp.child", ("t2j_lsp.contract",)),
    Border(
        "t2j_lsp.check",
        (
            *("t2j_lsp.child.frames", "t2j_lsp.contract", "t2j_lsp.files.outline", "t2j_lsp.files.projects"),
            "t2j_lsp.symbols",
        ),
        frozenset({"numpy", "psutil"}),
    ),
    Border(
        "t2j_lsp.check.workers",
        (*SHARED_WITH_WORKERS, "t2j_lsp.child.frames", "t2j_lsp.contract", "t2j_lsp.weights"),
        JAX | TORCH | {"numpy", "ml_dtypes", "pytest"},
    ),
    Border(
        "t2j_lsp.assist.files",
        ("t2j_lsp.api", "t2j_lsp.assist.asking", "t2j_lsp.assist", "t2j_lsp.contract", "t2j_lsp.plugins"),
    ),
    Border(
        "t2j_lsp.assist",
        ("t2j_lsp.assist.files", "t2j_lsp.contract", "t2j_lsp.fixes.record", "t2j_lsp.symbols"),
        frozenset({"openai"}),
    ),
    Border(
        "t2j_lsp.assist.evaluation",
        ("t2j_lsp.assist", "t2j_lsp.contract", "t2j_lsp.fixes.record"),
        frozenset({"codebleu", "scipy"}),
    ),
    Border(
        "t2j_lsp.assist.evaluating",
        (
            *("t2j_lsp.api", "t2j_lsp.assist.asking", "t2j_lsp.assist", "t2j_lsp.check", "t2j_lsp.contract"),
            *("t2j_lsp.files.sources", "t2j_lsp.migration.state", "t2j_lsp.plugins"),
        ),
    ),
    Border(
        "t2j_lsp.assist.asking",
        (
            "t2j_lsp.api",
            "t2j_lsp.assist",
            "t2j_lsp.check",
            "t2j_lsp.contract",
            "t2j_lsp.fixes.record",
            "t2j_lsp.plugins",
        ),
    ),
    Border(
        "t2j_lsp.lsp",
        (
            *("t2j_lsp.__version__", "t2j_lsp.api", "t2j_lsp.contract", "t2j_lsp.explain", "t2j_lsp.plugins"),
            *(f"t2j_lsp.assist.{name}" for name in ("asking", "drafts", "model", "prompts", "repair", "spans")),
            *(
                "t2j_lsp.check",
                "t2j_lsp.child",
                "t2j_lsp.files",
                "t2j_lsp.fixes",
                "t2j_lsp.migration",
                "t2j_lsp.symbols",
                "t2j_lsp.translate",
            ),
            *("t2j_lsp.commands.explain", "t2j_lsp.commands.output"),
        ),
        frozenset({"pygls", "lsprotocol"}),
    ),
    Border("t2j_lsp.api", ("t2j_lsp",), frozenset({"numpy"})),
    Border("t2j_lsp.files.merge"),
    Border("t2j_lsp.files.repointing"),
    Border("t2j_lsp.files.written"),
    Border(
        "t2j_lsp.libraries",
        (
            *("t2j_lsp.api", "t2j_lsp.check.program", "t2j_lsp.contract", "t2j_lsp.files", "t2j_lsp.symbols"),
            "t2j_lsp.translate.source",
        ),
    ),
    Border(
        "t2j_lsp.files.sources",
        ("t2j_lsp.contract", "t2j_lsp.files.merge", "t2j_lsp.files.written", "t2j_lsp.files.projects"),
    ),
    Border("t2j_lsp.files.projects"),
    Border("t2j_lsp.files.importers", ("t2j_lsp.files.projects", "t2j_lsp.files.sources")),
    Border("t2j_lsp.files.outline"),
    Border("t2j_lsp.migration.verdict_store", ("t2j_lsp.contract", "t2j_lsp.files.outline", "t2j_lsp.files.written")),
    Border(
        "t2j_lsp.migration.state",
        (
            "t2j_lsp.contract",
            "t2j_lsp.files.sources",
            "t2j_lsp.files.outline",
            "t2j_lsp.migration.verdict_store",
            "t2j_lsp.files.written",
        ),
    ),
    Border("t2j_lsp.files.cells", ("t2j_lsp.contract",)),
    Border("t2j_lsp.files.notebook", ("t2j_lsp.contract", "t2j_lsp.files.cells", "t2j_lsp.translate")),
    Border("t2j_lsp.codemod", ("t2j_lsp.contract", "t2j_lsp.files", "t2j_lsp.translate"), frozenset({"libcst"})),
    Border(
        "t2j_lsp.files.helper_modules",
        (
            *("t2j_lsp.contract", "t2j_lsp.files.importers", "t2j_lsp.files.written", "t2j_lsp.symbols"),
            "t2j_lsp.translate",
        ),
    ),
    Border("t2j_lsp.explain", ("t2j_lsp.contract", "t2j_lsp.plugins", "t2j_lsp.translate")),
    Border(
        "t2j_lsp.migration.coverage",
        (
            "t2j_lsp.contract",
            "t2j_lsp.files.sources",
            "t2j_lsp.files.cells",
            "t2j_lsp.files.notebook",
            "t2j_lsp.translate",
        ),
    ),
    Border(
        "t2j_lsp.migration.coverage_page",
        (
            "t2j_lsp.contract",
            "t2j_lsp.migration.coverage",
            "t2j_lsp.migration.state",
            "t2j_lsp.migration.verdict_store",
        ),
    ),
    Border("t2j_lsp.__main__", ("t2j_lsp.cli",)),
    Border("t2j_lsp.cli", ("t2j_lsp",), frozenset({"numpy", "rich"})),
    Border("t2j_lsp.commands", ("t2j_lsp",), frozenset({"numpy", "rich"})),
)


def module_files() -> dict[str, Path]:
    """Every module of the package by its installed name."""
    homes = {PACKAGE: ROOT / PACKAGE, f"{PACKAGE}.rules": ROOT / "rules", f"{PACKAGE}.retrieval": ROOT / "retrieval"}
    result = {}
    for prefix, folder in homes.items():
        for file in sorted(folder.rglob("*.py")):
            parts = file.relative_to(folder).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            result[".".join((prefix, *parts))] = file
    return result


MODULES = module_files()


def within(module: str, prefix: str) -> bool:
    return module == prefix or module.startswith(prefix + ".")


def border_of(module: str) -> Border:
    """The most specific border. The package's own ``__init__`` is the only module that plain ``t2j_lsp`` covers."""
    matches = [b for b in BORDERS if within(module, b.part) and (b.part != PACKAGE or module == PACKAGE)]
    assert matches, f"{module} has no row in the table of borders: add one"
    return max(matches, key=lambda b: len(b.part))


@functools.cache
def text_of(file: Path) -> str:
    """The text of a module."""
    return file.read_text(encoding="utf-8")


@functools.cache
def parsed(file: Path) -> ast.Module:
    """The tree of a module, which several tests look into; the garbage collector leaves it alone."""
    tree = ast.parse(text_of(file))
    gc.freeze()
    return tree


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements inside a node, at any depth."""
    for blocks in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, blocks, ()):
            if isinstance(inner, ast.stmt):
                yield inner
            yield from statements(inner)


def strings(*parts: str) -> Iterator[tuple[str, str]]:
    """Each module, and the strings in it, where its text has one of the parts."""
    for module, file in MODULES.items():
        if any(part in text_of(file) for part in parts):
            for node in ast.walk(parsed(file)):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield module, node.value


@functools.cache
def imported(file: Path, module: str) -> tuple[tuple[int, str], ...]:
    """The (line, absolute module) of every import statement in the file, at any depth."""
    return tuple(_imports(file, module))


def _imports(file: Path, module: str) -> Iterator[tuple[int, str]]:
    package = module.split(".") if file.name == "__init__.py" else module.split(".")[:-1]
    for node in statements(parsed(file)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                name = f"{source}.{alias.name}"
                yield node.lineno, name if name in MODULES or source == PACKAGE else source


def allowed(module: str, target: str) -> bool:
    """Whether ``module`` may import ``target``."""
    border = border_of(module)
    top = target.split(".")[0]
    if top in STDLIB:
        return True
    if top != PACKAGE:
        return top in border.third_party
    if within(target, "t2j_lsp.check.workers"):
        return within(module, "t2j_lsp.check.workers")
    if module != PACKAGE and border_of_target(target) == border.part:
        return True
    return any(within(target, own) if own != PACKAGE else True for own in border.own)


def border_of_target(target: str) -> str:
    matches = [b.part for b in BORDERS if within(target, b.part)]
    return max(matches, key=len, default="")
