"""The compiled function of an update of bare tensors: it is given them and optax's state, and gives both back."""

from __future__ import annotations

from dataclasses import dataclass

from t2j_lsp.translate.source.given import NOTHING_GIVEN
from t2j_lsp.translate.training.program.passed import Input

from .compiled_function import CompiledFunction
from .composed_step import Composer, UpdateStep, free


@dataclass
class _BareFunction(CompiledFunction):
    leaves: tuple[str, ...] = ()
    """The tensors that it updates."""

    def transforms(self) -> str:
        """JAX's own, unless Flax's random state is passed, or a module; for the target ``jax``, where none are left."""
        pure = self.at.ctx.source.given is not NOTHING_GIVEN
        arrays = pure and all(i.text in self.leaves for i in self.used if i.kind == "module")
        return self.at.need("jax" if arrays or not self.takes_variables() else "nnx")


class BareComposer(Composer):
    """Puts the parts of such a step together."""

    def step(self) -> UpdateStep:
        one = self.update.optimized[0]
        self.leaves = [i for i in self.used if i.text in one.modules]
        self.leaves.sort(key=lambda one: self.update.optimized[0].modules.index(one.text))
        taken = self.body.words | {i.name for i in self.used}
        self.state = Input(free(taken, _last(one.state)), one.state, "array")
        self.optimizer = _last(one.text)
        if self.at.scope.function is not None:
            self.optimizer = free(taken | {self.state.name}, self.optimizer)
            self.used.append(Input(self.optimizer, one.text, "static"))
        return super().step()

    def _function(self) -> CompiledFunction:
        return _BareFunction(self.at, self.used, self.body.text, leaves=self.update.optimized[0].modules)

    def _taken(self) -> list[Input]:
        return [*self.modules, self.state, *self.others]

    def _wanted(self) -> list[str]:
        """What the step gives besides the tensors and the optimizer's state: the loss where it is wanted."""
        return [n for n in self.returned if n != self.loss or n in self.update.live or n in self.body.results]

    def _call(self, call: str) -> str:
        targets = [*self._wanted(), *(one.text for one in (*self.leaves, self.state))]
        return f"{', '.join(targets)} = {call}"

    def _after(self) -> list[str]:
        optax, state = self.at.need("optax"), self.state.name
        leaves = ", ".join(one.name for one in self.leaves)
        tree = leaves if len(self.leaves) == 1 else f"({leaves})"
        updates = free(self.names | {state}, "updates")
        return [
            f"{updates}, {state} = {self.optimizer}.update({self.grads}, {state}, {tree})",
            f"{leaves} = {optax}.apply_updates({tree}, {updates})",
            f"return {', '.join([*self._wanted(), leaves, state])}",
        ]


def _last(text: str) -> str:
    """The last name of ``self.alpha_optimizer``."""
    return text.rpartition(".")[2]
