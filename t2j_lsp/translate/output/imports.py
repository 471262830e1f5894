"""The last edits: imports that the output needs, torch imports that it doesn't, copied helpers."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Mapping

from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.needs import IMPORTS, NeededNames, bound_by
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.names import is_torch
from t2j_lsp.translate.source.heads import head_end, import_block_end
from t2j_lsp.translate.source.helpers import Helper, closure, renamed
from t2j_lsp.translate.source.imported_names import import_code, import_node, with_only

from .import_block import insert_imports

_HEADER = "# PyTorch behaviour that Flax has no layer for; written by t2j, yours to edit."


def loads(tree: ast.AST) -> Counter[str]:
    """Names that a tree reads, in annotations written as strings too."""
    found: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            found[node.id] += 1
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.fullmatch(r"[\w.\[\], |]+", node.value)
        ):
            found.update(re.findall(r"(?<![\w.])[A-Za-z_]\w*", node.value) if len(node.value) < 80 else ())
        elif isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            found.update(ast.literal_eval(e) for e in getattr(node.value, "elts", []) if isinstance(e, ast.Constant))
    return found


def edit_imports(ctx: Context, read: Counter[str], needs: NeededNames) -> tuple[list[str], list[Helper], list[Helper]]:
    """Record the edits of the import block, for an output that reads these names.

    Returns the import lines that were added, the helpers that the file itself names, and all helpers it needs.
    """
    bound = _bound(ctx)
    wanted = copied_names(ctx, read, needs)
    everything = closure(wanted) if wanted else []
    lines: set[str] = set()
    for root, (line, _) in IMPORTS.items():
        alias = needs.renames.get(root, root)
        if root in needs.claimed and alias in read and alias not in bound:
            lines.add(aliased(line, needs))
    if ctx.options.helpers == "inline":
        everything = [h for h in everything if needs.renames.get(h.name, h.name) not in bound]
        for helper in everything:
            lines.update(aliased(line, needs) for line in helper.imports)
    lines = {line for line in lines if not _already(line, ctx)}
    defined = {needs.renames.get(h.name, h.name) for h in everything}
    _remove_unused(ctx, Counter({name: count for name, count in read.items() if name not in defined}))
    named = [h for h in everything if h.name in wanted]
    if ctx.options.helpers != "inline" and named:
        package = ctx.options.helper_module if ctx.options.helpers == "module" else "t2j_lsp.rules.helpers"
        if ctx.options.helpers == "module":
            listed = ", ".join(_import_name(h.name, needs) for h in named)
            lines.add(f"from {package} import {listed}")
        else:
            for helper in named:
                lines.add(f"from {package}.{helper.file[:-3]} import {_import_name(helper.name, needs)}")
    ordered = sort_imports(lines)
    text = "".join(line + ctx.source.newline for line in ordered)
    if ctx.options.helpers == "inline" and everything:
        text += helper_text(ctx, everything, needs.renames)
    if text:
        _insert(ctx, ordered, everything if ctx.options.helpers == "inline" else [], needs)
    return ordered, named, everything


def copied_names(ctx: Context, read: Counter[str], needs: NeededNames) -> set[str]:
    """The helpers that the output itself reads and that the file doesn't have."""
    bound = _bound(ctx)
    claimed = needs.claimed & needs.helpers
    return {n for n in claimed if read[needs.renames.get(n, n)] and needs.renames.get(n, n) not in bound}


def aliased(line: str, needs: NeededNames) -> str:
    """An import line that binds the name by which the output calls it."""
    name = bound_by(line)
    if name not in needs.renames:
        return line
    return f"{line.partition(' as ')[0]} as {needs.renames[name]}"


def helper_text(ctx: Context, copied: list[Helper], renames: Mapping[str, str]) -> str:
    """The copied helpers as one block."""
    blocks = [_HEADER, *(renamed(helper.text, renames).rstrip() for helper in copied)]
    newline = ctx.source.newline
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


def _bound(ctx: Context) -> set[str]:
    """Names that the source itself binds at its top level, without torch's; ``import *`` as far as known."""
    names = {*ctx.source.symbols.module, *ctx.inference.env}
    facts = {name: ctx.inference.env.get(name) for name in names}
    return {name for name, fact in facts.items() if not (isinstance(fact, Qual) and is_torch(fact.name))}


def _already(line: str, ctx: Context) -> bool:
    """Whether the source's top level has this import, also as one of several names."""
    wanted = ast.parse(line).body[0]
    assert isinstance(wanted, ast.Import | ast.ImportFrom)
    alias = wanted.names[0]
    for node in ctx.source.tree.body:
        if type(node) is type(wanted) and getattr(node, "module", None) == getattr(wanted, "module", None):
            if any((a.name, a.asname) == (alias.name, alias.asname) for a in getattr(node, "names", [])):
                return True
    return False


def _remove_unused(ctx: Context, used: Counter[str]) -> None:
    """Take out torch imports whose names the output doesn't read any more."""
    for node in ctx.source.nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            _prune(ctx, node, used)


def _prune(ctx: Context, node: ast.Import | ast.ImportFrom, used: Counter[str]) -> None:
    torch_from = isinstance(node, ast.ImportFrom) and node.level == 0 and is_torch(node.module or "")
    kept: list[int] = []
    for index, alias in enumerate(node.names):
        torch = torch_from or (isinstance(node, ast.Import) and is_torch(alias.name))
        bound = alias.asname or (alias.name.partition(".")[0] if isinstance(node, ast.Import) else alias.name)
        if not torch or alias.name == "*" and _star_needed(ctx) or used[bound] > 0:
            kept.append(index)
    if not kept:
        ctx.edits.delete(node)
    elif len(kept) < len(node.names):
        ctx.edits.replace(node, import_code(ctx.source, node, with_only(import_node(ctx.source, node), kept)))


def _star_needed(ctx: Context) -> bool:
    return any(f.severity == "gap" for f in ctx.report.findings)


def _insert(ctx: Context, lines: list[str], copied: list[Helper], needs: NeededNames) -> None:
    """Put imports where the first torch import stood, and helpers behind the import block."""
    source, newline = ctx.source, ctx.source.newline
    if lines:
        insert_imports(ctx, lines)
    if copied:
        last = import_block_end(source.tree.body)
        text = helper_text(ctx, copied, needs.renames)
        line = last if last else head_end(source.tree.body)
        at = source.starts[line] if line < len(source.starts) else len(source.text)
        lead = newline if at and not source.text[:at].endswith(("\n", "\r")) else ""
        ctx.edits.add(at, at, f"{lead}{newline}{newline}{text}{newline}", 3)
