"""What a step computes along the axes of a parameter, which are others in Flax: kernels have PyTorch's turned around.

So a step may only do what is the same for each element, and make numbers of all elements together.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp import symbols
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.source.text import Source

from .expressions import StepExpressions
from .functions import KnownFunctions
from .unfit import Unfit, need

_EACH, _ALL = names_with(Trait.OF_ELEMENTS), names_with(Trait.OF_ALL_ELEMENTS)
_ABOUT, _COUNTS = names_with(Trait.ABOUT), names_with(Trait.COUNTS)
_PAIRS = ("max", "min")
_AXES = "{} may ask for the axes of a parameter, and Flax turns those of kernels around"
_PLAIN = frozenset({"len", "isinstance", "hasattr", "float", "abs", "int", "bool", "range", *_PAIRS})
"""Python's own functions, which ask tensors for numbers at most."""


class AxesCheck:
    """Looks through the code of a step. Raises Unfit."""

    def __init__(self, expressions: StepExpressions, source: Source, place: ast.AST, functions: KnownFunctions) -> None:
        self.expressions, self.source, self.place, self.functions = expressions, source, place, functions
        self.inside: set[str] = set()
        """Functions of the file that are looked into, in which anything may be of a parameter."""

    def check(self, lines: Iterable[str]) -> None:
        """Raises Unfit where the lines of a function ask for axes, or call what isn't seen."""
        self._check(ast.parse("\n".join(["def f():", *(f"    {line}" for line in lines)])))

    def check_all(self, lines: Iterable[str]) -> None:
        """Raises Unfit where the lines of a function of all gradients ask for axes of one."""
        self.inside.add("")
        self.check(lines)
        self.inside.discard("")

    def _traced(self, *nodes: ast.AST) -> bool:
        return bool(self.inside) or any(map(self.expressions.is_traced, nodes))

    def _refuse(self, node: ast.AST) -> Unfit:
        return Unfit(_AXES.format(ast.unparse(node)), self.place)

    def _check(self, tree: ast.AST) -> None:
        counted = {n.args[0] for n in symbols.walk(tree) if isinstance(n, ast.Call) and _is_length(n)}
        for node in symbols.walk(tree):
            match node:
                case ast.Call():
                    self._call(node)
                case ast.BinOp(op=ast.MatMult()) if self._traced(node.left, node.right):
                    raise self._refuse(node)
                case ast.Subscript(value=value) if ast.unparse(value) != "state" and not _is_type(value):
                    if self._traced(value) or _is_shape(value):
                        raise self._refuse(node)
                case ast.Attribute(value=value, attr=name) if self._traced(value) and not self.inside:
                    known = name in _ABOUT or name in _EACH or name.removesuffix("_") in _EACH or name in _ALL
                    if not known or name == "shape" and node not in counted and not self._only_passed(tree, node):
                        raise self._refuse(node)

    def _only_passed(self, tree: ast.AST, node: ast.Attribute) -> bool:
        """``torch.zeros(p.shape)``: a shape that is given on."""
        return any(isinstance(n, ast.Call) and node in n.args for n in symbols.walk(tree))

    def _call(self, node: ast.Call) -> None:
        given = [*node.args, *(k.value for k in node.keywords)]
        match node.func:
            case ast.Attribute(value=owner, attr=name) if name != "is_tensor":
                root = owner.value if isinstance(owner, ast.Attribute) and owner.attr == "linalg" else owner
                of_torch = isinstance(root, ast.Name) and root.id == self.expressions.torch
                if not self._traced(*given, *([] if of_torch else [owner])):
                    return
                along = any(k.arg in ("dim", "dims", "axis") for k in node.keywords)
                elements = name in _EACH or name.removesuffix("_") in _EACH
                count = len(node.args) - of_torch
                whole = name in _ALL and (count <= 0 or name == "norm" and count == 1 or name in _PAIRS and count == 1)
                whole = whole or of_torch and name == "stack" and count == 0
                if along or not (elements or whole or name in _COUNTS and count <= 0):
                    raise self._refuse(node)
            case ast.Name(id="sum") if all(isinstance(one, ast.GeneratorExp | ast.ListComp) for one in given):
                pass
            case ast.Name(id=name) if self._traced(*given) and name not in _PLAIN:
                self._look_into(name)

    def _look_into(self, name: str) -> None:
        """Check a function of the file that a step gives a tensor."""
        if name in self.inside:
            return
        functions = [n for n in self.source.nodes if isinstance(n, ast.FunctionDef) and n.name == name]
        functions += [n for n in [self.functions.imported(name)] if n is not None and not functions]
        need(len(functions) == 1, f"it gives {name}() a tensor, which isn't read here", self.place)
        self.inside.add(name)
        for inner in functions[0].body:
            self._check(inner)
        self.inside.discard(name)


def _is_length(node: ast.Call) -> bool:
    return ast.unparse(node.func) == "len" and len(node.args) == 1


def _is_shape(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "shape" or ast.unparse(node).endswith(".size()")


def _is_type(node: ast.expr) -> bool:
    """``dict[str, torch.Tensor]`` in an annotation."""
    return isinstance(node, ast.Name) and node.id in ("dict", "list", "tuple")
