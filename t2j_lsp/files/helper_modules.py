"""The module beside converted files that holds their helpers: where it stands, how it is imported, and its text."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from t2j_lsp.contract import HELPERS_DOCSTRING, own_helpers
from t2j_lsp.symbols import bound_names

from .importers import imported_elsewhere, imported_through_its_folder
from .written import has_base, is_written

NAME = "torch_helpers"


def home(path: Path, top: Path) -> tuple[Path, str]:
    """The folder for the helper module of the file at ``path``, and its name in the file's import.

    Files of one package share a module in the outermost folder of the package, at most ``top``, and import it
    relatively; files outside of packages, and notebooks, which are in none, import the module that stands beside them.
    """
    folder = path.parent
    if path.suffix == ".ipynb" or not (folder / "__init__.py").exists():
        return folder, NAME
    dots = "."
    while folder != top and (folder.parent / "__init__.py").exists():
        folder = folder.parent
        dots += "."
    return folder, dots + NAME


@dataclass(frozen=True)
class OwnModule:
    """The module of one file's helpers, which stands beside it."""

    path: Path
    name: str
    """How the file imports it."""


def own_module(source: Path, text: str, target: Path) -> OwnModule | None:
    """Where the helpers of ``source``, whose text this is, may go once it is written to ``target``.

    None where they stay in the file: it is no module, the name is taken, or it isn't sure how the file would import
    what stands beside it. Files that are run find it in their folder, and those that others import in their package.
    """
    path = own_helpers(target)
    tree = _parsed(text.removeprefix("\ufeff"))
    if path is None or tree is None or is_foreign(path) or target.exists() and not target.is_file():
        return None
    imports = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)]
    named = {n.module or "" for n in imports if isinstance(n, ast.ImportFrom)}
    named |= {alias.name for n in imports for alias in n.names}
    if path.stem in {name.rpartition(".")[2] for name in named}:
        return None  # what it imports from there stays what it was
    if any(isinstance(n, ast.ImportFrom) and n.level for n in imports):
        return OwnModule(path, f".{path.stem}")
    in_package = (target.parent / "__init__.py").exists()
    if not in_package and not imported_through_its_folder(source):
        return OwnModule(path, path.stem)
    return None if _is_run(tree) else OwnModule(path, f".{path.stem}")


def is_foreign(path: Path) -> bool:
    """Whether something stands at a path that t2j did not write, edited or not."""
    real = Path(os.path.realpath(path))
    try:
        data = real.read_bytes()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return bool(data) and not (has_base(real) or is_written(real, data) or data.startswith(HELPERS_DOCSTRING.encode()))


def idle_module(target: Path) -> Path | None:
    """The module of helpers beside a file that nothing needs any more: t2j wrote all of it, and no file imports it."""
    path = own_helpers(target)
    if path is None or not path.is_file() or path.is_symlink():
        return None
    data = path.read_bytes()
    is_ours = data.startswith(HELPERS_DOCSTRING.encode()) and is_written(Path(os.path.realpath(path)), data)
    return path if is_ours and not imported_elsewhere(path) else None


def _is_run(tree: ast.Module) -> bool:
    """Whether a file may be run by itself, and not only imported."""
    from t2j_lsp.translate.source.folding.uses import runs

    return runs(tree)


def module_source(names: Iterable[str]) -> str:
    """The text of a module that defines these helpers and all they use."""
    # The translator is loaded where a text is made: who only wants to know the name does without.
    from t2j_lsp.translate.output.helper_module import module_text
    from t2j_lsp.translate.source.helpers import closure

    return module_text(closure(set(names)))


def helpers_in(text: str) -> set[str]:
    """The helpers that a module defines; none where it can't be parsed."""
    from t2j_lsp.translate.source.helpers import helper_names

    tree = _parsed(text)
    return set(bound_names(tree.body) & helper_names()) if tree is not None else set()


@dataclass(frozen=True)
class Extended:
    """A module that gets helpers."""

    fresh: str
    """The module as t2j writes it, with what it had and what it gets."""
    kept: str
    """The module as it is, with what it lacked behind it; everything that stands there stays."""
    complete: bool
    """Whether it lacked nothing."""
    as_written: bool
    """Whether it is as t2j writes it, by whomever it was put there."""


def extended(text: str, names: Iterable[str]) -> Extended:
    """A module's text with these helpers and all they use. Raises SyntaxError where it can't be parsed."""
    from t2j_lsp.translate.output.imports import sort_imports
    from t2j_lsp.translate.source.helpers import closure

    tree = ast.parse(text)
    own, bound = helpers_in(text), bound_names(tree.body)
    fresh = module_source(own | set(names))
    as_written = bool(own) and text.replace("\r\n", "\n") == module_source(own)
    lacking = [helper for helper in closure(set(names)) if helper.name not in bound]
    if not lacking:
        return Extended(fresh, text, True, as_written)
    newline = "\r\n" if "\r\n" in text else "\n"
    imports = _imports(tree)
    lines = sort_imports({line for helper in lacking for line in helper.imports if _imports(ast.parse(line)) - imports})
    own_lines = text.replace("\r\n", "\n").split("\n")
    place = _behind_imports(tree)
    gap = [""] if lines and place and not imports else []
    parts = [*own_lines[:place], *gap, *lines, *own_lines[place:]]
    blocks = ["\n".join(parts).rstrip(), *(helper.text.rstrip("\n") for helper in lacking)]
    kept = "\n\n\n".join(blocks) + "\n"
    return Extended(fresh, kept.replace("\n", newline), False, as_written)


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _imports(tree: ast.Module) -> set[str]:
    """Every import at the top level, one name each."""
    modules: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            modules |= {ast.unparse(ast.Import([alias])) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules |= {ast.unparse(ast.ImportFrom(node.module, [alias], node.level)) for alias in node.names}
    return modules


def _behind_imports(tree: ast.Module) -> int:
    """The number of lines up to the last import at the top of a module, or its docstring."""
    last = 0
    for index, node in enumerate(tree.body):
        docstring = index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not docstring and not isinstance(node, ast.Import | ast.ImportFrom):
            break
        last = node.end_lineno or last
    return last
