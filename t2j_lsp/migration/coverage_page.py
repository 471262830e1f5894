"""The page of ``t2j coverage --html``: one file that needs nothing but a browser.

Texts come from other people's code bases: every one of them goes through `html.escape`, and addresses are quoted paths
from the page's own folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from urllib.parse import quote

from t2j_lsp.contract import Finding, Result

from .coverage import CoverageCounts, FileCoverage, Usage
from .state import Migration, SourceState, State, Symbol
from .verdict_store import StoredVerdict

MARK = '<meta name="generator" content="t2j coverage">'
"""What every page has, so that it may be written over."""
ORDER: tuple[State, ...] = ("different", "gaps", "not started", "converted", "equivalent")
"""States with what asks for attention first."""
BAR: tuple[State, ...] = ("equivalent", "converted", "gaps", "different", "not started")
"""States from done to not begun."""
LABELS = {
    "different": "different",
    "gaps": "converted with gaps",
    "not started": "not started",
    "converted": "converted, not all checked",
    "equivalent": "equivalent",
}


def page(paths: Sequence[Path], coverage: CoverageCounts, migration: Migration, folder: Path, version: str) -> str:
    """The page about ``paths``, with links that hold in ``folder``."""
    template = Template(Path(__file__).with_suffix(".html").read_text(encoding="utf-8"))
    named = ", ".join(map(str, paths))
    sections = (
        _progress(migration),
        _names(coverage),
        _files(coverage, migration, folder),
        _verdicts(migration, folder),
        _problems(coverage, migration),
    )
    return template.substitute(
        title=escape(f"t2j coverage: {named}"),
        heading=f"Coverage of {escape(named)}",
        made=escape(time.strftime(f"t2j {version}, %Y-%m-%d %H:%M UTC", time.gmtime())),
        cards=_cards(coverage),
        sections="\n".join(filter(None, sections)),
    )


# --- sections ---------------------------------------------------------------------------------------------------------


def _cards(coverage: CoverageCounts) -> str:
    places = coverage.converted + coverage.gaps
    share = f"{100 * coverage.converted / places:.1f} %" if places else "none"
    cards = {
        "files read": coverage.files,
        "places converted": coverage.converted,
        "gaps": coverage.gaps,
        "notes": coverage.notes,
        "of all places convert": share,
    }
    return "".join(
        f'<div class="card"><b>{value}</b><span class="faint">{name}</span></div>' for name, value in cards.items()
    )


def _progress(migration: Migration) -> str:
    """How many files and symbols are in which state, as bars."""
    if not migration.files:
        return ""
    bars = _bar("PyTorch files", migration.counts) + _bar("Classes and functions", migration.symbol_counts)
    return f'<h2>Migration</h2><section id="migration">{bars}</section>'


def _bar(title: str, counts: Mapping[State, int]) -> str:
    total = sum(counts.values())
    if not total:
        return ""
    shown = [(state, counts[state]) for state in BAR if counts[state]]
    parts = "".join(f'<span class="{_class(state)}" style="flex:{count}"></span>' for state, count in shown)
    legend = "".join(f"<li>{_state(state)} <b>{count}</b></li>" for state, count in shown)
    bar = f'<div class="bar" aria-hidden="true">{parts}</div>'
    return f'<p>{title}: <b>{total}</b></p>{bar}<ul class="legend">{legend}</ul>'


def _names(coverage: CoverageCounts) -> str:
    """The torch names that stay, with the reasons."""
    rows = [_name(usage) for usage in coverage.ranked if usage.gaps]
    if not rows:
        return ""
    return _table("names", "Gaps by torch name", ("name", "#uses", "#gaps", "reasons"), rows)


def _name(usage: Usage) -> tuple[str, ...]:
    reasons = usage.reasons.most_common()
    listed = "".join(f"<li>{escape(reason)} <span class=faint>({count})</span></li>" for reason, count in reasons)
    shown = escape(reasons[0][0]) if len(reasons) == 1 else f"<ul class=inner>{listed}</ul>"
    return (_code(usage.name), _number(usage.uses), _number(usage.gaps), _cell(shown))


def _files(coverage: CoverageCounts, migration: Migration, folder: Path) -> str:
    """Every file that uses torch, what asks for attention first."""
    states = {file.path: file for file in migration.files}
    shown = [one for one in coverage.by_file if one.path in states or one.converted or one.gaps]
    rank = {state: index for index, state in enumerate(ORDER)}

    def order(one: FileCoverage) -> tuple[int, int, str]:
        state = states.get(one.path)
        return (rank[state.state] if state is not None else len(rank), -len(one.gaps), str(one.path))

    rows = [_file(one, states.get(one.path), folder) for one in sorted(shown, key=order)]
    others = coverage.files - len(shown)
    more = f'<p class="faint">{others} more without torch.</p>' if others else ""
    heads = ("file", "state", "#converted", "#gaps", "#notes", "classes, functions and gaps")
    return _table("files", "Files", heads, rows) + more if rows else ""


def _file(one: FileCoverage, state: SourceState | None, folder: Path) -> tuple[str, ...]:
    symbols = [_symbol(symbol, one.path, folder) for symbol in (state.symbols if state is not None else ())]
    gaps = [_gap(cell, finding, one.path, folder) for cell, finding in one.gaps]
    counts = [_counted(number, noun) for number, noun in ((len(symbols), "symbol"), (len(gaps), "gap")) if number]
    inner = f"<ul class=inner>{''.join(symbols + gaps)}</ul>"
    details = f"<details><summary>{', '.join(counts)}</summary>{inner}</details>" if counts else ""
    target = ""
    if state is not None and state.converted is not None:
        target = f'<br><span class="faint">→ {_link(state.converted, folder, None, state.converted.name)}</span>'
    checked = state.coverage.text if state is not None and state.coverage is not None else ""
    covers = f'<br><span class="faint">{escape(checked)}</span>' if checked else ""
    return (
        _cell(_link(one.path, folder) + target, str(one.path)),
        _cell(
            _state(state.state) + covers if state is not None else "",
            str(ORDER.index(state.state)) if state is not None else "",
        ),
        _number(one.converted),
        _number(len(one.gaps)),
        _number(one.notes),
        _cell(details, str(len(symbols) + len(gaps))),
    )


def _symbol(symbol: Symbol, path: Path, folder: Path) -> str:
    reason = f' <span class="faint">{escape(symbol.reason)}</span>' if symbol.reason else ""
    return f"<li>{_link(path, folder, symbol.line + 1, symbol.name)} {_state(symbol.state)}{reason}</li>"


def _gap(cell: int | None, finding: Finding, path: Path, folder: Path) -> str:
    line = finding.span.line
    place = f"cell {cell}, line {line}" if cell is not None else _link(path, folder, line, f"line {line}")
    return f"<li>{place}: <code>{escape(finding.name)}</code>: {escape(finding.reason)}</li>"


def _verdicts(migration: Migration, folder: Path) -> str:
    """The verdicts that hold: about the texts as they are."""
    rows = [
        _verdict(file, symbol, symbol.verdict, folder)
        for file in migration.files
        for symbol in file.symbols
        if symbol.verdict is not None
    ]
    heads = ("file", "name", "verdict", "stage", "#worst error", "device", "checked", "t2j")
    return _table("verdicts", "Verdicts that hold", heads, rows) if rows else ""


def _verdict(file: SourceState, symbol: Symbol, one: StoredVerdict, folder: Path) -> tuple[str, ...]:
    reason = f'<br><span class="faint">{escape(one.reason)}</span>' if one.reason else ""
    worst = f"{one.max_rel_err:.1e}" if one.max_rel_err is not None else ""
    return (
        _cell(_link(file.path, folder), str(file.path)),
        _cell(_link(file.path, folder, symbol.line + 1, symbol.name), symbol.name),
        _cell(_state(one.verdict) + reason, one.verdict),
        _cell(escape(_stage(one))),
        # As text, 9e-1 would come before 1e-9.
        _cell(worst, f"{one.max_rel_err:.40f}" if one.max_rel_err is not None else "", number=True),
        _cell(escape(one.device)),
        _cell(escape(one.checked.partition("T")[0]), one.checked, nowrap=True),
        _cell(escape(one.version)),
    )


def _stage(one: StoredVerdict) -> str:
    """How far a check went."""
    failed = next((stage for stage, result in one.stages.items() if result == Result.FAIL), None)
    if failed is not None:
        return f"fails in {failed}"
    passed = [stage for stage, result in one.stages.items() if result == Result.PASS]
    return f"up to {passed[-1]}" if passed else ""


def _problems(coverage: CoverageCounts, migration: Migration) -> str:
    problems = [*coverage.errors.values(), *migration.problems]
    listed = "".join(f"<li>{escape(problem)}</li>" for problem in dict.fromkeys(problems))
    return f'<h2>What could not be read</h2><ul class="inner" id="problems">{listed}</ul>' if listed else ""


# --- pieces -----------------------------------------------------------------------------------------------------------


def _table(identity: str, title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table that can be sorted. A head that starts with ``#`` is that of a column of numbers."""
    cells = "".join(
        f'<th scope="col"{" class=number" if head.startswith("#") else ""}><button type="button">'
        f"{escape(head.removeprefix('#'))}</button></th>"
        for head in heads
    )
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    table = f'<table id="{identity}"><thead><tr>{cells}</tr></thead><tbody>\n{body}\n</tbody></table>'
    return f'<h2>{title}</h2><div class="scroll">{table}</div>'


def _cell(inner: str, key: str | None = None, *, number: bool = False, nowrap: bool = False) -> str:
    """A cell; ``key`` is what it is sorted by, where that is not its text."""
    sorting = f' data-key="{escape(key)}"' if key is not None else ""
    return f"<td{' class=number' if number else ' class=nowrap' if nowrap else ''}{sorting}>{inner}</td>"


def _number(value: int) -> str:
    return _cell(str(value), number=True)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _code(text: str) -> str:
    """A dotted name, which may break behind its dots."""
    return _cell(f"<code>{escape(text).replace('.', '.<wbr>')}</code>", text)


def _state(state: str) -> str:
    return f'<span class="state {_class(state)}">{escape(LABELS.get(state, state))}</span>'


def _class(state: str) -> str:
    return state.replace(" ", "-") if state in (*ORDER, "unchecked") else "unchecked"


def _link(path: Path, folder: Path, line: int | None = None, text: str | None = None) -> str:
    """A link to a file, from the page's folder; its path as text where there is no such way."""
    try:
        relative = Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # another drive
        return escape(text or str(path))
    # A name such as "javascript:x" must not become an address of another kind.
    address = quote(os.fsencode(relative if relative.startswith("../") else f"./{relative}"), safe="/")
    anchor = f"#L{line}" if line is not None else ""
    shown = escape(text or relative).replace("/", "/<wbr>").replace("_", "_<wbr>")
    return f'<a href="{escape(address)}{anchor}">{shown}</a>'
