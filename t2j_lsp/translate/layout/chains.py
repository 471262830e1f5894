"""What a layer, or an ``nn.Sequential`` of layers, takes and gives: channels-last values, or PyTorch's.

In a Sequential the layout may change at layers that reshape anyway: behind ``nn.Flatten`` and in front of
``nn.Unflatten`` values have no axes of space, and both keep PyTorch's order of features.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from t2j_lsp import symbols
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.unpacked import indexes_any
from t2j_lsp.translate.rule.binding import SilentSite, argument, arguments_of, bind
from t2j_lsp.translate.rule.definitions import ClassInfo, Function, FunctionInfo, Instance
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, Layer
from t2j_lsp.translate.rule.layer import LAYERS, Border, Build
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.pieces import Piece, precedence
from t2j_lsp.translate.rule.record import Call, Signature

from .handed import HandedOn

SEQUENTIAL = "torch.nn.Sequential"
_SINGLE = names_with(Trait.POOLS_TO_SIZE)


@dataclass(frozen=True)
class Interface:
    """What a function of the file takes and gives channels-last: the number of spatial axes, 0 for PyTorch's order."""

    takes: Mapping[ast.arg, int]
    gives: int


def spatial(name: str) -> int:
    """How many spatial axes the channels-last form of a layer has; 0 where it has none."""
    return LAYERS[name].spatial if name in LAYERS else 0


def is_convolution(name: str) -> bool:
    """Whether channels-last pays for this layer; the others only go along."""
    return bool(spatial(name)) and LAYERS[name].flax in ("nnx.Conv", "nnx.ConvTranspose")


def is_single(name: str, node: ast.Call, place: int = 0) -> bool:
    """Whether a call of a layer's constructor, or of a function, has one value for each channel."""
    if name not in _SINGLE:
        return False
    sizes = argument(node, place, "output_size")
    alone = sizes.elts if isinstance(sizes, ast.Tuple | ast.List) else [sizes]
    return all(isinstance(one, ast.Constant) and one.value == 1 for one in alone)


def goes_on(border: Border) -> bool:
    """Whether channels-last values go on at a layer of any rank."""
    return border.takes_last and border.gives_last


def treats_axes_alike(fact: Fact | None) -> bool:
    return isinstance(fact, Layer) and fact.name in LAYERS and LAYERS[fact.name].treats_axes_alike(fact.node)


@dataclass
class Chain:
    """Layers that run one after the other. ``takes`` and ``gives`` count spatial axes; 0 is PyTorch's order."""

    takes: int = 0
    gives: int = 0
    convs: set[str] = field(default_factory=set)
    """The kinds of convolutions in it."""
    calls: set[ast.Call] = field(default_factory=set)
    """Constructor calls that take their channels-last form."""
    borders: dict[ast.Call, int] = field(default_factory=dict)
    """Those that stand where channels-last values end, begin or go on, and how many spatial axes these have."""
    own: set[ast.Call] = field(default_factory=set)
    """Constructor calls of the file's own classes, whose forward takes and gives channels-last values."""
    made: set[ast.Call] = field(default_factory=set)
    """Calls of the file's functions that make such layers."""
    single: bool = False
    """Whether what it gives has one value for each channel."""

    def add(self, other: Chain) -> None:
        """What runs next takes what this gives."""
        self.gives, self.single = other.gives, other.single
        self.own |= other.own
        self.made |= other.made
        self.convs |= other.convs
        self.calls |= other.calls
        self.borders |= other.borders


class Chains:
    """Finds the chains of a file."""

    def __init__(
        self,
        inference: Inference,
        buildable: set[ast.Call],
        interfaces: Mapping[FunctionInfo, Interface],
        handed: HandedOn,
        rank: int,
    ) -> None:
        self.inference = inference
        self.buildable = buildable
        self.interfaces = interfaces
        """What the file's own functions take and give."""
        self.handed = handed
        self.rank = rank
        """The spatial axes of all convolutions of the file; 0 where they differ."""

    def of(self, node: ast.expr) -> Chain | None:
        """The chain that an expression makes, if channels-last values are in it."""
        if isinstance(node, ast.IfExp):
            return self.one_of([node.body, node.orelse])
        fact = self.inference.facts.get(node)
        if not isinstance(node, ast.Call):
            return None
        if classes := self.made_by(node):
            return self._own(node, classes)
        if not isinstance(fact, Layer):
            return None
        if (
            fact.node is not None
            and fact.node is not node
            and isinstance(self.inference.facts.get(node.func), Function)
        ):
            chain = self.of(fact.node)
            return replace(chain, made=chain.made | {node}) if chain is not None else None
        if rank := spatial(fact.name):
            if node not in self.buildable:
                return None
            return Chain(
                rank, rank, set(filter(is_convolution, [fact.name])), {node}, single=is_single(fact.name, node)
            )
        layer = LAYERS.get(fact.name)
        if self.rank and layer is not None and layer.border is not None and goes_on(layer.border):
            return self._border(node, self.rank, self.rank)
        if fact.name != SEQUENTIAL or node in self.inference.indexed or indexes_any(self.inference) or node.keywords:
            return None
        chain = self._in_order(node.args)
        return chain if chain is not None and (chain.convs or chain.own) else None

    def made_by(self, node: ast.Call) -> list[ClassInfo]:
        """The classes of the file of which a call may make an instance; empty where there may be others."""
        fact = self.inference.facts.get(node)
        if isinstance(fact, Instance):
            return [fact.cls.info]
        return sorted(self.handed.made_by(node), key=lambda info: info.node.lineno)

    def _own(self, node: ast.Call, classes: Sequence[ClassInfo]) -> Chain | None:
        """A module of a class of the file that takes one channels-last value, and gives one."""
        chain: Chain | None = None
        for info in classes:
            forward = info.method("forward")
            interface = self.interfaces.get(forward) if forward is not None else None
            if forward is None or interface is None or not interface.gives:
                return None
            taken = forward.node.args.args[1:]
            if len(taken) - len(forward.node.args.defaults) > 1 or not taken or not interface.takes.get(taken[0]):
                return None
            one = Chain(interface.takes[taken[0]], interface.gives, own={node})
            if chain is not None and (one.takes, one.gives) != (chain.takes, chain.gives):
                return None
            chain = one
        return chain

    def one_of(self, values: Sequence[ast.expr]) -> Chain | None:
        """The chain that stands for one of several: all take and give the same, or give what they take."""
        whole: Chain | None = None
        others = [value for value in values if not self._gives_what_it_takes(value)]
        for value in others:
            chain = self.of(value)
            if chain is None or whole is not None and (whole.takes, whole.gives) != (chain.takes, chain.gives):
                return None
            whole = whole or Chain(takes=chain.takes)
            whole.add(chain)
        return whole if whole is None or len(others) == len(values) or whole.takes == whole.gives else None

    def all_alike(self, values: Sequence[ast.expr]) -> bool:
        """Whether whatever a name holds treats all axes alike."""
        several = [[one.body, one.orelse] if isinstance(one, ast.IfExp) else [one] for one in values]
        return all(self._gives_what_it_takes(one) for some in several for one in some)

    def _gives_what_it_takes(self, node: ast.expr) -> bool:
        """Whether an expression makes a layer that treats all axes alike, or an empty Sequential."""
        fact = self.inference.facts.get(node)
        if not isinstance(fact, Layer) or not isinstance(node, ast.Call) or fact.node is not node:
            return False
        empty = fact.name == SEQUENTIAL and not node.args and not node.keywords
        return empty or treats_axes_alike(fact)

    def _in_order(self, children: Sequence[ast.expr]) -> Chain | None:
        """Children one after the other; None where the layout would have to change between two of them."""
        whole: Chain | None = None
        for index, child in enumerate(children):
            if treats_axes_alike(self.inference.facts.get(child)) and isinstance(child, ast.Call):
                continue
            one = self._unordered(child) if isinstance(child, ast.Starred) else self.of(child)
            if one is None or not (one.convs or one.own) and (one.borders or whole is not None and not whole.gives):
                ahead = self._ahead(children[index + 1 :])
                one = self._border(child, whole.gives if whole is not None else None, ahead) or Chain()
            if whole is None:
                whole = Chain(takes=one.takes)
            elif whole.gives != one.takes:
                return None
            whole.add(one)
        return whole

    def _ahead(self, children: Sequence[ast.expr]) -> int:
        """What the next child that cares takes."""
        for child in children:
            if not (treats_axes_alike(self.inference.facts.get(child)) and isinstance(child, ast.Call)):
                chain = self.of(child)
                return chain.takes if chain is not None else 0
        return 0

    def _border(self, node: ast.expr, before: int | None, ahead: int) -> Chain | None:
        """A layer at which channels-last values end, begin or go on, if they do so here."""
        fact = self.inference.facts.get(node)
        layer = LAYERS.get(fact.name) if isinstance(fact, Layer) else None
        if layer is None or layer.border is None or not isinstance(node, ast.Call):
            return None
        takes, gives = layer.border.takes_last, layer.border.gives_last
        rank = before if takes and before is not None else ahead if gives else 0
        if not rank or before not in (None, rank if takes else 0) or gives and ahead not in (0, rank):
            return None
        if not self._is_exact(node, layer.signature, layer.border, rank):
            return None
        return Chain(rank if takes else 0, rank if gives else 0, borders={node: rank})

    def _is_exact(self, node: ast.Call, signature: Signature, border: Border, rank: int) -> bool:
        if signature.name in self.inference.isinstance_classes or self.inference.settings.of(node, signature.name):
            return False
        bound = bind(signature, node, None)
        return bound is not None and isinstance(
            border.form(rank)(silent_call(self.inference, signature, bound, node)), Piece
        )

    # --- lists that are filled ------------------------------------------------------------------------------------

    def _unordered(self, node: ast.Starred) -> Chain | None:
        """``*layers`` of a list that is filled in front of it, every element of which takes and gives the same."""
        chain: Chain | None = None
        for child in self._elements(node) or ():
            if treats_axes_alike(self.inference.facts.get(child)) and isinstance(child, ast.Call):
                continue
            one = self.of(child)
            if one is None or one.takes != one.gives or chain is not None and chain.gives != one.takes:
                return None
            chain = chain or Chain(takes=one.takes)
            chain.add(one)
        return chain

    def _elements(self, node: ast.Starred) -> list[ast.expr] | None:
        """What is put into a list between ``layers = [...]`` and the next such assignment, where ``node`` spreads it.

        None if anything else is done with the list.
        """
        source = self.inference.source
        statement: ast.AST = node
        while not isinstance(statement, ast.stmt):
            statement = source.parents[statement]
        block = source.block_of(statement)
        if not isinstance(node.value, ast.Name) or block is None:
            return None
        name = node.value.id
        starts = [n for n, one in enumerate(block) if _list_of(one, name) is not None]
        place = block.index(statement)
        if not any(n < place for n in starts):
            return None
        first = max(n for n in starts if n < place)
        last = min((n for n in starts if n > place), default=len(block))
        elements: list[ast.expr] = []
        for one in block[first:last]:
            for read in (n for n in symbols.walk(one) if isinstance(n, ast.Name) and n.id == name):
                added = [] if read is node.value else _added(read, source.parents)
                if added is None:
                    return None
                elements += added
        return elements


def _list_of(statement: ast.stmt, name: str) -> list[ast.expr] | None:
    """The elements of ``name = [...]``."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=bound)], value=ast.List(elts=elements)) if bound == name:
            return elements
        case ast.AnnAssign(target=ast.Name(id=bound), value=ast.List(elts=elements)) if bound == name:
            return elements
    return None


def _added(read: ast.Name, parents: dict[ast.AST, ast.AST]) -> list[ast.expr] | None:
    """What a use of a list's name puts into the list; None if it does something else."""
    parent = parents[read]
    if isinstance(parent, ast.stmt) and (elements := _list_of(parent, read.id)) is not None:
        return elements
    match parent:
        case ast.AugAssign(op=ast.Add(), value=ast.List(elts=elements)):
            return elements
        case ast.Attribute(attr="append" | "extend" as method):
            match parents[parent]:
                case ast.Call(args=[ast.List(elts=elements)]) if method == "extend":
                    return elements
                case ast.Call(args=[element]) if method == "append":
                    return [element]
    return None


# --- forms that are exact ---------------------------------------------------------------------------------------------


def silent_call(inference: Inference, signature: Signature, bound: dict[str, list[ast.expr]], node: ast.Call) -> Call:
    """A call as its rule sees it, while nothing is written yet."""
    arguments = arguments_of(
        signature,
        bound,
        lambda n: Piece(inference.source.segment(n), precedence(n)),
        lambda n: inference.facts.get(n, UNKNOWN),
    )
    return Call(signature, arguments, SilentSite(), node)


def exact_constructors(inference: Inference, kind: str = "channels_last") -> Iterator[ast.Call]:
    """Constructor calls whose channels-last form is exact, or their form of another kind, by trying it."""
    for node, fact in inference.facts.items():
        if isinstance(node, ast.Call) and isinstance(fact, Layer) and spatial(fact.name) and fact.node is node:
            layer = LAYERS[fact.name]
            bound = bind(layer.signature, node, None)
            asked = layer.flax is None and layer.name in inference.isinstance_classes
            form: Build | None = getattr(layer, kind)
            if form is None or asked or inference.settings.of(node, layer.name):
                continue
            exact = bound is not None and isinstance(form(silent_call(inference, layer.signature, bound, node)), Piece)
            if exact or kind == "channels_last" and layer.last_helper is not None and _is_usual(node):
                yield node


def _is_usual(node: ast.Call) -> bool:
    """Whether a helper can make a layer by its arguments, of which some aren't known."""
    usual = all(k.arg not in ("padding_mode", "dtype") for k in node.keywords)
    return usual and len(node.args) <= 8 and not any(isinstance(a, ast.Starred) for a in node.args)
