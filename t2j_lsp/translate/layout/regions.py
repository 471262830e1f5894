"""Which layers, functions and classes of a file take and give channels-last values.

At first all do that could. What then turns out to stand alone, to be called where its layout isn't known, or to give
something else, goes back to PyTorch's axes, until nothing changes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Function, FunctionInfo, Instance
from t2j_lsp.translate.rule.facts import Layer, Qual, Scalar, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with

from .attributes import Key, called_attributes, makers_of_layers, module_classes
from .axes import Axes
from .chains import Chain, Chains, Interface, is_single, treats_axes_alike
from .closed import Closed
from .handed import HandedOn
from .marks import Layout
from .scene import Called, Last, Marking, Marks, Scene
from .spatial import SpatialParameters, arguments
from .uses import leaves_layout
from .values import Values

_ELEMENTWISE = names_with(Trait.ELEMENTWISE)
_METHODS = names_with(Trait.ELEMENTWISE_METHOD)
_SHAPED = names_with(Trait.SHAPED)


class Regions(Scene):
    """Finds them."""

    def __init__(
        self,
        inference: Inference,
        buildable: set[ast.Call],
        functions: Mapping[ast.Call, int],
        interfaces: dict[FunctionInfo, Interface],
        closed: Mapping[FunctionInfo, Closed],
        handed: HandedOn,
        helpers: set[str],
        rank: int,
    ) -> None:
        self.inference, self.parents = inference, inference.source.parents
        self.chains = Chains(inference, buildable, interfaces, handed, rank)
        self.functions, self.interfaces, self.closed = functions, interfaces, closed
        self.helpers = helpers
        """Convolutions that need their channels-first classes elsewhere: one without neighbours uses them too."""
        self._axes = Axes(inference)
        self.held = dict(called_attributes(inference, handed))
        """What is assigned to attributes that are only called."""
        self.passing = {key for key, values in self.held.items() if self.chains.all_alike(values)}
        """Attributes whose layers treat all axes alike, whichever it is."""
        self.layers: dict[Key, Chain] = {}
        self.marks: dict[ast.FunctionDef | ast.AsyncFunctionDef, Marks] = {}
        self.kept: dict[ast.AST, set[ast.AST]] = {}
        self.asked: dict[Key | FunctionInfo, set[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
        self.infos = {info.node: info for info in inference.functions.values()}
        self.broken: set[FunctionInfo] = set()
        self.sharing: dict[ast.Call, set[Key]] = {}
        """The attributes that may hold what a constructor call makes."""
        self.sites: dict[FunctionInfo, dict[ast.Call, ast.FunctionDef | ast.AsyncFunctionDef]] = {}
        """The calls of functions, and where they stand."""
        self.makers = makers_of_layers(inference)
        known = (self.infos, self.marks, self.sites, self.interfaces, self.layers)
        self.spatial = SpatialParameters(inference, *known, self._key, self._function, self.alike, self._makes)

    # --- until nothing changes ------------------------------------------------------------------------------------

    def plan(self) -> Layout:
        for key, values in self.held.items():
            if (chain := self.chains.one_of(values)) is not None:
                self.layers[key] = chain
                for made in self.layers[key].calls:
                    self.sharing.setdefault(made, set()).add(key)
        stale = self._users()
        while True:
            for node in stale:
                self._mark(node)
            gone, changed = self._wrong_layers(), self._wrong_interfaces()
            if not gone and not changed:
                gone, changed = self._lonely(), self._dear()
            if not gone and not changed:
                return self._layout()
            for key in gone:
                self.layers.pop(key, None)
            again = self._changed_chains() if changed else set()
            keys: list[Key | FunctionInfo] = [*gone, *changed, *again]
            stale = {node for one in keys for node in self.asked.get(one, ())}
            stale |= {info.node for info in changed}

    def _mark(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        info = self.infos.get(node)
        interface = self.interfaces.get(info) if info is not None else None
        self._now = node
        kept = self.kept.setdefault(node, set())
        takes, gives = (interface.takes, interface.gives) if interface is not None else ({}, 0)
        self.marks[node] = Values(self, node, takes, gives, kept).follow()

    def _users(self) -> set[ast.FunctionDef | ast.AsyncFunctionDef]:
        """The functions in which values may be channels-last: methods of modules, and what calls their layers."""
        users: set[ast.FunctionDef | ast.AsyncFunctionDef] = set()
        for info in module_classes(self.inference):
            users |= {m.node for m in info.methods.values() if m.name != "__init__"}
        for key in self.layers:
            for read in self.inference.attribute_reads.get(key, ()):
                node: ast.AST = read
                while not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
                    node = self.parents[node]
                if not isinstance(node, ast.Module):
                    users.add(node)
        return users

    # --- what goes back -------------------------------------------------------------------------------------------

    def _wrong_layers(self) -> set[Key]:
        """Attributes whose calls aren't all known, or whose layers serve another one that is not channels-last."""
        met = {node for marks in self.marks.values() for node in marks.met}
        wrong = {
            key
            for key in self.layers
            if not all(
                self.parents[read] in met or leaves_layout(read, self.inference)
                for read in self.inference.attribute_reads.get(key, ())
            )
        }
        served = {call for key, chain in self.layers.items() if key not in wrong for call in chain.made}
        for key, chain in self.layers.items():
            shared = {other for made in chain.calls for other in self.sharing.get(made, ())}
            known = all(self.makers[made] <= served for made in map(self._maker, chain.made))
            if not known or not shared <= self.layers.keys() - wrong:
                wrong.add(key)
        return wrong

    def _wrong_interfaces(self) -> set[FunctionInfo]:
        """Functions that take or give less than was thought."""
        changed: set[FunctionInfo] = set()
        met = {node for marks in self.marks.values() for node in marks.met}
        built = {call for chain in self.layers.values() for call in chain.own}
        spatial = self.spatial.parameters(built)
        for info, interface in list(self.interfaces.items()):
            marks, kept = self.marks.get(info.node), self.kept.get(info.node, set())
            takes = {a: r for a, r in interface.takes.items() if a not in kept and (info, a) in spatial}
            gives = interface.gives
            if marks is None or info in self.broken or not self.closed[info].holds(met, built):
                takes, gives = {}, 0
            elif marks.plain_return or marks.returned != {gives}:
                gives = 0
            if (takes, gives) != (dict(interface.takes), interface.gives):
                changed.add(info)
                self.interfaces[info] = Interface(takes, gives)
        return changed

    def _changed_chains(self) -> set[Key]:
        """Attributes whose layers take or give something else now."""
        changed: set[Key] = set()
        for key, chain in list(self.layers.items()):
            if chain.own:
                new = self.chains.one_of(self.held[key])
                if new is None or (new.takes, new.gives) != (chain.takes, chain.gives):
                    changed.add(key)
                    if new is None:
                        del self.layers[key]
                    else:
                        self.layers[key] = new
        return changed

    def _lonely(self) -> set[Key]:
        """Layers that gain nothing."""
        paying = self._paying()
        return {
            key
            for key, chain in self.layers.items()
            if key not in paying
            and not (chain.own or chain.convs - self.helpers or chain.convs and len(chain.calls) > 1)
        }

    def _paying(self) -> set[Key]:
        """The layers that save a move: they are given channels-last values, or what takes these is given theirs."""
        return {
            key
            for marks in self.marks.values()
            for node in marks.met
            if (key := self._key(node)) is not None
            and node.args
            and (node.args[0] in marks.natural or node in marks.natural and self.spatial.is_taken(node, marks))
        }

    def _dear(self) -> set[FunctionInfo]:
        """Functions that would cost fewer moves if they took, or gave, PyTorch's axes."""
        changed: set[FunctionInfo] = set()
        built = {call for chain in self.layers.values() for call in chain.own}
        for info, interface in list(self.interfaces.items()):
            if not (interface.takes or interface.gives):
                continue
            chained = sum(1 for one in built if self._makes(one, info))
            alike = info.name != "forward"  # where both cost the same, classes are channels-last
            taken, moved = self.marks[info.node].uses()
            takes = dict(interface.takes)
            for arg in interface.takes:
                ready = [self._given(site, info, arg, marks) for site, marks in self._sites(info)]
                as_taken, as_not = moved[arg] + ready.count(False), taken[arg] + ready.count(True) + chained
                if as_taken + alike > as_not and (ready or chained):
                    del takes[arg]
            gives = interface.gives
            if gives:
                wanted = [site in marks.wanted for site, marks in self._sites(info)]
                if wanted.count(False) + alike > 1 + wanted.count(True) + chained:
                    gives = 0
            if (takes, gives) != (dict(interface.takes), interface.gives):
                changed.add(info)
                self.interfaces[info] = Interface(takes, gives)
        return changed

    def _sites(self, info: FunctionInfo) -> Iterator[tuple[ast.Call, Marks]]:
        """The calls of a function, and the marks of the functions in which they stand."""
        for site, function in self.sites.get(info, {}).items():
            yield site, self.marks[function]

    def _given(self, site: ast.Call, info: FunctionInfo, parameter: ast.arg, marks: Marks) -> bool:
        """Whether a call gives a parameter a channels-last value."""
        given = arguments(site, info, Interface({parameter: 1}, 0))
        return given is not None and all(one in marks.natural for one in given)

    def _makes(self, call: ast.Call, info: FunctionInfo) -> bool:
        """Whether a constructor call makes an instance whose ``forward`` this is."""
        return any(one.method("forward") is info for one in self.chains.made_by(call))

    def _layout(self) -> Layout:
        layout = Layout(interfaces={i: one for i, one in self.interfaces.items() if any(one.takes) or one.gives})
        for marks in self.marks.values():
            layout.natural |= marks.natural
            layout.wanted |= marks.wanted
            layout.functions |= marks.functions
            layout.texts |= marks.texts
        for chain in self.layers.values():
            layout.channels_last |= chain.calls
            layout.borders |= chain.borders
        self._axes.learn(layout.texts)
        return layout

    # --- attributes -----------------------------------------------------------------------------------------------

    def _maker(self, call: ast.Call) -> ast.Call:
        fact = self.inference.facts[call]
        assert isinstance(fact, Layer) and fact.node is not None
        return fact.node

    def _key(self, node: ast.Call) -> Key | None:
        if isinstance(node.func, ast.Attribute):
            owner = self.inference.facts.get(node.func.value)
            if isinstance(owner, Instance):
                return owner.cls.info, node.func.attr
        return None

    # --- what functions are told ----------------------------------------------------------------------------------

    def called(self, node: ast.Call) -> Called | None:
        key = self._key(node)
        if key is not None and key in self.held:
            self.asked.setdefault(key, set()).add(self._now)
            chain = self.layers.get(key)
            if chain is not None:
                return Called({node.args[0]: chain.takes}, chain.gives)
        info = self._function(node)
        interface = self.interfaces.get(info) if info is not None else None
        if info is None or interface is None:
            return None
        self.asked.setdefault(info, set()).add(self._now)
        self.sites.setdefault(info, {})[node] = self._now
        if not (interface.takes or interface.gives):
            return None
        takes = arguments(node, info, interface)
        if takes is None:
            self.broken.add(info)
            return None
        return Called(takes, interface.gives)

    def _function(self, node: ast.Call) -> FunctionInfo | None:
        fact = self.inference.facts.get(node.func)
        if isinstance(fact, Instance):
            return fact.cls.info.method("forward")
        return fact.info if isinstance(fact, Function) else None

    def alike(self, node: ast.Call) -> ast.expr | None:
        fact = self.inference.facts.get(node.func)
        if isinstance(fact, Qual) and fact.name in _ELEMENTWISE and node.args:
            return node.args[0]
        if treats_axes_alike(fact) and len(node.args) == 1:
            return node.args[0]
        if len(node.args) == 1 and not node.keywords and self._key(node) in self.passing:
            return node.args[0]
        if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS and not node.args:
            if isinstance(self.inference.facts.get(node.func.value), Tensor):
                return node.func.value
        return None

    def function(self, node: ast.Call) -> int:
        return self.functions.get(node, 0)

    def is_number(self, node: ast.expr) -> bool:
        fact = self.inference.facts.get(node)
        number = isinstance(fact, Scalar) and fact.kind in ("int", "float")
        return number or isinstance(fact, Tensor) and fact.rank == 0

    def spread(self, node: ast.expr) -> int:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.keywords:
            return 0
        if node.func.attr not in _SHAPED or any(isinstance(a, ast.Starred) for a in node.args):
            return 0
        ones = [isinstance(a, ast.Constant) and a.value == 1 for a in node.args]
        rank = len(ones) - 2
        return rank if rank > 0 and all(ones[2:]) else 0

    def single(self, node: ast.Call) -> bool:
        key = self._key(node)
        if key is not None and key in self.layers:
            return self.layers[key].single
        fact = self.inference.facts.get(node.func)
        return isinstance(fact, Qual) and is_single(fact.name, node, 1)

    def axes(self, values: Marking, node: ast.AST) -> tuple[bool, Last | None]:
        return self._axes.mark(values, node)
