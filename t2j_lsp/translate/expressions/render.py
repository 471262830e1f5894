"""Renders expressions: what has a rule is rewritten, everything else is copied with its children rendered."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from t2j_lsp.translate.inference.state import Parameter
from t2j_lsp.translate.layout.plan import shared_base
from t2j_lsp.translate.rule.factory import FactoryKeywords
from t2j_lsp.translate.rule.facts import (
    UNKNOWN,
    AnyModule,
    Fact,
    Function,
    Instance,
    Layer,
    ListOf,
    Object,
    Qual,
    Tensor,
    is_module,
)
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.names import is_torch
from t2j_lsp.translate.rule.precedence import (
    ARGUMENT,
    ATOM,
    NOT,
    UNARY,
    Part,
    Piece,
    bracket,
    breaks_line,
    enclosed_tuple,
    precedence,
    slot,
)
from t2j_lsp.translate.rule.record import REGISTRY
from t2j_lsp.translate.rule.values import ANNOTATIONS, VALUES

from .calls import CallRenderer
from .fold import fold
from .site import rngs_expression

_ALWAYS = "always_true_"
"""Stands for a condition that goes."""


class Renderer(CallRenderer):
    """Expression rendering. Calls are in ``calls``; statements in ``statements``."""

    def render(self, node: ast.expr) -> Piece:
        """The JAX code of one expression."""
        if getattr(node, "lineno", 1) == 0:
            return Piece("")
        done = self.rendered.get(node)
        if done is None:
            handler = self.ctx.expression_handlers.get(node)
            special = (handler(self) if handler is not None else None) or self._special(node)
            done = special if special is not None else self.generic(node)
            if node in self.ctx.layout.natural or node in self.ctx.layout.wanted:
                moved = self.ctx.layout.wrap(node, done.text, self.need("jnp"))
                done = Piece(moved) if moved is not None else done
            self.rendered[node] = done
        return done

    def _special(self, node: ast.expr) -> Piece | None:
        match node:
            case ast.Call():
                return self.call(node)
            case ast.Name() if isinstance(node.ctx, ast.Load):
                return self._value(node)
            case ast.Attribute() if isinstance(node.ctx, ast.Load):
                return self._attribute(node)
            case ast.Compare():
                return self._same_dtype(node)
            case ast.UnaryOp(op=ast.Not()):
                return self._not(node)
            case ast.BoolOp():
                return self._bool(node)
            case ast.IfExp():
                return self._conditional(node)
            case ast.UnaryOp(op=ast.Invert()):
                return None
            case ast.Constant() if self.in_annotation and isinstance(node.value, str):
                return self._string_annotation(node)
            case ast.Subscript() if self.in_annotation:
                return self._final(node)
            case ast.Subscript():
                return self._subscript(node)
            case ast.Lambda():
                return self._lambda(node)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return self._scoped(node)
            case ast.JoinedStr():
                return self._fstring(node)
            case _:
                return None

    # --- copying --------------------------------------------------------------------------------------------------

    def generic(self, node: ast.expr) -> Piece:
        """The source text of ``node`` with its rewritten children in place."""
        if isinstance(node, ast.Call) and any(isinstance(k, FactoryKeywords) for k in node.keywords):
            return self.rebuilt(node, None, [], None)
        text = self.splice(node)
        if isinstance(node, ast.Tuple) and enclosed_tuple(text):
            return Piece(text)
        return Piece(text, precedence(node))

    def splice(self, node: ast.AST, start: int | None = None, end: int | None = None) -> str:
        """Text ``start:end`` (the node's own span by default) with the child expressions rendered."""
        first, last = self.ctx.source.span(node) if start is None or end is None else (start, end)
        out: list[str] = []
        position = first
        for parent, field, child in sorted(children(node), key=lambda c: (c[2].lineno, c[2].col_offset)):
            if child.lineno == 0:
                continue
            begin, stop = self.ctx.source.span(child)
            if begin < position or stop > last:
                continue
            piece = self.render_in(parent, field, child)
            text = piece.text
            if text != self.ctx.source.text[begin:stop] and self._needs_brackets(
                parent, field, child, piece, begin, stop
            ):
                text = bracket(piece, slot(parent, field, child))
            out.append(self.ctx.source.text[position:begin])
            out.append(text)
            position = stop
        out.append(self.ctx.source.text[position:last])
        return "".join(out)

    def _same_dtype(self, node: ast.Compare) -> Piece | None:
        """``x.dtype is torch.float32``: JAX's dtypes are equal and not the same objects."""
        facts = [self.ctx.fact(part) for part in node.comparators]
        if len(facts) != 1 or not isinstance(facts[0], Qual) or not _DTYPE.fullmatch(facts[0].name):
            return None
        if not isinstance(node.ops[0], ast.Is | ast.IsNot):
            return None
        left, right = (
            self.render_in(node, field, part)
            for field, part in (("left", node.left), ("comparators", node.comparators[0]))
        )
        sign = "==" if isinstance(node.ops[0], ast.Is) else "!="
        sides = [bracket(piece, precedence(node) + 1) for piece in (left, right)]
        return Piece(f"{sides[0]} {sign} {sides[1]}", precedence(node))

    def _final(self, node: ast.Subscript) -> Piece | None:
        """``torch.jit.Final[bool]`` is ``bool``."""
        fact = self.ctx.fact(node.value)
        return self.render(node.slice) if isinstance(fact, Qual) and fact.name == "torch.jit.Final" else None

    def render_in(self, parent: ast.AST, field: str, child: ast.expr) -> Piece:
        """Render a child, knowing where it stands: a variable read there may need its value taken."""
        piece = self.render(child)
        fact = self.ctx.fact(child)
        if not isinstance(fact, Tensor) or not fact.variable:
            return piece
        if isinstance(child, ast.Name | ast.Attribute) and self._einops_call(parent):
            return piece if piece.text.endswith("]") else Piece(f"{bracket(piece, ATOM)}[...]")
        if not isinstance(child, ast.Attribute):
            return piece
        if isinstance(getattr(child, "ctx", None), ast.Load) and self._value_wanted(parent, field, child):
            return self.variable_value(child, piece)
        return piece

    def _einops_call(self, node: ast.AST) -> bool:
        """Whether this calls einops, which takes arrays and no Variables."""
        fact = self.ctx.fact(node.func) if isinstance(node, ast.Call) else None
        return isinstance(fact, Qual) and fact.name.startswith("einops.")

    def _value_wanted(self, parent: ast.AST, field: str, child: ast.Attribute) -> bool:
        """Whether a Variable standing here must be read with ``[...]``: operators and subscripts take it as it is."""
        if isinstance(parent, ast.BinOp | ast.Compare | ast.UnaryOp | ast.BoolOp | ast.If | ast.IfExp):
            return False
        if isinstance(parent, ast.Subscript) and field == "value":
            return False
        if isinstance(parent, ast.Call) and isinstance(called := self.ctx.fact(parent.func), Function):
            return not _asks_for_none(called.info.node)
        return not (isinstance(parent, ast.Attribute) and parent.attr in ("shape", "dtype", "ndim", "size"))

    def _needs_brackets(
        self, parent: ast.AST, field: str, child: ast.expr, piece: Piece, start: int, stop: int
    ) -> bool:
        needed = slot(parent, field, child)
        if piece.precedence >= needed and not breaks_line(piece.text):
            return False
        if needed <= ARGUMENT:
            return piece.precedence < needed
        text = self.ctx.source.text
        before, after = text[:start].rstrip(), text[stop:].lstrip()
        enclosed = before.endswith("(") and after.startswith(")") and not _is_call_bracket(before)
        return not enclosed

    # --- names and attributes -------------------------------------------------------------------------------------

    def _value(self, node: ast.Name | ast.Attribute) -> Piece | None:
        """A library object used as a value, a base class, an annotation."""
        fact = self.ctx.fact(node)
        if isinstance(fact, Function) and fact.info.takes_rngs:
            return self._function_with_rngs(node)
        if not isinstance(fact, Qual) or not is_torch(fact.name):
            return None
        name = fact.name
        if self.in_annotation and name in ANNOTATIONS:
            return Piece(self.ctx_name(ANNOTATIONS[name]))
        if name in VALUES:
            return Piece(self.ctx_name(VALUES[name]))
        layer = LAYERS.get(name)
        if layer is not None:
            asked = self.in_annotation or self.in_isinstance(node)
            shared = shared_base(name, self.ctx.inference)
            return Piece(self.need((shared or layer.base) if asked else layer.helper))
        rule = REGISTRY.get(name)
        if rule is not None and rule.signatures[0].parameters is None and rule.emit is not None:
            return self.apply_value(rule, node)
        if rule is not None and rule.emit is not None:
            return self.function_value(rule, node)
        if self.is_namespace(node, name):
            return None
        unknown = f"t2j has no rule for {name}" if "." in name else f"the module {name} itself is used as a value"
        reason = rule.reason if rule is not None and rule.reason else unknown
        self.ctx.gap(node, name, "refused" if rule is not None else "no-rule", reason)
        return Piece(self.ctx.source.segment(node))

    def _function_with_rngs(self, node: ast.Name | ast.Attribute) -> Piece | None:
        """A function that takes rngs, used as a value: whoever calls it does not know that, so they go with it."""
        parent = self.ctx.parents.get(node)
        called = isinstance(parent, ast.Call) and (parent.func is node or getattr(parent.func, "attr", "") == "apply")
        if called or not isinstance(
            parent, ast.Call | ast.keyword | ast.BoolOp | ast.IfExp | ast.Return | ast.List | ast.Tuple
        ):
            return None
        if self.ctx.function is None or self.in_annotation:
            return None
        if isinstance(parent, ast.Call) and any(k.arg == "rngs" for k in parent.keywords):
            return None  # an earlier conversion wrote this partial
        text = self.generic(node).text
        return Piece(f"{self.need('functools')}.partial({text}, rngs={rngs_expression(self.ctx)})")

    def is_namespace(self, node: ast.expr, name: str) -> bool:
        """Whether this is the ``torch.nn`` of ``torch.nn.Linear``: the whole chain is looked at, not its parts."""
        parent = self.ctx.parents.get(node)
        return isinstance(parent, ast.Attribute) and parent.value is node

    def in_isinstance(self, node: ast.expr) -> bool:
        """Whether the class stands as the second argument of isinstance or in a comparison of types."""
        child: ast.AST = node
        parent = self.ctx.parents.get(node)
        while isinstance(parent, ast.Tuple | ast.BinOp):
            child, parent = parent, self.ctx.parents.get(parent)
        if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name):
            return parent.func.id in ("isinstance", "issubclass") and child in parent.args[1:]
        return False

    def _attribute(self, node: ast.Attribute) -> Piece | None:
        fact = self.ctx.fact(node)
        if isinstance(fact, Qual) and is_torch(fact.name):
            return self._value(node)
        if isinstance(fact, Function) and fact.info.takes_rngs:
            return self._function_with_rngs(node)
        if isinstance(node.value, ast.Call) and isinstance(part := self.render(node.value), Part):
            return Piece(part.text, part.precedence)
        owner = self.ctx.fact(node.value)
        match owner:
            case Instance() if node.attr == "training" and owner.cls.info.acts_as_module:
                return Piece(f"not {self.render(node.value).text}.deterministic", NOT)
            case Layer() | AnyModule() if node.attr == "training":
                return Piece(f"not {bracket(self.render(node.value), ATOM)}.deterministic", NOT)
            case Tensor():
                return self._tensor_attribute(node, owner)
            case Layer() | AnyModule() | Instance() if is_module(owner):
                return self.layer_attribute(node, owner)
            case Object() if owner.kind in ("dtype", "device"):
                return self._tensor_attribute(node, owner, f"torch.{owner.kind}.{node.attr}")
            case Parameter():
                return self._unknown_attribute(node)
            case _:
                return self._unknown_attribute(node) if owner == UNKNOWN else None

    def _unknown_attribute(self, node: ast.Attribute) -> Piece | None:
        """``module.training``, of which only the name says that it is a module's."""
        if node.attr != "training" or not self.ctx.inference.imports_torch:
            return None
        if isinstance(node.value, ast.Name) and node.value.id in ("module", "model", "net", "layer"):
            self.ctx.note(node, "Module.training", "probable", f"{node.value.id!r} is taken for a module")
            return Piece(f"not {node.value.id}.deterministic", NOT)
        self.ctx.gap(node, "Module.training", "unsure", "if this is a module, NNX says 'not module.deterministic'")
        return None

    def _tensor_attribute(self, node: ast.Attribute, owner: Fact, name: str = "") -> Piece | None:
        rule = REGISTRY.get(name or f"torch.Tensor.{node.attr}")
        if rule is None:
            return None
        if rule.emit is None:
            self.ctx.gap(node, rule.name, "refused", rule.reason or f"t2j has no rule for {rule.name}")
            return None
        if rule.signatures[0].parameters is not None:
            return None
        return self.apply_attribute(rule, node, owner)

    def _string_annotation(self, node: ast.Constant) -> Piece | None:
        text = str(node.value)
        for name, new in (("torch.Tensor", "jax.Array"), ("nn.Module", "nnx.Module")):
            if text in (name, f"Optional[{name}]"):
                root = new.partition(".")[0]
                self.ctx_name(new)
                segment = self.ctx.source.segment(node)
                return Piece(segment.replace(name, new)) if root else None
        if text == "Tensor":
            self.ctx_name("jax.Array")
            return Piece(self.ctx.source.segment(node).replace("Tensor", "jax.Array"))
        return None

    # --- operators ------------------------------------------------------------------------------------------------

    def _subscript(self, node: ast.Subscript) -> Piece | None:
        """``x.max(1)[0]`` and ``x[[0, 2]]``: JAX takes no lists as indices."""
        if isinstance(node.value, ast.Call) and isinstance(part := self.render(node.value), Part):
            return Piece(part.text, part.precedence)
        if not isinstance(self.ctx.fact(node.value), Tensor) or not isinstance(node.ctx, ast.Load):
            return None
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        lists = [p for p in parts if isinstance(p, ast.List) or isinstance(self.ctx.fact(p), ListOf)]
        if not lists:
            return None
        others = [p for p in parts if p not in lists]
        if len(lists) == 1 and all(isinstance(p, ast.Slice) or _marker(p) for p in others):
            narrowed = _as_slice(lists[0])
            if narrowed:
                texts = [narrowed if p in lists else self.render(p).text for p in parts]
                return Piece(f"{bracket(self.render_in(node, 'value', node.value), ATOM)}[{', '.join(texts)}]")
        texts = [
            f"{self.need('jnp')}.array({self.render(p).text})" if p in lists else self.render(p).text for p in parts
        ]
        return Piece(f"{bracket(self.render_in(node, 'value', node.value), ATOM)}[{', '.join(texts)}]")

    def _not(self, node: ast.UnaryOp) -> Piece | None:
        known = fold(node, self.ctx)
        if known is not None:
            return Piece(str(known))
        inner = self.render(node.operand)
        if inner.text.startswith("not ") and inner.precedence == NOT:
            return Piece(inner.text[4:], UNARY)
        return None

    def _bool(self, node: ast.BoolOp) -> Piece | None:
        """``self.training and not torch.jit.is_scripting()`` loses what is always true in JAX."""
        neutral = isinstance(node.op, ast.And)
        kept = [value for value in node.values if fold(value, self.ctx) is not neutral]
        if any(fold(value, self.ctx) is (not neutral) for value in kept):
            return Piece(str(not neutral))
        if len(kept) == len(node.values):
            return None
        if not kept:
            return Piece(str(neutral))
        word = " and " if neutral else " or "
        texts = [bracket(self.render(value), slot(node, "values", value)) for value in kept]
        return Piece(word.join(texts), precedence(node) if len(kept) > 1 else self.render(kept[0]).precedence)

    def _conditional(self, node: ast.IfExp) -> Piece | None:
        known = fold(node.test, self.ctx)
        if known is None:
            return None
        return self.render(node.body if known else node.orelse)

    def _lambda(self, node: ast.Lambda) -> Piece:
        with self.not_hoistable():
            return self.generic(node)

    def _scoped(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> Piece:
        with self.not_hoistable():
            for condition in (c for generator in node.generators for c in generator.ifs):
                if self._always_trained(condition):
                    self.rendered[condition] = Piece(_ALWAYS)
            piece = self.generic(node)
        return Piece(re.sub(rf"\s+if {_ALWAYS}\b", "", piece.text), piece.precedence)

    def _always_trained(self, node: ast.expr) -> bool:
        """``p.requires_grad`` of a module's parameter, in a file that freezes none."""
        if not isinstance(node, ast.Attribute) or node.attr != "requires_grad" or self.ctx.freezes:
            return False
        fact = self.ctx.fact(node.value)
        if not isinstance(fact, Tensor) or not fact.any_layout:
            return False
        reason = "every nnx.Param counts as trained; frozen ones are picked where the gradient is taken"
        self.ctx.note(node, "torch.Tensor.requires_grad", "note", reason)
        return True

    def _fstring(self, node: ast.JoinedStr) -> Piece:
        """Only expressions that keep the literal's quotes intact are put back."""
        segment = self.ctx.source.segment(node)
        start, end = self.ctx.source.span(node)
        out: list[str] = []
        position = start
        with self.not_hoistable():
            for value in node.values:
                if isinstance(value, ast.FormattedValue) and value.value.lineno > 0:
                    begin, stop = self.ctx.source.span(value.value)
                    piece = self.render_in(value, "value", value.value)
                    changed = piece.text != self.ctx.source.text[begin:stop]
                    put = bracket(piece, slot(value, "value")) if changed else piece.text
                    out += [self.ctx.source.text[position:begin], put]
                    position = stop
        text = "".join(out) + self.ctx.source.text[position:end]
        if text == segment:
            return Piece(segment)
        try:
            ast.parse(text, mode="eval")
        except SyntaxError:
            self.ctx.gap(node, "f-string", "unsure", "the converted expression does not fit into the f-string's quotes")
            return Piece(segment)
        return Piece(text)


def _asks_for_none(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether all a function does is compare with None (``exists(m.bias)``): the value itself is not wanted."""
    match function.body:
        case [ast.Return(value=ast.Compare(left=ast.Name(), ops=[ast.Is() | ast.IsNot()]))]:
            return True
        case _:
            return False


def children(node: ast.AST) -> Iterator[tuple[ast.AST, str, ast.expr]]:
    """The nearest expressions below ``node``, each with the parent and field it stands in."""
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.expr):
                yield node, field, child
            elif isinstance(child, ast.keyword | ast.comprehension | ast.arguments | ast.arg | ast.withitem):
                yield from children(child)


_DTYPE = re.compile(r"torch\.(b?float\d*|double|half|u?int\d+|int|long|short|complex\d+|cfloat|cdouble|bool)")


def _marker(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (None, Ellipsis)


def _as_slice(node: ast.expr) -> str:
    """``[-1]`` as an index keeps the axis, as the slice ``-1:`` does; empty if it isn't one literal number."""
    if not isinstance(node, ast.List) or len(node.elts) != 1:
        return ""
    try:
        value = ast.literal_eval(node.elts[0])
    except ValueError:
        return ""
    if not isinstance(value, int):
        return ""
    return "-1:" if value == -1 else f"{value}:{value + 1}"


def _is_call_bracket(before: str) -> bool:
    """Whether the bracket that ends ``before`` belongs to a call and not to a group."""
    rest = before[:-1].rstrip(" ")
    return bool(rest) and (rest[-1].isalnum() or rest[-1] in "_)]")
