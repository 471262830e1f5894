"""The generated pages in ``docs/`` are those that the rules and examples make now, and every finding is explained."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from docs import build
from t2j_lsp.contract import DIFFERS, NOTE_CODES, editor_code
from t2j_lsp.explain import all_docs
from t2j_lsp.lsp.analysis.intact import SYNTAX, TOO_LARGE
from t2j_lsp.lsp.settings import SETTING

from .borders import parsed

ROOT = Path(__file__).resolve().parents[1]


def test_generated_pages_are_fresh() -> None:
    # So the other tests read the pages as they stand.
    assert list(build.stale()) == [], "run: make docs"


def test_every_rule_stands_on_a_page() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in (build.DOCS / "rules").glob("*.md"))
    missing = [doc.name for doc in all_docs().values() if doc.subject and doc.name not in text]
    assert not missing


def test_examples_on_pages_convert_without_gaps_and_leave_no_torch() -> None:
    for model in build.MODELS:
        text = (build.DOCS / "examples" / f"{model}.md").read_text(encoding="utf-8")
        after = text.split("```python\n")[2].split("```")[0]
        assert "TODO(t2j)" not in after
        assert not re.search(r"\btorch\b", re.sub(r'""".*?"""|#.*', "", after, flags=re.DOTALL)), after


def codes() -> set[str]:
    """Every code that a finding can have: the third argument of ``gap``, ``note`` and ``Finding``."""
    result = {*NOTE_CODES.values(), DIFFERS, SYNTAX, TOO_LARGE, SETTING}
    for file in (ROOT / "t2j_lsp").rglob("*.py"):
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.Call) and len(node.args) >= 4:
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name in ("gap", "note", "Finding"):
                    leaves = ast.walk(node.args[2])
                    result |= {
                        leaf.value for leaf in leaves if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str)
                    }
    return result


def test_every_finding_has_its_section_and_every_section_a_finding() -> None:
    text = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    sections = set(re.findall(r"^## `([\w-]+)`$", text, re.MULTILINE))
    assert sections == {editor_code(code) for code in codes()}


def test_the_changelog_has_no_links_into_the_checkout() -> None:
    """It is packaged with the VS Code extension, where such a link leads nowhere: packaging fails."""
    targets = re.findall(r"\]\(([^)]*)\)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert [t for t in targets if not t.startswith("https://")] == []
