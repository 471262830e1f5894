"""What the loss of a test is computed from: the arrays and modules at its root, and the statements in between."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.backward import differentiates
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import FunctionInfo, is_module
from t2j_lsp.translate.rule.facts import Object, Qual, Tensor
from t2j_lsp.translate.rule.record import REGISTRY

_MODES = frozenset({"train", "eval", "load_state_dict", "requires_grad_", "manual_seed", "to"})


class Left(Exception):
    """The test is not surely understood: it is left to what handles training code."""


@dataclass
class Root:
    """What the loss is differentiated by, or the module that it is computed with: ``x``, ``net``, ``self.net``."""

    text: str
    name: str
    """What it is called as a parameter of the loss function."""
    module: bool
    wanted: bool = False
    """Whether its gradient is read."""
    grad: str = ""


@dataclass
class LossPlan:
    """One backward pass and what belongs to it."""

    info: FunctionInfo
    block: Sequence[ast.stmt]
    at: int
    call: ast.Call
    roots: dict[str, Root] = field(default_factory=dict)
    moved: list[ast.stmt] = field(default_factory=list)
    """Statements that compute the loss."""
    first: int = 0
    outputs: list[str] = field(default_factory=list)
    """Names of the loss function's that are read behind it, the loss first if it is."""
    reads: bool = False
    """Whether the loss itself is read."""


def find(context: Context, info: FunctionInfo) -> list[LossPlan]:
    """The backward passes of a test."""
    plans: list[LossPlan] = []
    for node in symbols.walk(info.node):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = context.fact(node.func.value)
            if isinstance(owner, Object) and owner.kind in ("optimizer", "scaler"):
                raise Left
    for block in symbols.blocks(info.node.body):
        for index, node in enumerate(block):
            if isinstance(node, ast.Expr) and differentiates(context.inference, node.value):
                assert isinstance(node.value, ast.Call)
                plans.append(LossPlan(info, block, index, node.value))
    if len({id(plan.block) for plan in plans}) > 1:
        raise Left
    return plans


class Loss:
    """One backward pass, and what its loss is computed from."""

    def __init__(self, context: Context, plan: LossPlan) -> None:
        self.ctx = context
        self.loss_plan = plan

    def look(self) -> None:
        """Finds out what the loss is computed from. Raises Left where something is not surely understood."""
        function = self.loss_plan.call.func
        assert isinstance(function, ast.Attribute)
        self.loss: ast.expr = function.value
        self.weights = self._weights()
        self._roots()
        self._slice()

    @property
    def _modules(self) -> int:
        return sum(root.module for root in self.loss_plan.roots.values())

    def _weights(self) -> ast.expr | None:
        """The argument of ``y.backward(weights)``."""
        call = self.loss_plan.call
        keywords = {k.arg: k.value for k in call.keywords if k.arg not in ("retain_graph", "create_graph")}
        given = [*call.args, *filter(None, [keywords.pop("gradient", None)])]
        if keywords or len(given) > 1:
            raise Left
        return given[0] if given else None

    # --- what the loss depends on ---------------------------------------------------------------------------------

    def _roots(self) -> None:
        """The tensors whose ``grad`` is read, and the modules that are called before the backward pass."""
        plan = self.loss_plan
        for node in symbols.walk(plan.info.node):
            if isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Load):
                text = plain(node.value)
                if text and isinstance(fact := self.ctx.fact(node.value), Tensor) and not fact.variable:
                    self._add(text, False).wanted = True
        for node in plan.block[: plan.at + 1]:
            for inner in symbols.walk(node):
                text = plain(inner) if isinstance(inner, ast.Name | ast.Attribute) else ""
                if text and text != "self" and is_module(self.ctx.fact(inner)) and not self._part_of_a_chain(inner):
                    self._add(text, True)

    def _part_of_a_chain(self, node: ast.AST) -> bool:
        """Whether it is a part of a module that is a root itself, or is stored to."""
        if not isinstance(getattr(node, "ctx", None), ast.Load):
            return True
        value = getattr(node, "value", None)
        return value is not None and is_module(self.ctx.fact(value))

    def _add(self, text: str, module: bool) -> Root:
        if text not in self.loss_plan.roots:
            self.loss_plan.roots[text] = Root(text, text.rpartition(".")[2], module)
        return self.loss_plan.roots[text]

    def _slice(self) -> None:
        """The statements that compute the loss from the roots."""
        plan = self.loss_plan
        before = list(plan.block[: plan.at])
        depends: set[str] = set()
        dependent: list[ast.stmt] = []
        tensors = {r.text for r in plan.roots.values() if not r.module}
        for node in before:
            reads = reads_of(node)
            if self._computes(node, reads, depends) and not (binds(node) & tensors):
                dependent.append(node)
                depends |= binds(node)
        needed = reads_of(self.loss) | (reads_of(self.weights) if self.weights is not None else set())
        for node in reversed(dependent):
            if binds(node) & needed:
                if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
                    raise Left
                plan.moved.insert(0, node)
                needed |= reads_of(node)
        used = {text: root for text, root in plan.roots.items() if text in needed or text in reads_of(self.loss)}
        if not used:
            raise Left
        plan.roots = dict(sorted(used.items(), key=lambda item: not item[1].module))
        if len({root.name for root in used.values()}) < len(used):
            raise Left
        plan.first = before.index(plan.moved[0]) if plan.moved else plan.at
        made = {name for node in plan.moved for name in binds(node)}
        for node in before[plan.first :]:
            if node not in plan.moved:
                if any(isinstance(n, ast.Attribute) and n.attr in _MODES for n in symbols.walk(node)) or binds(node):
                    raise Left  # it may change what comes after it
        if any("rngs" in names_of_draws(node, self.ctx.inference) for node in [*plan.moved, self.loss]):
            raise Left
        later = [n for n in before[plan.first :] if n not in plan.moved] + self._behind()
        read = {name for node in later for name in reads_of(node)}
        loss = self.loss.id if isinstance(self.loss, ast.Name) else ""
        plan.reads = loss in read and self.weights is None
        plan.outputs = [n for n in dict.fromkeys(name for name, _ in symbols.bindings(plan.moved)) if n in read & made]
        if plan.reads and loss not in plan.outputs:
            raise Left  # its own gradient is asked for: ``y.backward()``, then ``y.grad``
        if plan.reads:
            plan.outputs.remove(loss)

    def _computes(self, node: ast.stmt, reads: set[str], depends: set[str]) -> bool:
        return bool(reads & (depends | self.loss_plan.roots.keys()))

    def _behind(self) -> list[ast.stmt]:
        """The statements that run after the backward pass."""
        end = self.loss_plan.call.lineno
        return [n for n in symbols.walk(self.loss_plan.info.node) if isinstance(n, ast.stmt) and n.lineno > end]


def plain(node: ast.AST) -> str:
    """``x`` and ``self.x`` as text; empty for anything else."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute(value=inner):
            base = plain(inner)
            return f"{base}.{node.attr}" if base else ""
    return ""


def reads_of(node: ast.AST) -> set[str]:
    """The names, and attributes of names, that a piece of code reads."""
    names = {plain(n) for n in symbols.walk(node) if isinstance(n, ast.Name | ast.Attribute)} - {""}
    stored = {n.id for n in symbols.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    loaded = {n.id for n in symbols.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    augmented = {node.target.id} if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) else set()
    return (names - (stored - loaded)) | augmented


def binds(node: ast.stmt) -> frozenset[str]:
    return symbols.bound_names([node])


def names_of_draws(node: ast.AST, inference: Inference) -> set[str]:
    """``rngs`` where code draws random numbers itself: a loss function could not, as it is traced."""
    for inner in symbols.walk(node):
        if isinstance(inner, ast.Call):
            fact = inference.fact(inner.func)
            rule = REGISTRY.get(fact.name) if isinstance(fact, Qual) else None
            if rule is not None and rule.random:
                return {"rngs"}
    return set()
