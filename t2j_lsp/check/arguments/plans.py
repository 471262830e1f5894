"""The ways to build and call an object that a check tries, best first.

From the ``# t2j:`` comment; from ``get_inputs()`` and ``get_init_inputs()`` of the file; from constructor calls in the
file and what is passed to the result; from uses seen in a run of another object; from defaults, annotations and names.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from t2j_lsp import symbols
from t2j_lsp.check.inputs import Arguments, ArraySpec, Code, CommentError, InputPlan, comments_for
from t2j_lsp.check.program.calls import CallFrame, FoundCall, Unknown, calls_of, resolve
from t2j_lsp.check.program.names import spread, value_for
from t2j_lsp.check.program.objects import CheckedObject
from t2j_lsp.check.program.slice import Slicer

from .argument_uses import called, known_arguments, lists_of_tensors, module_lists, some_modules, text_for
from .settings import settings_in

_FLOATS = frozenset({"randn", "rand", "zeros", "ones", "empty", "normal"})
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_MOST = 8
"""Constructor calls tried."""
_ACTIVATION = "nn.ReLU"
"""A class that names suggest, where an instance is called."""


def plans_for(
    slicer: Slicer, item: CheckedObject, seen: Mapping[str, list[InputPlan]] | None = None
) -> list[InputPlan]:
    """Plans for an object, best first. ``seen`` holds the uses of classes in runs of other objects.

    Raises CommentError where the object's ``# t2j:`` comment can't be read.
    """
    init, inputs, raising = _from_comment(comments_for(slicer.text, item.node))
    if init is not None and inputs is not None:
        return [InputPlan(init, inputs, "the t2j comment", raising)]
    plans: list[InputPlan] = []
    if item.is_class:
        plans += _from_functions(slicer, item)
        plans += islice(_from_calls(slicer, item), _MOST)
        plans += (seen or {}).get(item.name, [])
        plans += _from_signature(slicer, item)
    else:
        plans += islice(_from_function_calls(slicer, item), _MOST)
        plans.append(InputPlan(Arguments(), None, "the signature"))
    function = next((n for n in _calls_into(item.node)), None)
    known = known_arguments(function, settings_in(slicer.text, str(slicer.path))) if function is not None else {}
    several = [name for name in lists_of_tensors(function) if name not in known] if function is not None else []
    plans = [replace(plan, known=known, several=several) if plan.inputs is None else plan for plan in plans]
    if init is not None:
        plans = [InputPlan(init, p.inputs, p.source) for p in plans] + [InputPlan(init, None, "the t2j comment")]
    if inputs is not None:
        plans = [InputPlan(p.init, inputs, "the t2j comment", raising) for p in plans]
    return _distinct(plans)


def _calls_into(node: ast.stmt) -> Iterator[ast.FunctionDef]:
    """The function that is called: the one at hand, or the ``forward`` of a class."""
    for one in node.body if isinstance(node, ast.ClassDef) else [node]:
        if isinstance(one, ast.FunctionDef) and (one is node or one.name == "forward"):
            yield one


def _distinct(plans: list[InputPlan]) -> list[InputPlan]:
    by_code: dict[str, InputPlan] = {}
    for plan in plans:
        by_code.setdefault(f"{plan.init} | {plan.inputs}", plan)
    return list(by_code.values())


def _from_comment(entries: dict[str, Any]) -> tuple[Arguments | None, Arguments | None, list[Arguments]]:
    entries = dict(entries)
    init = None
    raises = entries.pop("raises", [])
    raises = raises if isinstance(raises, list | tuple) else [raises]
    if any(not isinstance(change, dict) for change in raises) or (raises and not entries.keys() - {"args", "kwargs"}):
        raise CommentError('`raises` should be like raises={"x": f32[2, 3]}, beside an entry for every input')
    if "args" in entries or "kwargs" in entries:
        given = entries.pop("args", ())
        init = Arguments(list(given) if isinstance(given, tuple | list) else [given], dict(entries.pop("kwargs", {})))
    raising = [Arguments([], {**entries, **change}) for change in raises]
    return init, Arguments([], entries) if entries else None, raising


def _from_functions(slicer: Slicer, item: CheckedObject) -> Iterator[InputPlan]:
    """``get_inputs()`` and ``get_init_inputs()``, for the class ``Model`` or the last class of the file."""
    names = slicer.scope.bindings
    classes = [s.name for s in slicer.scope.body if isinstance(s, ast.ClassDef)]
    if "get_inputs" in names and item.name == ("Model" if "Model" in classes else classes[-1]):
        init = Arguments(call="get_init_inputs()") if "get_init_inputs" in names else Arguments()
        yield InputPlan(init, Arguments(call="get_inputs()"), "get_inputs()")


def _from_calls(slicer: Slicer, item: CheckedObject) -> Iterator[InputPlan]:
    """Constructor calls, and the inputs passed to what they make."""
    for call in calls_of(slicer.scope, item.name):
        statement, inputs = call.statement, None
        if isinstance(statement, ast.Assign) and statement.value is call.call:
            target = statement.targets[0]
            inputs = _passed_to(slicer, target.id, call.frame) if isinstance(target, ast.Name) else None
        yield InputPlan(_plain(slicer, call), inputs, f"the call in line {call.call.lineno}")


def _from_function_calls(slicer: Slicer, item: CheckedObject) -> Iterator[InputPlan]:
    for call in calls_of(slicer.scope, item.name):
        args, kwargs = [_spec(slicer, a) for a in call.args], {k: _spec(slicer, v) for k, v in call.kwargs.items()}
        if any(isinstance(a, ArraySpec) for a in (*args, *kwargs.values())):
            yield InputPlan(Arguments(), Arguments(args, kwargs), f"the call in line {call.call.lineno}")


def _plain(slicer: Slicer, call: FoundCall) -> Arguments:
    return Arguments([_value(slicer, a) for a in call.args], {k: _value(slicer, v) for k, v in call.kwargs.items()})


def _value(slicer: Slicer, node: ast.expr) -> Any:
    """A literal's value, or the expression to evaluate."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        return Code(ast.unparse(_InFull(slicer).visit(copy.deepcopy(node))))


class _InFull(ast.NodeTransformer):
    """Writes what a file imports from PyTorch by its full name, which the conversion has no import for."""

    def __init__(self, slicer: Slicer) -> None:
        self.slicer = slicer

    def visit_Name(self, node: ast.Name) -> ast.expr:
        full = None if node.id in ("nn", "F") else self.slicer.modules.library_name(self.slicer.main, node.id)
        return ast.parse(full, mode="eval").body if full is not None and full.startswith("torch.") else node


def _spec(slicer: Slicer, node: ast.expr) -> Any:
    return _made_array(node) or _value(slicer, node)


def _passed_to(slicer: Slicer, model: str, frame: CallFrame) -> Arguments | None:
    """The arrays passed to a variable that holds a model."""
    for statement in frame.body:
        for node in ast.walk(statement):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == model):
                continue
            if any(k.arg is None for k in node.keywords) or any(isinstance(a, ast.Starred) for a in node.args):
                continue
            try:
                args = [_spec(slicer, _resolved(slicer, a, frame)) for a in node.args]
                kwargs = {str(k.arg): _spec(slicer, _resolved(slicer, k.value, frame)) for k in node.keywords}
            except Unknown:
                continue
            return Arguments(args, kwargs)
    return None


def _resolved(slicer: Slicer, node: ast.expr, frame: CallFrame) -> ast.expr:
    """An argument at its origin: at the module's level too, ``x`` is what was assigned to it.

    In a loop it is what the first turn gives. Raises Unknown for what only a run of a loop would tell.
    """
    if isinstance(node, ast.Name) and frame.function is None:
        for statement in frame.body:
            if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == node.id:
                node = statement.value
                break
    node = _FirstTurn(slicer.scope.body).visit(copy.deepcopy(node))
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    if any(isinstance(s, _LOOPS) for name in names for s in slicer.scope.statements(name)):
        raise Unknown
    return resolve(slicer.scope, node, frame)


class _FirstTurn(ast.NodeTransformer):
    """Puts the first number for the variables of loops over a ``range``."""

    def __init__(self, body: list[ast.stmt]) -> None:
        self.first: dict[str, ast.expr] = {}
        for node in (n for s in body for n in ast.walk(s)):
            match node:
                case ast.For(ast.Name(name), ast.Call(ast.Name("range"), [_])):
                    self.first[name] = ast.Constant(0)
                case ast.For(ast.Name(name), ast.Call(ast.Name("range"), [start, _, *_])):
                    self.first[name] = start

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.first.get(node.id, node)


def _made_array(node: ast.expr) -> ArraySpec | None:
    """``torch.randn(2, 3)`` and its like, with constant shapes."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return None
    name = node.func.attr
    if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"):
        # torch.randn(2, 3).to(device)
        return _made_array(node.func.value) if name in ("to", "cuda", "cpu", "float", "requires_grad_") else None
    try:
        given = [ast.literal_eval(a) for a in node.args]
    except ValueError:
        return None
    if name == "randint" and len(given) >= 2 and isinstance(given[-1], tuple | list):
        low, high = (0, given[0]) if len(given) == 2 else (given[0], given[1])
        return ArraySpec("int64", tuple(given[-1]), low, high)
    shape = given[0] if len(given) == 1 and isinstance(given[0], tuple | list) else given
    if name in _FLOATS and all(isinstance(n, int) for n in shape):
        return ArraySpec("float32", tuple(shape))
    return None


def _from_signature(slicer: Slicer, item: CheckedObject) -> Iterator[InputPlan]:
    """Defaults, and for required parameters what their annotations and names say: first distinct sizes, then equal.

    64 is a multiple of the groups and heads that code has built in.
    """
    init = constructor(slicer, slicer.main, item.name)
    required = [] if init is None else _required(init)
    stand_ins = called(item.node, init) if init is not None else {}
    lists = module_lists(init) if init is not None else set()
    settings = settings_in(slicer.text, str(slicer.path))
    untyped = [p.arg for p in required if p.annotation is None]
    kept = {name: made for name in untyped if (made := settings.instance(name, item.node)) is not None}
    if kept and kept.keys() == {p.arg for p in required}:
        yield InputPlan(Arguments([], dict(kept)), None, "its settings")
    for equal in (None, 24, 64) if required else (None,):
        values: dict[str, Any] = {}
        for parameter in required:
            value = value_for(parameter.arg, parameter.annotation, slicer.scope, equal)
            if (text := text_for(parameter.arg, parameter.annotation, item.node)) is not None:
                value = text
            elif init is not None and (more := spread(parameter.arg, init, slicer.scope, equal)) is not None:
                value = more
            elif parameter.arg in stand_ins and (not isinstance(value, Code) or value.text == _ACTIVATION):
                value = stand_ins[parameter.arg]
            elif parameter.arg in lists and not isinstance(value, Code):
                value = some_modules(equal or 6)
            elif not isinstance(value, Code):
                value = settings.namespace(parameter.arg, item.node, equal) or value
            if value is None:
                return
            values[parameter.arg] = value
        if kept:
            yield InputPlan(Arguments([], values | kept), None, "its settings")
        yield InputPlan(Arguments([], values), None, "its parameters' names" if required else "the defaults")
    layers = {p.arg: value_for(p.arg, p.annotation, slicer.scope) for p in _optional(init)} if init else {}
    layers = {name: value for name, value in layers.items() if isinstance(value, Code) and name.endswith("layer")}
    if layers:
        yield InputPlan(Arguments([], values | layers), None, "its parameters' names, with every layer")


def _required(function: ast.FunctionDef) -> list[ast.arg]:
    parameters = symbols.positional_parameters(function)[1:]
    required = parameters[: len(parameters) - len(function.args.defaults)]
    by_keyword = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    return required + [p for p, default in by_keyword if default is None]


def _optional(function: ast.FunctionDef) -> list[ast.arg]:
    """The parameters that are None by default."""
    pairs = symbols.defaults(function.args)
    return [p for p, default in pairs if isinstance(default, ast.Constant) and default.value is None]


def constructor(slicer: Slicer, module: str, name: str, depth: int = 0) -> ast.FunctionDef | None:
    """The ``__init__`` that a class of the workspace has or inherits there."""
    home = slicer.modules.home(module, name)
    definition = slicer.modules.load(home[0]) if home else None
    if home is None or definition is None or depth > 10:
        return None
    for index in definition[0].bindings.get(home[1], ()):
        node = definition[0].body[index]
        if isinstance(node, ast.ClassDef):
            for statement in node.body:
                if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
                    if not _passes_on(statement):
                        return statement
                    break
            for base in node.bases:
                text = ast.unparse(base)
                library = slicer.modules.library_name(home[0], text) or text
                inherited = constructor(slicer, home[0], text, depth + 1) or _of_torch(library)
                if inherited is not None:
                    return inherited
    return None


_OF_TORCH = (
    (r"Linear", "in_features, out_features"),
    (r"Conv(Transpose)?\dd", "in_channels, out_channels, kernel_size"),
    (r"(Batch|Instance)Norm\dd|SyncBatchNorm", "num_features"),
    (r"GroupNorm", "num_groups, num_channels"),
    (r"(Layer|RMS)Norm", "normalized_shape"),
    (r"Embedding(Bag)?", "num_embeddings, embedding_dim"),
    (r"MultiheadAttention", "embed_dim, num_heads"),
    (r"LSTM|GRU|(LSTM|GRU)Cell", "input_size, hidden_size"),
)
"""What PyTorch's layers ask for, for classes that derive from them."""


def _passes_on(init: ast.FunctionDef) -> bool:
    """Whether a constructor hands all its arguments to its base class: ``__init__(self, *args, **kwargs)``."""
    arguments = init.args
    return len(arguments.args) == 1 and not arguments.kwonlyargs and arguments.vararg is not None


def _of_torch(base: str) -> ast.FunctionDef | None:
    """The constructor of a class of ``torch.nn``, as far as arguments are required."""
    prefix, _, name = base.rpartition(".")
    for pattern, parameters in _OF_TORCH:
        if prefix in ("nn", "torch.nn", "") and re.fullmatch(pattern, name):
            made = ast.parse(f"def __init__(self, {parameters}): ...").body[0]
            assert isinstance(made, ast.FunctionDef)
            return made
    return None
