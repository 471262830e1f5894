"""Assignments to attributes that hold variables, modules, or nothing yet."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.symbols import with_ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.copying import Headers
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.expressions.records import is_record
from t2j_lsp.translate.expressions.unknown_makers import report_called_attribute
from t2j_lsp.translate.expressions.variables import Variables, is_metadata
from t2j_lsp.translate.inference.forward_pass import UnknownParameter, is_known
from t2j_lsp.translate.inference.statement_reads import targets_of
from t2j_lsp.translate.rule.definitions import Instance, is_module
from t2j_lsp.translate.rule.facts import Fact, Layer, ListOf, Qual, Tensor, Tuple, is_tensor
from t2j_lsp.translate.rule.join import element, holds_array
from t2j_lsp.translate.rule.layer import LAYERS, OWN_MEANING, means_something_else
from t2j_lsp.translate.rule.names import is_class
from t2j_lsp.translate.rule.pieces import ARGUMENT, Piece, assigned, bracket
from t2j_lsp.translate.source.assignments import one_by_one, value_of
from t2j_lsp.translate.source.list_items import items_of

from .attribute_parts import is_reduced, registers
from .captured_modules import CapturedModules
from .gradient_flags import switches_nothing_off
from .kept_kinds import keeps_its_kind
from .kept_states import keeps_state
from .plain_values import PlainValues
from .replaced_modules import ReplacedModules
from .stores import Stores
from .unknown_attributes import is_used_as_module
from .unpacked_states import mark_unpacked

UNREGISTERED = (
    "PyTorch neither trains nor saves modules that are only in a plain list, and in NNX they are parts of the module: "
    "use nn.ModuleList if they are to be, else leave them out of the optimizer by a filter"
)
_PATCHED = "a method that is put into PyTorch's class changes nothing of what Flax's does: derive a class of your own"
_HIDDEN_CHILD = "in PyTorch this is one of the modules that the container runs: add it by a statement of its own"
_NO_ATTRIBUTES = "a JAX array has no attributes of its own: keep this beside it"
_NO_PART = "a part of a JAX array can't be written: make the array anew, by jax.lax.complex(real, imag)"
_CONTAINERS = ("Sequential", "ModuleList", "ModuleDict")


class AttributeStores:
    """Assignments to attributes."""

    def __init__(
        self, context: Context, renderer: ExpressionRenderer, header: Headers, stores: Stores, variables: Variables
    ) -> None:
        self.ctx = context
        self.renderer = renderer
        self.variables = variables
        self.header = header
        self.stores = stores
        self.captured = CapturedModules(context, renderer)
        self.plain = PlainValues(context, renderer)
        self.replaced = ReplacedModules(context, renderer)

    def annotated(self, node: ast.AnnAssign) -> bool:
        """``x: torch.Tensor = v``: the annotation and the value."""
        self.header.annotation(node.annotation)
        target = node.target
        if node.value is not None and isinstance(target, ast.Attribute):
            owner = self.ctx.fact(target.value)
            first = isinstance(owner, Instance) and self.plain.comes_first(node, target, owner)
            first |= isinstance(owner, Instance) and keeps_state(self.ctx, node, target, owner)
            if first and isinstance(owner, Instance) and not self._is_flaxs(owner):
                text = self.ctx.source.segment(node.value)
                self.ctx.edits.replace(node.value, f"{self.renderer.need('nnx')}.data({text})")
                return True
        if node.value is not None:
            self.header.expression(node, "value", node.value)
        return True

    def assigned(self, node: ast.Assign) -> bool:
        """Assignments to attributes that hold variables."""
        target = node.targets[0]
        if (reason := next(filter(None, map(self._refused_of_array, targets_of(node))), None)) is not None:
            self.ctx.report.gap(node, "Tensor.__setattr__", "refused", reason)
            return False
        if any(map(self._is_hidden_child, targets_of(node))):
            self.ctx.report.gap(node, "Module.__setattr__", "refused", _HIDDEN_CHILD)
            return False
        if isinstance(target, ast.Tuple) and len(node.targets) == 1:
            mark_unpacked(self.ctx, self.renderer, node, target, self._unknown_to_constructors)
            self._mark_each(node, target)
        if len(node.targets) != 1 or not isinstance(target, ast.Attribute):
            return False
        owner = self.ctx.fact(target.value)
        if isinstance(owner, Qual) and is_class(owner.name):
            self.ctx.report.gap(node, f"{owner.name}.{target.attr}", "refused", _PATCHED)
            return True
        asks = isinstance(node.value, ast.Constant) and node.value.value is True
        if target.attr == "requires_grad" and isinstance(owner, Tensor) and asks and not owner.variable:
            self.ctx.edits.delete(node)
            return True
        if switches_nothing_off(self.ctx, node, target):
            self.ctx.edits.delete(node)
            return True
        if target.attr == "requires_grad" and isinstance(owner, Tensor):
            self.ctx.report.gap(
                node,
                "Tensor.requires_grad",
                "refused",
                "freeze parameters with nnx.DiffState and an optimizer mask instead",
            )
            return True
        if target.attr == "data" and (isinstance(owner, Tensor) or self.stores.any_layer.writes(target.value)):
            return self.stores.data(node, target)
        if target.attr == "data" and isinstance(target.value, ast.Name) and isinstance(owner, UnknownParameter):
            if isinstance(self.ctx.fact(node.value), Tensor):
                name = repr(target.value.id)
                reason = f"if {name} is a tensor or parameter, JAX can't write into the caller's: return the new array"
                self.ctx.report.gap(node, "Tensor.data", "unsure", f"{reason}, or annotate {name}")
                return True
        if isinstance(owner, Tensor) and owner.variable and is_metadata(target.attr):
            return self._metadata(node, target.value, target.attr, node.value)
        if is_module(owner) and target.attr == "training":
            self.ctx.report.gap(node, "Module.training", "refused", "call model.train() or model.eval() instead")
            return True
        value = self.ctx.fact(node.value)
        is_new_variable = isinstance(value, Tensor) and value.variable
        if is_module(owner) and is_new_variable and isinstance(node.value, ast.Attribute):
            if self.renderer.render(node.value).text == self.ctx.source.segment(node.value):
                return True  # both modules have the parameter, in NNX too
            if self.variables.refuses_second_name(node, node.value, "Module.__setattr__"):
                return True
        if not isinstance(owner, Instance):
            return False
        before = self.ctx.inference.has_jax and not self.ctx.source.is_marked(node)  # t2j's own, of an earlier time
        if means_something_else(owner, target.attr) and not before:
            self.ctx.report.gap(node, "Module.__setattr__", "refused", OWN_MEANING)
            return True
        if owner.cls.info.is_module:
            report_called_attribute(self.ctx, target, node.value, owner.cls.info)
        if self.captured.assigned(node, target, owner):
            return True
        if owner.cls.info.layer_base in ("torch.nn.Sequential", "torch.nn.ModuleDict") and is_module(value):
            return self._child_of_container(node, target, owner.cls.info.layer_base)
        old = owner.cls.info.attribute(target.attr)
        if isinstance(old, Tensor) and old.variable and not is_new_variable and isinstance(value, Tensor):
            if self._makes_it(node, target):
                return False
            kept = keeps_its_kind(self.ctx, target, node.value, owner)
            holder, new = self.ctx.source.segment(target), self.renderer.argument(node.value)
            self.ctx.edits.replace(
                node, f"{holder}[...] = {assigned(new)}" if kept else f"{holder}.set_value({bracket(new, ARGUMENT)})"
            )
            return True
        if self._is_flaxs(owner):
            return False
        if self.plain.comes_first(node, target, owner) or keeps_state(self.ctx, node, target, owner):
            text = self.ctx.source.segment(node.value)
            self.ctx.edits.replace(node.value, f"{self.renderer.need('nnx')}.data({text})")
            return True
        if owner.cls.info.is_module and (marked := self.replaced.marked(node, target)) is not None:
            self.ctx.edits.replace(node.value, marked)
            return True
        if added := self.plain.modules_added(node, target, owner, self.ctx.scope.function):
            self._report_hidden(node, owner, added)
            self.ctx.edits.replace(node.value, f"{self.renderer.need('nnx')}.List([])")
            return True
        if isinstance(value, Tuple | ListOf) and owner.cls.info.is_module:
            items = value.items if isinstance(value, Tuple) else ()
            item = next((item for item in items if holds_array(item)), element(value))
            return self._container_attribute(node, target, item)
        if (
            (is_module(value) or is_tensor(value) or not is_known(value) and is_reduced(node.value))
            and owner.cls.info.is_module
            and self._begins(node, target, owner, node.value)
            or owner.cls.info.is_module
            and (is_record(value) or self._is_module_behind(node, target, owner))
        ):
            text = self.renderer.render(node.value).text
            self.ctx.edits.replace(node.value, f"{self.renderer.need('nnx')}.data({text})")
            return True
        return False

    def augmented(self, node: ast.AugAssign) -> bool:
        """``c.real += v``, which no array takes; what is added is rewritten all the same."""
        if (reason := self._refused_of_array(node.target)) is not None:
            self.ctx.report.gap(node, "Tensor.__setattr__", "refused", reason)
        return False

    def _is_hidden_child(self, target: ast.expr) -> bool:
        """Whether a module becomes a child of a container in a way that Flax's wouldn't see.

        That is any attribute of an ``nn.ModuleList``, and one of several that a Sequential or dict is given at once.
        """
        owner = self.ctx.fact(target.value) if isinstance(target, ast.Attribute) else None
        value = value_of(target, self.ctx.source.parents)
        if not isinstance(owner, Instance) or value is None or not is_module(self.ctx.fact(value)):
            return False
        base = (owner.cls.info.layer_base or "").rpartition(".")[2]
        statement = self.ctx.source.parents.get(target)
        alone = isinstance(statement, ast.Assign) and len(statement.targets) == 1
        return base == "ModuleList" or base in _CONTAINERS and not alone

    def _refused_of_array(self, target: ast.expr) -> str | None:
        """Why an attribute can't be set, where it is one of an array: ``x.scale = 3``, ``c.real = v``."""
        owner = self.ctx.fact(target.value) if isinstance(target, ast.Attribute) else None
        if not isinstance(target, ast.Attribute) or not isinstance(owner, Tensor) or not owner.sure:
            return None
        if target.attr in ("real", "imag"):
            return _NO_PART
        settable = owner.variable or target.attr.startswith("require") or target.attr in ("data", "grad")
        return None if settable else _NO_ATTRIBUTES

    def _is_flaxs(self, owner: Instance) -> bool:
        """Whether an earlier conversion wrote the class, and marked what is data: it is Flax's, or asks for rngs."""
        for info in owner.cls.info.ancestry() if self.ctx.inference.has_jax else ():
            init = info.methods.get("__init__")
            asks = init is not None and any(a.arg == "rngs" for a in init.node.args.kwonlyargs)
            if asks or "nnx.Module" in map(ast.unparse, info.node.bases):
                return True
        return False

    def set_by_name(self, node: ast.Expr) -> bool:
        """``setattr(parameter, "name", value)``; a parameter that a module is given stays one."""
        match node.value:
            case ast.Call(func=ast.Name(id="setattr"), args=[owner, key, ast.Attribute() as value]) if is_module(
                self.ctx.fact(owner)
            ):
                if self.variables.refuses_second_name(node, value, "Module.__setattr__"):
                    return True
                if (variable := self.variables.parameter(value)) is not None:
                    holder, name = (self.renderer.render(part).text for part in (owner, key))
                    self.ctx.edits.replace(node.value, f"setattr({holder}, {name}, {variable[0]})")
                    return True
            case ast.Call(func=ast.Name(id="setattr"), args=[owner, ast.Constant(value=str() as name), value]):
                fact = self.ctx.fact(owner)
                known = isinstance(fact, Tensor) and fact.variable and is_metadata(name)
                return known and self._metadata(node, owner, name, value)
        return False

    def _metadata(self, node: ast.stmt, owner: ast.expr, name: str, value: ast.expr) -> bool:
        """``parameter.name = value``: a Variable keeps it beside its array, and jit asks for its hash."""
        variable, fact = self.variables.parameter(owner), self.ctx.fact(value)
        if variable is None or isinstance(value, ast.Dict | ast.List | ast.Set) or is_tensor(fact) or is_module(fact):
            reason = "a Variable has metadata that can be hashed, and no attributes: keep this beside it"
            self.ctx.report.gap(node, "Tensor.__setattr__", "refused", reason)
            return True
        text = f"{variable[0]}.set_metadata({name}={self.renderer.render(value).text})"
        self.ctx.edits.replace(node, text)
        return True

    def of_class(self, node: ast.Assign) -> bool:
        """``act = nn.SiLU()`` in a class body: what has become a function would be a method there."""
        scope = self.ctx.scope
        if scope.class_info is None or scope.functions or not isinstance(self.ctx.fact(node.value), Layer):
            return False
        text = self.renderer.render(node.value).text
        if not isinstance(ast.parse(text, mode="eval").body, ast.Name | ast.Attribute | ast.Lambda):
            return False
        self.ctx.edits.replace(node.value, f"staticmethod({text})")
        return True

    def _makes_it(self, node: ast.Assign, target: ast.Attribute) -> bool:
        """Whether a constructor's assignment comes first on its way: another branch makes the variable."""
        function, source = self.ctx.scope.function, self.ctx.source
        if function is None or function.name != "__init__":
            return False
        around = list(with_ancestors(node, source.parents))
        others = [
            n for n in symbols.walk(function.node) if isinstance(n, ast.stmt) and n is not node and _gives(n, target)
        ]
        before = (n for n in others if n.lineno < node.lineno)
        return bool(others) and not any(one in around for n in before for one in source.block_of(n) or ())

    def _mark_each(self, node: ast.Assign, targets: ast.Tuple) -> None:
        """``self.layers, self.scale = nnx.data(layers), nnx.data(scale)``, where plain values were there before."""
        self.renderer.forget([node.value])
        for target, value in one_by_one(targets, node.value):
            owner = self.ctx.fact(target.value) if isinstance(target, ast.Attribute) else None
            if not isinstance(target, ast.Attribute) or not isinstance(owner, Instance):
                continue
            fact, is_module_class = self.ctx.fact(value), owner.cls.info.is_module
            if is_module_class and (is_module(fact) or is_tensor(fact)) and self._begins(node, target, owner, value):
                self.renderer.put(
                    value, Piece(f"{self.renderer.need('nnx')}.data({self.renderer.argument(value).text})")
                )

    def _begins(self, node: ast.Assign, target: ast.Attribute, owner: Instance, value: ast.expr) -> bool:
        """Whether NNX has to be told that the attribute is data from here on."""
        if not is_module(self.ctx.fact(value)) and self._unknown_to_constructors(target, owner):
            return True
        return not self.plain.is_function(value) and self.plain.comes_behind(node, target, owner)

    def _is_module_behind(self, node: ast.Assign, target: ast.Attribute, owner: Instance) -> bool:
        """Whether something unknown that comes behind a plain value is a module by what its class calls of it."""
        behind = not is_known(self.ctx.fact(node.value)) and self.plain.comes_behind(node, target, owner)
        return behind and is_used_as_module(self.ctx, node, target, owner.cls.info)

    def _unknown_to_constructors(self, target: ast.Attribute, owner: Instance) -> bool:
        """Whether no constructor gives the attribute, so that it begins to be in a transformed call, on a copy."""
        if isinstance(target.value, ast.Name) and self._in_constructor():
            return False
        authors = (author for info in owner.cls.info.ancestry() for author in info.said.get(target.attr, {}))
        return not any(author is not None and author.name == "__init__" for author in authors)

    def _in_constructor(self) -> bool:
        function = self.ctx.scope.function
        return function is not None and function.name == "__init__"

    def _child_of_container(self, node: ast.Assign, target: ast.Attribute, base: str) -> bool:
        """``self.norm = layer`` in a subclass of Sequential makes the layer one of its steps."""
        holder, value = self.renderer.render(target.value).text, assigned(self.renderer.render(node.value))
        if base == "torch.nn.Sequential":
            self.ctx.edits.replace(node, f'{holder}.add_module("{target.attr}", {value})')
        else:
            self.ctx.edits.replace(node, f'{holder}["{target.attr}"] = {value}')
        return True

    def _container_attribute(self, node: ast.Assign, target: ast.Attribute, item: object) -> bool:
        """A Python list of modules or arrays as an attribute: NNX wants it marked as data."""
        if is_module(item):  # type: ignore[arg-type]
            wrapper = f"{self.renderer.need('nnx')}.List"
            if isinstance(node.value, ast.Dict):
                wrapper = f"{self.renderer.need('nnx')}.Dict"
            owner = self.ctx.fact(target.value)
            if isinstance(owner, Instance):
                self._report_hidden(node, owner, items_of(node.value))
        elif holds_array(item):  # type: ignore[arg-type]
            wrapper = f"{self.renderer.need('nnx')}.data"
        else:
            return False
        text = self.renderer.render(node.value).text
        span = self.ctx.source.span
        if isinstance(node.value, ast.Tuple) and span(node.value.elts[0])[0] == span(node.value)[0]:
            text = f"({text})"  # a tuple that is written without brackets
        owner = self.ctx.fact(target.value)
        if is_module(item) and isinstance(owner, Instance) and self.plain.comes_behind(node, target, owner):  # type: ignore[arg-type]
            wrapper, text = f"{self.renderer.need('nnx')}.data", f"{wrapper}({text})"
        self.ctx.edits.replace(node.value, f"{wrapper}({text})")
        return True

    def _report_hidden(self, node: ast.Assign, owner: Instance, items: list[ast.expr]) -> None:
        """Report modules with parameters that a plain list holds, and the class registers under no other name."""
        hidden = [i for i in items if not isinstance(i, ast.Attribute) and _has_parameters(self.ctx.fact(i))]
        known = {*map(ast.unparse, node.targets), *map(ast.unparse, hidden)}
        if hidden and not any(registers(n, known) for n in symbols.walk(owner.cls.info.node)):
            self.ctx.report.gap(node, "list", "refused", UNREGISTERED)


def _gives(node: ast.AST, target: ast.Attribute) -> bool:
    """Whether a statement gives the attribute a value: ``self.x = ...``, ``self.register_buffer("x", ...)``."""
    match node:
        case ast.Assign(targets=targets):
            return ast.unparse(target) in map(ast.unparse, targets)
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=owner, attr="register_buffer" | "register_parameter"),
                args=[ast.Constant(value=name), *_],
            )
        ):
            return name == target.attr and ast.unparse(owner) == ast.unparse(target.value)
        case _:
            return False


def _has_parameters(fact: Fact) -> bool:
    """Whether it is surely a module with parameters."""
    if isinstance(fact, Layer):
        return fact.name in LAYERS and LAYERS[fact.name].random and not fact.name.rpartition(".")[2].endswith("Dropout")
    return isinstance(fact, Instance) and is_module(fact)
