"""Facts of calls: of libraries, by their rules, and of the file's own classes, functions and modules.

Who needs rngs for them is noted on the way.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from t2j_lsp import symbols
from t2j_lsp.translate.rule.binding import argument, rule_result
from t2j_lsp.translate.rule.definitions import Class, Function, FunctionInfo, Instance, is_module, is_module_class
from t2j_lsp.translate.rule.facts import (
    FLOAT,
    INT,
    PACKED,
    STR,
    TENSOR,
    UNKNOWN,
    AnyModule,
    Fact,
    Layer,
    ListOf,
    ModuleClass,
    Object,
    Partial,
    Qual,
    Scalar,
    Tensor,
    Transformed,
    Tuple,
    is_number,
)
from t2j_lsp.translate.rule.join import element, join_all
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import CLASSES, FURTHER_TENSORS, Trait, names_with
from t2j_lsp.translate.rule.names import ARRAY_LIBRARIES, canonical
from t2j_lsp.translate.rule.one_of import OneOf
from t2j_lsp.translate.rule.record import REGISTRY, Rule

from .annotations import annotation_fact
from .bodies import Bodies
from .builtin_calls import BuiltinCalls
from .choices import chosen_layers
from .einops_calls import einops_value
from .evidence import ParameterEvidence
from .forward_pass import CONTAINERS, Env, Infer, State, UnknownParameter, contents
from .methods import Methods
from .module_methods import runs_on_parameter
from .operators import as_number

_PARAMETERS = names_with(Trait.PARAMETER)
_DRAWN_BY = {
    **dict.fromkeys(("rand", "randn", "random", "random_sample"), 0),
    "exponential": 1,
    **dict.fromkeys(("beta", "gamma", "laplace", "lognormal", "normal", "randint", "uniform"), 2),
}
"""Functions of ``numpy.random`` that draw one number, with as many numbers as they take for it; then comes a size."""
_SEEDS, _DEVICE_SEEDS = names_with(Trait.SEED), names_with(Trait.DEVICE_SEED)


class CallFacts:
    """Calls, by what is called. The parts that know more of it are made where they are first asked."""

    def __init__(
        self,
        state: State,
        infer: Infer,
        bodies: Bodies,
        evidence: Callable[[], ParameterEvidence],
        library: Callable[[], LibraryCalls],
        builtins: Callable[[], BuiltinCalls],
        methods: Callable[[], Methods],
    ) -> None:
        self.state = state
        self.infer = infer
        self.bodies = bodies
        self.evidence = evidence
        self.library = library
        self.builtins = builtins
        self.methods = methods

    def call(self, node: ast.Call, env: Env) -> Fact:
        function = self._called(node, env)
        arguments = [self.infer.expr(a, env) for a in node.args]
        named = [self.infer.expr(keyword.value, env) for keyword in node.keywords]
        if isinstance(node.func, ast.Name) and function is UNKNOWN and node.func.id not in env:
            if node.func.id == "map" and len(arguments) > 1:
                for fact in arguments[1:]:
                    self.state.uses.note_indexed(fact)
                return ListOf(self._mapped(node.args[0], arguments, env))
            if node.func.id == "filter" and len(arguments) == 2 and isinstance(node.args[0], ast.Lambda):
                self._mapped(node.args[0], arguments, env)
            if (member := _member(node, arguments)) is not None:
                return member
            if node in self.state.chosen_names and chosen_layers(arguments[0], self.state.chosen_names[node]):
                return ModuleClass()
            return self.builtins().call(node, node.func.id, arguments)
        match function:
            case Qual(name="typing.cast") if len(node.args) == 2:
                stated = annotation_fact(node.args[0], lambda n: self.infer.expr(n, env))
                return arguments[1] if stated == UNKNOWN else stated
            case Qual(name=name) if name.partition(".")[0] == "tqdm" and name.endswith(".tqdm") and _yields(arguments):
                return arguments[0]
            case Qual():
                return self.library().call(node, function.name, arguments)
            case OneOf(names=names):
                return join_all([self.library().call(node, name, arguments) for name in sorted(names)])
            case Class():
                self.state.note_call(function.info, [*arguments, *named], _gives_rngs(node))
                self.bodies.infer_class(function.info)
                self.evidence().passed(function.info.method("__init__"), node, skip=1)
                return Instance(function)
            case UnknownParameter() if self.evidence().builds_by_name(function, node):
                self.evidence().add(function, ModuleClass())
                self.state.note_built()
                return AnyModule()
            case ModuleClass():
                self.state.note_built()
                self.state.uses.called_as_classes |= function.lambdas
                return AnyModule()
            case Partial():
                return self._partial_call(node, function, arguments, env)
            case Function():
                self.state.note_call(function.info, [*arguments, *named], _gives_rngs(node))
                result = self.bodies.infer_function(function.info)
                if function.info.is_seeder and self.state.function is not None:
                    self.state.function.seeds = True
                self.evidence().passed(function.info, node, skip=int(isinstance(node.func, ast.Attribute)))
                return result
            case Layer():
                return self._layer_call(function, node, arguments)
            case Transformed():
                if isinstance(function.function, Function):
                    self.state.note_call(function.function.info, [*arguments, *named])
                return function.result(arguments)
            case Instance():
                if function.cls.info.is_module:
                    if arguments:
                        self.evidence().runs(arguments[0])
                    forward = function.cls.info.method("forward")
                    return self.bodies.infer_function(forward) if forward else self._base_call(function)
                self.state.callers.hands_modules |= any(map(is_module, arguments))
                return UNKNOWN
            case AnyModule():
                if node.args:
                    self.evidence().runs(arguments[0])
                return Tensor(sure=False)
            case _:
                self.state.callers.calls_unknown |= not isinstance(node.func, ast.Attribute)
        if isinstance(node.func, ast.Attribute):
            return self.methods().method(node, node.func, arguments, env)
        return UNKNOWN

    def _called(self, node: ast.Call, env: Env) -> Fact:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return UNKNOWN
        fact = self.infer.expr(node.func, env)
        if isinstance(fact, ModuleClass) and runs_on_parameter(node, self.state.function):
            fact = self.state.facts[node.func] = AnyModule()
        return fact

    def _base_call(self, function: Instance) -> Fact:
        base = function.cls.info.layer_base
        return LAYERS[base].result if base in LAYERS else Tensor(sure=False)

    def _layer_call(self, layer: Layer, node: ast.Call, arguments: list[Fact]) -> Fact:
        if arguments:
            self.evidence().add(arguments[0])
        rule = LAYERS.get(layer.name)
        if rule is None:
            return Tensor(sure=False)
        if isinstance(rule.result, Tensor) and rule.result.dtype == "same":
            given = arguments[0] if arguments else UNKNOWN
            return replace(given, variable=False) if isinstance(given, Tensor) else replace(rule.result, dtype=None)
        if isinstance(rule.result, Tuple) and arguments[:1] == [PACKED]:
            return Tuple((PACKED, *rule.result.items[1:]))
        return rule.result

    def _partial_call(self, node: ast.Call, function: Partial, arguments: list[Fact], env: Env) -> Fact:
        inner = function.function
        if is_module(inner):
            self.state.note_built()
            return inner
        if is_module_class(inner, LAYERS):
            self.state.note_built()
            if isinstance(inner, Class):
                return Instance(inner)
            return Layer(inner.name) if isinstance(inner, Qual) else AnyModule()
        if isinstance(inner, Function):
            self.state.note_call(inner.info)
            return self.bodies.infer_function(inner.info)
        if isinstance(inner, Qual):
            return self.library().call(node, inner.name, arguments)
        return inner if isinstance(inner, Tensor) else UNKNOWN

    def _mapped(self, node: ast.expr, arguments: list[Fact], env: Env) -> Fact:
        """The fact of ``f(x)`` in ``map(f, xs)``; a lambda's body is inferred again, knowing its parameters."""
        items = list(map(element, arguments[1:]))
        match arguments[0]:
            case Function() as function:
                self.state.note_call(function.info)
                return self.bodies.infer_function(function.info)
            case Layer() | AnyModule():
                return Tensor(sure=False)
            case Qual(name=name) if name.partition(".")[0] in ARRAY_LIBRARIES:
                return Object("array", name)
            case Qual(name=name) if name in names_with(Trait.FROM_VALUES):
                return Tensor()
            case _:
                pass
        if not isinstance(node, ast.Lambda) or len(node.args.args) != len(items):
            return UNKNOWN
        names = [a.arg for a in node.args.args]
        return self.infer.expr(node.body, {**env, **dict(zip(names, items, strict=True))})


def _yields(arguments: list[Fact]) -> bool:
    """Whether it is known of an iterable what it yields."""
    return bool(arguments) and isinstance(arguments[0], ListOf) and arguments[0].item != UNKNOWN


def _seeded_parameter(function: FunctionInfo, call: ast.Call, name: str) -> str:
    """The parameter that a function seeds torch's generator with, whatever else it does; else what was known of it."""
    parameters = {a.arg for a in symbols.named_parameters(function.node)}
    given = argument(call, 0, "seed")
    direct = any(isinstance(s, ast.Expr) and s.value is call for s in function.node.body)
    if name not in _SEEDS or not direct or not isinstance(given, ast.Name) or given.id not in parameters:
        return function.seeds_with
    return given.id if function.owner is None and function.outer is None else ""


def _array_dtype(node: ast.Call) -> str | None:
    """What NumPy's array holds, where the call that makes it says ``int`` or ``bool``: ``np.zeros(n, dtype=bool)``."""
    given = next((k.value for k in node.keywords if k.arg == "dtype"), None)
    name = ast.unparse(given).rpartition(".")[2].strip("'\"_") if given is not None else ""
    return next((kind for kind in ("bool", "int") if name.rstrip("0123456789") == kind), None)


def _of_array_library(node: ast.Call, name: str, arguments: list[Fact]) -> Fact:
    """What a function of numpy, or of a library like it, gives: an array, or the one number that is drawn."""
    if name.partition(".")[0] not in ARRAY_LIBRARIES:
        return UNKNOWN
    package, _, drawn = name.rpartition(".")
    if name in names_with(Trait.OF_A_NUMBER) and not node.keywords and arguments:
        if all(is_number(as_number(argument)) for argument in arguments):
            return FLOAT
    if (
        package != "numpy.random"
        or len(node.args) > _DRAWN_BY.get(drawn, -1)
        or any(k.arg == "size" for k in node.keywords)
    ):
        return Object("array", name, _array_dtype(node))
    if not all(isinstance(fact, Scalar) for fact in arguments):
        return UNKNOWN  # Numbers or arrays, as it is given either.
    return INT if drawn == "randint" else FLOAT


# --- libraries --------------------------------------------------------------------------------------------------------


class LibraryCalls:
    """Calls of torch, and of the libraries beside it."""

    def __init__(self, state: State, evidence: Callable[[], ParameterEvidence]) -> None:
        self.state = state
        self.evidence = evidence

    def call(self, node: ast.Call, name: str, arguments: list[Fact]) -> Fact:
        """What the call of a library's function or class gives."""
        made = self._made(node, name, arguments)
        if made is not None:
            return made
        if name in _SEEDS or name in _DEVICE_SEEDS:
            if self.state.function is not None:
                self.state.function.seeds = True
                self.state.function.seeds_with = _seeded_parameter(self.state.function, node, name)
            return UNKNOWN
        rule = REGISTRY.get(name)
        if name.startswith("einops.") and arguments and node.args:
            if rule is not None:
                return rule_result(rule, node, arguments, self.state.facts, method=False)
            self.evidence().add(arguments[0])
            return einops_value(node, name, arguments[0])
        if rule is None:
            return _of_array_library(node, name, arguments)
        return self._by_rule(rule, node, name, arguments)

    def _made(self, node: ast.Call, name: str, arguments: list[Fact]) -> Fact | None:
        """What a constructor makes, or a function hands on of what it is given; None for other calls."""
        if name == "functools.partial" and arguments:
            return Partial(arguments[0], node)
        if name == "itertools.chain" and not any(isinstance(a, ast.Starred) for a in node.args):
            return ListOf(join_all([element(one) for one in arguments]))
        if name in ("copy.copy", "copy.deepcopy") and arguments:
            return self.evidence().copied(node, arguments[0])
        if name in _PARAMETERS:
            inner = arguments[0] if arguments else TENSOR
            return replace(inner, variable=True) if isinstance(inner, Tensor) else Tensor(variable=True)
        if name in LAYERS:
            if LAYERS[name].random or name in CONTAINERS:
                self.state.note_built()
            self.evidence().sizes(node, name)
            return Layer(name, node, self._children(node, name, arguments))
        if (known := CLASSES.get(name)) is not None and known.makes is not None:
            return Object(known.makes, name)
        if name.startswith("torch.optim.") and name.rpartition(".")[2][:1].isupper():
            return Object("scheduler" if "lr_scheduler" in name else "optimizer", name)
        if name == "collections.OrderedDict":
            return ListOf(element(element(arguments[0])) if arguments else UNKNOWN, STR)
        return None

    def _by_rule(self, rule: Rule, node: ast.Call, name: str, arguments: list[Fact]) -> Fact:
        """What a rule's record says of the value; arguments that only tensors can be are evidence."""
        if arguments and rule.result != "none" and takes_tensor_first(rule):
            self.evidence().add(arguments[0])
            self.evidence().gives_tensor(node.args[0] if node.args else None)
        for fact in arguments[1 : FURTHER_TENSORS.get(name, 1)]:
            self.evidence().add(fact)
        if len(node.args) > 1 and _takes_sizes(rule):
            for fact in arguments[: len(node.args)]:
                self.evidence().add(fact, INT)
        self.state.note_random(node, name, rule)
        return rule_result(rule, node, arguments, self.state.facts, method=False)

    def _children(self, node: ast.Call, name: str, arguments: list[Fact]) -> tuple[Fact, ...] | None:
        """Facts of a container's children where the call lists them."""
        if name == "torch.nn.Sequential":
            if any(isinstance(a, ast.Starred) for a in node.args):
                return self._spread(node)
            if len(arguments) == 1 and not is_module(arguments[0]):
                children = [self.state.facts.get(v, UNKNOWN) for v in _listed(node.args[0]) or ()]
                return tuple(children) if children and all(map(is_module, children)) else None
            return tuple(arguments)
        if name == "torch.nn.ModuleList" and arguments and contents(node) is not None:
            if isinstance(arguments[0], Tuple):
                return arguments[0].items
            if isinstance(arguments[0], ListOf) and is_module(arguments[0].item):
                return (arguments[0].item,)
        if name == "torch.nn.ParameterList" and arguments and isinstance(inner := element(arguments[0]), Layer):
            return (inner,)  # lists of parameters in a list
        return None

    def _spread(self, node: ast.Call) -> tuple[Fact, ...] | None:
        """The children of ``nn.Sequential(*[a, b], c)``; None where a list is not written out."""
        children: list[ast.expr] = []
        for passed in node.args:
            match passed:
                case ast.Starred(value=ast.List(elts=listed) | ast.Tuple(elts=listed)):
                    children += listed
                case ast.Starred():
                    return None
                case _:
                    children.append(passed)
        return tuple(self.state.facts.get(child, UNKNOWN) for child in children)


def _listed(node: ast.expr) -> list[ast.expr] | None:
    """The values of a dict that is written out, in order: ``OrderedDict([("fc", layer), ...])``; None otherwise."""
    if isinstance(node, ast.Call):
        return _listed(node.args[0]) if len(node.args) == 1 and not node.keywords else None
    if isinstance(node, ast.Dict):
        return node.values if None not in node.keys else None
    if not isinstance(node, ast.List | ast.Tuple):
        return None
    pairs = [e.elts for e in node.elts if isinstance(e, ast.List | ast.Tuple) and len(e.elts) == 2]
    return [pair[1] for pair in pairs] if len(pairs) == len(node.elts) else None


def takes_tensor_first(rule: Rule) -> bool:
    """Whether the first argument of a function can only be a tensor, as far as the name of its parameter says."""
    parameters = rule.signatures[0].parameters
    return bool(parameters) and parameters[0].name in ("input", "self", "tensor", "x", "query", "condition")  # type: ignore[index]


def _gives_rngs(node: ast.Call) -> bool:
    """Whether a call was converted before, and brings its generator along."""
    return any(keyword.arg == "rngs" for keyword in node.keywords)


def _member(node: ast.Call, arguments: list[Fact]) -> Fact | None:
    """``getattr(nn, "Linear")`` is ``nn.Linear``."""
    match node, arguments:
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name))], keywords=[]), [
            Qual() as owner,
            _,
        ]:
            return Qual(canonical(f"{owner.name}.{name}"))
    return None


def _takes_sizes(rule: Rule) -> bool:
    """Whether several arguments by position are the lengths of axes: ``torch.zeros(2, n)``, ``torch.Tensor(2, n)``."""
    parameters = rule.signatures[-1].parameters
    return bool(parameters) and parameters[0].name in ("size", "data") and parameters[0].kind == "star"  # type: ignore[index]
