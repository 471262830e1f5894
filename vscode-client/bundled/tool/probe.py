"""Prints as JSON what the interpreter that runs it has. Imports none of the packages; works from Python 3.6 on."""

import json
import sys

PACKAGES = ("t2j-lsp", "libcst", "pyflakes", "pygls", "lsprotocol", "torch", "jax", "flax", "optax", "numpy")


def version(name):
    try:
        from importlib.metadata import PackageNotFoundError, version
    except ImportError:
        return None
    try:
        return version(name)
    except PackageNotFoundError:
        return None


print(
    json.dumps(
        {
            "python": sys.executable,
            "version": list(sys.version_info[:3]),
            "packages": {name: version(name) for name in PACKAGES},
        }
    )
)
