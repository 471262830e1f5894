"""The last edits: imports that the output needs, each in its place; torch imports that it doesn't go."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from t2j_lsp import symbols
from t2j_lsp.contract import CUT_HELPERS, MARK
from t2j_lsp.translate.expressions.context import Context, Edits
from t2j_lsp.translate.expressions.needs import BUILTINS, IMPORTS, NeededNames, bound_by, has_import
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.names import canonical, is_torch
from t2j_lsp.translate.source.code_lines import lines_of
from t2j_lsp.translate.source.helpers import Helper, closure
from t2j_lsp.translate.source.imported_names import import_code, import_node, with_names, with_only
from t2j_lsp.translate.source.scopes import is_fallback
from t2j_lsp.translate.source.text import Source

from .copied_helpers import cut_to_uses, insert_helpers
from .helper_place import WrittenCode, rebound
from .late_imports import imports_in_functions, late_imports
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
    behind = any(isinstance(n, ast.Import) and n not in ctx.source.preamble for n in ctx.source.nodes)
    late = late_imports(ctx.source, output) if behind else {}
    hidden = BUILTINS.keys() & needs.renames.keys()
    for root, (line, _) in IMPORTS.items():
        alias = needs.renames.get(root, root)
        if root in needs.claimed and alias in read and (alias not in bound or alias in late):
            lines.add(aliased(line, needs))
            if late.get(alias) in ctx.source.tree.body:
                ctx.edits.delete(late[alias])
            for own in imports_in_functions(ctx.source, line, alias) if behind else ():
                ctx.edits.delete(own)
    placement = ctx.options.helpers
    if placement in CUT_HELPERS:
        lacking = [h for h in everything if needs.renames.get(h.name, h.name) not in bound]
        has_some, everything = len(lacking) < len(everything), lacking
        if everything and output is not None:
            everything = cut_to_uses(ctx, everything, wanted, needs, output.tree)
            many = placement == "auto" and lines_of(h.text for h in everything) > ctx.options.helper_lines
            if many and not has_some:  # those that the file has stay in it
                placement = "module"
        for helper in everything if placement != "module" else ():
            lines.update(aliased(line, needs) for line in helper.imports)
            lines.update(aliased(BUILTINS[name], needs) for name in hidden.intersection(helper.uses))
    lines |= {aliased(BUILTINS[name], needs) for name in hidden if read[needs.renames[name]]}
    copies = placement in CUT_HELPERS
    named = [h for h in everything if h.name in wanted]
    lines = {line for line in lines if bound_by(line) in late or not has_import(line, ctx.source)}
    defined = {needs.renames.get(h.name, h.name) for h in (everything if copies else named)}
    defined |= {bound_by(line) for line in lines}
    if output is not None and _renames_imports(ctx.source):
        defined |= rebound(ctx.source, output.tree, loads)
    used = Counter({name: count for name, count in read.items() if name not in defined})
    asked = {bound_by(aliased(line, needs)) for helper in everything for line in helper.imports}
    _remove_unused(ctx, used, asked)
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
        insert_helpers(ctx, everything, needs, output)
    return Brought([*ordered, *beside], everything, placement == "module")


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


def _renames_imports(source: Source) -> bool:
    """Whether the module assigns a name that it imports, too."""
    imported = {
        symbols.bound_as(a) for node in source.tree.body if isinstance(node, ast.ImportFrom) for a in node.names
    }
    assigned = (s.targets[0] for s in source.tree.body if isinstance(s, ast.Assign))
    return any(isinstance(target, ast.Name) and target.id in imported for target in assigned)


def _remove_unused(ctx: Context, used: Counter[str], asked: set[str]) -> None:
    """Take out imports whose names the output doesn't read any more: torch's, and those of Python that it did read.

    ``asked`` are names that helpers read.
    """
    gone: set[ast.AST] = set()
    idle = {symbols.bound_as(a) for n in _top_imports(ctx.source) if _is_standard(n) for a in n.names}
    idle = idle - used.keys() - asked if not used.keys() & {"eval", "exec", "globals"} else set()
    idle &= loads(ctx.source.tree).keys() if idle else idle
    for node in ctx.source.nodes:
        if _only_imports_torch(_ways(ctx, node), used):
            assert isinstance(node, ast.stmt)
            gone.update(symbols.walk(node))
            ctx.edits.drop(*ctx.source.span(node))
            ctx.edits.delete(node)
        elif isinstance(node, ast.Import | ast.ImportFrom) and node not in gone:
            _prune(ctx, node, used, idle if _is_standard(node) and node in ctx.source.tree.body else set())


def _ways(ctx: Context, node: ast.AST) -> list[ast.stmt]:
    """The statements of a fallback, and of a condition at the top level those of the branch that was taken."""
    match node:
        case ast.Try(finalbody=[]) if is_fallback(node):
            return [*node.body, *(one for handler in node.handlers for one in handler.body), *node.orelse]
        case ast.If(col_offset=0):
            branches = (branch for branch in (node.body, node.orelse) if branch)
            return next((branch for branch in branches if branch[0].lineno in ctx.edits.dedented), [])
    return []


def _only_imports_torch(statements: list[ast.stmt], used: Counter[str]) -> bool:
    """Whether statements only import what is PyTorch's in one of their ways, and what the output doesn't read."""
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
    return any(map(_imports_torch, imports)) and not any(used[name] for name in names)


def _prune(ctx: Context, node: ast.Import | ast.ImportFrom, used: Counter[str], idle: set[str]) -> None:
    top = isinstance(node, ast.ImportFrom) and node.level == 0
    kept: list[int] = []
    for index, alias in enumerate(node.names):
        name = f"{_module(node)}.{alias.name}" if top else alias.name
        torch = (top or isinstance(node, ast.Import)) and is_torch(canonical(name))
        bound = symbols.bound_as(alias)
        if bound not in idle and (not torch or alias.name == "*" and _star_needed(ctx) or used[bound] > 0):
            kept.append(index)
    if not kept:
        ctx.edits.delete(node)
    elif len(kept) < len(node.names):
        ctx.edits.replace(node, import_code(ctx.source, node, with_only(import_node(ctx.source, node), kept)))


def _star_needed(ctx: Context) -> bool:
    """Whether something stays PyTorch, here or since an earlier conversion, and may need what a star brings."""
    return any(f.severity == "gap" for f in ctx.report.findings) or MARK in ctx.source.text


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
    return source.line_end(source.head_end)
