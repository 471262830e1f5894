"""A program as a change reads it: its tree, what its imports mean, and which names are free."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cached_property

import libcst as cst

Imports = ast.Import | ast.ImportFrom


class Source:
    """A parsed text. Nothing here asks the translator: what a change relies on, it reads off the text by itself."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def module(self) -> cst.Module:
        return cst.parse_module(self.text)

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def bound(self) -> Counter[str]:
        """How often each name is bound, in whatever scope."""
        return Counter(name for node in ast.walk(self.tree) for name in binds(node))

    @cached_property
    def imports(self) -> dict[str, str]:
        """What a name means that nothing but one import at the module's level binds: ``nn`` is ``torch.nn``."""
        imports: dict[str, str] = {}
        for node in self.tree.body:
            if isinstance(node, Imports):
                imports |= imported(node)
        return {name: meaning for name, meaning in imports.items() if self.bound[name] == 1}

    def dotted(self, node: cst.BaseExpression | cst.BaseAssignTargetExpression) -> str | None:
        """The full name of an imported thing: ``F.relu`` is ``torch.nn.functional.relu``."""
        parts: list[str] = []
        while isinstance(node, cst.Attribute):
            parts.append(node.attr.value)
            node = node.value
        if not isinstance(node, cst.Name) or node.value not in self.imports:
            return None
        return ".".join([self.imports[node.value], *reversed(parts)])

    @cached_property
    def words(self) -> frozenset[str]:
        """Every identifier of the text, whatever it stands for, and the words of its strings."""
        names = set(self.bound)
        for node in ast.walk(self.tree):
            match node:
                case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                    names.add(name)
                case ast.Constant(value=str(text)):
                    names.update("".join(c if c.isidentifier() or c.isdigit() else " " for c in text).split())
        return frozenset(names)

    def fresh(self, stem: str) -> str:
        """A name that the text has nowhere."""
        name, number = stem, 1
        while name in self.words:
            number += 1
            name = f"{stem}_{number}"
        return name

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        """The classes at the top level whose names mean nothing else anywhere."""
        classes = [n for n in self.tree.body if isinstance(n, ast.ClassDef)]
        return {n.name: n for n in classes if self.bound[n.name] == 1}

    def is_module_class(self, node: ast.ClassDef | cst.ClassDef) -> bool:
        """Whether a class derives from ``nn.Module``, as far as this file shows."""
        if isinstance(node, cst.ClassDef):
            if node.name.value not in self.classes:
                return False
            node = self.classes[node.name.value]
        for base in node.bases:
            if self.dotted(cst.parse_expression(ast.unparse(base))) == "torch.nn.Module":
                return True
            if isinstance(base, ast.Name) and base.id in self.classes and base.id != node.name:
                return self.is_module_class(self.classes[base.id])
        return False


def imported(node: Imports) -> dict[str, str]:
    """The names that an absolute import binds, and what they mean."""
    if isinstance(node, ast.Import):
        return {
            (a.asname or a.name.partition(".")[0]): (a.name if a.asname else a.name.partition(".")[0])
            for a in node.names
        }
    if node.level or node.module is None:
        return {}
    return {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names if a.name != "*"}


def binds(node: ast.AST) -> Iterator[str]:
    """The names that one node binds, wherever it stands."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import() | ast.ImportFrom():
            yield from ((a.asname or a.name.partition(".")[0]) for a in node.names)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names
