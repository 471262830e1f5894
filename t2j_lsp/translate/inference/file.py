"""The forward pass: for every expression of a file, what it is. Made of parts, one for each kind of node."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Protocol

from t2j_lsp import symbols
from t2j_lsp.translate.rule.definitions import Class, ClassInfo, Function, FunctionInfo, is_module_class
from t2j_lsp.translate.rule.factory import KEYS, SPEED, mark_factory_keywords
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, Object, Qual
from t2j_lsp.translate.rule.names import is_jax, is_torch, may_use_torch
from t2j_lsp.translate.source.scopes import Resolve, relative_resolve, starred_names
from t2j_lsp.translate.source.syntax import imported_names
from t2j_lsp.translate.source.text import Source

from .attributes import AttributeFacts, reads_of_attributes
from .bindings import Bindings
from .bodies import Bodies, Declarations, Imports
from .branches import Branches
from .builtin_calls import BuiltinCalls
from .calls import CallFacts, LibraryCalls
from .choices import BY_NAME, chosen_names
from .evidence import ParameterEvidence
from .forward_pass import Expressions, Flow, State
from .gates import Gate
from .inner_scopes import InnerScopes
from .methods import Methods
from .module_methods import ModuleMethodFacts
from .named_arrays import NAMED, named_arrays
from .narrowing import Narrowing
from .operators import OperatorFacts
from .ordered_walks import WALKS, walked_in_order
from .settings import ReadSettings, read_settings
from .subscripts import SubscriptFacts

MAX_IMPORT_DEPTH = 8
"""How far imports of imports are read."""


class Parts:
    """The parts of one pass, each made when it is first asked for: a file without a ``for`` has none for branches."""

    def __init__(self, source: Source, state: State, read: Callable[[int, str], Inference | None]) -> None:
        self.source, self.state = source, state
        self.imports = Imports(state, read, lambda: source.symbols.unbound)

    @cached_property
    def expressions(self) -> Expressions:
        return Expressions(
            self.state,
            self.imports.member,
            lambda node, owner: self.attributes.attribute(node, owner),
            {
                ast.Call: lambda: self.calls.call,
                ast.Subscript: lambda: self.subscripts.subscript,
                ast.BinOp: lambda: self.operators.binary,
                ast.UnaryOp: lambda: self.operators.unary,
                ast.Compare: lambda: self.operators.compare,
                ast.BoolOp: lambda: self.operators.boolean,
                ast.IfExp: lambda: self.operators.conditional,
                ast.ListComp: lambda: self.scopes.comprehension,
                ast.SetComp: lambda: self.scopes.comprehension,
                ast.GeneratorExp: lambda: self.scopes.comprehension,
                ast.DictComp: lambda: self.scopes.dict_comprehension,
                ast.Lambda: lambda: self.scopes.function,
                ast.NamedExpr: lambda: self.scopes.named,
                ast.Yield: lambda: self.scopes.yielded,
                ast.YieldFrom: lambda: self.scopes.yielded_from,
            },
        )

    @cached_property
    def flow(self) -> Flow:
        return Flow(
            self.state,
            self.expressions,
            {
                ast.Import: lambda: self.imports.bind,
                ast.ImportFrom: lambda: self.imports.bind,
                ast.ClassDef: lambda: self.bodies.class_statement,
                ast.FunctionDef: lambda: self.bodies.function_statement,
                ast.AsyncFunctionDef: lambda: self.bodies.function_statement,
                ast.Assign: lambda: self.bindings.assign,
                ast.AnnAssign: lambda: self.bindings.annotated,
                ast.AugAssign: lambda: self.bindings.augmented,
                ast.If: lambda: self.branches.condition,
                ast.For: lambda: self.branches.loop,
                ast.AsyncFor: lambda: self.branches.loop,
                ast.While: lambda: self.branches.loop,
                ast.With: lambda: self.branches.with_block,
                ast.AsyncWith: lambda: self.branches.with_block,
                ast.Try: lambda: self.branches.try_block,
                ast.Match: lambda: self.branches.match_block,
                ast.Assert: lambda: self.branches.assertion,
            },
        )

    @cached_property
    def declarations(self) -> Declarations:
        return Declarations(self.state, self.expressions, self.imports)

    @cached_property
    def bodies(self) -> Bodies:
        return Bodies(self.source.symbols, self.state, self.expressions, self.flow, self.declarations)

    @cached_property
    def bindings(self) -> Bindings:
        return Bindings(self.state, self.expressions, lambda: self.evidence)

    @cached_property
    def branches(self) -> Branches:
        return Branches(self.expressions, self.flow, self.evidence, self.narrowing, self.bindings)

    @cached_property
    def evidence(self) -> ParameterEvidence:
        return ParameterEvidence(self.state, self.source)

    @cached_property
    def narrowing(self) -> Narrowing:
        return Narrowing(self.state.facts)

    @cached_property
    def calls(self) -> CallFacts:
        return CallFacts(
            self.state,
            self.expressions,
            self.bodies,
            evidence=lambda: self.evidence,
            library=lambda: self.library,
            builtins=lambda: self.builtins,
            methods=lambda: self.methods,
        )

    @cached_property
    def library(self) -> LibraryCalls:
        return LibraryCalls(self.state, lambda: self.evidence)

    @cached_property
    def builtins(self) -> BuiltinCalls:
        return BuiltinCalls(self.state)

    @cached_property
    def methods(self) -> Methods:
        modules = ModuleMethodFacts(self.state, self.evidence, self.bodies)
        return Methods(self.state, self.evidence, self.bodies, self.bindings, modules)

    @cached_property
    def attributes(self) -> AttributeFacts:
        return AttributeFacts(self.state, self.evidence, self.bodies)

    @cached_property
    def subscripts(self) -> SubscriptFacts:
        return SubscriptFacts(self.state, self.expressions, self.evidence, self.source)

    @cached_property
    def operators(self) -> OperatorFacts:
        return OperatorFacts(self.expressions, self.evidence, self.narrowing)

    @cached_property
    def scopes(self) -> InnerScopes:
        return InnerScopes(self.state, self.expressions, self.bindings, self.narrowing)


class Project(Protocol):
    """The files that the converted one imports, as far as they were asked for anything."""

    def read(self, text: str, resolve: Resolve | None, depth: int, module: str) -> Inference | None:
        """The file of a module, by its text."""

    def inferred(self) -> Sequence[Inference]:
        """The files that were read."""


class Inference:
    """Facts of one file. ``facts`` maps each expression node to what is known of it."""

    def __init__(
        self,
        source: Source,
        resolve: Resolve | None = None,
        depth: int = 0,
        assumed: Mapping[ast.AST, Fact] | None = None,
        project: Project | None = None,
    ) -> None:
        self.project = project
        self.source = source
        self.factory_dicts: dict[ast.Assign, bool] = {}
        """Assignments of dictionaries that hold nothing but a device and a dtype, and whether they go."""
        self.resolve = resolve
        self.depth = depth
        self.imported: dict[str, Inference | None] = {}
        given = source.given.of_arguments(source.tree) if source.given.parameters else {}
        self.state = state = State(given | dict(assumed or {}), source.given)
        self.assumed, self.facts, self.env = state.assumed, state.facts, state.env
        self.classes, self.functions = state.classes, state.functions
        self.indexed, self.isinstance_classes = state.uses.indexed, state.uses.isinstance_classes
        self._run()

    def _run(self) -> None:
        """Send the parts over the file: its declarations, then its statements, then bodies that nobody asked for."""
        if not (KEYS | SPEED).isdisjoint(self.source.words):
            self.factory_dicts = mark_factory_keywords(self.source.tree)
        if not (NAMED | WALKS).isdisjoint(self.source.words):
            self.state.named_arrays = named_arrays(self.source) | walked_in_order(self.source)
        if not BY_NAME.isdisjoint(self.source.words):
            self.state.chosen_names = chosen_names(self.source)
        self.state.imports_torch = self.source.computes_with_torch
        parts, body = Parts(self.source, self.state, self._imported), self.source.tree.body
        self._bodies = parts.bodies
        parts.declarations.declare(body)
        parts.flow.block(body, self.state.env)
        for info in list(self.state.functions.values()):
            parts.bodies.infer_function(info)
        self._ask_what_is_named()

    def _ask_what_is_named(self) -> None:
        """Infer what other files say of the functions, classes and methods that this one names without a call."""
        if not any(self.imported.values()):
            return
        classes = {c for info in self.state.classes.values() for c in info.ancestry()}
        read = {node.id for node in self.source.nodes if isinstance(node, ast.Name)}
        for name, fact in self.state.env.items():
            if name not in read:
                continue
            if isinstance(fact, Function) and fact.info.external:
                self._bodies.infer_function(fact.info)
            elif isinstance(fact, Class):
                classes.update(fact.info.ancestry())
        for cls in sorted((c for c in classes if c.home is not None), key=lambda c: c.name):
            self._bodies.infer_class(cls)
            for name, method in cls.methods.items():
                if name in self.source.words:
                    self._bodies.infer_function(method)

    @property
    def holds_tests(self) -> bool:
        """Whether the file holds unit tests."""
        return self.source.holds_tests

    @property
    def imports_torch(self) -> bool:
        """Whether the file imports torch, or computes with what only torch's objects have."""
        return self.state.imports_torch

    @cached_property
    def settings(self) -> ReadSettings:
        """The layers whose settings are read."""
        return read_settings(self.source.nodes, self.fact)

    def ask(self, name: str) -> Fact | None:
        """What the module level binds to a name, if it binds it."""
        return self.env.get(name)

    def ask_all(self) -> None:
        """Infer what was left for when something asks for it."""

    def fact(self, node: ast.AST) -> Fact:
        """What is known of an expression."""
        return self.facts.get(node, UNKNOWN)

    def returns(self, info: FunctionInfo) -> Fact:
        """What a function of the file, or of one that it imports, returns."""
        return self._bodies.infer_function(info)

    def knowing(self, assumed: Mapping[ast.AST, Fact]) -> Inference:
        """The inference repeated, with what else is known of parameters and assigned names."""
        return Inference(self.source, self.resolve, assumed=assumed, project=self.project)

    def has(self, gate: Gate) -> bool:
        """Whether the file has anything that a pass looks for."""
        return (
            not gate.kinds.isdisjoint(self.source.kinds)
            or not gate.words.isdisjoint(self.source.words)
            or not gate.facts.isdisjoint(self._kinds)
            or any(not names.isdisjoint(self.mentioned) for names in gate.names)
            or any(name.startswith(gate.libraries) for name in (self.mentioned | self._bases if gate.libraries else ()))
            or bool(gate.objects)
            and any(isinstance(fact, Object) and fact.kind in gate.objects for fact in self.facts.values())
        )

    @cached_property
    def _kinds(self) -> frozenset[type[Fact]]:
        """The kinds of facts of the file."""
        return frozenset(map(type, self.facts.values()))

    @cached_property
    def _bases(self) -> set[str]:
        """The libraries' classes that classes named in the file derive from."""
        return {base for fact in self.facts.values() if isinstance(fact, Class) for base in fact.info.torch_bases}

    @property
    def draws(self) -> bool:
        """Whether anything of the file may need random keys, or may be asked for them: a module, a draw, a test."""
        return (
            self.holds_tests
            or bool(self.classes)
            or any(self.imported.values())
            or any(info.draws or info.builds or info.seeds for info in self.functions.values())
        )

    @cached_property
    def mentioned(self) -> set[str]:
        """Qualified names of all library objects that the file names."""
        return {fact.name for fact in self.facts.values() if isinstance(fact, Qual)}

    @cached_property
    def torch_imports(self) -> dict[str, str]:
        """The names of the module level that imports of torch may bind, and what each means there."""
        return imported_names(self.source.nodes, self.source.parents, is_torch)

    @cached_property
    def torch_names(self) -> frozenset[str]:
        """The names by which the file reads something of torch."""
        known = [*((n.id, fact) for n, fact in self.facts.items() if isinstance(n, ast.Name)), *self.env.items()]
        starred = starred_names(self.source, self.env) if "import *" in self.source.text else frozenset[str]()
        quals = {name for name, fact in known if isinstance(fact, Qual) and is_torch(fact.name)}
        return starred.union(quals, self.torch_imports)

    @cached_property
    def settled(self) -> frozenset[ast.AST]:
        """Functions that are JAX code already, of a file that was converted before: they name JAX and nothing of torch.

        What such a function does is not to be read as PyTorch: ``x.transpose(0, 2, 1)`` is right as it stands.
        """
        if not self.has_jax:
            return frozenset()
        return frozenset(node for node, info in self.functions.items() if info.outer is None and self._is_settled(info))

    def _is_settled(self, info: FunctionInfo) -> bool:
        owner = info.owner
        if owner is not None and (owner.is_module or owner.mixed_in):
            return False
        bases = [base.name for cls in owner.ancestry() for base in cls.bases if isinstance(base, Qual)] if owner else []
        named = self._libraries_named(info)
        return any(map(is_jax, [*bases, *named])) and not any(map(is_torch, named))

    def names_jax(self, info: FunctionInfo) -> bool:
        """Whether a function names anything of JAX: it is JAX code already, at least in part."""
        return self.has_jax and any(map(is_jax, self._libraries_named(info)))

    @cached_property
    def has_jax(self) -> bool:
        """Whether the file imports JAX: it was converted before, at least in part."""
        return any(isinstance(fact, Qual) and is_jax(fact.name) for fact in self.env.values())

    def _libraries_named(self, info: FunctionInfo) -> list[str]:
        facts = (self.facts.get(node) for node in symbols.walk(info.node) if isinstance(node, ast.Name))
        return [fact.name for fact in facts if isinstance(fact, Qual)]

    @cached_property
    def freezes(self) -> bool:
        """Whether the file sets ``requires_grad`` of anything."""
        return any(
            isinstance(n, ast.Attribute)
            and (n.attr == "requires_grad_" or n.attr == "requires_grad" and isinstance(n.ctx, ast.Store))
            for n in self.source.nodes
        )

    @cached_property
    def attribute_reads(self) -> dict[tuple[ClassInfo | None, str], list[ast.Attribute]]:
        """Reads of attributes by name and by the class of their owner; None for unknown owners.

        The owner may be of a class that derives from what is known of it, and what it reads a base's.
        """
        return reads_of_attributes(self.source.nodes, self.facts, self.classes.values())

    def touches_torch(self) -> bool:
        """Whether the file uses torch classes of a neighbouring file, or functions that make modules of them."""
        known = [*self.env.values(), *self.facts.values()]
        made = any(is_module_class(f) or isinstance(f, Function) and f.info.external for f in known)
        return made or any(info.is_module for info in self.classes.values())

    # --- files that this one imports ------------------------------------------------------------------------------

    def _imported(self, level: int, module: str) -> Inference | None:
        """A file that this one imports, if its text can be had."""
        key = "." * level + module
        if key not in self.imported:
            self.imported[key] = None
            text = self.resolve(level, module) if self.resolve and self.depth < MAX_IMPORT_DEPTH else None
            if text is not None and self.project is not None:
                within = relative_resolve(self.resolve, level, module)
                self.imported[key] = self.project.read(text, within, self.depth + 1, module)
        return self.imported[key]

    def file_of(self, level: int, module: str) -> Inference | None:
        """A file of the project by its module, if its text can be had and has torch in it."""
        text = self.resolve(level, module) if self.resolve and module else None
        return self._imported(level, module) if text is not None and may_use_torch(text) else None

    def beside(self, module: str) -> Inference | None:
        """A file in the same folder, if its text can be had and has torch in it; all of it is inferred."""
        text = self.resolve(1, module) if self.resolve and self.holds_tests else None
        other = self._imported(1, module) if text is not None and may_use_torch(text) else None
        if other is not None:
            other.ask_all()
        return other
