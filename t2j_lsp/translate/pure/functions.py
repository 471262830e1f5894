"""Modules of a file as functions: which classes become them, and the text that the translation then reads."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from t2j_lsp import symbols
from t2j_lsp.contract import MARK, Finding
from t2j_lsp.symbols import FunctionNode
from t2j_lsp.translate.expressions.context import Edits, Report
from t2j_lsp.translate.expressions.scope import CurrentStatement, Scope
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Class, ClassInfo, Function, FunctionInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import TENSOR, UNKNOWN, AnyModule, Fact, Layer, Object, Qual, Scalar, Tensor
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.source.given import Given
from t2j_lsp.translate.source.positions import first_line
from t2j_lsp.translate.source.text import Source

from .applying import Applying
from .children import Constructor, OwnChild, Unconvertible, children
from .hoisting import hoisted
from .making import Making
from .methods import called_first
from .names import FunctionNames
from .plan import ModulePlan
from .positions import Rewriting
from .statements import FunctionText, replaced
from .training import TrainedModules

NAME = "torch.nn.Module"
_TRAINING = frozenset({"optimizer", "scheduler", "scaler"})
_HOOKS = frozenset({"train", "eval", "extra_repr", "reset_parameters", "state_dict", "load_state_dict"})
"""Methods that PyTorch calls, or that override its own."""


@dataclass(frozen=True)
class FunctionalText:
    """The text with functions in place of classes, how it came about, and what stays as it was."""

    rewritings: tuple[Rewriting, ...]
    given: Given
    findings: tuple[Finding, ...]
    converted: int
    """Classes that became functions."""

    @property
    def text(self) -> str:
        return self.rewritings[-1].new


@dataclass
class _Draft:
    """What is written of some classes."""

    names: FunctionNames
    edits: Edits
    plans: dict[ClassInfo, ModulePlan] = field(default_factory=dict)
    refused: dict[ClassInfo, Unconvertible] = field(default_factory=dict)
    expressions: dict[tuple[str, str], Fact] = field(default_factory=dict)
    parameters: dict[tuple[str, str], Fact] = field(default_factory=dict)
    trained: TrainedModules | None = None
    handled: set[ast.AST] = field(default_factory=set)
    """What is written of modules that a scope makes and trains."""


class ModuleFunctions:
    """The modules of one file as functions."""

    def __init__(self, inference: Inference) -> None:
        self.inference, self.source = inference, inference.source
        self.classes = [info for info in inference.classes.values() if info.is_module or info.mixed_in]
        self.refused: dict[ClassInfo, Unconvertible] = {}

    def text(self) -> FunctionalText:
        """The text with functions, for as many classes as become functions."""
        candidates = [info for info in self.classes if self._is_eligible(info)]
        while True:
            candidates = [info for info in candidates if info not in self._with_refused()]
            draft = self._draft(candidates)
            if not draft.refused:
                return self._finished(draft)
            self.refused |= draft.refused

    # --- which classes --------------------------------------------------------------------------------------------

    def _is_eligible(self, info: ClassInfo) -> bool:
        problem = self._problem(info)
        if problem is not None:
            self.refused[info] = Unconvertible(*problem)
        return problem is None

    def _problem(self, info: ClassInfo) -> tuple[ast.AST, str] | None:
        """What of a class's head is more than a module of its own."""
        node = info.node
        if self.source.parents.get(node) is not self.source.tree:
            return node, "it is defined inside of something"
        if node.decorator_list or node.keywords or [b.name for b in info.bases if isinstance(b, Qual)] != [NAME]:
            return node, "it is more than a subclass of nn.Module"
        if len(info.bases) > 1 or any(info in other.ancestry()[1:] for other in self.classes):
            return node, "it inherits, or is inherited from"
        for index, statement in enumerate(node.body):
            if index == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue
            if not isinstance(statement, ast.FunctionDef):
                return statement, "it has more in its body than methods"
            if statement.name not in ("__init__", "forward") and (problem := self._of_method(statement)) is not None:
                return statement, problem
        if "forward" not in info.methods or node.body[0].lineno == node.lineno:
            return node, "it has no forward of its own"
        return None

    def _of_method(self, node: ast.FunctionDef) -> str | None:
        """Why a method can't be a function of the parameters, as far as its head tells."""
        if node.decorator_list:
            return f"it has a method {node.name} with decorators"
        if node.name.startswith("__") or node.name in _HOOKS or not node.args.args:
            return f"it has a method {node.name}"
        return None

    def _with_refused(self) -> set[ClassInfo]:
        """The classes that stay, and those that they are used with."""
        refused = set(self.refused)
        links = {
            info: {other for other in self.classes if other is not info and self._names(info, other)}
            for info in self.classes
        }
        while True:
            more = {a for a, others in links.items() if a not in refused and others & refused}
            more |= {b for a, others in links.items() if a in refused for b in others if b not in refused}
            if not more:
                return refused
            for info in more:
                other = next((o for o in refused if o in links[info] or info in links.get(o, ())), None)
                name = other.name if other is not None else ""
                self.refused[info] = Unconvertible(info.node, f"it is used with {name}, which stays a class")
            refused |= more

    def _names(self, info: ClassInfo, other: ClassInfo) -> bool:
        return any(isinstance(n, ast.Name) and n.id == other.name for n in symbols.walk(info.node))

    # --- what is written ------------------------------------------------------------------------------------------

    def _draft(self, candidates: list[ClassInfo]) -> _Draft:
        draft = _Draft(FunctionNames(self.inference, candidates), Edits(self.source))
        constructors: dict[ClassInfo, Constructor] = {}
        for info in candidates:
            try:
                constructors[info] = Constructor(self.inference, info)
            except Unconvertible as problem:
                draft.refused[info] = problem
        order: list[ClassInfo] = []
        for info in candidates:
            self._ordered(info, constructors, order, (), draft)
        for info in order:
            if info not in draft.refused:
                try:
                    self._write(info, constructors[info], draft)
                except Unconvertible as problem:
                    draft.refused[info] = problem
        return draft

    def _ordered(
        self,
        info: ClassInfo,
        constructors: Mapping[ClassInfo, Constructor],
        order: list[ClassInfo],
        path: tuple[ClassInfo, ...],
        draft: _Draft,
    ) -> None:
        """Put a class behind those that it is made of."""
        if info in order or info in draft.refused:
            return
        for attribute in constructors[info].attributes.values():
            for child in children(attribute):
                if isinstance(child, OwnChild):
                    if child.info in (*path, info) or child.info not in constructors or child.info in draft.refused:
                        reason = f"it holds {child.info.name}, which stays a class"
                        draft.refused[info] = Unconvertible(child.node, reason)
                        return
                    self._ordered(child.info, constructors, order, (*path, info), draft)
                    if child.info in draft.refused:
                        reason = f"it holds {child.info.name}, which stays a class"
                        draft.refused[info] = Unconvertible(child.node, reason)
                        return
        order.append(info)

    def _write(self, info: ClassInfo, constructor: Constructor, draft: _Draft) -> None:
        if any(
            child.info in draft.refused
            for a in constructor.attributes.values()
            for child in children(a)
            if isinstance(child, OwnChild)
        ):
            raise Unconvertible(info.node, "it holds a module that stays a class")
        plan = ModulePlan(info, constructor.attributes, draft.plans, tuple(constructor.parameters))
        for method in called_first(info):
            one = plan if method == "forward" else replace(plan, method=method, methods=plan.methods)
            self._function(one, constructor, draft)
            plan.methods[method] = one
        Making(self.inference, constructor, draft.plans, plan, draft.names, draft.edits).write()
        draft.plans[info] = plan
        draft.expressions[draft.names.init(info), "jax.random"] = Qual("jax.random")
        if "__init__" in info.methods:
            self._parameters(info.methods["__init__"], draft.names.init(info), draft)

    def _function(self, plan: ModulePlan, constructor: Constructor, draft: _Draft) -> None:
        """One method as a function."""
        info, name = plan.info, draft.names.method(plan.info, plan.method)
        draft.expressions[name, "jax.random"] = Qual("jax.random")
        draft.expressions[name, "jax.tree"] = Qual("jax.tree")
        if plan.method != "forward" and (plan.updates or not draft.names.is_free(name)):
            why = "buffers that change" if plan.updates else f"something else is called {name}"
            raise Unconvertible(info.methods[plan.method].node, f"it has a method {plan.method}, and {why}")
        applying = Applying(self.inference, constructor, draft.plans, plan, draft.names)
        applying.write()
        function = FunctionText(self.source, constructor, plan, draft.names, draft.edits)
        keys = function.write(applying.statements, applying.settings.prologue, applying.repeated)
        for text, fact in applying.facts:
            code = ast.unparse(ast.parse(replaced(text, keys), mode="eval").body)
            known = draft.expressions.setdefault((name, code), fact)
            if known != fact:  # it stands in two places, and is not the same in both
                draft.expressions[name, code] = TENSOR if isinstance(fact, Tensor) else UNKNOWN
        self._parameters(info.methods[plan.method], name, draft)
        if "__init__" in info.methods:
            self._parameters(info.methods["__init__"], name, draft, plan.settings)

    def _parameters(
        self, method: FunctionInfo, function: str, draft: _Draft, only: tuple[str, ...] | None = None
    ) -> None:
        """The facts of a function's parameters: what the use of them told in the method."""
        for name, fact in method.learned.items():
            if (only is None or name in only) and isinstance(fact, Tensor | Scalar):
                kept = replace(fact, variable=False) if isinstance(fact, Tensor) else Scalar(fact.kind)
                draft.parameters.setdefault((function, name), kept)

    # --- the text -------------------------------------------------------------------------------------------------

    def _finished(self, draft: _Draft) -> FunctionalText:
        report = Report(self.source, scope := Scope())
        edits, marked = draft.edits, set[int]()
        for info, problem in self.refused.items():
            self._gap(report, scope, info.node, problem.node, f"{info.name} stays a class: {problem.reason}", NAME)
            marked.add(first_line(self._outer(info.node)))
        trained = TrainedModules(self.inference, draft.plans, draft.names, edits, draft.expressions)
        draft.trained, draft.handled = trained, trained.handled
        while trained.leave({statement for statement, *_ in self._left(draft)}):
            draft.handled = trained.handled
        trained.write()
        for statement, node, reason, name in self._left(draft):
            self._gap(report, scope, statement, node, reason, name)
            marked.add(first_line(statement))
        for info in draft.plans:
            if "__init__" not in info.methods:
                line = f"def {draft.names.init(info)}(key):"
                edits.insert_before(info.methods["forward"].node, [line, "    return {}", ""], priority=-2)
        for start, reasons in report.todos.items():
            number = self.source.line_of(start)
            if number == 1 or not self.source.line_text(number - 1).lstrip().startswith(MARK):
                at, newline = self.source.starts[number - 1], self.source.newline
                edits.add(at, at, "".join(f"{MARK}: {reason}{newline}" for reason in reasons), 1)
        for package in sorted(draft.names.missing):
            self._import(package, edits)
        first = Rewriting(self.source.text, edits.made)
        between = Source(first.new)
        second = Rewriting(first.new, hoisted(between, {info.name: draft.names.apply(info) for info in draft.plans}))
        kept = frozenset(second.line_forth(first.line_forth(line)) for line in marked)
        given = Given(
            draft.expressions,
            draft.parameters,
            frozenset(draft.names.helpers),
            draft.names.renames,
            self.source.text,
            kept,
        )
        return FunctionalText((first, second), given, report.once(), len(draft.plans))

    def _gap(self, report: Report, scope: Scope, statement: ast.AST, node: ast.AST, reason: str, name: str) -> None:
        outer = self._outer(statement)
        scope.statement = CurrentStatement(outer)
        report.gap(node if hasattr(node, "lineno") else statement, name, "refused", reason)

    def _outer(self, node: ast.AST) -> ast.stmt:
        """The statement of the module level that a node stands in."""
        at = node
        while (parent := self.source.parents.get(at)) is not None and parent is not self.source.tree:
            at = parent
        assert isinstance(at, ast.stmt)
        return at

    def _left(self, draft: _Draft) -> Iterator[tuple[ast.stmt, ast.AST, str, str]]:
        """The statements of the module level that use modules as objects, or train them, and those that call these."""
        left: set[ast.AST] = set()
        asked: Callable[[ast.AST, _Draft], tuple[str, str] | None] = self._objection
        while True:
            staying = [one for one in self._kept(draft, asked) if one[0] not in left]
            yield from staying
            left |= {one[0] for one in staying}
            if not any(isinstance(one[0], FunctionNode | ast.ClassDef) for one in staying):
                return
            asked = partial(self._use, left)

    def _kept(
        self, draft: _Draft, asked: Callable[[ast.AST, _Draft], tuple[str, str] | None]
    ) -> Iterator[tuple[ast.stmt, ast.AST, str, str]]:
        """The statements of the module level to which there is an objection, or was."""
        functions = {info.node for info in self.classes}
        for statement in self.source.tree.body:
            if statement in functions or isinstance(statement, ast.Import | ast.ImportFrom):
                continue
            if self.source.is_marked(statement):
                above = self.source.line_text(first_line(statement) - 1)
                yield statement, statement, above.partition(f"{MARK}: ")[2], NAME
                continue
            for node in symbols.walk(statement):
                reason = asked(node, draft)
                if reason is not None:
                    yield statement, node, *reason
                    break

    def _use(self, left: set[ast.AST], node: ast.AST, draft: _Draft) -> tuple[str, str] | None:
        """Why a statement stays that uses a function or class which does."""
        fact = self.inference.fact(node) if isinstance(node, ast.Name) else UNKNOWN
        used = fact.info.node if isinstance(fact, Function | Class) else None
        return (f"{ast.unparse(node)} stays as it is, and is used here", NAME) if used in left else None

    def _objection(self, node: ast.AST, draft: _Draft) -> tuple[str, str] | None:
        """Why a statement with this node stays as it is, and what it is about."""
        if node in draft.handled:
            return None
        if (
            isinstance(node, ast.Attribute)
            and node.attr == "backward"
            and not (draft.trained and draft.trained.steps(node))
        ):
            return (
                "training code has no form for the target jax yet: use jax.value_and_grad and optax",
                "torch.Tensor.backward",
            )
        if not isinstance(node, ast.expr) or isinstance(node, ast.Constant):
            return None
        fact = self.inference.fact(node)
        if isinstance(fact, Object) and fact.kind in _TRAINING:
            return (
                "training code has no form for the target jax yet: use jax.value_and_grad and optax",
                fact.name or NAME,
            )
        info = fact.info if isinstance(fact, Class) else fact.cls.info if isinstance(fact, Instance) else None
        if info in draft.plans and info is not None:
            made, applied = draft.names.init(info), draft.names.apply(info)
            return f"{info.name} is the functions {made} and {applied}: call them here", NAME
        if isinstance(fact, Layer) and fact.name in LAYERS and LAYERS[fact.name].function:
            return None
        if is_module(fact) or isinstance(fact, Layer | AnyModule) or info is not None and info.is_module:
            return "a module outside of a class has no form for the target jax yet", NAME
        return None

    def _import(self, package: str, edits: Edits) -> None:
        """Import a package in front of what the file imports from it."""
        for statement in self.source.tree.body:
            if isinstance(statement, ast.ImportFrom) and (statement.module or "").partition(".")[0] == package:
                edits.insert_before(statement, [f"import {package}"], priority=-9)
                return
