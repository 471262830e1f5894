"""What an edit does to code: the words by which two mistakes are seen to be the same, whatever stands around them.

Both pieces of code are taken in their common form (``canonical``), their statements are paired, and each pair is
compared from the outside in. Of a fixed bug the two pieces are its fixed and its faulty code; of a question, what the
rules or PyTorch have at that place and the draft.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .canonical import Statement, Tree, statements

NO_COUNTERPART = "extra"
"""Begins the words of a statement that the right code has nothing like."""
_ALIKE = 0.25
"""Statements less alike than this are not each other's counterpart."""
_MOVED = 0.5
"""So alike has a statement to be that stands elsewhere."""
_DEEP = 3


FAMILIES = {
    **dict.fromkeys(("relu", "sigmoid", "tanh", "gelu", "silu", "leaky_relu", "softplus", "elu"), "activation"),
    **dict.fromkeys(("mean", "sum", "max", "min", "prod", "var", "std", "norm", "logsumexp"), "reduction"),
    **dict.fromkeys(("argmax", "argmin"), "arg"),
    **dict.fromkeys(("softmax", "log_softmax"), "softmax"),
    **dict.fromkeys(("softmax_cross_entropy", "softmax_cross_entropy_with_integer_labels", "huber_loss", "l2_loss",
                     "sigmoid_binary_cross_entropy", "cross_entropy"), "loss"),
    **dict.fromkeys(("sgd", "adam", "adamw", "rmsprop"), "optimizer"),
    **dict.fromkeys(("LayerNorm", "BatchNorm", "GroupNorm", "InstanceNorm", "RMSNorm"), "norm layer"),
    **dict.fromkeys(("max_pool", "avg_pool"), "pool"),
    **dict.fromkeys(("concatenate", "stack"), "join"),
    **dict.fromkeys(("Linear", "Conv", "Embed", "Dense"), "layer"),
    **dict.fromkeys(("swapaxes", "permute", "T"), "axes"),
    **dict.fromkeys(("maximum", "minimum"), "elementwise"),
    **dict.fromkeys(("Mult", "Div"), "factor"),
}  # fmt: skip
"""Names that are interchangeable in a mistake."""


def edits(
    right: str,
    wrong: str,
    lines: tuple[int, int] | None = None,
    torch: bool = False,
    only: frozenset[str] = frozenset(),
) -> list[str]:
    """The words of the edit from right code to wrong code, and again with families of names in place of names.

    With ``lines``, only what stands on these lines of ``wrong`` counts. ``torch`` says that ``right`` is PyTorch code,
    and ``only`` which of its classes and functions count.
    """
    before, after = statements(right, torch, only), statements(wrong)
    kinds: list[str] = []
    pairs = _paired(before, after)
    matched = {j: i for i, j in pairs}
    for j, new in enumerate(after):
        if lines is not None and (new.line > lines[1] or lines[0] > new.end_line):
            continue
        if j not in matched and (elsewhere := _elsewhere(before, new)) is not None:
            kinds += changes(elsewhere.tree, new.tree, new.tree.label)
            continue
        if j not in matched:
            kinds += [f"{NO_COUNTERPART} {word}" for word in _heads(new.tree)]
            kinds += [f"{new.tree.label} into {kind}" for kind in _blocks(new)[-1:]]
            continue
        old = before[matched[j]]
        kinds += changes(old.tree, new.tree, old.tree.label)
        kinds += _moved(old, new)
    if lines is None:
        used = [i for i, _ in pairs]
        between = range(min(used), max(used) + 1) if used else range(0)
        kinds += [f"missing {word}" for i in between if i not in used for word in _heads(before[i].tree)]
    return [*kinds, *_families(kinds)]


def _families(words: Sequence[str]) -> Iterator[str]:
    for word in words:
        general = re.sub(r"(?:call|op) (\w+)", lambda m: f"any {FAMILIES[m[1]]}" if m[1] in FAMILIES else m[0], word)
        if general != word:
            yield general


def changes(old: Tree, new: Tree, place: str) -> Iterator[str]:
    """The words of the change from one tree to another at a place."""
    if old == new:
        return
    if old.label == new.label:
        yield from _same_kind(old, new)
        return
    kept = max((t for t in old.inside(_DEEP) if t.label == new.label), key=new.like, default=None)
    grown = max((t for t in new.inside(_DEEP) if t.label == old.label), key=old.like, default=None)
    lost, gained = kept.like(new) if kept else 0.0, grown.like(old) if grown else 0.0
    if kept is not None and lost >= max(gained, 0.5):
        yield from _both("dropped", _between(old, kept), place)
        yield from changes(kept, new, old.label)
    elif grown is not None and gained >= 0.5:
        yield from _both("added", _between(new, grown), place)
        yield from changes(old, grown, new.label)
    else:
        yield f"{old.label} > {new.label}"
        yield f"{old.label} >"
        yield f"> {new.label}"
        yield f"at {place}"
        yield from _parts(old, new)


def _same_kind(old: Tree, new: Tree) -> Iterator[str]:
    label = old.label
    if old.text != new.text:
        yield from _values(label, old.text, new.text)
    before, after = [part for _, part in old.parts], [part for _, part in new.parts]
    if old.labels == new.labels:
        yield from ("rearranged", f"rearranged {label}")
    if len(before) == len(after) > 1 and before != after and sorted(map(repr, before)) == sorted(map(repr, after)):
        yield from ("swapped", f"swapped {label}", f"swapped {len(before)}")
        return
    yield from _parts(old, new)


def _parts(old: Tree, new: Tree) -> Iterator[str]:
    """What became of the parts: dropped, added, changed."""
    label, before, after = new.label, dict(old.parts), dict(new.parts)
    gone, come = [k for k in before if k not in after], [k for k in after if k not in before]
    for slot in gone:
        yield from (f"no {slot}", f"no {label}.{slot}", f"no {slot}={before[slot].label}{before[slot].text}")
    for slot in come:
        yield from (f"with {slot}", f"with {label}.{slot}", f"with {slot}={after[slot].label}{after[slot].text}")
    for slot in before.keys() & after.keys():
        if before[slot] != after[slot]:
            if not slot.isdigit() and slot not in ("value", "a"):
                yield from (f"in {slot}", f"in {label}.{slot}")
            yield from changes(before[slot], after[slot], f"{label}.{slot}")


def _values(label: str, old: str, new: str) -> Iterator[str]:
    """How a name or a number changed."""
    yield from (f"{label} {old} > {new}", f"{label} changed")
    if label == "const":
        try:
            first, second = float(old), float(new)
        except ValueError:
            return
        if first == -second:
            yield "const negated"
        elif abs(first + second - 1) < 1e-9:
            yield "const complement"
        elif first and second:
            yield f"const {'larger' if abs(second) > abs(first) else 'smaller'}"
    elif new == "_":
        yield "ignored"


def _both(word: str, between: Sequence[Tree], place: str) -> Iterator[str]:
    for tree in between:
        yield from (f"{word} {tree.label}", f"{word} {tree.label} at {place}")
        for slot, part in tree.parts:
            if part.label == "const":
                yield f"{word} {tree.label}.{slot}={part.text}"
            yield f"{word} {part.label} of {tree.label}"


def _between(outer: Tree, inner: Tree) -> list[Tree]:
    """The trees around ``inner`` inside of ``outer``, from the outside in."""
    if outer is inner:
        return []
    for _, part in outer.parts:
        if part is inner or any(t is inner for t in part.inside(_DEEP)):
            return [outer, *_between(part, inner)]
    return [outer]


def _heads(tree: Tree) -> Iterator[str]:
    yield tree.label
    for part in tree.inside(2):
        if part.label not in ("name", "const", "sequence"):
            yield f"{tree.label} {part.label}"
            yield part.label


def _moved(old: Statement, new: Statement) -> Iterator[str]:
    before, after = _blocks(old), _blocks(new)
    if len(after) > len(before):
        yield from (f"into {after[-1]}", f"{new.tree.label} into {after[-1]}")
    elif len(after) < len(before) and any(word.startswith("def") for word in new.within):
        yield from (f"out of {before[-1]}", f"{new.tree.label} out of {before[-1]}")


def _blocks(statement: Statement) -> list[str]:
    return [word for word in statement.within if word in ("for", "if", "else", "while")]


def _paired(before: Sequence[Statement], after: Sequence[Statement]) -> list[tuple[int, int]]:
    """Indices of statements that are each other's counterpart: the same at both ends, between them ``_aligned``."""
    shorter = min(len(before), len(after))
    head = next((i for i in range(shorter) if before[i].tree != after[i].tree), shorter)
    left = shorter - head
    tail = next((i for i in range(left) if before[-1 - i].tree != after[-1 - i].tree), left)
    rows, columns = len(before) - tail, len(after) - tail
    return [
        *((i, i) for i in range(head)),
        *((head + i, head + j) for i, j in _aligned(before[head:rows], after[head:columns])),
        *((rows + i, columns + i) for i in range(tail)),
    ]


def _elsewhere(before: Sequence[Statement], new: Statement) -> Statement | None:
    """The counterpart of a statement that a draft has at another place, in a function of its own perhaps."""
    best = max(before, key=lambda old: old.tree.like(new.tree), default=None)
    return best if best is not None and best.tree.like(new.tree) >= _MOVED else None


def _aligned(before: Sequence[Statement], after: Sequence[Statement]) -> list[tuple[int, int]]:
    """Indices of statements that are each other's counterpart: the alignment in order that is most alike."""
    rows, columns = len(before), len(after)
    likeness = [[max(0.0, a.tree.like(b.tree) - _ALIKE) for b in after] for a in before]
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            paired = likeness[i][j] + best[i + 1][j + 1] if likeness[i][j] else 0.0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], paired)
    aligned, i, j = [], 0, 0
    while i < rows and j < columns:
        if likeness[i][j] and best[i][j] == likeness[i][j] + best[i + 1][j + 1]:
            aligned.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return aligned


def forms(code: str) -> set[str]:
    """The forms of expressions in some lines of code: what stands in which place of what, names aside."""
    return {word for statement in statements(code) for word in _forms(statement.tree, "")}


def _forms(tree: Tree, around: str) -> Iterator[str]:
    label = tree.label + (f" {tree.text}" if tree.label == "const" else " _" if tree.text == "_" else "")
    yield around + label
    inner = [part.label for _, part in tree.parts]
    if len(inner) > 1:
        yield f"{tree.label}({', '.join(inner)})"
    for slot, part in tree.parts:
        yield from _forms(part, f"{tree.label}.{slot}: ")
        for deep, one in part.parts:
            yield f"{tree.label}.{slot}: {part.label}.{deep}: {one.label}"
