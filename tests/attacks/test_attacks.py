"""Real programs attack during a check: what the table promises for this system holds, and each of them works outside.

`python -m benchmarks.attacks` runs all of the table, by the command line and as every kind of user.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

import pytest

from t2j_lsp.check.process.pool import Pool
from tests.lsp.client import Client

from .engines import Outside, by_command, by_pool, by_server, pool_of, serving, system_here
from .table import ATTACKS, SYSTEMS, Attack, markdown
from .world import PROGRAMS, World, programs

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the programs call Linux")

BY_NAME = {attack.program: attack for attack in ATTACKS}
THERE = tuple(attack for attack in ATTACKS if "server" not in attack.via)
SERVED = tuple(attack for attack in ATTACKS if "server" in attack.via)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with World() as made:
        yield made


@pytest.fixture(scope="module")
def pool(world: World) -> Iterator[Pool]:
    with pool_of(world) as made:
        yield made


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[World, Client]]:
    with World() as world, serving(world) as client:
        yield world, client


@pytest.fixture(scope="module")
def outside() -> Iterator[Outside]:
    with Outside() as made:
        yield made


def test_the_page_on_checking_shows_the_table() -> None:
    page = (PROGRAMS.parents[2] / "docs" / "checking.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- attacks: tests/attacks/table.py -->\n")[2].partition("\n<!-- /attacks -->")[0]
    assert shown == markdown(), "print it with: python -m benchmarks.attacks --table"


def expected(attack: Attack, damage: list[str]) -> None:
    assert (not damage) == attack.held(system_here()), damage


def test_each_attack_is_one_file_and_one_row() -> None:
    assert sorted(BY_NAME) == sorted(programs())
    assert len(BY_NAME) == len(ATTACKS)
    for attack in ATTACKS:
        assert ast.get_docstring(ast.parse((PROGRAMS / f"{attack.program}.py").read_text()))
        assert {system for system, _ in attack.through} <= set(SYSTEMS)


@pytest.mark.parametrize("name", [a.program for a in ATTACKS if a.control is None and a.program != "memory"])
def test_an_attack_works_where_nothing_holds_it(name: str, outside: Outside) -> None:
    assert outside.damage(BY_NAME[name])


@pytest.mark.parametrize("name", [attack.program for attack in THERE])
def test_an_attack_comes_to_what_the_table_says(name: str, world: World, pool: Pool) -> None:
    expected(BY_NAME[name], by_pool(BY_NAME[name], world, pool))


def test_an_attack_by_the_command_line() -> None:
    with World() as world:
        expected(BY_NAME["native_write"], by_command(BY_NAME["native_write"], world))


@pytest.mark.parametrize("name", [attack.program for attack in SERVED])
def test_an_attack_through_a_language_server(name: str, served: tuple[World, Client]) -> None:
    expected(BY_NAME[name], by_server(BY_NAME[name], *served))
