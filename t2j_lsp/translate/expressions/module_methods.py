"""The methods that torch's nn.Module defines, called on modules."""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.inference.gates import Gate
from t2j_lsp.translate.inference.module_methods import resets_layers
from t2j_lsp.translate.inference.named_arrays import NAMED, is_dict
from t2j_lsp.translate.inference.ordered_walks import flattens
from t2j_lsp.translate.rule.definitions import Instance, is_module, is_module_base, layer_names
from t2j_lsp.translate.rule.facts import AnyModule, Fact, Object, Qual
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.names import is_dtype
from t2j_lsp.translate.rule.nullness import may_be_none
from t2j_lsp.translate.rule.pieces import ATOM, Piece, assigned, bracket, slot
from t2j_lsp.translate.rule.values import WALKS

from .base_constructors import BaseConstructors
from .base_methods import called_in_flax, refused_of_base
from .container_children import contents_of
from .context import Context
from .copying import Copier, arguments_only
from .forward_hooks import HOOKS, problem_of_hook
from .frozen_parameters import has_buffers, lists_frozen
from .handlers import ExpressionRenderer
from .module_modes import ModuleModes
from .module_refusals import ASSIGN, CAST, REFUSED, REFUSED_OF_LAYERS, STAYS
from .records import mark_records
from .resets import RESETS, Resets
from .rngs import rngs_expression
from .state_dicts import problem_of_state
from .state_snapshots import read_at_once
from .unknown_makers import ADDING, report_unknown_makers
from .walk_order import WALKING, order_matters, writes_to_parts

DROPPED_METHODS = frozenset({"cuda", "cpu", "ipu", "mtia", "xpu", "float", "requires_grad_", "share_memory", "compile"})
FIRST = Gate(words=frozenset({"next"}))
"""A call for the first of a module's parameters."""
DICTS = Gate(words=NAMED)
"""A dict of a module's arrays."""


_WRITTEN_ANYWAY = frozenset({"forward", "train", "eval"})
"""Methods that become others also where a class of the file defines them."""
_REPLACING = frozenset({"setattr", "delattr", "add_module", "register_module", "__setattr__", "_modules", "getattr"})


class ModuleMethods:
    """What methods of modules become."""

    def __init__(self, context: Context, renderer: ExpressionRenderer, copier: Copier) -> None:
        self.ctx = context
        self.renderer = renderer
        self.copier = copier

    def method(self, node: ast.Call, func: ast.Attribute, owner: Fact) -> Piece | None:
        """A method that torch's nn.Module defines, called on a module."""
        name = func.attr
        if name not in _WRITTEN_ANYWAY and self.defines(owner, name):
            return None  # a method of the file's own
        receiver = self.renderer.render(func.value)
        if name in ADDING:
            report_unknown_makers(self.ctx, node.args[-1:])
        frozen = name in ("parameters", "named_parameters") and lists_frozen(self.ctx.inference, node)
        if frozen and (name == "named_parameters" or has_buffers(self.ctx.inference)):
            return self._refused(node, name, "those without gradient are buffers here, and no parameters")
        if frozen:
            need = self.renderer.need
            kinds = f"({need('nnx')}.Param, {need('Buffer')})"
            return Piece(f"{need('jax')}.tree.leaves({need('nnx')}.state({bracket(receiver, ATOM)}, {kinds}))")
        if node in self.ctx.inference.state.named_arrays:
            return self._named_arrays(node, name, receiver.text)
        if (contents := contents_of(self.ctx, self.renderer, node, owner, receiver)) is not None:
            return contents
        if name in WALKING and order_matters(self.ctx.inference, node):
            reason = "what is done here depends on PyTorch's order of them, and Flax walks in alphabetical order"
            return self._refused(node, name, f"{reason}: name them one by one")
        match name:
            case "forward" if not isinstance(owner, Instance) or not owner.cls.info.has_own_call:
                return self.forward_call(node, func)
            case "eval" | "train":
                return ModuleModes(self.ctx, self.renderer).switched(node, receiver)
            case "to":
                return self._to(node, receiver)
            case "double" if not self.ctx.options.x64:
                return self._in_float32(node, name, receiver)
            case _ if name in DROPPED_METHODS:
                return receiver
            case _ if name in HOOKS:
                if (problem := problem_of_hook(self.ctx, node)) is not None:
                    return self._refused(node, name, problem)
                hook = self.renderer.argument([*node.args, *(k.value for k in node.keywords)][0])
                return Piece(f"{self.renderer.need(HOOKS[name])}({receiver.text}, {hook.text})")
            case "add_module" | "register_module" if "torch.nn.Sequential" in layer_names(owner):
                return None  # the helper has it, under the first name
            case "add_module" | "register_module" if _is_plain(owner) and len(node.args) == 2 and not node.keywords:
                key, child = (self.renderer.argument(a).text for a in node.args)
                return Piece(f"setattr({bracket(receiver, ATOM)}, {key}, {child})")
            case _:
                pass
        if name in ("state_dict", "load_state_dict"):
            if isinstance(owner, AnyModule) and any(name in i.methods for i in self.ctx.inference.classes.values()):
                return self._refused(
                    node, name, "a class of this file has one of its own, and this may be of that class"
                )
        piece = self._parts(node, name, receiver) or self._kept(node, name, receiver)
        piece = piece or Resets(self.ctx, self.renderer).call(node, name, owner, receiver)
        any_layer = layer_names(owner) or name in RESETS and not isinstance(owner, Instance)
        refused = REFUSED | REFUSED_OF_LAYERS if any_layer else REFUSED
        if piece is not None or name not in refused:
            return piece
        return self._refused(node, name, refused[name])

    def _parts(self, node: ast.Call, name: str, receiver: Piece) -> Piece | None:
        """The walks over a module's parts."""
        need, text = self.renderer.need, bracket(receiver, ATOM)
        match name:
            case "parameters" if writes_to_parts(self.ctx.inference, node):
                return Piece(f"[p for _, p in {WALKS['parameters'].format(receiver.text, nnx=need('nnx'))}]")
            case "parameters":
                return Piece(f"{need('jax')}.tree.leaves({need('nnx')}.state({text}, {need('nnx')}.Param))")
            case "buffers":
                nnx = need("nnx")
                state = f"{nnx}.state({text}, ({need('Buffer')}, {nnx}.BatchStat))"
                if writes_to_parts(self.ctx.inference, node):
                    return Piece(f"[b for _, b in {nnx}.to_flat_state({state})]")
                return Piece(f"{need('jax')}.tree.leaves({state})")
            case "modules":
                return Piece(f"(m for _, m in {need('nnx')}.iter_modules({text}))")
            case "get_submodule" if len(node.args) == 1 and not node.keywords and not self._replaces():
                return Piece(f"{need('get_submodule')}({receiver.text}, {self.renderer.argument(node.args[0]).text})")
            case "named_modules" | "named_parameters" if not node.args and not node.keywords:
                return self._named(node, receiver.text, name)
            case _:
                return None

    def _replaces(self) -> bool:
        """Whether the file may give a part another child by its name: Flax's Sequential has its children in a list."""
        return not _REPLACING.isdisjoint(self.ctx.source.words)

    def _kept(self, node: ast.Call, name: str, receiver: Piece) -> Piece | None:
        """What puts state into a module or takes it out."""
        need, text = self.renderer.need, bracket(receiver, ATOM)
        match name:
            case "register_buffer" | "register_parameter" if (parts := registration(node)) is not None:
                key, value, persistent = parts
                return Piece(
                    f"setattr({text}, {self.renderer.render(key).text}, {self.registered(value, name, persistent)})"
                )
            case "state_dict" if self.ctx.inference.holds_tests and not node.args and not node.keywords:
                return Piece(f"{need('torch_state')}({receiver.text})")
            case "state_dict" if not node.args and not node.keywords:
                if (reason := problem_of_state(self.ctx.inference, node)) is not None:
                    return self._refused(node, name, reason)
                kept = "torch_arrays" if read_at_once(self.ctx.inference) else "StateDict"
                return Piece(f"{need(kept)}({receiver.text})")
            case "load_state_dict" if self._loads_strictly(node):
                return Piece(
                    f"{need('load_torch_state')}({receiver.text}, {self.renderer.argument(node.args[0]).text})"
                )
            case "load_state_dict" if (given := _loaded(node)) is not None:
                return self._loaded_from(node, receiver.text, *given)
            case _:
                return None

    def _loaded_from(
        self, node: ast.Call, module: str, state: ast.expr, strict: ast.expr | None, more: ast.expr | None
    ) -> Piece:
        """``load_state_dict(module, state)``, where ``more`` keywords may be handed on, of which ``strict`` is one."""
        name = "load_state_dict"
        given = [("", state), ("strict=", strict), ("**", more)]
        texts = [f"{start}{self.renderer.argument(value).text}" for start, value in given if value is not None]
        if more is not None:
            reason = f"Of keywords it takes strict=: {ASSIGN}."
            self.ctx.report.note(node, f"torch.nn.Module.{name}", "note", reason)
        return Piece(f"{self.renderer.need(name)}({', '.join([module, *texts])})")

    def resets(self, node: ast.Attribute) -> bool:
        """Whether ``m.reset_parameters()`` may be a layer's."""
        inference = self.ctx.inference
        return node.attr in RESETS and resets_layers(inference.source, inference.classes.values())

    def defines(self, owner: Fact, name: str) -> bool:
        """Whether the file's own class has a method of that name."""
        return isinstance(owner, Instance) and owner.cls.info.method(name) is not None

    def forward_call(self, node: ast.Call, func: ast.Attribute) -> Piece:
        """``self.encoder.forward(x)`` is ``self.encoder(x)``."""
        _, end = self.ctx.source.span(node)
        _, func_end = self.ctx.source.span(func)
        return Piece(
            bracket(self.renderer.render(func.value), ATOM) + self.copier.splice(arguments_only(node), func_end, end)
        )

    def super_call(self, node: ast.Call, func: ast.Attribute) -> Piece | None:
        """``super().forward(x)`` and ``super(Net, self).__init__(...)``."""
        info = self.ctx.scope.class_info
        if info is None or not info.is_module:
            return None
        if (reason := refused_of_base(info, func.attr)) is not None:
            function = self.ctx.scope.function
            methods = function is not None and function.owner is info
            own = symbols.positional_parameters(function.node)[:1] if function is not None and methods else []
            reset = Resets(self.ctx, self.renderer).of_base(node, info, func.attr, own[0].arg) if own else None
            if reset is not None:
                return reset
            given = _loaded(node) if func.attr == "load_state_dict" else None
            if given is not None and own:
                return self._loaded_from(node, own[0].arg, *given)
            return self._refused(node, func.attr, reason)
        if self.moves_base(func):
            method = self.ctx.scope.function
            assert method is not None
            receiver = Piece(symbols.positional_parameters(method.node)[0].arg)
            if func.attr == "to":
                return self._to(node, receiver)
            return receiver if func.attr != "double" else self._in_float32(node, func.attr, receiver)
        asked = info.asked_by(node)
        of_base = "super()" if asked is info else self.ctx.source.segment(func.value)
        name = called_in_flax(info, func.attr)
        if func.attr == "__call__" and not any(i.methods.get("__call__") for i in info.ancestry()[1:]):
            forward = info.method("forward")
            if forward is not None and forward.owner is not None and not forward.owner.calls_forward:
                return self.copier.rebuilt(node, "self.forward", [], None)
        base = next((b for b in asked.bases if is_module_base(b)), None)
        needs_rngs = func.attr == "__init__" and (
            (isinstance(base, Qual) and base.name in LAYERS and LAYERS[base.name].random) or not isinstance(base, Qual)
        )
        if not needs_rngs:
            for candidate in asked.bases:
                inherited = getattr(candidate, "info", None) and candidate.info.method(func.attr)  # type: ignore[attr-defined]
                needs_rngs = needs_rngs or bool(inherited and inherited.takes_rngs)
        rngs = rngs_expression(self.ctx) if needs_rngs else None
        if func.attr == "__init__":
            inherits = all("__init__" not in one.methods for one in asked.ancestry()[1:])
            layer = LAYERS.get(base.name if isinstance(base, Qual) else asked.layer_base or "") if inherits else None
            mark_records(self.ctx, self.renderer, node, info)
            return BaseConstructors(self.ctx, self.renderer, self.copier).call(node, of_base, layer, rngs)
        return self.copier.rebuilt(node, f"{of_base}.{name}", [], rngs)

    def moves_base(self, func: ast.Attribute) -> bool:
        """Whether ``super().to(device)`` and its like call PyTorch's own method, which moves what Flax leaves there."""
        info, function = self.ctx.scope.class_info, self.ctx.scope.function
        if not symbols.is_super(func.value) or func.attr not in DROPPED_METHODS | {"to", "double"}:
            return False
        if info is None or not info.is_module or function is None or not symbols.positional_parameters(function.node):
            return False
        return not any(func.attr in one.methods for one in info.ancestry()[1:])

    def first_parameter(self, node: ast.Call) -> Piece | None:
        """``next(model.parameters())``, which mostly is asked for its dtype, or ``next(model.parameters(), None)``."""
        match node:
            case ast.Call(
                func=ast.Name(id="next"),
                args=[
                    ast.Call(func=ast.Attribute(value=owner, attr="parameters"), args=[], keywords=[]) as inner,
                    *otherwise,
                ],
            ) if is_module(self.ctx.fact(owner)):
                walked = self.renderer.render(inner).text
                if not otherwise:
                    return Piece(f"{walked}[0]")
                if len(otherwise) == 1 and not order_matters(self.ctx.inference, inner):
                    return Piece(f"next(iter({walked}), {self.renderer.render(otherwise[0]).text})")
        return None

    def _named_arrays(self, node: ast.Call, name: str, module: str) -> Piece:
        """The dict of a module's arrays, or its items where they are walked over; itself where they are written."""
        match self.ctx.source.parents.get(node):
            case ast.Call(args=[_, given]) as call if given is node and flattens(self.ctx.source, call, node):
                return Piece(module)
        parameters = "" if name.endswith("parameters") else ", parameters=False"
        made = f"{self.renderer.need('named_arrays')}({module}{parameters})"
        walked = "items" if name.startswith("named_") else "values"
        return Piece(made if is_dict(self.ctx.source.parents.get(node)) else f"{made}.{walked}()")

    def dict_of_arrays(self, node: ast.Call) -> Piece | None:
        """``dict(model.named_parameters())`` where that is a dict of arrays already."""
        alone = is_dict(node) and node.args[0] in self.ctx.inference.state.named_arrays
        return self.renderer.render(node.args[0]) if alone else None

    def _named(self, node: ast.Call, module: str, name: str) -> Piece:
        """Pairs of a name and a module or parameter."""
        walk = WALKS[name.removeprefix("named_")].format(module, nnx=self.renderer.need("nnx"))
        item = "m" if name == "named_modules" else "p"
        pairs = f"({self.renderer.need('torch_name')}({module}, path), {item}) for path, {item} in {walk}"
        parent = self.ctx.source.parents.get(node)
        alone = isinstance(parent, ast.Call) and parent.args == [node] and not parent.keywords
        return Piece(pairs if alone else f"({pairs})")

    def _refused(self, node: ast.Call, name: str, reason: str) -> Piece:
        self.ctx.report.gap(node, f"torch.nn.Module.{name}", "refused", f"Module.{name} has no sure JAX form: {reason}")
        return self.copier.copy_arguments(node)

    def _loads_strictly(self, node: ast.Call) -> bool:
        """Whether a test loads all of a state dict, as `t2j_lsp.load_torch_state` does, and asks for no answer."""
        keywords = {k.arg: k.value for k in node.keywords}
        strict = keywords.pop("strict", None)
        whole = strict is None or isinstance(strict, ast.Constant) and strict.value is True
        alone = isinstance(self.ctx.source.parents.get(node), ast.Expr)
        return self.ctx.inference.holds_tests and len(node.args) == 1 and not keywords and whole and alone

    def _to(self, node: ast.Call, receiver: Piece) -> Piece | None:
        """``model.to(device)`` goes; ``model.to(dtype)`` is not done in place in JAX."""
        named = [k.value for k in node.keywords if k.arg not in ("non_blocking", "memory_format")]
        for argument in [*node.args, *named]:
            fact = self.ctx.fact(argument)
            wanted = fact.name.rpartition(".")[2] if isinstance(fact, Qual) and is_dtype(fact.name) else ""
            if wanted in ("float64", "double") and not self.ctx.options.x64:
                self._in_float32(node, "to", receiver)
            elif isinstance(fact, Object) and fact.kind == "dtype" or isinstance(fact, Qual):
                if wanted not in ("float", "float32"):
                    return self._refused(node, "to", CAST)
        return receiver

    def _in_float32(self, node: ast.Call, name: str, receiver: Piece) -> Piece:
        """``model.double()`` without x64: parameters are float32, as what the program casts to float64 is."""
        self.ctx.report.note(node, f"torch.nn.Module.{name}", "note", STAYS)
        return receiver

    def registered(self, value: ast.expr, name: str, persistent: ast.expr | None) -> str:
        """What a registered parameter or buffer is assigned; ``nnx.data(None)`` where there is none."""
        none = f"{self.renderer.need('nnx')}.data(None)"
        if isinstance(value, ast.Constant) and value.value is None:
            return none
        if name != "register_buffer":
            return self.renderer.argument(value).text
        if isinstance(value, ast.IfExp) and isinstance(value.orelse, ast.Constant) and value.orelse.value is None:
            test = bracket(self.renderer.render(value.test), slot(value, "test", value.test))
            return f"{self.registered(value.body, name, persistent)} if {test} else {none}"
        piece = self.renderer.argument(value)
        text = piece.text
        function, current = self.ctx.scope.function, self.ctx.scope.statement
        nullable = function is not None and may_be_none(function, value)
        if nullable and not isinstance(value, ast.Name) and current is not None:
            name_of_value = self.ctx.names.fresh("value")
            current.before.append(f"{name_of_value} = {assigned(piece)}")
            text = name_of_value
        extra = ""
        if persistent is not None and not (isinstance(persistent, ast.Constant) and persistent.value is True):
            extra = f", persistent={self.renderer.render(persistent).text}"
        made = f"{self.renderer.need('Buffer')}({text}{extra})"
        if nullable:
            return f"{none} if {text} is None else {made}"
        return made


def registration(call: ast.Call) -> tuple[ast.expr, ast.expr, ast.expr | None] | None:
    """Name, value and persistence of ``register_buffer`` or ``register_parameter``; None if they aren't spelled out."""
    names = {"name": "name", "tensor": "value", "param": "value", "persistent": "persistent"}
    given = dict(zip(("name", "value", "persistent"), call.args, strict=False))
    given |= {names[k.arg]: k.value for k in call.keywords if k.arg in names}
    return (given["name"], given["value"], given.get("persistent")) if {"name", "value"} <= given.keys() else None


def _loaded(call: ast.Call) -> tuple[ast.expr, ast.expr | None, ast.expr | None] | None:
    """What ``load_state_dict`` loads, whether all names must fit, and keywords in a dict; None if asked for more."""
    given = dict(zip(("state_dict", "strict"), call.args, strict=False))
    given |= {k.arg or "**": k.value for k in call.keywords}
    known = {"state_dict"} <= given.keys() <= {"state_dict", "strict", "**"}
    known = known and not any(isinstance(argument, ast.Starred) for argument in call.args)
    if len(given) != len(call.args) + len(call.keywords) or not known:
        return None
    return given["state_dict"], given.get("strict"), given.get("**")


def _is_plain(owner: Fact) -> bool:
    """Whether it is a module of the file's own making, in which a child is an attribute."""
    return isinstance(owner, Instance) and owner.cls.info.layer_base is None
