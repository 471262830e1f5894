"""Settings that every test runs under: one CPU thread for each library, reproducible Hypothesis runs."""

from __future__ import annotations

import compileall
import contextlib
import functools
import gc
import inspect
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import date
from importlib.metadata import version
from pathlib import Path
from types import CodeType, ModuleType

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from t2j_lsp.check.process.compile_cache import open_cache, trim
from tests.slices import ALL, HALVES, ROWS, SHARES, asked, left_out

ROOT = str(Path(__file__).resolve().parents[1])

# Commands that tests start find the package also where it isn't installed.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH"))))
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Programs of tests are small and run once or twice: compiling is all the time there is. Workers of a check have
# settings of their own (`check/process/environment.py`). The flags are those of jaxlib 0.10; others may not know them.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")
os.environ.setdefault("JAX_INCLUDE_FULL_TRACEBACKS_IN_LOCATIONS", "0")
if version("jaxlib").startswith("0.10."):
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1")
os.environ["COLUMNS"] = "120"  # pytest-xdist says 80.

KINDS = (
    ("tests", "unit"),
    ("tests/retrieval/test_data", "corpus"),
    ("tests/retrieval/test_index", "corpus"),
    ("tests/retrieval/test_similar", "corpus"),
    ("tests/test_fuzz", "corpus"),
    ("tests/test_installed_names", "corpus"),
    ("tests/test_metamorphic", "corpus"),
    ("tests/test_promise", "corpus"),
    ("tests/test_symbols.py::test_statements_bind_what_the_interpreter_says", "corpus"),
    ("tests/translate/test_concrete.py::test_positions_in_files", "corpus"),
    ("tests/translate/test_helper_transformers.py::test_a_class_is_folded_in_parts", "corpus"),
    ("tests/translate/test_helpers_apart.py::test_the_module_has_what_the_file_would_have", "corpus"),
    ("tests/translate/test_idempotence", "corpus"),
    ("tests/translate/test_outcomes.py::test_every_outcome", "corpus"),
    ("tests/translate/test_proof.py::test_nothing_fails_in_our_own_corpora", "corpus"),
    ("tests/translate/test_walk.py::test_a_pass_that_is_left_out", "corpus"),
    ("tests/helpers", "jax"),
    ("tests/rules", "jax"),
    ("tests/test_pairs", "jax"),
    ("tests/test_torchvision_benchmark", "jax"),
    ("tests/translate/test_made_optimizers", "jax"),
    ("tests/translate/test_masks_and_detachment", "jax"),
    ("tests/translate/test_models", "jax"),
    ("tests/translate/test_regressions", "jax"),
    ("tests/translate/test_taken_names", "jax"),
    ("tests/translate/test_training_optimizers", "jax"),
    ("tests/translate/test_training_scripts", "jax"),
    ("tests/translate/test_unit_tests", "jax"),
    ("tests/weights", "jax"),
    ("tests/rules/test_lint", "unit"),
    ("tests/assist/test_api", "worker"),
    ("tests/assist/test_embeddings", "worker"),
    ("tests/assist/test_evaluation.py", "worker"),
    ("tests/assist/test_repair", "worker"),
    ("tests/assist/test_replay", "worker"),
    ("tests/attacks", "worker"),
    ("tests/child", "worker"),
    ("tests/check", "worker"),
    ("tests/test_cli", "worker"),
    ("tests/test_convert_check", "worker"),
    ("tests/test_library_models", "worker"),
    ("tests/test_notebook_programs", "worker"),
    ("tests/test_outputs_benchmark", "worker"),
    ("tests/test_own_fixes", "worker"),
    ("tests/test_packaging", "worker"),
    ("tests/test_readme", "worker"),
    ("tests/lsp", "server"),
    ("tests/e2e", "editor"),
)
"""What tests need, by path and name; the longest match counts: see the marks in ``pyproject.toml``."""
RUNNING: list[pytest.Item] = []
"""The test that runs now, if one does."""
TESTS = os.path.join(ROOT, "tests")
FRAMEWORKS = ("torch", "torchvision", "jax", "flax", "optax")
"""A test that runs these is no ``unit``, whichever file it stands in."""
CHECKING = ("worker", "server", "editor")
"""The kinds that start checks."""
IN_SHARES = ("corpus", "jax", "worker", "server")
"""The kinds that a run of all tests takes a share of: see `tests.slices`."""
IN_HALVES = ("tests/translate/",)
"""Where the conversions stand that are only looked at as text: a run of all tests takes each second of them."""
IN_TURN = (
    "tests/test_readme.py::test_the_commands_run_in_their_order",
    "tests/test_readme.py::test_the_demo_ends_in_equivalent_and_then_finds_the_planted_mistake",
)
"""Tests that convert, check and run the same examples by other commands: a run of all tests takes one of the two."""
ALWAYS = ("tests/check/test_containment", "tests/test_borders", "tests/test_packaging", "tests/test_readme")
"""What is promised to everybody: these files' short tables and single tests are in every run, but for `IN_TURN`."""

settings.register_profile(
    "gate",
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", parent=settings.get_profile("gate"), derandomize=False, max_examples=5000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gate"))


def pytest_configure(config: pytest.Config) -> None:
    """Compiles t2j once, for the hundreds of processes that tests start: servers, commands, workers."""
    sys.addaudithook(no_processes_of_texts)
    sys.dont_write_bytecode = False  # Tests with their asserts rewritten are kept for the next run.
    if not hasattr(config, "workerinput"):
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ[ROWS] = ALL if takes_names(config) else asked(os.environ, date.today())
        for package in ("t2j_lsp", "rules", "retrieval"):
            compileall.compile_dir(Path(ROOT, package), quiet=2)
        keep_what_jax_compiles(config)


def takes_names(config: pytest.Config) -> bool:
    """Whether some tests are asked for, by path or by name."""
    return config.args_source is not pytest.Config.ArgsSource.TESTPATHS or bool(config.option.keyword)


def kind_of(place: str) -> str:
    """The kind that tests of a path and name are of, by where they stand."""
    return max((len(prefix), kind) for prefix, kind in KINDS if place.startswith(prefix))[1]


def pytest_report_header() -> str | None:
    """Says which tests are run."""
    share = os.environ[ROWS]
    return (
        None
        if share == ALL
        else f"of tests that are {', '.join(IN_SHARES)}, of each long table and each folder of them: share {share} of "
        f"{SHARES}; of texts in {', '.join(IN_HALVES)} one of {HALVES} ({ROWS}={share}; {ROWS}={ALL}: all)"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the tests that are not of this run's share."""
    turning = [(named(item), item) for item in items if any(map(item.get_closest_marker, IN_SHARES))]
    texts = [(named(item), item) for item in items if item.get_closest_marker("unit")]
    texts = [(name, item) for name, item in texts if name.startswith(IN_HALVES)]
    texts += [(name, item) for name, item in turning if name in IN_TURN]
    turning = [(name, item) for name, item in turning if name not in IN_TURN]
    share = os.environ[ROWS]
    if out := [*left_out(turning, share, ALWAYS), *left_out(texts, share, shares=HALVES)]:
        config.hook.pytest_deselected(items=out)
        gone = set(out)
        items[:] = [item for item in items if item not in gone]


def named(item: pytest.Item) -> str:
    """The table of a test: its file and function."""
    return item.nodeid.partition("[")[0]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves files and folders without a ``unit`` test unread where only these are asked for: most load frameworks."""
    if config.option.markexpr != "unit" or takes_names(config):
        return None
    place = collection_path.relative_to(ROOT).as_posix()
    kinds = {kind_of(place), *(kind for prefix, kind in KINDS if prefix.startswith(f"{place}/"))}
    return None if "unit" in kinds else True


def keep_what_jax_compiles(config: pytest.Config) -> None:
    """Has JAX keep its programs with pytest's own cache, for all processes of this run and the next runs.

    A program's name in there is a digest of its text, the versions and the flags. Workers of a check have caches of
    their own (`kept_of_checks`).
    """
    if (cache := getattr(config, "cache", None)) is not None:
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache.mkdir("compiled")))
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Looks for no garbage in what is imported."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is loaded by now stays: the garbage collector need not look through it again and again.

    Tests that run JAX lower their programs as the workers of checks do.
    """
    if any(item.get_closest_marker("jax") for item in session.items):
        from t2j_lsp.check.workers.jax_side import lowering

        lowering.install()
    gc.collect()
    gc.freeze()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks each test with what it needs, by where it stands, and by what it names: programs are run beside texts.

    What a test or its file says itself counts.
    """
    if any(map(item.get_closest_marker, IN_SHARES)):
        return
    place = f"{item.path.relative_to(ROOT).as_posix()}::{item.name}"
    kind = kind_of(place)
    if kind == "unit" and isinstance(item, pytest.Function):
        kind = runs(item.function)
    item.add_marker(kind)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Holds a test to what it is marked with."""
    RUNNING.append(item)
    try:
        return (yield)
    finally:
        RUNNING.pop()


def no_processes_of_texts(event: str, arguments: tuple[object, ...]) -> None:
    """An audit hook: a ``unit`` test starts no process, in t2j's own code neither."""
    if event == "subprocess.Popen" and RUNNING and RUNNING[-1].get_closest_marker("unit"):
        raise AssertionError(f"{RUNNING[-1].nodeid} starts {arguments[1]}: mark it with what it needs, as `worker`")


@functools.cache
def runs(function: Callable[..., object]) -> str:
    """What a test needs, by what it and the functions of the tests that it calls name.

    ``jax`` where they name a framework or execute a text, ``worker`` where they start processes, else ``unit``.
    """
    kind = "unit"
    seen: set[object] = set()
    todo: list[object] = [function]
    while todo:
        one = inspect.unwrap(result) if inspect.isfunction(result := todo.pop()) else result
        if one is exec or isinstance(one, ModuleType) and one.__name__.partition(".")[0] in FRAMEWORKS:
            return "jax"
        if one is subprocess:
            kind = "worker"
        if inspect.isfunction(one) and one.__code__.co_filename.startswith(TESTS) and one not in seen:
            seen.add(one)
            todo += [one.__globals__.get(name, exec if name == "exec" else None) for name in names_in(one.__code__)]
    return kind


def names_in(code: CodeType) -> Iterator[str]:
    """The names that some code reads from around it, with those of functions inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


def seed_everything() -> None:
    """Sets what draws in this process: PyTorch's generator starts anew from the system's own randomness otherwise.

    ``T2J_TEST_SEED`` names another seed than 0, to look for tests that hold by luck.
    """
    seed = int(os.environ.get("T2J_TEST_SEED", "0"))
    random.seed(seed)
    np.random.seed(seed)
    if (torch := sys.modules.get("torch")) is not None:
        torch.default_generator.manual_seed(seed)  # `torch.manual_seed` writes down the stack for cards: 1.5 ms.
        if torch.cuda.is_available():
            torch.cuda.manual_seed_all(seed)


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Every test draws the same numbers in every run, whichever ran before it."""
    seed_everything()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """So do tables that test files draw when they are imported."""
    if isinstance(collector, pytest.Module):
        seed_everything()
    return (yield)


@pytest.fixture(autouse=True, scope="session")
def own_state(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What t2j remembers and keeps, it has in folders of the test run; to a check, all its files are one project."""
    project = tmp_path_factory.getbasetemp()
    (project / "setup.cfg").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("T2J_STATE", str(tmp_path_factory.mktemp("state")))
        patch.setenv("T2J_DATA", str(tmp_path_factory.mktemp("data")))
        patch.setenv("T2J_CACHE", str(tmp_path_factory.mktemp("cache")))
        checks = any(item.get_closest_marker(kind) for item in request.session.items for kind in CHECKING)
        with kept_of_checks(request.config, project) if checks else contextlib.nullcontext():
            yield


@contextlib.contextmanager
def kept_of_checks(config: pytest.Config, project: Path) -> Iterator[None]:
    """Keeps what checks of a project compile with pytest's own cache, as `keep_what_jax_compiles` does for tests.

    Copies, since checked programs write to their project's folder.
    """
    cache, own = getattr(config, "cache", None), open_cache(project)
    if cache is None or own is None:
        yield
        return
    root = cache.mkdir("checked")
    kept = root / "xla" / "programs"
    kept.mkdir(parents=True, exist_ok=True)
    copy_new_files(kept, own)
    yield
    copy_new_files(own, kept)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("T2J_CACHE", str(root))
        trim()


def copy_new_files(source: Path, target: Path) -> None:
    """Copies the files that the target has not; another process may do the same."""
    other = {one.name for one in os.scandir(target)}
    for one in os.scandir(source):
        if one.name not in other and one.is_file(follow_symlinks=False):
            half = target / f"{one.name}.{os.getpid()}"
            shutil.copyfile(one.path, half)
            half.replace(target / one.name)


@pytest.fixture(scope="module")
def warm_workers() -> Iterator[None]:
    """Workers that stay from one command of a file's tests to the next with the same settings; by ``usefixtures``.

    Each command has to end its workers, as if they were its own.
    """
    from t2j_lsp.check import run
    from t2j_lsp.check.process import pool
    from t2j_lsp.check.programs import run as programs
    from tests.warm import WarmPools

    with pytest.MonkeyPatch.context() as patch, WarmPools() as pools:
        for module in (pool, run, programs):
            patch.setattr(module, "Pool", pools)
        yield


@pytest.fixture
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own for what t2j remembers; for a whole file of tests, by ``usefixtures``."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("T2J_STATE", str(folder))
    return folder


@pytest.fixture(autouse=True, scope="module")
def no_compiled_programs_of_other_files() -> Iterator[None]:
    """Lets go of what JAX compiled for a file of tests: all of it together takes gigabytes."""
    yield
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
