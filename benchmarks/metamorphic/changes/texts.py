"""Strings and the look of code."""

from __future__ import annotations

import ast
import random

import libcst as cst

from benchmarks.metamorphic.change import Changed, change
from benchmarks.metamorphic.source import Source


class _Formats(cst.CSTTransformer):
    """Calls of ``format`` for f-strings without conversions or nested fields."""

    def leave_FormattedString(
        self, original_node: cst.FormattedString, updated_node: cst.FormattedString
    ) -> cst.BaseExpression:
        text, values = "", []
        for part in updated_node.parts:
            if isinstance(part, cst.FormattedStringText):
                text += part.value
                continue
            spec = part.format_spec or ()
            if part.conversion or part.equal or not all(isinstance(s, cst.FormattedStringText) for s in spec):
                return updated_node
            inner = "".join(s.value for s in spec if isinstance(s, cst.FormattedStringText))
            text += f"{{:{inner}}}" if inner else "{}"
            values.append(cst.Arg(part.expression))
        if not values or updated_node.start.lower() not in ('f"', "f'"):
            return updated_node
        quote = updated_node.end
        return cst.Call(cst.Attribute(cst.SimpleString(f"{quote}{text}{quote}"), cst.Name("format")), values)

    def visit_ConcatenatedString(self, node: cst.ConcatenatedString) -> bool:
        return False


@change("f-strings to format")
def f_strings_to_format(source: Source, rng: random.Random) -> cst.Module:
    """ "{}".format(x) for f"{x}"."""
    return source.module.visit(_Formats())


class _Quotes(cst.CSTTransformer):
    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.SimpleString:
        value = updated_node.value
        inner = value[1:-1]
        if value[:3] in ('"""', "'''") or value[0] not in "'\"" or set(inner) & set("'\"\\"):
            return updated_node
        quote = "'" if value[0] == '"' else '"'
        return updated_node.with_changes(value=f"{quote}{inner}{quote}")

    def visit_FormattedString(self, node: cst.FormattedString) -> bool:
        return False


@change("other quotes")
def other_quotes(source: Source, rng: random.Random) -> cst.Module:
    """'x' for "x", and the other way round."""
    return source.module.visit(_Quotes())


@change("another layout")
def another_layout(source: Source, rng: random.Random) -> Changed:
    """The code as ``ast.unparse`` writes it: long lines, no comments. Files with comments for t2j stay."""
    if "# t2j:" in source.text or "# train\n" in source.text:
        return Changed(source.text)
    return Changed(ast.unparse(source.tree) + "\n")
