"""Lines and columns as Python has them and as clients count them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2j_lsp.lsp.positions import Encoding, split_lines, to_character, to_column

TEXT = st.text(st.sampled_from("ab \t\r\n\f\v\x85\u2028é字𝔘\U0001f600́"), max_size=30)
LINE = st.text(st.sampled_from("ab \f\u2028é字𝔘\U0001f600́"), max_size=12)
ENCODINGS: dict[Encoding, str] = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
WIDTH = {"utf-8": 1, "utf-16": 2, "utf-32": 4}


@given(TEXT)
def test_lines_end_where_lsp_ends_them_and_nothing_is_lost(text: str) -> None:
    lines = split_lines(text)
    assert "".join(lines) == text
    assert len(lines) == 1 + len(text.replace("\r\n", "\n").replace("\r", "\n").split("\n")) - 1
    assert not lines[-1].endswith(("\r", "\n"))


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(LINE, st.data())
def test_a_column_there_and_back_is_the_same(encoding: Encoding, line: str, data: st.DataObject) -> None:
    column = data.draw(st.integers(0, len(line)))
    character = to_character(line + "\n", column, encoding)
    assert character == len(line[:column].encode(ENCODINGS[encoding])) // WIDTH[encoding]
    assert to_column(line + "\n", character, encoding) == column


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_beyond_the_line_is_its_end_and_inside_a_character_is_its_start(encoding: Encoding) -> None:
    assert to_column("a𝔘\r\n", 99, encoding) == 2
    assert to_character("a𝔘\r\n", 99, encoding) == {"utf-8": 5, "utf-16": 3, "utf-32": 2}[encoding]
    assert to_column("𝔘b\n", 1, encoding) == (0 if encoding != "utf-32" else 1)
    assert to_column("a", -1, encoding) == 0
