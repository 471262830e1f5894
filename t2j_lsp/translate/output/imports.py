"""The last edits: imports that the output needs, each in its place, torch imports that it doesn't, copied helpers."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile

from t2j_lsp import symbols
from t2j_lsp.contract import CUT_HELPERS
from t2j_lsp.translate.expressions.context import Context, Edits
from t2j_lsp.translate.expressions.needs import IMPORTS, NeededNames, bound_by
from t2j_lsp.translate.inference.class_labels import class_labels
from t2j_lsp.translate.inference.containers import asked_elsewhere, asked_of_containers
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.names import canonical, is_torch
from t2j_lsp.translate.source.code_lines import lines_of
from t2j_lsp.translate.source.folding.agreements import Cut, agreements, hold, may_agree, with_agreement
from t2j_lsp.translate.source.folding.annotations import (
    is_annotated,
    without_annotations,
    without_idle_annotations,
)
from t2j_lsp.translate.source.folding.specialise import specialised
from t2j_lsp.translate.source.folding.uses import NOTHING_AGREED
from t2j_lsp.translate.source.helpers import HEADER, Helper, closure, renamed
from t2j_lsp.translate.source.imported_names import import_code, import_node, with_names, with_only
from t2j_lsp.translate.source.scopes import is_fallback
from t2j_lsp.translate.source.text import Source

from .helper_place import WrittenCode, first_user, rebound
from .project_imports import drop_unread_names

_PACKAGE = "t2j_lsp.rules.helpers"


def loads(tree: ast.AST) -> Counter[str]:
    """Names that a tree reads, in annotations written as strings too."""
    counts: Counter[str] = Counter()
    nodes = list(symbols.walk(tree))
    written = {part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            counts[node.id] += 1
        elif node in written:
            continue  # text between the values of an f-string
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.fullmatch(r"[\w.\[\], |]+", node.value)
            and not re.search(r"\w +\w", node.value)  # words of a sentence
        ):
            counts.update(re.findall(r"(?<![\w.])[A-Za-z_]\w*", node.value) if len(node.value) < 80 else ())
        elif isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            counts.update(ast.literal_eval(e) for e in getattr(node.value, "elts", []) if isinstance(e, ast.Constant))
    return counts


@dataclass(frozen=True)
class Brought:
    """What an output gets besides the user's code."""

    lines: list[str]
    """The import lines that were added."""
    helpers: list[Helper]
    """All helpers that it needs."""
    apart: bool
    """Whether these stand in a module beside it."""


def edit_imports(ctx: Context, read: Counter[str], needs: NeededNames, output: WrittenCode | None) -> Brought:
    """Record the edits of the import block, for an output that reads these names.

    Its own helpers are cut to what ``output`` uses of them, what is written so far, if that is the whole file.
    """
    bound = _bound(ctx.inference)
    wanted = copied_names(ctx, read, needs)
    everything = closure(wanted) if wanted else []
    lines: set[str] = set()
    late = _late_imports(ctx.source, output)
    for root, (line, _) in IMPORTS.items():
        alias = needs.renames.get(root, root)
        if root in needs.claimed and alias in read and (alias not in bound or alias in late):
            lines.add(aliased(line, needs))
            if alias in late:
                ctx.edits.delete(late[alias])
    placement = ctx.options.helpers
    if placement in CUT_HELPERS:
        lacking = [h for h in everything if needs.renames.get(h.name, h.name) not in bound]
        has_some, everything = len(lacking) < len(everything), lacking
        if everything and output is not None:
            asked, elsewhere = asked_of_containers(ctx.inference), asked_elsewhere(ctx.inference)
            cut = partial(specialised, everything, output.tree, needs.renames, wanted, asked, elsewhere)
            labels = class_labels(ctx.inference, wanted)
            cut = partial(cut, width=ctx.source.line_limit, labels=labels)
            everything = _agreed(everything, cut, output.tree, wanted, needs)
            everything = _annotated_like(everything, ctx.source)
            many = placement == "auto" and lines_of(h.text for h in everything) > ctx.options.helper_lines
            if many and not has_some:  # those that the file has stay in it
                placement = "module"
        for helper in everything if placement != "module" else ():
            lines.update(aliased(line, needs) for line in helper.imports)
    copies = placement in CUT_HELPERS
    named = [h for h in everything if h.name in wanted]
    lines = {line for line in lines if bound_by(line) in late or not _already(line, ctx.source)}
    defined = {needs.renames.get(h.name, h.name) for h in (everything if copies else named)}
    defined |= {bound_by(line) for line in lines}
    if output is not None and _renames_imports(ctx.source):
        defined |= rebound(ctx.source, output.tree, loads)
    used = Counter({name: count for name, count in read.items() if name not in defined})
    _remove_unused(ctx, used)
    if output is not None and ctx.options.used_elsewhere is not None:
        drop_unread_names(ctx, used, loads)
    beside: list[str] = []
    if placement == "module" and named:
        names = sorted(_import_name(h.name, needs) for h in named)
        beside = [f"from {ctx.options.helper_module} import {', '.join(names)}"]
    elif placement == "import":
        for helper in named:
            lines.add(f"from {_PACKAGE}.{helper.file[:-3]} import {_import_name(helper.name, needs)}")
    ordered = sort_imports(lines)
    if ordered:
        insert_imports(ctx.edits, ordered)
    if beside:
        import_beside(ctx.edits, beside[0])
    if copies and everything:
        _insert_helpers(ctx, everything, needs, output)
    return Brought([*ordered, *beside], everything, placement == "module")


def _agreed(whole: list[Helper], cut: Cut, user: ast.Module, wanted: set[str], needs: NeededNames) -> list[Helper]:
    """The helpers, cut to what all calls agree on too; where that only shows here, the calls are written anew."""
    known, written = needs.known, {name: needs.renames.get(name, name) for name in wanted}
    if known.agreed is None:
        known.agreed = agreements(cut, user, written) if may_agree(whole, user, written) else NOTHING_AGREED
        known.agreements += bool(known.agreed)
        return cut(known.agreed)
    copied = cut(known.agreed)
    if known.agreed and not hold(known.agreed, copied, user, written):
        known.agreed = NOTHING_AGREED
        known.agreements += 1
    return [
        replace(h, text=with_agreement(h.text, known.agreed[h.name])) if h.name in known.agreed else h for h in copied
    ]


def _annotated_like(copied: list[Helper], source: Source) -> list[Helper]:
    """The helpers with the annotations that the file has a use for: none in a file that has none."""
    if not is_annotated(source.nodes):
        return without_annotations(copied)
    present = {bound_by(line) for h in copied for line in h.imports if _already(line, source)}
    return without_idle_annotations(copied, present)


def copied_names(ctx: Context, read: Counter[str], needs: NeededNames) -> set[str]:
    """The helpers that the output itself reads and that the file doesn't have."""
    bound = _bound(ctx.inference)
    claimed = needs.claimed & needs.helpers
    return {n for n in claimed if read[needs.renames.get(n, n)] and needs.renames.get(n, n) not in bound}


def aliased(line: str, needs: NeededNames) -> str:
    """An import line that binds the name by which the output calls it."""
    name = bound_by(line)
    if name not in needs.renames:
        return line
    return f"{line.partition(' as ')[0]} as {needs.renames[name]}"


def helper_text(copied: list[Helper], renames: Mapping[str, str], newline: str) -> str:
    """The copied helpers as one block."""
    blocks = [HEADER, *(renamed(helper.text, renames).rstrip() for helper in copied)]
    joined = "\n\n\n".join([f"{blocks[0]}\n\n\n{blocks[1]}", *blocks[2:]]) if len(blocks) > 1 else ""
    return joined.replace("\n", newline)


def sort_imports(lines: set[str]) -> list[str]:
    """``import x`` before ``from x import y``, each alphabetical; several names of one module in one line."""
    merged: dict[str, set[str]] = {}
    plain: list[str] = []
    for line in lines:
        if line.startswith("from ") and " as " not in line:
            module, _, names = line[5:].partition(" import ")
            merged.setdefault(module, set()).update(n.strip() for n in names.split(","))
        else:
            plain.append(line)
    froms = [f"from {module} import {', '.join(sorted(names))}" for module, names in merged.items()]
    ordered = sorted(plain, key=lambda s: (s.startswith("from "), s)) + sorted(froms)
    standard = [line for line in ordered if line.split()[1].partition(".")[0] in sys.stdlib_module_names]
    others = [line for line in ordered if line not in standard]
    return [*standard, "", *others] if standard and others else ordered


def _import_name(name: str, needs: NeededNames) -> str:
    return f"{name} as {needs.renames[name]}" if name in needs.renames else name


def _bound(inference: Inference) -> set[str]:
    """Names that the source itself binds at its top level, without torch's; ``import *`` as far as known."""
    names = {*inference.source.symbols.module, *inference.env}
    facts = {name: inference.env.get(name) for name in names}
    return {name for name, fact in facts.items() if not (isinstance(fact, Qual) and is_torch(fact.name))}


def _late_imports(source: Source, output: WrittenCode | None) -> dict[str, ast.stmt]:
    """Imports of the source's top level behind its head that the output needs in front of them, by the name they bind.

    A script that imports numpy half way may have ``tensor.numpy()`` before.
    """
    late: dict[str, ast.stmt] = {}
    for node in source.tree.body if output is not None else ():
        match node:
            case ast.Import(names=[ast.alias(name=name, asname=alias)]) if node not in source.preamble:
                if f"import {name} as {alias}" in (line for line, _ in IMPORTS.values()):
                    late.setdefault(alias or name, node)
    if not late or output is None:
        return {}
    reads = [n for n in symbols.walk(output.tree) if isinstance(n, ast.Name) and n.id in late]
    first = {n.id: n.lineno for n in sorted(reads, key=lambda n: n.lineno, reverse=True)}
    lines = {a.asname: n.lineno for n in output.tree.body if isinstance(n, ast.Import) for a in n.names}
    return {name: node for name, node in late.items() if first.get(name, lines.get(name, 0)) < lines.get(name, 0)}


def _already(line: str, source: Source) -> bool:
    """Whether the source's top level has this import, also as one of several names."""
    wanted = ast.parse(line).body[0]
    assert isinstance(wanted, ast.Import | ast.ImportFrom)
    alias = wanted.names[0]
    for node in source.tree.body:
        if type(node) is type(wanted) and getattr(node, "module", None) == getattr(wanted, "module", None):
            if any((a.name, a.asname) == (alias.name, alias.asname) for a in getattr(node, "names", [])):
                return True
    return False


def _renames_imports(source: Source) -> bool:
    """Whether the module assigns a name that it imports, too."""
    imported = {
        symbols.bound_as(a) for node in source.tree.body if isinstance(node, ast.ImportFrom) for a in node.names
    }
    assigned = (s.targets[0] for s in source.tree.body if isinstance(s, ast.Assign))
    return any(isinstance(target, ast.Name) and target.id in imported for target in assigned)


def _remove_unused(ctx: Context, used: Counter[str]) -> None:
    """Take out torch imports whose names the output doesn't read any more."""
    gone: set[ast.AST] = set()
    for node in ctx.source.nodes:
        if isinstance(node, ast.Try) and is_fallback(node) and _only_imports_torch(node, used):
            gone.update(symbols.walk(node))
            ctx.edits.drop(*ctx.source.span(node))
            ctx.edits.delete(node)
        elif isinstance(node, ast.Import | ast.ImportFrom) and node not in gone:
            _prune(ctx, node, used)


def _only_imports_torch(node: ast.Try, used: Counter[str]) -> bool:
    """Whether a fallback only imports what is PyTorch's in one of its ways, and what the output doesn't read."""
    statements = [*node.body, *(one for handler in node.handlers for one in handler.body), *node.orelse]
    names: set[str] = set()
    for one in statements:
        match one:
            case ast.Import() | ast.ImportFrom():
                names |= {symbols.bound_as(alias) for alias in one.names}
            case ast.Assign(targets=targets, value=ast.Constant()) if all(isinstance(t, ast.Name) for t in targets):
                names |= {node.id for node in targets if isinstance(node, ast.Name)}
            case ast.Pass():
                pass
            case _:
                return False
    imports = [one for one in statements if isinstance(one, ast.Import | ast.ImportFrom)]
    return not node.finalbody and any(map(_imports_torch, imports)) and not any(used[name] for name in names)


def _prune(ctx: Context, node: ast.Import | ast.ImportFrom, used: Counter[str]) -> None:
    top = isinstance(node, ast.ImportFrom) and node.level == 0
    kept: list[int] = []
    for index, alias in enumerate(node.names):
        name = f"{_module(node)}.{alias.name}" if top else alias.name
        torch = (top or isinstance(node, ast.Import)) and is_torch(canonical(name))
        bound = symbols.bound_as(alias)
        if not torch or alias.name == "*" and _star_needed(ctx) or used[bound] > 0:
            kept.append(index)
    if not kept:
        ctx.edits.delete(node)
    elif len(kept) < len(node.names):
        ctx.edits.replace(node, import_code(ctx.source, node, with_only(import_node(ctx.source, node), kept)))


def _star_needed(ctx: Context) -> bool:
    return any(f.severity == "gap" for f in ctx.report.findings)


def _insert_helpers(ctx: Context, copied: list[Helper], needs: NeededNames, output: WrittenCode | None) -> None:
    """Put helpers in front of the first statement that may run one."""
    text = helper_text(copied, needs.renames, ctx.source.newline)
    names = {needs.renames.get(h.name, h.name) for h in copied}
    if output is None or not _insert_below(ctx.edits, text, output, names):
        _insert_behind_imports(ctx.edits, text)


def _insert_below(edits: Edits, text: str, output: WrittenCode, names: set[str]) -> bool:
    """Put helpers behind the definitions that don't run them; whether there are any behind the imports."""
    source, newline = edits.source, edits.source.newline
    stop = first_user(output.tree, names)
    node = output.source_of(stop, edits) if stop is not None else None
    below = [n for n in source.tree.body if n.lineno > source.import_block_end and n not in edits.deleted]
    if not below or node is not None and node.lineno <= below[0].lineno:
        return False
    if node is None:
        _insert_block(edits, len(source.text), text, 1000)
    else:
        at, above = edits.in_front_of(node)
        edits.add(at, at, newline * max(0, 2 - above) + text + newline * 3, -2000)
    return True


def _insert_behind_imports(edits: Edits, text: str) -> None:
    source = edits.source
    line = source.import_block_end or source.head_end
    _insert_block(edits, source.starts[line] if line < len(source.starts) else len(source.text), text, 3)


def _insert_block(edits: Edits, at: int, text: str, priority: int) -> None:
    """Put text two empty lines below what ends at a place, and as many above what follows."""
    source, newline = edits.source, edits.source.newline
    lead = newline if at and not source.text[:at].endswith(("\n", "\r")) else ""
    empty = len(list(takewhile(lambda line: not line.strip(), behind := source.text[at:].splitlines())))
    below = newline * max(0, 2 - empty) if empty < len(behind) else ""
    edits.add(at, at, f"{lead}{newline}{newline}{text}{newline}{below}", priority)


# --- imports among imports --------------------------------------------------------------------------------------------


def insert_imports(edits: Edits, lines: list[str]) -> None:
    """Record the edits that add import ``lines``, which are sorted, with an empty one between the groups.

    A line goes in front of the first import of its group that sorts behind it. Where its group has no import yet the
    lines stand at the first torch import; in a file without imports, at its head.
    """
    existing = list(_top_imports(edits.source))
    standard, others = _groups(lines)
    at_torch: list[str] = []
    for group, is_standard in ((standard, True), (others, False)):
        peers = [
            n
            for n in existing
            if _is_standard(n) == is_standard and n not in edits.deleted and edits.source.starts_line(n)
        ]
        peers = [n for n in peers if not _imports_torch(n)] if is_standard else _beside_torch(peers, existing)
        group = [line for line in group if not _join(edits, line, peers)]
        if peers:
            _among(edits, group, peers)
        else:
            at_torch += ["", *group] if at_torch and group else group
    if at_torch:
        _at_torch(edits, at_torch, existing)


def import_beside(edits: Edits, line: str) -> None:
    """Record the edit that adds the import of a module beside the file: behind all others, in a group of its own."""
    source = edits.source
    existing = list(_top_imports(source))
    kept = [n for n in existing if n not in edits.deleted and source.starts_line(n)]
    torch = next((n for n in existing if _imports_torch(n) and source.starts_line(n)), None)
    if len(line) > source.line_limit:
        head, _, names = line.partition(" import ")
        listed = "".join(f"    {name},{source.newline}" for name in names.split(", "))
        line = f"{head} import ({source.newline}{listed})"
    if not kept or torch is not None and torch.lineno > kept[-1].lineno:
        # Where those of the other packages went; if none did, what is above it may part it already.
        at = source.starts[torch.lineno - 1] if torch is not None else _head(source)
        above = source.text[:at].rstrip(" \t")
        parted = not above.strip() or above.endswith(("\n\n", "\r\n\r\n"))
        follows = any(edit.start == at and edit.new for edit in edits.made)
        _at_torch(edits, [line] if parted and not follows else ["", line], existing, -4)
    else:
        local = isinstance(kept[-1], ast.ImportFrom) and kept[-1].level > 0
        edits.insert_after(kept[-1], [line] if local else ["", line])


def _groups(lines: list[str]) -> tuple[list[str], list[str]]:
    named = [line for line in lines if line]
    standard = [line for line in named if line.split()[1].partition(".")[0] in sys.stdlib_module_names]
    return standard, [line for line in named if line not in standard]


def _top_imports(source: Source) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports at the head of the file, without ``__future__``."""
    for node in source.preamble:
        if isinstance(node, ast.Import) or isinstance(node, ast.ImportFrom) and node.module != "__future__":
            yield node


def _module(node: ast.Import | ast.ImportFrom) -> str:
    return node.names[0].name if isinstance(node, ast.Import) else "." * node.level + (node.module or "")


def _is_standard(node: ast.Import | ast.ImportFrom) -> bool:
    return _module(node).partition(".")[0] in sys.stdlib_module_names


def _imports_torch(node: ast.Import | ast.ImportFrom) -> bool:
    return is_torch(_module(node)) or isinstance(node, ast.Import) and any(is_torch(a.name) for a in node.names)


def _beside_torch(
    peers: list[ast.Import | ast.ImportFrom], existing: list[ast.Import | ast.ImportFrom]
) -> list[ast.Import | ast.ImportFrom]:
    """Imports of other packages in the lines next to torch's: new ones belong among them."""
    torch = next((n for n in existing if _imports_torch(n)), None)
    if torch is None:
        return []
    block = [torch]
    place = existing.index(torch)
    for direction in (existing[place + 1 :], existing[:place][::-1]):
        edge = torch
        for node in direction:
            low, high = sorted((edge, node), key=lambda n: n.lineno)
            if high.lineno != (low.end_lineno or low.lineno) + 1 or _module(node).startswith("."):
                break
            block.append(node)
            edge = node
    return [n for n in peers if n in block and not _imports_torch(n)]


def _key(statement: ast.Import | ast.ImportFrom | str) -> tuple[bool, str]:
    """``import x`` before ``from x import y``, each alphabetical."""
    if isinstance(statement, str):
        words = statement.split()
        return words[0] == "from", words[1].lower()
    return isinstance(statement, ast.ImportFrom), _module(statement).lower()


def _join(edits: Edits, line: str, peers: list[ast.Import | ast.ImportFrom]) -> bool:
    """Add the names of ``from x import y`` to an import from the same module; whether that could be done."""
    module, _, names = line.removeprefix("from ").partition(" import ")
    if not line.startswith("from ") or " as " in names:
        return False
    for node in peers:
        if isinstance(node, ast.ImportFrom) and _module(node) == module:
            joined = with_names(import_node(edits.source, node), names.split(", "))
            if joined is not None:
                edits.replace(node, import_code(edits.source, node, joined))
                return True
    return False


def _among(edits: Edits, lines: list[str], peers: list[ast.Import | ast.ImportFrom]) -> None:
    """Put each line in front of the first of ``peers`` that sorts behind it."""
    before: dict[ast.stmt, list[str]] = defaultdict(list)
    behind: list[str] = []
    for line in sorted(lines, key=_key):
        following = next((n for n in peers if _key(n) > _key(line)), None)
        if following is None:
            behind.append(line)
        else:
            before[following].append(line)
    for node, names in before.items():
        edits.insert_before(node, names, priority=-5)
    if behind:
        edits.insert_after(peers[-1], behind)


def _at_torch(edits: Edits, lines: list[str], existing: list[ast.Import | ast.ImportFrom], priority: int = -5) -> None:
    source, newline = edits.source, edits.source.newline
    anchor = next((n for n in existing if _imports_torch(n)), None)
    if anchor is not None and edits.source.starts_line(anchor):
        edits.insert_before(anchor, lines, priority)
        return
    at = _head(source)
    lead = newline if at and not source.text[:at].endswith(("\n", "\r")) else ""
    edits.keep_blanks(at)
    edits.add(at, at, lead + "".join(line + newline for line in lines), priority)


def _head(source: Source) -> int:
    """Where imports go in a file that has none."""
    return source.starts[source.head_end] if source.head_end < len(source.starts) else len(source.text)
