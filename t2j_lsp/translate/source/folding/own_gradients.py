"""Functions with a gradient of their own, of one array each: their base need not ask what else it may be given."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from t2j_lsp import symbols
from t2j_lsp.symbols import FunctionNode
from t2j_lsp.translate.source.helpers import helpers, renamed

from .uses import Index

BASE, SHORT = "Function", "FunctionOfOne"
"""The helper that such classes derive from, and what is enough for those of one array."""
_KEEPS, _KEPT = "save_for_backward", "saved_tensors"
_OF_ONE = frozenset(
    {"abs", "absolute", "clip", "cos", "cosh", "exp", "full_like", "log", "log1p", "maximum", "minimum", "ones_like"}
    | {"power", "reciprocal", "round", "sign", "sin", "sinh", "sqrt", "square", "sum", "tan", "tanh", "where"}
    | {"zeros_like"}
)
"""Functions of jax.numpy that give one array."""
_OF_NUMBERS = frozenset(("where", "power"))
"""Those that PyTorch's may be given numbers for."""
_HELPERS = ("absolute", "clamp", "set_where")
"""Helpers that give one array, of the first one's shape."""
_SUMMED, _ALIKE = (
    "summed_like(context.backward(context, gradient), x)",
    "context.backward(context, gradient).astype(x.dtype)",
)
"""How the gradient gets the shape and dtype of what it is of, and what is enough where it has that shape."""
_OF_MORE = frozenset(("nonzero", "tolist", "item"))
"""Methods of arrays that give something else."""
DEEPEST = 4
"""Names through which a value is followed."""


def of_one_array(texts: Mapping[str, str], user: Index, written: Mapping[str, str]) -> dict[str, str]:
    """The texts of helpers with the short base, if that is enough for all classes of the user that derive from it."""
    classes = [user.parents[read] for read in user.of_module(written.get(BASE, ""))]
    known = frozenset(written[name] for name in _HELPERS if name in written)
    if not classes or not all(isinstance(one, ast.ClassDef) and _takes_one_array(one, known) for one in classes):
        return dict(texts)
    text = renamed(helpers()[SHORT].text, {SHORT: BASE})
    if all(isinstance(one, ast.ClassDef) and _keeps_shapes(one, known) for one in classes):
        text = of_one_shape(text)
    return {**texts, BASE: text}


def of_one_shape(text: str) -> str:
    """The text of the short base for classes whose gradient always has the shape of what it is of."""
    return text.replace(_SUMMED, _ALIKE)


def _takes_one_array(cls: ast.ClassDef, known: frozenset[str]) -> bool:
    """Whether a class computes one array of one array, and keeps nothing but arrays for the gradient."""
    methods = {node.name: _OneForOne(node, known) for node in cls.body if isinstance(node, ast.FunctionDef)}
    if methods.keys() != {"forward", "backward"} or len(cls.bases) != 1 or cls.keywords:
        return False
    return all(method.gives_one_for_one for method in methods.values()) and methods["forward"].is_given_an_array


def _keeps_shapes(cls: ast.ClassDef, known: frozenset[str]) -> bool:
    """Whether all that such a class computes and keeps has the shape of the array that it is given."""
    forward, backward = (
        next(_OneForOne(node, known) for node in cls.body if isinstance(node, ast.FunctionDef) and node.name == name)
        for name in ("forward", "backward")
    )
    return forward.keeps_shape and backward.keeps_shape


@dataclass(frozen=True)
class _OneForOne:
    """``forward`` or ``backward`` of such a class."""

    node: ast.FunctionDef
    known: frozenset[str]
    """The names of helpers that give one array."""

    @cached_property
    def parameters(self) -> list[str]:
        return [parameter.arg for parameter in symbols.positional_parameters(self.node)]

    @cached_property
    def inside(self) -> list[ast.AST]:
        return [node for node in symbols.walk(self.node) if node is not self.node]

    @property
    def gives_one_for_one(self) -> bool:
        """Whether it takes a context and one value, gives one, and asks the context for no more than to keep arrays."""
        if len(symbols.named_parameters(self.node)) != 2 or len(self.parameters) != 2 or self.node.args.defaults:
            return False
        if any(isinstance(node, FunctionNode | ast.Lambda | ast.Yield | ast.YieldFrom) for node in self.inside):
            return False
        returned = [node.value for node in self.inside if isinstance(node, ast.Return)]
        kept = returned and all(value is not None and self._is_one(value, 0) for value in returned)
        return bool(kept) and self._only_keeps

    @property
    def _only_keeps(self) -> bool:
        """Whether the context is only asked to keep arrays, in a statement, and for those that it kept."""
        asked = {node.value for node in self.inside if isinstance(node, ast.Attribute) and node.attr == _KEPT}
        for node in self.inside:
            match node:
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=context, attr=name), keywords=[])):
                    asked |= {context} if name == _KEEPS else set()
        return asked >= {node for node in self.inside if _is(node, self.parameters[0])}

    @property
    def is_given_an_array(self) -> bool:
        """Whether it keeps its value for the gradient, or asks it for something that numbers don't have."""
        for node in self.inside:
            match node:
                case ast.Attribute(value=ast.Name(id=name)) if name == self.parameters[1]:
                    return True
                case ast.Call(func=ast.Attribute(value=ast.Name(id="jnp"), attr=name), args=[ast.Name(id=given), *_]):
                    if given == self.parameters[1] and name in _OF_ONE - _OF_NUMBERS:
                        return True
                case ast.Call(func=ast.Attribute(attr=name), args=kept) if name == _KEEPS:
                    if any(_is(one, self.parameters[1]) for one in kept):
                        return True
        return False

    @property
    def keeps_shape(self) -> bool:
        """Whether what it returns, and what it keeps, is computed element by element of arrays of one shape."""
        values = [node.value for node in self.inside if isinstance(node, ast.Return)]
        for node in self.inside:
            match node:
                case ast.Call(func=ast.Attribute(attr=name), args=kept) if name == _KEEPS:
                    values += kept
        return all(value is not None and self._is_elementwise(value, frozenset()) for value in values)

    def _is_elementwise(self, value: ast.expr, taken: Set[str]) -> bool:
        """Whether a value has the one shape, where the names that are ``taken`` have it."""
        match value:
            case ast.Name(id=name):
                given, is_own = self._given(name), name in self.parameters[1:]
                named = given is not None and bool(given or is_own)
                return name in taken or named and all(self._is_elementwise(v, taken | {name}) for v in given or () if v)
            case ast.UnaryOp(operand=inner) | ast.Call(func=ast.Attribute(value=inner, attr="astype")):
                return self._is_elementwise(inner, taken)
            case ast.BinOp(left=left, right=right, op=op) if not isinstance(op, ast.MatMult):
                return self._are_elementwise([left, right], taken)
            case ast.Compare(left=left, comparators=[right]):
                return self._are_elementwise([left, right], taken)
            case ast.Call(func=ast.Name(id=name), args=[first, *others], keywords=named) if name in self.known:
                others += [k.value for k in named]
                return self._is_elementwise(first, taken) and self._are_elementwise([first, *others], taken)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="jnp"), attr=name), args=[_, *_] as given, keywords=[]):
                several = name != "where" or len(given) == 3
                return name in _OF_ONE - {"sum"} and several and self._are_elementwise(given, taken)
        return False

    def _are_elementwise(self, values: list[ast.expr], taken: Set[str]) -> bool:
        """Whether values are arrays of one shape, one at least, and numbers."""
        arrays = [value for value in values if not _is_number(value)]
        return bool(arrays) and all(self._is_elementwise(value, taken) for value in arrays)

    def _is_one(self, value: ast.expr, depth: int) -> bool:
        """Whether a value is one array: a product, what most functions and methods give, or a name for such."""
        match value:
            case ast.BinOp() | ast.UnaryOp(operand=ast.BinOp() | ast.Name()):
                return True
            case ast.Call(func=ast.Name(id=name)):
                return name in self.known
            case ast.Call(func=ast.Attribute(value=ast.Name(id="jnp"), attr=name)):
                return name in _OF_ONE and not (name == "where" and len(value.args) < 3)
            case ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="jax"), attr="nn"))):
                return True
            case ast.Call(func=ast.Attribute(value=owner, attr=name)):
                return name not in _OF_MORE and self._is_one(owner, depth)
            case ast.Name(id=name) if depth < DEEPEST:
                return name in self.parameters[1:] or self._is_always_one(name, depth + 1)
        return False

    def _is_always_one(self, name: str, depth: int) -> bool:
        """Whether all that the method gives a name is one array: also one of those that were kept."""
        given = self._given(name)
        return bool(given) and all(value is None or self._is_one(value, depth) for value in given or ())

    def _given(self, name: str) -> list[ast.expr | None] | None:
        """The values that the method gives a name, None for one that was kept; None where they can't be told."""
        given: dict[ast.expr, ast.expr | None] = {}
        for node in self.inside:
            match node:
                case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Attribute(attr=attribute)):
                    given |= dict.fromkeys(parts) if attribute == _KEPT else {}
                case ast.Assign(targets=targets, value=value):
                    given |= dict.fromkeys(targets, value)
        stored = [n for n in self.inside if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)]
        return [given[n] for n in stored] if all(n in given for n in stored) else None


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_number(node: ast.expr) -> bool:
    match node:
        case ast.UnaryOp(operand=inner):
            return _is_number(inner)
        case ast.Constant(value=value):
            return isinstance(value, int | float)
    return False
