"""Comments and blank lines put anywhere."""

from __future__ import annotations

import random

import libcst as cst

from benchmarks.metamorphic.change import change
from benchmarks.metamorphic.source import Source

_TEXTS = (
    "# the next step",
    "# type: ignore",
    "# x = self.conv(x)  # torch.nn, jax",
    "# TODO: nn.Linear here?",
    "# noqa: E501 # pylint: disable=all",
    "# fmt: skip",
    "# type: torch.Tensor",
)


class _Comment(cst.CSTTransformer):
    """Puts comments above and behind simple statements, heads of blocks and their ends."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine:
        if self.rng.random() < 0.6:
            above = cst.EmptyLine(comment=cst.Comment(self.rng.choice(_TEXTS)))
            updated_node = updated_node.with_changes(leading_lines=[above, *updated_node.leading_lines])
        if updated_node.trailing_whitespace.comment is None and self.rng.random() < 0.4:
            updated_node = updated_node.with_changes(trailing_whitespace=self._behind())
        return updated_node

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        if updated_node.header.comment is None and self.rng.random() < 0.4:
            updated_node = updated_node.with_changes(header=self._behind())
        below = cst.EmptyLine(comment=cst.Comment(self.rng.choice(_TEXTS)))
        return updated_node.with_changes(footer=[*updated_node.footer, below])

    def leave_Comma(self, original_node: cst.Comma, updated_node: cst.Comma) -> cst.Comma:
        after = updated_node.whitespace_after
        if isinstance(after, cst.ParenthesizedWhitespace) and after.first_line.comment is None:
            return updated_node.with_changes(whitespace_after=after.with_changes(first_line=self._behind()))
        return updated_node

    def _behind(self) -> cst.TrailingWhitespace:
        return cst.TrailingWhitespace(cst.SimpleWhitespace("  "), cst.Comment(self.rng.choice(_TEXTS)))


@change("comments anywhere")
def comments_anywhere(source: Source, rng: random.Random) -> cst.Module:
    """Comments above and behind statements, behind heads, at the ends of blocks, inside brackets."""
    return source.module.visit(_Comment(rng))
