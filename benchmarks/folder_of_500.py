"""A workspace folder of 500 PyTorch files: does the server keep its numbers while it surveys the migration?

    python -m benchmarks.folder_of_500 [--files N] [--converted N]

The files are the project's own example models, 500 times under other names, in 25 packages of a temporary folder; some
have conversions beside them. A real server process opens the folder. While its first answer to ``t2j/workspace`` is on
its way, a file of 1,000 lines is typed into, with a hover and the list of code actions after each character. Figures
are the 95th percentile, beside the design's bars for a server with work in the background; ``longest`` is the worst.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from t2j_lsp.api import convert
from tests.lsp.client import Client, span

from .convert_speed import source_of
from .server_latency import BARS, PULL, RESIDENT_BAR, START_BAR, percentile, resident, row, timed

MODELS = Path(__file__).parents[1] / "tests" / "translate" / "models"
PACKAGES = 25
BESIDE = 1.5
"""Beside work in the background a request may take so many times as long."""
LINES = 1000
START = 1000 * START_BAR


def written(folder: Path, files: int, converted: int) -> int:
    """Writes the folder; gives the number of lines."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(MODELS.glob("*.py"))]
    lines = 0
    for number in range(files):
        package = folder / f"package_{number % PACKAGES}"
        package.mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").touch()
        text = varied(texts[number % len(texts)], number)
        lines += text.count("\n")
        path = package / f"model_{number}.py"
        path.write_text(text, encoding="utf-8")
        if number % max(1, files // max(1, converted)) == 0 and converted:
            path.with_name(f"{path.stem}_jax.py").write_text(convert(text, path=str(path)).code, encoding="utf-8")
    return lines


def varied(text: str, number: int) -> str:
    """A model under names of its own, with a function that no rule covers in every twentieth."""
    for defined in re.findall(r"^(?:class|def) (\w+)", text, re.MULTILINE):
        text = re.sub(rf"\b{defined}\b", f"{defined}{number}", text)
    if number % 20 == 0:
        text += f"\n\ndef watched{number}(x: torch.Tensor):\n    x.register_hook(print)\n    return x * {number}\n"
    return text


class Typist:
    """Types into one file and asks what an editor asks after each character."""

    def __init__(self, client: Client, folder: Path) -> None:
        self.client = client
        self.uri = (folder / "typed.py").as_uri()
        self.text = source_of(LINES)
        self.version = 1
        client.open(self.uri, self.text)
        client.state(self.uri, complete=True)
        lines = self.text.split("\n")
        self.calls = [i for i, line in enumerate(lines) if "nn." in line or "torch." in line]
        self.column = 0
        self.line = next(i for i, line in enumerate(lines) if line.strip().startswith("return"))
        client.change(self.uri, 2, {"range": span(self.line, 0), "text": "\n"})
        self.version = 2
        self.hovers: list[float] = []
        self.actions: list[float] = []

    def type_one(self) -> None:
        """One character of a comment, a hover elsewhere, and the code actions there."""
        self.version += 1
        char = "#" if self.column == 0 else "x"
        self.client.change(self.uri, self.version, {"range": span(self.line, self.column), "text": char})
        self.column += 1
        line = self.calls[self.version % len(self.calls)]
        line += line >= self.line
        self.hovers.append(timed(lambda: self.client.hover(self.uri, line, 20)))
        self.actions.append(timed(lambda: self.client.actions(self.uri, span(line, 8))))

    def report(self, when: str, factor: float) -> None:
        for name, times in (("hover", self.hovers), ("code actions", self.actions)):
            row(f"{when} ({len(times)} characters): {name}", percentile(times), BARS[name] * factor, "ms")
            row(f"{when}: longest {name}", 1000 * max(times), None, "ms")
        self.hovers, self.actions = [], []


def started(folder: Path) -> float:
    """Seconds from a server's start to its answer to ``initialize`` with this folder."""
    with Client() as client:
        client.initialize(folder, PULL, {"trusted": False}, (folder,))
        return time.perf_counter() - client.started


def answered(client: Client, request: int) -> bool:
    return any(m.get("id") == request and "method" not in m for m in list(client.messages))


def asked(client: Client, refresh: bool) -> tuple[float, Any]:
    """Seconds until the whole answer is there, and the answer."""
    start = time.perf_counter()
    answer = client.request("t2j/workspace", {"refresh": refresh}, 600)
    while not answer["complete"]:
        answer = client.request("t2j/workspace", {"refresh": False}, 600)
    return time.perf_counter() - start, answer


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; see the module's docstring."""
    parser = argparse.ArgumentParser(description="A server in a folder of 500 PyTorch files.")
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--converted", type=int, default=50, help="so many of them have a conversion")
    options = parser.parse_args(arguments)
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        lines = written(folder, options.files, options.converted)
        print(f"{options.files} files, {lines} lines, {options.converted} conversions")
        row("start to initialize answered (best of 5)", 1000 * min(started(folder) for _ in range(5)), START, "ms")
        with Client() as client:
            client.initialize(folder, PULL, {"trusted": False}, (folder,))
            row("resident after initialize", resident(client.process.pid), RESIDENT_BAR, "MB")
            typist = Typist(client, folder)
            for _ in range(100):
                typist.type_one()
            typist.report("before the survey", 1.0)
            start = time.perf_counter()
            request = client.start("t2j/workspace", {"refresh": True})
            while not answered(client, request):
                typist.type_one()
            first = client.result(request, 600)
            taken = time.perf_counter() - start
            typist.report("during the survey", BESIDE)
            row("first survey", taken, None, "s")
            known = first if first["complete"] else asked(client, False)[1]
            symbols = sum(len(file["symbols"]) for file in known["files"])
            print(f"  {len(known['files'])} files, {symbols} symbols; {known['counts']}")
            for problem in known["problems"]:
                print(f"  problem: {problem}")
            row("survey again, nothing changed", asked(client, True)[0], None, "s")
            since, start = client.now, time.perf_counter()
            path = folder / "package_1" / "model_1.py"
            client.open(
                path.as_uri(), path.read_text() + "\n\ndef more(x: torch.Tensor):\n    return torch.cat([x, x])\n"
            )
            client.wait_notification("t2j/workspaceChanged", since=since, timeout=60)
            row("from an edit to the word that the state changed", time.perf_counter() - start, None, "s")
            row("its answer", asked(client, False)[0], None, "s")
            for _ in range(100):
                typist.type_one()
            typist.report("after the survey", 1.0)
            row("the server's memory at the end", resident(client.process.pid), RESIDENT_BAR, "MB")
            client.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
