"""What the functions of a class are called with, and what they give back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from t2j_lsp.translate.rule.definitions import ClassInfo

from .children import Attribute, Child, LayerChild, ListChild, OwnBuffer, OwnChild, children, is_child


@dataclass
class ModulePlan:
    """The functions of one class. Who calls them asks this."""

    info: ClassInfo
    attributes: Mapping[str, Attribute]
    plans: Mapping[ClassInfo, ModulePlan] = field(repr=False)
    parameters: tuple[str, ...] = ()
    """The parameters of the constructor, in order."""
    settings: tuple[str, ...] = ()
    """Parameters of the constructor that the function which applies it takes as keywords."""
    draws: bool = False
    """Whether it takes a key."""
    trains: bool = False
    """Whether it takes ``train``."""
    key: str = "key"
    """What its key is called."""
    method: str = "forward"
    """The method that the function was."""
    methods: dict[str, ModulePlan] = field(default_factory=dict, repr=False)
    """The functions of the class's other methods, by these."""

    def child_state(self, child: Child) -> bool:
        """Whether a child, or one inside it, has buffers."""
        return self._has_stateful(child, lambda plan: plan.state)

    def child_params(self, child: Child) -> bool:
        """Whether a child has an entry among the parameters."""
        return any(
            isinstance(one, OwnChild | ListChild) or isinstance(one, LayerChild) and bool(one.layer.init)
            for one in children(child)
        )

    def child_updates(self, child: Child) -> bool:
        """Whether applying a child gives back another state."""
        return self._has_stateful(child, lambda plan: plan.updates)

    def _has_stateful(self, child: Child, own: Callable[[ModulePlan], bool]) -> bool:
        """Whether a child is or holds a layer with a state, or a class of the file's own of which ``own`` is true."""
        return any(
            bool(one.layer.state) if isinstance(one, LayerChild) else own(self.plans[one.info])
            for one in children(child)
            if isinstance(one, LayerChild | OwnChild)
        )

    def holds_state(self, name: str) -> bool:
        """Whether an attribute is in the state."""
        attribute = self.attributes[name]
        return isinstance(attribute, OwnBuffer) or is_child(attribute) and self.child_state(attribute)

    def holds_state_in(self, child: ListChild) -> bool:
        """Whether a list that is filled later holds modules with buffers."""
        return any(
            isinstance(a, ListChild) and a.node is child.node and self.child_state(a) for a in self.attributes.values()
        )

    @property
    def state(self) -> bool:
        """Whether it has buffers."""
        return any(self.holds_state(name) for name in self.attributes)

    @property
    def updates(self) -> bool:
        """Whether the function returns its state, too."""
        return any(is_child(a) and self.child_updates(a) for a in self.attributes.values())
