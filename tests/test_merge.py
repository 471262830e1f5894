"""The laws of the three-way merge."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from t2j_lsp.files.merge import MINE, MINE_LABEL, THEIRS, THEIRS_LABEL, Merged, marked_line, merge

# Few different lines, so that they repeat and match in the wrong places as well; all kinds of line ends.
LINES = st.lists(st.sampled_from(["a", "b", "c", "", "\tx", "=======", "\f", "é\u2028"]), max_size=12)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])
TEXTS = st.builds(lambda lines, end, last: end.join(lines) + (end if last else ""), LINES, ENDS, st.booleans())


@given(TEXTS, TEXTS)
def test_a_text_that_nobody_edited_becomes_the_new_conversion(base: str, theirs: str) -> None:
    assert merge(base, base, theirs) == Merged(theirs)


@given(TEXTS, TEXTS)
def test_an_edited_text_stays_where_the_conversion_is_the_same(base: str, mine: str) -> None:
    assert merge(base, mine, base) == Merged(mine)


@given(TEXTS, TEXTS)
def test_the_same_change_on_both_sides_is_no_conflict(base: str, both: str) -> None:
    assert merge(base, both, both) == Merged(both)


@given(st.integers(2, 30), st.data())
def test_changes_in_different_places_are_both_kept(count: int, data: st.DataObject) -> None:
    base = [f"line {i}\n" for i in range(count)]
    places = st.lists(st.integers(0, (count - 1) // 2), unique=True)
    mine, theirs, both = list(base), list(base), list(base)
    # Mine at even lines and theirs at odd ones that no line of mine touches.
    ours = {2 * i for i in data.draw(places) if 2 * i < count}
    others = {2 * i + 1 for i in data.draw(places) if 2 * i + 1 < count} - {i + d for i in ours for d in (-1, 1)}
    for texts, changed, word in ((mine, ours, "mine"), (theirs, others, "theirs")):
        for index in changed:
            texts[index] = both[index] = data.draw(st.sampled_from(["", f"{word} {index}\n", f"{word}\n{index}\n"]))
    assert merge("".join(base), "".join(mine), "".join(theirs)) == Merged("".join(both))


@given(TEXTS, TEXTS, TEXTS)
def test_nothing_is_lost_and_every_conflict_is_marked(base: str, mine: str, theirs: str) -> None:
    merged = merge(base, mine, theirs)
    lines = merged.text.splitlines()
    assert lines.count(MINE + MINE_LABEL) == lines.count(THEIRS + THEIRS_LABEL) == merged.conflicts
    assert (marked_line(merged.text) is not None) == (merged.conflicts > 0)
    kept = set(base.splitlines())
    # A line that a side added stands in the result, whatever the other side did.
    assert {line for side in (mine, theirs) for line in side.splitlines()} - kept <= set(lines)


@given(TEXTS, TEXTS, TEXTS)
def test_the_sides_count_the_same(base: str, mine: str, theirs: str) -> None:
    assert bool(merge(base, mine, theirs).conflicts) == bool(merge(base, theirs, mine).conflicts)


def test_a_conflict_shows_both_sides_and_no_more_than_differs() -> None:
    merged = merge(
        "def f():\n    return 1\n", "def f():\n    x = 2\n    return x\n", "def f():\n    x = 3\n    return x"
    )
    assert merged.conflicts == 1
    assert merged.text == (
        "def f():\n<<<<<<< as edited\n    x = 2\n    return x\n=======\n    x = 3\n    return x\n"
        ">>>>>>> as t2j converts it now\n"
    )
    merged = merge("a\nb\nc\n", "a\nnew\nmine\nlast\nc\n", "a\nnew\ntheirs\nlast\nc\n")
    assert merged.text == (
        "a\nnew\n<<<<<<< as edited\nmine\n=======\ntheirs\n>>>>>>> as t2j converts it now\nlast\nc\n"
    )
    assert marked_line(merged.text) == 3


def test_an_editor_that_changed_the_line_ends_changed_nothing_else() -> None:
    merged = merge("a\nb\nc\nd\n", "a\r\nB\r\nc\r\nd\r\n", "a\nb\nc\nD\n")
    assert merged == Merged("a\r\nB\r\nc\r\nD\r\n")
