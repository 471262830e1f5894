"""``t2j explain``: the rule for a torch name, its caveats, an example."""

from __future__ import annotations

import argparse
import re

from ..contract import RuleDoc, T2JError
from ..explain import FIDELITY_TEXT, close_names, example, explain
from .output import Subparsers


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "explain",
        help="show the rule for a torch name",
        description="Show what a torch name becomes, what to know about it, and an example.",
    )
    parser.add_argument("name", metavar="NAME", help="torch.cat, F.gelu, nn.Linear, Tensor.view, ...")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the explanation; T2JError with close matches where there is no rule."""
    found = explain(arguments.name)
    if found is None:
        close = close_names(arguments.name)
        hint = f"; did you mean {', '.join(close)}?" if close else ""
        raise T2JError(f"no rule for {arguments.name}{hint}")
    name, doc = found
    print("\n".join(_lines(name, doc)))
    return 0


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


def readable(template: str) -> str:
    """A template as a reader sees it: ``jnp.concatenate({tensors}, axis={dim?})`` without its braces and marks."""
    return re.sub(r"\{(\w+)[^{}]*\}", r"\1", template)
