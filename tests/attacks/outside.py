"""Runs programs outside of any check: each request, a line of JSON, in a process of its own that has PyTorch loaded.

Between this process and the program stands another, where the checker would: some programs end what started them.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import traceback

import torch  # noqa: F401 - so that the programs start at once


def run(program: str, folder: str, output: str) -> None:
    """Ends this process."""
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.chdir(folder)
    os.environ["HOME"] = folder
    if os.fork():
        os.wait()
        os._exit(0)
    try:
        runpy.run_path(program, run_name="__main__")
    except BaseException:  # noqa: BLE001 - whatever it raises is its output
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(0)


for line in sys.stdin:
    request = json.loads(line)
    child = os.fork()
    if child == 0:
        os.setsid()
        run(**request)
    os.waitpid(child, 0)
    print("done", flush=True)
