"""Runs a converted program with given arguments and records what it computes, eagerly and under ``jit``."""

from __future__ import annotations

from flax import nnx

from t2j_lsp.check.inputs import RAISING
from t2j_lsp.check.messages import JaxObserved
from t2j_lsp.check.process.budget import NARROW, WIDER
from t2j_lsp.check.program.marks import RAN
from t2j_lsp.check.requests import JaxRequest

from .build import program
from .generate import generation
from .half import watched
from .session import ProgramSession


def observe(request: JaxRequest) -> JaxObserved:
    """What the torch side observed, computed here. ``left_out`` names what there was no time for."""
    with program(request) as (module, target), watched() as halves:
        session = ProgramSession(request, vars(module), target)
        session.halves = halves
        session.phase("construct", "", session.construct)
        if not session.errors:
            module_class = isinstance(session.model, nnx.Module)
            if request.eager_mode == "eval":
                session.phase("eval", "eval", lambda: session.evaluate(False))
                return session.result()
            if request.eager_mode == "train":
                session.phase("train", "train", lambda: session.train_forward(jit=False))
                return session.result()
            session.phase("eval under jit", "eval", lambda: session.evaluate(True))
            raising = any(name.startswith(RAISING) for name in request.variants)
            eager = request.eager and session.affords("without jit", WIDER)
            if eager or raising or session.errors:
                session.phase("eval", "eval", lambda: session.evaluate(False))
            mode = "train" if module_class else "eval"
            if not request.gradients:
                if module_class and session.affords("training mode in float32", 1.0):
                    session.phase("train under jit", mode, session.train_forward)
                return session.result()
            session.phase("train under jit", mode, lambda: session.train(True))
            session.reserve = NARROW
            if "train under jit" in session.errors:
                session.phase("train", mode, lambda: session.train(False))
            elif request.varies and module_class and session.affords("whether draws repeat", 1.0):
                session.phase("draws", "", session.fresh_draws)
        observed = session.result()
        observed.generate, observed.ran = generation(session), RAN.reported()
        return observed
