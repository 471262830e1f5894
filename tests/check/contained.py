"""Shuts itself in as a worker does, and then tries what it may not: ``python contained.py REQUEST``.

Run by ``test_containment``. Prints for each attempt ``done`` or why it was refused, as JSON. Its targets are in
the file ``targets`` of its folder.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from t2j_lsp.check.workers.containment.contain import ContainmentRequest, contain

LIBC = ctypes.CDLL(None, use_errno=True)
IO_URING_SETUP, UNSHARE_USER = 425, 0x10000000
MEMFD_CREATE = {"x86_64": 319, "aarch64": 279}[platform.machine()]
KEYCTL = {"x86_64": 250, "aarch64": 219}[platform.machine()]


def native(name: str, *given: Any) -> int:
    """A function of the C library, which no audit hook sees. Raises OSError."""
    result = int(getattr(LIBC, name)(*(os.fsencode(one) if isinstance(one, str) else one for one in given)))
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result


def connect(family: int, address: Any, kind: int = socket.SOCK_STREAM) -> None:
    with socket.socket(family, kind) as one:
        one.settimeout(5)
        one.connect(address)


def datagram(path: str, kind: int = socket.SOCK_DGRAM) -> None:
    """Sends to a named socket from one of a pair."""
    one, other = socket.socketpair(socket.AF_UNIX, kind)
    one.sendto(b"hello", path)
    other.close()


def attempts(t: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """What a program may not do; ``t`` are its targets, outside."""
    own = os.path.join(t["scratch"], "own")
    write = os.O_WRONLY
    return {
        "writes over a file": lambda: native("open", t["file"], write),
        "empties a file": lambda: native("open", t["file"], os.O_RDONLY | os.O_TRUNC),
        "truncates a file": lambda: native("truncate", t["file"], 1),
        "makes a file in the project": lambda: native("open", t["project"] + "/new", write | os.O_CREAT, 0o600),
        "renames a file of its own over one": lambda: native("rename", own, t["file"]),
        "links a file of its own into the project": lambda: native("link", own + "2", t["project"] + "/link"),
        "makes a symbolic link in the project": lambda: native("symlink", "/", t["project"] + "/symlink"),
        "makes a fifo in the project": lambda: native("mkfifo", t["project"] + "/fifo", 0o600),
        "makes a folder in the project": lambda: native("mkdir", t["project"] + "/folder", 0o700),
        "changes permissions": lambda: native("chmod", t["file"], 0o666),
        "changes times": lambda: native("utimes", t["file"], None),
        "removes a file": lambda: native("unlink", t["gone"]),
        "writes to the system's settings": lambda: native("open", "/proc/sys/kernel/core_pattern", write),
        "reads a key": lambda: native("open", t["key"], os.O_RDONLY),
        "lists the home directory": lambda: _finds("key", t["home"]),
        "reads the environment of the checker": lambda: native("open", f"/proc/{t['pid']}/environ", os.O_RDONLY),
        "connects to a port": lambda: connect(socket.AF_INET, ("127.0.0.1", t["port"])),
        "connects to a socket in the project": lambda: connect(socket.AF_UNIX, t["socket"]),
        "sends to a socket in the project": lambda: datagram(t["datagram"]),
        "sends to it from a raw socket": lambda: datagram(t["datagram"], socket.SOCK_RAW),
        "uses datagrams": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).close(),
        "listens on a port": lambda: listen(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
        "connects to an abstract socket": lambda: connect(socket.AF_UNIX, "\0" + t["abstract"]),
        "signals the checker": lambda: native("kill", t["pid"], 0),
        "signals its parent": lambda: native("kill", os.getppid(), 0),
        "signals all": lambda: native("kill", -1, 0),
        "traces the checker": lambda: native("ptrace", 0x4206, t["pid"], None, None),
        "limits the checker": lambda: native("prlimit", t["pid"], 0, None, ctypes.create_string_buffer(16)),
        "uses io_uring": lambda: native("syscall", IO_URING_SETUP, 1, ctypes.create_string_buffer(120)),
        "hides memory": lambda: native("syscall", MEMFD_CREATE, "hidden", 0),
        "uses the kernel's keys": lambda: native("syscall", KEYCTL, 0, -4, 0),
        "makes namespaces": lambda: native("unshare", UNSHARE_USER),
    }


def listen(family: int, kind: int, address: Any) -> None:
    with socket.socket(family, kind) as one:
        one.bind(address)
        one.listen()


def name_a_thread() -> None:
    """Names a thread of this process by another way than its own, as CUDA's driver does."""
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    try:
        Path(f"/proc/self/task/{other.native_id}/comm").write_text("named")
    finally:
        done.set()
        other.join()


def for_a_gpu(t: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """What CUDA's driver does when it starts, and fails without."""
    return {
        "listens on a local socket": lambda: listen(socket.AF_UNIX, socket.SOCK_SEQPACKET, f"\0cuda-{os.getpid()}"),
        "names its threads": name_a_thread,
    }


def allowed(t: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """What a program may do."""
    return {
        "reads the project": lambda: Path(t["file"]).read_text(),
        "writes in its folder": lambda: Path(t["scratch"], "mine").write_text("mine"),
        "makes, renames and removes folders": _folders,
        "has a pair of sockets": socket.socketpair,
        "reads about itself": lambda: Path("/proc/self/status").read_text(),
        "knows the number of processors": lambda: Path("/proc/cpuinfo").read_text(),
        "writes to nowhere": lambda: Path("/dev/null").write_text("x"),
        "reads random bytes": lambda: Path("/dev/urandom").open("rb").read(1),
        "signals itself": lambda: os.kill(os.getpid(), 0),
        "runs a program of the system": lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)[1] and 1 / 0,
    }


def _folders() -> None:
    os.makedirs("a/b")
    Path("a/b/file").touch()
    os.rename("a/b/file", "a/file")
    os.remove("a/file")
    os.removedirs("a/b")


def _finds(name: str, folder: str) -> None:
    if name not in os.listdir(folder):
        raise FileNotFoundError(name)


def outcome(attempt: Callable[[], Any]) -> str:
    try:
        attempt()
    except OSError as error:
        return f"refused: {error}"
    return "done"


def main() -> None:
    request = ContainmentRequest.from_json(sys.argv[1])
    for name in ("own", "own2"):
        Path(request.scratch, name).write_text("own")
    contain(request, __file__)
    about = {"capabilities": _capabilities(), "processes": _visible()}
    targets = json.loads(Path(request.scratch, "targets").read_text())
    os.chdir(request.scratch)
    tried = allowed(targets) | attempts(targets) | for_a_gpu(targets)
    outcome_of_place = {name: outcome(attempt) for name, attempt in tried.items()}
    about["daemon"] = _daemon()
    print(json.dumps({"outcomes": outcome_of_place, **about}), flush=True)


def _daemon() -> bool:
    """Leaves a process running: in a session of its own, without a parent of ours, and with nothing in its environment.

    It has the pipe to whoever reads the outcomes, who sees its end once nobody has it.
    """
    reading, writing = os.pipe()
    if LIBC.fork() == 0:
        os.setsid()
        if LIBC.fork() == 0:
            os.write(writing, b"here")
            os.execve("/bin/sleep", ["sleep", "600"], {})
        os._exit(0)
    os.wait()
    return os.read(reading, 4) == b"here"


def _capabilities() -> dict[str, str]:
    lines = Path("/proc/self/status").read_text().splitlines()
    return dict(line.split() for line in lines if line.startswith(("Cap", "NoNewPrivs")))


def _visible() -> int:
    try:
        return sum(name.isdigit() for name in os.listdir("/proc"))
    except OSError:
        return 0


if __name__ == "__main__":
    main()
