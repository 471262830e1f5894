"""The table of attacks: what each is to come to on each kind of system. `docs/checking.md` shows it; tests hold it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

System = Literal["root", "user", "bare-root", "no-namespaces", "none"]
Via = Literal["command line", "server", "library"]

SYSTEMS: dict[System, str] = {
    "root": "root",
    "user": "ordinary user",
    "bare-root": "root without capabilities",
    "no-namespaces": "no namespaces",
    "none": "none of it",
}
"""Whom a check runs as, or what the system lacks, and how the table's head names it."""


@dataclass(frozen=True)
class Attack:
    """One attack: the file of its program, what it does in a few words, and where it gets through.

    ``through`` says for each system on which it is not held why that is so. ``control`` says why the program is not run
    outside of a check first, where it is not.
    """

    program: str
    does: str
    via: tuple[Via, ...] = ("command line",)
    through: tuple[tuple[System, str], ...] = ()
    control: str | None = None

    def held(self, system: System) -> bool:
        return system not in dict(self.through)


GUARD = "Python's guard does not see what native code does"
SEEN = "a program that sets out to switch Python's guard off can"


def _native(reason: str = GUARD) -> tuple[tuple[System, str], ...]:
    """Held by the system where it offers anything; not by Python's guard."""
    return (("none", reason),)


ATTACKS = (
    # Changes of files.
    Attack("save_path", "`torch.save` over a file", ("command line", "server"), _native()),
    Attack("save_pathlib", "the same, the file named by a `Path`", through=_native()),
    Attack("save_writer", "the same, by PyTorch's native writer alone", through=_native()),
    Attack("open_file", "`open`, `Path.write_bytes`, `os.truncate`"),
    Attack("open_from_folder", "`os.open` with `dir_fd`"),
    Attack("replace_file", "`os.replace` and `os.rename` over a file"),
    Attack("link_file", "`os.link`, `os.symlink`, writing through a link"),
    Attack("unlink_file", "`os.unlink` with `dir_fd`, `shutil.rmtree`"),
    Attack("make_node", "`os.mkfifo`, `os.mknod`, `os.mkdir`", through=_native("there is no audit event for them")),
    Attack("sqlite", "a database attached with `sqlite3`", through=_native("SQL is not looked into")),
    Attack("from_file", "`torch.from_file(shared=True)`", through=_native()),
    Attack("memmap", "`numpy.memmap`"),
    Attack("native_write", "`open` of the C library", ("command line", "server"), _native()),
    Attack("native_call", "a bare system call, into the project", through=_native()),
    Attack("native_attributes", "`truncate`, `chmod` and `utimes` of the C library", through=_native()),
    Attack("shared_memory", "shared memory of another program", through=_native()),
    Attack("project_file", "a cache file in the project, at import"),
    Attack("link_in_scratch", "links in its scratch folder, for whoever clears that away", control="nobody clears it"),
    Attack("plant", "a compiled program planted for another project", ("command line", "server"), _native()),
    Attack("guard_module", "the guard switched off in `sys.modules`", through=_native(SEEN)),
    Attack("guard_objects", "the same, found with `gc`", through=_native(SEEN)),
    Attack("guard_builtins", "functions overridden that the guard calls", through=_native(SEEN)),
    # Reads.
    Attack("read_home", "keys and notes in the home directory", ("command line", "server")),
    Attack("read_native", "the same, with the C library", through=_native()),
    Attack("read_environment", "tokens in other processes' environment", ("command line", "server")),
    # Network and sockets.
    Attack("unix_socket", "a unix socket in the project", ("command line", "server")),
    Attack("native_unix_socket", "the same and an abstract one, with the C library", through=_native()),
    Attack("tcp", "TCP to this machine"),
    Attack("native_tcp", "the same, with the C library", through=_native()),
    Attack("dns", "a question to a name server", through=_native()),
    # Processes.
    Attack("daemon", "a process left behind, forked twice", ("command line", "server")),
    Attack("session", "the same, in its own session, all files closed, no environment"),
    Attack("kill", "the end of another process", ("command line", "server"), _native()),
    Attack("kill_parents", "the end of the processes that watch it"),
    Attack("write_memory", "the memory of another process", through=_native()),
    Attack("fork_bomb", "sixty processes at once"),
    # Resources.
    Attack("memory", "all memory (held to 2 GB)", ("library",)),
    Attack("big_file", "a file of 3 GB in its scratch folder"),
    # Verdicts.
    Attack("forge", "answers written to the checker's pipe", control="there is no pipe outside of a check"),
    Attack(
        "leave_patched",
        "PyTorch patched, for the next file of the project and of another",
        ("server",),
        control="there is no next file",
    ),
)


def markdown() -> str:
    """The table as `docs/checking.md` shows it, with what gets through and why below it."""
    lines = [f"| a program tries | {' | '.join(SYSTEMS.values())} |", "|---|" + ":-:|" * len(SYSTEMS)]
    reasons: list[str] = []
    for attack in ATTACKS:
        cells = []
        for system in SYSTEMS:
            reason = dict(attack.through).get(system)
            if reason is not None and reason not in reasons:
                reasons.append(reason)
            cells.append("held" if reason is None else f"**not held** ({reasons.index(reason) + 1})")
        lines.append(f"| {attack.does} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *(f"{number}. {text}." for number, text in enumerate(reasons, 1))])
