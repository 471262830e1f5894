"""Python's and NumPy's random numbers, which jit knows nothing of: they are drawn once, when the code is traced."""

from __future__ import annotations

import ast
from collections.abc import Set

from t2j_lsp.translate.rule.facts import Fact, FunctionInfo, Instance, Qual

from .call_sites import called_function
from .file import Inference
from .gates import Gate

_LIBRARIES = ("random.", "numpy.random.")
_NO_DRAWS = ("seed", "getstate", "setstate", "get_state", "set_state", "default_rng", "RandomState", "Random")
HOST_RANDOM = Gate(libraries=_LIBRARIES)
ONCE = "is drawn once under jit, when this is traced: draw from rngs, or hand the number in"


def is_host_draw(fact: Fact) -> bool:
    """Whether it is a function that draws outside of JAX: ``random.randint``, ``np.random.beta``."""
    return isinstance(fact, Qual) and fact.name.startswith(_LIBRARIES) and not fact.name.endswith(_NO_DRAWS)


def host_draw(inference: Inference, info: FunctionInfo, seen: Set[FunctionInfo] = frozenset()) -> str | None:
    """The text of a draw outside of JAX that a function makes, or what it calls in the file; None if there is none."""
    if info in seen or info.external:
        return None
    for node in ast.walk(info.node):
        if not isinstance(node, ast.Call):
            continue
        fact = inference.fact(node.func)
        if is_host_draw(fact):
            return ast.unparse(node.func)
        called = fact.cls.info.method("forward") if isinstance(fact, Instance) else called_function(fact)
        draw = host_draw(inference, called, {*seen, info}) if called is not None else None
        if draw is not None:
            return draw
    return None
