"""Which statements of a loop make up the differentiated function, and which stay around it in Python.

The statements on the way from a module's parameters to the loss move into the train step. What the loss doesn't need
stays: in front of the call what the step may need, behind it what reads its results.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from t2j_lsp import symbols

from .flow import DataFlow, is_mode
from .step_calls import Item, Refused, StepCall

SWAPPED = "What the loop does between the forward pass and the update can't be put in another order surely."


@dataclass
class UpdateSlice:
    """The statements of one update, by what becomes of them."""

    moved: list[int] = field(default_factory=list)
    """Indices of the items that move into the step, in order."""
    split: dict[int, ast.expr] = field(default_factory=dict)
    """Items ``x = value.item()`` whose value is computed in the step; the number is taken behind the call."""
    delayed: list[int] = field(default_factory=list)
    """Items that read what the step gives, and so go behind the call."""
    call: int = 0
    """Index of the item in whose place the step is called."""
    saved: dict[tuple[int, str], list[int]] = field(default_factory=dict)
    """Values that are kept under another name, because items that read them wait while the step gives their variables
    new ones: the moved item that does, and the variable; the items that wait."""
    shared: list[int] = field(default_factory=list)
    """Moved items whose value an earlier update needs too: they stay in place as well, on a copy of the module."""
    drawn: dict[int, list[str]] = field(default_factory=dict)
    """The lines in front of shared items that draw what both of their places need."""


class UpdateSlicer:
    """Slices one block."""

    def __init__(
        self,
        items: Sequence[Item],
        flow: DataFlow,
        carried: DataFlow,
        apart: Mapping[int, Collection[str]],
        modules: Collection[str] = (),
    ) -> None:
        self.items = items
        self.bound: dict[int, set[str]] = {}
        """Items that bind tensors by which gradients are taken: what stands in front of them depends on none."""
        self.modules = modules
        """Variables that hold modules: no gradient flows through what changes these in loops of their own."""
        self.flow = flow
        self.carried = carried
        """The flow of what a gradient may be taken of."""
        self.apart = apart
        """Items that read a module without gradients, and stay where they are: what they read with gradients."""

    def reads(self, index: int) -> set[str]:
        return self.flow.reads(self.items[index].node)

    def writes(self, index: int) -> set[str]:
        return self.flow.writes(self.items[index].node)

    def binds(self, index: int, name: str) -> bool:
        """Whether an item gives a variable a new value."""
        node = self.items[index].node
        targets = [n for t in node.targets for n in symbols.walk(t)] if isinstance(node, ast.Assign) else []
        return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in targets)

    def plain(self, index: int) -> bool:
        """Whether an item is ordinary code and no part of the training step's calls."""
        return self.items[index].step_call is None

    # --- the way from the parameters to the loss ------------------------------------------------------------------

    def path(self, losses: Sequence[tuple[int, ast.expr]], variables: set[str]) -> list[int]:
        """Items that depend on ``variables`` and that a loss depends on, in order."""
        last = losses[-1][0]
        depending = self.depending(variables, last)
        needed: set[str] = set()
        out: list[int] = []
        for index in range(last, -1, -1):
            for position, loss in losses:
                if position == index:
                    needed |= self.flow.reads(loss)
            if not self.plain(index):
                continue
            written = self.writes(index) & needed
            if _trains(self.items[index].node) or _loads(self.items[index].node):
                written -= set(self.modules)
            if not written:
                continue
            if self._replaces(index):
                needed -= written
            needed |= self.reads(index)
            if index in depending or self._starts_sum(index, written, out) or self._names_function(index):
                out.append(index)
        return out[::-1]

    def _starts_sum(self, index: int, written: set[str], path: list[int]) -> bool:
        """Whether an item is ``loss = 0`` in front of items on the path that add to it."""
        node = self.items[index].node
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Constant | ast.UnaryOp):
            return False
        return any(written <= self.writes(i) & self.reads(i) for i in path)

    def _names_function(self, index: int) -> bool:
        """Whether an item is ``square = Square.apply``: what is called in the step can't be passed to it."""
        match self.items[index].node:
            case ast.Assign(targets=[ast.Name()], value=ast.Attribute(attr="apply", value=ast.Name())):
                return True
        return False

    def depending(self, variables: set[str], last: int) -> set[int]:
        """Items that read the variables, or values made from them."""
        tainted = variables.difference(*self.bound.values())
        out: set[int] = set()
        for index in range(last + 1):
            if index in self.bound:
                tainted |= self.bound[index]
                continue
            if not self.plain(index):
                continue
            mine = self.reads(index).intersection(tainted, self.apart.get(index, tainted))
            if mine and not self._takes_numbers(index, variables, tainted):
                out.add(index)
                tainted |= self.writes(index)
            elif self._replaces(index):
                tainted -= self.writes(index) - variables
        return out

    def _takes_numbers(self, index: int, modules: set[str], tainted: set[str]) -> bool:
        """Whether all that an item takes from a module are numbers: ``action = act(policy, state).item()``.

        It stays in front of the step then, unless it reads something that the step gives.
        """
        node = self.items[index].node
        return self.reads(index) & tainted <= modules and not self.carried.reads(node) & modules

    def _replaces(self, index: int) -> bool:
        """Whether an item gives its variables new values whatever they held."""
        node = self.items[index].node
        parts = node.body if isinstance(node, ast.With) else [node]
        given = all(isinstance(part, ast.Assign | ast.AnnAssign) for part in parts)
        return given and not (self.writes(index) & self.reads(index))

    # --- closure --------------------------------------------------------------------------------------------------

    def close(self, path: list[int], call: int, earlier: int = 0) -> UpdateSlice:
        """The whole slice: what must move with the path, and what must wait for the step. Raises Refused.

        ``earlier`` is the item behind the update before this one; what stands before it is only moved.
        """
        early = [i for i in path if i < earlier]
        moved = set(path) - set(early)
        split: dict[int, ast.expr] = {}
        saved: dict[tuple[int, str], list[int]] = {}
        first = min(moved, default=call)
        self._check_early(early, earlier, call)
        if any(is_mode(self.items[i].node) for i in range(first, call)):
            raise Refused(SWAPPED)
        late: set[int] = set()
        while True:
            delayed = self._delayed(moved | split.keys(), first, call, late)
            if between := {d for d in delayed if any(self.writes(d) & self.reads(i) for i in moved if i > d)}:
                moved |= between  # of what the step changes something is made that it needs
                continue
            more = self._overwritten(moved, delayed, first, call)
            if more:
                waits = {index for index in more if self._can_wait(index, moved | delayed | more, call)}
                late |= waits
                moved |= more - waits
                continue
            unready = [d for d in delayed if self._outdated(d, moved, call)]
            numbers = {d: value for d in unready if (value := _number_of(self.items[d].node)) is not None}
            if not numbers:
                saved = self._saved(unready, moved, call)
                break
            split |= numbers
        self._check_order(delayed, moved | split.keys(), first, call)
        return UpdateSlice(sorted([*early, *moved]), split, sorted(delayed), call, saved, self._shared(early, earlier))

    def _shared(self, early: list[int], earlier: int) -> list[int]:
        """The early items that something in front of the update before this one's end needs where they stand."""
        shared: set[int] = set()
        for index in sorted(early, reverse=True):
            staying = (j for j in range(index + 1, earlier) if j not in early or j in shared)
            if any(self.writes(index) & self.reads(j) for j in staying):
                shared.add(index)
        return sorted(shared)

    def _check_early(self, early: list[int], earlier: int, call: int) -> None:
        """Raises Refused if what an early item reads changes before the step."""
        for index in early:
            for other in range(index + 1, call):
                if (
                    other not in early
                    and self.plain(other)
                    and self.writes(other) & (self.reads(index) | self.writes(index))
                ):
                    raise Refused(SWAPPED)

    def _can_wait(self, index: int, others: set[int], call: int) -> bool:
        """Whether an item that changes an input of the step may stand behind it: ``x, y = next_batch()``, in front of
        the backward pass, of which the step needs nothing and behind which nothing stays.
        """
        behind = range(index + 1, call + 1)
        if any(self.plain(i) and i not in others for i in behind if i < call):
            return False
        return not any(self.writes(index) & self.reads(i) for i in behind)

    def _delayed(self, moved: set[int], first: int, call: int, late: Collection[int] = ()) -> set[int]:
        """Items before the call that read results of the step, directly or through each other, and those ``late``."""
        waiting: set[str] = set()
        out: set[int] = set()
        for index in range(first, call):
            if index in moved:
                waiting |= self.writes(index)
            elif self.plain(index) and (index in late or self.reads(index) & waiting):
                out.add(index)
                waiting |= self.writes(index)
        return out

    def _overwritten(self, moved: set[int], delayed: set[int], first: int, call: int) -> set[int]:
        """Items that change an input of an earlier moved item: they have to move too."""
        out: set[int] = set()
        for index in range(first, call):
            if index in moved or index in delayed or not self.plain(index):
                continue
            written = self.writes(index)
            for earlier in moved:
                if earlier < index and written & (self.reads(earlier) | self.writes(earlier)):
                    out.add(index)
        return out

    def _outdated(self, index: int, moved: set[int], call: int) -> bool:
        """Whether what a delayed item reads is written again by the step."""
        return any(later > index and self.writes(later) & self.reads(index) for later in moved if later < call)

    def _saved(self, unready: Sequence[int], moved: set[int], call: int) -> dict[tuple[int, str], list[int]]:
        """The values to keep for items that wait: ``meter.update(loss.item()); loss = loss / n``. Raises Refused."""
        out: dict[tuple[int, str], list[int]] = {}
        for late in unready:
            behind = [i for i in sorted(moved) if late < i < call]
            for name in sorted({n for i in behind for n in self.writes(i)} & self.reads(late)):
                given = any(i < late and name in self.writes(i) for i in moved)
                if not given or not name.isidentifier() or name in self.writes(late):
                    raise Refused(SWAPPED)
                if not _takes_numbers(self.items[late].node, name) and any(
                    _changes_in_place(self.items[i].node, name) for i in behind
                ):
                    raise Refused(SWAPPED)
                out.setdefault((next(i for i in behind if name in self.writes(i)), name), []).append(late)
        return out

    def _check_order(self, delayed: set[int], moved: set[int], first: int, call: int) -> None:
        """Raises Refused if an item that waits changes places with one that minds."""
        staying = [i for i in range(first, call) if i not in moved and i not in delayed and self.plain(i)]
        for late in delayed:
            for other in staying:
                if other < late:
                    continue
                touched = self.writes(late) & (self.reads(other) | self.writes(other))
                touched |= self.reads(late) & self.writes(other)
                both = _acts(self.items[late].node) and _acts(self.items[other].node)
                if touched or both:
                    raise Refused(SWAPPED)


def _number_of(node: ast.stmt) -> ast.expr | None:
    """The array in ``x = array.item()``, ``x = float(array)``; None for other statements."""
    match node:
        case ast.Assign(targets=[ast.Name()], value=ast.Call() as call):
            return _number(call)
    return None


def _number(call: ast.Call) -> ast.expr | None:
    """The array whose number a call gives; None for other calls."""
    match call:
        case ast.Call(func=ast.Attribute(attr="item", value=value), args=[]):
            return value
        case ast.Call(func=ast.Name(id="float"), args=[value]):
            return value
    return None


def _takes_numbers(node: ast.stmt, name: str) -> bool:
    """Whether a statement reads nothing of an array but its number: ``loss.item()``."""
    taken = [n for n in symbols.walk(node) if isinstance(n, ast.Call) and _number(n) is not None]
    inside = {n for call in taken for n in symbols.walk(call)}
    return all(n in inside for n in symbols.walk(node) if isinstance(n, ast.Name) and n.id == name)


def _changes_in_place(node: ast.stmt, name: str) -> bool:
    """Whether a statement may write into the tensor that a variable holds, which others may hold too."""
    for inner in symbols.walk(node):
        match inner:
            case ast.AugAssign(target=target):
                pass
            case ast.Call(func=ast.Attribute(value=target, attr=attr)) if attr.endswith("_"):
                pass
            case _:
                continue
        if any(isinstance(n, ast.Name) and n.id == name for n in symbols.walk(target)):
            return True
    return False


def _acts(node: ast.stmt) -> bool:
    """Whether a statement does something besides binding names: prints, appends, logs."""
    if isinstance(node, ast.If | ast.With):
        return any(map(_acts, [*node.body, *(node.orelse if isinstance(node, ast.If) else ())]))
    return not isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Pass)


def between(items: Sequence[Item], start: int, stop: int, kind: str) -> list[tuple[int, StepCall]]:
    """The parts of the training step of one kind among items ``start`` to ``stop`` (exclusive)."""
    calls = []
    for index in range(start, stop):
        step_call = items[index].step_call
        if step_call is not None and step_call.kind == kind:
            calls.append((index, step_call))
    return calls


def _trains(node: ast.stmt) -> bool:
    """Whether a loop updates parameters; one that plays an episode keeps values in a module that carry gradients."""
    if not isinstance(node, ast.For | ast.While):
        return False
    names = {n.attr for n in symbols.walk(node) if isinstance(n, ast.Attribute)}
    return not names.isdisjoint({"backward", "parameters"})


def _loads(node: ast.stmt) -> bool:
    """Whether a statement is ``clone.load_state_dict(base.state_dict())``, through which no gradient flows."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="load_state_dict"))):
            return True
    return False
