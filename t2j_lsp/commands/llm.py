"""The options of ``t2j convert`` that ask a language model, and what is said of its answers."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from t2j_lsp.api import FileConversion
from t2j_lsp.contract import T2JError

from .output import counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``--llm`` and what goes with it."""
    group = parser.add_argument_group("asking a language model")
    group.add_argument(
        "--llm",
        choices=("off", "auto", "always"),
        default="off",
        help="auto: send the file to a model where rules refuse a part of it; its answers are run and checked. always: "
        "ask for what the rules convert, too; their code stays unless an answer is verified",
    )
    group.add_argument("--model", metavar="NAME,...", help="models, cheap ones first (default: T2J_LLM_MODELS)")
    group.add_argument("--base-url", metavar="URL", help="an endpoint of OpenAI's protocol (default: T2J_LLM_BASE_URL)")
    group.add_argument(
        "--embeddings", metavar="NAME", help="a model of embeddings there, to find fixed bugs (T2J_LLM_EMBEDDINGS)"
    )
    group.add_argument("--rounds", metavar="N", type=int, default=7, help="rounds with each model (default: 7)")
    group.add_argument("--dialogues", metavar="FILE", help="add what was asked and answered to a file")


def completed(conversion: FileConversion, arguments: argparse.Namespace) -> FileConversion:
    """The conversion with a model's answers for what rules refused, where that is asked for."""
    always = arguments.llm == "always"
    if arguments.llm == "off" or not (conversion.translation.gaps or (always and conversion.translation.converted)):
        return conversion
    if conversion.cells is not None:
        raise T2JError("--llm takes .py files; a notebook is not checked")
    from t2j_lsp.assist.asking import ask, embeddings, endpoints
    from t2j_lsp.assist.drafts import Budget

    models = endpoints(arguments.model, arguments.base_url)
    embed = embeddings(arguments.embeddings, arguments.base_url)
    hosts = ", ".join(dict.fromkeys(f"{m.model} at {m.host}" for m in (*models, *([embed] if embed else ()))))
    print(f"{conversion.path}: sending this file to {hosts}", file=sys.stderr)
    answered, result = ask(
        conversion,
        models,
        budget=Budget(rounds=arguments.rounds),
        always=always,
        embed=embed,
        dialogues=Path(arguments.dialogues) if arguments.dialogues else None,
        on_progress=lambda line: print(f"{conversion.path}: {line}", file=sys.stderr),
    )
    verified = sum(draft.verified for draft in result.drafts.values())
    kept = sum(span.optional for span in result.left)
    said = f"{counted(verified, 'span')} verified, {counted(len(result.left) - kept, 'span')} left"
    said += f", {counted(kept, 'span')} as the rules convert it" if kept else ""
    spent = f"{counted(result.rounds, 'round')}, {result.tokens} tokens"
    print(f"{conversion.path}: {said} ({result.ended}; {spent})", file=sys.stderr)
    return answered
