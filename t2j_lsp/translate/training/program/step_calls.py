"""The calls that make up a PyTorch training step: zero_grad, backward, clipping, step; and the scopes they stand in."""

from __future__ import annotations

import ast
from collections.abc import Collection, Container, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.backward import differentiates
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.binding import argument
from t2j_lsp.translate.rule.contexts import context_name
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.rule.facts import Object, Qual
from t2j_lsp.translate.rule.library import Trait, names_with

from .gradient_edits import GradientEdit, gradient_edit

Kind = Literal["zero", "backward", "clip", "unscale", "step", "rescale", "switch"]
"""``switch``: a statement about ``requires_grad`` that goes."""
WEIGHTED = "backward() with arguments, or of something that isn't a loss"
CLOSURE = "optimizer.step(closure) may compute the loss several times for one step, and this closure can't be followed."


GROUPS = "param_groups"


def _of_group(loop: ast.For, group: str) -> ast.For | None:
    """``for p in group["params"]: ...``, where it is all that a loop over groups does."""
    match loop.body:
        case [ast.For(iter=ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value="params"))) as inner]:
            return inner if name == group and not loop.orelse else None
    return None


def clip_of(name: str) -> Literal["norm", "value"] | None:
    """How a call clips gradients; None if it is another call."""
    if name in names_with(Trait.CLIPS_NORM):
        return "norm"
    return "value" if name in names_with(Trait.CLIPS_VALUE) else None


class Refused(Exception):
    """Training code that isn't surely understood. Its text is the reason."""


@dataclass(frozen=True)
class StepCall:
    """One statement of a training step."""

    kind: Kind
    node: ast.stmt
    call: ast.Call
    subject: ast.expr
    """The optimizer, the loss, the module that is zeroed, or the parameters that are clipped: those of a module, or the
    groups of an optimizer."""
    target: ast.expr | None = None
    """The name a clipped norm is assigned to."""
    edit: GradientEdit | None = None
    """What a loop makes of each gradient, where it is no call that clips them."""


def clip_kind(inference: Inference, clip: StepCall) -> str:
    """``norm`` or ``value``: whether what becomes of a gradient depends on all of them, or on itself."""
    if clip.edit is not None:
        return "value"
    fact = inference.fact(clip.call.func)
    return clip_of(getattr(fact, "name", "")) or ""


def limits(clip: StepCall) -> list[ast.expr]:
    """What gradients are clipped to: the limit, and the order of the norm where it isn't 2; or changed by."""
    if clip.edit is not None:
        return [*clip.edit.given]
    call = clip.call
    limit = argument(call, 1, "max_norm") or argument(call, 1, "clip_value")
    order = argument(call, 2, "norm_type")
    if limit is None:
        raise Refused("Can't tell what the gradients are clipped to.")
    if order is None or isinstance(order, ast.Constant) and order.value == 2:
        return [limit]
    return [limit, order]


class Reader:
    """Recognises the statements of a training step by the facts of what they call."""

    def __init__(self, inference: Inference, switches: Container[ast.AST] = ()) -> None:
        self.inference = inference
        self.switches = switches

    def read(self, node: ast.stmt) -> StepCall | None:
        """The part a statement has in a training step; None if it has none. Raises Refused."""
        if node in self.switches:
            name = ast.Name("None", ast.Load())
            return StepCall("switch", node, ast.Call(name, [], []), name)
        if isinstance(node, ast.For):
            return self._zero_loop(node) or self._edit_loop(node)
        call: ast.expr | None = None
        target: ast.expr | None = None
        if isinstance(node, ast.Expr):
            call = node.value
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            call, target = node.value, node.targets[0]
        if not isinstance(call, ast.Call):
            return None
        fact = self.inference.fact(call.func)
        if isinstance(fact, Qual) and clip_of(fact.name) is not None:
            clipped = argument(call, 0, "parameters")
            return None if clipped is None else StepCall("clip", node, call, clipped, target)
        if not isinstance(call.func, ast.Attribute) or target is not None:
            return None
        return self._method(node, call, call.func)

    def _method(self, node: ast.stmt, call: ast.Call, func: ast.Attribute) -> StepCall | None:
        owner = self.inference.fact(func.value)
        kind = owner.kind if isinstance(owner, Object) else ""
        match func.attr:
            case "zero_grad" if kind == "optimizer" or is_module(owner):
                return StepCall("zero", node, call, func.value)
            case "backward" if differentiates(self.inference, call):
                return StepCall("backward", node, call, self._loss(call, func))
            case "step" if kind == "optimizer":
                given = [*call.args, *(k.value for k in call.keywords)]
                if not all(isinstance(one, ast.Name) for one in given):
                    raise Refused(CLOSURE)
                return None if given else StepCall("step", node, call, func.value)
            case "step" if kind == "scaler" and call.args:
                return StepCall("step", node, call, call.args[0])
            case "unscale_" if kind == "scaler":
                return StepCall("unscale", node, call, func.value)
            case "update" if kind == "scaler":
                return StepCall("rescale", node, call, func.value)
        return None

    def _loss(self, call: ast.Call, func: ast.Attribute) -> ast.expr:
        """What is differentiated. Raises Refused."""
        for keyword in call.keywords:
            if keyword.arg == "gradient":
                raise Refused(WEIGHTED)
            if keyword.arg not in ("retain_graph", "inputs"):
                raise Refused(f"backward({keyword.arg}=...) has no plain form: write the gradient with jax.grad")
            if keyword.arg == "inputs":
                raise Refused("backward(inputs=...) differentiates by some arrays only: write it with jax.grad")
        loss = func.value
        fact = self.inference.fact(loss)
        if call.args or (isinstance(fact, Object) and fact.kind != "scaler"):
            raise Refused(WEIGHTED)
        if isinstance(loss, ast.Call) and isinstance(loss.func, ast.Attribute) and loss.func.attr == "scale":
            owner = self.inference.fact(loss.func.value)
            if isinstance(owner, Object) and owner.kind == "scaler" and len(loss.args) == 1:
                return loss.args[0]
        return loss

    def _zero_loop(self, node: ast.For) -> StepCall | None:
        """``for p in model.parameters(): p.grad = None``."""
        match node:
            case ast.For(
                target=ast.Name(id=name),
                iter=ast.Call(func=ast.Attribute(attr="parameters", value=module)) as call,
                body=[
                    ast.Assign(
                        targets=[ast.Attribute(attr="grad", value=ast.Name(id=owner))], value=ast.Constant(value=None)
                    )
                ],
                orelse=[],
            ) if name == owner:
                return StepCall("zero", node, call, module)
        return None

    def _edit_loop(self, node: ast.For) -> StepCall | None:
        """``for p in model.parameters(): p.grad.data.clamp_(-1, 1)``: each gradient is computed of itself."""
        walk, parameters = node, node.iter
        match node.target, node.iter:
            case ast.Name(), ast.Call(func=ast.Attribute(attr="parameters"), args=[], keywords=[]):
                pass
            case (
                ast.Tuple(elts=[ast.Name(), ast.Name()]),
                ast.Call(func=ast.Attribute(attr="named_parameters", value=owner), args=[], keywords=[]),
            ):
                parameters = ast.Call(ast.Attribute(owner, "parameters", ast.Load()), [], [])
            case ast.Name(id=group), ast.Attribute(attr=attr, value=owner) if attr == GROUPS:
                fact, inner = self.inference.fact(owner), _of_group(node, group)
                if inner is None or not isinstance(fact, Object) or fact.kind != "optimizer":
                    return None
                walk = inner
            case _:
                return None
        edit = gradient_edit(walk)
        call = parameters if isinstance(parameters, ast.Call) else ast.Call(parameters, [], [])
        return StepCall("clip", node, call, parameters, edit=edit) if edit is not None else None

    def calls_module(self, node: ast.AST) -> bool:
        """Whether a module may be called in some code, by itself or by a function that is given it."""
        return any(isinstance(n, ast.expr) and is_module(self.inference.fact(n)) for n in symbols.walk(node))

    def has_no_gradient(self, node: ast.stmt) -> bool:
        """Whether it is a block under ``torch.no_grad()``."""
        if not isinstance(node, ast.With):
            return False
        calls = [i.context_expr for i in node.items if isinstance(i.context_expr, ast.Call)]
        names = {context_name(self.inference.fact(call.func), call) for call in calls}
        return not names.isdisjoint(names_with(Trait.NO_GRADIENT))

    # --- contexts -------------------------------------------------------------------------------------------------

    def is_open(self, node: ast.stmt) -> bool:
        """Whether a ``with`` only sets a mode that JAX code does without: autocast, gradients on."""
        return isinstance(node, ast.With) and all(self._open_item(i) for i in node.items)

    def _open_item(self, item: ast.withitem) -> bool:
        if item.optional_vars is not None:
            return False
        return self.open_context(item.context_expr)

    def open_context(self, node: ast.expr, depth: int = 0) -> bool:
        """An autocast, a nullcontext, or a name that holds one of them."""
        match node:
            case ast.Call():
                name = context_name(self.inference.fact(node.func), node)
                return name in names_with(Trait.FORWARD) | names_with(Trait.AUTOCAST)
            case ast.IfExp(body=body, orelse=orelse):
                return self.open_context(body, depth) and self.open_context(orelse, depth)
            case ast.Name(id=name) if depth < 3:
                values = self._assigned.get(name, [])
                return bool(values) and all(self.open_context(v, depth + 1) for v in values)
        return False

    def assigned(self, name: str) -> list[ast.expr]:
        """What is assigned to a name, anywhere in the file."""
        return self._assigned.get(name, [])

    @cached_property
    def _assigned(self) -> dict[str, list[ast.expr]]:
        """What is assigned to each name, anywhere in the file."""
        values: dict[str, list[ast.expr]] = {}
        for node in self.inference.source.nodes:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        values.setdefault(target.id, []).append(node.value)
        return values

    def is_autocast(self, node: ast.AST) -> bool:
        fact = self.inference.fact(node.func) if isinstance(node, ast.Call) else None
        return isinstance(fact, Qual) and fact.name in names_with(Trait.AUTOCAST)


@dataclass
class Item:
    """A statement of a block, with the mode-setting contexts around it opened."""

    node: ast.stmt
    inside: tuple[ast.With, ...] = ()
    step_call: StepCall | None = None
    condition: ast.If | None = None
    """The ``if`` without ``else`` that holds only parts of a training step, of which this is one."""


@dataclass
class Phase:
    """Backward passes of a block and the optimizer steps behind them."""

    backs: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)


def phases(items: Sequence[Item]) -> list[Phase]:
    """The backward passes of a block, each run of them with the steps behind it."""
    out: list[Phase] = []
    for index, item in enumerate(items):
        kind = item.step_call.kind if item.step_call is not None else ""
        if kind == "backward":
            if not out or out[-1].steps:
                out.append(Phase())
            out[-1].backs.append(index)
        elif kind == "step" and out:
            out[-1].steps.append(index)
    return out


def flatten(body: Sequence[ast.stmt], reader: Reader, inside: tuple[ast.With, ...] = ()) -> list[Item]:
    """The statements of a block, those under mode-setting contexts and under conditional steps too. Raises Refused."""
    items: list[Item] = []
    for node in body:
        if isinstance(node, ast.With) and reader.is_open(node):
            items += flatten(node.body, reader, (*inside, node))
            continue
        step_call = reader.read(node)
        if step_call is None and isinstance(node, ast.If) and not node.orelse:
            parts = [(s, reader.read(s)) for s in node.body]
            losses = [p.subject for _, p in parts if p is not None and p.kind == "backward"]
            if losses and not _is_whole(node, losses, body, reader):
                items += [Item(s, inside, p, node) for s, p in parts]
                continue
        items.append(Item(node, inside, step_call))
    return items


def _is_whole(node: ast.If, losses: Sequence[ast.expr], around: Sequence[ast.stmt], reader: Reader) -> bool:
    """Whether an ``if`` holds a whole training step: its losses depend on no module that was called in front of it.

    ``if step % 5 == 0: loss = -critic(generator(z)).mean(); loss.backward(); optimizer.step()``.
    """
    if not any((p := reader.read(s)) is not None and p.kind == "step" for s in node.body):
        return False
    kept = {ast.unparse(n) for n in symbols.walk(node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    needed = set[str]().union(*(_differentiated(loss, kept) for loss in losses))
    if not needed <= symbols.bound_names(node.body) | kept:
        return False
    for statement in reversed([*around[: list(around).index(node)], *node.body]):
        if isinstance(statement, ast.With) and reader.has_no_gradient(statement):
            needed -= {n for s in statement.body if isinstance(s, ast.Assign) for n in symbols.bound_names([s])}
        given = symbols.bound_names([statement])
        if isinstance(statement, ast.Assign):
            given = given | {ast.unparse(target) for target in statement.targets} & kept
        if not needed & given:
            continue
        if isinstance(statement, ast.Assign):
            needed -= given
        if statement not in node.body and reader.calls_module(statement):
            return False
        needed |= _differentiated(statement, kept)
    return True


def _differentiated(statement: ast.AST, kept: Collection[str]) -> set[str]:
    """The names that a statement reads, and attributes of those ``kept``, but for those in what it detaches."""
    if isinstance(statement, ast.Call) and getattr(statement.func, "attr", "") == "detach":
        return set()
    if isinstance(statement, ast.Attribute) and (text := ast.unparse(statement)) in kept:
        return {text} if isinstance(statement.ctx, ast.Load) else set()
    if isinstance(statement, ast.Name):
        return {statement.id} if isinstance(statement.ctx, ast.Load) else set()
    return set().union(*(_differentiated(one, kept) for one in symbols.children(statement)))
