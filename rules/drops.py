"""Statements that only serve PyTorch's own machinery, and go."""

from __future__ import annotations

from t2j_lsp.translate.rule.record import drop

drop("torch._C._log_api_usage_once", "Telemetry of PyTorch's.")
drop("torch._C._jit_set_profiling_mode", "There is no TorchScript.")
drop("torch._C._jit_set_profiling_executor", "There is no TorchScript.")
