"""``t2j explain``: the rule for a torch name, its caveats, an example."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from t2j_lsp.contract import JSON_VERSION, RuleDoc, T2JError
from t2j_lsp.explain import FIDELITY_TEXT, close_names, example, explain, readable
from t2j_lsp.fixes.offers import rows, text
from t2j_lsp.fixes.own_fixes import similar_with_own
from t2j_lsp.fixes.record import SimilarPair

from .output import Subparsers, write_json


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "explain",
        help="show the rule for a torch name",
        description="Show what a torch name becomes, what to know about it, and an example.",
    )
    parser.add_argument("name", metavar="NAME", help="torch.cat, F.gelu, nn.Linear, Tensor.view, ...")
    parser.add_argument("--json", metavar="FILE", help="write it as JSON (- for standard output, without the text)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the explanation; T2JError with close matches where there is no rule."""
    explanation = explain(arguments.name)
    if explanation is None:
        close = close_names(arguments.name)
        hint = f"; did you mean {', '.join(close)}?" if close else ""
        raise T2JError(f"no rule for {arguments.name}{hint}")
    name, doc = explanation
    similar = similar_with_own().about(name)
    if arguments.json:
        write_json(arguments.json, report(name, doc, similar))
    if arguments.json != "-":
        print("\n".join(_lines(name, doc)))
        if similar:
            print(f"\n{with_it(len(similar))}:")
        for one in similar:
            print(f"\n{text(one.pair)}")
    return 0


def report(name: str, doc: RuleDoc, similar: list[SimilarPair]) -> dict[str, Any]:
    """The ``--json`` form: the rule's record, and ``similar``: fixed bugs of conversions of this name."""
    return {"version": JSON_VERSION, **asdict(doc), "name": name, "similar": rows(similar)}


def with_it(number: int) -> str:
    return "1 mistake with it was fixed" if number == 1 else f"{number} mistakes with it were fixed"


def _lines(name: str, doc: RuleDoc) -> list[str]:
    signatures = doc.signature.split(" | ")
    lines = list(signatures)
    if not any(signature.startswith(name) for signature in signatures):
        lines.insert(0, f"{name}, by the rule for")
    lines.append("")
    if doc.jax:
        lines.append(f"JAX:      {readable(doc.jax)}")
    lines.append(f"Fidelity: {doc.fidelity} ({FIDELITY_TEXT[doc.fidelity]})")
    if doc.note:
        lines.append(f"Note:     {doc.note}")
    if doc.reason:
        lines.append(f"Reason:   {doc.reason}")
    shown = example(name, doc)
    if shown:
        before, after = (text.replace("\n", "\n    ") for text in shown)
        lines += ["", "Example:", f"    {before}", "becomes", f"    {after}"]
    if doc.subject:
        lines += ["", f"Rule in rules/{doc.subject}.py"]
    return lines
