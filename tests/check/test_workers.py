"""Whatever a program does to its worker, the check says ``unchecked`` with a reason, and no process is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.process.processes import tree
from t2j_lsp.check.process.worker import Limits, WorkerError
from t2j_lsp.check.run import check_files
from t2j_lsp.contract import ObjectVerdict, VerdictKind

JAX = "def f(x):\n    return x * 2\n"
BODIES = {
    "exits": ("os._exit(3)", "exit code 3"),
    "calls sys.exit": ("sys.exit('bye')", "SystemExit"),
    "kills itself": ("os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
    "crashes": ("ctypes.string_at(0)", "SIGSEGV"),
    "loops": ("while True: pass", "did not finish"),
    "loops and catches everything": (
        "while True:\n        try: time.sleep(9)\n        except BaseException: pass",
        "did not finish",
    ),
    "writes to every open file": (
        "for n in range(3, 64):\n        try: os.write(n, b'x' * 999)\n        except OSError: pass",
        "garbage",
    ),
    "closes every file": ("os.closerange(0, 99)", "worker"),
    "takes all memory": ("y = [bytearray(1 << 28) for _ in range(400)]", "memory"),
    "forks": ("os.fork()", "starts no processes"),
    "starts a program": ("subprocess.run(['sleep', '99'])", "starts no processes"),
    "opens a connection": ("socket.create_connection(('192.0.2.1', 80))", "no network"),
    "writes elsewhere": ("open(os.path.expanduser('/tmp/t2j-elsewhere'), 'w')", "scratch folder"),
    "kills its parent": ("os.kill(os.getppid(), signal.SIGKILL)", "no signals"),
    "raises its own": ("class Odd(BaseException):\n        def __str__(self): raise ValueError\n    raise Odd", "Odd"),
    "recurses": ("return f(x)", "RecursionError"),
}  # fmt: skip
IMPORTS = "import ctypes, os, signal, socket, subprocess, sys, time\nimport torch\n"


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    folder = tmp_path_factory.getbasetemp()
    with Pool(device="cpu", limits=Limits(memory=3 * 1024**3 // 2), readable=[folder]) as pool:
        yield pool


def verdict(pool: Pool, folder: Path, torch: str, jax: str = JAX, timeout: float = 60.0) -> ObjectVerdict:
    source, converted = folder / "source.py", folder / "converted.py"
    source.write_text(IMPORTS + torch)
    converted.write_text("import os, sys\n" + jax)
    return check_files(source, converted, ["f"], pool=pool, timeout=timeout, eager=False).objects[0]


@pytest.mark.parametrize("name", BODIES)
def test_a_program_that_misbehaves_is_unchecked_with_the_reason(name: str, workers: Pool, tmp_path: Path) -> None:
    body, reason = BODIES[name]
    timeout = 4.0 if "loops" in name else 60.0
    report = verdict(workers, tmp_path, f"# t2j: x=f32[3]\ndef f(x):\n    {body}\n    return x * 2\n", timeout=timeout)
    assert report.verdict is VerdictKind.UNCHECKED
    assert reason in (report.reason or "")
    assert not Path("/tmp/t2j-elsewhere").exists()


@pytest.mark.parametrize("crash", ["hasty", "always"])
def test_what_crashes_compiled_in_haste_runs_once_more_compiled_as_for_users(crash: str, tmp_path: Path) -> None:
    folder = tmp_path.parent
    imports = "import ctypes\nfrom jax._src.compiler import _DISABLE_MOST_OPTIMIZATIONS as hasty\n"
    condition = "True" if crash == "always" else "hasty.value"
    jax = f"{imports}\ndef f(x):\n    if {condition}:\n        ctypes.string_at(0)\n    return x * 2\n"
    with Pool(device="cpu", readable=[folder]) as pool:
        report = verdict(pool, tmp_path, "# t2j: x=f32[3]\ndef f(x):\n    return x * 2\n", jax)
        assert not pool.quick
    assert report.verdict is (VerdictKind.UNCHECKED if crash == "always" else VerdictKind.EQUIVALENT), report.reason
    assert crash == "hasty" or "SIGSEGV" in (report.reason or "")


def test_a_worker_stays_whose_torch_wraps_its_own_optimizers(workers: Pool, tmp_path: Path) -> None:
    """Torch does that with a class's ``step`` when one is made; that of AdamW is inherited."""
    body = "torch.optim.AdamW([torch.ones(1, requires_grad=True)])"
    result = [
        verdict(workers, tmp_path, f"# t2j: x=f32[3]\ndef f(x):\n    {b}\n    return x * 2\n") for b in ("pass", body)
    ]
    assert [one.verdict for one in result] == [VerdictKind.EQUIVALENT] * 2
    assert "torch" in workers._workers


@pytest.mark.parametrize("body", ["os._exit(3)", "sys.exit(1)", "while True: pass"])
def test_a_conversion_that_misbehaves_is_unchecked_too(body: str, workers: Pool, tmp_path: Path) -> None:
    torch = "# t2j: x=f32[3]\ndef f(x):\n    return x * 2\n"
    report = verdict(workers, tmp_path, torch, f"def f(x):\n    {body}\n    return x * 2\n", timeout=8.0)
    assert report.verdict is VerdictKind.UNCHECKED, report.reason


def test_output_and_files_of_a_program_disturb_nothing(workers: Pool, tmp_path: Path) -> None:
    lines = (
        "print('noise' * 999)",
        "os.write(1, b'noise')",
        "sys.stderr.write('noise')",
        "open('here.txt', 'w').close()",
    )
    body = "\n    ".join(lines)
    torch = f"# t2j: x=f32[3]\ndef f(x):\n    {body}\n    return x * 2\n"
    jax = "def f(x):\n    print('noise')\n    return x * 2\n"
    assert verdict(workers, tmp_path, torch, jax).verdict is VerdictKind.EQUIVALENT


def test_a_deleted_scratch_folder_is_unchecked_and_then_replaced(workers: Pool, tmp_path: Path) -> None:
    body = "import shutil\n    shutil.rmtree(os.environ['HOME'], ignore_errors=True)"
    torch = f"# t2j: x=f32[3]\ndef f(x):\n    {body}\n    return x * 2\n"
    verdict(workers, tmp_path, torch)
    good = "# t2j: x=f32[3]\ndef f(x):\n    return x * 2\n"
    assert VerdictKind.EQUIVALENT in {verdict(workers, tmp_path, good).verdict for _ in range(2)}


def test_a_thread_left_running_does_not_stay(workers: Pool, tmp_path: Path) -> None:
    body = "import threading\n    threading.Thread(target=time.sleep, args=(999,), daemon=True).start()"
    torch = f"# t2j: x=f32[3]\ndef f(x):\n    {body}\n    return x * 2\n"
    verdict(workers, tmp_path, "# t2j: x=f32[3]\ndef f(x):\n    return x * 2\n")
    before = workers._workers["torch"]
    verdict(workers, tmp_path, torch)
    assert workers._workers.get("torch") is not before


def test_a_process_left_running_ends_with_the_request(workers: Pool, tmp_path: Path) -> None:
    lines = (
        "libc = ctypes.CDLL(None)",
        "if libc.fork() == 0:",
        "    os.setsid()",
        "    if libc.fork() == 0:",
        "        libc.sleep(999)",
        "    libc._exit(0)",
    )
    body = "\n    ".join(lines)
    verdict(workers, tmp_path, "# t2j: x=f32[3]\ndef f(x):\n    return x * 2\n")
    before = workers._workers["torch"]
    verdict(workers, tmp_path, f"# t2j: x=f32[3]\ndef f(x):\n    {body}\n    return x * 2\n")
    assert workers._workers.get("torch") is not before
    assert not tree(before.process.pid)[1:]


def test_code_reads_its_project_and_what_is_named_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for name in ("project", "data", ".ssh"):
        (home / name).mkdir()
        (home / name / "file").write_text("3")
    (home / "project" / "setup.cfg").touch()
    body = "# t2j: x=f32[3]\ndef {0}(x):\n    return x * float(open({1!r}).read())\n"
    files = {name: str(home / folder / "file") for name, folder in (("a", "project"), ("b", "data"), ("c", ".ssh"))}
    source, converted = home / "project" / "source.py", home / "project" / "converted.py"
    source.write_text(IMPORTS + "".join(body.format(name, path) for name, path in files.items()))
    converted.write_text("".join(f"def {name}(x):\n    return x * 3\n" for name in files))
    report = check_files(source, converted, device="cpu", stage="numeric", readable=[home / "data"], eager=False)
    result = {one.name: (str(one.verdict), one.reason or "") for one in report.objects}
    assert (result["a"][0], result["b"][0], result["c"][0]) == ("equivalent", "equivalent", "unchecked")
    assert "--readable" in result["c"][1] and "t2j.check.readable" in result["c"][1]


def test_closing_the_pool_leaves_no_process_and_no_folder(tmp_path: Path) -> None:
    pool = Pool(device="cpu")
    pool.start()
    folders = [worker.scratch for worker in pool._workers.values()]
    mine = [pid for worker in pool._workers.values() for pid in tree(worker.process.pid)]
    pool.close()
    assert not [pid for pid in mine if Path(f"/proc/{pid}").exists()]
    assert not [folder for folder in folders if Path(folder).exists()]


def test_workers_die_with_the_process_that_started_them() -> None:
    program = (
        "import sys, time\n"
        "from t2j_lsp.check.process.pool import Pool\n"
        "from t2j_lsp.check.process.processes import tree\n"
        "pool = Pool(device='cpu')\n"
        "pool.start()\n"
        "import os\n"
        "print(*tree(os.getpid())[1:], flush=True)\n"
        "time.sleep(99)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert pids
    process.send_signal(signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 20
    while any(_runs(pid) for pid in pids) and time.monotonic() < deadline:
        os.sched_yield()
    assert not [pid for pid in pids if _runs(pid)]


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_check_can_be_cancelled_from_another_thread(workers: Pool, tmp_path: Path) -> None:
    stop = threading.Event()
    source, converted = tmp_path / "source.py", tmp_path / "converted.py"
    source.write_text(f"{IMPORTS}# t2j: x=f32[3]\ndef f(x):\n    while True: pass\n")
    converted.write_text(JAX)
    threading.Timer(1.0, stop.set).start()
    report = check_files(source, converted, ["f"], pool=workers, cancelled=stop.is_set).objects[0]
    assert (report.verdict, report.reason) == (VerdictKind.UNCHECKED, "the check was cancelled")


def test_an_interpreter_without_the_framework_is_said_so() -> None:
    with Pool(torch_python="/does/not/exist", device="cpu") as pool, pytest.raises(WorkerError, match="does not start"):
        pool.request("torch", "observe", 5.0)
