"""Runs a converted program with given arguments and records what it computes, eagerly and under ``jit``."""

from __future__ import annotations

from typing import Any

from flax import nnx

from t2j_lsp.check.inputs import RAISING
from t2j_lsp.check.messages import JaxObserved
from t2j_lsp.check.process.budget import NARROW, WIDER
from t2j_lsp.check.program.marks import RAN

from .build import program
from .generate import generation
from .half import watched
from .session import ProgramSession


def observe(request: dict[str, Any]) -> JaxObserved:
    """What the torch side observed, computed here.

    The request holds ``slice``, ``init``, ``inputs``, ``wide``, ``seed``, ``steps``, ``eager``, ``gradients``, and of
    the torch side's result ``state``, ``cotangents``, ``tapes`` and ``varies``; ``variants`` are other inputs by the
    name of the observation. With ``careful``, XLA compiles so that a difference is none of its own; with ``nan``, also
    that NaN among gradients stays, where there was any. What repeats the
    rest is left out where it is not done within ``seconds``; ``left_out`` names it. Where ``jit`` is false, nothing but
    evaluation mode without it.
    """
    with program(request) as (module, target), watched() as halves:
        session = ProgramSession(request, vars(module), target)
        session.halves = halves
        session.phase("construct", "", session.construct)
        if not session.errors:
            module_class = isinstance(session.model, nnx.Module)
            if not request.get("jit", True):
                session.phase("eval", "eval", lambda: session.evaluate(False))
                return session.result()
            session.phase("eval under jit", "eval", lambda: session.evaluate(True))
            raising = any(name.startswith(RAISING) for name in request["variants"])
            eager = request["eager"] and session.affords("without jit", WIDER)
            if eager or raising or session.errors:
                session.phase("eval", "eval", lambda: session.evaluate(False))
            mode = "train" if module_class else "eval"
            if not request["gradients"]:
                if module_class and session.affords("training mode in float32", 1.0):
                    session.phase("train under jit", mode, session.train_forward)
                return session.result()
            session.phase("train under jit", mode, lambda: session.train(True))
            session.reserve = NARROW
            if "train under jit" in session.errors:
                session.phase("train", mode, lambda: session.train(False))
            elif request["varies"] and module_class and session.affords("whether draws repeat", 1.0):
                session.phase("draws", "", session.fresh_draws)
        observed = session.result()
        observed.generate, observed.ran = generation(session), RAN.to_plain()
        return observed
