"""Masks that nothing but sizes decide: ``similarity[~torch.eye(n, dtype=torch.bool)]``.

Under jit what ``jnp.eye`` gives has no values, so that nobody knows how many elements it picks. What NumPy gives is
known while a function is traced. So the statements that such a mask is made by compute with NumPy, if nothing else
reads what they make.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from t2j_lsp import symbols
from t2j_lsp.symbols import FunctionNode
from t2j_lsp.translate.rule.facts import Fact, ListOf, Qual, Scalar, Tensor, Tuple
from t2j_lsp.translate.rule.library import Trait, names_with

from .file import Inference
from .forward_pass import is_known
from .kept_answers import kept_answers


@dataclass
class ConstantMasks:
    """What a file computes of such masks."""

    masks: set[ast.expr] = field(default_factory=set)
    """The indices by them, but for those in what makes them."""
    known: set[ast.expr] = field(default_factory=set)
    """All indices of which it is known under jit how much they pick."""
    values: set[ast.expr] = field(default_factory=set)
    """What is assigned to the variables in them."""


@dataclass
class _Version:
    """A variable between two assignments to it."""

    value: ast.expr
    needs: list[_Version]
    """Those that it is computed from."""
    masks: list[tuple[ast.expr, list[_Version]]] = field(default_factory=list)
    read_otherwise: bool = False

    def with_all(self) -> Iterator[_Version]:
        yield self
        for one in self.needs:
            yield from one.with_all()


@kept_answers
def constant_masks(inference: Inference) -> ConstantMasks:
    """The masks of a file that only sizes decide, and what they are computed from."""
    masks = ConstantMasks()
    if not names_with(Trait.CONSTANT).isdisjoint(inference.mentioned):
        for info in inference.functions.values():
            if not info.external:
                _MaskReader(inference, info.node, masks).read()
    return masks


class _MaskReader:
    """Reads the statements of a function in order."""

    def __init__(self, inference: Inference, function: FunctionNode, masks: ConstantMasks) -> None:
        self.inference = inference
        self.function = function
        self.constant = masks
        self.now: dict[str, _Version] = {}
        """The variables that hold constants, as they are at a statement."""
        self.versions: list[_Version] = []
        self.masks: list[tuple[ast.expr, list[_Version]]] = []

    def read(self) -> None:
        """Find the masks, and what makes them, if nothing else reads it."""
        for statement in self.function.body:
            self._statement(statement)
        wrong = {id(one) for one in self.versions if one.read_otherwise}
        masks = self.masks
        while masks:
            needed = [v for _, used in masks for one in used for v in one.with_all()]
            kept = [m for m in masks if not any(id(v) in wrong for one in m[1] for v in one.with_all())]
            if len(kept) == len(masks):
                values = {v.value for v in needed}
                inner = {n.slice for value in values for n in symbols.walk(value) if isinstance(n, ast.Subscript)}
                self.constant.masks.update(mask for mask, _ in masks)
                self.constant.values |= values
                self.constant.known |= inner.union(mask for mask, _ in masks)
                return
            masks = kept

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if isinstance(self.inference.fact(value), Tensor):
                needs: list[_Version] = []
                if self._is_constant(value, needs):
                    self.now[name] = version = _Version(value, needs)
                    self.versions.append(version)
                    return
        self._reads(node)
        for stored in (n for n in symbols.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)):
            self.now.pop(stored.id, None)

    def _reads(self, node: ast.AST) -> None:
        """Masks in a statement that gives no constant, and whether it reads one otherwise."""
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            used: list[_Version] = []
            fact = self.inference.fact(node.slice)
            if isinstance(fact, Tensor) and fact.dtype == "bool" and self._is_constant(node.slice, used):
                self.masks.append((node.slice, used))
                self._reads(node.value)
                return
        if isinstance(node, ast.Name) and node.id in self.now and not self._asks_about(node):
            self.now[node.id].read_otherwise = True
        for child in ast.iter_child_nodes(node):
            self._reads(child)

    def _asks_about(self, node: ast.Name) -> bool:
        """``labels.shape[0]``, ``labels.size(0)``."""
        parent = self.inference.source.parents.get(node)
        return isinstance(parent, ast.Attribute) and parent.attr in names_with(Trait.ABOUT)

    # --- what is a constant ---------------------------------------------------------------------------------------

    def _is_constant(self, node: ast.expr, needs: list[_Version]) -> bool:
        """Whether nothing but sizes decides the value of an expression, and NumPy has all that it is made by."""
        match node:
            case ast.Constant():
                return True
            case ast.Name(id=name) if name in self.now:
                needs.append(self.now[name])
                return True
            case ast.Name():
                return _is_number(self.inference.fact(node))
            case (
                ast.Attribute(value=ast.Name(), attr="shape")
                | ast.Subscript(value=ast.Attribute(value=ast.Name(), attr="shape"), slice=ast.Constant())
            ):
                return True
            case ast.Call(func=ast.Attribute(value=ast.Name(), attr=name)) if name in names_with(Trait.COUNTS):
                return True
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name()]):
                return True
            case ast.Call():
                return self._is_constant_call(node, needs)
            case ast.Subscript(value=held, slice=index):
                return isinstance(self.inference.fact(held), Tensor) and self._all((held, index), needs)
            case ast.Attribute(value=value, attr="T"):
                return self._is_constant(value, needs)
            case ast.UnaryOp(operand=operand):
                return self._is_constant(operand, needs)
            case ast.BinOp(left=left, right=right):
                return self._all((left, right), needs)
            case ast.Compare(left=left, comparators=comparators):
                return self._all((left, *comparators), needs)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return self._all(items, needs)
            case ast.ListComp(elt=item, generators=[ast.comprehension(target=ast.Name(), iter=walked, ifs=[])]):
                counted = isinstance(walked, ast.Call) and ast.unparse(walked.func) == "range"
                return counted and self._is_constant(item, needs)
        return False

    def _all(self, nodes: Iterable[ast.expr], needs: list[_Version]) -> bool:
        return all(self._is_constant(node, needs) for node in nodes)

    def _is_constant_call(self, node: ast.Call, needs: list[_Version]) -> bool:
        fact = self.inference.fact(node.func)
        given = [*node.args, *(k.value for k in node.keywords if k.arg not in ("dtype", "device"))]
        if any(k.arg is None for k in node.keywords):
            return False
        if isinstance(fact, Qual):
            named = names_with(Trait.CONSTANT) | names_with(Trait.CONSTANT_OF)
            return fact.name in named and self._all(given, needs)
        match node.func:
            case ast.Attribute(value=owner, attr=name) if isinstance(self.inference.fact(owner), Tensor):
                moved = name in names_with(Trait.SAME_VALUES) or name == "to"
                plain = all(not _holds_tensor(self.inference.fact(a)) for a in given)
                if not self._is_constant(owner, needs):
                    return False
                return plain if moved else name in names_with(Trait.CONSTANT_OF) and self._all(given, needs)
        return False


def _is_number(fact: Fact) -> bool:
    """Whether it is a number, or may be one: a size that a function is given."""
    return isinstance(fact, Scalar) or not is_known(fact)


def _holds_tensor(fact: Fact) -> bool:
    return isinstance(fact, Tensor | ListOf | Tuple)
