"""Names that stand for a library's objects: values, base classes, annotations."""

from __future__ import annotations

import ast

from t2j_lsp.translate.inference.choices import chosen_layers
from t2j_lsp.translate.inference.looked_up import asks_for_rngs
from t2j_lsp.translate.inference.type_comparisons import type_comparison
from t2j_lsp.translate.layout.first import shared_base
from t2j_lsp.translate.rule.definitions import Class, Function, is_module_class
from t2j_lsp.translate.rule.facts import ModuleClass, Object, OptimizerFunction, Qual, QualOrNone
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import BASES, CLASSES, TorchClass
from t2j_lsp.translate.rule.names import is_dtype, is_torch
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.rule.record import REGISTRY

from .context import Context
from .copying import Copier
from .function_values import FunctionValues
from .handed_classes import GIVEN_RNGS, is_called_with_rngs, is_called_without_rngs, was_converted
from .handlers import ExpressionRenderer
from .methods_by_name import method_by_name
from .rngs import rngs_expression
from .rule_application import RuleApplication
from .torch_only import namespace
from .walk_order import reads_of

_ASKING = frozenset({"isinstance", "issubclass", "super", "type", "cast", "hasattr", "getattr", "print", "id", "repr"})
"""Functions that call nothing they are given."""
_OWN_OPTIMIZER = "a class of optimizers is used as a value, and a function of other arguments stands for it: call it"
_WIDE = {
    "float64": ({"float64", "double"}, {"float32", "float"}),
    "complex128": ({"complex128", "cdouble"}, {"complex64", "cfloat"}),
    "int64": ({"int64", "long"}, {"int32", "int"}),
}
"""Dtypes that become narrower ones, which stay what they are as keys beside those."""


class LibraryObjects:
    """What a library object used as a value becomes."""

    def __init__(
        self,
        context: Context,
        renderer: ExpressionRenderer,
        copier: Copier,
        rules: RuleApplication,
        functions: FunctionValues,
    ) -> None:
        self.ctx = context
        self.renderer = renderer
        self.copier = copier
        self.rules = rules
        self.functions = functions

    def value(self, node: ast.Name | ast.Attribute | ast.Call) -> Piece | None:
        """A library object used as a value, a base class, an annotation."""
        fact = self.ctx.fact(node)
        if isinstance(fact, Function | Class) and asks_for_rngs(fact.info):
            if not is_module_class(fact) or is_called_without_rngs(self.ctx.inference, node):
                return self.function_with_rngs(node)
        elif isinstance(fact, Class) and is_called_with_rngs(self.ctx.inference, node):
            self.ctx.report.gap(node, fact.name, "refused", GIVEN_RNGS)
        if not isinstance(fact, Qual) or not is_torch(fact.name):
            return None
        if isinstance(fact, QualOrNone) and not self._is_imported(node):
            return None
        if isinstance(fact, OptimizerFunction) and not self.ctx.scope.annotation:
            self.ctx.report.gap(node, fact.signature.partition("(")[0], "function-value", _OWN_OPTIMIZER)
            return None
        name = fact.name
        known = CLASSES.get(name, TorchClass())
        becomes = (known.annotation if self.ctx.scope.annotation else None) or known.value
        if becomes:
            return Piece(self.renderer.need(becomes))
        if self.ctx.scope.annotation and known.annotation is not None:
            return Piece("object")
        layer = LAYERS.get(name)
        if layer is not None:
            asked = self.ctx.scope.annotation or self._in_isinstance(node)
            shared = shared_base(name, self.ctx.inference)
            return Piece(self.renderer.need((shared or layer.base) if asked else layer.helper))
        if name in BASES and self._in_isinstance(node):
            bases = [self.renderer.need(one) for one in BASES[name].becomes]
            self.ctx.report.count_converted()
            return Piece(bases[0] if len(bases) == 1 else f"({', '.join(bases)})")
        rule = REGISTRY.get(name)
        if rule is not None and rule.signatures[0].parameters is None and rule.emit is not None:
            piece = self.rules.apply_value(rule, node)
            table = self.ctx.source.parents.get(node)
            if piece is not None and is_dtype(name) and isinstance(table, ast.Dict) and node in table.keys:
                return self._key(name, table, piece)
            return piece
        if rule is not None and rule.emit is not None:
            return self.functions.value(rule, node)
        if self._is_namespace(node):
            return None
        if self.ctx.scope.annotation and rule is None and any(r.startswith(f"{name}.") for r in REGISTRY.rules):
            self.ctx.report.note(node, name, "exact", f"{name} is a module, which as an annotation says nothing")
            return Piece("object")
        if self._is_asked_for(node) and name in ("torch", "torch.nn", "torch.nn.functional"):
            return Piece(self.renderer.need("jax"))
        unknown = f"t2j has no rule for {name}"
        if name in REGISTRY.prefixes or any(r.startswith(f"{name}.") for r in (*REGISTRY.rules, *REGISTRY.prefixes)):
            unknown = f"the module {name} itself is used as a value"
        if (looked_up := self._looked_up(node)) is not None:
            unknown = f"what {looked_up} is isn't known here: look it up in a dict of those that it may be"
        reason = rule.reason if rule is not None and rule.reason else unknown
        self.ctx.report.gap(node, name, "refused" if rule is not None else "no-rule", reason)
        return Piece(self.ctx.source.segment(node))

    def _is_imported(self, node: ast.expr) -> bool:
        """Whether an import may bind a name: what is in its place has that name no longer."""
        return isinstance(node, ast.Name) and node.id in self.ctx.inference.torch_imports

    def _is_asked_for(self, node: ast.expr) -> bool:
        """Whether code asks if a package could be imported: ``if torch is None: raise ImportError(...)``."""
        match self.ctx.source.parents.get(node):
            case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
                return left is node
        return False

    def member(self, node: ast.Call) -> Piece | None:
        """``getattr(nn, "Linear")`` as a value, and ``getattr(nn, kind)`` as a table of the layers that it may be."""
        if node in self.ctx.inference.state.chosen_names and isinstance(self.ctx.fact(node), ModuleClass):
            layers = chosen_layers(self.ctx.fact(node.args[0]), self.ctx.inference.state.chosen_names[node])
            table = ", ".join(f'"{name}": {self.renderer.need(rule.helper)}' for name, rule in layers.items())
            return Piece(f"{{{table}}}[{self.renderer.render(node.args[1]).text}]")
        named = isinstance(node.func, ast.Name) and node.func.id == "getattr"
        if named and isinstance(self.ctx.fact(node), Qual):
            return self.value(node)
        return method_by_name(self.ctx, node)

    def function_with_rngs(self, node: ast.Name | ast.Attribute | ast.Call) -> Piece | None:
        """A function or class that takes rngs, used as a value: whoever calls it may not know that, so they go along.

        A variable that is only called has none: its calls are given them.
        """
        parent, fact = self.ctx.source.parents.get(node), self.ctx.fact(node)
        if was_converted(fact):
            return None
        match parent:
            case ast.Call(func=func) if func is node or getattr(func, "attr", "") == "apply":
                return None
            case ast.Call() if any(k.arg == "rngs" for k in parent.keywords):
                return None  # an earlier conversion wrote this partial
            case ast.Call(func=ast.Name(id=name)) if name in _ASKING:
                return None
            case ast.Assign(value=value) if value is node:
                reads = reads_of(self.ctx.inference, parent)
                calls = [p.func for r in reads or () if isinstance(p := self.ctx.source.parents.get(r), ast.Call)]
                if reads is not None and len(reads) == len(calls) and all(r in calls for r in reads):
                    return None
            case ast.Call() | ast.keyword() | ast.BoolOp() | ast.IfExp() | ast.Return() | ast.List() | ast.Tuple():
                pass
            case ast.Dict() if node in parent.values:
                pass
            case _:
                return None
        if self.ctx.scope.annotation or self._in_isinstance(node) or self._is_variable(node):
            return None
        text = self.copier.generic(node).text
        return Piece(f"{self.renderer.need('functools')}.partial({text}, rngs={rngs_expression(self.ctx, node)})")

    def _is_variable(self, node: ast.expr) -> bool:
        """Whether it is a name that was given the function with its rngs, or None, by an assignment."""
        if not isinstance(node, ast.Name):
            return False
        home, places = self.ctx.source.home(node), self.ctx.source.bound_at.get(node.id, ())
        return any(isinstance(place, ast.Name) and self.ctx.source.home(place) is home for place in places)

    def _key(self, name: str, table: ast.Dict, piece: Piece) -> Piece:
        """A dtype as a key of a dict: jnp.float32 has another hash than the dtype of an array."""
        jnp = self.renderer.need("jnp")
        facts = [self.ctx.fact(key) for key in table.keys if key is not None]
        keys = {fact.name.removeprefix("torch.") for fact in facts if isinstance(fact, Qual)}
        wide = next(
            (w for w, names in _WIDE.items() if name.removeprefix("torch.") in names[0] and keys & names[1]), ""
        )
        text = f"{jnp}.{wide}" if wide else piece.text
        return Piece(f"{jnp}.dtype({text})") if self._is_asked_by_arrays(table) else Piece(text)

    def _is_asked_by_arrays(self, table: ast.Dict) -> bool:
        """Whether a dict is asked for an array's dtype: ``{torch.float32: 1e-6}[x.dtype]``."""
        source = self.ctx.source
        match source.parents.get(table):
            case ast.Subscript(slice=index):
                return self._is_arrays_dtype(index)
            case ast.Assign(targets=[target]):
                name = ast.unparse(target)
                asked = (n for n in source.nodes if isinstance(n, ast.Subscript) and self._is_arrays_dtype(n.slice))
                return any(ast.unparse(n.value) == name for n in asked)
            case _:
                return False

    def _is_arrays_dtype(self, node: ast.expr) -> bool:
        fact = self.ctx.fact(node)
        return isinstance(fact, Object) and fact.kind == "dtype"

    def _is_namespace(self, node: ast.expr) -> bool:
        """Whether this is the ``torch.nn`` of ``torch.nn.Linear``: the whole chain is looked at, not its parts."""
        parent = self.ctx.source.parents.get(node)
        return isinstance(parent, ast.Attribute) and parent.value is node

    def _looked_up(self, node: ast.expr) -> str | None:
        """The whole of ``getattr(nn, kind)`` or ``nn.__dict__[kind]``, of which this is the namespace."""
        parent = self.ctx.source.parents.get(node)
        if isinstance(parent, ast.Call | ast.Subscript) and namespace(self.ctx, parent) is not None:
            return self.ctx.source.segment(parent)
        return None

    def _in_isinstance(self, node: ast.expr) -> bool:
        """Whether the class stands as the second argument of isinstance or in a comparison of types."""
        child: ast.AST = node
        parent = self.ctx.source.parents.get(node)
        while isinstance(parent, ast.Tuple | ast.List | ast.Set | ast.BinOp):
            child, parent = parent, self.ctx.source.parents.get(parent)
        if parent is not None and (asked := type_comparison(parent)) is not None:
            return asked.classes is child
        if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name):
            return parent.func.id in ("isinstance", "issubclass") and child in parent.args[1:]
        return isinstance(parent, ast.Assign) and self._names_kinds(parent)

    def _names_kinds(self, made: ast.Assign) -> bool:
        """Whether classes get a name that only types are asked for by: ``decayed = (nn.Linear, nn.Conv2d)``."""
        match made.targets:
            case [ast.Name(id=name)]:
                named = [n for n in self.ctx.source.nodes if isinstance(n, ast.Name) and n.id == name]
                reads = [n for n in named if isinstance(n.ctx, ast.Load)]
                alone = len(reads) == len(named) - 1 and bool(reads)
                return alone and all(self._in_isinstance(read) for read in reads)
        return False
