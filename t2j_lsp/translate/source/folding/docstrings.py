"""What a helper's docstring says of parameters that it no longer has."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

import libcst as cst

from .transformer import Transformer

_WIDTH = 116
_SECTION = re.compile(r"\n\n *(?:Args|Returns|Raises|Yields):\n")
_SENTENCE = re.compile(r"(?<=[.:)]) +(?=[A-Z`(])")
_CLAUSE = re.compile(r"; [^;.]*(?=[.;]|$)| \([^()]*\)")


class WithoutParameters(Transformer):
    """Takes the entries of some parameters out of a docstring, and all that is said of others."""

    def __init__(self, names: frozenset[str], unsaid: frozenset[str]) -> None:
        super().__init__()
        self.names = names
        self.unsaid = unsaid

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.SimpleString:
        if not original_node.value.startswith('"""'):
            return updated_node
        said = (
            without_entries(original_node.value, self.names) if "Args:" in original_node.value else original_node.value
        )
        return updated_node.with_changes(value=without_sentences(said, self.unsaid))


def switched_off(constants: Iterable[tuple[str, str]]) -> frozenset[str]:
    """The parameters that became None, False, a number or one of several names: what the others do need not be told."""
    return frozenset(name for name, value in constants if value in ("None", "False") or value[:1] in "\"'-.0123456789")


def without_sentences(docstring: str, names: frozenset[str]) -> str:
    """A docstring without the sentences that are about some parameters, named in backticks.

    Of the first sentence goes what stands behind a semicolon or in brackets. What stands from ``Args:`` on stays.
    """
    section = _SECTION.search(docstring)
    text = docstring[: section.start()] if section else docstring.removesuffix('"""').rstrip()
    if not any(f"`{name}`" in text for name in names):
        return docstring
    lines = [line for line in docstring.split("\n")[1:] if line.strip()]
    indent = min((line[: len(line) - len(line.lstrip())] for line in lines), key=len, default="    ")
    paragraphs = text.removeprefix('"""').split("\n\n")
    kept = [_kept(one, names, indent, first=index == 0) for index, one in enumerate(paragraphs)]
    said = "\n\n".join(one for one in kept if one)
    if section:
        return f'"""{said}{docstring[section.start() :]}'
    return f'"""{said}\n{indent}"""' if "\n" in said else f'"""{said}"""'


def _kept(paragraph: str, names: frozenset[str], indent: str, *, first: bool) -> str:
    """A paragraph without what it says of the parameters, filled again if anything went."""
    if not _is_about(paragraph, names):
        return paragraph.rstrip()
    sentences = _SENTENCE.split(" ".join(paragraph.split()))
    kept = [one for index, one in enumerate(sentences) if first and index == 0 or not _is_about(one, names)]
    if first:
        kept[0] = _CLAUSE.sub(lambda match: "" if _is_about(match[0], names) else match[0], kept[0])
    begin = "" if first else indent
    return textwrap.fill(" ".join(kept), _WIDTH, initial_indent=begin, subsequent_indent=indent)


def _is_about(sentence: str, names: frozenset[str]) -> bool:
    return any(f"`{name}`" in sentence for name in names)


def without_entries(docstring: str, names: frozenset[str]) -> str:
    """A docstring without the entries of some parameters."""
    out: list[str] = []
    entry = None
    for line in docstring.split("\n"):
        indent = len(line) - len(line.lstrip())
        match = re.match(r"(\w+): ", line.lstrip())
        if entry is not None and (indent > entry and line.strip() and not line.strip().startswith('"""')):
            continue
        entry = None
        if match and match[1] in names:
            entry = indent
            continue
        out.append(line)
    for index, line in enumerate(out):
        rest = [one for one in out[index + 1 :] if one.strip()]
        if line.strip() == "Args:" and (not rest or not re.match(r"\s+\w+: ", rest[0])):
            start = index - 1 if index and not out[index - 1].strip() else index
            out[start : index + 1] = []
            break
    text = "\n".join(out)
    return re.sub(r'^("""[^\n]*)\n\s*"""$', r'\1"""', text)
