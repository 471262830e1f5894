"""``train()`` and ``eval()`` of modules, which give the module in PyTorch and None in Flax."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache
from typing import cast

from t2j_lsp import symbols
from t2j_lsp.translate.inference.forward_pass import CONTAINERS
from t2j_lsp.translate.inference.module_states import MODULE_NAMES
from t2j_lsp.translate.rule.facts import Fact, Layer
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.pieces import ATOM, Piece, assigned, bracket
from t2j_lsp.translate.source.evaluation import evaluated_once
from t2j_lsp.translate.source.helpers import helpers

from .context import Context
from .evaluation_order import runs_before
from .handlers import ExpressionRenderer

NO_MODE = "no part of it keeps a mode in Flax, since it computes the same in both: pass the mode on as a value"
_MODAL = re.compile(r"\b(deterministic|use_running_average|training|Dropout|BatchNorm)\b")
"""What tells of a layer's text that it differs by the mode, or holds a layer of Flax that does."""
_SETS = ("train", "eval")


class ModuleModes:
    """What calls that switch a module's mode become."""

    def __init__(self, context: Context, renderer: ExpressionRenderer) -> None:
        self.ctx = context
        self.renderer = renderer

    def switched(self, node: ast.Call, receiver: Piece) -> Piece | None:
        """``train`` and ``eval`` give None in Flax: where their value is used they stand on a line of their own."""
        assert isinstance(node.func, ast.Attribute)
        parent, statement = self.ctx.source.parents.get(node), self.ctx.scope.statement
        if _is_unread(node, self.ctx.source.parents) or statement is None:
            return self._switch(node, bracket(receiver, ATOM))
        target = _assigned(parent, node)
        itself = target is not None and ast.unparse(target) == receiver.text
        if target is not None and not itself and self.ctx.source.starts_line(statement.node):
            if not self.ctx.report.quiet:
                call = self._switch(node, ast.unparse(target))
                text = call.text if call else f"{ast.unparse(target)}.{node.func.attr}()"
                self.ctx.edits.insert_after(statement.node, [text])
            return receiver
        once = statement.hoistable and evaluated_once(node, self.ctx.source.parents)
        if not once or runs_before(node, self.ctx):
            reason = f"{node.func.attr}() gives None in Flax: call it on a line of its own"
            self.ctx.report.gap(node, f"torch.nn.Module.{node.func.attr}", "refused", reason)
            return None
        text = receiver.text
        if not text.replace(".", "").isidentifier():
            text = self.ctx.names.fresh("module" if "model" in self.ctx.names.of_source else "model")
            statement.before.append(f"{text} = {assigned(receiver)}")
        call = self._switch(node, text)
        statement.before.append(call.text if call else f"{text}.{node.func.attr}()")
        return Piece(text)

    def of_unknown(self, node: ast.Call, func: ast.Attribute) -> Piece | None:
        """``self.model = model.eval()``, of which only the names say that it is a module."""
        text, unread = ast.unparse(func.value), _is_unread(node, self.ctx.source.parents)
        if node.args and not node.keywords and func.attr == "train" and keeps_mode(self.ctx, func.value):
            return self.switched(node, self.renderer.render(func.value))
        if node.keywords or func.attr == "eval" and node.args or unread and not node.args:
            return None
        if text.rpartition(".")[2] in MODULE_NAMES:
            self.ctx.report.note(node, f"torch.nn.Module.{func.attr}", "probable", f"{text!r} is taken for a module")
            return self.switched(node, self.renderer.render(func.value))
        if func.attr == "eval":
            reason = f"if {text!r} is a module, eval() gives None in Flax: call it on a line of its own"
            self.ctx.report.gap(node, f"torch.nn.Module.{func.attr}", "unsure", reason)
        return None

    def _switch(self, node: ast.Call, text: str) -> Piece | None:
        """The call for its effect; None where it stays as it is."""
        assert isinstance(node.func, ast.Attribute)
        mode = node.args[0] if node.args else next((k.value for k in node.keywords), None)
        if mode is None or node.func.attr == "eval":
            return None
        if isinstance(mode, ast.Constant):
            return Piece(f"{text}.{'train' if mode.value else 'eval'}()")
        return Piece(f"{text}.train() if {bracket(self.renderer.render(mode), 3)} else {text}.eval()", 2)


def loses_mode(ctx: Context, module: Fact) -> bool:
    """Whether nothing of a layer keeps the mode that the file sets: it computes the same in both."""
    nodes = ctx.source.nodes
    sets = any(isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in _SETS for n in nodes)
    return sets and _has_no_mode(module)


def _has_no_mode(module: Fact) -> bool:
    match module:
        case Layer(name=name, items=None):
            return name in LAYERS and name not in CONTAINERS and not has_modes(name)
        case Layer(items=items):
            return all(map(_has_no_mode, items or ()))
    return False


@cache
def has_modes(layer: str) -> bool:
    """Whether a layer may compute otherwise in another mode: itself, or what its helper is made of."""
    waiting, seen = [LAYERS[layer].helper], set[str]()
    texts = [LAYERS[layer].jax, LAYERS[layer].flax or "", LAYERS[layer].base]
    while waiting:
        name = waiting.pop()
        if name in helpers() and name not in seen:
            seen.add(name)
            texts.append(helpers()[name].text)
            waiting += helpers()[name].uses
    return any(_MODAL.search(text) for text in texts)


def named_as_module(ctx: Context, value: ast.expr) -> bool:
    """Whether a name says that it is a module, or what is done with it."""
    return isinstance(value, ast.Name) and (value.id in MODULE_NAMES or keeps_mode(ctx, value))


def keeps_mode(ctx: Context, module: ast.expr) -> bool:
    """Whether a function keeps a mode, switches it off, and sets it again, which only modules have.

    ``was_training = m.training``, ``m.eval()``, ``m.train(was_training)``.
    """
    function = ctx.scope.function
    if not isinstance(module, ast.Name) or function is None:
        return False
    asked = set[str]()
    for node in symbols.walk(function.node):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr="training") if name == module.id:
                asked.add("training")
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="eval"), args=[]) if name == module.id:
                asked.add("eval")
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="train"), args=[_]) if name == module.id:
                asked.add("train")
            case _:
                pass
    return len(asked) == 3


def _is_unread(node: ast.expr, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether nothing reads a value: of a statement, and what it lists or chooses: ``[n.eval() for n in nets]``."""
    around = parents.get(node)
    while (
        isinstance(around, ast.Tuple | ast.List)
        or isinstance(around, ast.ListComp)
        and around.elt is node
        or isinstance(around, ast.IfExp)
        and around.test is not node
    ):
        node, around = cast("ast.expr", around), parents.get(around)
    return isinstance(around, ast.Expr)


def _assigned(parent: ast.AST | None, value: ast.expr) -> ast.expr | None:
    """The one name or attribute that a value is assigned to."""
    match parent:
        case ast.Assign(targets=[ast.Name() | ast.Attribute() as target]) if parent.value is value:
            return target
    return None
