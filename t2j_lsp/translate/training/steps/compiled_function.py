"""A compiled function of training code: its decorator, what it takes, and what it is called with."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.traced_prints import prints_as_traced
from t2j_lsp.translate.rule.facts import AnyModule, Scalar
from t2j_lsp.translate.rule.library import is_loss
from t2j_lsp.translate.rule.tensors import holds_variable
from t2j_lsp.translate.training.program.allocations import Allocations
from t2j_lsp.translate.training.program.flow import DataFlow
from t2j_lsp.translate.training.program.given_functions import is_function
from t2j_lsp.translate.training.program.objects import DEPTH, Objects, VariableScope
from t2j_lsp.translate.training.program.passed import Input

from .bound_calls import BoundCalls

RANK = {"module": 0, "function": 2, "array": 3, "limit": 4, "static": 5}
"""The order of parameters by their kinds; an optimizer stands behind the modules."""


@dataclass(frozen=True)
class StepScope:
    """Where a step is written: the translation, the scope, and what names code of the output asks for."""

    ctx: Context
    objects: Objects
    scope: VariableScope
    flow: DataFlow
    need: Callable[[str], str]


@dataclass
class CompiledFunction:
    """What is known of a compiled function that takes ``used``, and optimizers if it ``updates``."""

    at: StepScope
    used: Sequence[Input]
    text: str
    """The code that it runs."""
    optimizers: Sequence[Input] = ()
    """What it updates by."""
    place: ast.stmt | None = None
    """The statement that calls it, where each call may be given the same modules and optimizers.

    An ``if`` stands for one that runs where its condition doesn't hold."""
    compiled: bool = True
    """Whether it is compiled at all."""

    @property
    def updates(self) -> bool:
        return bool(self.optimizers)

    @property
    def static(self) -> list[str]:
        """The parameters that are known when the function is traced."""
        return [one.name for one in self.used if self.is_static(one)]

    def static_argnames(self) -> str:
        """The option of the decorator that says so."""
        quoted = [f'"{name}"' for name in self.static]
        known = quoted[0] if len(quoted) == 1 else f"({', '.join(quoted)})"
        return f"static_argnames={known}" if quoted else ""

    def decorators(self) -> list[str]:
        """``@nnx.jit(static_argnames="criterion", graph=False)``; none where its calls compile it."""
        if self.is_bound:
            return []
        said = self.options()
        return [f"@{self.transforms()}.jit" + (f"({said})" if said else "")]

    def options(self) -> str:
        """How it is compiled: ``static_argnames="criterion", graph=False``."""
        return ", ".join(filter(None, [self.static_argnames(), "graph=False" if self.takes_trees() else ""]))

    def parameters(self, taken: Sequence[Input]) -> str:
        """What it takes, as the definition says it: what is bound by name stands last."""
        names = sorted(taken, key=self.is_static) if self.is_bound else taken
        return ", ".join(one.name for one in names)

    def call(self, name: str, taken: Sequence[Input]) -> str:
        """A call of it: ``train_step(model, optimizer, x)``, or ``bound_jit(train_step, model, optimizer)(x)``."""
        return self.printed(self._call(name, taken))

    def printed(self, call: str) -> str:
        """A call of it that waits for what its modules print."""
        places = [place for one in self.used if one.kind == "module" for place in one.places]
        prints = self.compiled and any(
            prints_as_traced(self.at.ctx.inference, self.at.ctx.fact(place)) for place in places
        )
        return f"{self.at.need('printed')}({call})" if prints else call

    def _call(self, name: str, taken: Sequence[Input]) -> str:
        if not self.is_bound:
            return f"{name}({', '.join(map(self.argument, taken))})"
        known = [f"{one.name}={self.argument(one)}" for one in taken if self.is_static(one)]
        held = [one for one in taken if one.kind in ("module", "optimizer")]
        given = [one for one in taken if one not in held and not self.is_static(one)]
        bound = ", ".join([name, *map(self.argument, held), *known])
        helper = self.at.need("bound_jit" if self.takes_trees() else "bound_jit_graph")
        return f"{helper}({bound})({', '.join(map(self.argument, given))})"

    def transforms(self) -> str:
        """The library whose transformations the function is under: Flax's, which know modules, or JAX's own."""
        return self.at.need("nnx" if self.updates or self.takes_variables() else "jax")

    def takes_variables(self) -> bool:
        """Whether it takes variables of Flax besides those of optimizers, or something that may hold some."""
        return bool(self._functions()) or not Allocations(self.at.objects).are_arrays(self.used)

    def takes_trees(self) -> bool:
        """Whether the modules that it takes are surely trees, and nothing else of it holds variables."""
        if self.transforms() != "nnx" or not all(isinstance(place, ast.Name) for place in self._functions()):
            return False
        return Allocations(self.at.objects).are_trees(self._modules, self.text)

    @property
    def _modules(self) -> list[list[ast.expr]]:
        return [i.places for i in self.used if i.kind == "module" and i.text != "rngs"]

    @cached_property
    def keeps_structure(self) -> bool:
        """Whether the modules that it takes are trees, or set no more than variables in its calls."""
        kept = self.transforms() == "nnx" and Allocations(self.at.objects).are_kept(self._modules, self.text)
        return kept or self.takes_trees()

    @cached_property
    def is_bound(self) -> bool:
        """Whether its calls may bind their modules and optimizers, and the functions that it takes besides."""
        held = [*(one for one in self.used if one.kind == "module"), *self.optimizers]
        plain = all(map(self._may_be_bound, self.used))
        if self.place is None or not held or not plain or self.hands_variables() or not self.keeps_structure:
            return False
        return BoundCalls.of(self.at.ctx, self.at.objects).keep_objects(self.place, self.at.scope, held)

    def hands_variables(self) -> bool:
        """Whether a call hands over a variable of Flax's that isn't bound: a parameter that no optimizer updates."""
        places = (place for one in self.used if one.kind in ("array", "limit") for place in one.places)
        return any(holds_variable(self.at.ctx.fact(place)) for place in places)

    def _may_be_bound(self, one: Input) -> bool:
        """Whether it is no function that may hold arrays, and no number of either type: 1 is found for 1.0."""
        facts = [self.at.ctx.fact(place) for place in one.places]
        of_one_type = {fact.kind for fact in facts if isinstance(fact, Scalar)} in ({"int"}, {"str"}, {"bool"})
        if one.kind == "static":
            return of_one_type and all(isinstance(fact, Scalar) for fact in facts)
        return one.kind != "function" or self.is_static(one)

    def _functions(self) -> list[ast.expr]:
        """The functions that it takes and that aren't known when it is traced."""
        return [place for i in self.used if i.kind == "function" and not self.is_static(i) for place in i.places]

    def is_static(self, one: Input) -> bool:
        """Whether a value is known when the function is traced, as a function is; under ``nnx.jit`` no module is."""
        if one.kind != "function":
            return one.kind == "static"
        objects, scope = self.at.objects, self.at.scope
        plain = all(self._is_loss(place, scope) or is_function(objects, place, scope) for place in one.places)
        return plain and not any(self._holds_arrays(place, scope) for place in one.places)

    def _is_loss(self, node: ast.expr, scope: VariableScope, depth: int = 0) -> bool:
        """Whether an expression gives a loss, also one that is passed for a parameter of any module."""
        fact = self.at.ctx.fact(node)
        if is_loss(fact) or not isinstance(fact, AnyModule) or depth > DEPTH:
            return is_loss(fact)
        sources = [*self.at.objects.sources(node, scope)]
        return bool(sources) and all(value is not None and self._is_loss(value, at, depth + 1) for value, at in sources)

    def _holds_arrays(self, node: ast.expr, scope: VariableScope, depth: int = 0) -> bool:
        """Whether a loss may be given arrays, ``nn.CrossEntropyLoss(weight=w)``: it is a module, and no function."""
        if isinstance(node, ast.Call):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            return is_loss(self.at.ctx.fact(node)) and not all(isinstance(self.at.ctx.fact(g), Scalar) for g in given)
        sources = self.at.objects.sources(node, scope) if depth <= DEPTH else ()
        return any(value is not None and self._holds_arrays(value, at, depth + 1) for value, at in sources)

    def argument(self, one: Input) -> str:
        """What it is called with."""
        if one.kind == "function" and not self.is_static(one):
            return f"{self.at.need('jax')}.tree_util.Partial({one.text})"
        return one.argument()
