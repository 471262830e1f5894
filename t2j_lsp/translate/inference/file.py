"""The forward pass: for every expression of a file, what it is. Made of parts, one for each kind of node."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cached_property

from t2j_lsp.contract import SourceError
from t2j_lsp.translate.rule.factory import mark_factory_keywords
from t2j_lsp.translate.rule.facts import ClassInfo, Fact, FunctionInfo, Instance, Qual, Tensor, is_module_class
from t2j_lsp.translate.source.scopes import Resolve, relative_resolve
from t2j_lsp.translate.source.text import Source

from .attributes import AttributeFacts
from .bindings import Bindings
from .bodies import Bodies
from .builtin_calls import BuiltinCalls
from .calls import CallFacts
from .declarations import Declarations
from .displays import Displays
from .evidence import Evidence
from .expressions import Expressions
from .flow import StatementFacts
from .imports import Imports
from .inner_scopes import InnerScopes
from .library_calls import LibraryCalls
from .methods import Methods
from .module_methods import ModuleMethodFacts
from .narrowing import Narrowing
from .operators import OperatorFacts
from .state import Env, State
from .subscripts import SubscriptFacts
from .unit_test_files import is_test_file

MAX_IMPORT_DEPTH = 3
"""How far imports of imports are read."""


class Inference:
    """Facts of one file. ``facts`` maps each expression node to what is known of it."""

    def __init__(
        self,
        source: Source,
        resolve: Resolve | None = None,
        depth: int = 0,
        assumed: Mapping[ast.AST, Fact] | None = None,
        read: dict[tuple[str, str], Inference | None] | None = None,
    ) -> None:
        self.read = {} if read is None else read
        """Facts of the files read so far, by name and text; None while a file is being read."""
        self.source = source
        self.factory_dicts = mark_factory_keywords(source.tree)
        self.resolve = resolve
        self.depth = depth
        self.imported: dict[str, Inference | None] = {}
        self.holds_tests = is_test_file(source.tree)
        self.state = state = State(assumed or {})
        self.assumed, self.facts, self.env = state.assumed, state.facts, state.env
        self.classes, self.functions = state.classes, state.functions
        self.indexed, self.isinstance_classes = state.indexed, state.isinstance_classes
        self._run()

    def _run(self) -> None:
        """Put the parts together and send them over the file."""
        state, body = self.state, self.source.tree.body
        expressions = Expressions(state)
        evidence, narrowing = Evidence(state), Narrowing(state.facts)
        bindings, imports = Bindings(state, expressions), Imports(state, self._env_of)
        declarations = Declarations(state, expressions, imports)
        flow = StatementFacts(state, expressions, evidence, narrowing, bindings)
        bodies = self._bodies = Bodies(self.source.symbols, state, expressions, flow, declarations)
        flow.handlers |= {
            ast.Import: imports.bind,
            ast.ImportFrom: imports.bind,
            ast.ClassDef: bodies.class_statement,
            ast.FunctionDef: bodies.function_statement,
            ast.AsyncFunctionDef: bodies.function_statement,
        }
        modules = ModuleMethodFacts(state, evidence, bodies)
        methods = Methods(state, evidence, bodies, bindings, modules)
        library, builtins = LibraryCalls(state, evidence), BuiltinCalls(state)
        operators = OperatorFacts(expressions, evidence, narrowing)
        displays = Displays(expressions)
        scopes = InnerScopes(state, expressions, bindings, narrowing)
        expressions.handlers |= {
            ast.Attribute: AttributeFacts(state, expressions, evidence, bodies, imports).attribute,
            ast.Subscript: SubscriptFacts(state, expressions, evidence).subscript,
            ast.Call: CallFacts(state, expressions, evidence, bodies, library, builtins, methods).call,
            ast.BinOp: operators.binary,
            ast.UnaryOp: operators.unary,
            ast.Compare: operators.compare,
            ast.BoolOp: operators.boolean,
            ast.IfExp: operators.conditional,
            ast.Tuple: displays.sequence,
            ast.List: displays.sequence,
            ast.Set: displays.set,
            ast.Dict: displays.mapping,
            ast.Starred: displays.starred,
            ast.JoinedStr: displays.fstring,
            ast.ListComp: scopes.comprehension,
            ast.SetComp: scopes.comprehension,
            ast.GeneratorExp: scopes.comprehension,
            ast.DictComp: scopes.dict_comprehension,
            ast.Lambda: scopes.function,
            ast.NamedExpr: scopes.named,
            ast.Yield: scopes.yielded,
            ast.YieldFrom: scopes.yielded_from,
        }
        declarations.declare(body)
        flow.block(body, state.env)
        for info in list(state.functions.values()):
            bodies.infer_function(info)

    @property
    def imports_torch(self) -> bool:
        return self.state.imports_torch

    @property
    def indexes_any(self) -> bool:
        """Whether a module of unknown class is indexed somewhere."""
        return self.state.indexes_any

    def returns(self, info: FunctionInfo) -> Fact:
        """What a function of the file, or of one that it imports, returns."""
        return self._bodies.infer_function(info)

    @cached_property
    def mentioned(self) -> set[str]:
        """Qualified names of all library objects that the file names."""
        return {fact.name for fact in self.facts.values() if isinstance(fact, Qual)}

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
        """Reads of attributes by name and by the class of their owner, with its bases; None for unknown owners."""
        found: dict[tuple[ClassInfo | None, str], list[ast.Attribute]] = {}
        for node in self.source.nodes:
            if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Store):
                owner = self.facts.get(node.value)
                if isinstance(owner, Qual | Tensor):
                    continue
                owners = owner.cls.info.ancestry() if isinstance(owner, Instance) else [None]
                for info in owners:
                    found.setdefault((info, node.attr), []).append(node)
        return found

    def touches_torch(self) -> bool:
        """Whether the file uses torch classes that it imports from a neighbouring file."""
        return any(info.is_module for info in self.classes.values()) or any(
            is_module_class(fact) for fact in self.env.values()
        )

    # --- files that this one imports ------------------------------------------------------------------------------

    def _env_of(self, level: int, module: str) -> Env | None:
        other = self._imported(level, module)
        return other.env if other is not None else None

    def _imported(self, level: int, module: str) -> Inference | None:
        """Facts of a file that this one imports, if its text can be had."""
        key = "." * level + module
        if key not in self.imported:
            self.imported[key] = None
            text = self.resolve(level, module) if self.resolve and self.depth < MAX_IMPORT_DEPTH else None
            if text is not None:
                self.imported[key] = self._read(text, relative_resolve(self.resolve, level, module), module)
        return self.imported[key]

    def beside(self, module: str) -> Inference | None:
        """Facts of a file in the same folder, if its text can be had and has torch in it."""
        text = self.resolve(1, module) if self.resolve and self.holds_tests else None
        return self._imported(1, module) if text is not None and "torch" in text else None

    def _read(self, text: str, resolve: Resolve | None, module: str) -> Inference | None:
        """Facts of a file by its text, read once however many files import it."""
        key = (module.rpartition(".")[2], text)
        if key not in self.read:
            self.read[key] = None
            try:
                found = Inference(Source(text), resolve, self.depth + 1, read=self.read)
            except SourceError:
                return None
            for info in found.functions.values():
                info.external = True
            self.read[key] = found
        return self.read[key]
