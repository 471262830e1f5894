"""The check: runs a PyTorch program and its JAX conversion side by side and says where they part.

``run.check_files`` is the entrance. This process never imports torch or jax; two worker processes do, in
the interpreters the user configured, and only plain data (``protocol``) crosses to them.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    """This package, callable: whoever imports it binds ``t2j_lsp.check``, which users know as a function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return import_module("t2j_lsp.api").check(*args, **kwargs)


sys.modules[__name__].__class__ = _Package
