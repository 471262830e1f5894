"""CodeBLEU against a reference, by the published library, with its default of equal weights."""

from __future__ import annotations

import importlib.util
import logging
from dataclasses import asdict, dataclass

from t2j_lsp.contract import T2JError

PACKAGES = ("codebleu", "tree-sitter", "tree-sitter-python")


@dataclass(frozen=True)
class CodeBleu:
    """The score and its four parts, each from 0 to 1.

    Where nothing of the data flow matches, or the reference has none, the library takes that part as 1 in the score:
    ``dataflow`` is then 0.
    """

    score: float
    ngram: float
    keywords: float
    syntax: float
    dataflow: float

    def to_json(self) -> dict[str, float]:
        return asdict(self)


def code_bleu(reference: str, candidate: str) -> CodeBleu:
    """Ren et al., "CodeBLEU: a Method for Automatic Evaluation of Code Synthesis" (2020): n-grams, n-grams with
    keywords weighing more, syntax trees, data flow. Raises T2JError where the library is missing."""
    try:
        from codebleu import calc_codebleu
    except ImportError:
        raise T2JError("CodeBLEU needs the codebleu package: pip install 't2j-lsp[llm]'") from None
    logging.disable(logging.WARNING)  # It says so whenever a reference has no data flow.
    try:
        scores = calc_codebleu([reference], [candidate], lang="python")
    finally:
        logging.disable(logging.NOTSET)
    return CodeBleu(
        scores["codebleu"],
        scores["ngram_match_score"],
        scores["weighted_ngram_match_score"],
        scores["syntax_match_score"],
        scores["dataflow_match_score"],
    )


def available() -> bool:
    """Whether the library is installed: its parser has no wheels for Python 3.13 and later."""
    return all(importlib.util.find_spec(name) for name in ("codebleu", "tree_sitter_python"))
