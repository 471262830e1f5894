"""What of a library is converted along with the code that uses it, and what stays the library's own."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

SUFFIX = "_jax"
"""What the package is called behind the library's name that a conversion has of it."""


@dataclass(frozen=True)
class Library:
    """How a library is taken along. Names are whole: ``torchvision.models.resnet.ResNet18_Weights``."""

    package: str
    parts: tuple[str, ...]
    """The modules that are converted, with all that is in them."""
    stays: re.Pattern[str] = field(default=re.compile(r"(?!)"))
    """Modules and definitions that the conversion imports from the library: data, and what describes weights."""
    registers: frozenset[str] = frozenset()
    """Functions that tell the library of its own models: decorators and calls that are left out."""
    makers: tuple[str, ...] = ()
    """Functions that make what is registered under a name: ``torchvision.models.get_model("resnet18")``."""

    @property
    def converted(self) -> str:
        """The package that holds what is converted."""
        return self.package + SUFFIX

    @property
    def modules(self) -> tuple[tuple[str, str], ...]:
        """What modules are called in the library, and in the conversion."""
        return tuple((part, self.moved(part)) for part in self.parts)

    def is_imported(self, text: str) -> bool:
        """Whether a converted text imports what was converted."""
        return re.search(rf"^\s*(?:from|import)\s+{self.converted}\b", text, re.MULTILINE) is not None

    def moved(self, name: str) -> str:
        """What something of the library is called in the conversion."""
        return self.converted + name[len(self.package) :]

    def is_converted(self, name: str) -> bool:
        """Whether a module or definition is converted where it is used."""
        inside = name == self.package or name.startswith(f"{self.package}.")
        return inside and self.stays.fullmatch(name) is None


KNOWN = {
    one.package: one
    for one in (
        Library(
            "torchvision",
            ("torchvision.models", "torchvision.ops"),
            re.compile(
                r"torchvision\.(?:datasets|io|transforms|tv_tensors|models\._api|models\._meta|_internally_replaced_utils)"
                r"(?:\..*)?|torchvision\..*\w_Weights|torchvision\.models\._utils\.handle_legacy_interface"
            ),
            frozenset({"register_model", "_log_api_usage_once"}),
            ("torchvision.models.get_model",),
        ),
        Library("timm", ("timm.layers", "timm.models.layers")),
    )
}
"""The libraries of which more is known than their names."""


def library(package: str) -> Library:
    """How a library is taken along: all of it that is used, where nothing else is known."""
    return KNOWN.get(package) or Library(package, (package,))
