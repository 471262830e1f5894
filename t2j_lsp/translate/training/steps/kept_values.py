"""What modules read and change outside of themselves, which a compiled step does with what was there at first, once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors, function_around
from t2j_lsp.translate.inference.call_sites import called_function
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.module_methods import HOOKING
from t2j_lsp.translate.inference.rngs import draws_from_module
from t2j_lsp.translate.rule.definitions import Class, Function, FunctionInfo, is_module
from t2j_lsp.translate.rule.facts import Qual, Tensor
from t2j_lsp.translate.training.program.cut_values import GROWING

FROM_MODULE = "{} draws from the rngs of the module level, which compiled code can't change"
_CHANGES = "{} reads {}, which changes while the program runs; make it a parameter"
_INNER = ast.FunctionDef | ast.ClassDef | ast.Lambda | ast.comprehension
_SCOPES = _INNER | ast.AsyncFunctionDef | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_PARTIAL = Qual("functools.partial")


class KeptValues:
    """Looks for them in the methods of modules, what these call, and the functions that modules are given."""

    def __init__(self, inference: Inference) -> None:
        self.inference = inference
        self.source = inference.source

    @cached_property
    def problem(self) -> str | None:
        """Why no module of the file can be called in a compiled step; None if all can."""
        for info in self.inference.functions.values() if draws_from_module(self.inference) else ():
            for callee in info.callees if info.runs_in_module else ():
                if isinstance(callee, FunctionInfo) and callee.reads_rngs:
                    return FROM_MODULE.format(callee.name)
        for name, code, given in self._run_in_modules():
            inside = {*symbols.walk(code)}
            for node in inside:
                if isinstance(node, ast.Name) and self._changes(node, inside, given):
                    return _CHANGES.format(name, node.id)
                if isinstance(node, ast.Attribute) and self._is_set_again(node, inside, given):
                    return _CHANGES.format(name, ast.unparse(node))
                if changed := self._changed(node, inside):
                    return f"{name} changes {changed}, which isn't its module's: compiled code would do it once"
        return None

    def _run_in_modules(self) -> Iterator[tuple[str, ast.AST, ast.expr | None]]:
        """Code that modules run: with its name, and where a module is given it if it is."""
        seen = set[FunctionInfo]()
        for info in self.inference.functions.values():
            if info.runs_in_module and not info.external:
                seen.add(info)
                yield info.name, info.node, None
        for node in self.source.nodes:
            if not isinstance(node, ast.Lambda | ast.Name | ast.Attribute) or not self._is_handed_on(node):
                continue
            if isinstance(node, ast.Lambda):
                yield "a lambda", node, node
            waiting = [called_function(self.inference.fact(node))]
            while waiting:
                callee = waiting.pop()
                if callee is not None and callee not in seen and not callee.external:
                    seen.add(callee)
                    yield callee.name, callee.node, node
                    waiting += [one for one in callee.callees if isinstance(one, FunctionInfo)]

    def _is_handed_on(self, node: ast.expr) -> bool:
        """Whether a function is a value here that a module may be given, or keep."""
        parent = self.source.parents.get(node)
        if isinstance(parent, ast.keyword):
            parent = self.source.parents.get(parent)
        match parent:
            case ast.Call(func=func) if func is not node:
                called = self.inference.fact(func)
                return isinstance(called, Class | Function) or called == _PARTIAL
            case ast.Return() if self._makes_hooks(parent):
                return False
            case ast.Assign() | ast.Dict() | ast.List() | ast.Tuple() | ast.IfExp() | ast.arguments() | ast.Return():
                return not isinstance(getattr(node, "ctx", None), ast.Store)
        return False

    def _makes_hooks(self, returned: ast.Return) -> bool:
        """Whether all that a function returns is registered: ``layer.register_forward_hook(keep_as("conv"))``."""
        maker = function_around(returned, self.source.parents)
        calls = [n for n in self.source.nodes if isinstance(n, ast.Call)]
        made = [n for n in calls if (info := called_function(self.inference.fact(n.func))) and info.node is maker]
        takers = [self.source.parents.get(call) for call in made]
        return bool(made) and all(
            isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in HOOKING
            for one in takers
        )

    def _changes(self, name: ast.Name, inside: set[ast.AST], given: ast.expr | None) -> bool:
        """Whether what is read from outside gets another value while the program runs."""
        home = self.source.home(name)
        if home is None:
            return name.id in self._changing or self._is_set_later(name)
        if home in inside or given is None:
            return False
        later = (n for n in symbols.walk(home) if isinstance(n, ast.Name) and n.id == name.id and n not in inside)
        return any(
            not isinstance(n.ctx, ast.Load) and n.lineno > given.lineno and self.source.home(n) is home for n in later
        )

    def _is_set_again(self, read: ast.Attribute, inside: set[ast.AST], given: ast.expr | None) -> bool:
        """Whether an attribute of an object that isn't its module's gets another value: ``schedule.t``."""
        root = read.value
        if not isinstance(root, ast.Name) or not isinstance(read.ctx, ast.Load) or is_module(self.inference.fact(root)):
            return False
        home = self.source.home(root)
        own = root.id == "self" and given is not None
        outside = home not in inside and (home is not None or root.id in self._assigned)
        stores = (n for n in self.source.attributes.get(read.attr, ()) if not isinstance(n.ctx, ast.Load))
        return (own or outside) and any(self._sets_again(one) for one in stores if one not in inside)

    def _sets_again(self, store: ast.Attribute) -> bool:
        """Whether an attribute is set in a loop, from what it was, or by a method that isn't the constructor."""
        if is_module(self.inference.fact(store.value)):
            return False
        for around in ancestors(store, self.source.parents):
            if isinstance(around, ast.For | ast.While | ast.AugAssign):
                return True
            if isinstance(around, ast.FunctionDef):
                of_object = isinstance(store.value, ast.Name) and store.value.id == "self"
                return of_object and around.name not in ("__init__", "__post_init__")
        return False

    def _is_set_later(self, name: ast.Name) -> bool:
        """Whether a variable of the module level gets another value there behind a call that may run modules."""
        stores = [n for n in self._stored.get(name.id, ()) if n.lineno > name.lineno]
        return bool(stores) and any(name.lineno < call < stores[-1].lineno for call in self._calls)

    @cached_property
    def _calls(self) -> list[int]:
        """Lines of calls at the module level that may run modules."""
        calls = (n for n in self._at_module_level() if isinstance(n, ast.Call))
        facts = ((n, self.inference.fact(n.func)) for n in calls)
        return [n.lineno for n, fact in facts if isinstance(fact, Function) or is_module(fact)]

    @cached_property
    def _stored(self) -> dict[str, list[ast.Name]]:
        """Where the module level gives its variables values, by name."""
        out: dict[str, list[ast.Name]] = {}
        for node in self._at_module_level():
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                out.setdefault(node.id, []).append(node)
        return {name: sorted(nodes, key=lambda n: n.lineno) for name, nodes in out.items()}

    def _at_module_level(self) -> Iterator[ast.AST]:
        """The code outside of functions, classes and comprehensions."""
        waiting: list[ast.AST] = [*self.source.tree.body]
        while waiting:
            node = waiting.pop()
            if not isinstance(node, _SCOPES):
                yield node
                waiting += symbols.children(node)

    def _changed(self, node: ast.AST, inside: set[ast.AST]) -> str | None:
        """What a call or a write changes of what stands outside: ``calls.append(1)``, ``counts["n"] += 1``."""
        match node:
            case ast.Call(func=ast.Attribute(value=held, attr=attr)) if attr in GROWING:
                pass
            case ast.Subscript(value=held) | ast.Attribute(value=held) if not isinstance(node.ctx, ast.Load):
                pass
            case _:
                return None
        while isinstance(held, ast.Subscript | ast.Attribute):
            held = held.value
        if not isinstance(held, ast.Name) or held.id in ("self", "cls"):
            return None
        fact, home = self.inference.fact(held), self.source.home(held)
        if home in inside or is_module(fact) or isinstance(fact, Tensor | Class):
            return None
        return held.id if home is not None or held.id in self._assigned else None

    @cached_property
    def _assigned(self) -> set[str]:
        """Variables of the module level: no functions, classes or imports."""
        names = (n for n in self.source.nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        return {n.id for n in names if self.source.home(n) is None}

    @cached_property
    def _changing(self) -> set[str]:
        """Variables of the module level that get new values in functions or loops."""
        changing = set(self.source.symbols.bound_again)
        for node in self.source.tree.body:
            names = [n for n in symbols.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)]
            stores = [
                n for n in names if not any(isinstance(a, ast.comprehension) for a in ancestors(n, self.source.parents))
            ]
            if isinstance(node, ast.For | ast.While | ast.AugAssign | ast.With | ast.If | ast.Try):
                changing |= {n.id for n in stores if self._is_repeated(n)}
        return changing

    def _is_repeated(self, node: ast.AST) -> bool:
        """Whether a name of the module level gets its value in a loop, or from what it was."""
        around = list(ancestors(node, self.source.parents))
        if any(isinstance(at, _INNER) for at in around):
            return False
        return any(isinstance(at, ast.For | ast.While | ast.AugAssign) for at in around)
