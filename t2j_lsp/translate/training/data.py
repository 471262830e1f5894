"""Data pipelines: ``torch.utils.data`` stays in PyTorch, with everything that feeds it; batches become JAX arrays.

Datasets and loaders run in worker processes and on the CPU, so a program that trains in JAX keeps them. A value that
one of them is built from is left in PyTorch too, and converted with ``jnp.asarray`` where JAX code reads it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors, with_ancestors
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer, StatementRewriter
from t2j_lsp.translate.inference.call_sites import called_function
from t2j_lsp.translate.inference.forward_pass import join_all
from t2j_lsp.translate.rule.facts import (
    NONE,
    UNKNOWN,
    Class,
    ClassInfo,
    Fact,
    Function,
    FunctionInfo,
    Instance,
    ListOf,
    Object,
    Qual,
    Tensor,
    is_module,
)
from t2j_lsp.translate.rule.names import is_jax, is_torch
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.rule.record import REGISTRY

from .dict_order import DictOrder
from .feeding_classes import feeds_alone, makes_one
from .kept_values import as_arrays, assigned_to, handed_on, holds_tensors, knows_parts, leave, written_names
from .objects import Objects, VariableScope
from .sample_parts import SampleParts
from .spread_arguments import given_arguments

PIPELINE = "torch.utils.data."
PACKAGES = ("torch", "torch.nn", "torch.utils", "torch.utils.data", "torch.cuda")
SURROUNDINGS = ("torch.cuda.", "torch.backends.")
DATASETS = ("torchvision.datasets.", "torchaudio.datasets.", "torchtext.datasets.")


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
        self._followed: set[tuple[str, ast.AST | None]] = set()
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
        self._convert_uses()

    # --- what stays -----------------------------------------------------------------------------------------------

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

    def _keep(self, node: ast.AST) -> None:
        if self.ctx.plan.keeps(node, self.ctx.source.parents):
            return
        self.kept.add(node)
        self._queue.append((node, self.objects.scope(node)))
        if isinstance(node, ast.FunctionDef) or isinstance(node, ast.ClassDef) and not self._is_dataset(node):
            self.ctx.plan.on_statement(node, lambda statements: self._note(node))
        elif isinstance(node, ast.stmt):
            self.ctx.plan.on_statement(node, leave)
        elif isinstance(node, ast.expr):
            text = self.ctx.source.segment(node)
            self.ctx.plan.on_expression(node, lambda renderer: self._kept_expression(renderer, node, text))

    def _note(self, node: ast.FunctionDef | ast.ClassDef) -> None:
        """The definition stays as it is, which its name doesn't tell."""
        self.ctx.report.note(node, node.name, "kept", "The data pipeline uses this, and stays in PyTorch with it.")

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
            self.ctx.report.converted += 1
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
        if (info := self._holder(node)) is not None:
            self.attributes.add((info, node.attr))
            for statement in self._given_by_methods(info, node.attr):
                self._keep_if_torch(statement)

    def _holder(self, node: ast.Attribute) -> ClassInfo | None:
        """The class of the file whose instances have an attribute, which is no dataset and no module."""
        owner = self.ctx.fact(node.value)
        info = owner.cls.info if isinstance(owner, Instance) else None
        return None if info is None or info.is_module or info.node in self.kept else info

    def _given_by_methods(self, info: ClassInfo, name: str) -> Iterator[ast.Assign]:
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
        for statement in self._writers(home).get(name, ()):
            loads = (n for n in symbols.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
            assigned = assigned or all(n.id != name for n in loads)
            if statement not in self.kept and self._reaches(statement, node):
                self._keep_if_torch(statement)
        if not assigned and home.function is not None and (name, home.node) not in self._followed:
            self._followed.add((name, home.node))
            self._follow_argument(home.function, name)

    def _reaches(self, statement: ast.stmt, read: ast.Name) -> bool:
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

    def _last_before(self, read: ast.Name) -> ast.stmt | None:
        """The last statement on the way to a read that gives its variable a new value each time."""
        for at in with_ancestors(read, self.ctx.source.parents):
            if isinstance(at, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
                return None
            if not isinstance(at, ast.stmt):
                continue
            block = self.ctx.source.block_of(at) or []
            for statement in reversed(block[: block.index(at)] if at in block else ()):
                match statement:
                    case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == read.id:
                        if not any(isinstance(n, ast.Name) and n.id == name for n in symbols.walk(value)):
                            return statement
            loop = self.ctx.source.parents.get(at)
            if (
                isinstance(loop, ast.For)
                and at in loop.body
                and any(isinstance(n, ast.Name) and n.id == read.id for n in symbols.walk(loop.target))
            ):
                return loop
        return None

    def _writers(self, home: VariableScope) -> dict[str, list[ast.stmt]]:
        """The statements of a scope that write variables, by their names."""
        if home.node not in self._written:
            found = self._written[home.node] = {}
            for statement in self.objects.statements(home):
                for name in written_names(statement):
                    found.setdefault(name, []).append(statement)
        return self._written[home.node]

    def _keep_if_torch(self, statement: ast.stmt) -> None:
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
                    if other.spread and (other.parameter, info.node) not in self._followed:
                        self._followed.add((other.parameter, info.node))
                        self.names.add((other.parameter, info.node))
                        self._follow_argument(info, other.parameter)

    def _uses_torch(self, node: ast.AST) -> bool:
        """Whether code makes or handles tensors."""
        for inner in symbols.walk(node):
            fact = self.ctx.fact(inner)
            if isinstance(fact, Qual) and is_torch(fact.name) and not fact.name.startswith((PIPELINE, *SURROUNDINGS)):
                if fact.name not in PACKAGES:
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

    # --- where kept values are used -------------------------------------------------------------------------------

    def _convert_uses(self) -> None:
        """Tensors of kept code that JAX code reads go through ``jnp.asarray``."""
        for node in self.ctx.source.nodes:
            if isinstance(node, ast.Call):
                self._first_batch(node)
                fact = self.ctx.fact(node.func)
                if isinstance(fact, Function) and fact.info.node in self.kept and holds_tensors(self.ctx.fact(node)):
                    self._convert(node)
                elif (kept := self._kept_lambda(node.func)) is not None and holds_tensors(self.ctx.fact(kept.body)):
                    self._convert(node, isinstance(self.ctx.fact(kept.body), Tensor))
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                info, held = self._holder(node), self.ctx.fact(node)
                if info is None or (info, node.attr) not in self.attributes or not holds_tensors(held):
                    continue
                if any(statement in self.kept for statement in self._given_by_methods(info, node.attr)):
                    self._convert(node, isinstance(held, Tensor))
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                home = self.objects.home(node.id, self.objects.scope(node))
                if (node.id, home.node) not in self.names:
                    continue
                held = self.ctx.fact(node)
                if not (made := self._assigned_in_torch(node, home)):
                    held = self._given(node.id, home)
                elif held == UNKNOWN and self._is_input(node):
                    self._convert(node, False)
                elif isinstance(held, ListOf) and not knows_parts(held) and (read := self._read_items(node)):
                    self._convert(read, False, mixed=True)
                if holds_tensors(held) and (made or held != UNKNOWN):
                    self._convert(node, isinstance(held, Tensor))

    def _kept_lambda(self, node: ast.expr) -> ast.Lambda | None:
        """The lambda that a name stands for, which stays: ``transform = lambda x: torch.from_numpy(x / 255)``."""
        if not isinstance(node, ast.Name):
            return None
        home = self.objects.home(node.id, self.objects.scope(node))
        match self._writers(home).get(node.id) if (node.id, home.node) in self.names else None:
            case [ast.Assign(value=ast.Lambda() as written) as statement] if statement in self.kept:
                return written
        return None

    def _assigned_in_torch(self, node: ast.Name, home: VariableScope) -> bool:
        return any(s in self.kept and self._reaches(s, node) for s in self._writers(home).get(node.id, ()))

    def _is_input(self, node: ast.Name) -> bool:
        """Whether it is an argument of a module, which takes arrays."""
        call = self.ctx.source.parents.get(node)
        return isinstance(call, ast.Call) and node in call.args and is_module(self.ctx.fact(call.func))

    def _read_items(self, node: ast.Name) -> ast.expr | None:
        """What takes items out of a list, for no variable that kept code reads: ``rows[2:]``, ``for row in rows``."""
        parent = self.ctx.source.parents.get(node)
        match parent:
            case ast.Subscript(value=value, ctx=ast.Load()) if value is node:
                read: ast.expr = parent
            case ast.For(iter=walked) | ast.comprehension(iter=walked) if walked is node:
                return node
            case _:
                return None
        target = assigned_to(read, self.ctx.source.parents)
        if (
            target is not None
            and (target.id, self.objects.home(target.id, self.objects.scope(target)).node) in self.names
        ):
            return None
        return read

    def _given(self, name: str, home: VariableScope) -> Fact:
        """What a parameter that kept code reads is given: tensors that are kept too."""
        if home.function is None or (name, home.node) not in self._followed:
            return UNKNOWN
        calls = self.objects.calls(home.function)
        given = [one for call in calls for one in given_arguments(self.ctx.inference, call, home.function)]
        return join_all([one.fact for one in given if one.parameter == name and one.fact != NONE])

    def _feeds(self, node: ast.expr) -> bool:
        """Whether a value is given, whole or in part, for a parameter that kept code reads."""
        parents = self.ctx.source.parents
        while isinstance(parent := parents.get(node), ast.Subscript) and node is parent.value:
            node = parent
        given, call = node, parents.get(node)
        call = parents.get(call) if isinstance(call, ast.keyword | ast.Starred) else call
        info = called_function(self.ctx.fact(call.func)) if isinstance(call, ast.Call) else None
        if info is None or not isinstance(call, ast.Call):
            return False
        bound = (one for one in given_arguments(self.ctx.inference, call, info) if one.value is given)
        return any((one.parameter, info.node) in self._followed for one in bound)

    def _convert(self, node: ast.expr, one: bool | None = None, mixed: bool = False) -> None:
        if self.ctx.plan.keeps(node, self.ctx.source.parents) or self._feeds(node):
            return
        parent = self.ctx.source.parents.get(node)
        if isinstance(parent, ast.Attribute) and parent.attr in ("shape", "ndim", "append", "extend"):
            return
        if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "len":
            return
        if isinstance(parent, ast.Call) and self._is_jax(parent.func):
            return  # converted before
        if isinstance(parent, ast.Compare) and all(isinstance(op, ast.Is | ast.IsNot) for op in parent.ops):
            return  # ``if labels is not None``
        text = self.ctx.source.segment(node)
        alone = isinstance(self.ctx.fact(node), Tensor) if one is None else one
        report = self.ctx.report
        self.ctx.plan.on_expression(node, lambda renderer: as_arrays(report, renderer, text, alone, mixed=mixed))
        self.ctx.plan.kept_tensors.add(node)

    def _is_jax(self, node: ast.expr) -> bool:
        fact = self.ctx.fact(node)
        return isinstance(fact, Qual) and is_jax(fact.name)

    def _first_batch(self, node: ast.Call) -> None:
        """``images, labels = next(iter(loader))``, and ``next(batches)`` of a variable for such an iterator."""
        match node:
            case ast.Call(func=ast.Name(id="next"), args=[batches, *_]):
                fact = self.ctx.fact(batches)
            case _:
                return
        around = self.ctx.source.parents.get(node)
        converted = isinstance(around, ast.Call) and self._is_jax(around.func)
        if isinstance(fact, Object) and fact.kind == "batches" and not converted:
            text, report = self.ctx.source.segment(node), self.ctx.report
            targets = around.targets if isinstance(around, ast.Assign) else []
            order = DictOrder(self.ctx)
            ordered = any(map(order.is_dict, targets)) and order.is_read
            mixed = self.samples.may_hold_texts
            self.ctx.plan.on_expression(node, lambda renderer: as_arrays(report, renderer, text, False, ordered, mixed))
