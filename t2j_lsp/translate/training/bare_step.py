"""The compiled function of an update of bare tensors: it is given them and optax's state, and gives both back."""

from __future__ import annotations

from t2j_lsp.translate.source.given import NOTHING_GIVEN

from .composed_step import Composer, UpdateStep, free
from .passed import Input


class BareComposer(Composer):
    """Puts the parts of such a step together."""

    def step(self) -> UpdateStep:
        one = self.update.optimized[0]
        self.leaves = [i.name for i in self.used if i.text in one.modules]
        self.leaves.sort(key=[self.inputs[text].name for text in one.modules].index)
        if self.at.scope.function is not None:
            self.used.append(Input(one.text, one.text, "static"))
        return super().step()

    def _transforms(self) -> str:
        """JAX's own, unless Flax's random state is passed, or a module; for the target ``jax``, where none are left."""
        pure = self.at.ctx.source.given is not NOTHING_GIVEN
        leaves = self.update.optimized[0].modules
        arrays = pure and all(i.text in leaves for i in self.modules)
        return self.at.need("jax" if arrays or not self._takes_variables() else "nnx")

    def _taken(self) -> list[Input]:
        state = self.update.optimized[0].state
        return [*self.modules, Input(state, state, "array"), *self.others]

    def _targets(self) -> list[str]:
        """What the step gives: the loss where it is wanted, the tensors, and the optimizer's state."""
        wanted = [n for n in self.returned if n != self.loss or n in self.update.live or n in self.body.results]
        return [*wanted, *self.leaves, self.update.optimized[0].state]

    def _call(self, name: str) -> str:
        call = super()._call(name)
        return f"{', '.join(self._targets())} = {call[call.index(f'{name}(') :]}"

    def _after(self) -> list[str]:
        one, optax = self.update.optimized[0], self.at.need("optax")
        tree = self.leaves[0] if len(self.leaves) == 1 else f"({', '.join(self.leaves)})"
        updates = free(self.names, "updates")
        return [
            f"{updates}, {one.state} = {one.text}.update({self.grads}, {one.state}, {tree})",
            f"{', '.join(self.leaves)} = {optax}.apply_updates({tree}, {updates})",
            f"return {', '.join(self._targets())}",
        ]
