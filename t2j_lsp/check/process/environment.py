"""The environment variables that a worker gets: an allow-list of the user's, and the frameworks' settings."""

from __future__ import annotations

import os
import site
from pathlib import Path

from .processes import DEVICE, GPU_SHARE, TAG

_PASSED = (
    "PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "VIRTUAL_ENV", "CONDA_PREFIX",
    "SYSTEMROOT", "WINDIR", "COMSPEC", "PATHEXT", "NUMBER_OF_PROCESSORS", "CUDA_HOME", "CUDA_PATH",
    "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "ROCM_PATH", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
)  # fmt: skip


def worker_environment(
    kind: str, device: str, scratch: str, tag: str, cache: Path | None = None, quick: bool = True
) -> dict[str, str]:
    """All variables of a worker on a device, ``cpu`` or ``gpu``; ``cache`` is the folder for compiled programs.

    With ``quick``, XLA on the CPU compiles fast and leaves programs as they are written, else as it does for users.

    Keys and tokens of the user's are not among them; its home is the scratch folder.
    """
    names = {name: os.environ[name] for name in _PASSED if name in os.environ}
    names |= {
        TAG: tag,
        DEVICE: device,
        "HOME": scratch,
        "USER": "t2j",
        "LOGNAME": "t2j",
        "TMPDIR": scratch,
        "TEMP": scratch,
        "TMP": scratch,
        "PYTHONUSERBASE": site.getuserbase(),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    if kind == "torch":
        # Scripted and compiled functions run as the Python they were written as.
        names |= {"PYTORCH_JIT": "0", "TORCH_COMPILE_DISABLE": "1", "TORCHDYNAMO_DISABLE": "1"}
    else:
        names |= {"JAX_DEFAULT_MATMUL_PRECISION": "highest", "TF_CPP_MIN_LOG_LEVEL": "3"}
        # What a compiled program says of the lines that it came from, which nobody reads here.
        names |= {"JAX_TRACEBACK_IN_LOCATIONS_LIMIT": "0", "JAX_INCLUDE_FULL_TRACEBACKS_IN_LOCATIONS": "0"}
        if cache is not None:
            names |= {
                "JAX_COMPILATION_CACHE_DIR": str(cache),
                "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
                "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
                # A cache of the GPU's, by default in the same folder, whose path would be part of each program's name.
                "JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES": "none",
            }
        if device != "gpu" and quick:
            # Programs run a few times on small inputs: compile time is what a check waits for. And XLA's algebraic
            # simplifier would hide NaN gradients that the same code gives without jit (0 * inf becomes 0).
            names |= {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1", "XLA_FLAGS": "--xla_disable_hlo_passes=algsimp"}
    return names | (_gpu(quick) if device == "gpu" else {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""})


_SCALES_IN_FLOAT32 = "--xla_disable_hlo_passes=cudnn-fused-convolution-rewriter"
"""XLA hands a constant that a convolution is multiplied by to cuDNN, in float32 also where all else is float64: dropout
behind one was off by 2.4e-8, float32's rounding of 1 / 0.7."""


def _gpu(quick: bool) -> dict[str, str]:
    """What makes both frameworks run on the same card, in full precision, and the same way each time.

    With ``quick``, an error on the card is raised where it happens, and not at some later call.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0")
    return {
        "CUDA_DEVICE_ORDER": os.environ.get("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),
        "CUDA_VISIBLE_DEVICES": visible.split(",")[0],
        **({"CUDA_LAUNCH_BLOCKING": "1"} if quick else {}),
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "NVIDIA_TF32_OVERRIDE": "0",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "XLA_PYTHON_CLIENT_MEM_FRACTION": str(GPU_SHARE),
        "XLA_FLAGS": f"--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0 {_SCALES_IN_FLOAT32}",
    }
