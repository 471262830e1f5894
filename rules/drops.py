"""Statements that only serve PyTorch's own machinery, and go."""

from __future__ import annotations

from t2j_lsp.translate.rule.record import drop

drop("torch._C._log_api_usage_once", "Telemetry of PyTorch's.")
drop("torch._C._jit_set_profiling_mode", "There is no TorchScript.")
drop("torch._C._jit_set_profiling_executor", "There is no TorchScript.")
for name in (
    *("jit_override_can_fuse_on_cpu", "jit_override_can_fuse_on_gpu", "jit_can_fuse_on_cpu", "jit_can_fuse_on_gpu"),
    *("jit_set_texpr_fuser_enabled", "jit_set_nvfuser_enabled", "jit_set_nvfuser_guard_mode"),
    *("jit_set_fusion_strategy", "jit_set_bailout_depth", "jit_set_num_profiled_runs"),
):
    drop(f"torch._C._{name}", "There is no TorchScript.")
