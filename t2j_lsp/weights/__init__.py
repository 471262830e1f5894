"""PyTorch state dicts in and out of converted modules.

A converted module keeps PyTorch's attribute names, so a variable's path is its name in the state dict, but for
what the standard Flax layers call and store otherwise (``kernel`` for ``weight``, ``(in, out)`` for ``(out, in)``).
``names`` knows these differences, ``state`` moves values across, ``arrays`` reads files and tensors. Torch is
imported only to read a ``.pt`` file or to make tensors, when asked.
"""

from __future__ import annotations

from .names import TorchEntry, torch_layout, torch_names
from .state import WeightsError, load_torch_state, torch_state

__all__ = ["TorchEntry", "WeightsError", "load_torch_state", "torch_layout", "torch_names", "torch_state"]
