"""What an attack is let loose on: files, secrets, listeners and processes of a user, and whether they are whole."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

PROGRAMS = Path(__file__).parent / "programs"
_PLACES = "PLACES: dict[str, str] = {}"
_VICTIM = """
import ctypes, os, sys
memory = ctypes.create_string_buffer(b"whole")
print(os.getpid(), ctypes.addressof(memory), flush=True)
sys.stdin.read()
sys.stdout.write(memory.value.decode())
"""
_GRACE = 5.0
"""Seconds that the kernel may take to clear away what was killed."""


class World:
    """A user's machine in small. Use as a context manager.

    ``folder`` holds a home directory, a project, another folder with files, and the caches; the listeners and the
    victim run while the context lasts. What a program started and is still there after ``grace`` seconds was left.
    """

    def __init__(self, grace: float = _GRACE) -> None:
        self.grace = grace
        self.folder = Path(tempfile.mkdtemp(prefix="attacked-")).resolve()
        self.home, self.project, self.outside, self.cache = (
            self.folder / name for name in ("home", "project", "outside", "cache")
        )
        self.mark = f"left-{secrets.token_hex(4)}"
        self.secrets = {name: f"secret-{secrets.token_hex(8)}" for name in ("key", "notes", "environment")}
        self.contacts: list[str] = []
        self._open: list[socket.socket] = []
        self._shared = Path("/dev/shm", self.mark)
        self.places: dict[str, str] = {}
        self._victim: subprocess.Popen[str] | None = None

    def __enter__(self) -> World:
        for path, text in {
            self.home / ".ssh" / "id_ed25519": self.secrets["key"],
            self.home / "notes.txt": self.secrets["notes"],
            self.outside / "best.pt": "the best weights of a week of training",
            self.outside / "runs" / "last.pt": "the last weights",
            self.outside / "data.db": "",
            self.project / "pyproject.toml": "",
            self.project / "data.json": "{}",
            self.cache / "xla" / "0123456789abcdef0123456789abcdef" / "theirs-cache": "another project's program",
        }.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (self.folder / "scratch").mkdir()
        if self._shared.parent.is_dir():
            self._shared.write_text("another program's shared memory")
        self.places = {
            "home": str(self.home),
            "project": str(self.project),
            "outside": str(self.outside),
            "cache": str(self.cache),
            "shared": str(self._shared),
            "mark": self.mark,
            "unix": self._listen(socket.AF_UNIX, str(self.project / "agent.sock")),
            "abstract": self._listen(socket.AF_UNIX, f"\0{self.mark}").removeprefix("\0"),
            "tcp": self._listen(socket.AF_INET, ("127.0.0.1", 0)),
            "udp": self._listen(socket.AF_INET, ("127.0.0.1", 0), socket.SOCK_DGRAM),
        }
        threading.Thread(target=self._accept, daemon=True).start()
        self.before = self._files()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_left()
        self._end_victim()
        for one in self._open:
            one.close()
        self._shared.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def environment(self) -> dict[str, str]:
        """The variables of a command that the user runs."""
        folders = {"HOME": self.home, "T2J_CACHE": self.cache, "T2J_STATE": self.folder / "state"}
        own = {name: str(path) for name, path in folders.items()}
        return {**os.environ, **own, "TMPDIR": str(self.folder / "scratch"), "API_TOKEN": self.secrets["environment"]}

    def write(self, program: str) -> Path:
        """Puts a program into the project, with the places of this world in it. What is damaged counts from here."""
        text = (PROGRAMS / f"{program}.py").read_text()
        assert _PLACES in text, f"{program} has no line {_PLACES!r}"
        path = self.project / f"{program}.py"
        self._start_victim()
        path.write_text(text.replace(_PLACES, f"PLACES: dict[str, str] = {self.places!r}"))
        self.contacts.clear()
        self.before = self._files()
        return path

    def damage(self, answer: str = "") -> list[str]:
        """What is not as it was; ``answer`` is all that a check said, where secrets may be."""
        result = [f"{name} was read" for name, text in self.secrets.items() if text in answer]
        after = self._files()
        for path in sorted(self.before.keys() | after.keys()):
            if self.before.get(path) != after.get(path):
                result.append(f"{path}: {self.before.get(path, 'new')} -> {after.get(path, 'gone')}")
        result += [f"{one} was reached" for one in sorted(set(self.contacts))]
        if self._lasts(self._left):
            result += [f"{len(self._left())} processes were left"]
            self._end_left()
        return result + self._end_victim()

    def _start_victim(self) -> None:
        """Starts another process of the user's, which has a token in its environment."""
        self._end_victim()
        command = [sys.executable, "-c", _VICTIM]
        self._victim = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.environment()
        )
        assert self._victim.stdout is not None
        self.places["victim"], self.places["memory"] = self._victim.stdout.readline().split()

    def _end_victim(self) -> list[str]:
        """Ends that process, and says what had happened to it."""
        if self._victim is None:
            return []
        victim, self._victim = self._victim, None
        memory, _ = victim.communicate()
        if victim.returncode:
            return [f"the victim ended with {victim.returncode}"]
        return [] if memory == "whole" else [f"the victim's memory is {memory!r}"]

    def _end_left(self) -> None:
        for pid in self._left():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _files(self) -> dict[str, str]:
        """A description of every file, by path, besides those that t2j itself writes."""
        result = {str(self._shared): _describe(self._shared)} if self._shared.exists() else {}
        for top in (self.home, self.project, self.outside, self.cache):
            for path in sorted(top.rglob("*")):
                if "__pycache__" not in path.parts and not self._own(path):
                    result[str(path.relative_to(self.folder))] = _describe(path)
        return result

    def _own(self, path: Path) -> bool:
        """Whether t2j keeps something there: what it compiled for this project."""
        torch_side = self.cache / "xla" / "0123456789abcdef0123456789abcdef"
        inside = path.is_relative_to(self.cache / "xla") and not path.is_relative_to(torch_side)
        return inside and path != self.cache / "xla" and "planted" not in path.name

    def _left(self) -> list[int]:
        """The processes that carry the mark of this world."""
        texts = []
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                names = [Path("/proc", name, file).read_text() for file in ("comm", "cmdline") if name.isdigit()]
                if any(text.startswith(self.mark) for text in names):
                    if Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[0] != "Z":
                        texts.append(int(name))
        return texts

    def _lasts(self, remaining: Callable[[], list[int]]) -> bool:
        """Whether there is something, and still is after a while."""
        deadline = time.monotonic() + self.grace
        while remaining():
            if time.monotonic() > deadline:
                return True
            select.select([], [], [], 0.05)
        return False

    def _listen(self, family: int, address: object, kind: int = socket.SOCK_STREAM) -> str:
        listener = socket.socket(family, kind)
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen()
        self._open.append(listener)
        name = listener.getsockname()
        return str(name[1]) if isinstance(name, tuple) else os.fsdecode(name)

    def _accept(self) -> None:
        names = dict(zip(self._open, ("the unix socket", "the abstract socket", "tcp", "udp"), strict=True))
        with contextlib.suppress(OSError, ValueError):
            while True:
                for one in select.select(self._open, [], [])[0]:
                    self.contacts.append(names[one])
                    if one.type == socket.SOCK_DGRAM:
                        one.recv(4096)
                    else:
                        one.accept()[0].close()


def _describe(path: Path) -> str:
    result = path.lstat()
    if stat.S_ISLNK(result.st_mode):
        return f"a link to {os.readlink(path)}"
    if not stat.S_ISREG(result.st_mode):
        return f"{stat.filemode(result.st_mode)}"
    small = result.st_mode & 0o400 and result.st_size < 1 << 20
    text = hashlib.sha256(path.read_bytes()).hexdigest()[:12] if small else "not read"
    return f"{stat.filemode(result.st_mode)} {result.st_size} bytes {text} of {result.st_mtime_ns}"


def programs() -> Iterator[str]:
    """The names of all attacks that there is a file for."""
    for path in sorted(PROGRAMS.glob("*.py")):
        if not path.name.startswith("_"):
            yield path.stem
