"""Recognises answers that are the same but for their dress: simhash over normalised tokens, then the tokens themselves.

Charikar, "Similarity estimation techniques from rounding algorithms" (2002): 64 bits, at most three of them apart.
The hash only preselects: a repair often changes one token of many, and a hash alone would take it for what failed.
"""

from __future__ import annotations

import ast
import hashlib
import io
import textwrap
import tokenize
from dataclasses import dataclass

BITS = 64
DISTANCE = 3
_WIDTH = 3
_LAYOUT = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


@dataclass(frozen=True)
class Fingerprint:
    """A piece of code without comments, layout, quotes, and the names that it gives its own variables."""

    hash: int
    tokens: tuple[str, ...]

    def same(self, other: Fingerprint) -> bool:
        """Whether two pieces of code are one but for their dress."""
        return (self.hash ^ other.hash).bit_count() <= DISTANCE and self.tokens == other.tokens


def fingerprint(code: str) -> Fingerprint:
    """The fingerprint of a piece of code, whether it parses or not."""
    words = _tokens(textwrap.dedent(code))
    return Fingerprint(_simhash(words), tuple(words))


def _simhash(words: list[str]) -> int:
    votes = [0] * BITS
    for start in range(max(1, len(words) - _WIDTH + 1)):
        shingle = "\0".join(words[start : start + _WIDTH])
        number = int.from_bytes(hashlib.blake2b(shingle.encode(), digest_size=BITS // 8).digest(), "big")
        for bit in range(BITS):
            votes[bit] += 1 if number >> bit & 1 else -1
    return sum(1 << bit for bit, vote in enumerate(votes) if vote > 0)


def _tokens(code: str) -> list[str]:
    try:
        read = [t for t in tokenize.generate_tokens(io.StringIO(code).readline) if t.type not in _LAYOUT]
    except (tokenize.TokenError, SyntaxError):
        return code.split()
    names = {name: f"v{number}" for number, name in enumerate(_assigned(code))}
    return [names.get(t.string, t.string).replace('"', "'") for t in read]


def _assigned(code: str) -> list[str]:
    """Names that only this code gives a value, in order: another name for them is no other program."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return []
    inside = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.Lambda)]
    names = [n.id for f in inside for n in ast.walk(f) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return list(dict.fromkeys(names))
