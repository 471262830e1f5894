"""A schedule of an optimizer with one learning rate: one place to set, where parameter groups would have several."""

from __future__ import annotations

from collections.abc import Collection, Mapping

SCHEDULER, SETTER = "LRScheduler", "set_hyperparameter"
_GROUPS = frozenset({"multi_transform", "partition"})
"""What gives an optimizer several learning rates."""
_ONE = {
    SCHEDULER: (
        (
            'self.places = optax.tree.get_all_with_path(optimizer.opt_state, "learning_rate")',
            'self.held = optax.tree.get(optimizer.opt_state, "learning_rate")',
        ),
        (
            "        for _, held in self.places:\n"
            "            self.rate = rate = self.schedule(self.last_epoch)\n"
            "            held.set_value(jnp.asarray(rate, float))\n",
            "        self.rate = rate = self.schedule(self.last_epoch)\n"
            "        self.held.set_value(jnp.asarray(rate, float))\n",
        ),
    ),
    SETTER: (
        (
            "    state = optimizer.opt_state if label is None else optimizer.opt_state.inner_states[label]\n"
            '    parts = jax.tree.leaves(state, is_leaf=lambda part: hasattr(part, "hyperparams"))\n'
            '    kept = [part.hyperparams[name] for part in parts if name in getattr(part, "hyperparams", ())]\n'
            '    assert kept, f"the optimizer is made without optax.inject_hyperparams: its {name} can\'t be set"\n'
            "    for held in kept:\n"
            "        # one that began as a whole number is an integer\n"
            "        held.set_value(jnp.asarray(value, jnp.result_type(held[...], float)))\n",
            "    held = optax.tree.get(optimizer.opt_state, name)\n"
            "    # one that began as a whole number is an integer\n"
            "    held.set_value(jnp.asarray(value, jnp.result_type(held[...], float)))\n",
        ),
        ("\n\n    Of all groups of an `optax.multi_transform`, or of the one with a label.\n    ", ""),
    ),
}
"""How a scheduler finds and sets the rates, and what a program sets itself, and how both do with one."""


def of_one_rate(texts: Mapping[str, str], words: Collection[str]) -> dict[str, str]:
    """The texts of helpers in a program that makes its optimizers itself, none of them of parameter groups."""
    changed = dict(texts)
    if "inject_hyperparams" in words and _GROUPS.isdisjoint(words):
        for helper in _ONE.keys() & texts.keys():
            for several, one in _ONE[helper]:
                assert several in changed[helper], f"the text of {helper} is another one"
                changed[helper] = changed[helper].replace(several, one)
    return changed
