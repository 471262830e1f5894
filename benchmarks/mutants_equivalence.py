"""Mutants that are no mistakes: the same computation, shown by equal jaxprs, or said why.

A jaxpr is the list of operations that JAX would run. Where the mutant has the same ones as the right conversion, with
the same constants, for an output in evaluation and in training mode, no input of that shape can tell them apart.
"""

from __future__ import annotations

import ast
from typing import Any

import jax
import numpy as np
from flax import nnx

from t2j_lsp.check.inputs import ArraySpec, comments_for, draw, map_values

from .mutants_objects import Subject


def same_computation(subject: Subject, text: str) -> bool:
    """Whether a mutated text does what the right conversion does."""
    try:
        return _jaxprs(subject, text) == _jaxprs(subject, subject.converted)
    except Exception:  # noqa: BLE001 - a mutant that raises is another computation
        return False


def _jaxprs(subject: Subject, text: str) -> list[Any]:
    namespace: dict[str, Any] = {"__name__": "mutant"}
    exec(compile(text, str(subject), "exec"), namespace)
    source = subject.path.read_text()
    node = next(n for n in ast.parse(source).body if getattr(n, "name", "") == subject.name)
    entries = comments_for(source, node)  # type: ignore[arg-type]
    args = entries.pop("args", ())
    rng = np.random.default_rng(0)
    inputs = map_values(entries, lambda e: draw(e, rng) if isinstance(e, ArraySpec) else e)
    target = namespace[subject.name]
    if not isinstance(target, type):
        return [_described(jax.make_jaxpr(lambda **given: target(**given))(**inputs))]
    model = target(*args, rngs=nnx.Rngs(0))
    state = [np.asarray(v) for v in jax.tree.leaves(nnx.state(model, nnx.Not(nnx.RngKey)))]
    found: list[Any] = [a.tobytes() for a in state]
    for mode in (model.train, model.eval):
        mode()
        graph, values = nnx.split(model)

        def call(values: Any, inputs: Any, graph: Any = graph) -> Any:
            merged = nnx.merge(graph, values)
            output = merged(**inputs)
            return output, nnx.state(merged)

        found.append(_described(jax.make_jaxpr(call)(values, inputs)))
    return found


def _described(jaxpr: Any) -> Any:
    return str(jaxpr.jaxpr), [np.asarray(c).tobytes() for c in jaxpr.consts]


EXPLAINED: dict[tuple[str, str], str] = {}
"""Why a mutant is no mistake, by object and mutation, where the jaxprs differ."""

UNSEEN: dict[tuple[str, str], str] = {}
"""Why a mutant is a mistake and yet not seen: it counts as a survivor."""
