"""Starts a worker: run by path in the interpreter that the user configured, where t2j need not be installed.

``python -P start.py REQUEST``, where the request is JSON. The protocol's pipes arrive as standard input and output and
are moved away from there at once, so that nothing the user's code prints or reads can touch them.
"""

from __future__ import annotations

import importlib.util
import json
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
    _find_t2j()
    from t2j_lsp.check.workers.containment.contain import ContainmentRequest, contain, probe

    if sys.argv[1:] == ["probe"]:
        print(json.dumps(probe()))
        return
    request = ContainmentRequest.from_json(sys.argv[1])
    log = os.open(os.path.join(request.scratch, "output.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 2)
    sys.argv = [""]
    try:
        folders = contain(request, __file__)
    except OSError as error:
        sys.exit(f"not contained: {error}")
    receive, send = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    from t2j_lsp.check.workers.serve import serve

    serve(request.kind, bytes.fromhex(request.tag), receive, send, folders, request.layers)


if __name__ == "__main__":
    main()
