"""Whether code can run under jit, and which of its inputs have to be known when it is traced."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping

from t2j_lsp import symbols
from t2j_lsp.symbols import FunctionNode, scopes_around
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.forward_pass import CONTAINERS
from t2j_lsp.translate.inference.host_random import (
    ONCE,
    TAKES_OUT,
    decided_in_forward,
    host_draw,
    is_host_draw,
    prints_an_array,
    prints_in_forward,
    taken_out_in_forward,
)
from t2j_lsp.translate.inference.traced_prints import prints_as_traced
from t2j_lsp.translate.rule.array_classes import is_data
from t2j_lsp.translate.rule.definitions import Class, Function, FunctionInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import Fact, Layer, ListOf, Object, Qual, Scalar, Shape, Tensor, Transformed, Tuple
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import Trait, has_rules, is_loss, names_with
from t2j_lsp.translate.rule.names import TENSOR_ONLY, is_torch
from t2j_lsp.translate.rule.own_generators import own_generator
from t2j_lsp.translate.rule.record import REGISTRY
from t2j_lsp.translate.training.data.masks import selection, selection_in_forward, sized_by_values
from t2j_lsp.translate.training.program.once import (
    FILLED_ELSEWHERE,
    Acting,
    ActingByChance,
    Drawn,
    KnownPrint,
    Once,
    keeps,
    stores_array,
    takes_arrays,
)
from t2j_lsp.translate.training.program.static_values import is_held_function
from t2j_lsp.translate.training.program.step_calls import Reader

from .input_gradients import input_gradient
from .kept_values import FROM_MODULE, KeptValues

ASSIGNS = "it assigns the attribute"
HOST_METHODS = frozenset(
    {"item", "tolist", "numpy", "backward", "register_hook", "requires_grad_", "cpu_", "share_memory_", "coalesce"}
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
BUILTINS = frozenset({
    "len", "range", "zip", "enumerate", "sum", "min", "max", "abs", "tuple", "list", "dict", "set", "isinstance",
    "getattr", "hasattr", "sorted", "reversed", "int", "float", "bool", "str", "slice", "map", "any", "all", "round",
    "type", "callable", "super",
})  # fmt: skip
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
        self.kept = KeptValues(inference)
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
            stack.extend(c for c in symbols.children(one) if c not in skipped)
        return out

    def _problem(self, node: ast.AST) -> str | None:
        match node:
            case ast.Call():
                return self._call(node)
            case ast.Attribute(attr="requires_grad", ctx=ast.Store()) if isinstance(
                self.inference.fact(node.value), Tensor
            ):
                return None  # the statement goes
            case ast.Attribute(attr="grad" | "grad_fn" | "requires_grad"):
                if isinstance(self.inference.fact(node.value), Tensor):
                    return f"it reads .{node.attr}, which JAX arrays don't have"
            case ast.Attribute(ctx=ast.Load()) if keeps(self.inference, node):
                return Acting(f"it reads {ast.unparse(node)}, {FILLED_ELSEWHERE}")
            case ast.Attribute(ctx=ast.Store()):
                hard = is_module(self.inference.fact(node.value)) or stores_array(self.inference, node)
                return (str if hard else Acting)(f"{ASSIGNS} {ast.unparse(node)}")
            case ast.While():
                return Acting("it contains a while statement")
            case ast.Try() | ast.AsyncFor() | ast.AsyncWith() | ast.Match() | ast.Global() | ast.Nonlocal():
                return f"it contains a {type(node).__name__.lower()} statement"
            case ast.Yield() | ast.YieldFrom() | ast.Await():
                return "it contains a yield or await"
            case ast.Import() | ast.ImportFrom() | ast.ClassDef() | ast.Delete():
                return "it contains a definition, an import or a del"
            case ast.If() | ast.IfExp() if isinstance(self.inference.fact(node.test), Tensor):
                return Drawn(f"{ast.unparse(node.test)} decides with an array's value")
            case ast.Break() | ast.Continue():
                return Acting("it leaves a loop early")
        return None

    def _call(self, node: ast.Call) -> str | None:
        if (call := sized_by_values(self.inference, node)) is not None:
            return selected(self.inference, call)
        fact = self.inference.fact(node.func)
        text = ast.unparse(node.func)
        match fact:
            case Qual() if (own := own_generator(node, self._function_of(node))) is not None:
                return Drawn(f"it draws from {own}")
            case Qual():
                problem = self._library(fact.name, text) if input_gradient(self.inference, node) is None else None
                return self._acting(node, problem) if not is_torch(fact.name) else problem
            case Function():
                return self.function_problem(fact.info)
            case Class():
                return f"it builds a {fact.name}" if fact.info.is_module else None
            case Layer(name=name):
                return self.kept.problem if name in CONTAINERS else None
            case Transformed():
                return self._transformed(fact, text)
        if is_module(fact):
            return worst((self.module_problem(fact), self.kept.problem)) if not is_loss(fact) else None
        if isinstance(node.func, ast.Name):
            return None if self._is_function_of_class(node.func) else self._name(node, node.func.id)
        if isinstance(node.func, ast.Attribute):
            return self._method(node, node.func, text) if not _asks_gradient(node) else None
        return f"it calls {text}"

    def _acting(self, node: ast.Call, problem: str | None) -> str | None:
        """The same problem, which only compiled code has: what is called is given no arrays."""
        if problem is None or isinstance(problem, Once) or takes_arrays(self.inference, node):
            return problem
        return Acting(problem)

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
        if isinstance(fact, Instance) and (chosen := selection_in_forward(self.inference, fact.cls.info)):
            return Once(chosen)
        for call in taken_out_in_forward(self.inference, fact):
            return Drawn(f"in {name}, {ast.unparse(call.func)}() takes values out of JAX")
        for test in decided_in_forward(self.inference, fact):
            return Drawn(f"in {name}, {ast.unparse(test)} decides with an array's value")
        known = prints_as_traced(self.inference, fact)
        return (KnownPrint if known else Once)(f"{name} prints") if prints else None

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

    def makes_tuple(self, name: str) -> bool:
        """Whether a name is only ever given the class of a named tuple: ``Saved = namedtuple(...)``."""
        facts = [self.inference.fact(v.func) if isinstance(v, ast.Call) else None for v in self.reader.assigned(name)]
        return bool(facts) and all(isinstance(f, Qual) and f.name == "collections.namedtuple" for f in facts)

    def _function_of(self, node: ast.AST) -> FunctionInfo | None:
        around = (at for at in scopes_around(node, self.inference.source.parents) if isinstance(at, FunctionNode))
        return next((self.inference.functions.get(at) for at in around), None)

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
            return Drawn(f"{name}() takes a number out of an array")
        raised = isinstance(self.inference.source.parents.get(node), ast.Raise)
        around = scopes_around(node, self.inference.source.parents)
        local = self.inference.source.symbols.home(name, around) is not None
        given = local or name not in self.inference.env and not _is_builtin(name)
        if raised or given or name in BUILTINS or self.makes_tuple(name):
            return None
        if name == "print":
            return Acting("it prints") if not prints_an_array(self.inference, node) else "it prints"
        return self._acting(node, f"it calls {name}, of which nothing is known")

    def _method(self, node: ast.Call, func: ast.Attribute, text: str) -> str | None:
        owner = self.inference.fact(func.value)
        name = func.attr
        if name in HOST_METHODS:
            taken = f"{text}() takes values out of JAX"
            return Drawn(taken) if name in TAKES_OUT and not node.keywords else taken
        match owner:
            case Tensor():
                return None
            case ListOf() | Tuple() | Shape():
                return None if name in CONTAINER_METHODS | {"numel"} else self._acting(node, f"it calls {text}")
            case Scalar(kind="str"):
                return None
            case Object(kind="array"):
                return self._acting(node, f"it calls {text}")
            case Object():
                return f"it calls {text}" if not has_rules(owner) else None
            case Instance() if not owner.cls.info.is_module and is_held_function(func, self.inference):
                return None
            case Instance() if not owner.cls.info.is_module:
                method = owner.cls.info.method(name)
                problem = self.function_problem(method) if method is not None else None
                if method is None or problem is not None and not isinstance(problem, Once):
                    return problem or f"it calls {text}, of which nothing is known"
                if is_data(owner):
                    return None
                return Acting(f"it calls {text}, whose object can't be passed to a compiled function")
        if name == "apply" and self._has_own_gradient(owner):
            return None
        if is_module(owner):
            if name in MODE_METHODS:
                return f"it calls {text}"
            method = owner.cls.info.method(name) if isinstance(owner, Instance) else None
            return self.function_problem(method) if method is not None else None
        if name in TENSOR_ONLY or (REGISTRY.get(f"torch.Tensor.{name}") is not None and not isinstance(owner, Qual)):
            return None
        return self._acting(node, f"it calls {text}, of which nothing is known")

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
        if info.reads_rngs:
            return FROM_MODULE.format(info.name)
        if info.external:
            host = {n.attr for n in symbols.walk(info.node) if isinstance(n, ast.Attribute)} & HOST_METHODS
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
                problem = worst((self._problem(inner), selected(self.inference, inner)))
                if isinstance(problem, Once):
                    once = worst((once, type(problem)(f"in {info.name}, {problem}")))
                elif problem is not None:
                    return f"in {info.name}, {problem}"
        return once


def worst(problems: Iterable[str | None]) -> str | None:
    """The first problem that code has which isn't compiled either, else what acts, a draw, or the first one."""
    named = [problem for problem in problems if problem is not None]
    hard = next((problem for problem in named if not isinstance(problem, Once)), None)
    acting = next((problem for problem in named if isinstance(problem, Acting)), None)
    drawn = next((problem for problem in named if isinstance(problem, Drawn)), None)
    if hard is None and acting is not None and drawn is not None:
        return ActingByChance(acting)
    once = next((problem for problem in named if not isinstance(problem, KnownPrint)), None)
    return next((problem for problem in (hard, acting, drawn, once, *named) if problem is not None), None)


def selected(inference: Inference, node: ast.AST) -> Once | None:
    """Why code can't be compiled that selects by values; it can run as it is."""
    reason = selection(inference, node)
    return Once(reason) if reason is not None else None


def _asks_gradient(node: ast.Call) -> bool:
    """``x.requires_grad_()``: a flag, where JAX is told by what to differentiate."""
    match node:
        case ast.Call(func=ast.Attribute(attr="requires_grad_"), args=[] | [ast.Constant(value=True)], keywords=[]):
            return True
    return False


def _is_builtin(name: str) -> bool:
    import builtins

    return hasattr(builtins, name)
