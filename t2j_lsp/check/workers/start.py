"""Starts a worker: run by path in the interpreter that the user configured, where t2j need not be installed.

``python -P start.py (torch|jax) TAG SCRATCH``. The protocol's pipes arrive as standard input and output and are moved
away from there at once, so that nothing the user's code prints or reads can touch them.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path


def _find_t2j() -> None:
    """Makes this checkout's ``t2j_lsp`` importable, and nothing else that lies beside it."""
    root = Path(__file__).resolve().parents[2]
    places = [str(root)]
    spec = importlib.util.spec_from_file_location("t2j_lsp", root / "__init__.py", submodule_search_locations=places)
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["t2j_lsp"] = package
    spec.loader.exec_module(package)


def main() -> None:
    """Contains this process and serves; or, as ``start.py probe``, prints the layers that this system offers."""
    if sys.argv[1:] == ["probe"]:
        print("[]")
        return
    kind, tag, scratch = sys.argv[1:4]
    sys.argv = [""]
    log = os.open(os.path.join(scratch, "output.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 2)
    _find_t2j()
    from t2j_lsp.check.workers.contain import contain

    contained = contain()
    receive, send = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    from t2j_lsp.check.workers.serve import serve

    serve(kind, bytes.fromhex(tag), receive, send, scratch, contained)


if __name__ == "__main__":
    main()
