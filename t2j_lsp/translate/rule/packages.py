"""Which packages have nothing to do with PyTorch's tensors and modules."""

from __future__ import annotations

import sys

TAKE_ANYTHING = sys.stdlib_module_names | {
    *("jax", "flax", "optax", "orbax", "chex", "numpy", "tqdm", "rich", "pytest", "einops", "cloudpickle", "t2j_lsp"),
}
"""Packages whose functions take any object, or JAX's."""
OF_NUMPY = frozenset(("numpy", "gym", "gymnasium", "pettingzoo", "dm_env", "pandas", "sklearn"))
"""Packages whose objects have shapes that are plain tuples: values to PyTorch's old constructors."""
NO_MODULES = TAKE_ANYTHING | OF_NUMPY | {"pydantic", "attr", "attrs", "typing_extensions", "omegaconf"}
"""Packages whose classes are no PyTorch modules."""
