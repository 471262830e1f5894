"""How long a converted program takes for one call under ``jit``, and how long it compiles."""

from __future__ import annotations

from typing import Any

import jax

from t2j_lsp.check.messages import CallTimes
from t2j_lsp.check.requests import JaxRequest
from t2j_lsp.check.workers.clock import median_of

from .build import program
from .device import Options, usual_loops
from .session import OutputStructure, ProgramSession

_OPTIMIZED: Options = {
    "xla_backend_optimization_level": "3",
    "xla_llvm_disable_expensive_passes": False,
    "xla_disable_hlo_passes": "",
}
"""Workers compile in haste (`environment.py`); what is timed is compiled as users have it compiled."""
_NEVER = 1e9


def clock(request: JaxRequest) -> CallTimes:
    """Seconds of calls with the request's ``inputs`` and torch's ``state``; the first one compiles."""
    config: Any = jax.config
    ready: Any = jax.block_until_ready
    before = config.jax_persistent_cache_min_compile_time_secs
    with program(request) as (module, target):
        session = ProgramSession(request, vars(module), target)
        session.construct()
        model, shape = session.fresh(train=False), OutputStructure()
        run = session.compiled(
            lambda model, arrays: shape.take(session.call(model, arrays)), _OPTIMIZED | usual_loops()
        )
        try:
            # What is kept on disk would be compiled in no time the next time.
            config.update("jax_persistent_cache_min_compile_time_secs", _NEVER)
            return CallTimes(median_of(lambda arrays: ready(run(model, arrays)), lambda: session.arrays))
        finally:
            config.update("jax_persistent_cache_min_compile_time_secs", before)
