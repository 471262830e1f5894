"""The forward pass: for every expression, what it is. Statements here, expressions in ``infer_expr``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import cached_property

from t2j_lsp.contract import SourceError
from t2j_lsp.translate.rule.factory import mark_factory_keywords
from t2j_lsp.translate.rule.facts import (
    NONE,
    UNKNOWN,
    Class,
    ClassInfo,
    Fact,
    Function,
    FunctionInfo,
    Instance,
    ListOf,
    ModuleClass,
    Qual,
    Scalar,
    Tensor,
    is_module_class,
)
from t2j_lsp.translate.rule.join import assign, forget, join
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.names import canonical, is_torch
from t2j_lsp.translate.source.scopes import Resolve, relative_resolve, star_names
from t2j_lsp.translate.source.text import Source

from .annotations import annotation_fact
from .flow import FlowInference
from .state import Parameter, join_all
from .unit_tests import is_test_file

MAX_IMPORT_DEPTH = 3
"""How far imports of imports are read."""


class Inference(FlowInference):
    """Facts of one file. ``facts`` maps each expression node to what is known of it."""

    def __init__(
        self,
        source: Source,
        resolve: Resolve | None = None,
        depth: int = 0,
        assumed: Mapping[ast.AST, Fact] | None = None,
        read: dict[tuple[str, str], Inference | None] | None = None,
    ) -> None:
        super().__init__()
        self.read = {} if read is None else read
        """Facts of the files read so far, by name and text; None while a file is being read."""
        self.assumed = assumed or {}
        """Facts of parameters and of assigned names, where nothing else is known of them."""
        self.source = source
        self.factory_dicts = mark_factory_keywords(source.tree)
        self.resolve = resolve
        self.depth = depth
        self.imports_torch = False
        self.imported: dict[str, Inference | None] = {}
        self.starred: set[str] = set()
        self.holds_tests = is_test_file(source.tree)
        self._declare(source.tree.body, None)
        self.block(source.tree.body, self.env)
        for info in list(self.functions.values()):
            self.infer_function(info)

    @cached_property
    def mentioned(self) -> set[str]:
        """Qualified names of all library objects that the file names."""
        return {fact.name for fact in self.facts.values() if isinstance(fact, Qual)}

    @cached_property
    def freezes(self) -> bool:
        """Whether the file sets ``requires_grad`` of anything."""
        return any(
            isinstance(n, ast.Attribute)
            and (n.attr == "requires_grad_" or n.attr == "requires_grad" and isinstance(n.ctx, ast.Store))
            for n in self.source.nodes
        )

    @cached_property
    def attribute_reads(self) -> dict[tuple[ClassInfo | None, str], list[ast.Attribute]]:
        """Reads of attributes by name and by the class of their owner, with its bases; None for unknown owners."""
        found: dict[tuple[ClassInfo | None, str], list[ast.Attribute]] = {}
        for node in self.source.nodes:
            if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Store):
                owner = self.facts.get(node.value)
                if isinstance(owner, Qual | Tensor):
                    continue
                owners = owner.cls.info.ancestry() if isinstance(owner, Instance) else [None]
                for info in owners:
                    found.setdefault((info, node.attr), []).append(node)
        return found

    def touches_torch(self) -> bool:
        """Whether the file uses torch classes that it imports from a neighbouring file."""
        return any(info.is_module for info in self.classes.values()) or any(
            is_module_class(fact) for fact in self.env.values()
        )

    # --- declarations ---------------------------------------------------------------------------------------------

    def _declare(self, body: Iterable[ast.stmt], outer: FunctionInfo | None) -> None:
        """Bind imports, classes and functions of the module level before any body is read."""
        for node in body:
            match node:
                case ast.Import() | ast.ImportFrom():
                    self.bind_import(node, self.env)
                case ast.ClassDef():
                    self.declare_class(node, self.env)
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self.env[node.name] = self.declare_function(node, None, None).fact
                case ast.If() | ast.Try() | ast.With() | ast.For() | ast.While():
                    for field in ("body", "orelse", "finalbody"):
                        self._declare(getattr(node, field, []), outer)
                    for handler in getattr(node, "handlers", []):
                        self._declare(handler.body, outer)

    def declare_class(self, node: ast.ClassDef, env: dict[str, Fact]) -> ClassInfo:
        if node in self.classes:
            return self.classes[node]
        info = ClassInfo(node.name, node, tuple(self.expr(base, env) for base in node.bases))
        self.classes[node] = info
        env[node.name] = info.fact
        if info.is_module:
            for ancestor in info.ancestry()[1:]:
                ancestor.mixed_in = not ancestor.is_module
        for item in node.body:
            if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
                info.methods[item.name] = self.declare_function(item, info, None)
                for decorator in item.decorator_list:
                    self.expr(decorator, env)
        return info

    def declare_function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, owner: ClassInfo | None, outer: FunctionInfo | None
    ) -> FunctionInfo:
        if node not in self.functions:
            self.functions[node] = FunctionInfo(node.name, node, owner, outer)
        return self.functions[node]

    def bind_import(self, node: ast.Import | ast.ImportFrom, env: dict[str, Fact]) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                self.imports_torch |= root == "torch"
                env[alias.asname or root] = Qual(canonical(alias.name) if alias.asname else root)
            return
        module = node.module or ""
        self.imports_torch |= node.level == 0 and (module == "torch" or module.startswith("torch."))
        if node.level == 0 and (module == "torch" or module.startswith("torch.")):
            for alias in node.names:
                if alias.name == "*":
                    bound = star_names(module)
                    env.update(bound)
                    self.starred |= bound.keys()
                else:
                    env[alias.asname or alias.name] = Qual(canonical(f"{module}.{alias.name}"))
            return
        other = self._imported(node.level, module)
        for alias in node.names:
            name = alias.asname or alias.name
            if alias.name == "*":
                if other is not None:
                    env.update({k: v for k, v in other.env.items() if not k.startswith("_")})
                else:
                    # Any name that an earlier star bound may be this module's.
                    env.update(dict.fromkeys(self.starred, UNKNOWN))
            elif other is not None and alias.name in other.env:
                env[name] = other.env[alias.name]
            else:
                prefix = "." * node.level + module
                env[name] = Qual(canonical(f"{prefix}.{alias.name}" if prefix.strip(".") else prefix + alias.name))

    def _imported(self, level: int, module: str) -> Inference | None:
        """Facts of a file that this one imports, if its text can be had."""
        key = "." * level + module
        if key not in self.imported:
            self.imported[key] = None
            text = self.resolve(level, module) if self.resolve and self.depth < MAX_IMPORT_DEPTH else None
            if text is not None:
                self.imported[key] = self._read(text, relative_resolve(self.resolve, level, module), module)
        return self.imported[key]

    def module_member(self, module: str, name: str) -> Fact | None:
        """What a module of the project binds, where it is used as a value: ``import net``, ``net.Net``."""
        if is_torch(module) or not module.strip("."):
            return None
        path = module.lstrip(".")
        other = self._imported(len(module) - len(path), path)
        fact = other.env.get(name) if other is not None else None
        return fact if isinstance(fact, Class | Function) else None

    def beside(self, module: str) -> Inference | None:
        """Facts of a file in the same folder, if its text can be had and has torch in it."""
        text = self.resolve(1, module) if self.resolve and self.holds_tests else None
        return self._imported(1, module) if text is not None and "torch" in text else None

    def _read(self, text: str, resolve: Resolve | None, module: str) -> Inference | None:
        """Facts of a file by its text, read once however many files import it."""
        key = (module.rpartition(".")[2], text)
        if key not in self.read:
            self.read[key] = None
            try:
                found = Inference(Source(text), resolve, self.depth + 1, read=self.read)
            except SourceError:
                return None
            for info in found.functions.values():
                info.external = True
            self.read[key] = found
        return self.read[key]

    # --- functions and classes ------------------------------------------------------------------------------------

    def infer_class(self, info: ClassInfo) -> None:
        """Attributes: class level first, then ``__init__``, then the other methods."""
        if info.inferred:
            return
        info.inferred = True
        for base in info.bases:
            if isinstance(base, Class):
                self.infer_class(base.info)
        if info.node not in self.classes:
            return
        saved, self.current_class = self.current_class, info
        scope = dict(self.env)
        for node in info.node.body:
            if isinstance(node, ast.Assign | ast.AnnAssign):
                self.statement(node, scope)
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name):
                        assign(info, target.id, scope.get(target.id, UNKNOWN))
            elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self.statement(node, scope)
                if isinstance(node, ast.ClassDef):
                    assign(info, node.name, scope[node.name])
        if "__init__" in info.methods:
            self.infer_function(info.methods["__init__"])
        for method in info.methods.values():
            self.infer_function(method)
        self.current_class = saved

    def infer_function(self, info: FunctionInfo) -> Fact:
        """Infer a body once; the value is the join of what it returns."""
        if info.returns is not None or info.inferring or info.node not in self.functions:
            return info.returns or self._declared_return(info)
        info.inferring = True
        if info.owner is not None:
            self.infer_class(info.owner)
            if info.returns is not None:
                return info.returns
        saved = self.current, self.evidence, self.weak, self.returned, self.yielded
        self.current, self.evidence, self.weak = info, {}, set()
        for _ in range(3):
            self.returned, self.yielded = [], []
            env = self._function_env(info)
            self.block(info.node.body, env)
            if self.evidence.items() <= info.learned.items():
                break
            info.learned |= self.evidence
            if info.owner is not None:
                forget(info.owner, info)
        returns = [ListOf(join_all(self.yielded))] if self.yielded else self.returned
        self.current, self.evidence, self.weak, self.returned, self.yielded = saved
        declared = self._declared_return(info)
        out: Fact = returns[0] if returns else NONE
        for fact in returns[1:]:
            out = join(out, fact)
        info.returns = declared if out in (UNKNOWN, NONE) and declared != UNKNOWN else out
        info.inferring = False
        return info.returns

    def _declared_return(self, info: FunctionInfo) -> Fact:
        return annotation_fact(info.node.returns, lambda n: self.expr(n, {**self.env, **info.env}))

    def _function_env(self, info: FunctionInfo) -> dict[str, Fact]:
        arguments = info.node.args
        env = dict(info.env) if info.outer else dict(self.env)
        for name in self.source.symbols.bound(info.node):
            env.pop(name, None)
        plain = arguments.posonlyargs + arguments.args
        defaults: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
        pairs = [*zip(plain, defaults, strict=True), *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
        static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in info.node.decorator_list)
        for index, (argument, default) in enumerate(pairs):
            if index == 0 and info.owner is not None and not static:
                env[argument.arg] = Instance(info.owner.fact) if argument.arg != "cls" else info.owner.fact
                continue
            fact = annotation_fact(argument.annotation, lambda n: self.expr(n, self.env))
            if argument.annotation is not None:
                self.expr(argument.annotation, self.env)
            if default is not None:
                from_default = self.expr(default, env)
                if fact == UNKNOWN and from_default != NONE:
                    fact = Scalar(from_default.kind) if isinstance(from_default, Scalar) else from_default
                    if isinstance(from_default, Qual) and from_default.name in LAYERS or _is_class(from_default):
                        fact = join(from_default, _ANY_CLASS)
            if fact == UNKNOWN:
                fact = self.assumed.get(argument, UNKNOWN)
            if fact == UNKNOWN:
                fact = info.learned.get(argument.arg, Parameter(argument.arg))
            env[argument.arg] = fact
        if arguments.vararg:
            env[arguments.vararg.arg] = ListOf(
                annotation_fact(arguments.vararg.annotation, lambda n: self.expr(n, self.env))
            )
        if arguments.kwarg:
            env[arguments.kwarg.arg] = ListOf(UNKNOWN, Scalar("str"))
        return env

    # --- statements -----------------------------------------------------------------------------------------------

    def _function_statement(self, node: ast.FunctionDef | ast.AsyncFunctionDef, env: dict[str, Fact]) -> None:
        for decorator in node.decorator_list:
            self.expr(decorator, env)
        info = self.declare_function(node, None, self.current)
        if info.owner is None:
            env[node.name] = info.fact
            if self.current is not None and self.current is not info:
                info.outer = self.current
                info.env = env
                info.returns, info.inferring = None, False
                self.current.callees.add(info)
                self.infer_function(info)


_ANY_CLASS = ModuleClass()


def _is_class(fact: Fact) -> bool:
    return isinstance(fact, Class) and fact.info.is_module
