"""How code uses the helpers that are copied beside it: which calls there are, also through names that stand for one.

A helper that is handed around (``criterion = mse_loss``, then ``criterion(x, y)``) is followed by name: every call of
that name, anywhere, counts as a call of the helper. Where it goes somewhere else, nothing is known of its calls.
"""

from __future__ import annotations

import ast
from collections import ChainMap, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType

from t2j_lsp import symbols
from t2j_lsp.symbols import Comprehension, FunctionNode
from t2j_lsp.translate.source.assignments import target_of

from .definitions import bound_in, is_given
from .literals import is_literal, literal
from .readings import TRANSFORMATIONS, Function, Place, Tree, read, read_helper

Agreed = Mapping[str, tuple[tuple[str, str], ...]]
"""Parameters of helpers, and the literals that all of the user's calls pass for them."""
NOTHING_AGREED: Agreed = MappingProxyType({})


@dataclass(frozen=True)
class HelperCall:
    """A call of a helper. ``shift`` arguments were bound before it, by name only."""

    node: ast.Call
    home: str | None
    """The helper that the call stands in; None in the user's code."""
    agreed: Mapping[str, ast.expr] = field(default_factory=dict)
    """Arguments that all calls in the user's code agree on: none of them passes these."""

    def argument(self, index: int | None, name: str) -> ast.expr | None:
        """What the call passes for a parameter, by its place or by its name."""
        if name in self.agreed:
            return None
        if index is not None and index < len(self.node.args):
            return self.node.args[index]
        return next((k.value for k in self.node.keywords if k.arg == name), None)

    def value(self, index: int | None, name: str, default: ast.expr | None) -> ast.expr | None:
        """What the parameter then is: what the call passes, what all agree on, or the default."""
        return self.argument(index, name) or self.agreed.get(name, default)

    @property
    def is_plain(self) -> bool:
        """Whether every argument is told apart."""
        return not any(isinstance(a, ast.Starred) for a in self.node.args) and all(
            k.arg is not None for k in self.node.keywords
        )


@dataclass
class HelperUses:
    """The uses of one helper."""

    calls: list[HelperCall] = field(default_factory=list)
    bound: set[str] = field(default_factory=set)
    """Parameters that a ``functools.partial`` binds."""
    literals: set[tuple[str, str | None]] = field(default_factory=set)
    """Them with the literals that it binds; None for any other value."""
    unsure: set[str] = field(default_factory=set)
    """Those of them that it may bind to None."""
    known: bool = True
    """Whether the calls are all there are."""
    subclassed: set[str | None] = field(default_factory=set)
    """The homes of classes that derive from it: None for the user's code."""
    reads: set[str | None] = field(default_factory=set)
    """The homes of whatever reads its name."""
    checked: bool = False
    """Whether ``isinstance`` asks for it."""
    agreed: Mapping[str, ast.expr] = field(default_factory=dict)
    """Arguments that all calls in the user's code agree on."""

    @property
    def own(self) -> bool:
        """Whether only other helpers use it."""
        return self.known and not self.bound and all(call.home is not None for call in self.calls)


class Index:
    """Where a tree reads names and attributes, and which functions and constructors it defines."""

    def __init__(self, trees: Mapping[str | None, ast.AST]) -> None:
        """``trees`` are helpers by name; None is the user's code."""
        self.parents: dict[ast.AST, ast.AST] = {}
        self.homes: dict[ast.AST, str | None] = {}
        self.reads: dict[Place, list[ast.Name | ast.Attribute]] = defaultdict(list)
        self.definitions: dict[str, list[Function]] = defaultdict(list)
        self.words: set[str] = set()
        """Attributes that are read, those that the user writes, names of keywords, and what strings say."""
        self.stored: set[str] = set()
        """Attributes that are assigned."""
        self.strings: set[str] = set()
        """What strings say, which may be names of attributes."""
        self.items: frozenset[type[ast.expr_context]] = frozenset()
        """What is done with items by brackets: loaded, stored, deleted."""
        self.keywords: set[str] = set()
        """Names of keywords that set attributes of modules."""
        self.enters = False
        """Whether there is a ``with`` block, or what may stand for one."""
        self.is_program = any(isinstance(tree, ast.Module) and runs(tree) for tree in trees.values())
        """Whether the code does something itself, and is no module that others import."""
        self.elsewhere: frozenset[str] = frozenset()
        """Names by which other files may ask what this one hands them."""
        self.asked_of_containers: frozenset[str] | None = None
        """The methods that the code may call of a Sequential, if that is known."""
        self._bound: dict[ast.AST, set[str]] = {}
        self.compiled: dict[str, list[str]] = defaultdict(list)
        """Names for ``nnx.jit(f)``, and what each ``f`` is called."""
        self.classes: set[str] = set()
        """The names of classes."""
        self._of_module: dict[str, list[ast.Name | ast.Attribute]] = {}
        for home, tree in trees.items():
            self._add(read(tree, "name") if home is None else read_helper(tree), home)

    def _add(self, tree: Tree, home: str | None) -> None:
        self.homes.update(dict.fromkeys(tree.nodes, home))
        self.parents.update(tree.parents)
        self.words |= tree.words
        self.enters |= tree.enters
        self.enters |= not tree.words.isdisjoint(("enter_context", "__enter__"))
        self.stored |= tree.stored
        self.items |= tree.items
        self.strings |= tree.strings
        self.keywords |= tree.keywords
        self.classes |= {n.name for n in tree.nodes if isinstance(n, ast.ClassDef)}
        for place, nodes in tree.reads.items():
            self.reads[place] += nodes
        for name, functions in tree.definitions.items():
            self.definitions[name] += functions
        for name, made in tree.compiled.items():
            self.compiled[name] += made

    def of_module(self, name: str, side: str = "name") -> list[ast.Name | ast.Attribute]:
        """Where the code of a side reads a name and no function or comprehension around binds it."""
        if name not in self._of_module:
            reads = self.reads.get((side, name), [])
            self._of_module[name] = [n for n in reads if isinstance(n, ast.Name) and not self.is_local(n)]
        return self._of_module[name]

    def is_local(self, node: ast.Name) -> bool:
        """Whether a function or comprehension around a name binds it."""
        place = self.parents.get(node)
        while place is not None:
            if isinstance(place, FunctionNode | ast.Lambda | Comprehension):
                if node.id in self._bound_in(place):
                    return True
            place = self.parents.get(place)
        return False

    def _bound_in(self, scope: ast.AST) -> Set[str]:
        if self.homes[scope] is not None:
            return _bound_in_helper(scope)
        if scope not in self._bound:
            self._bound[scope] = bound_in(scope)
        return self._bound[scope]


@cache
def _bound_in_helper(scope: ast.AST) -> frozenset[str]:
    return frozenset(bound_in(scope))


class UseFinder:
    """Finds the uses of helpers in the user's code and in the helpers' own."""

    def __init__(
        self, user: Index, helpers: Mapping[str, ast.stmt], written: Mapping[str, str], agreed: Agreed = NOTHING_AGREED
    ) -> None:
        """``written`` has what the user's code calls the helpers that it names."""
        trees: dict[str | None, ast.AST] = dict(helpers.items())
        own = Index(trees)
        self.own = own
        self.indexes = (user, own)
        self.parents = ChainMap(own.parents, user.parents)
        self.homes = ChainMap(own.homes, user.homes)
        self.uses = {name: HelperUses(agreed=_parsed(agreed.get(name, ()))) for name in helpers}
        self._reach: dict[str, set[Place] | None] | None = None
        for name in helpers:
            named = user.of_module(written[name]) if name in written else []
            roots = [*named, *own.of_module(name, "own")]
            self.uses[name].reads = {self.homes[node] for node in roots}
            self._follow(self.uses[name], roots, set())

    def _reads(self, place: Place) -> list[ast.Name | ast.Attribute]:
        return [node for index in self.indexes for node in index.reads.get(place, ())]

    def _follow(self, uses: HelperUses, roots: Iterable[ast.expr], seen: set[Place]) -> None:
        todo = list(roots)
        while todo and uses.known:
            for place in self._flow(uses, todo.pop()):
                if place is None or place[0] == "attribute" and any(place[1] in i.strings for i in self.indexes):
                    uses.known = False
                elif place not in seen:
                    seen.add(place)
                    todo += self._reads(place)

    def _flow(self, uses: HelperUses, node: ast.expr) -> Iterator[Place | None]:
        """Where a value goes from a place where it is read; None for where it can't be followed."""
        parent = self.parents.get(node)
        match parent:
            case ast.Call() if parent.func is node:
                home = self.homes[node]
                call = HelperCall(parent, home, uses.agreed) if home is None else HelperCall(parent, home)
                uses.calls.append(call)
                uses.known &= call.is_plain
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass")):
                uses.checked = True
            case ast.Call(func=ast.Name(id="super")):
                pass
            case ast.Call() if is_partial(parent) and parent.args[0] is node and len(parent.args) == 1:
                if any(k.arg is None for k in parent.keywords):
                    yield None
                agreed = uses.agreed if self.homes[node] is None else ()
                bound = {k.arg: k.value for k in parent.keywords if k.arg is not None and k.arg not in agreed}
                uses.bound |= bound.keys()
                uses.literals |= {(n, literal(v) if is_literal(v) else None) for n, v in bound.items()}
                uses.unsure |= {name for name, value in bound.items() if not is_given(value)}
                yield from self._flow(uses, parent)
            case ast.Call() if bound_function(parent) is node:
                pass  # what its calls pass, those of `bound_jit` say
            case ast.Call():
                yield from self._passed(parent, node)
            case ast.keyword():
                call_node = self.parents[parent]
                assert isinstance(call_node, ast.Call)
                yield from self._passed(call_node, node)
            case ast.Assign() if parent.value is node:
                for target in parent.targets:
                    yield self._place(target)
            case ast.AnnAssign() if parent.value is node:
                yield self._place(parent.target)
            case ast.arguments():
                yield from self._defaults(parent, node)
            case ast.BoolOp():
                yield from self._flow(uses, parent)
            case ast.IfExp() if node is not parent.test:
                yield from self._flow(uses, parent)
            case ast.Dict() if isinstance(item := self.parents.get(parent), ast.Subscript) and item.value is parent:
                yield from self._flow(uses, item)  # ``{"GRU": GRU, "LSTM": LSTM}[kind]``: one of them, by its name
            case ast.If() | ast.IfExp() | ast.While() | ast.Compare() | ast.UnaryOp(op=ast.Not()):
                pass
            case ast.ClassDef() if node in parent.bases:
                uses.subclassed.add(self.homes[node])
            case ast.Tuple() if _asks_class(self.parents.get(parent)):
                uses.checked = True
            case ast.Tuple() if (held := target_of(node, self.parents)) is not None:
                yield self._place(held)
            case ast.Expr():
                pass
            case ast.Attribute() if parent.value is node and self.homes[node] is not None:
                pass
            case _:
                if not self._is_annotation(node):
                    yield None

    def _passed(self, call: ast.Call, value: ast.expr) -> Iterator[Place | None]:
        """The parameters that take an argument, of functions and classes that are defined here."""
        bound = bound_function(call)
        functions = self._called(bound or call.func)
        if not functions or not HelperCall(call, None).is_plain:
            yield None
        keyword = next((k.arg for k in call.keywords if k.value is value), None)
        for function in functions:
            if keyword is None:
                yield self._taking(function, call.args.index(value) - (bound is not None))
            else:
                yield self._named(function, keyword)

    def _called(self, func: ast.expr) -> list[Function]:
        """The functions and constructors that a call may run; none if something else may be called."""
        user, _ = self.indexes
        name = _called_name(func) or ""
        match func:
            case ast.Attribute(value=ast.Name(id="self"), attr=method):
                return user.definitions.get(method, [])
            case ast.Attribute(value=ast.Name(id=owner), attr=method) if owner in user.classes:
                methods = user.definitions.get(method, [])
                return methods if all(map(_is_static, methods)) else []
        functions = [
            f for index in self.indexes for n in (name, *index.compiled[name]) for f in index.definitions.get(n, ())
        ]
        if not functions and isinstance(func, ast.Name) and self.homes[func] is None and user.is_local(func):
            return [f for one in self._held_by(("name", name)) for f in user.definitions[one]]
        return functions

    def _held_by(self, place: Place) -> list[str]:
        """The user's functions and classes that a name may stand for."""
        if self._reach is None:
            self._reach = {}  # while it is filled, what is called by such a name is not known
            user, _ = self.indexes
            self._reach = {name: self._reached(user.of_module(name)) for name in user.definitions}
        return [name for name, places in self._reach.items() if places is None or place in places]

    def _reached(self, roots: Iterable[ast.expr]) -> set[Place] | None:
        """All places that values may get to; None if they can't be followed."""
        uses, seen = HelperUses(), set[Place]()
        self._follow(uses, roots, seen)
        return seen if uses.known else None

    def _taking(self, function: Function, index: int) -> Place | None:
        """Where the argument at a place goes."""
        plain = symbols.positional_parameters(function)
        plain = plain[1:] if plain and plain[0].arg == "self" else plain
        return (self._side(function), plain[index].arg) if index < len(plain) else None

    def _named(self, function: Function, keyword: str) -> Place | None:
        """Where the argument of a name goes."""
        names = [a.arg for a in symbols.named_parameters(function)]
        return (self._side(function), keyword) if keyword in names else None

    def _defaults(self, arguments: ast.arguments, value: ast.expr) -> Iterator[Place | None]:
        """The parameter that has a default."""
        for argument, default in symbols.defaults(arguments):
            if default is value:
                yield (self._side(argument), argument.arg)

    def _side(self, node: ast.AST) -> str:
        return "name" if self.homes[node] is None else "own"

    def _place(self, target: ast.expr) -> Place | None:
        match target:
            case ast.Name(id=name):
                return (self._side(target), name)
            case ast.Attribute(attr=name):
                return ("attribute", name)
        return None

    def _is_annotation(self, node: ast.AST) -> bool:
        inner = node
        while (place := self.parents.get(inner)) is not None and not isinstance(inner, ast.stmt):
            if inner in (getattr(place, "annotation", None), getattr(place, "returns", None)):
                return True
            inner = place
        return False


def runs(tree: ast.Module) -> bool:
    """Whether a module has a loop, a call or a test of ``__name__`` at its top level, or makes an optimizer there."""
    return any(
        isinstance(s, ast.For | ast.While | ast.With)
        or isinstance(s, ast.Assign)
        and isinstance(s.value, ast.Call)
        and ast.unparse(s.value.func) == "nnx.Optimizer"
        or isinstance(s, ast.Expr)
        and isinstance(s.value, ast.Call)
        or isinstance(s, ast.If)
        and "__name__" in ast.unparse(s.test)
        for s in tree.body
    )


def _is_static(function: Function) -> bool:
    return any(ast.unparse(one) == "staticmethod" for one in getattr(function, "decorator_list", ()))


def _parsed(constants: Iterable[tuple[str, str]]) -> dict[str, ast.expr]:
    return {name: ast.parse(text, mode="eval").body for name, text in constants}


def _called_name(func: ast.expr) -> str | None:
    """The name of the function that a call runs: ``f(x)``, or ``nnx.value_and_grad(f)(x)``, which hands all on."""
    match func:
        case ast.Name(id=name):
            return name
        case ast.Call(func=made, args=[ast.Name(id=name)]) if ast.unparse(made) in TRANSFORMATIONS:
            return name
    return None


def bound_function(call: ast.Call) -> ast.expr | None:
    """The function that a call binds its further arguments to: ``f`` of ``bound_jit(f, x)``."""
    binds = isinstance(call.func, ast.Name) and call.func.id in ("bound_jit", "bound_jit_graph")
    return call.args[0] if binds and call.args else None


def is_partial(call: ast.Call) -> bool:
    return ast.unparse(call.func) in ("functools.partial", "partial", "jax.tree_util.Partial") and bool(call.args)


def _asks_class(node: ast.AST | None) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass")
    )
