"""Whether code can run under jit, and which of its inputs have to be known when it is traced."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property

from t2j_lsp import syntax
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.host_random import ONCE, host_draw, is_host_draw, prints_an_array, prints_in_forward
from t2j_lsp.translate.rule.facts import (
    Class,
    Fact,
    Function,
    FunctionInfo,
    Instance,
    Layer,
    ListOf,
    Object,
    Qual,
    Scalar,
    Shape,
    Tensor,
    Transformed,
    Tuple,
    is_module,
)
from t2j_lsp.translate.rule.join import element
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import Trait, has_rules, is_loss, names_with
from t2j_lsp.translate.rule.names import TENSOR_ONLY, is_torch
from t2j_lsp.translate.rule.record import REGISTRY

from .input_gradients import input_gradient
from .masks import selection, selection_in_forward, sized_by_values
from .static_values import is_held_function
from .step_calls import Reader

HOST_METHODS = frozenset(
    {"item", "tolist", "numpy", "backward", "register_hook", "requires_grad_", "cpu_", "share_memory_"}
)
MODE_METHODS = frozenset(
    {
        "train",
        "eval",
        "zero_grad",
        "state_dict",
        "load_state_dict",
        "to",
        "cuda",
        "apply",
    }
)
BUILTINS = frozenset(
    [
        "len",
        "range",
        "zip",
        "enumerate",
        "sum",
        "min",
        "max",
        "abs",
        "tuple",
        "list",
        "dict",
        "set",
        "isinstance",
        "getattr",
        "hasattr",
        "sorted",
        "reversed",
        "int",
        "float",
        "bool",
        "str",
        "slice",
        "map",
        "any",
        "all",
        "round",
        "type",
        "callable",
        "super",
    ]
)
PURE = (
    "jax",
    "math",
    "functools",
    "einops",
    "typing",
    "collections",
    "contextlib.nullcontext",
    "operator",
    "itertools",
)
CONTAINER_METHODS = frozenset({"get", "items", "values", "keys", "append", "extend", "copy", "pop", "index", "insert"})


_GROWING = frozenset({"append", "extend", "insert"})


class Once(str):
    """What compiled code would do once, and code that is traced at each call does each time."""


class Drawn(Once):
    """A number that may decide which way code goes, so that some parameters get no gradient in some steps."""


class Jittable:
    """Looks for what would run only once, or fail, under jit."""

    def __init__(
        self, inference: Inference, reader: Reader, lifted: Collection[ast.AST], reasons: Mapping[ast.AST, str]
    ) -> None:
        self.inference = inference
        self.reader = reader
        self.lifted = lifted
        """Functions that are given what they read from outside."""
        self.reasons = reasons
        """Why others can't be given it."""
        self._known: dict[FunctionInfo, str | None] = {}

    def problem(self, node: ast.AST, given: Collection[ast.AST] = ()) -> str | None:
        """Why a statement or expression can't run under jit; None if it can. What is ``given`` is made before."""
        return worst(map(self._problem, self._walk(node, given)))

    def _walk(self, node: ast.AST, left_out: Collection[ast.AST] = ()) -> list[ast.AST]:
        """The nodes of some code, without type annotations."""
        out: list[ast.AST] = []
        stack = [node]
        while stack:
            one = stack.pop()
            if one in left_out:
                continue
            out.append(one)
            skipped = {one.annotation} if isinstance(one, ast.AnnAssign | ast.arg) else set()
            stack.extend(c for c in syntax.children(one) if c not in skipped)
        return out

    def _problem(self, node: ast.AST) -> str | None:
        match node:
            case ast.Call():
                return self._call(node)
            case ast.Attribute(attr="grad" | "grad_fn" | "requires_grad"):
                if isinstance(self.inference.fact(node.value), Tensor):
                    return f"it reads .{node.attr}, which JAX arrays don't have"
            case ast.Attribute(value=owner, attr=name, ctx=ast.Load()) if self._keeps_values(owner, name):
                return f"it reads {ast.unparse(node)}, values of earlier calls, which carry no gradient in JAX"
            case ast.Attribute(ctx=ast.Store()):
                return f"it assigns the attribute {ast.unparse(node)}"
            case (
                ast.While() | ast.Try() | ast.AsyncFor() | ast.AsyncWith() | ast.Match() | ast.Global() | ast.Nonlocal()
            ):
                return f"it contains a {type(node).__name__.lower()} statement"
            case ast.Yield() | ast.YieldFrom() | ast.Await():
                return "it contains a yield or await"
            case ast.Import() | ast.ImportFrom() | ast.ClassDef() | ast.Delete():
                return "it contains a definition, an import or a del"
            case ast.If() | ast.IfExp() if isinstance(self.inference.fact(node.test), Tensor):
                return f"{ast.unparse(node.test)} decides with an array's value"
            case ast.Break() | ast.Continue():
                return "it leaves a loop early"
        return None

    def _keeps_values(self, owner: ast.expr, name: str) -> bool:
        """Whether a module has a list under a name that is filled as it is called: ``policy.saved_log_probs``."""
        fact = self.inference.fact(owner)
        held = fact.cls.info.attribute(name) if isinstance(fact, Instance) and is_module(fact) else None
        if not isinstance(held, ListOf | Tuple) or is_module(element(held)):
            return False
        grows = (n for n in self.inference.source.nodes if isinstance(n, ast.Attribute) and n.attr in _GROWING)
        return any(isinstance(n.value, ast.Attribute) and n.value.attr == name for n in grows)

    def _call(self, node: ast.Call) -> str | None:
        if (call := sized_by_values(self.inference, node)) is not None:
            return selection(self.inference, call)
        fact = self.inference.fact(node.func)
        text = ast.unparse(node.func)
        match fact:
            case Qual():
                return self._library(fact.name, text) if input_gradient(self.inference, node) is None else None
            case Function():
                return self.function_problem(fact.info)
            case Class():
                return f"it builds a {fact.name}" if fact.info.is_module else None
            case Layer():
                return None
            case Transformed():
                return self._transformed(fact, text)
        if is_module(fact):
            return worst((self.module_problem(fact), self._stale)) if not is_loss(fact) else None
        if isinstance(node.func, ast.Name):
            return None if self._is_function_of_class(node.func) else self._name(node, node.func.id)
        if isinstance(node.func, ast.Attribute):
            return self._method(node.func, text) if not _asks_gradient(node) else None
        return f"it calls {text}"

    def _transformed(self, made: Transformed, text: str) -> str | None:
        """A call of what a library made of a function: a gradient of it, or one over a batch."""
        match made.function:
            case Function(info=info):
                return self.function_problem(info)
            case Transformed() as inner:
                return self._transformed(inner, text)
            case Layer():
                return None
            case _:
                return f"it calls {text}"

    def module_problem(self, fact: Fact) -> str | None:
        """What a module does when it is called that compiled code would do once."""
        name = f"{fact.cls.info.name}.forward" if isinstance(fact, Instance) else "a module's forward"
        prints = prints_in_forward(self.inference, fact)
        if any(prints_an_array(self.inference, node) for node in prints):
            return f"{name} prints an array, which has no values where gradients are traced: use jax.debug.print"
        drawn = host_draw(self.inference, fact)
        if drawn is not None:
            return Drawn(f"in {name}, {drawn}() {ONCE}")
        if isinstance(fact, Instance) and (selected := selection_in_forward(self.inference, fact.cls.info)):
            return selected
        return Once(f"{name} prints") if prints else None

    @cached_property
    def _stale(self) -> str | None:
        """What a module of the file reads of the module level that changes: the step keeps what was there first."""
        changing = self._changing
        for info in self.inference.functions.values() if changing else ():
            if info.runs_in_module and not info.external:
                names = [n for n in syntax.walk(info.node) if isinstance(n, ast.Name) and n.id in changing]
                bound_in = self.inference.source.bound_in
                for name in (n.id for n in names if not bound_in(n, info.node)):
                    return f"{info.name} reads {name}, which changes while the program runs; make it a parameter"
        return None

    @cached_property
    def _changing(self) -> set[str]:
        """Variables of the module level that get new values in functions or loops."""
        source = self.inference.source
        found = set(source.symbols.bound_again)
        for node in source.tree.body:
            names = [n for n in syntax.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)]
            stores = [
                n for n in names if not any(isinstance(a, ast.comprehension) for a in ancestors(n, source.parents))
            ]
            if isinstance(node, ast.For | ast.While | ast.AugAssign | ast.With | ast.If | ast.Try):
                found |= {n.id for n in stores if self._is_repeated(n)}
        return found

    def _is_repeated(self, node: ast.AST) -> bool:
        """Whether a name of the module level gets its value in a loop, or from what it was."""
        around = list(ancestors(node, self.inference.source.parents))
        inner = ast.FunctionDef | ast.ClassDef | ast.Lambda | ast.comprehension
        if any(isinstance(at, inner) for at in around):
            return False
        return any(isinstance(at, ast.For | ast.While | ast.AugAssign) for at in around)

    def _has_own_gradient(self, owner: Fact) -> bool:
        """Whether it is a class of the file with a gradient of its own, whose ``apply`` is a function."""
        return isinstance(owner, Class) and any(
            isinstance(base, Qual) and base.name in names_with(Trait.OWN_GRADIENT) for base in owner.info.bases
        )

    def _is_function_of_class(self, node: ast.Name) -> bool:
        """Whether a name is only ever given such a function: ``square = Square.apply``."""
        values = self.reader.assigned(node.id)
        return bool(values) and all(
            isinstance(v, ast.Attribute) and v.attr == "apply" and self._has_own_gradient(self.inference.fact(v.value))
            for v in values
        )

    def _library(self, name: str, text: str) -> str | None:
        if name in LAYERS:
            return f"it builds the layer {text}" if LAYERS[name].random else None
        if is_torch(name):
            rule = REGISTRY.get(name)
            of_arrays = rule is not None and rule.result == "same"  # an autograd.Variable is its tensor
            if name.startswith(("torch.utils.data.", "torch.autograd.", "torch.optim.")) and not of_arrays:
                return f"it calls {text}"
            return None if rule is not None else f"t2j has no rule for {name}"
        if is_host_draw(Qual(name)):
            return Drawn(f"it calls {text}, which {ONCE}")
        return None if name.startswith(PURE) else f"it calls {text}, which runs outside JAX"

    def _name(self, node: ast.Call, name: str) -> str | None:
        if name in ("int", "float", "bool") and any(isinstance(self.inference.fact(a), Tensor) for a in node.args):
            return f"{name}() takes a number out of an array"
        raised = isinstance(self.inference.source.parents.get(node), ast.Raise)
        if raised or name in BUILTINS or name not in self.inference.env and not _is_builtin(name):
            return None
        return f"it calls {name}, of which nothing is known" if name != "print" else "it prints"

    def _method(self, func: ast.Attribute, text: str) -> str | None:
        owner = self.inference.fact(func.value)
        name = func.attr
        if name in HOST_METHODS:
            return f"{text}() takes values out of JAX"
        match owner:
            case Tensor():
                return None
            case ListOf() | Tuple() | Shape():
                return None if name in CONTAINER_METHODS | {"numel"} else f"it calls {text}"
            case Scalar(kind="str"):
                return None
            case Object():
                return f"it calls {text}" if not has_rules(owner) else None
            case Instance() if not owner.cls.info.is_module and is_held_function(func, self.inference):
                return None
            case Instance() if not owner.cls.info.is_module:
                return f"it calls {text}, whose object can't be passed to a compiled function"
        if name == "apply" and self._has_own_gradient(owner):
            return None
        if is_module(owner):
            if name in MODE_METHODS:
                return f"it calls {text}"
            method = owner.cls.info.method(name) if isinstance(owner, Instance) else None
            return self.function_problem(method) if method is not None else None
        if name in TENSOR_ONLY or (REGISTRY.get(f"torch.Tensor.{name}") is not None and not isinstance(owner, Qual)):
            return None
        return f"it calls {text}, of which nothing is known"

    # --- functions of the file ------------------------------------------------------------------------------------

    def function_problem(self, info: FunctionInfo) -> str | None:
        """Why a function of the file can't be called under jit."""
        if info.node in self.reasons:
            return self.reasons[info.node].rstrip(".")
        if info not in self._known:
            self._known[info] = None
            self._known[info] = self._function_problem(info)
        return self._known[info]

    def _function_problem(self, info: FunctionInfo) -> str | None:
        if info.external:
            host = {n.attr for n in syntax.walk(info.node) if isinstance(n, ast.Attribute)} & HOST_METHODS
            return f"{info.name} uses .{sorted(host)[0]}()" if host else None
        once: str | None = None
        for statement in info.node.body:
            for inner in self._walk(statement):
                if isinstance(inner, ast.Name) and is_module(self.inference.fact(inner)):
                    if info.node in self.lifted:
                        continue
                    if not is_loss(self.inference.fact(inner)) and not self.inference.source.bound_in(inner, info.node):
                        return f"{info.name} uses the module {inner.id} from outside; make it a parameter"
                if isinstance(inner, ast.Return | ast.FunctionDef):
                    continue
                if (selected := selection(self.inference, inner)) is not None:
                    return f"in {info.name}, {selected}"
                problem = self._problem(inner)
                if isinstance(problem, Once):
                    once = worst((once, type(problem)(f"in {info.name}, {problem}")))
                elif problem is not None:
                    return f"in {info.name}, {problem}"
        return once


def worst(problems: Iterable[str | None]) -> str | None:
    """The first problem that code has which isn't compiled either, else a draw, else the first one."""
    found = [problem for problem in problems if problem is not None]
    return min(found, key=lambda problem: isinstance(problem, Once) + (type(problem) is Once), default=None)


def _asks_gradient(node: ast.Call) -> bool:
    """``x.requires_grad_()``: a flag, where JAX is told by what to differentiate."""
    match node:
        case ast.Call(func=ast.Attribute(attr="requires_grad_"), args=[] | [ast.Constant(value=True)], keywords=[]):
            return True
    return False


def _is_builtin(name: str) -> bool:
    import builtins

    return hasattr(builtins, name)
