"""How the parts of a Flax module are walked."""

from __future__ import annotations

WALKS = {
    "modules": "{nnx}.iter_modules({})",
    "children": "{nnx}.iter_module_children({})",
    "parameters": "{nnx}.to_flat_state({nnx}.state({}, {nnx}.Param))",
}
"""Each yields pairs of a path (of a child: its key) and what stands there; the parameters are the module's own.

``{nnx}`` is the name that Flax has in the file.
"""
