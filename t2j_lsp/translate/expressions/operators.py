"""Comparisons, conditions of which part is known, and powers."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.gates import Gate
from t2j_lsp.translate.rule.definitions import Instance, is_module, layer_names
from t2j_lsp.translate.rule.facts import UNKNOWN, AnyModule, Qual, Scalar, Tensor
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import Trait, names_with, stands_alone
from t2j_lsp.translate.rule.names import is_dtype
from t2j_lsp.translate.rule.pieces import ATOM, NOT, UNARY, Piece, bracket, precedence, slot
from t2j_lsp.translate.rule.powers import NEGATIVE_EXPONENTS, may_be_floats, may_be_integers

from .alike_branches import say_the_same
from .copied_classes import report_asked_class
from .copying import Copier
from .fold import asked_platforms, fold
from .given_values import is_given
from .handlers import ExpressionRenderer
from .hashed_arrays import report_hashed
from .made_or_given import MADE_OR_GIVEN, is_no_activation, is_no_maker, makes, values_given
from .truth import Truth
from .truth_of_items import report_asked_items
from .variables import Variables
from .wide_numbers import report_wide

KNOWN = Gate(words=frozenset({"hasattr", "dir"}), names=(names_with(Trait.FALSE),))
"""Calls whose value is known."""
ASKED = Gate(words=frozenset({"isinstance"}))
"""Calls that ask what something is."""


class Operators:
    """What operators become."""

    def __init__(
        self, inference: Inference, renderer: ExpressionRenderer, copier: Copier, truth: Truth, variables: Variables
    ) -> None:
        self.inference = inference
        self.variables = variables
        self.truth = truth
        self.renderer = renderer
        self.copier = copier

    def known(self, node: ast.Call | ast.UnaryOp | ast.Compare) -> Piece | None:
        """A condition whose value is known whatever the inputs."""
        value = fold(node, self.inference)
        return None if value is None else Piece(str(value))

    def negation(self, node: ast.UnaryOp) -> Piece | None:
        """``not`` of what has become ``not x``."""
        if not isinstance(node.op, ast.Not):
            return None
        self.truth.parts(node, [node.operand])
        inner = self.renderer.render(node.operand)
        if inner.text.startswith("not ") and inner.precedence == NOT:
            return Piece(inner.text[4:], UNARY)
        return None

    def boolean(self, node: ast.BoolOp) -> Piece | None:
        """``self.training and not torch.jit.is_scripting()`` loses what is always true in JAX."""
        neutral = isinstance(node.op, ast.And)
        kept = [value for value in node.values if fold(value, self.inference) is not neutral]
        if any(fold(value, self.inference) is (not neutral) for value in kept):
            return Piece(str(not neutral))
        self.truth.parts(node, kept[:-1])
        if len(kept) == len(node.values):
            return None
        if not kept:
            return Piece(str(neutral))
        word = " and " if neutral else " or "
        texts = [bracket(self.renderer.render(value), slot(node, "values", value)) for value in kept]
        return Piece(word.join(texts), precedence(node) if len(kept) > 1 else self.renderer.render(kept[0]).precedence)

    def conditional(self, node: ast.IfExp) -> Piece | None:
        """``a if torch.jit.is_scripting() else b`` is one of the two."""
        known = fold(node.test, self.inference)
        if known is None and say_the_same(node, self.inference):
            return self.renderer.render(node.orelse)
        if known is None:
            self.truth.condition(node.test)
            return None
        return self.renderer.render(node.body if known else node.orelse)

    def filtered(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        """The conditions of a comprehension."""
        for test in (test for generator in node.generators for test in generator.ifs):
            self.truth.condition(test)

    def asked(self, node: ast.Call) -> Piece | None:
        """``isinstance`` of what may be a function, or a parameter."""
        report_asked_class(self.truth.ctx, node)
        return self._asked_for_module(node) or self._asked_for_parameter(node)

    def _asked_for_module(self, node: ast.Call) -> Piece | None:
        """``isinstance(act, nn.Module)`` of what a function is given: activations are functions in JAX."""
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[asked, kind]):
                fact, function = self.inference.fact(kind), self.truth.ctx.scope.function
            case _:
                return None
        if not isinstance(fact, Qual) or fact.name != "torch.nn.Module" or function is None:
            return None
        if not is_given(asked, symbols.parameter_names(function.node), self.inference.source.parents):
            return None
        given = self.inference.fact(asked)
        functions = [name for name in layer_names(given) if name in LAYERS and LAYERS[name].function]
        own = isinstance(given, Instance)
        if is_module(given) and (own or not functions and given != AnyModule()):
            return None
        if isinstance(asked, ast.Name) and makes(function, asked.id):
            values = values_given(self.inference, function, asked.id)
            if values and all(is_no_activation(self.inference, one) for one in values):
                return None
            if not values or not all(is_no_maker(self.inference, one) for one in values):
                self.truth.ctx.report.gap(node, "torch.nn.Module", "unsure", MADE_OR_GIVEN)
                return None
        reason = "activations are functions in JAX, so that any function counts as a module here"
        self.truth.ctx.report.note(node, "torch.nn.Module", "note", reason)
        kept, value = self.copier.copy_arguments(node).text, self.renderer.render(asked).text
        return Piece(f"({kept} or callable({value}) and not isinstance({value}, type))")

    def _asked_for_parameter(self, node: ast.Call) -> Piece | None:
        """``isinstance(m.weight, nn.Parameter)``: the Variable is asked, and not the array in it.

        So is ``m.bias`` of any layer whether it is a tensor, which may be a Variable there.
        """
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Attribute() as asked, kind]):
                fact, owner = self.inference.fact(kind), self.inference.fact(asked.value)
            case _:
                return None
        name = fact.name if isinstance(fact, Qual) else ""
        unknown = asked.attr == "bias" and (isinstance(owner, AnyModule) or owner == UNKNOWN)
        if name in names_with(Trait.PARAMETER) and (variable := self.variables.parameter(asked, True)) is not None:
            return Piece(f"isinstance({variable[0]}, {self.renderer.argument(kind).text})")
        if name == "torch.Tensor" and unknown and self.variables.parameter(asked) is None:
            bias, flax = f"{self.renderer.argument(asked.value).text}.bias", self.renderer.need("nnx")
            return Piece(f"isinstance({bias}, {self.renderer.argument(kind).text} | {flax}.Variable)")
        return None

    def of_object(self, node: ast.BinOp) -> None:
        """``adj + 1`` of a sparse matrix, which is no array: only ``@``, and products with a number, are the same.

        And what needs wider integers than JAX has.
        """
        report_wide(self.truth.ctx, node)
        for part, other in ((node.left, node.right), (node.right, node.left)):
            fact = self.inference.fact(part)
            if not stands_alone(fact) or isinstance(node.op, ast.MatMult):
                continue
            if not (isinstance(node.op, ast.Mult) and isinstance(self.inference.fact(other), Scalar)):
                reason = "in JAX only products are taken of a sparse matrix: compute with its to_dense()"
                self.truth.ctx.report.gap(node, "BinOp", "refused", reason)

    def power(self, node: ast.BinOp) -> Piece | None:
        """``x**y`` of tensors: where y is 0, PyTorch's gradient is 0 and JAX's may be NaN; of integers it is 0."""
        if not isinstance(node.op, ast.Pow):
            return None
        facts = [self.inference.fact(part) for part in (node.left, node.right)]
        if may_be_integers(*facts):
            self.truth.ctx.report.note(node, "**", "note", NEGATIVE_EXPONENTS)
        if not may_be_floats(*facts):
            return None
        base, exponent = (bracket(self.renderer.argument(part), 1) for part in (node.left, node.right))
        return Piece(f"{self.renderer.need('power')}({base}, {exponent})")

    def _platform(self, node: ast.Compare, device: ast.expr, names: list[str]) -> Piece:
        positive = isinstance(node.ops[0], ast.Eq | ast.In)
        if not names:
            return Piece(str(not positive))
        owner = bracket(self.renderer.render(device), ATOM)
        if len(names) == 1:
            return Piece(f'{owner}.platform {"==" if positive else "!="} "{names[0]}"', precedence(node))
        listed = ", ".join(f'"{name}"' for name in names)
        return Piece(f"{owner}.platform {'in' if positive else 'not in'} ({listed})", precedence(node))

    def _same_variable(self, node: ast.Compare, left: ast.Attribute, right: ast.expr) -> Piece | None:
        """``head.weight is tokens.weight``: Variables may be the same; the arrays that they give never are."""
        sides = [self.variables.parameter(part) for part in (left, right) if isinstance(part, ast.Attribute)]
        known = [side for side in sides if side is not None]
        if len(known) != 2:
            return None
        (one, flax), (other, flax_too) = known
        if flax != flax_too:
            reason = "a kernel in Flax's layout is never the same Variable as a weight in PyTorch's"
            self.truth.ctx.report.gap(node, ast.unparse(left), "unsure", reason)
            return None
        self.truth.ctx.report.count_converted()
        return Piece(f"{one} {'is' if isinstance(node.ops[0], ast.Is) else 'is not'} {other}", precedence(node))

    def compare(self, node: ast.Compare) -> Piece | None:
        """``x.dtype is torch.float32``, and ``device.type == "cuda"``: JAX names platforms otherwise.

        JAX's dtypes are equal and not the same objects. ``x.type() == y.type()`` compares them by their names.
        """
        match node:
            case ast.Compare(left=ast.Attribute() as one, ops=[ast.Is() | ast.IsNot()], comparators=[other]):
                if (same := self._same_variable(node, one, other)) is not None:
                    return same
            case ast.Compare(
                left=ast.Call(func=ast.Attribute(value=one, attr="type"), args=[], keywords=[]),
                ops=[ast.Eq() | ast.NotEq() as op],
                comparators=[ast.Call(func=ast.Attribute(value=other, attr="type"), args=[], keywords=[])],
            ) if any(isinstance(self.inference.fact(part), Tensor) for part in (one, other)):
                types = [f"{bracket(self.renderer.argument(_held(part)), ATOM)}.dtype" for part in (one, other)]
                return Piece(f"{types[0]} {'==' if isinstance(op, ast.Eq) else '!='} {types[1]}", precedence(node))
        report_asked_items(self.truth.ctx, self.truth.code, node)
        report_hashed(self.truth.ctx, node)
        facts = [self.inference.fact(part) for part in node.comparators]
        asked = asked_platforms(node, self.inference.fact)
        if asked is not None:
            self.truth.ctx.report.count_converted()
            return self._platform(node, *asked)
        if len(facts) != 1 or not isinstance(facts[0], Qual) or not is_dtype(facts[0].name):
            return None
        if not isinstance(node.ops[0], ast.Is | ast.IsNot):
            return None
        left, right = (
            self.copier.render_in(node, field, part)
            for field, part in (("left", node.left), ("comparators", node.comparators[0]))
        )
        sign = "==" if isinstance(node.ops[0], ast.Is) else "!="
        sides = [bracket(piece, precedence(node) + 1) for piece in (left, right)]
        return Piece(f"{sides[0]} {sign} {sides[1]}", precedence(node))


def _held(node: ast.expr) -> ast.expr:
    """The tensor of ``x.data``."""
    return node.value if isinstance(node, ast.Attribute) and node.attr == "data" else node
