"""Which parameter of hand-written JAX is which of torch's: by name, by shape, and last by order."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Axes = tuple[int, ...] | None
"""How torch's axes are permuted on the JAX side; None: not at all."""
Pair = tuple[str, str, Axes]
"""Torch's name, the JAX side's, and how the axes are permuted."""
COUNTER = "num_batches_tracked"

_TRANSPOSED = {2: (1, 0), 3: (2, 1, 0), 4: (2, 3, 1, 0), 5: (2, 3, 4, 1, 0)}
"""How JAX code usually holds matrices and convolution kernels of torch."""
_KINDS = {
    "weight": {"weight", "kernel", "w", "scale", "embedding", "table", "gamma"},
    "bias": {"bias", "b", "beta"},
    "running_mean": {"running_mean", "mean"},
    "running_var": {"running_var", "var"},
}


@dataclass(frozen=True)
class Pairing:
    """Pairs that take in all of torch's state and all of the JAX side's. ``sure``: order alone decided nothing."""

    pairs: tuple[Pair, ...]
    sure: bool


def inferred(state: Mapping[str, Any], own: Mapping[str, tuple[int, ...]], free_layout: bool) -> Pairing | None:
    """Pairs by name, by shapes that occur once, by what belongs together, and last by order; None if one is left over.

    ``state`` has torch's arrays in torch's order, ``own`` the shapes of the JAX side in its order, which with
    ``free_layout`` may hold matrices and kernels transposed.
    """
    torch = {n: tuple(a.shape) for n, a in state.items() if not n.endswith(COUNTER)}
    tied = _tied(state, torch)
    torch = {n: s for n, s in torch.items() if n not in tied}
    ways = {t: {o: _axes(shape, s, free_layout) for o, s in own.items()} for t, shape in torch.items()}
    fits = {t: [o for o, axes in pairing.items() if axes] for t, pairing in ways.items()}
    pairing: dict[str, str] = {}

    def pair(choice: Callable[[str, list[str]], list[str]]) -> None:
        changed = True
        while changed:
            changed = False
            for t in torch:
                left = [o for o in fits[t] if o not in pairing.values()]
                chosen = choice(t, left) if t not in pairing else []
                rivals = [
                    u for u in torch if u != t and u not in pairing and chosen and chosen[0] in choice(u, fits[u])
                ]
                if len(chosen) == 1 and not rivals:
                    pairing[t], changed = chosen[0], True

    def owned(t: str, left: list[str]) -> list[str]:
        owners = {_owner(u): _owner(o) for u, o in pairing.items()}
        return [o for o in left if owners.get(_owner(t)) == _owner(o)]

    pair(lambda t, left: [o for o in left if o == t])
    pair(lambda t, left: [o for o in left if _same_name(t, o)])
    pair(lambda t, left: left)
    pair(lambda t, left: [o for o in owned(t, left) if _same_kind(t, o)])
    pair(owned)
    pair(lambda t, left: [o for o in left if _same_kind(t, o)])
    pair(lambda t, left: left)
    sure = len(pairing) == len(torch)
    for t in torch:
        left = [o for o in fits[t] if o not in pairing.values()]
        if t not in pairing and left:
            pairing[t] = left[0]
    if len(pairing) < len(torch) or set(own) - set(pairing.values()):
        return None
    axes, certain = _decided({t: ways[t][o] for t, o in pairing.items()}, torch, pairing)
    pairs = [(t, o, axes[t]) for t, o in pairing.items()]
    pairs += [(t, pairing[first], axes[first]) for t, first in tied.items()]
    return Pairing(tuple(pairs), sure and certain)


def _tied(state: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, str]:
    """Names of torch whose values are those of an earlier name: one tensor under two names."""
    first: dict[Any, str] = {}
    tied = {}
    for name, shape in names.items():
        array = np.asarray(state[name])
        key = (shape, array.tobytes())
        if key in first and array.size > 1 and array.dtype.kind == "f" and array.std() > 0:
            tied[name] = first[key]
        first.setdefault(key, name)
    return tied


def _axes(torch: tuple[int, ...], own: tuple[int, ...], free_layout: bool) -> list[Axes]:
    """The ways in which a torch tensor can be held in an array of a shape."""
    axes: list[Axes] = [None] if torch == own else []
    usual = _TRANSPOSED.get(len(torch)) if free_layout and len(own) == len(torch) else None
    if usual is not None and tuple(torch[i] for i in usual) == own:
        axes.append(usual)
    return axes


def _decided(
    ways: Mapping[str, list[Axes]], shapes: Mapping[str, tuple[int, ...]], names: Mapping[str, str]
) -> tuple[dict[str, Axes], bool]:
    """One way for each pair. Square ones are held as those of the same rank that can only be held in one way."""
    clear = {len(shapes[t]): decided[0] for t, decided in ways.items() if len(decided) == 1}
    axes: dict[str, Axes] = {}
    certain = True
    for name, decided in ways.items():
        rank = len(shapes[name])
        kernel = names[name].rpartition(".")[2].lower() == "kernel"
        axes[name] = decided[0] if len(decided) == 1 else clear[rank] if rank in clear else decided[kernel]
        certain = certain and (len(decided) == 1 or rank in clear or kernel)
    return axes, certain


def _same_name(torch: str, own: str) -> bool:
    """Whether two names mean the same: ``fc1.weight`` and ``fc1.kernel`` or ``params.fc1.w``."""
    owner = _bare(_owner(torch))
    return _same_kind(torch, own) and bool(owner) and _bare(_owner(own)).endswith(owner)


def _same_kind(torch: str, own: str) -> bool:
    """Whether two names end alike: ``weight`` and ``kernel``."""
    leaf, last = torch.rpartition(".")[2], own.rpartition(".")[2].lower()
    return leaf in ([kind for kind, names in _KINDS.items() if last in names] or [last])


def _owner(name: str) -> str:
    return name.rpartition(".")[0]


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
