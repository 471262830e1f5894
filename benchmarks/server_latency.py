"""How long the language server takes, against the design's numbers.

    python -m benchmarks.server_latency [--quick] [--no-check] [--file FILE...]

A real server process and one client, on files of 1,000 and 5,000 lines made of the example models: idle, and beside a
check that runs code all the time. Every figure is the 95th percentile of single requests, with the design's bar.
``--typing`` types a file of 1,000 lines character by character; ``--day`` does 20,000 edits over 50 documents.
``--file`` opens files where they stand, in a checkout whose files import each other (its folder is the workspace), one
after the other in one server: the first is cold, then each is typed in, and the memory of both processes is said.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import os
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.convert_speed import source_of
from tests.lsp.client import Client, ServerError, capabilities, span

START_BAR, RESIDENT_BAR = 0.5, 100.0
BARS = {"hover": 20.0, "code actions": 50.0, "diagnostics": 150.0}
"""Milliseconds at 1,000 lines; at 5,000 lines four times that, beside a check one and a half times."""
PULL = capabilities(textDocument__diagnostic={"dynamicRegistration": False})


def resident(pid: int) -> float:
    """MB of memory that a process holds."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def percentile(times: list[float]) -> float:
    """The 95th percentile in milliseconds."""
    return 1000 * statistics.quantiles(times, n=20)[-1]


def timed(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


@dataclass
class Session:
    """A file that is open in a server."""

    path: Path
    client: Client
    version: int = 1

    @classmethod
    def of_text(cls, text: str, folder: Path) -> Session:
        """A server of its own for a file with this text."""
        path = folder / f"models_{len(text)}.py"
        path.write_text(text)
        client = Client()
        client.initialize(folder, PULL, {"trusted": True})
        session = cls(path, client)
        session.open()
        return session

    def __post_init__(self) -> None:
        self.text = self.path.read_text(encoding="utf-8")
        self.uri = self.path.as_uri()
        self.lines = self.text.split("\n")
        self.random = random.Random(0)
        self.calls = [i for i, line in enumerate(self.lines) if "F." in line or "nn." in line or "torch." in line]
        self.returns = [n.lineno - 1 for n in ast.walk(ast.parse(self.text)) if isinstance(n, ast.Return)]

    @property
    def folder(self) -> Path:
        return self.path.parent

    def open(self) -> None:
        """Open the file, and wait until it is known as a whole."""
        self.client.open(self.uri, self.text)
        self.client.state(self.uri, complete=True)

    def hover(self) -> float:
        line = self.random.choice(self.calls)
        column = max(self.lines[line].find(name) for name in ("F.", "nn.", "torch.")) + 3
        return timed(lambda: self.client.hover(self.uri, line, column))

    def actions(self) -> float:
        line = self.random.choice(self.calls)
        column = len(self.lines[line]) - len(self.lines[line].lstrip()) + 4
        return timed(lambda: self.client.actions(self.uri, span(line, column)))

    def resolve(self) -> float:
        line = self.random.choice(self.calls)
        column = max(self.lines[line].find(name) for name in ("F.", "nn.", "torch.")) + 3
        offered = self.client.actions(self.uri, span(line, column), only=["refactor.rewrite"])
        action = next((a for a in offered if "disabled" not in a), None)
        return timed(lambda: self._resolved(action)) if action is not None else 0.0

    def _resolved(self, action: dict[str, Any]) -> None:
        """Resolve an action; that it needs the conversion of the whole file is an answer, too."""
        with contextlib.suppress(ServerError):
            self.client.resolve(action)

    def edit_to_diagnostics(self) -> float:
        """From an edit inside a method to the diagnostics of the text after it."""
        line = self.random.choice(self.returns)
        indent = self.lines[line][: len(self.lines[line]) - len(self.lines[line].lstrip())]
        inserted = f"{indent}_ = torch.cat([torch.zeros(2), torch.ones({self.version})])\n"
        start = time.perf_counter()
        self.version += 1
        self.client.change(self.uri, self.version, {"range": span(line, 0), "text": inserted})
        self.client.request("textDocument/diagnostic", {"textDocument": {"uri": self.uri}})
        taken = time.perf_counter() - start
        self.version += 1
        self.client.change(self.uri, self.version, {"range": span(line, 0, line + 1, 0), "text": ""})
        self.client.request("textDocument/diagnostic", {"textDocument": {"uri": self.uri}})
        return taken

    def type_line(self) -> int:
        """Types a statement character by character, with the diagnostics of each; how many characters."""
        line = self.returns[len(self.returns) // 2]
        indent = self.lines[line][: len(self.lines[line]) - len(self.lines[line].lstrip())]
        statement = f"{indent}_ = torch.cat([torch.zeros(2), torch.ones(2)])"
        for column, char in enumerate([*statement, "\n"]):
            self.version += 1
            self.client.change(self.uri, self.version, {"range": span(line, column), "text": char})
            self.client.request("textDocument/diagnostic", {"textDocument": {"uri": self.uri}})
        return len(statement) + 1

    def measure(self, count: int) -> dict[str, float]:
        """The four latencies in milliseconds."""
        for _ in range(3):
            self.hover()
            self.actions()
        figures = {"hover": percentile([self.hover() for _ in range(count)])}
        figures["code actions"] = percentile([self.actions() for _ in range(count)])
        figures["resolve"] = percentile([t for _ in range(max(20, count // 4)) if (t := self.resolve())])
        figures["diagnostics"] = percentile([self.edit_to_diagnostics() for _ in range(max(20, count // 4))])
        return figures


class RunningCheck:
    """A check of a small file beside the measured one, again and again."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.path = session.folder / "checked.py"
        self.path.write_text(source_of(60))
        self.uri = self.path.as_uri()
        session.client.open(self.uri, self.path.read_text())
        session.client.command("t2j.check", self.uri, timeout=300)
        self.count = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        version = 1
        while not self._stop.is_set():
            version += 1
            text = f"{self.path.read_text()}\n\ndef scaled{version}(x: torch.Tensor):\n    return x * {version}\n"
            self.session.client.change(self.uri, version, {"text": text.replace("dropout = ", f"dropout{version} = ")})
            self.session.client.command("t2j.check", self.uri, timeout=300)
            self.count += 1

    def __enter__(self) -> RunningCheck:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has taken, which other load on the machine hardly changes."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start_figures() -> tuple[float, float, float]:
    """From the start to the answer to ``initialize``: seconds and processor seconds, best of five; MB."""
    times, busy, sizes = [], [], []
    for _ in range(5):
        with Client() as client:
            client.initialize()
            times.append(time.perf_counter() - client.started)
            busy.append(cpu_seconds(client.process.pid))
            sizes.append(resident(client.process.pid))
    return min(times), min(busy), max(sizes)


def row(name: str, value: float, bar: float | None, unit: str) -> None:
    held = "" if bar is None else f"{bar:9.1f} {unit}   {'holds' if value <= bar else 'MISSED'}"
    print(f"{name:44} {value:9.1f} {unit} {held}")


def latencies(lengths: list[int], count: int, with_check: bool) -> None:
    for length in lengths:
        factor = 1.0 if length <= 1000 else 4.0
        with tempfile.TemporaryDirectory() as folder:
            session = Session.of_text(source_of(length), Path(folder))
            with session.client:
                idle = session.measure(count)
                for name, value in idle.items():
                    row(f"{length} lines, idle: {name}", value, BARS[name] * factor if name in BARS else None, "ms")
                if with_check:
                    with RunningCheck(session) as check:
                        beside = session.measure(count)
                    for name, value in beside.items():
                        bar = BARS[name] * factor * 1.5 if name in BARS else None
                        row(f"{length} lines, beside {check.count} checks: {name}", value, bar, "ms")
                row(f"{length} lines: server's memory", resident(session.client.process.pid), None, "MB")


def in_place(files: list[Path], count: int) -> None:
    """Files in the checkout they belong to: from opening each to its first hover, to all that is known, and edits."""
    with Client() as client:
        client.initialize(Path(os.path.commonpath([f.parent for f in files])), PULL, {"trusted": True})
        client.open("untitled:first", "import torch\n")
        client.state("untitled:first", complete=True)  # from then on there is a process for analyses
        processes = [client.process.pid, client.command("t2j.debugInfo")["processes"]["analysis"]]
        for number, path in enumerate(files):
            session = Session(path.resolve(), client)
            name = f"{path.name}, {len(session.lines)} lines"
            start, busy = time.perf_counter(), sum(map(cpu_seconds, processes))
            client.open(session.uri, session.text)
            session.hover()
            row(f"{name}: opened to first hover", 1000 * (time.perf_counter() - start), None, "ms")
            client.state(session.uri, complete=True)
            row("... to all that is known of it", 1000 * (time.perf_counter() - start), None, "ms")
            row("... processor time of it", 1000 * (sum(map(cpu_seconds, processes)) - busy), None, "ms")
            factor = 1.0 if len(session.lines) <= 1100 else 4.0
            for what, value in session.measure(count).items():
                row(f"... {what}", value, BARS[what] * factor if what in BARS else None, "ms")
            busy = sum(map(cpu_seconds, processes))
            typed = session.type_line()
            row(
                "... processor time for each character typed",
                1000 * (sum(map(cpu_seconds, processes)) - busy) / typed,
                None,
                "ms",
            )
            row(f"memory with {number + 1} open: server", resident(processes[0]), None, "MB")
            row("... analysis process", resident(processes[1]), None, "MB")


def typing(length: int = 1000) -> None:
    """Types a file from nothing; asks for a hover after every tenth character, with a syntax error most of the time."""
    text = source_of(length)
    # With something to report: a gap and a caveat.
    text += "\n\n\ndef last(x: torch.Tensor):\n    x.register_hook(print)\n    return torch.median(x)\n"
    uri = "untitled:typed.py"
    with Client() as client:
        client.initialize(None, PULL)
        client.open(uri, "")
        hovers: list[float] = []
        line = column = 0
        begin = time.perf_counter()
        for number, char in enumerate(text, 1):
            client.change(uri, number + 1, {"range": span(line, column), "text": char})
            line, column = (line + 1, 0) if char == "\n" else (line, column + 1)
            if number % 10 == 0:
                place = (line, max(0, column - 1))
                hovers.append(timed(lambda place=place: client.hover(uri, *place)))  # type: ignore[misc]
        client.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        taken = time.perf_counter() - begin
        client.open("untitled:fresh.py", text)
        known = []
        for one in (uri, "untitled:fresh.py"):
            state = client.state(one, complete=True)
            report = client.request("textDocument/diagnostic", {"textDocument": {"uri": one}})
            known.append((report["items"], {k: v for k, v in state.items() if k not in ("uri", "version")}))
        row(f"typing {len(text)} characters: hover", percentile(hovers), BARS["hover"], "ms")
        row("typing: server's memory", resident(client.process.pid), None, "MB")
        print(f"typed in {taken:.1f} s; the same diagnostics and state as a fresh open: {known[0] == known[1]}")


def day(edits: int = 20_000, documents: int = 50) -> None:
    """A day's edits: memory after the first tenth and at the end."""
    chosen = random.Random(0)
    text = source_of(150)
    lines = text.split("\n")
    with Client() as client:
        client.initialize(None, PULL)
        versions = dict.fromkeys((f"untitled:day{i}.py" for i in range(documents)), 1)
        for uri in versions:
            client.open(uri, text)
        marks: list[tuple[int, float, float]] = []
        analysis = client.command("t2j.debugInfo")["processes"]["analysis"]
        for number in range(1, edits + 1):
            uri = chosen.choice(list(versions))
            line = chosen.randrange(len(lines))
            for change in ({"range": span(line, 0), "text": "#"}, {"range": span(line, 0, line, 1), "text": ""}):
                versions[uri] += 1
                client.change(uri, versions[uri], change)
            if number % 50 == 0:
                client.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
            if number % (edits // 10) == 0:
                marks.append((number, resident(client.process.pid), resident(analysis)))
        for number, server, worker in marks:
            print(f"{2 * number:8} edits: server {server:6.1f} MB, analysis process {worker:6.1f} MB")
        growth = marks[-1][1] - marks[0][1]
        row("growth of the server from the first tenth on", growth, 10.0, "MB")
        row("growth of the analysis process", marks[-1][2] - marks[0][2], None, "MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer requests, 1,000 lines only")
    parser.add_argument("--no-check", action="store_true", help="leave out the figures beside a running check")
    parser.add_argument("--typing", action="store_true", help="type a file instead")
    parser.add_argument("--day", action="store_true", help="20,000 edits over 50 documents instead")
    parser.add_argument("--file", type=Path, nargs="+", help="open these files where they stand instead")
    options = parser.parse_args()
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print(f"{'p95':44} {'measured':>12} {'bar':>12}")
    if options.typing:
        typing()
    elif options.day:
        day()
    elif options.file:
        in_place(options.file, 50 if options.quick else 200)
    else:
        seconds, busy, megabytes = start_figures()
        row("start to initialize answered (best of 5)", 1000 * seconds, 1000 * START_BAR, "ms")
        row("... processor time of it", 1000 * busy, None, "ms")
        row("resident after initialize", megabytes, RESIDENT_BAR, "MB")
        latencies([1000] if options.quick else [1000, 5000], 50 if options.quick else 200, not options.no_check)


if __name__ == "__main__":
    main()
