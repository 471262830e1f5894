"""``t2j eval``: measures what models make of the places that rules refuse, in a folder of programs."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from t2j_lsp import __version__
from t2j_lsp.assist.drafts import Budget
from t2j_lsp.assist.evaluation import report as reports
from t2j_lsp.assist.evaluation.arms import NAMES, arm
from t2j_lsp.assist.evaluation.cases import EvaluatedProgram
from t2j_lsp.assist.evaluation.code_bleu import PACKAGES, available
from t2j_lsp.assist.evaluation.recording import Placed, QuestionRecorder, Replayer, read_settings, write_settings
from t2j_lsp.assist.evaluation.run import EvaluationSettings
from t2j_lsp.assist.model import Endpoint
from t2j_lsp.contract import T2JError
from t2j_lsp.files.sources import write_atomically

from .output import Subparsers, counted, print_table, progress, write_json

NEEDED = ("openai", "scipy")
WITHOUT_CODE_BLEU = (
    "CodeBLEU is left out: it needs the codebleu package, pip install 't2j-lsp[llm]' with Python 3.12 or earlier"
)


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "eval",
        help="measure what language models add, on a folder of programs",
        description="Ask models for what the rules refuse in the programs of a folder, with each kind of prompt, and "
        "print figures: success, FixCost, CodeBLEU, a judge model's scores, claims, tokens. Their code is run and "
        "checked. A file net_jax.py beside net.py is a reference conversion. Exit code 0: everything was measured.",
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="a folder of .py files, or one file")
    parser.add_argument("--model", metavar="NAME,...", help="models, cheap ones first (default: T2J_LLM_MODELS)")
    parser.add_argument(
        "--base-url", metavar="URL", help="an endpoint of OpenAI's protocol (default: T2J_LLM_BASE_URL)"
    )
    parser.add_argument("--judge", metavar="NAME", help="a model that scores and compares drafts; none by default")
    parser.add_argument("--judge-url", metavar="URL", help="where the judge is (default: as --base-url)")
    parser.add_argument(
        "--prompts",
        metavar="NAME,...",
        help=f"kinds of prompt: {', '.join(NAMES)} (default: standard,retrieved)",
    )
    parser.add_argument("--rounds", metavar="N", type=int, help="rounds with each model (default: 7)")
    parser.add_argument(
        "--price",
        metavar="NAME=IN:OUT",
        action="append",
        default=[],
        help="US dollars of a model for a million tokens in and out; may be repeated",
    )
    kept = parser.add_mutually_exclusive_group()
    kept.add_argument("--record", metavar="DIR", type=Path, help="keep all answers in a new folder")
    kept.add_argument("--replay", metavar="DIR", type=Path, help="take all answers from such a folder; nobody is asked")
    parser.add_argument("--dialogues", metavar="FILE", type=Path, help="add what was asked and answered to a file")
    parser.add_argument("--json", metavar="FILE", help="write everything as JSON (- for standard output)")
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="write the tables as a page")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Evaluate and print. T2JError where a package, a model or a recorded answer is missing."""
    from t2j_lsp.assist.evaluating import evaluated, programs_of

    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise T2JError(f"t2j eval needs {' and '.join(missing)}: pip install 't2j-lsp[llm]'")
    if not arguments.folder.exists():
        raise T2JError(f"{arguments.folder} does not exist")
    programs, errors = programs_of(arguments.folder)
    for error in errors:
        print(f"t2j: {error}", file=sys.stderr)
    settings = _settings(arguments)
    client = _client(arguments, settings, programs)
    asked = sum(bool(program.translation.gaps) for program in programs)
    print(_announced(arguments, settings, asked), file=sys.stderr)
    if any(program.reference for program in programs) and not available():
        print(f"t2j: {WITHOUT_CODE_BLEU}", file=sys.stderr)
    with progress("evaluating", total=asked * len(settings.arms)) as shown:
        programs, result = evaluated(
            programs, settings, client, dialogues=arguments.dialogues, on_progress=shown.step, on_case=shown.advance
        )
    report = reports.to_json(str(arguments.folder), programs, settings, result, _versions())
    if arguments.json:
        write_json(arguments.json, report)
    if arguments.markdown:
        write_atomically(arguments.markdown, reports.markdown(report).encode())
    if arguments.json != "-":
        _print(report)
    return 2 if errors else 0


def _settings(arguments: argparse.Namespace) -> EvaluationSettings:
    """What the arguments ask for; in a replay, what was recorded stands for what they leave open."""
    from t2j_lsp.assist.asking import endpoints

    known: dict[str, Any] = read_settings(arguments.replay) if arguments.replay else {}
    names = arguments.model or ",".join(known.get("models", ())) or None
    prices = dict(map(_price, arguments.price))
    models = [_priced(model, prices) for model in endpoints(names, arguments.base_url)]
    chosen = arguments.prompts.split(",") if arguments.prompts else known.get("arms", ["standard", "retrieved"])
    judge = arguments.judge or known.get("judge")
    judges = [_priced(j, prices) for j in endpoints(judge, arguments.judge_url or arguments.base_url)] if judge else []
    if len(judges) > 1:
        raise T2JError("--judge takes one model")
    return EvaluationSettings(
        tuple(models),
        tuple(map(arm, dict.fromkeys(name.strip() for name in chosen))),
        judges[0] if judges else None,
        Budget(rounds=arguments.rounds or known.get("rounds", Budget().rounds)),
    )


def _priced(endpoint: Endpoint, prices: dict[str, tuple[float, float]]) -> Endpoint:
    return replace(endpoint, price=prices.get(endpoint.model, endpoint.price))


def _price(text: str) -> tuple[str, tuple[float, float]]:
    name, _, prices = text.rpartition("=")
    try:
        tokens_in, tokens_out = map(float, prices.split(":"))
    except ValueError:
        raise T2JError(f"--price takes NAME=IN:OUT, not {text!r}") from None
    return name, (tokens_in, tokens_out)


def _client(
    arguments: argparse.Namespace, settings: EvaluationSettings, programs: Sequence[EvaluatedProgram]
) -> Placed:
    if arguments.replay:
        return Replayer(arguments.replay)
    if not arguments.record:
        return Placed()
    said = {
        "models": [model.model for model in settings.models],
        "arms": [one.name for one in settings.arms],
        "judge": settings.judge.model if settings.judge else None,
        "rounds": settings.budget.rounds,
        "programs": [program.name for program in programs],
    }
    write_settings(arguments.record, said)
    return QuestionRecorder(arguments.record)


def _announced(arguments: argparse.Namespace, settings: EvaluationSettings, asked: int) -> str:
    if arguments.replay:
        return f"{arguments.folder}: answers from {arguments.replay}; nothing is sent"
    models = [*settings.models, *([settings.judge] if settings.judge else [])]
    hosts = ", ".join(dict.fromkeys(f"{m.model} at {m.host}" for m in models))
    return f"{arguments.folder}: sending {counted(asked, 'file')} to {hosts}"


def _versions() -> dict[str, str]:
    versions = {"t2j": __version__}
    for name in (*NEEDED, *PACKAGES, "torch", "jax", "flax", "optax"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def _print(report: dict[str, Any]) -> None:
    print(*reports.summary(report), sep="\n")
    for table in reports.tables(report):
        print(f"\n{table.title}" + (f". {table.note}" if table.note else ""))
        print_table(table.headers, table.rows, numeric=range(1, len(table.headers)))
