"""Annotations of helpers: those for which alone the output would need an import go, and all in a file that has none."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Sequence
from dataclasses import replace
from functools import cache
from inspect import cleandoc

import libcst as cst

from t2j_lsp import symbols
from t2j_lsp.translate.source.helpers import HEADER, Helper, described, helper_names
from t2j_lsp.translate.source.text import Source

from .definitions import annotated, definition, names_in, nodes
from .joining import joined
from .parts import of_parts
from .transformer import Transformer, code, transformed

LIBRARIES = {"jax", "jnp", "nnx", "optax"}
RECORDS = {"NamedTuple", "TypedDict", "Protocol"}
"""Bases whose classes are made of their annotations."""
_OF_TYPES, _IGNORED = re.compile(r"\b(dict|list)\[[\w., ]+\]\(\)"), re.compile(r"  # type: ignore\[[\w-]+\]")
_DEFINED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
MODULES = ("from typing import ", "from collections.abc import ")


def is_annotated(source: Source) -> bool:
    """Whether whoever wrote a file annotates: a parameter, what a function returns, or a variable that is no field.

    Helpers that an earlier conversion wrote say nothing of that.
    """
    written = helper_names() if HEADER in source.text else frozenset[str]()
    own = (s for s in source.tree.body if not (isinstance(s, _DEFINED) and s.name in written))
    fields: set[ast.AST] = set()
    for node in (n for statement in own for n in symbols.walk(statement)):
        if isinstance(node, ast.ClassDef):
            fields.update(node.body)
        elif node not in fields and (getattr(node, "annotation", None) or getattr(node, "returns", None)) is not None:
            return True
    return False


def without_annotations(helpers: Sequence[Helper]) -> list[Helper]:
    """The helpers as they are written in a file without annotations.

    Fields of records keep theirs, if methods or defaults stand beside them, and functions that only their annotations
    show to be JAX: converted again, they would be read as PyTorch.
    """
    bare = [replace(h, text=_as_call(_without_idle_fields(_for_no_checker(h.text)))) for h in helpers]
    return [described(replace(h, text=joined(_without(h.text, None, _shown(h.text))))) for h in bare]


@cache
def _for_no_checker(text: str) -> str:
    """A definition without what only a type checker reads: ``dict[str, int]()``, and remarks to the checker."""
    text = _OF_TYPES.sub(lambda made: {"dict": "{}", "list": "[]"}[made[1]], text)
    return _IGNORED.sub("", text)


@cache
def _without_idle_fields(text: str) -> str:
    """A class that is no record without the attributes that it only annotates, and what is said of them."""
    node = definition(text)
    if not isinstance(node, ast.ClassDef) or _is_record(node):
        return text
    lines, gone = text.splitlines(keepends=True), set[int]()
    for field, behind in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(field, ast.AnnAssign) and field.value is None:
            gone.update(range(field.lineno - 1, field.end_lineno or field.lineno))
            match behind:
                case ast.Expr(value=ast.Constant(value=str())):
                    gone.update(range(behind.lineno - 1, behind.end_lineno or behind.lineno))
    return "".join(line for number, line in enumerate(lines) if number not in gone)


def _is_record(node: ast.ClassDef) -> bool:
    """Whether a class is made of its annotations, or may be by what decorates it."""
    return bool(node.decorator_list) or not RECORDS.isdisjoint(ast.unparse(b) for b in node.bases)


@cache
def _as_call(text: str) -> str:
    """A class of fields alone, which are nothing without annotations, as `namedtuple` makes it."""
    match definition(text):
        case ast.ClassDef(
            name=name,
            bases=[ast.Name("NamedTuple")],
            body=[ast.Expr(value=ast.Constant(value=str() as said)), ast.AnnAssign(), *_] as body,
        ):
            fields = [f.target.id for f in body[1:] if isinstance(f, ast.AnnAssign) and isinstance(f.target, ast.Name)]
        case _:
            return text
    if len(fields) < len(body) - 1 or any(getattr(field, "value", None) is not None for field in body[1:]):
        return text
    comment = "".join(f"# {line}".rstrip() + "\n" for line in cleandoc(said).splitlines())
    return f'{comment}{name} = namedtuple("{name}", "{" ".join(fields)}")\n'


@cache
def _shown(text: str) -> frozenset[str]:
    """The functions of a definition that name JAX, or what is built on it, in annotations alone."""
    node = definition(text)
    if isinstance(node, ast.ClassDef) and node.bases:
        return frozenset()  # the bases show it
    functions = [n for n in (node, *getattr(node, "body", ())) if isinstance(n, ast.FunctionDef)]
    return frozenset(f.name for f in functions if _roots(f, True) and not _roots(f, False))


def _roots(node: ast.FunctionDef, within: bool) -> set[str]:
    """The libraries that a function names in its annotations, or elsewhere."""
    inside = names_in(place for _, place in annotated(node))
    names = inside if within else {n for n in nodes(node) if isinstance(n, ast.Name)} - inside
    return LIBRARIES & {n.id for n in names}


def without_idle_annotations(helpers: Sequence[Helper], present: Container[str]) -> list[Helper]:
    """The helpers without annotations by names that nothing but annotations would be imported for.

    ``present`` are the names that the output has anyway.
    """
    imported = {line.split()[-1] for helper in helpers for line in helper.imports if line.startswith(MODULES)}
    needed = {name for helper in helpers for name in _needed(helper.text)}
    gone = frozenset(name for name in imported - needed if name not in present)
    return [described(replace(h, text=joined(_without(h.text, gone)))) if gone & {*h.uses} else h for h in helpers]


@cache
def _needed(text: str) -> frozenset[str]:
    """The names that a definition uses elsewhere than in annotations that may go."""
    node = definition(text)
    inside = names_in(place for one, place in annotated(node) if getattr(one, "value", one) is not None)
    return frozenset(n.id for n in nodes(node) if isinstance(n, ast.Name) and n not in inside)


@cache
def _without(text: str, names: frozenset[str] | None, kept: frozenset[str] = frozenset()) -> str:
    """A definition without annotations by some names, or without all of them but those of the functions ``kept``."""
    node = definition(text)
    fields = isinstance(node, ast.ClassDef) and _is_record(node)
    return of_parts(text, lambda part: _without_some(part, names, kept, fields))


@cache
def _without_some(text: str, names: frozenset[str] | None, kept: frozenset[str], fields: bool) -> str:
    if not any(True for _ in annotated(definition(text))):
        return text
    return transformed(text, lambda: _Annotations(names, kept, fields))


class _Annotations(Transformer):
    def __init__(self, names: frozenset[str] | None, kept: frozenset[str], fields: bool) -> None:
        """``fields``: whether those of the class make it."""
        super().__init__()
        self.fields = fields
        self.names = names
        self.kept = kept
        self.functions: list[str] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.functions.append(node.name.value)

    def leave_Param(self, original_node: cst.Param, updated_node: cst.Param) -> cst.Param:
        if not self._goes(original_node.annotation):
            return updated_node
        equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        return updated_node.with_changes(
            annotation=None, equal=equal if updated_node.default is not None else cst.MaybeSentinel.DEFAULT
        )

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        goes = self._goes(original_node.returns)
        self.functions.pop()
        return updated_node.with_changes(returns=None) if goes else updated_node

    def leave_AnnAssign(self, original_node: cst.AnnAssign, updated_node: cst.AnnAssign) -> cst.Assign | cst.AnnAssign:
        field = self.fields and self.names is None and not self.functions
        if updated_node.value is None or field or not self._goes(original_node.annotation):
            return updated_node
        return cst.Assign([cst.AssignTarget(updated_node.target)], updated_node.value)

    def _goes(self, annotation: cst.Annotation | None) -> bool:
        if annotation is None or self.names is None:
            shown = self.kept & {*self.functions}
            return annotation is not None and not (
                shown and LIBRARIES & set(re.findall(r"\w+", code(annotation.annotation)))
            )
        tree = ast.parse(code(annotation.annotation), mode="eval")
        return any(isinstance(n, ast.Name) and n.id in self.names for n in symbols.walk(tree))
