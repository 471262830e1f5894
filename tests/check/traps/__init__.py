"""For the rows of TRAPS.md: PyTorch code, a right conversion, and a plausible wrong one."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True)
class Trap:
    """``row`` is the row's number; ``comment`` the ``# t2j:`` comment above the torch object.

    Texts that don't start with ``def`` or ``class`` are the body of ``f``; its parameters are those of the comment.
    """

    row: int
    comment: str
    torch: str
    right: str
    wrong: str

    def text(self, side: str) -> str:
        body = dedent(getattr(self, side)).strip("\n")
        comment = f"# t2j: {self.comment}\n" if side == "torch" and self.comment else ""
        if not body.startswith(("def ", "class ", "@", "jax.config")):
            names = [part.split("=")[0].split("<")[0].strip() for part in _entries(self.comment)]
            names = [name for name in names if name != "raises"]
            indented = "\n".join(f"    {line}" for line in body.splitlines())
            body = f"def f({', '.join(names)}):\n{indented}"
        return f"\n{comment}{body}\n"


def _entries(comment: str) -> list[str]:
    """The entries of a comment, split at the commas outside brackets."""
    parts, depth = [""], 0
    for letter in comment:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
