"""Whether a conversion differs without ``jit`` too: then XLA, which compiles in haste here, is not why.

It is sooner known than by compiling with care.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from t2j_lsp.check.messages import Observations
from t2j_lsp.check.verdict.compare import Comparison, Difference, compare

from .process.requests import WorkerRequests
from .requests import JaxRequest

_OF_TRAINING_MODE = ("train output", "buffer after train")


def differ_without_jit(
    requests: WorkerRequests,
    request: JaxRequest,
    torch: Observations,
    evaluated: Observations | None,
    differences: Sequence[Difference],
) -> bool:
    """Whether the two sides differ without ``jit``: in evaluation mode, or in what differs of training mode.

    ``evaluated`` is what the conversion computed in evaluation mode without ``jit``, if that is known. Gradients are
    not asked for.
    """

    def computed(mode: str) -> Observations | None:
        alone = replace(request, wide=True, gradients=True, variants={}, eager_mode=mode)
        return requests.observe_jax(alone).observed.get(mode)

    evaluated = evaluated or computed("eval")
    if evaluated is None:
        return False
    if _part(["eval output"], torch, evaluated):
        return True
    if not any(d.name.startswith(_OF_TRAINING_MODE) for d in differences):
        return False
    return _part([n for n in torch if n.startswith(_OF_TRAINING_MODE)], torch, computed("train") or {})


def _part(names: Iterable[str], torch: Observations, jax: Observations) -> bool:
    """Whether observations with these names, as far as both sides have them, are different."""
    comparison = Comparison()
    for name in names:
        if name in jax:
            compare(name, torch[name], jax[name], comparison)
    return bool(comparison.differences)
