"""``t2j fixes``: fixed bugs like this one: what went wrong in other conversions, and what holds instead.

The user's own fixes are kept, listed and deleted here as well.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from t2j_lsp.api import convert_file
from t2j_lsp.contract import JSON_VERSION, STAGES, CheckReport, Options, T2JError, VerdictKind
from t2j_lsp.files.sources import decode, read_source
from t2j_lsp.fixes.offers import id_of, row, rows, text
from t2j_lsp.fixes.own_fixes import captured, cut, delete, find, index_with_own, load, save
from t2j_lsp.fixes.record import Example, Query, SimilarPair

from .output import Subparsers, print_table, write_json


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "fixes",
        help="find bugs of JAX conversions that were fixed",
        description="Find fixed bugs that are like yours: by words, by an error message, by code. Each was run: the "
        "faulty code fails as it says, the fixed code is equivalent to PyTorch. Your own fixes can be kept among them: "
        "on this machine only, and never in a prompt.",
    )
    parser.add_argument("search", metavar="SEARCH", nargs="*", help="words, a torch or jax name, an error message")
    parser.add_argument("--code", metavar="FILE", help="JAX code that fails")
    parser.add_argument("--source", metavar="FILE", help="the PyTorch code that it came from")
    parser.add_argument("--limit", metavar="N", type=int, default=3, help="how many (default: 3)")
    parser.add_argument("--json", metavar="FILE", help="write them as JSON")
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--show", metavar="ID", help="show one of them with its whole programs")
    one.add_argument(
        "--keep",
        metavar=("SRC", "FAULTY", "FIXED"),
        nargs=3,
        type=Path,
        help="run both conversions of SRC, and keep what differed in the first and is equivalent in the second",
    )
    one.add_argument("--mine", action="store_true", help="list the fixes that you kept")
    one.add_argument("--delete", metavar="ID", help="delete one that you kept")
    parser.add_argument("--object", metavar="NAME", help="with --keep: this class or function only")
    parser.add_argument("--why", metavar="TEXT", default="", help="with --keep: what was wrong, in words")
    parser.add_argument("--stage", choices=STAGES, default=STAGES[-1], help="with --keep: the last stage to run")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Do what is asked. T2JError where nothing is asked, nothing fits, or nothing is to be kept."""
    if arguments.keep:
        return _keep(arguments)
    if arguments.mine:
        return _mine(arguments)
    if arguments.show:
        return _show(arguments)
    if arguments.delete:
        if not delete(arguments.delete):
            raise T2JError(f"there is no fix {arguments.delete} of yours; t2j fixes --mine lists them")
        print(f"deleted {arguments.delete}")
        return 0
    words = " ".join(arguments.search)
    if not (words or arguments.code or arguments.source):
        raise T2JError("say what to look for: words, an error message, or --code FILE")
    source = _read(arguments.source)
    reference = convert_file(Path(arguments.source), Options()).translation.code if arguments.source else ""
    query = Query(source, _read(arguments.code), words, words, reference)
    matches = index_with_own().search(query, limit=arguments.limit, distinct=True)
    if not matches:
        raise T2JError("no fixed bug is like this")
    if arguments.json:
        write_json(arguments.json, report(matches))
    if arguments.json != "-":
        print("\n\n".join(text(one.pair) for one in matches))
    return 0


def report(pairs: list[SimilarPair]) -> dict[str, Any]:
    """The ``--json`` form: the published fields of each pair, its category, and what running it showed."""
    return {"version": JSON_VERSION, "fixes": rows(pairs)}


def _read(path: str | None) -> str:
    if path is None:
        return ""
    try:
        return decode(Path(path).read_bytes()).text
    except OSError as error:
        raise T2JError(f"{path} can't be read: {error.strerror}") from error


def _mine(arguments: argparse.Namespace) -> int:
    own = [SimilarPair(pair, 1.0) for example in load() for pair in example.pairs]
    if arguments.json:
        write_json(arguments.json, report(own))
    if arguments.json == "-":
        return 0
    if own:
        print_table(
            ("id", "object", "what"), [(id_of(f.pair), f.pair.example.object, f.pair.bug.fix_info) for f in own]
        )
    else:
        print("no fixes of yours are kept")
    return 0


def _show(arguments: argparse.Namespace) -> int:
    pair = find(arguments.show)
    if arguments.json:
        form = {"Input_Code": pair.example.input_code, "LLM_weak_output": pair.faulty}
        whole = {**row(SimilarPair(pair, 1.0)), **form, "LLM_fix_output": pair.example.fix_output}
        write_json(arguments.json, {"version": JSON_VERSION, "fixes": [whole]})
    if arguments.json != "-":
        print(text(pair))
        for title, code in (("PyTorch", pair.example.input_code), ("JAX, fixed", pair.example.fix_output)):
            print(f"\n# {title}\n{code.rstrip()}")
    return 0


def _keep(arguments: argparse.Namespace) -> int:
    """Check both conversions, and keep what the check found to be mended. This runs code of the files."""
    # Imported here so that a search doesn't load numpy.
    from t2j_lsp.api import check
    from t2j_lsp.check.process.pool import Pool

    source, faulty, fixed = arguments.keep
    objects = [arguments.object] if arguments.object else None
    with Pool() as pool:
        before = check(source, faulty, objects=objects, stage=arguments.stage, pool=pool)
        after = check(source, fixed, objects=objects, stage=arguments.stage, pool=pool)
    kept = [save(example).stem for example in mended(before, after, (source, faulty, fixed), arguments.why)]
    print("\n".join(f"kept {identity}" for identity in kept))
    return 0


def mended(before: CheckReport, after: CheckReport, files: tuple[Path, Path, Path], why: str) -> list[Example]:
    """What was different in the first conversion and is equivalent in the second. T2JError where nothing is."""
    from t2j_lsp.assist.judging import failure_of

    verdicts = {one.name: one for one in after.objects}
    programs = [(path, read_source(path).text) for path in files]
    examples = []
    for one in before.objects:
        failure, second = failure_of(one), verdicts.get(one.name)
        if failure is None or second is None or second.verdict is not VerdictKind.EQUIVALENT:
            continue
        torch, wrong, right = (cut(path, program, one.name) for path, program in programs)
        if torch is not None and wrong is not None and right is not None:
            examples.append(captured(one.name, torch, wrong, right, failure, why))
    if not examples:
        stand = "; ".join(f"{o.name} {o.verdict}, then {verdicts[o.name].verdict}" for o in before.objects)
        raise T2JError(f"nothing is kept: it takes an object that was different and is equivalent now ({stand})")
    return examples
