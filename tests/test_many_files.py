"""Files converted by several processes: what one would say of each, in their order, and each within its budget."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from t2j_lsp.api import FileConversion, convert_file
from t2j_lsp.commands import many_files
from t2j_lsp.commands.many_files import Job, convert_all
from t2j_lsp.contract import Options, SourceError, T2JError


@pytest.fixture
def jobs(tmp_path: Path) -> list[Job]:
    texts = {f"f{n}.py": f"import torch\nx{n} = torch.zeros({n})\n" for n in range(9)} | {
        "f3.py": "import torch\nx = (\n"
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return [(tmp_path / name, Options()) for name in texts]


def test_several_processes_say_what_one_says(jobs: list[Job]) -> None:
    alone, together = list(convert_all(jobs, processes=1)), list(convert_all(jobs, processes=2))
    for (path, options), one, other in zip(jobs, alone, together, strict=True):
        if isinstance(one, FileConversion):
            assert one == other == convert_file(path, options)
            assert f"x{path.stem[1:]} = jnp.zeros" in one.translation.code
        else:
            assert isinstance(one, SourceError) and isinstance(other, SourceError)
            assert path.name == "f3.py"
            assert (str(one), one.line, one.column) == (str(other), other.line, other.column)
            assert one.line == 2


def test_what_runs_away_is_given_up(jobs: list[Job], monkeypatch: pytest.MonkeyPatch) -> None:
    def runs_away(path: Path, options: Options) -> FileConversion:
        while path.name == "f1.py":
            pass
        return convert_file(path, options)

    monkeypatch.setattr(many_files, "SECONDS", 0.5)
    monkeypatch.setattr(many_files, "convert_file", runs_away)
    before, given_up, after = convert_all(jobs[:3])
    assert isinstance(before, FileConversion) and isinstance(after, FileConversion)
    assert str(given_up).endswith("f1.py: not converted within 0.5 s of processor time")


def test_a_defect_of_ours_is_said_of_its_file(jobs: list[Job], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(path: Path, options: Options) -> FileConversion:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(many_files, "convert_file", fails)
    (one,) = convert_all(jobs[:1])
    assert str(one) == f"{jobs[0][0]}: an error inside t2j, ZeroDivisionError: by zero"


def test_a_process_that_is_ended_fails_what_is_left(jobs: list[Job], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: object, function: object, given: list[Job], chunksize: int) -> Iterator[FileConversion]:
        yield convert_file(*given[0])
        raise BrokenProcessPool

    monkeypatch.setattr(many_files.ProcessPoolExecutor, "map", broken)
    first, *rest = convert_all(jobs, processes=2)
    assert isinstance(first, FileConversion)
    assert len(rest) == len(jobs) - 1
    assert all(isinstance(one, T2JError) and "ended by the system" in str(one) for one in rest)
