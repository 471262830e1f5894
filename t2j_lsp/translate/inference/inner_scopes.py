"""Facts of expressions that bind names of their own."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.rule.facts import NONE, UNKNOWN, Fact, ListOf, MixedDict, Partial
from t2j_lsp.translate.rule.join import iterated

from .bindings import Bindings
from .forward_pass import Env, Infer, State
from .narrowing import Narrowing


class InnerScopes:
    """Expressions that bind names: comprehensions, lambdas, assignments inside; and what a generator yields."""

    def __init__(self, state: State, infer: Infer, bindings: Bindings, narrowing: Narrowing) -> None:
        self.state = state
        self.infer = infer
        self.bindings = bindings
        self.narrowing = narrowing

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, env: Env) -> Fact:
        scope = self._comprehension(node.generators, env)
        return ListOf(self.infer.expr(node.elt, scope))

    def dict_comprehension(self, node: ast.DictComp, env: Env) -> Fact:
        scope = self._comprehension(node.generators, env)
        key = self.infer.expr(node.key, scope)
        value = self.infer.expr(node.value, scope)
        return self._of_mixed(node) or ListOf(value, key)

    def _of_mixed(self, node: ast.DictComp) -> MixedDict | None:
        """``{k: v.to(device) if torch.is_tensor(v) else v for k, v in batch.items()}``: what is no tensor stays."""
        match node:
            case ast.DictComp(
                key=ast.Name(id=key),
                generators=[
                    ast.comprehension(
                        target=ast.Tuple(elts=[ast.Name(id=of), ast.Name(id=item)]),
                        iter=ast.Call(func=ast.Attribute(value=walked, attr="items"), args=[]),
                    )
                ],
            ) if key == of and any(isinstance(n, ast.Name) and n.id == item for n in symbols.walk(node.value)):
                fact = self.state.facts.get(walked)
                return fact if isinstance(fact, MixedDict) else None
        return None

    def function(self, node: ast.Lambda, env: Env) -> Fact:
        """A lambda that makes a module stands for its class, as one may that makes none: ``lambda: None``."""
        scope = {**env, **dict.fromkeys(symbols.parameter_names(node), UNKNOWN)}
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            self.infer.expr(default, env)
        body = self.infer.expr(node.body, scope)
        return Partial(body, made_by=node) if is_module(body) or body == NONE else UNKNOWN

    def named(self, node: ast.NamedExpr, env: Env) -> Fact:
        fact = self.infer.expr(node.value, env)
        self.bindings.bind(node.target, fact, env, node.value)
        return fact

    def yielded(self, node: ast.Yield, env: Env) -> Fact:
        self.state.body.yielded.append(self.infer.expr(node.value, env) if node.value is not None else NONE)
        return UNKNOWN

    def yielded_from(self, node: ast.YieldFrom, env: Env) -> Fact:
        self.state.body.yielded.append(self._iterated(node.value, self.infer.expr(node.value, env)))
        return UNKNOWN

    def _comprehension(self, generators: list[ast.comprehension], env: Env) -> Env:
        inner = dict(env)
        for generator in generators:
            self.bindings.bind(
                generator.target, self._iterated(generator.iter, self.infer.expr(generator.iter, inner)), inner, None
            )
            for condition in generator.ifs:
                self.infer.expr(condition, inner)
                self.narrowing.narrow(condition, inner)
        return inner

    def _iterated(self, node: ast.expr, fact: Fact) -> Fact:
        self.state.uses.note_indexed(fact)
        return iterated(fact)
