"""Expressions of a step, said of one parameter: options, gradient and state are variables, numbers may be traced."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable

from t2j_lsp.translate.rule.library import Trait, names_with

from .constructor import RATE
from .functions import KnownFunctions
from .names import StepNames, StepNamesReader, is_gradient, is_state, same
from .unfit import Unfit, need

_STATIC = names_with(Trait.ABOUT)
_COPIES = ("copy.deepcopy", "deepcopy", "copy.copy")
_ASKS = ("is_complex", "is_floating_point")
_OF_NUMBERS = names_with(Trait.OF_ELEMENTS)


class StepExpressions(ast.NodeTransformer):
    """Rewrites expressions, and knows which have values that only the running step knows."""

    def __init__(
        self,
        names: StepNames,
        reader: StepNamesReader,
        attributes: dict[str, str],
        torch: str,
        functions: KnownFunctions,
    ) -> None:
        self.names, self.reader, self.attributes = names, reader, attributes
        self.torch, self.functions = torch, functions
        self.numbers: Callable[[], set[str]] = set
        """The variables that hold numbers of the state."""
        self.traced: set[str] = set()
        self.of_numbers: set[str] = set()
        """Variables that are computed of the learning rate and of numbers of the state."""
        self.counters: dict[str, str] = {}
        """Attributes and options that steps count up, and the variables that have them."""

    def rewrite(self, node: ast.expr) -> ast.expr:
        """An expression of one parameter. Raises Unfit."""
        made: ast.expr = self.visit(copy.deepcopy(node))
        return ast.fix_missing_locations(made)

    def is_traced(self, node: ast.AST) -> bool:
        """Whether a rewritten expression has a value that Python can't ask for."""
        match node:
            case ast.Attribute(attr=name) if name in _STATIC:
                return False
            case ast.Call(func=ast.Attribute(attr=name)) if name in _STATIC or name in _ASKS:
                return False
            case ast.Call(func=ast.Name(id="len" | "isinstance" | "hasattr") | ast.Attribute(attr="is_tensor")):
                return False
            case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
                return False
            case ast.Name(id=name):
                return name in self.traced
        return any(self.is_traced(inner) for inner in ast.iter_child_nodes(node))

    # --- names ----------------------------------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> ast.expr:
        need(node.id not in (self.names.group, "self"), f"what it does with {node.id}", node)
        need(node.id not in self.names.states, "what it does with the state of a parameter", node)
        node.id = self.names.renames.get(node.id, node.id)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if (counter := self.counters.get(ast.unparse(node).replace('"', "'"))) is not None:
            return ast.copy_location(ast.Name(counter, node.ctx), node)
        if (key := self.reader.key(node)) is not None:
            return ast.copy_location(ast.Name(self.names.entries[key], node.ctx), node)
        if (option := self.reader.option(node)) is not None:
            need(isinstance(node.ctx, ast.Load), "it changes an option of a group", node)
            return ast.copy_location(ast.Name(option, ast.Load()), node)
        if is_state(node, self.names.parameter):
            raise Unfit("what it does with the state of a parameter", node)
        self.generic_visit(node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if (counter := self.counters.get(ast.unparse(node))) is not None:
            return ast.copy_location(ast.Name(counter, node.ctx), node)
        if is_gradient(node, self.names.parameter):
            need(isinstance(node.ctx, ast.Load), "it stores a gradient", node)
            return ast.copy_location(ast.Name(self.names.gradient, ast.Load()), node)
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            need(node.attr in self.attributes, f"what it does with self.{node.attr}", node)
            need(isinstance(node.ctx, ast.Load), f"it changes self.{node.attr}", node)
            return ast.copy_location(ast.Name(self.attributes[node.attr], ast.Load()), node)
        if node.attr == "data":
            made = self.visit(node.value)
            if isinstance(made, ast.Name):
                made.ctx = node.ctx
            return made  # type: ignore[no-any-return]
        self.generic_visit(node)
        return node

    # --- calls ----------------------------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if (option := self.reader.option(node)) is not None:
            return ast.copy_location(ast.Name(option, ast.Load()), node)
        inner = same(node)
        if inner is node:
            inner = self.functions.gives_itself(node) or node
        if inner is not node:
            return self.visit(inner)  # type: ignore[no-any-return]
        self.generic_visit(node)
        if self._asks_for_tensor(node):
            return ast.copy_location(ast.Constant(False), node)
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr="item" | "cpu"), args=[], keywords=[]):
                return value
            case ast.Call(func=func, args=[value]) if ast.unparse(func) in _COPIES and self.is_traced(value):
                return ast.Call(ast.Attribute(value, "clone", ast.Load()), [], [])
            case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr=name)) if self.is_traced(node):
                return self._of_number(node, name)
            case ast.Call(func=ast.Name(id=name)) if name in ("float", "int", "min", "max", "round", "range", "bool"):
                return self._builtin(node, name) if self.is_traced(node) else node
        return node

    def _asks_for_tensor(self, node: ast.Call) -> bool:
        """``torch.is_tensor(-group["lr"])``, also of numbers of the state: none is to be treated as a tensor."""
        match node:
            case ast.Call(func=ast.Attribute(attr="is_tensor"), args=[value]):
                asked = value
            case ast.Call(func=ast.Name(id="isinstance"), args=[value, kind]):
                if ast.unparse(kind) not in ("Tensor", f"{self.torch}.Tensor"):
                    return False
                asked = value
            case _:
                return False
        read = {n.id for n in ast.walk(asked) if isinstance(n, ast.Name)}
        return not read & (self.traced - self.of_numbers - {RATE} - self.numbers())

    def _of_number(self, node: ast.Call, name: str) -> ast.expr:
        """``math.sqrt(1 - beta2**step)`` of what is traced."""
        if name == "pow" and len(node.args) == 2:
            return ast.BinOp(node.args[0], ast.Pow(), node.args[1])
        need(name in _OF_NUMBERS, f"math.{name} of a value that is computed in the step", node)
        return self._torch(name, node.args)

    def _torch(self, name: str, args: list[ast.expr], **named: ast.expr) -> ast.expr:
        func = ast.Attribute(ast.Name(self.torch, ast.Load()), name, ast.Load())
        return ast.Call(func, args, [ast.keyword(key, value) for key, value in named.items()])

    def _builtin(self, node: ast.Call, name: str) -> ast.expr:
        if name == "float" and len(node.args) == 1:
            return node.args[0]
        match node.args:
            case [ast.Starred(value=ast.List(elts=args) | ast.Tuple(elts=args))]:
                pass
            case args:
                pass
        if name in ("min", "max") and len(args) == 2 and not node.keywords:
            traced = [a for a in args if self.is_traced(a)]
            others = [a for a in args if a not in traced]
            if len(traced) == 1:
                return self._torch("clamp", traced, **{"max" if name == "min" else "min": others[0]})
            return self._torch(f"{name}imum", traced)
        raise Unfit(f"{name}() of a value that is computed in the step", node)

    # --- choices --------------------------------------------------------------------------------------------------

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return node.body if node.test.value else node.orelse
        return self.chosen(node.test, node.body, node.orelse) if self.is_traced(node.test) else node

    def chosen(self, condition: ast.expr, value: ast.expr, other: ast.expr) -> ast.expr:
        """``torch.where(condition, value, other)``."""
        asked = self.condition(condition)
        match asked:
            case ast.Call(func=ast.Attribute(attr="logical_not"), args=[inner]):
                return self._torch("where", [inner, other, value])
        return self._torch("where", [asked, value, other])

    def negated(self, condition: ast.expr) -> ast.expr:
        """``torch.logical_not(condition)``."""
        return self._torch("logical_not", [condition])

    def condition(self, test: ast.expr) -> ast.expr:
        """A test as an array: ``&`` for ``and``."""
        match test:
            case ast.BoolOp(op=op, values=[first, *others]):
                made = self.condition(first)
                for other in others:
                    made = ast.BinOp(
                        made, ast.BitAnd() if isinstance(op, ast.And) else ast.BitOr(), self.condition(other)
                    )
                return made
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.negated(self.condition(operand))
            case ast.Compare(left=left, ops=[first, second], comparators=[middle, right]):
                one = ast.Compare(left, [first], [middle])
                return ast.BinOp(one, ast.BitAnd(), ast.Compare(copy.deepcopy(middle), [second], [right]))
        return test
