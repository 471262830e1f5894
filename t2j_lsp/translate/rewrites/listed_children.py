"""Lists of the children of a module, or some of them: ``nn.Sequential(*list(resnet.children())[:-1])``.

Flax's modules have no children in an order, and say in the class which they are. Where a file that has gaps has such a
list, it is read as if it named them: ``nn.Sequential(resnet.conv1, resnet.bn1, resnet.relu)``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp.contract import Finding
from t2j_lsp.translate.expressions.state_order import ADDING, children_of
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.storage import dotted
from t2j_lsp.translate.rule.definitions import Instance, is_module
from t2j_lsp.translate.rule.facts import Fact
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText
from t2j_lsp.translate.source.text import Source

_MOST = 16
"""Of more children nobody names each."""


def with_children_listed(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which children have names; None where there is no such list, or it isn't sure which they are."""
    source = inference.source
    if "children" not in source.words or not list(gaps):
        return None
    edits: Edits = []
    for node in source.nodes:
        if isinstance(node, ast.Call) and (named := _named(inference, node)) is not None:
            start, end = source.span(named[0])
            edits.append((start, end, [Fragment(_text(source, start, *named), start, end)]))
    return RearrangedText.of(source.text, edits)


def _text(source: Source, start: int, node: ast.expr, parts: list[str] | str) -> str:
    """What stands for a list, its parts on lines of their own where one line is too short for them."""
    if isinstance(parts, str):
        return parts
    line = source.line_of(start)
    line_is_short = start - source.starts[line - 1] + sum(len(part) + 2 for part in parts) <= source.line_limit
    indent = source.newline + source.indent(line)
    lines = [f"{indent}    {part}," for part in parts]
    text = ", ".join(parts) if line_is_short else "".join(lines) + indent
    return text if isinstance(node, ast.Starred) else f"[{text}]"


def _named(inference: Inference, node: ast.Call) -> tuple[ast.expr, list[str] | str] | None:
    """The list of children that a call is the source of, and their names; one name for a child that is picked."""
    match node:
        case ast.Call(func=ast.Attribute(value=module, attr="children"), args=[], keywords=[]) if dotted(module):
            names = children_in_file(inference, module)
        case _:
            return None
    parents, text = inference.source.parents, inference.source.segment(module)
    parts = [f"{text}.{name}" for name in names or ()]
    if not parts or len(parts) > _MOST:
        return None
    whole: ast.expr = node
    parent = parents.get(node)
    match parent:
        case ast.Call(func=ast.Name(id="list" | "tuple"), keywords=[]) if node in parent.args:
            whole = parent
        case ast.Starred():
            return parent, parts
        case _:
            return None
    match parents.get(whole):
        case ast.Subscript(value=value, slice=ast.Slice(lower=lower, upper=upper, step=step)) as cut if value is whole:
            places = [_place(one) for one in (lower, upper, step)]
            if not all(known for known, _ in places) or places[2][1] == 0:
                return None
            whole, parts = cut, parts[slice(*(place for _, place in places))]
        case ast.Subscript(value=value, slice=index, ctx=ast.Load()) as cut if value is whole:
            known, place = _place(index)
            return (cut, parts[place]) if known and place is not None and -len(parts) <= place < len(parts) else None
        case _:
            pass
    around = parents.get(whole)
    if isinstance(around, ast.Starred) and parts:
        return around, parts
    return whole, parts


def _place(node: ast.expr | None) -> tuple[bool, int | None]:
    """Whether a place in a list is written as a number or left out, and that number."""
    if node is None:
        return True, None
    try:
        place = ast.literal_eval(node)
    except ValueError:
        return False, None
    return isinstance(place, int), place if isinstance(place, int) else None


def children_in_file(inference: Inference, module: ast.expr) -> list[str] | None:
    """The names of a module's children in PyTorch's order, if no module of its class is given others or loses one.

    Another name may stand for the same module.
    """
    fact, source = inference.fact(module), inference.source
    children = children_of(fact.cls.info) if isinstance(fact, Instance) else None
    if children is None:
        return None
    text = ast.unparse(module)
    for node in source.nodes:
        if (
            isinstance(node, ast.Attribute)
            and not isinstance(node.ctx, ast.Load)
            and _is_of(inference, node, fact, text)
        ):
            stored = source.parents.get(node)
            if node.attr not in children or not isinstance(stored, ast.Assign):
                return None
            if not is_module(inference.fact(stored.value)):
                return None
        elif isinstance(node, ast.Call) and _is_given_parts(node, text):
            return None
    return children


def _is_of(inference: Inference, stored: ast.Attribute, module: Fact, text: str) -> bool:
    """Whether an attribute that is given a value may be a module's, outside of its class."""
    owner = inference.fact(stored.value)
    is_same_class = isinstance(owner, Instance) and isinstance(module, Instance) and owner.cls.info is module.cls.info
    written = ast.unparse(stored.value)
    return written == text or is_same_class and written != "self"


def _is_given_parts(node: ast.Call, module: str) -> bool:
    """Whether a call may give a module a child: ``net.add_module(name, child)``, ``setattr(net, name, child)``."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in ADDING:
            return ast.unparse(value) == module
        case ast.Call(func=ast.Name(id=name), args=[value, *_]) if name in ADDING or name == "delattr":
            return ast.unparse(value) == module
    return False
