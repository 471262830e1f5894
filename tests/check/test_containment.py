"""Each layer of the containment alone, and all together, against native code: what it holds, and what still works.

No framework is loaded here: a process shuts itself in as a worker does, and then tries what it may not.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from t2j_lsp.check.process.containment import containment_of
from t2j_lsp.check.workers.containment import landlock

CONTAINED = Path(__file__).with_name("contained.py")
SETS = {
    "all with bubblewrap": ("bubblewrap", "landlock", "seccomp"),
    "all with own namespaces": ("namespace", "landlock", "seccomp"),
    "no namespaces": ("landlock", "seccomp"),
    "all with bubblewrap, for a GPU": ("bubblewrap", "landlock", "seccomp"),
    "all with own namespaces, for a GPU": ("namespace", "landlock", "seccomp"),
    "own namespaces alone, for a GPU": ("namespace",),
    "no namespaces, for a GPU": ("landlock", "seccomp"),
    "bubblewrap alone": ("bubblewrap",),
    "own namespaces alone": ("namespace",),
    "landlock alone": ("landlock",),
    "seccomp alone": ("seccomp",),
    "nothing": (),
}
VIEW = ("bubblewrap", "namespace")
FILES = (*VIEW, "landlock")
HELD_BY: dict[str, tuple[str, ...]] = {
    "writes over a file": FILES,
    "empties a file": (*FILES, "seccomp"),
    "truncates a file": (*FILES, "seccomp"),
    "makes a file in the project": FILES,
    "renames a file of its own over one": FILES,
    "links a file of its own into the project": FILES,
    "makes a symbolic link in the project": FILES,
    "makes a fifo in the project": (*FILES, "seccomp"),
    "makes a folder in the project": FILES,
    "changes permissions": (*VIEW, "seccomp"),
    "changes times": (*VIEW, "seccomp"),
    "removes a file": FILES,
    "writes to the system's settings": FILES,
    "reads a key": FILES,
    "lists the home directory": FILES,
    "reads the environment of the checker": FILES,
    "connects to a port": (*VIEW, "landlock", "seccomp"),
    "connects to a socket in the project": ("seccomp",),
    "sends to a socket in the project": ("seccomp",),
    "sends to it from a raw socket": ("seccomp",),
    "uses datagrams": ("seccomp",),
    "listens on a port": ("landlock", "seccomp"),
    "connects to an abstract socket": (*VIEW, "landlock", "seccomp"),
    "signals the checker": (*VIEW, "landlock", "seccomp"),
    "signals its parent": ("landlock", "seccomp"),
    "signals all": ("seccomp",),
    "traces the checker": (*FILES, "seccomp"),
    "limits the checker": (*VIEW, "seccomp"),
    "uses io_uring": ("seccomp",),
    "hides memory": ("seccomp",),
    "uses the kernel's keys": ("seccomp",),
    "makes namespaces": ("seccomp",),
}
"""For each attempt the layers of which any one refuses it."""
FOR_A_GPU = {"listens on a local socket": ("seccomp",), "names its threads": ("landlock",)}
"""What a worker may on a GPU only, and the layers that refuse it elsewhere."""
UNSURE = {
    ("signals its parent", "bubblewrap"): "the parent is the first process of its namespace, which ignores it",
    ("signals its parent", "namespace"): "the parent is the first process of its namespace, which ignores it",
    ("signals all", "bubblewrap"): "these are its own processes",
    ("signals all", "landlock"): "these are its own processes",
    ("reads the environment of the checker", "anywhere"): "the checker may have privileges that a program has not",
    ("traces the checker", "anywhere"): "the checker may have privileges that a program has not",
    ("signals all", "namespace"): "these are its own processes",
    ("uses io_uring", "anywhere"): "the system may have it switched off",
    ("makes namespaces", "anywhere"): "the system may have them switched off",
    ("writes to the system's settings", "anywhere"): "only root may",
}
"""What may be refused, or not, where no layer holds it, and why."""
LANDLOCK_SINCE = {
    "connects to a port": 4,
    "listens on a port": 4,
    "truncates a file": 3,
    "empties a file": 3,
    "connects to an abstract socket": 6,
    "signals the checker": 6,
    "signals its parent": 6,
}
"""The version of Landlock that began to hold an attempt."""


PARTS = {
    "files": [one for one in HELD_BY if one.startswith(("writes over", "truncates", "makes a", "renames", "removes"))],
    "attributes": ["changes permissions", "changes times"],
    "reads": ["reads a key", "lists the home directory"],
    "network": ["connects to a port", "connects to an abstract socket"],
    "sockets": ["connects to a socket in the project", "sends to a socket in the project"],
    "processes": ["signals the checker", "limits the checker"],
}
SAID = {
    "files": "change your files",
    "attributes": "change",
    "reads": "read your files",
    "network": "use the network",
    "sockets": "sockets",
    "processes": "end others",
}
"""For each part of the attempts, words of the sentence that is to be said where one of them is done."""
BOTH = "from t2j_lsp.check.workers.containment.contain import probe; print(*probe(both=True))"


@functools.cache
def layers_here() -> frozenset[str]:
    """The layers of this system, with both ways to make a view."""
    return frozenset(subprocess.run([sys.executable, "-c", BOTH], capture_output=True, text=True).stdout.split())


@pytest.fixture(scope="module")
def outside() -> Iterator[dict[str, Any]]:
    """What a program is after: files, keys, sockets and a process, none of them its own."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        home, project = Path(name, "home"), Path(name, "home", "project")
        project.mkdir(parents=True)
        for path in (home / "key", project / "file", project / "gone"):
            path.write_text("before")
        port = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        opened: dict[str, Any] = {"port": port.getsockname()[1]}
        for what, kind in (("socket", socket.SOCK_STREAM), ("datagram", socket.SOCK_DGRAM)):
            one = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            one.bind(str(project / what))
            opened[what] = str(project / what)
            if kind == socket.SOCK_STREAM:
                one.listen()
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(f"\0t2j-{os.getpid()}")
        abstract.listen()
        places = {"home": home, "project": project, "file": project / "file", "gone": project / "gone"}
        yield {
            **opened,
            **{what: str(path) for what, path in places.items()},
            "key": str(home / "key"),
            "abstract": f"t2j-{os.getpid()}",
            "pid": os.getpid(),
        }


@pytest.fixture(scope="module")
def run(outside: dict[str, Any]) -> Callable[[str], dict[str, Any]]:
    """What a contained process could do, by one of the `SETS`, and what it looks like from inside."""

    @functools.cache
    def once(name: str) -> dict[str, Any]:
        layers = SETS[name]
        missing = {*layers} - layers_here()
        if missing:
            pytest.skip(f"this system has no {' and no '.join(sorted(missing))}")
        Path(outside["file"]).write_text("before")
        Path(outside["gone"]).touch()
        for path in Path(outside["project"]).iterdir():
            if path.name not in ("file", "gone", "socket", "datagram"):
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        with tempfile.TemporaryDirectory() as scratch:
            Path(scratch, "targets").write_text(json.dumps({**outside, "scratch": scratch}))
            request = {"kind": "torch", "tag": "00", "scratch": scratch, "layers": layers, "home": outside["home"]}
            request["gpu"] = name.endswith("for a GPU")
            request |= {"readable": [outside["project"], str(CONTAINED.parent)], "writable": []}
            return _contained(request)

    return once


def _contained(request: dict[str, Any]) -> dict[str, Any]:
    jax_side, torch_side = os.pipe()
    try:
        command = [sys.executable, "-P", str(CONTAINED), json.dumps(request)]
        done = subprocess.run(command, stdin=jax_side, capture_output=True, text=True, timeout=60)
    finally:
        os.close(jax_side)
        os.close(torch_side)
    assert done.returncode == 0, done.stderr
    names: dict[str, Any] = json.loads(done.stdout)
    return names


@pytest.mark.parametrize("attempt", HELD_BY)
@pytest.mark.parametrize("name", SETS)
def test_a_layer_holds_what_it_is_to_hold(name: str, attempt: str, run: Callable[..., dict[str, Any]]) -> None:
    layers = SETS[name]
    holding = {layer for layer in layers if layer in HELD_BY[attempt]}
    if landlock.version() < LANDLOCK_SINCE.get(attempt, 1):
        holding.discard("landlock")
    outcome = run(name)["outcomes"][attempt]
    if holding:
        assert outcome.startswith("refused"), f"{outcome}, though {holding} should hold it"
    elif not any((attempt, layer) in UNSURE for layer in (*layers, "anywhere")):
        assert outcome == "done"


@pytest.mark.parametrize("name", SETS)
def test_what_a_program_may_do_it_can(name: str, run: Callable[..., dict[str, Any]]) -> None:
    outcomes = run(name)["outcomes"]
    may = {attempt: outcome for attempt, outcome in outcomes.items() if attempt not in HELD_BY | FOR_A_GPU}
    assert len(may) == 10
    assert may == dict.fromkeys(may, "done")


@pytest.mark.parametrize("name", [name for name in SETS if "all" in name or "no namespaces" in name])
def test_cuda_starts_where_a_gpu_is_asked_for(name: str, run: Callable[..., dict[str, Any]]) -> None:
    outcomes = {attempt: run(name)["outcomes"][attempt] for attempt in FOR_A_GPU}
    may = {attempt: outcome == "done" for attempt, outcome in outcomes.items()}
    assert may == dict.fromkeys(FOR_A_GPU, name.endswith("for a GPU")), outcomes


@pytest.mark.parametrize("name", SETS)
def test_no_capability_is_left(name: str, run: Callable[..., dict[str, Any]]) -> None:
    result = dict(run(name)["capabilities"])
    if os.getuid() != 0:
        result.pop("CapBnd:")  # Only the privileged can empty it; without new privileges it gives nothing.
    assert result.pop("NoNewPrivs:") == "1"
    assert {*result.values()} == {"0" * 16}


@pytest.mark.parametrize("name", SETS)
def test_no_process_is_left(name: str, run: Callable[..., dict[str, Any]]) -> None:
    # The outcomes were read to their end, which comes when the last process that had the pipe is gone.
    assert run(name)["daemon"]


@pytest.mark.parametrize("name", ["all with bubblewrap", "all with own namespaces", "own namespaces alone"])
def test_in_a_view_no_other_process_is_seen(name: str, run: Callable[..., dict[str, Any]]) -> None:
    assert run(name)["processes"] <= 3


@pytest.mark.parametrize("name", SETS)
def test_what_is_said_to_be_held_is_held(name: str, run: Callable[..., dict[str, Any]]) -> None:
    outcomes, said = run(name)["outcomes"], containment_of(SETS[name])
    done = {part: [one for one in attempts if outcomes[one] == "done"] for part, attempts in PARTS.items()}
    assert not [text for part, text in SAID.items() if done[part] and not any(text in one for one in said.not_held)]
    if {"landlock", "seccomp"} <= {*SETS[name]}:
        assert not said.not_held


def test_a_system_without_any_layer_says_all_that_it_does_not_hold() -> None:
    said = containment_of(())
    assert (said.files, said.reads, said.network, said.processes) == ("python",) * 4
    assert len(said.not_held) == 4


WITHOUT_CAPABILITIES = """
import t2j_lsp.check.process.pool as pool
pool.offered = lambda python: ("bubblewrap", "landlock", "seccomp")
with pool.Pool(device="cpu") as workers:
    print(*workers.request("torch", "greet", 300.0)["layers"])
"""


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give up capabilities")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not here")
def test_where_a_view_cant_be_made_after_all_the_next_way_is_taken() -> None:
    # Root without capabilities can make no view, also where the system offers one.
    command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-c", WITHOUT_CAPABILITIES]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.stdout.split() == ["landlock", "seccomp"], result.stderr
