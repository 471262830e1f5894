"""What a loop does with what it iterates, as far as only tensors are used so."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.symbols import nearest
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function
from t2j_lsp.translate.inference.calls import takes_tensor_first
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.forward_pass import UnknownParameter
from t2j_lsp.translate.rule.definitions import Instance, is_module
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, Qual
from t2j_lsp.translate.rule.record import REGISTRY, Rule
from t2j_lsp.translate.source.assignments import assigned

from .batch_loops import batch_targets, is_move, last_name

DEPTH = 4
"""How many functions of the file a variable is followed into."""
_SCORES = ("acc", "bce", "cost", "crit", "dice", "iou", "loss", "metric", "mse", "nll", "objective", "score")
"""What names of losses and metrics have in them."""
_MODULE_NAMES = ("model", "net", "network")
"""How names of modules end."""


class BatchUses:
    """Looks at the uses of a loop's variables. Nothing need be known of the loop's iterable."""

    def __init__(self, inference: Inference) -> None:
        self.inference = inference
        self._parents = inference.source.parents
        self._returned_in: dict[ast.AST, set[str]] = {}

    def is_tensor(self, loop: ast.AST, name: str) -> bool:
        """Whether a variable can only be a tensor, or something that holds numbers as one does."""
        computed = self.is_moved_or_called_on(loop, name) or self._computed(loop, name)
        by_uses = computed or any(_is_of_numbers(node, name) for node in symbols.walk(loop))
        return by_uses or self._stands_by_output(loop, name) or self._collected(loop, name)

    def _fact(self, node: ast.AST) -> Fact:
        fact = self.inference.facts.get(node, UNKNOWN)
        return UNKNOWN if isinstance(fact, UnknownParameter) else fact

    def computes_of_items(self, loop: ast.For) -> bool:
        """Whether a module, or a function of tensors, is called on what a loop iterates."""
        names = {target.id for target in batch_targets(loop)}
        if any(self._computed(loop, name) for name in names):
            return True
        calls = (n for n in symbols.walk(loop) if isinstance(n, ast.Call) and self._is_module(n.func))
        given = (inner for call in calls for value in call.args for inner in symbols.walk(value))
        return any(isinstance(n, ast.Name) and n.id in names for n in given)

    def _is_module(self, func: ast.expr) -> bool:
        """Whether what is called is a module, or has the name of one and nothing is known of it."""
        fact = self._fact(func)
        named = isinstance(func, ast.Name | ast.Attribute) and last_name(func).endswith(_MODULE_NAMES)
        return is_module(fact) or named and fact == UNKNOWN

    def _stands_by_output(self, loop: ast.AST, name: str) -> bool:
        """Whether a variable is compared with what a module returns, or a loss or metric is given both: labels are.

        Other functions are given names of files beside an output.
        """
        outputs = self._outputs(loop)
        for node in symbols.walk(loop):
            if isinstance(node, ast.Compare):
                sides = [self._root(side) for side in (node.left, *node.comparators)]
                if any(_is(side, {name}) for side in sides) and any(self._returned(side, outputs) for side in sides):
                    return True
            elif isinstance(node, ast.Call) and _scores(node.func) and any(_is(value, {name}) for value in node.args):
                if any(self._returned(value, outputs) for value in node.args):
                    return True
        return False

    def _outputs(self, loop: ast.AST) -> set[str]:
        """The variables that hold what a module returns, or something that is computed of it."""
        if loop not in self._returned_in:
            pairs = [pair for node in symbols.walk(loop) for pair in assigned(node)]
            outputs, size = self._returned_in.setdefault(loop, set()), -1
            while size < len(outputs):
                size = len(outputs)
                for target, value in pairs:
                    if self._returned(value, outputs):
                        outputs |= {n.id for n in symbols.walk(target) if isinstance(n, ast.Name)}
        return self._returned_in[loop]

    def _returned(self, value: ast.expr, outputs: set[str]) -> bool:
        """Whether a module's call, or a variable that holds what one returns, is in an expression."""
        inner = list(symbols.walk(value))
        return any(_is(n, outputs) or isinstance(n, ast.Call) and self._is_module(n.func) for n in inner)

    def _root(self, node: ast.expr) -> ast.expr:
        """What an expression takes a part of, or calls a method of: ``x`` of ``x[:, None]``, a module's call."""
        while isinstance(node, ast.Subscript | ast.Attribute | ast.Call):
            if isinstance(node, ast.Call) and self._is_module(node.func):
                return node
            node = node.func if isinstance(node, ast.Call) else node.value
        return node

    def _computed(self, loop: ast.AST, name: str) -> bool:
        """Whether a function that takes a tensor first computes something of a variable."""
        for node in symbols.walk(loop):
            rule = self._rule(node)
            if rule is None or not takes_tensor_first(rule) or not isinstance(node, ast.Call) or not node.args:
                continue
            named = (inner for inner in _outside_calls(node.args[0]) if _is(inner, {name}))
            if any(not isinstance(self._parents.get(one), ast.Attribute | ast.Subscript) for one in named):
                return True
        return False

    def _collected(self, loop: ast.AST, name: str) -> bool:
        """Whether a variable goes into a list whose items are joined as tensors."""
        appended = {
            ast.unparse(node.func.value)
            for node in symbols.walk(loop)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append"
            if any(isinstance(value, ast.Name) and value.id == name for value in node.args)
        }
        if not appended:
            return False
        scope = nearest(ast.FunctionDef, loop, self._parents) or self.inference.source.tree
        for node in symbols.walk(scope):
            rule = self._rule(node)
            parameters = rule.signatures[0].parameters if rule is not None else None
            if parameters and parameters[0].name == "tensors" and isinstance(node, ast.Call) and node.args:
                if ast.unparse(node.args[0]) in appended:
                    return True
        return False

    def _rule(self, node: ast.AST) -> Rule | None:
        fact = self._fact(node.func) if isinstance(node, ast.Call) else UNKNOWN
        return REGISTRY.get(fact.name) if isinstance(fact, Qual) else None

    def is_moved_or_called_on(self, loop: ast.AST, name: str, depth: int = 0) -> bool:
        """Whether a variable is moved to a device or passed to a module, here or in a function of the file."""
        for node in symbols.walk(loop):
            if not isinstance(node, ast.Call):
                continue
            if is_move(node) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
                if node.func.value.id == name:
                    return True
            fact = self._fact(node.func)
            info = called_function(fact)
            if self._is_module(node.func) or (isinstance(fact, Qual) and fact.name.startswith("torch.nn.functional.")):
                if any(isinstance(a, ast.Name) and a.id == name for a in node.args):
                    return True
            elif info is not None and not info.external and depth < DEPTH:
                forward = info.name == "forward" and info.owner is not None and info.owner.is_module
                for parameter, value in bound_arguments(node, info):
                    if isinstance(value, ast.Name) and value.id == name and not _asks_what_it_is(info.node, parameter):
                        if forward or self.is_moved_or_called_on(info.node, parameter.arg, depth + 1):
                            return True
        return False

    def places(self, scope: ast.AST, name: str, depth: int = 0) -> Iterator[tuple[ast.AST, str]]:
        """Where a variable may be read: its scope, and functions and modules of the file that it is handed to."""
        yield scope, name
        for node in symbols.walk(scope) if depth < DEPTH else ():
            if not isinstance(node, ast.Call):
                continue
            fact = self._fact(node.func)
            info = fact.cls.info.method("forward") if isinstance(fact, Instance) else called_function(fact)
            if info is not None and not info.external:
                for parameter, value in bound_arguments(node, info):
                    if isinstance(value, ast.Name) and value.id == name and not _asks_what_it_is(info.node, parameter):
                        yield from self.places(info.node, parameter.arg, depth + 1)


def _asks_what_it_is(function: ast.AST, parameter: ast.arg) -> bool:
    """Whether a function takes several kinds of values for a parameter: ``isinstance(data, (list, tuple))``."""
    for node in symbols.walk(function):
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), _]) if name == parameter.arg:
                return True
    return False


def _scores(func: ast.expr) -> bool:
    """Whether a name says that it is a loss or a metric."""
    return isinstance(func, ast.Name | ast.Attribute) and any(part in last_name(func) for part in _SCORES)


def _is_of_numbers(node: ast.AST, name: str) -> bool:
    """Whether something is done with a variable that no text, list or dict has: ``x > 1``, ``x.float()``."""
    match node:
        case ast.Compare(left=left, ops=ops, comparators=others):
            ordered = all(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in ops)
            return ordered and any(_is(side, {name}) for side in (left, *others))
        case ast.BinOp(left=left, op=ast.Sub() | ast.Div() | ast.FloorDiv() | ast.Pow() | ast.MatMult(), right=right):
            return _is(left, {name}) or _is(right, {name})
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=method)) if owner == name:
            return method not in _OF_CONTAINERS and REGISTRY.get(f"torch.Tensor.{method}") is not None
    return False


_OF_CONTAINERS = frozenset(n for kind in (str, list, dict, set) for n in dir(kind))


def _is(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _outside_calls(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of an expression that no call in it is given."""
    if not isinstance(node, ast.Call):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from _outside_calls(child)
