"""The marks of one class: which of its layers and expressions are channels-last."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from t2j_lsp import symbols
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import ClassInfo, Instance, Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with

from .chains import Chain, Chains, treats_axes_alike

ELEMENTWISE_CALLS = names_with(Trait.ELEMENTWISE)
ARITHMETIC = ast.Add | ast.Sub | ast.Mult | ast.Div
ELEMENTWISE_METHODS = names_with(Trait.ELEMENTWISE_METHOD)


@dataclass
class Layout:
    """The marks. ``rank`` gives the number of spatial axes of a marked expression."""

    natural: dict[ast.expr, int] = field(default_factory=dict)
    wanted: dict[ast.expr, int] = field(default_factory=dict)
    channels_last: set[ast.Call] = field(default_factory=set)
    """Constructor calls that take their channels-last form."""
    channels_first: set[ast.Call] = field(default_factory=set)
    """Those that take Flax's arguments and PyTorch's axes, where they don't take the channels-last form."""
    borders: dict[ast.Call, int] = field(default_factory=dict)
    """Those of layers at which channels-last values end, begin or go on, and how many spatial axes these have."""
    functions: set[ast.Call] = field(default_factory=set)
    """Calls of functions (``F.max_pool2d``) that take theirs."""

    def wrap(self, node: ast.expr, text: str, jnp: str) -> str | None:
        """The text with the move it needs here; None if it needs none."""
        natural, wanted = self.natural.get(node), self.wanted.get(node)
        if natural is not None and wanted is None:
            return f"{jnp}.moveaxis({text}, -1, {-natural - 1})"
        if wanted is not None and natural is None:
            return f"{jnp}.moveaxis({text}, {-wanted - 1}, -1)"
        return None


class ClassLayout:
    """The layout of one class."""

    def __init__(
        self,
        inference: Inference,
        info: ClassInfo,
        chains: Chains,
        functions: Mapping[ast.Call, int],
        parents: dict[ast.AST, ast.AST],
        layout: Layout,
        helpers: set[str],
    ) -> None:
        self.inference, self.info, self.parents, self.layout = inference, info, parents, layout
        self.helpers = helpers
        """Convolutions that need their channels-first classes elsewhere: one without neighbours uses them too."""
        self.chains = chains
        self.functions = functions
        """Calls of functions that have a channels-last form, and their spatial axes."""
        self.layers: dict[str, Chain] = {}
        """Attributes that take or give channels-last values."""
        self.met: set[ast.Call] = set()
        """Their calls."""
        self.natural: dict[ast.expr, int] = {}
        self.wanted: dict[ast.expr, int] = {}
        self.last_names: dict[str, int] = {}

    def plan(self) -> None:
        layers = self._candidates()
        while any(chain.convs for chain in layers.values()):
            self.layers = layers
            self.natural, self.wanted, self.met = {}, {}, set()
            for function in self._users(layers):
                self._block(function.body, top=True)
            paying = self._paying()
            lonely = {
                name
                for name, chain in layers.items()
                if not (chain.convs - self.helpers or chain.convs and len(chain.calls) > 1) and name not in paying
            }
            left = lonely | {name for name in layers if not self._all_marked(name)}
            if not left:
                self.layout.natural.update(self.natural)
                self.layout.wanted.update(self.wanted)
                for chain in layers.values():
                    self.layout.channels_last |= chain.calls
                    self.layout.borders |= chain.borders
                self.layout.functions |= {node for node in self.functions if node in self.natural}
                return
            for name in left:
                del layers[name]

    # --- which attributes -----------------------------------------------------------------------------------------

    def _candidates(self) -> dict[str, Chain]:
        """Attributes that hold a known chain of layers, or one of several that are alike, and are only ever called."""
        held: dict[str, list[ast.expr]] = {}
        init = self.info.methods.get("__init__")
        if init is None or self.info.layer_base is not None:
            return {}
        for node in symbols.walk(init.node):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Attribute):
                target = node.targets[0]
                if isinstance(self.inference.facts.get(target.value), Instance):
                    held.setdefault(target.attr, []).append(node.value)
        chains = {name: self.chains.one_of(values) for name, values in held.items()}
        return {name: chain for name, chain in chains.items() if chain is not None and self._only_called(name)}

    def _only_called(self, name: str) -> bool:
        """Whether the attribute is used, and every use of it in the file is ``self.name(x)`` in this class."""
        reads = self.inference.attribute_reads
        if (None, name) in reads:
            return False
        used = False
        for node in reads.get((self.info, name), ()):
            owner = self.inference.facts[node.value]
            if not isinstance(owner, Instance) or owner.cls.info is not self.info:
                return False
            call = self.parents.get(node)
            if not isinstance(call, ast.Call) or call.func is not node or len(call.args) != 1 or call.keywords:
                return False
            if isinstance(call.args[0], ast.Starred):
                return False
            used = True
        return used

    def _all_marked(self, name: str) -> bool:
        """Whether every call of the attribute was met, wherever it stands."""
        reads = self.inference.attribute_reads.get((self.info, name), ())
        return all(self.parents[read] in self.met for read in reads)

    def _users(self, names: Iterable[str]) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """The functions that call the attributes: methods of the class, functions in them, and others."""
        methods = [m.node for m in self.info.methods.values() if m.name != "__init__"]
        users = dict.fromkeys(methods)
        for name in names:
            for read in self.inference.attribute_reads.get((self.info, name), ()):
                node: ast.AST = read
                while not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
                    node = self.parents[node]
                if not isinstance(node, ast.Module):
                    users[node] = None
        return list(users)

    # --- which expressions ----------------------------------------------------------------------------------------

    def _block(self, body: list[ast.stmt], top: bool) -> None:
        """Mark a block's statements in order; names that are channels-last do not outlive it."""
        saved, self.last_names = self.last_names, {}
        for index, node in enumerate(body):
            if (
                isinstance(node, ast.Assign | ast.AnnAssign | ast.Return | ast.Expr | ast.AugAssign)
                and node.value is not None
            ):
                rank = self._mark(node.value)
                target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
                if isinstance(target, ast.Name):
                    self.last_names.pop(target.id, None)
                    if rank is not None and self._stays_last(target.id, rank, body[index + 1 :], top):
                        self.wanted[node.value] = rank
                        self.last_names[target.id] = rank
                elif isinstance(node, ast.AugAssign):
                    for name in symbols.walk(node.target):
                        if isinstance(name, ast.Name):
                            self.last_names.pop(name.id, None)
                continue
            for child in symbols.children(node):
                if isinstance(child, ast.expr):
                    self._mark(child)
            for part in ("body", "orelse", "finalbody"):
                inner = getattr(node, part, None)
                if isinstance(inner, list) and not isinstance(node, ast.ClassDef | ast.FunctionDef):
                    self._block(inner, False)
            for handler in getattr(node, "handlers", []):
                self._block(handler.body, False)
        self.last_names = saved

    def _mark(self, node: ast.expr) -> int | None:
        """Mark an expression and those in it; its rank if its value is channels-last."""
        if isinstance(node, ast.Name):
            rank = self.last_names.get(node.id)
            if rank is not None and isinstance(node.ctx, ast.Load):
                self.natural[node] = rank
                return rank
            return None
        if isinstance(node, ast.Lambda | ast.GeneratorExp):
            self._mark_later(node)
            return None
        if isinstance(node, ast.Call):
            return self._mark_call(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ARITHMETIC):
            left, right = self._mark(node.left), self._mark(node.right)
            if left is not None and left == right:
                self.natural[node] = self.wanted[node.left] = self.wanted[node.right] = left
                return left
            return None
        self._mark_inside(node)
        return None

    def _mark_inside(self, node: ast.AST) -> None:
        for child in symbols.children(node):
            if isinstance(child, ast.expr):
                self._mark(child)
            elif isinstance(child, ast.keyword | ast.comprehension):
                self._mark_inside(child)

    def _mark_later(self, node: ast.Lambda | ast.GeneratorExp) -> None:
        """Mark what runs when it is asked for: names may hold something else by then."""
        saved, self.last_names = self.last_names, {}
        self._mark_inside(node)
        self.last_names = saved

    def _mark_call(self, node: ast.Call) -> int | None:
        chain = self.layers.get(self._layer_attribute(node))
        if chain is not None:
            self.met.add(node)
            self._mark(node.args[0])
            if chain.takes:
                self.wanted[node.args[0]] = chain.takes
            if chain.gives:
                self.natural[node] = chain.gives
            return chain.gives or None
        argument = node.args[0] if node in self.functions else self._elementwise(node)
        inner: int | None = None
        for child in [*node.args, *(k.value for k in node.keywords)]:
            marked = self._mark(child)
            if child is argument:
                inner = marked
        if argument is not None and argument not in node.args and isinstance(node.func, ast.Attribute):
            inner = self._mark(argument)
        elif isinstance(node.func, ast.Attribute):
            self._mark(node.func.value)
        if argument is not None and inner is not None and self.functions.get(node, inner) == inner:
            self.wanted[argument] = inner
            self.natural[node] = inner
            return inner
        return None

    def _layer_attribute(self, node: ast.Call) -> str:
        if isinstance(node.func, ast.Attribute):
            owner = self.inference.facts.get(node.func.value)
            if isinstance(owner, Instance) and owner.cls.info is self.info:
                return node.func.attr
        return ""

    def _elementwise(self, node: ast.Call) -> ast.expr | None:
        """The argument of a call that treats all axes alike."""
        fact = self.inference.facts.get(node.func)
        if isinstance(fact, Qual) and fact.name in ELEMENTWISE_CALLS and node.args:
            return node.args[0]
        if treats_axes_alike(fact) and len(node.args) == 1:
            return node.args[0]
        if isinstance(node.func, ast.Attribute) and node.func.attr in ELEMENTWISE_METHODS and not node.args:
            if isinstance(self.inference.facts.get(node.func.value), Tensor):
                return node.func.value
        return None

    def _stays_last(self, name: str, rank: int, rest: list[ast.stmt], top: bool) -> bool:
        """Whether every later read of the name, up to its next binding, takes a channels-last value."""
        for node in rest:
            names = [n for n in symbols.walk(node) if isinstance(n, ast.Name) and n.id == name]
            reads = [n for n in names if isinstance(n.ctx, ast.Load)]
            stores = [n for n in names if not isinstance(n.ctx, ast.Load)]
            simple = isinstance(node, ast.Assign | ast.Return | ast.Expr)
            if (reads or stores) and not simple:
                return False
            if any(not self._consumed(read, rank) or self._runs_later(read) for read in reads):
                return False
            if stores:
                return isinstance(node, ast.Assign) and node.targets == stores
        return top

    def _consumed(self, read: ast.Name, rank: int) -> bool:
        """Whether a read of a name is the argument of something that takes channels-last values."""
        parent = self.parents.get(read)
        if isinstance(parent, ast.BinOp) and isinstance(parent.op, ARITHMETIC):
            other = parent.right if parent.left is read else parent.left
            chain = self.layers.get(self._layer_attribute(other)) if isinstance(other, ast.Call) else None
            return chain is not None and chain.gives == rank
        if isinstance(parent, ast.Call) and read in parent.args[:1]:
            chain = self.layers.get(self._layer_attribute(parent))
            if parent in self.functions or chain is not None and chain.takes:
                return True
            return self._elementwise(parent) is read
        if isinstance(parent, ast.Attribute):
            call = self.parents.get(parent)
            return isinstance(call, ast.Call) and call.func is parent and self._elementwise(call) is read
        return False

    def _runs_later(self, read: ast.Name) -> bool:
        """Whether a read of a name stands in a lambda or a generator."""
        node: ast.AST = read
        while not isinstance(node, ast.stmt | ast.Lambda | ast.GeneratorExp):
            node = self.parents[node]
        return not isinstance(node, ast.stmt)

    def _paying(self) -> set[str]:
        """The layers that save a move somewhere: their argument or value is channels-last in any case."""
        return {
            self._layer_attribute(node)
            for node in self.met
            if node in self.natural
            and node in self.wanted
            or node.args[0] in self.natural
            and node.args[0] in self.wanted
        }
