"""What a layer is as a function of its parameters, for the target ``jax``.

A layer with parameters is a helper that takes them as a dict, ``convolve(params["conv"], x, stride=2)``, and one that
makes them, ``init_conv(key, 3, 16, 3)``. A layer without is a function of torch, which its own rule converts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .layer import LAYERS, LayerRule
from .record import REGISTRY
from .signature import RuleError, Signature

IGNORED = frozenset({"inplace", "device"})
"""Arguments of constructors that change no value."""


@dataclass(frozen=True)
class FunctionalLayer:
    """How one ``torch.nn`` class is applied, and how what it holds is made."""

    name: str
    apply: str
    """A helper of parameters and input, or the qualified name of a torch function of the input. Empty: the input."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The constructor's parameters that the function takes, and under which names."""
    written: Mapping[str, str] = field(default_factory=dict)
    """Arguments of the function whose default is another than the constructor's, with that one."""
    init: str = ""
    """The helper that makes the parameters, if there are any."""
    takes: tuple[str, ...] = ()
    """The constructor's parameters that ``init`` takes."""
    given: Mapping[str, str] = field(default_factory=dict)
    """What else ``init`` is given, by keyword."""
    keyed: bool = True
    """Whether ``init`` draws, and takes a key first."""
    state: str = ""
    """The helper that makes its buffers, of the first of ``takes``; ``apply`` then returns them, too."""
    draws: bool = False
    """Whether ``apply`` draws in training: it takes a key first, and ``train``."""
    fixed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The constructor's parameters that must have one of these values, written so; any value where there is none."""
    never: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Values of options that the function does not know."""

    @property
    def rule(self) -> LayerRule:
        """The layer's rule: its signature, and what it returns."""
        return LAYERS[self.name]

    rest: str = ""
    """The constructor's ``**parameter`` whose keywords the function takes as they are."""

    @property
    def signature(self) -> Signature:
        """The signature of the layer's class."""
        if self.name in LAYERS:
            return LAYERS[self.name].signature
        rule = REGISTRY.get(self.name)
        if rule is None:
            raise RuleError(f"{self.name} has functions and no rule")
        return rule.signatures[0]

    @property
    def is_library(self) -> bool:
        """Whether it is a function of torch, or of another library, and has no parameters."""
        return "." in self.apply


FUNCTIONAL: dict[str, FunctionalLayer] = {}


def functional(
    torch: str,
    apply: str,
    options: Iterable[str] | Mapping[str, str] = (),
    *,
    written: Mapping[str, str] | None = None,
    init: str = "",
    takes: Iterable[str] = (),
    given: Mapping[str, str] | None = None,
    keyed: bool = True,
    state: str = "",
    draws: bool = False,
    fixed: Mapping[str, tuple[str, ...]] | None = None,
    never: Mapping[str, tuple[str, ...]] | None = None,
    rest: str = "",
) -> FunctionalLayer:
    """Register the functions that stand for a layer. ``options`` that are a list keep their names."""
    if torch in FUNCTIONAL:
        raise RuleError(f"the functions of {torch} are registered twice")
    named = dict(options) if isinstance(options, Mapping) else {name: name for name in options}
    made = FunctionalLayer(
        name=torch,
        apply=apply,
        options=named,
        written=written or {},
        init=init,
        takes=tuple(takes),
        given=given or {},
        keyed=keyed,
        state=state,
        draws=draws,
        fixed=fixed or {},
        never=never or {},
        rest=rest,
    )
    FUNCTIONAL[torch] = made
    return made


DRAWN: dict[str, str] = {}
"""Functions that draw the values of a new parameter, and what draws them with a key and a shape."""


def drawn(torch: str, jax: str) -> None:
    """Register a function of a shape that draws initial values."""
    DRAWN[torch] = jax


DROPPING: dict[str, str] = {}
"""Functions of dropout, and the helpers that take a key and whether it is training."""


def dropping(torch: str, helper: str) -> None:
    """Register a function of ``(input, p, training)`` that drops elements."""
    DROPPING[torch] = helper
