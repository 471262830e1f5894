"""What imports bind, and functions and classes: declared first, then their bodies, what they return and hold."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Protocol

from t2j_lsp import symbols
from t2j_lsp.symbols import Symbols, bound_as, positional_parameters
from t2j_lsp.translate.rule.definitions import Class, ClassInfo, Function, FunctionInfo, Instance
from t2j_lsp.translate.rule.facts import (
    NONE,
    TENSOR,
    UNKNOWN,
    Fact,
    ListOf,
    ModuleClass,
    Object,
    OptimizerFunction,
    Qual,
    Scalar,
    Tuple,
)
from t2j_lsp.translate.rule.join import assign, forget, join, join_all
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.names import canonical, is_torch
from t2j_lsp.translate.source.scopes import is_fallback, merge_fallback, star_names

from .annotations import annotation_fact
from .defaults import of_default, said_class
from .forward_pass import Body, Env, Flow, Infer, State, UnknownParameter
from .own_optimizers import named_function


class OtherFile(Protocol):
    """A file of the project that the converted one imports."""

    def ask(self, name: str) -> Fact | None:
        """What its module level binds to a name, if it binds it."""


class Imports:
    """What imports bind."""

    def __init__(
        self, state: State, read: Callable[[int, str], OtherFile | None], unbound: Callable[[], Iterable[str]]
    ) -> None:
        self.state = state
        self.read = read
        """A file of the project, if its text can be had."""
        self.unbound = unbound
        """The names that the file reads and doesn't bind: those that an import of everything may bring."""
        self.starred: set[str] = set()

    def bind(self, node: ast.Import | ast.ImportFrom, env: Env) -> bool:
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                self.state.imports_torch |= canonical(root).partition(".")[0] == "torch"
                env[alias.asname or root] = Qual(canonical(alias.name) if alias.asname else root)
            return True
        module = node.module or ""
        self.state.imports_torch |= node.level == 0 and canonical(module).partition(".")[0] == "torch"
        if node.level == 0 and (module == "torch" or module.startswith("torch.")):
            for alias in node.names:
                if alias.name == "*":
                    bound = star_names(module)
                    # Classes and functions of the file are known by now, and stand behind its imports.
                    env.update({n: f for n, f in bound.items() if not isinstance(env.get(n), Class | Function)})
                    self.starred |= bound.keys()
                else:
                    env[bound_as(alias)] = Qual(canonical(f"{module}.{alias.name}"))
            return True
        other = self.read(node.level, module)
        for alias in node.names:
            name = bound_as(alias)
            if alias.name == "*":
                if other is not None:
                    env.update({n: f for n in self.unbound() if n[0] != "_" and (f := other.ask(n)) is not None})
                else:
                    # Any name that an earlier star bound may be this module's.
                    env.update(dict.fromkeys(self.starred, UNKNOWN))
            elif other is not None and (fact := other.ask(alias.name)) is not None:
                env[name] = fact
            else:
                prefix = "." * node.level + module
                env[name] = Qual(canonical(f"{prefix}.{alias.name}" if prefix.strip(".") else prefix + alias.name))
        return True

    def member(self, module: str, name: str) -> Fact | None:
        """What a module of the project binds, where it is used as a value: ``import net``, ``net.Net``."""
        if is_torch(module) or not module.strip("."):
            return None
        path = module.lstrip(".")
        other = self.read(len(module) - len(path), path)
        fact = other.ask(name) if other is not None else None
        return fact if isinstance(fact, Class | Function | OptimizerFunction) else None


class Declarations:
    """Classes and functions, before any body is read."""

    def __init__(self, state: State, infer: Infer, imports: Imports) -> None:
        self.state = state
        self.infer = infer
        self.imports = imports

    def declare(self, body: Iterable[ast.stmt]) -> None:
        """Bind imports, classes and functions of the module level before any body is read."""
        for node in body:
            match node:
                case ast.Import() | ast.ImportFrom():
                    self.imports.bind(node, self.state.env)
                case ast.ClassDef():
                    self.declare_class(node, self.state.env)
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    made = self.declare_function(node, None, None)
                    self.state.env[node.name] = named_function(made) if node.decorator_list else made.fact
                case ast.Try() if is_fallback(node):
                    self._declare_fallback(node)
                case ast.If() | ast.Try() | ast.TryStar() | ast.With() | ast.For() | ast.While() | ast.Match():
                    for block in symbols.own_blocks(node):
                        self.declare(block)

    def _declare_fallback(self, node: ast.Try) -> None:
        self.declare(node.body)
        for handler in node.handlers:
            tried = dict(self.state.env)
            self.declare(handler.body)
            merge_fallback(self.state.env, node, tried, dict(self.state.env))
        self.declare([*node.orelse, *node.finalbody])

    def declare_class(self, node: ast.ClassDef, env: Env) -> ClassInfo:
        if node in self.state.classes:  # the function around it is read once more
            env[node.name] = self.state.classes[node].fact
            return self.state.classes[node]
        facts = [self.infer.expr(base, env) for base in node.bases]
        generic = (base.value if isinstance(base, ast.Subscript) else None for base in node.bases)
        bases = tuple(f if g is None else self.infer.expr(g, env) for f, g in zip(facts, generic, strict=True))
        info = ClassInfo(node.name, node, bases, home=self.state.home)
        self.state.classes[node] = info
        made_by = [self.infer.expr(symbols.called_decorator(one), env) for one in node.decorator_list]
        info.is_dataclass = Qual("dataclasses.dataclass") in made_by
        env[node.name] = info.fact
        if info.is_module:
            for ancestor in info.ancestry()[1:]:
                ancestor.mixed_in = not ancestor.is_module
        for item in node.body:
            if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
                info.methods[item.name] = self.declare_function(item, info, None)
                for decorator in item.decorator_list:
                    self.infer.expr(decorator, env)
        return info

    def declare_function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, owner: ClassInfo | None, outer: FunctionInfo | None
    ) -> FunctionInfo:
        if node not in self.state.functions:
            self.state.functions[node] = FunctionInfo(node.name, node, owner, outer, home=self.state.home)
        return self.state.functions[node]


class Bodies:
    """Bodies of functions and classes, each inferred once."""

    def __init__(self, symbols: Symbols, state: State, infer: Infer, flow: Flow, declarations: Declarations) -> None:
        self.symbols = symbols
        self.state = state
        self.infer = infer
        self.flow = flow
        self.declarations = declarations
        self.read_as_none: dict[FunctionInfo, set[str]] = {}
        """Attributes of their class that methods read while all that was known of them was None."""

    def infer_class(self, info: ClassInfo) -> None:
        """Attributes: class level first, then ``__init__``, then the other methods."""
        if info.inferred:
            return
        if info.node not in self.state.classes:
            if info.home is not None:
                info.home.infer_class(info)
            return
        info.inferred = True
        home = self.state.home
        if home is not None:
            home.begin_class(info)
        for base in info.bases:
            if isinstance(base, Class):
                self.infer_class(base.info)
        saved, self.state.class_info = self.state.class_info, info
        scope = dict(self._around(info))
        declared: list[str] = []
        for node in info.node.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and info.is_dataclass:
                info.fields[node.target.id] = annotation_fact(node.annotation, lambda n: self.infer.expr(n, scope))
            if isinstance(node, ast.AnnAssign) and node.value is None:
                self.flow.statement(node, scope)
                declared += [node.target.id] if isinstance(node.target, ast.Name) else []
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                self.flow.statement(node, scope)
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name):
                        assign(info, target.id, scope.get(target.id, UNKNOWN))
            elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self.flow.statement(node, scope)
                if isinstance(node, ast.ClassDef):
                    assign(info, node.name, scope[node.name])
        if "__init__" in info.methods:
            self.infer_function(info.methods["__init__"])
        for name in declared:
            if info.attributes.get(name, UNKNOWN) == UNKNOWN:  # what a constructor makes of it says more
                assign(info, name, scope.get(name, UNKNOWN))
        for method in info.methods.values():
            if home is None or home.tells_of_attributes(method):
                self.infer_function(method)
        self._infer_readers_of_none(info)
        self.state.class_info = saved

    def _infer_readers_of_none(self, info: ClassInfo) -> None:
        """Methods that read what had been None so far, and is given something further down: ``self.cache.device``."""
        for method in info.methods.values():
            read = self.read_as_none.pop(method, set())
            if any(info.attribute(name) not in (UNKNOWN, NONE) for name in read):
                method.returns = None
                self.infer_function(method)

    def infer_function(self, info: FunctionInfo) -> Fact:
        """Infer a body once; the value is the join of what it returns."""
        if info.node not in self.state.functions and info.home is not None:
            return info.home.infer_function(info)
        if info.returns is not None or info.inferring or info.node not in self.state.functions:
            return info.returns or self._declared_return(info)
        info.inferring = True
        if info.owner is not None:
            self.infer_class(info.owner)
            if info.returns is not None:
                return info.returns
        if self.state.home is not None and not self.state.home.begin(info):
            info.inferring = False
            return self._declared_return(info)
        saved = self.state.function, self.state.body
        self.state.function, self.state.body = info, Body()
        for _ in range(3):
            self.state.body.returned, self.state.body.yielded, self.state.body.tuples = [], [], []
            env = self._function_env(info)
            self.flow.block(info.node.body, env)
            if self.state.body.observed.items() <= info.learned.items():
                break
            info.learned |= self.state.body.observed
            if info.owner is not None:
                forget(info.owner, info)
        body = self.state.body
        returns = [ListOf(join_all(body.yielded))] if body.yielded else body.returned
        self.state.function, self.state.body = saved
        declared = self._declared_return(info)
        out: Fact = returns[0] if returns else UNKNOWN if _is_left_to_others(info) else NONE
        for fact in returns[1:]:
            out = join(out, fact)
        for made in body.tuples:
            kept = join(info.tuples.get(len(made.items), made), made)
            info.tuples |= {len(made.items): kept} if isinstance(kept, Tuple) else {}
        info.returns = declared if out in (UNKNOWN, NONE) and declared != UNKNOWN else out
        info.inferring = False
        if self.state.home is not None:
            self.state.home.end()
        return info.returns

    def _declared_return(self, info: FunctionInfo) -> Fact:
        return self._stated(info.node.returns, {**self.state.env, **info.env})

    def _stated(self, annotation: ast.expr | None, env: Env) -> Fact:
        """What an annotation says, if there is one."""
        return annotation_fact(annotation, lambda n: self.infer.expr(n, env)) if annotation is not None else UNKNOWN

    def _function_env(self, info: FunctionInfo) -> Env:
        arguments = info.node.args
        env = dict(info.env) if info.outer else dict(self._around(info.owner))
        env |= {name: of_default(env[name]) for name in self.symbols.bound_again & env.keys()}
        for name in self.symbols.bound(info.node):
            env.pop(name, None)
        plain = positional_parameters(info.node)
        defaults: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
        pairs = [*zip(plain, defaults, strict=True), *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
        static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in info.node.decorator_list)
        for index, (argument, default) in enumerate(pairs):
            if index == 0 and info.owner is not None and not static:
                env[argument.arg] = self._own_first(info, info.owner, argument.arg)
                continue
            fact = self._stated(argument.annotation, self.state.env)
            if argument.annotation is not None:
                self.infer.expr(argument.annotation, self.state.env)
            if default is not None:
                from_default = self.infer.expr(default, env)
                if said_class(fact, from_default, argument.arg, info):
                    fact = UNKNOWN
                if fact == UNKNOWN and from_default != NONE:
                    known = self.state.assumed.get(argument)
                    fact = self.state.current(known) if isinstance(known, Class) else of_default(from_default)
                    self.state.callers.hands_classes |= isinstance(from_default, Class)
            if fact == UNKNOWN:
                fact = self.state.current(self.state.assumed.get(argument, UNKNOWN))
            if fact == UNKNOWN:
                fact = _of_own_gradient(info, index)
            if fact == UNKNOWN:
                fact = info.learned.get(argument.arg, UnknownParameter(argument.arg))
            env[argument.arg] = fact
        if arguments.vararg:
            env[arguments.vararg.arg] = ListOf(self._stated(arguments.vararg.annotation, self.state.env))
        if arguments.kwarg:
            env[arguments.kwarg.arg] = ListOf(UNKNOWN, Scalar("str"))
        return env

    def _own_first(self, info: FunctionInfo, owner: ClassInfo, name: str) -> Fact:
        """What a method is called on: an object, its class, or in ``__init_subclass__`` a class derived from it."""
        if info.name == "__init_subclass__" and self.has_modules_below(owner):
            return ModuleClass()
        return owner.fact if name == "cls" else Instance(owner.fact)

    def has_modules_below(self, owner: ClassInfo) -> bool:
        """Whether classes that derive from this one are modules."""
        return any(one.is_module and owner in one.ancestry() for one in self.state.classes.values())

    def _around(self, owner: ClassInfo | None) -> Env:
        """The names that a class and its methods see: those of the function it stands in, or of the module."""
        return owner.env if owner is not None and owner.env is not None else self.state.env

    def class_statement(self, node: ast.ClassDef, env: Env) -> bool:
        info = self.declarations.declare_class(node, env)
        function = self.state.function
        if function is not None and any(one is node for one in symbols.walk(function.node)):
            info.env = env
            for later in function.node.body:  # which its methods may make objects of, too
                if isinstance(later, ast.ClassDef) and later.lineno > node.lineno:
                    self.declarations.declare_class(later, env)
        for decorator in node.decorator_list:
            self.infer.expr(decorator, env)
        self.infer_class(info)
        return True

    def function_statement(self, node: ast.FunctionDef | ast.AsyncFunctionDef, env: Env) -> bool:
        for decorator in node.decorator_list:
            self.infer.expr(decorator, env)
        info = self.declarations.declare_function(node, None, self.state.function)
        if info.owner is None:
            env[node.name] = named_function(info) if node.decorator_list else info.fact
            if self.state.function is not None and self.state.function is not info:
                info.outer = self.state.function
                info.env = env
                info.returns, info.inferring = None, False
                self.state.function.callees.add(info)
                self.infer_function(info)
        return True


def _is_left_to_others(info: FunctionInfo) -> bool:
    """Whether a method only raises, or does nothing: classes that derive from its own say what it gives."""
    body = info.node.body
    empty = all(
        isinstance(node, ast.Pass) or isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for node in body
    )
    return info.owner is not None and (empty or isinstance(body[-1], ast.Raise))


def _of_own_gradient(info: FunctionInfo, index: int) -> Fact:
    """The parameters of a function with a gradient of its own: its context, the first input, all gradients."""
    if info.owner is None or not names_with(Trait.OWN_GRADIENT) & set(info.owner.torch_bases):
        return UNKNOWN
    match info.name, index:
        case "forward" | "backward", 0:
            return Object("context")
        case "forward", 1:
            return TENSOR
        case "backward", _:
            return TENSOR
    return UNKNOWN
