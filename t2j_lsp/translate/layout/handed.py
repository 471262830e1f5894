"""Classes and modules that the functions of a file hand to each other: ``block`` in ``block(64, 64, downsample)``.

A parameter is followed where all calls of its function stand in the file, and where the function does nothing with it
but to call it, to ask for an attribute, to compare it with None, or to hand it on to such a parameter.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.inference.call_sites import bound_arguments
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Class, ClassInfo, Function, FunctionInfo
from t2j_lsp.translate.rule.facts import Layer
from t2j_lsp.translate.rule.layer import LAYERS

from .uses import compares_with_none, is_asked, is_of_super


class HandedOn:
    """Follows the parameters of a file's functions."""

    def __init__(self, inference: Inference, used_elsewhere: Collection[str]) -> None:
        self.inference, self.parents = inference, inference.source.parents
        self.used_elsewhere = used_elsewhere
        self.infos = {info.node: info for info in inference.functions.values()}
        self.reads: dict[ClassInfo | FunctionInfo, list[ast.expr]] = {}
        for node, fact in inference.facts.items():
            if isinstance(fact, Class | Function) and isinstance(node, ast.Name | ast.Attribute):
                if isinstance(node.ctx, ast.Load):
                    self.reads.setdefault(fact.info, []).append(node)
        self._called: dict[tuple[FunctionInfo, str], set[ast.Call] | None] = {}
        self._known: dict[tuple[FunctionInfo, str], set[ClassInfo] | None] = {}

    def made_by(self, call: ast.Call) -> set[ClassInfo]:
        """The classes of which a call of a parameter may make an instance; none where that isn't known."""
        info = self._function(call)
        if not isinstance(call.func, ast.Name) or info is None or self._calls(info, call.func.id) is None:
            return set()
        return self._classes(info, call.func.id) or set()

    def given_to(self, read: ast.expr) -> set[ast.Call] | None:
        """The calls of what a class is given to, as an argument or as a default; None where they aren't known."""
        parent = self.parents.get(read)
        if isinstance(parent, ast.arguments):
            function = self.parents[parent]
            info = self.infos.get(function) if isinstance(function, ast.FunctionDef) else None
            name = next((a.arg for a, default in symbols.defaults(parent) if default is read), None)
            return self._calls(info, name) if info is not None and name is not None else None
        call = self.parents.get(parent) if isinstance(parent, ast.keyword) else parent
        if not isinstance(call, ast.Call) or call.func is read:
            return None
        calls = [self._calls(info, arg.arg) for info, arg, value in self._bound(call) if value is read]
        return calls[0] if len(calls) == 1 else None

    def _calls(self, info: FunctionInfo, name: str) -> set[ast.Call] | None:
        """The calls of a parameter; None where anything else is done with it."""
        key = (info, name)
        if key not in self._called:
            self._called[key] = None  # what hands itself on isn't followed
            named = not info.external and name in {a.arg for a in symbols.named_parameters(info.node)}
            uses = [n for n in symbols.walk(info.node) if isinstance(n, ast.Name) and n.id == name] if named else []
            calls = [self._called_at(use, info) for use in uses]
            if named and None not in calls:
                self._called[key] = {call for some in calls for call in some or ()}
        return self._called[key]

    def _called_at(self, use: ast.Name, info: FunctionInfo) -> set[ast.Call] | None:
        parent = self.parents.get(use)
        if not isinstance(use.ctx, ast.Load) or self._function(use) is not info:
            return None
        if isinstance(parent, ast.Attribute) or compares_with_none(parent):
            return set()
        return {parent} if isinstance(parent, ast.Call) and parent.func is use else self.given_to(use)

    def _classes(self, info: FunctionInfo, name: str) -> set[ClassInfo] | None:
        """The classes that a parameter may be; None where that isn't known."""
        key = (info, name)
        if key not in self._known:
            self._known[key] = None
            sites = self.sites(info)
            classes = None if sites is None else [self._given(self.argument(site, info, name)) for site in sites]
            if classes is not None and None not in classes:
                self._known[key] = {one for some in classes for one in some or ()}
        return self._known[key]

    def _given(self, value: ast.expr | None) -> set[ClassInfo] | None:
        fact, info = self.inference.facts.get(value) if value else None, self._function(value) if value else None
        if not isinstance(value, ast.Name):
            return None
        if info is not None and value.id in {a.arg for a in symbols.named_parameters(info.node)}:
            return self._classes(info, value.id)
        return {fact.info} if isinstance(fact, Class) else None

    def sites(self, info: FunctionInfo) -> list[ast.Call] | None:
        """All calls of a function; None where it may be called elsewhere."""
        owner = info.owner
        if owner is not None and owner.name in self.used_elsewhere:
            return None
        calls: list[ast.Call] = []
        subject: ClassInfo | FunctionInfo = owner if owner is not None and info.name == "__init__" else info
        for read in self.reads.get(subject, []):
            parent = self.parents.get(read)
            if isinstance(parent, ast.Call) and parent.func is read:
                calls.append(parent)
            elif (handed := self.given_to(read)) is not None:
                calls += handed
            elif not is_asked(read, self.parents) and not is_of_super(parent):
                return None
        return calls

    def argument(self, call: ast.Call, info: FunctionInfo, name: str) -> ast.expr | None:
        """What a call gives a parameter, its default if nothing; None where that isn't known."""
        if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
            return None
        for parameter, value in bound_arguments(call, info):
            if parameter.arg == name:
                return value
        return next((d for a, d in symbols.defaults(info.node.args) if a.arg == name), None)

    def _bound(self, call: ast.Call) -> Iterator[tuple[FunctionInfo, ast.arg, ast.expr]]:
        """The parameters that a call gives something to, of each function that it may call."""
        fact = self.inference.facts.get(call.func)
        info = fact.info.method("__init__") if isinstance(fact, Class) else None
        info = fact.info if isinstance(fact, Function) else info
        if info is not None:
            for arg, value in bound_arguments(call, info):
                yield info, arg, value

    def _function(self, node: ast.AST) -> FunctionInfo | None:
        """The function that a node stands in; None in a lambda, a comprehension's own scope or a nested class."""
        parent = self.parents.get(node)
        while parent is not None and not isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
            if isinstance(parent, ast.Lambda | ast.ClassDef):
                return None
            parent = self.parents.get(parent)
        return self.infos.get(parent) if parent is not None else None

    # --- modules --------------------------------------------------------------------------------------------------

    def modules(self, info: FunctionInfo, name: str) -> list[ast.expr] | None:
        """The expressions that make what a parameter is given, which is kept in an attribute; None if not known."""
        uses = [n for n in symbols.walk(info.node) if isinstance(n, ast.Name) and n.id == name]
        stores = [use for use in uses if isinstance(self.parents.get(use), ast.Assign)]
        others = [use for use in uses if use not in stores]
        if len(stores) != 1 or not all(compares_with_none(self.parents.get(use)) for use in others):
            return None
        sites = self.sites(info)
        if not sites:
            return None
        made: list[ast.expr] = []
        for site in sites:
            value = self.argument(site, info, name)
            values = self._values(value) if value is not None else None
            if values is None:
                return None
            made += [one for one in values if one not in made]
        return None if any(map(self._is_function, made)) else made

    def _is_function(self, made: ast.expr) -> bool:
        """Whether a layer holds nothing: beside None in an attribute, it stays a module of PyTorch's axes."""
        fact = self.inference.facts.get(made)
        return isinstance(fact, Layer) and fact.name in LAYERS and LAYERS[fact.name].function

    def _values(self, value: ast.expr) -> list[ast.expr] | None:
        """What an argument is, where it is a variable that is only assigned and handed on."""
        if isinstance(value, ast.Constant) and value.value is None:
            return []
        if isinstance(value, ast.Call):
            return [value]
        function = self._function(value)
        if not isinstance(value, ast.Name) or function is None:
            return None
        made: list[ast.expr] = []
        for use in (n for n in symbols.walk(function.node) if isinstance(n, ast.Name) and n.id == value.id):
            parent = self.parents.get(use)
            match parent:
                case ast.Assign(targets=[ast.Name() as target], value=given) if target is use:
                    if isinstance(given, ast.Call):
                        made.append(given)
                    elif not (isinstance(given, ast.Constant) and given.value is None):
                        return None
                case ast.Call(args=args) if use in args and self._makes_one(parent):
                    pass
                case ast.keyword() if isinstance(call := self.parents.get(parent), ast.Call) and self._makes_one(call):
                    pass
                case _ if compares_with_none(parent):
                    pass
                case _:
                    return None
        return made

    def _makes_one(self, call: ast.Call) -> bool:
        """Whether a call makes an instance of a class of the file."""
        return isinstance(self.inference.facts.get(call.func), Class) or bool(self.made_by(call))
