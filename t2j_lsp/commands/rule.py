"""``t2j rule new``: starts the rule of a torch name, and its sample, in a checkout of t2j."""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

from t2j_lsp.contract import T2JError
from t2j_lsp.explain import explain
from t2j_lsp.files.sources import write_atomically
from t2j_lsp.plugins import load_rules
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.names import canonical
from t2j_lsp.translate.rule.record import REGISTRY

from .output import Subparsers

ROOT = Path(__file__).resolve().parents[2]
CALLS, LAYER_SAMPLES = Path("tests/rules/more_samples.py"), Path("tests/rules/layer_samples.py")
SIGNATURE = """
import sys
from tests.rules.torch_signatures import statements
for stated in statements(sys.argv[1]):
    print(", ".join(name if default is None else f"{name}={default}" for name, default in stated.parameters))
    break
"""
"""Prints what the installed torch says of a signature: torch is never imported into t2j's own process."""


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "rule",
        help="start a new rule, in a checkout of t2j",
        description="Write the first lines of a rule and of its sample. What is to be filled in is marked TODO, which "
        "the tests refuse.",
    )
    parser.add_argument("action", choices=["new"], help="what to do: start a rule")
    parser.add_argument("name", metavar="NAME", help="torch.unravel_index, torch.nn.Softshrink, ...")
    parser.add_argument("--subject", help="its file in rules/, where the name does not tell: shape, linalg")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write both files and say where to go on; T2JError where the name has a rule, or this is no checkout."""
    for path in new_rule(arguments.name, arguments.subject, ROOT):
        print(f"{path}: fill in what is marked TODO")
    print("then: make docs, and pytest tests/rules")
    return 0


def new_rule(name: str, subject: str | None, root: Path) -> tuple[Path, Path]:
    """Start the rule of ``name`` below ``root``; the files that were written, relative to it."""
    if not (root / "rules").is_dir() or not (root / CALLS).is_file():
        raise T2JError("t2j rule new works in a checkout of t2j only: this is an installed package")
    name = canonical(name)
    if explain(name) is not None:
        raise T2JError(f"{name} has a rule already: t2j explain {name}")
    is_layer = name.startswith("torch.nn.") and name.count(".") == 2 and name[9:10].isupper()
    home = root / "rules" / f"{subject or _subject(name, is_layer)}.py"
    if not home.is_file():
        known = ", ".join(sorted(f.stem for f in home.parent.glob("[a-z]*.py")))
        raise T2JError(f"no subject {home.stem!r}; there are {known}")
    parameters = _parameters(name, root)
    samples = LAYER_SAMPLES if is_layer else CALLS
    if is_layer:
        maker, key, sample = "layer", name.rpartition(".")[2], "one(SIGNED)"
        row = f'layer(\n    "{name}({parameters})",\n    "nnx.TODO()",  # TODO: the layer of Flax, or a helper\n)\n'
        module, table = "layer", "SAMPLES"
    else:
        holes = ", ".join(f"{{{one.partition('=')[0].lstrip('*')}}}" for one in parameters.split(", ") if one)
        maker, key, sample = "Row", name, "call()"
        row = f'Row(\n    "{name}({parameters})",\n    "jnp.TODO({holes})",  # TODO: the equation\n)\n'
        module, table = "record", "MORE"
    text = _importing(home.read_text(encoding="utf-8"), module, maker)
    sampled = _with_entry((root / samples).read_text(encoding="utf-8"), table, f'    "{key}": [{sample}],  # TODO\n')
    write_atomically(home, f"{text.rstrip()}\n\n{row}".encode())
    write_atomically(root / samples, sampled.encode())
    return home.relative_to(root), samples


def _subject(name: str, is_layer: bool) -> str:
    """The file that has most rules of the same package; T2JError where the package is torch itself."""
    load_rules()
    package = name.rpartition(".")[0]
    if package in ("torch", "torch.Tensor") or not name.startswith("torch."):
        raise T2JError(f"say which file {name} belongs to: --subject shape, pointwise, reductions, ...")
    stated = LAYERS.values() if is_layer else REGISTRY
    alike = Counter(one.subject for one in stated if one.name.rpartition(".")[0] == package)
    if is_layer or not alike:
        raise T2JError(f"say which file {name} belongs to: --subject {', '.join(sorted(alike)) or 'NAME'}")
    return alike.most_common(1)[0][0]


def _parameters(name: str, root: Path) -> str:
    """The parameters as the installed torch states them; empty where it states none."""
    asked = [sys.executable, "-c", SIGNATURE, name]
    done = subprocess.run(asked, cwd=root, capture_output=True, text=True, timeout=120)
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        raise T2JError(f"the installed torch has no {name}" if last.startswith("AttributeError") else last)
    return done.stdout.strip()


def _importing(text: str, module: str, name: str) -> str:
    """The text of a rule file that imports what makes the row."""
    source = f"t2j_lsp.translate.rule.{module}"
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and node.module == source and any(a.name == name for a in node.names):
            return text
    head = "from __future__ import annotations\n"
    return text.replace(head, f"{head}\nfrom {source} import {name}\n", 1)


def _with_entry(text: str, table: str, line: str) -> str:
    """The text with ``line`` as the last entry of the dict that ``table`` names."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == table and node.end_lineno is not None:
            lines = text.splitlines(keepends=True)
            return "".join([*lines[: node.end_lineno - 1], line, *lines[node.end_lineno - 1 :]])
    raise T2JError(f"there is no table {table}")
