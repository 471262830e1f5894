"""What a train step takes in place of a variable: an array that is made of it on the spot, or a part of it."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.call_sites import reached_functions
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.forward_pass import UnknownParameter, is_known
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.rule.facts import STR, UNKNOWN, Fact, ListOf, MixedDict, Object, Qual, Scalar, Tensor, Tuple
from t2j_lsp.translate.training.data.sample_parts import is_mixed
from t2j_lsp.translate.training.program.flow import DataFlow

from .host_numbers import host_number
from .host_values import asked_number, is_numpy, made_of_host_values, made_of_value, makes_array, takes_next


class MadeInputs:
    """Finds them around the variables that moved code reads."""

    def __init__(
        self,
        context: Context,
        flow: DataFlow,
        is_constant: Callable[[str], bool],
        is_trained: Callable[[str], bool],
    ) -> None:
        self.ctx = context
        self.flow = flow
        self.is_constant = is_constant
        """Whether a name is a constant of the module level."""
        self.is_trained = is_trained
        """Whether a variable is a tensor that is updated: a step is given it whole."""
        self.parts: Sequence[ast.AST] = ()
        """The code that moves into the step."""

    def of(self, node: ast.expr, exposed: set[str]) -> ast.expr | None:
        """What is passed in place of a variable: an array that is made of it, a part of the array that it is."""
        made = (
            self.next_of(node)
            or asked_number(self.ctx.inference, self.flow, node, self.parts, exposed)
            or self._part_of_batch(node)
            or self._made_of_values(node, exposed)
            or self._part_of_array(node, exposed)
            or host_number(self.ctx.inference, self.flow, node, self.parts, exposed)
        )
        inside = symbols.walk(made) if made is not None else ()
        return None if any(isinstance(n, ast.expr) and self.is_trained(ast.unparse(n)) for n in inside) else made

    def _part_of_batch(self, node: ast.expr) -> ast.Subscript | None:
        """``batch["x"]`` of a dict that may hold texts, which no compiled function takes, or is unknown."""
        part, batch = self._named_part(node), self.ctx.fact(node)
        if part is None:
            return None
        if is_mixed(batch):
            fact = self.ctx.fact(part)
            return part if isinstance(fact, Tensor) or not is_known(fact) else None
        unclear = batch == UNKNOWN or isinstance(batch, ListOf) and batch.keys is not None and batch.item == UNKNOWN
        return part if unclear and self._is_read_in_parts(node) else None

    def is_read_for_arrays(self, place: ast.expr) -> bool:
        """Whether the functions that the step calls read no texts of a batch, whose arrays do for them."""
        batch = self.ctx.fact(place)
        if not isinstance(batch, MixedDict) or not isinstance(place, ast.Name):
            return False
        texts = {key for key, fact in batch.items if not isinstance(fact, Tensor)}
        bodies = [info.node for info in reached_functions(self.ctx.inference, self.parts)]
        parts = (n for body in bodies for n in symbols.walk(body) if isinstance(n, ast.Subscript))
        return not any(isinstance(p.slice, ast.Constant) and p.slice.value in texts for p in parts)

    def _named_part(self, node: ast.AST) -> ast.Subscript | None:
        """The part that is read of a value by a number or a name that stands in the text: ``batch["x"]``."""
        match part := self.ctx.source.parents.get(node):
            case ast.Subscript(slice=ast.Constant(), ctx=ast.Load()) if part.value is node:
                return part
        return None

    def _is_read_in_parts(self, node: ast.expr) -> bool:
        """Whether the code that moves reads only parts of a dict, by their names."""
        text = ast.unparse(node)
        reads = (n for at in self.parts for n in symbols.walk(at) if isinstance(n, ast.Name) and n.id == text)
        parts = (self._named_part(n) for n in reads)
        return all(p is not None and isinstance(getattr(p.slice, "value", None), str) for p in parts)

    def next_of(self, node: ast.expr) -> ast.Call | None:
        """``next(batches)`` around an iterator."""
        call = self.ctx.source.parents.get(node)
        return call if isinstance(call, ast.Call) and takes_next(self.ctx.inference, call, self.parts) else None

    def _made_of_values(self, node: ast.expr, exposed: set[str]) -> ast.Call | None:
        """``torch.tensor([index[word]])`` around a value that no compiled function takes, made of such values only.

        So ``torch.from_numpy(rows[order])``: numpy's functions take no arrays that are traced; and
        ``torch.tensor(actions)``: a list's numbers would be an argument each.
        """
        fact = self.ctx.fact(node)
        unknown = fact in (UNKNOWN, STR) or isinstance(fact, UnknownParameter) or _is_whole(fact)
        place: ast.AST | None = node if not isinstance(fact, Qual) else None
        while place is not None and not isinstance(place, ast.stmt | ast.Lambda):
            place = self.ctx.source.parents.get(place)
            if isinstance(place, ast.Call) and makes_array(self.ctx.inference, place):
                if unknown and self._of_values(place, exposed):
                    return place
                made = (
                    made_of_host_values(self.ctx.inference, place) or made_of_value(self.ctx.inference, node) is place
                )
                return place if made and self.flow.reads(place) - self._libraries(place) <= exposed else None
        return None

    def _libraries(self, node: ast.AST) -> set[str]:
        """The names of modules that are imported, and of what they have."""
        return {n.id for n in symbols.walk(node) if isinstance(n, ast.Name) and isinstance(self.ctx.fact(n), Qual)}

    def _of_values(self, call: ast.Call, exposed: set[str]) -> bool:
        """Whether a call takes lists of values that are known before the step, looked up by others."""
        whole = any(_is_whole(self.ctx.fact(node)) for node in symbols.walk(call.args[0]) if isinstance(node, ast.expr))
        if not whole and not isinstance(call.args[0], ast.List | ast.ListComp):
            return False
        own = {n.id for n in symbols.walk(call) if isinstance(n, ast.Name) and not _is_load(n)}
        for node in symbols.walk(call):
            if isinstance(node, ast.Name) and node.id not in own and not isinstance(self.ctx.fact(node), Qual):
                if isinstance(self.ctx.fact(node), Tensor) or is_module(self.ctx.fact(node)):
                    return False
                if node.id not in exposed:
                    return False
        return whole or any(isinstance(node, ast.Subscript) for node in symbols.walk(call))

    def _part_of_array(self, node: ast.expr, exposed: set[str]) -> ast.Subscript | None:
        """``x[i:i + 16]`` around a name in it, passed as a whole: a step that is given ``i`` is compiled for each.

        So ``x[order]`` with an array of numpy, which may be a mask: its shape isn't known in a compiled function.
        """
        place: ast.AST | None = node
        while isinstance(place, ast.expr | ast.Slice):
            match place:
                case ast.Subscript(value=ast.Name(id=name), ctx=ast.Load()) if self._is_item(place, exposed):
                    return place if name in exposed else None
                case ast.Subscript(ctx=ast.Load()) if (base := held(place)) is not None and self._varies(
                    place, exposed
                ):
                    facts = [self.ctx.fact(place.value)]
                    if not isinstance(self.ctx.fact(base), Tuple):
                        facts.append(self.ctx.fact(base))
                    arrays = all(isinstance(fact, Tensor) and not fact.variable for fact in facts)
                    return place if arrays and base.id in exposed else None
            place = self.ctx.source.parents.get(place)
        return None

    def _is_item(self, part: ast.Subscript, exposed: set[str]) -> bool:
        """Whether it is one array of a list, by a number that is known before the step and no array is in it."""
        of = self.ctx.fact(part.value)
        if not isinstance(of, ListOf) or of.keys is not None or not isinstance(of.item, Tensor) or of.item.variable:
            return False
        index = [n for n in symbols.walk(part.slice) if isinstance(n, ast.expr)]
        names = [n for n in index if isinstance(n, ast.Name)]
        plain = all(isinstance(n, ast.Name | ast.Constant | ast.BinOp | ast.UnaryOp) for n in index)
        known = all(n.id in exposed and not isinstance(self.ctx.fact(n), Tensor) for n in names)
        return plain and known and bool(names)

    def _varies(self, part: ast.Subscript, exposed: set[str]) -> bool:
        """Whether a part of an array is cut by numbers that are known before the step, and change."""
        numpy = any(is_numpy(self.ctx.fact(n)) for n in symbols.walk(part.slice) if isinstance(n, ast.Name))
        if not numpy and not any(isinstance(n, ast.Slice) for n in symbols.walk(part.slice)):
            return False
        names = [n for n in symbols.walk(part.slice) if isinstance(n, ast.Name) and not hasattr(builtins, n.id)]
        if any(isinstance(n, ast.Attribute | ast.Lambda | ast.comprehension) for n in symbols.walk(part.slice)):
            return False
        if not all(n.id in exposed and not isinstance(self.ctx.fact(n), Tensor) for n in names):
            return False
        return numpy or not all(self.is_constant(n.id) for n in names)


def held(part: ast.Subscript) -> ast.Name | None:
    """The variable that a part is cut out of: `x` of ``x[order]``, ``x.long()[order]`` and ``x[0][order]``."""
    match part.value:
        case (ast.Name() as name) | ast.Subscript(value=ast.Name() as name, slice=ast.Constant()):
            return name
        case ast.Call(func=ast.Attribute(value=ast.Name() as name), args=[], keywords=[]):
            return name
    return None


def pairs_positions(inference: Inference, place: ast.expr) -> bool:
    """Whether a value picks elements along with another one, ``q[rows, actions]``: positions, and no mask."""
    listed = inference.source.parents.get(place)
    around = inference.source.parents.get(listed) if isinstance(listed, ast.Tuple) else None
    if not isinstance(listed, ast.Tuple) or not isinstance(around, ast.Subscript) or around.slice is not listed:
        return False
    arrays = [one for one in listed.elts if is_numpy(fact := inference.fact(one)) or isinstance(fact, Tensor)]
    return isinstance(inference.fact(around.value), Tensor) and len(arrays) > 1


def _is_whole(fact: Fact) -> bool:
    """Whether a value becomes an array before it is passed: an array of numpy, or a list of numbers."""
    return is_numpy(fact) or isinstance(fact, ListOf) and isinstance(fact.item, Scalar) and fact.item.kind != "str"


def as_said(known: Object) -> str:
    """An object in a reason."""
    return "an array of numpy" if is_numpy(known) else f"a{'n' * (known.kind[0] in 'aeiou')} {known.kind}"


def _is_load(node: ast.expr) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Load)
