"""What a file declares before any body is read: imports, classes and functions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from t2j_lsp.translate.rule.facts import UNKNOWN, Class, ClassInfo, Fact, Function, FunctionInfo, Qual
from t2j_lsp.translate.rule.names import canonical, is_torch
from t2j_lsp.translate.source.scopes import star_names

from .state import Env, Infer, State


class Imports:
    """What imports bind."""

    def __init__(self, state: State, read: Callable[[int, str], Env | None]) -> None:
        self.state = state
        self.read = read
        """What the module level of a file of the project binds, if its text can be had."""
        self.starred: set[str] = set()

    def bind(self, node: ast.Import | ast.ImportFrom, env: Env) -> bool:
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                self.state.imports_torch |= root == "torch"
                env[alias.asname or root] = Qual(canonical(alias.name) if alias.asname else root)
            return True
        module = node.module or ""
        self.state.imports_torch |= node.level == 0 and (module == "torch" or module.startswith("torch."))
        if node.level == 0 and (module == "torch" or module.startswith("torch.")):
            for alias in node.names:
                if alias.name == "*":
                    bound = star_names(module)
                    env.update(bound)
                    self.starred |= bound.keys()
                else:
                    env[alias.asname or alias.name] = Qual(canonical(f"{module}.{alias.name}"))
            return True
        other = self.read(node.level, module)
        for alias in node.names:
            name = alias.asname or alias.name
            if alias.name == "*":
                if other is not None:
                    env.update({k: v for k, v in other.items() if not k.startswith("_")})
                else:
                    # Any name that an earlier star bound may be this module's.
                    env.update(dict.fromkeys(self.starred, UNKNOWN))
            elif other is not None and alias.name in other:
                env[name] = other[alias.name]
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
        fact = other.get(name) if other is not None else None
        return fact if isinstance(fact, Class | Function) else None


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
                    self.state.env[node.name] = self.declare_function(node, None, None).fact
                case ast.If() | ast.Try() | ast.With() | ast.For() | ast.While():
                    for field in ("body", "orelse", "finalbody"):
                        self.declare(getattr(node, field, []))
                    for handler in getattr(node, "handlers", []):
                        self.declare(handler.body)

    def declare_class(self, node: ast.ClassDef, env: Env) -> ClassInfo:
        if node in self.state.classes:
            return self.state.classes[node]
        info = ClassInfo(node.name, node, tuple(self.infer.expr(base, env) for base in node.bases))
        self.state.classes[node] = info
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
            self.state.functions[node] = FunctionInfo(node.name, node, owner, outer)
        return self.state.functions[node]
