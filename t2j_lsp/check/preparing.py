"""Arguments for the objects of one file, on both sides; the check of one tells how to call the next."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from t2j_lsp.check.arguments.plans import constructor, plans_for
from t2j_lsp.check.messages import Prepared
from t2j_lsp.check.process.worker import RemoteError
from t2j_lsp.check.program.counterparts import Counterpart
from t2j_lsp.check.program.objects import CheckedObject, find_objects
from t2j_lsp.check.program.slice import Slice, Slicer
from t2j_lsp.contract import ObjectVerdict, VerdictKind

from .inputs import InputPlan
from .requests import ParameterPairing, PrepareRequest
from .session import CheckSession

SECONDS = 20.0
"""Spent at most on finding inputs, and no more than a third of the time limit."""


class Less(Enum):
    """What a second run is to take less of."""

    NOTHING = 0
    TIME = 1
    MEMORY = 2


@dataclass(frozen=True)
class Preparation:
    """A torch object's slice, the texts in it that build its arguments, and the arguments."""

    torch_slice: Slice
    code: list[str]
    prepared: Prepared


@dataclass
class Preparing:
    """What is known of the arguments of all objects."""

    session: CheckSession
    seen: dict[str, list[InputPlan]] = field(default_factory=dict)
    users: dict[str, str] = field(default_factory=dict)
    """For a class that was called in the check of another: that other's name."""
    without_inputs: set[str] = field(default_factory=set)

    def of(self, item: CheckedObject, seed: int, retry: bool = True, less: Less = Less.NOTHING) -> Preparation:
        """The first of the plans that runs, if need be one that the check of another class has shown.

        Raises CommentError, WorkerError, and RemoteError where the PyTorch code does not load.
        """
        side = self.session.torch_side
        plans = plans_for(side, item, self.seen)
        code = [text for p in plans for a in (p.init, p.inputs) if a is not None for text in a.code]
        part = side.cut(item.name, code)
        prepared = self._ask(part, plans, seed, less)
        if prepared.problems is not None and retry and self._through_others(item):
            return self.of(item, seed, retry=False, less=less)
        self._remember(item.name, prepared.parts)
        return Preparation(part, code, prepared)

    def _through_others(self, item: CheckedObject) -> bool:
        """Runs other classes in ways that name this one, to see how it is called: ``ResNet(Bottleneck, ...)``."""
        side = self.session.torch_side
        for other in find_objects(side, None):
            if not item.is_class or not other.is_class or other.name == item.name:
                continue
            plans = [p for p in plans_for(side, other, self.seen) if _mentions(p, item.name) or other.uses(item.name)]
            if not plans:
                continue
            part = side.cut(other.name, [text for p in plans for text in p.init.code])
            with contextlib.suppress(RemoteError):
                self._remember(other.name, self._ask(part, plans, self.session.settings.seed).parts)
            if self.seen.get(item.name):
                return True
        return False

    def _ask(self, part: Slice, plans: list[InputPlan], seed: int, less: Less = Less.NOTHING) -> Prepared:
        seconds = min(SECONDS, self.session.settings.timeout / 3)
        small, light = less is not Less.NOTHING, less is Less.MEMORY
        request = PrepareRequest(slice=part, plans=plans, seed=seed, seconds=seconds, small=small, light=light)
        return self.session.requests.prepare(request)

    def _remember(self, name: str, parts: Mapping[str, list[InputPlan]]) -> None:
        for part, plans in parts.items():
            self.users.setdefault(part, name)
            self.seen.setdefault(part, plans)

    def settle(self, verdicts: dict[str, ObjectVerdict]) -> None:
        """A class without inputs of its own that ran inside a checked one has that one's verdict, where it agreed."""
        for name in self.without_inputs & set(self.users):
            user = verdicts.get(self.users[name])
            if user is not None and user.verdict is VerdictKind.EQUIVALENT:
                verdicts[name] = ObjectVerdict(
                    name, VerdictKind.EQUIVALENT, f"checked as part of {user.name}", dict(user.stages)
                )


def _mentions(plan: InputPlan, name: str) -> bool:
    return any(re.search(rf"\b{name}\b", text) for text in plan.init.code)


def comment_wanted(item: CheckedObject, problems: list[str]) -> str:
    """Why an object has no inputs, and the comment that would give them."""
    names = [a.arg for a in item.parameters]
    shown = ", ".join(f"{n}=f32[2, 3, 17, 19]" if i == 0 else f"{n}=..." for i, n in enumerate(names)) or "x=f32[2, 3]"
    init = "args=(...), " if item.is_class and item.has_parameters else ""
    tried = f" (tried: {problems[0]})" if problems else ""
    return f"no working inputs were found; write above it: # t2j: {init}{shown}{tried}"


def pairing_of(torch_side: Slicer, item: CheckedObject, other: Counterpart) -> ParameterPairing:
    """Which of the counterpart's parameters are which of the object's, as the JAX worker is told."""
    init = constructor(torch_side, torch_side.main, item.name) if item.is_class else None
    return ParameterPairing(
        other.takes_parameters,
        list(other.init),
        other.weights,
        other.renamed,
        other.written,
        [a.arg for a in init.args.args[1:]] if init else [],
        other.layout,
    )


def cut_jax(side: Slicer, other: Counterpart, preparation: Preparation) -> Slice:
    """What a counterpart needs of a JAX text, and what its arguments name."""
    return side.cut(other.name, [*shared_names(preparation), *other.init])


def shared_names(preparation: Preparation) -> list[str]:
    """What an object's arguments name that both files have: not what gives inputs in the source alone."""
    return [text for text in preparation.code if not _GIVES_INPUTS.search(text)]


_GIVES_INPUTS = re.compile(r"\bget_(?:init_)?inputs\b")
