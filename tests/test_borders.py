"""Modules import what the table of `borders` lets them, read with ``ast``; no circles, and no upward import.

Imports under ``if TYPE_CHECKING:`` count as well: a type is a dependency.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

import t2j_lsp
import t2j_lsp.cli

from .borders import (
    FLOORS,
    JAX,
    MODULES,
    PACKAGE,
    ROOT,
    TORCH,
    allowed,
    imported,
    parsed,
    statements,
    strings,
    text_of,
    within,
)
from .floors import PARTS, circles, floors, rooms_of


def test_modules_import_only_what_their_parts_may() -> None:
    wrong = [
        f"{module}:{line} may not import {name}"
        for module, file in MODULES.items()
        for line, name in imported(file, module)
        if not allowed(module, name)
    ]
    assert wrong == []


def test_a_worker_imports_torch_or_jax_and_never_both() -> None:
    for module, file in MODULES.items():
        if within(module, "t2j_lsp.check.workers"):
            tops = {name.split(".")[0] for _, name in imported(file, module)}
            assert not (tops & TORCH and tops & JAX), f"{module} imports both frameworks"


def module_level(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements that run on import: the top level with its ``if`` and ``try`` blocks and class bodies."""
    todo: list[ast.AST] = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            todo.extend(node.orelse)
            continue
        if isinstance(node, ast.stmt):
            yield node
        todo.extend(child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))


def test_only_weights_and_workers_load_torch_or_jax_on_import() -> None:
    heavy = TORCH | JAX | {"safetensors", "openai", "codebleu", "scipy"}
    free = ("t2j_lsp.weights", "t2j_lsp.check.workers", "t2j_lsp.rules.helpers")
    for module, file in MODULES.items():
        if any(within(module, part) for part in free):
            continue
        for node in module_level(parsed(file)):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            else:
                continue
            assert not {n.split(".")[0] for n in names} & heavy, f"{module}:{node.lineno} loads {names}"


def test_rules_and_retrieval_import_their_siblings_relatively() -> None:
    for module, file in MODULES.items():
        if not (within(module, "t2j_lsp.rules") or within(module, "t2j_lsp.retrieval")):
            continue
        for node in statements(parsed(file)):
            if isinstance(node, ast.ImportFrom) and not node.level:
                name = node.module or ""
                tops = ("t2j_lsp.rules", "t2j_lsp.retrieval", "rules", "retrieval")
                assert not any(within(name, top) for top in tops), f"{module}:{node.lineno}: from {name} import"


def test_only_plugins_names_the_plugged_in_packages() -> None:
    plugged_in = ("t2j_lsp.rules", "t2j_lsp.retrieval")
    naming = {module for module, text in strings(*plugged_in) if text in plugged_in}
    assert {module for module in naming if not any(within(module, part) for part in plugged_in)} == {"t2j_lsp.plugins"}


CONVERT_ONLY = """
import sys
import t2j_lsp, t2j_lsp.cli
from t2j_lsp import convert
out = convert("import torch\\nimport torch.nn as nn\\ny = torch.cat([torch.ones(2), torch.zeros(2)], dim=0)\\n")
assert "torch" not in out.code, out.code
print(*sorted({name.split(".")[0] for name in sys.modules}))
"""


def test_a_conversion_loads_neither_torch_nor_jax() -> None:
    run = subprocess.run([sys.executable, "-c", CONVERT_ONLY], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert run.returncode == 0, run.stderr
    loaded = set(run.stdout.split())
    assert "t2j_lsp" in loaded
    assert not loaded & {"torch", "jax", "jaxlib", "flax", "optax", "safetensors", "openai", "pygls", "numpy"}


SERVER_ONLY = """
import sys
from t2j_lsp.lsp.serving import server_with_features
server_with_features()
print(*(name for name in sys.modules if name.startswith(("t2j_lsp.assist", "t2j_lsp.translate", "libcst", "numpy"))))
"""


def test_the_server_starts_without_what_its_children_do() -> None:
    run = subprocess.run([sys.executable, "-c", SERVER_ONLY], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == []


OWN_MODULE = re.compile(rf"{PACKAGE}(\.\w+)+")
BY_STRING = {
    ("t2j_lsp.check", "t2j_lsp.api"): "the package is called as a function: t2j_lsp.check(...)",
    ("t2j_lsp.plugins", "t2j_lsp.rules"): "the plugged-in package; nothing else names it",
    ("t2j_lsp.plugins", "t2j_lsp.retrieval"): "the plugged-in package; nothing else names it",
    ("t2j_lsp.translate.output.imports", "t2j_lsp.rules.helpers"): "text of an import in the output",
    ("t2j_lsp.translate.expressions.needs", "t2j_lsp.torch_state"): "text of an import in the output",
    ("t2j_lsp.translate.expressions.needs", "t2j_lsp.load_torch_state"): "text of an import in the output",
}
"""Modules that are named by string and that an import could not name, with the reason."""


def named_by_string() -> set[tuple[str, str]]:
    """Own modules that stand in a string: of ``import_module``, of ``python -m``."""
    return {(module, text) for module, text in strings(f"{PACKAGE}.") if OWN_MODULE.fullmatch(text)}


def test_modules_named_by_string_are_there_and_obey_the_table() -> None:
    named = named_by_string()
    assert BY_STRING.keys() <= named
    for module, target in named:
        assert target in MODULES or target.removeprefix(f"{PACKAGE}.") in t2j_lsp.__all__, f"{module}: no {target}"
        assert allowed(module, target) or (module, target) in BY_STRING, f"{module} may not name {target}"


def test_modules_whose_names_are_put_together_are_there() -> None:
    assert {f"t2j_lsp.commands.{name}" for name in t2j_lsp.cli.COMMANDS} <= MODULES.keys()
    assert {f"t2j_lsp.check.workers.{kind}_side.worker" for kind in ("torch", "jax")} <= MODULES.keys()


@pytest.mark.parametrize(
    ("module", "target", "may"),
    [
        ("t2j_lsp.contract", "dataclasses", True),
        ("t2j_lsp.contract", "numpy", False),
        ("t2j_lsp.translate.rule.names", "t2j_lsp.translate.rule.record", True),
        ("t2j_lsp.translate.rule.names", "t2j_lsp.check.run", False),
        ("t2j_lsp.rules.linear", "t2j_lsp.translate.rule.record", True),
        ("t2j_lsp.rules.linear", "t2j_lsp.translate.source.text", False),
        ("t2j_lsp.rules.linear", "torch", False),
        ("t2j_lsp.rules.linear", "jax", False),
        ("t2j_lsp.rules.helpers.pad", "jax.numpy", True),
        ("t2j_lsp.rules.helpers.pad", "torch", False),
        ("t2j_lsp.check.run", "t2j_lsp.check.protocol", True),
        ("t2j_lsp.check.run", "jax", False),
        ("t2j_lsp.check.run", "t2j_lsp.check.workers.torch_side.worker", False),
        ("t2j_lsp.check.workers.jax_side.worker", "t2j_lsp.weights", True),
        ("t2j_lsp.check.workers.jax_side.worker", "t2j_lsp.translate", False),
        ("t2j_lsp.check.workers.jax_side.worker", "t2j_lsp.check.run", False),
        ("t2j_lsp.cli", "t2j_lsp.check.run", True),
        ("t2j_lsp.cli", "t2j_lsp.check.workers", False),
        ("t2j_lsp.cli", "pygls", False),
        ("t2j_lsp.lsp.server", "pygls.server", True),
        ("t2j_lsp.lsp.server", "t2j_lsp.check.run", True),
        ("t2j_lsp.lsp.server", "t2j_lsp.check.workers", False),
        ("t2j_lsp.lsp.server", "t2j_lsp.cli", False),
        ("t2j_lsp.lsp.server", "t2j_lsp.weights", False),
        ("t2j_lsp.lsp.server", "t2j_lsp.rules.linear", False),
    ],
)
def test_the_table_says(module: str, target: str, may: bool) -> None:
    assert allowed(module, target) is may


@pytest.mark.parametrize("part", FLOORS)
def test_imports_only_go_down(part: str) -> None:
    """Types count, too. What stands in the part itself may import all its packages; none of them imports it."""
    order = FLOORS[part]

    def floor(module: str) -> int | None:
        name = module.removeprefix(part + ".").partition(".")[0]
        return order.index(name) if name in order else None

    inside = [m for m in MODULES if within(m, part) and m.count(".") > part.count(".") + 1]
    packages = {m.removeprefix(part + ".").partition(".")[0] for m in inside}
    assert packages - {"workers"} == set(order), "each package has its floor in the table"
    upward = [
        (module, target)
        for module, file in MODULES.items()
        if within(module, part) and (place := floor(module)) is not None
        for _, target in imported(file, module)
        if within(target, part) and (other := floor(target)) is not None and other > place
    ]
    assert not upward


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]


def test_floors_are_counted() -> None:
    imports = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a", "b"}, "e": set[str]()}
    assert floors(imports) == [["b", "c", "e"], ["a"], ["d"]]


def test_the_rooms_of_the_translator_stand_on_few_floors() -> None:
    """Eight, which ``python -m tests.floors`` draws."""
    assert len(floors(rooms_of("t2j_lsp.translate"))) <= 8


@pytest.mark.parametrize("part", PARTS)
def test_no_room_imports_itself_through_others(part: str) -> None:
    assert circles(rooms_of(part)) == []


def test_no_module_imports_itself_through_others() -> None:
    """Types count, too: what one module must know of another, it can't be read without."""
    imports = {
        module: {target for _, target in imported(file, module) if target in MODULES and target != module}
        for module, file in MODULES.items()
    }
    assert circles(imports) == []


def test_every_class_has_a_name_of_its_own() -> None:
    """But for what the torch side and the JAX side of the workers do alike."""
    homes: dict[str, list[str]] = {}
    for module, file in MODULES.items():
        if not any(within(module, part) for part in ("t2j_lsp.rules", "t2j_lsp.retrieval")):
            for node in parsed(file).body:
                if isinstance(node, ast.ClassDef):
                    homes.setdefault(node.name, []).append(re.sub(r"\b(torch|jax)_side\.\w+", "side", module))
    assert {name: modules for name, modules in homes.items() if len(set(modules)) > 1} == {}


LONGEST = 400
LONGER = {"t2j_lsp.symbols": "its walks and tables are asked together by every call"}


def test_modules_are_short() -> None:
    """A file that grows longer is two subjects."""
    assert {module for module, file in MODULES.items() if text_of(file).count("\n") > LONGEST} == LONGER.keys()


EMPTY_WORDS = {"found", "here", "there", "ours", "theirs", "told", "aside", "surroundings", "special"}
"""What says of a value how somebody came by it, or where it stands in a sentence, and not what it is."""
PROGRAMS = ("tests/programs", "tests/projects", "tests/translate/models", "tests/translate/scripts")
"""Folders of programs that are converted, which are written as their authors write."""
OF_MERGES = (
    "t2j_lsp/files/merge.py",
    "t2j_lsp/files/sources.py",
    "t2j_lsp/lsp/analysis/process.py",
    "tests/test_merge.py",
)
"""What merges two texts, which are ``ours`` and ``theirs`` as git calls them."""


def test_names_say_what_a_value_is() -> None:
    files = {
        file.relative_to(ROOT).as_posix(): file
        for folder in ("t2j_lsp", "rules", "retrieval", "benchmarks", "tests", "docs", "examples")
        for file in (ROOT / folder).rglob("*.py")
        if any(word in text_of(file) for word in EMPTY_WORDS)
    }
    wrong = [
        f"{path}:{node.lineno} {name}"
        for path, file in files.items()
        if not path.startswith(PROGRAMS)
        for node in ast.walk(ast.parse(text_of(file)))
        if (name := _bound_name(node)) in EMPTY_WORDS and not (name in ("ours", "theirs") and path in OF_MERGES)
    ]
    assert wrong == []


def _bound_name(node: ast.AST) -> str | None:
    """The name that a node gives to something."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            return name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
            return name
    return None
