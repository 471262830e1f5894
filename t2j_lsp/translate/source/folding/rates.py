"""A schedule of an optimizer with one learning rate: one place to set, where parameter groups would have several."""

from __future__ import annotations

from collections.abc import Collection, Mapping

SCHEDULER = "LRScheduler"
_GROUPS = frozenset({"multi_transform", "partition"})
"""What gives an optimizer several learning rates."""
_ONE = (
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
)
"""How the scheduler finds and sets the rates, and how it does with one."""


def of_one_rate(texts: Mapping[str, str], words: Collection[str]) -> dict[str, str]:
    """The texts of helpers in a program that makes its optimizers itself, none of them of parameter groups."""
    changed = dict(texts)
    if SCHEDULER in texts and "inject_hyperparams" in words and _GROUPS.isdisjoint(words):
        for several, one in _ONE:
            assert several in changed[SCHEDULER], "the scheduler's text is another one"
            changed[SCHEDULER] = changed[SCHEDULER].replace(several, one)
    return changed
