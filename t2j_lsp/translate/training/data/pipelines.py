"""Data pipelines: ``torch.utils.data`` stays in PyTorch, with everything that feeds it; batches become JAX arrays.

Datasets and loaders run in worker processes and on the CPU, so a program that trains in JAX keeps them. A value that
one of them is built from is left in PyTorch too, and converted with ``jnp.asarray`` where JAX code reads it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors, with_ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer, StatementRewriter
from t2j_lsp.translate.rule.definitions import Class, ClassInfo, Function, FunctionInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import Fact, Object, Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.names import is_torch
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.rule.record import REGISTRY
from t2j_lsp.translate.training.program.kept_values import handed_on, holds_tensors, knows_parts, leave, written_names
from t2j_lsp.translate.training.program.objects import Objects, VariableScope

from .batch_loops import PIPELINE, names_in
from .checkpoint_reads import reads_checkpoint
from .feeding_classes import feeds_alone, makes_one
from .sample_parts import SampleParts
from .spread_arguments import given_arguments

KEPT = "The data pipeline uses this, and stays in PyTorch with it."
_OF_MODULE = (
    "the data pipeline, which stays in PyTorch, calls this method, which computes in JAX: give it a function of its own"
)
LENGTHS = (
    "Each length to which it pads a batch is compiled by itself: pad to few lengths here, the next power of two or "
    "a multiple of 64, where what was added is masked."
)
PACKAGES = ("torch", "torch.nn", "torch.utils", "torch.utils.data", "torch.cuda")
DEVICE_PACKAGES = ("torch.cuda.", "torch.backends.")
DATASETS = ("torchvision.datasets.", "torchaudio.datasets.", "torchtext.datasets.")

_TEXTS = re.compile(r"torch\.utils\.data\._utils\.\w+\.\w+(?:_err_msg_format|_pattern)\b")
"""Texts and patterns of the pipeline's own modules, which functions copied from there use."""


class Data:
    """Finds what stays in PyTorch and puts handlers on it."""

    def __init__(self, context: Context, objects: Objects) -> None:
        self.ctx = context
        self.objects = objects
        self.kept = context.plan.kept
        self.names: set[tuple[str, ast.AST | None]] = set()
        """Variables of the kept code, with the function they belong to."""
        self.attributes: set[tuple[ClassInfo, str]] = set()
        """What the kept code reads of objects."""
        self.followed: set[tuple[str, ast.AST | None]] = set()
        """Those that are parameters, whose arguments were followed."""
        self._queue: list[tuple[ast.AST, VariableScope]] = []
        self._modules: list[ast.ClassDef] = []
        """Module classes of the file that kept code makes instances of, as they are met."""
        self._asked: set[ClassInfo] = set()
        """Classes of which it is known whether they feed the pipeline alone."""
        self._computing: dict[ast.AST, bool] = {}
        """Functions of the file that were asked about, and whether they make or handle tensors."""
        self.samples = SampleParts(context.inference)
        self._handing_on: set[ast.stmt] = set()
        """Statements that hand on what isn't known in all its parts, and whose own names were followed."""
        self._written: dict[ast.AST | None, dict[str, list[ast.stmt]]] = {}

    def plan(self) -> None:
        for node in self.ctx.source.nodes:
            if (
                isinstance(node, ast.ClassDef)
                and self._is_dataset(node)
                or isinstance(node, ast.Name | ast.Attribute | ast.Call)
                and self._is_pipeline(node)
            ):
                self._keep(node)
        self._follow_all()
        self._keep_modules()

    def _is_dataset(self, node: ast.ClassDef) -> bool:
        info = self.ctx.inference.classes.get(node)
        return info is not None and any(b.startswith((PIPELINE, *DATASETS)) for b in info.torch_bases)

    def _is_pipeline(self, node: ast.expr) -> bool:
        fact = self.ctx.fact(node.func if isinstance(node, ast.Call) else node)
        if isinstance(node, ast.Call) and isinstance(fact, Class):
            return any(b.startswith((PIPELINE, *DATASETS)) for b in fact.info.torch_bases)
        if isinstance(node, ast.Call) and isinstance(fact, Qual) and fact.name.startswith(DATASETS):
            return True
        return isinstance(fact, Qual) and fact.name.startswith(PIPELINE)

    def _is_text(self, node: ast.AST) -> bool:
        """Whether it is a text or pattern of the pipeline's own, or a call of its method, which feeds nothing."""
        fact = self.ctx.fact(node.func if isinstance(node, ast.Call) else node)
        return isinstance(fact, Qual) and _TEXTS.match(fact.name) is not None

    def _keep(self, node: ast.AST) -> None:
        if self.ctx.plan.keeps(node, self.ctx.source.parents):
            return
        self.kept.add(node)
        if not self._is_text(node):
            self._queue.append((node, self.objects.scope(node)))
        if isinstance(node, ast.FunctionDef) or isinstance(node, ast.ClassDef) and not self._is_dataset(node):
            self.ctx.plan.on_statement(node, lambda statements: self._note(node))
            if isinstance(node, ast.ClassDef):
                self._keep_instances(node)
        elif isinstance(node, ast.stmt):
            self.ctx.plan.on_statement(node, leave)
        elif isinstance(node, ast.expr):
            text = self.ctx.source.segment(node)
            self.ctx.plan.on_expression(node, lambda renderer: self._kept_expression(renderer, node, text))

    def _keep_instances(self, node: ast.ClassDef) -> None:
        """What makes instances of a class that stays gives it what PyTorch has, and no ``rngs``."""
        for call in self.ctx.source.nodes:
            if isinstance(call, ast.Call) and isinstance(made := self.ctx.fact(call.func), Class):
                if made.info.node is node:
                    self._keep(call)

    def _note(self, node: ast.FunctionDef | ast.ClassDef) -> None:
        """The definition stays as it is, which its name doesn't tell."""
        calls = (self.ctx.fact(n.func) for n in symbols.walk(node) if isinstance(n, ast.Call))
        pads = any(isinstance(fact, Qual) and fact.name in names_with(Trait.PADS) for fact in calls)
        self.ctx.report.note(node, node.name, "kept", f"{KEPT} {LENGTHS}" if pads else KEPT)

    def _follow_all(self) -> None:
        while self._queue:
            self._follow(*self._queue.pop())

    def _keep_modules(self) -> None:
        """A module class that stays may make instances of others, which come behind it."""
        for node in self._modules:
            self._keep_module(node)

    def _keep_module(self, node: ast.ClassDef) -> None:
        """A module class stays with the kept code that makes its instances, if nothing else does."""
        facts, parents = self.ctx.fact, self.ctx.source.parents
        named = [n for n in self.ctx.source.nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        every = [n for n in named if isinstance(fact := facts(n), Class) and fact.info.node is node]
        if all(self.ctx.plan.keeps(n, parents) for n in every):
            self._keep(node)
            self._follow_all()
            return
        reason = "the data pipeline, which stays in PyTorch, makes instances of this class: give it one of its own"

        def said(statements: StatementRewriter) -> None:
            self.ctx.report.gap(node, node.name, "torch-only", reason)
            statements.dispatch(node)

        self.ctx.plan.on_statement(node, said)

    def _kept_expression(self, renderer: ExpressionRenderer, node: ast.expr, text: str) -> Piece:
        fact = self.ctx.fact(node.func) if isinstance(node, ast.Call) else None
        rule = REGISTRY.get(fact.name) if isinstance(fact, Qual) else None
        if isinstance(fact, Qual) and rule is not None and rule.note is not None and not self.ctx.report.quiet:
            self.ctx.report.note(node, fact.name, "kept", rule.note)
            self.ctx.report.count_converted()
        return Piece(text)

    def _follow(self, node: ast.AST, scope: VariableScope) -> None:
        """Keep what the names in kept code come from."""
        for inner in symbols.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
                if isinstance(node, ast.ClassDef | ast.FunctionDef) and self.ctx.source.bound_in(inner, node):
                    continue
                self._follow_name(inner, scope)
            elif isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Load):
                self._follow_attribute(inner, scope)

    def _follow_name(self, node: ast.Name, scope: VariableScope) -> None:
        fact = self.ctx.fact(node)
        if isinstance(fact, Function):
            if not fact.info.external and self._uses_torch(fact.info.node):
                self._keep(fact.info.node)
            return
        if isinstance(fact, Class) and fact.info.is_module and not fact.info.external:
            if fact.info.node not in self._modules:
                self._modules.append(fact.info.node)
            return
        if isinstance(fact, Class):
            if not fact.info.external and not fact.info.is_module and self._uses_torch(fact.info.node):
                self._keep(fact.info.node)
            return
        if is_module(fact) or isinstance(fact, Object) and fact.kind in ("dtype", "optimizer"):
            return
        if isinstance(fact, Instance) and fact.cls.info not in self._asked:
            self._asked.add(info := fact.cls.info)
            if feeds_alone(self.ctx, info, self.kept):
                self._keep(info.node)
        self._follow_variable(node, self.objects.home(node.id, scope))

    def _follow_attribute(self, node: ast.Attribute, scope: VariableScope) -> None:
        """``self.x`` of a class that isn't a dataset itself."""
        if isinstance(called := self.ctx.fact(node), Function):
            self._follow_method(called.info)
        if (info := self.holder(node)) is not None:
            self.attributes.add((info, node.attr))
            for statement in self.given_by_methods(info, node.attr):
                self._keep_if_torch(statement)

    def _follow_method(self, info: FunctionInfo) -> None:
        """``self.collate`` of a class that doesn't stay as a whole: PyTorch's tensors go in, or come out."""
        owner = info.owner
        if owner is None or info.external or {owner.node, info.node} & self.kept or not self._uses_torch(info.node):
            return
        if owner.is_module and self._computes_with_module(info):
            self.ctx.plan.on_statement(info.node, lambda statements: self._said_of(info, statements))
        else:
            self._keep(info.node)

    def _said_of(self, info: FunctionInfo, statements: StatementRewriter) -> None:
        self.ctx.report.gap(info.node, info.name, "torch-only", _OF_MODULE)
        statements.dispatch(info.node)

    def _computes_with_module(self, info: FunctionInfo) -> bool:
        """Whether a method of a module uses its parameters, or modules inside."""
        held = (self.ctx.fact(n) for n in symbols.walk(info.node) if isinstance(n, ast.Attribute))
        return any(is_module(fact) or isinstance(fact, Tensor) and fact.variable for fact in held)

    def holder(self, node: ast.Attribute) -> ClassInfo | None:
        """The class of the file whose instances have an attribute, which is no dataset and no module."""
        owner = self.ctx.fact(node.value)
        info = owner.cls.info if isinstance(owner, Instance) else None
        return None if info is None or info.is_module or info.node in self.kept else info

    def given_by_methods(self, info: ClassInfo, name: str) -> Iterator[ast.Assign]:
        """The statements in which methods of a class give it an attribute."""
        for method in info.methods.values():
            for statement in self.objects.statements(VariableScope(method)):
                if isinstance(statement, ast.Assign) and any(
                    isinstance(t, ast.Attribute) and t.attr == name for t in statement.targets
                ):
                    yield statement

    def _follow_variable(self, node: ast.Name, home: VariableScope) -> None:
        name, assigned = node.id, False
        self.names.add((name, home.node))
        for statement in self.writers(home).get(name, ()):
            loads = (n for n in symbols.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
            assigned = assigned or all(n.id != name for n in loads)
            if statement not in self.kept and self.reaches(statement, node):
                self._keep_if_torch(statement)
        if not assigned and home.function is not None and (name, home.node) not in self.followed:
            self.followed.add((name, home.node))
            self._follow_argument(home.function, name)

    def reaches(self, statement: ast.stmt, read: ast.Name) -> bool:
        """Whether what a statement assigns may be what is read: it stands in front, or in a loop around both."""
        if self.objects.scope(statement) != self.objects.scope(read):
            return True
        if (last := self._last_before(read)) is not None and statement.lineno < last.lineno:
            return False
        if statement.lineno <= read.lineno:
            return True
        for place in ancestors(statement, self.ctx.source.parents):
            if isinstance(place, ast.FunctionDef | ast.AsyncFunctionDef):
                return False
            if isinstance(place, ast.For | ast.While) and place.lineno <= read.lineno:
                return True
        return False

    def is_given_anew(self, read: ast.Name) -> bool:
        """Whether a variable surely has another value at a read than its function was given for it."""
        return self._last_before(read, of_itself=True) is not None

    def _last_before(self, read: ast.Name, of_itself: bool = False) -> ast.stmt | None:
        """The last statement on the way to a read that gives its variable a new value each time.

        ``of_itself``: also one that is computed of what the variable holds.
        """
        for at in with_ancestors(read, self.ctx.source.parents):
            if isinstance(at, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
                return None
            if not isinstance(at, ast.stmt):
                continue
            block = self.ctx.source.block_of(at) or []
            for statement in reversed(block[: block.index(at)] if at in block else ()):
                match statement:
                    case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == read.id:
                        if of_itself or not any(isinstance(n, ast.Name) and n.id == name for n in symbols.walk(value)):
                            return statement
            loop = self.ctx.source.parents.get(at)
            if isinstance(loop, ast.For) and at in loop.body and any(n.id == read.id for n in names_in(loop.target)):
                return loop
        return None

    def writers(self, home: VariableScope) -> dict[str, list[ast.stmt]]:
        """The statements of a scope that write variables, by their names."""
        if home.node not in self._written:
            writers = self._written[home.node] = {}
            for statement in self.objects.statements(home):
                for name in written_names(statement):
                    writers.setdefault(name, []).append(statement)
        return self._written[home.node]

    def _keep_if_torch(self, statement: ast.stmt) -> None:
        if reads_checkpoint(self.ctx.inference, statement):
            return
        in_torch = self._uses_torch(statement) and not self._only_pipeline(statement)
        if in_torch or makes_one(self.ctx, statement, self.kept):
            self._keep(statement)
        elif (handed := handed_on(statement)) is not None and not knows_parts(self.ctx.fact(handed)):
            if statement not in self._handing_on:
                self._handing_on.add(statement)
                self._queue.append((handed, self.objects.scope(statement)))

    def _follow_argument(self, info: FunctionInfo, name: str) -> None:
        for call in self.objects.calls(info):
            given = list(given_arguments(self.ctx.inference, call, info))
            for one in (one for one in given if one.parameter == name):
                if isinstance(value := one.value, ast.Call) and self._uses_torch(value):
                    if not self._only_pipeline(value):
                        self._keep(value)
                self._follow(value, self.objects.scope(call))
                for other in given if one.spread else ():
                    if other.spread and (other.parameter, info.node) not in self.followed:
                        self.followed.add((other.parameter, info.node))
                        self.names.add((other.parameter, info.node))
                        self._follow_argument(info, other.parameter)

    def _uses_torch(self, node: ast.AST) -> bool:
        """Whether code makes or handles tensors."""
        for inner in symbols.walk(node):
            fact = self.ctx.fact(inner)
            if isinstance(fact, Qual) and is_torch(fact.name) and fact.name not in PACKAGES:
                if not fact.name.startswith((PIPELINE, *DEVICE_PACKAGES)):
                    return True
            if isinstance(inner, ast.expr) and (holds_tensors(fact) or self._may_give_tensors(inner, fact)):
                return True
        return False

    def _may_give_tensors(self, node: ast.expr, fact: Fact) -> bool:
        """Whether a function of the file that computes with torch is called, and what it gives isn't known."""
        called = self.ctx.fact(node.func) if isinstance(node, ast.Call) else None
        if not isinstance(called, Function) or called.info.external or knows_parts(fact):
            return False
        function = called.info.node
        if function not in self._computing:
            self._computing[function] = False  # if it calls itself
            self._computing[function] = self._uses_torch(function)
        return self._computing[function]

    def _only_pipeline(self, node: ast.AST) -> bool:
        """Whether the tensors of a statement are all inside expressions that are kept already."""
        return any(isinstance(i, ast.Call) and self._is_pipeline(i) for i in symbols.walk(node)) and not any(
            isinstance(f := self.ctx.fact(i), Qual) and is_torch(f.name) and f.name not in PACKAGES
            for i in self._outside(node)
        )

    def _outside(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes of a statement that are not inside a call of the pipeline."""
        stack = [node]
        while stack:
            one = stack.pop()
            if isinstance(one, ast.Call) and self._is_pipeline(one):
                continue
            yield one
            stack.extend(symbols.children(one))
