"""What PyTorch's modules and layers keep for themselves: ``self._modules``, ``self._conv_forward(x, weight, bias)``."""

from __future__ import annotations

from t2j_lsp.translate.rule.definitions import Class, Instance, layer_names
from t2j_lsp.translate.rule.facts import Fact, Qual
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.record import DESCRIBED

from .module_refusals import REFUSED

NO_DICT = "Flax's modules keep no such dict: their parts are attributes"
_NO_METHOD = "Flax's modules have no such method, and it isn't called here: call it where it is read"
_NO_PART = "a part of PyTorch's layer that Flax's has not: write out what it does"
_PRIVATE = names_with(Trait.PRIVATE)


def assigns(owner: Instance, name: str) -> bool:
    """Whether a class has an attribute of its own under a name."""
    return any(name in info.attributes or name in info.methods for info in owner.cls.info.ancestry())


def no_such_part(owner: Fact, name: str, called: bool) -> str | None:
    """Why a module in Flax has nothing under a name that PyTorch's has for itself; None if it may have it.

    What becomes of a method that is ``called`` is said there.
    """
    if isinstance(owner, Instance) and (assigns(owner, name) or not _shows_its_bases(owner)):
        return None
    if not called and _is_pytorchs_alone(name):
        return _NO_METHOD
    if name in _PRIVATE:
        return NO_DICT
    private = name.startswith("_") and not name.startswith("__")
    return _NO_PART if private and layer_names(owner) else None


def _is_pytorchs_alone(name: str) -> bool:
    """Whether it is a method that modules in Flax haven't under the same name, as they have ``train``."""
    known = DESCRIBED.get(f"torch.nn.Module.{name}")
    return name in REFUSED or known is not None and known.jax != f"model.{name}()"


def _shows_its_bases(owner: Instance) -> bool:
    """Whether all that a class derives from is in sight, or PyTorch's."""
    return all(isinstance(base, Class | Qual) for info in owner.cls.info.ancestry() for base in info.bases)


def is_own(owner: Instance) -> bool:
    """Whether the class is a module of this file, which gives it a flag for the mode where its mode is read."""
    return owner.cls.info.acts_as_module and not owner.cls.info.external
