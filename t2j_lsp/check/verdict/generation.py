"""What two workers observed of a module's ``generate``, compared: part of the stage ``behavioral``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from t2j_lsp.check.messages import DrawProblem, Failure, GenerateCall, JaxObserved, Observations, TorchObserved

from .compare import Comparison
from .stages import Conditioning, compare_all, describe

_FORM = ("structure", "dtype")


@dataclass
class Generation:
    """The comparison, and what there is besides it."""

    comparison: Comparison = field(default_factory=Comparison)
    reasons: list[str] = field(default_factory=list)
    """Why something was not compared."""
    undecided: list[str] = field(default_factory=list)
    """Differences that rounding alone may be the cause of."""
    error: Failure | DrawProblem | None = None
    """What the JAX side raised, or two draws of it that are made with one key."""


def generated(torch: Mapping[int, TorchObserved], jax: JaxObserved, moved: Observations | None) -> Generation | None:
    """The two sides' calls of ``generate`` compared in float64; None where there are none.

    ``moved`` is what torch observed from a perturbed state. Tokens that it changes, or that torch in float32 has
    otherwise, decide nothing.
    """
    torch_run, jax_run = torch[64].generate, jax.generate
    if torch_run is None or (torch_run.calls and jax_run is None):
        return None
    generation = Generation(reasons=list(dict.fromkeys([*torch_run.reasons, *(jax_run.reasons if jax_run else [])])))
    if not jax_run:
        return generation
    generation.error = jax_run.error
    draws = [(name, d) for name, draws in jax_run.draws.items() for d in draws]
    unpaired = {name: d.text for name, d in draws if d.kind in ("kind", "shape")}
    generation.reasons += sorted({f"its random numbers can't be paired: {text}" for text in unpaired.values()})
    reused = [replace(d, call=n) for n, d in draws if d.kind == "reuse" and len(torch_run.calls[n].tape) > 1]
    generation.error = generation.error or next(iter(reused), None)
    narrow = torch[32].generate if 32 in torch else None
    conditions = [Conditioning(torch_run.observed, other) for other in (narrow and narrow.observed, moved) if other]
    allowed = (conditions or [Conditioning({}, {})])[0].meaning
    comparison = compare_all(torch_run.observed, jax_run.observed, unpaired, allowed)
    ill = [d for d in comparison.differences if d.kind not in _FORM and any(c.is_ill(d.name) for c in conditions)]
    if ill:
        comparison.differences = [d for d in comparison.differences if d not in ill]
        generation.undecided.append(f"torch's own float32 and float64 part in generate, where {describe(ill)}")
    generation.comparison = comparison
    return generation


def calls_of(torch: TorchObserved) -> dict[str, GenerateCall] | None:
    """The calls of ``generate`` in a run of torch's, for a request to make them again; None where there are none."""
    calls = torch.generate.calls if torch.generate is not None else {}
    return calls or None


def call_of(name: str, calls: Mapping[str, GenerateCall] | None) -> GenerateCall | None:
    """The call that an observation is from; None where it is from none."""
    names = [n for n in calls or {} if name.startswith(n)]
    if calls is None or not names:
        return None
    return calls[max(names, key=len)]
