"""What parameters are, from what the file passes for them: modules, and classes and other makers of modules.

Nothing in ``def make(block, n): return block(n)`` says that ``block`` needs random numbers to be called with; the calls
of ``make`` do. A container is what is put into it, and a decorator's parameter is what stands below it. That ``net``
is a module in ``def count(net)`` is said by ``count(Net())``, and in ``def finish(self, x)`` by ``finish(self, x)``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors, named_parameters, walk
from t2j_lsp.translate.rule.definitions import (
    Class,
    Function,
    FunctionInfo,
    Instance,
    holds_modules,
    is_module,
    layer_names,
)
from t2j_lsp.translate.rule.facts import NONE, TENSOR, UNKNOWN, AnyModule, Fact, ListOf, Tensor, Tuple
from t2j_lsp.translate.rule.join import join, makes_modules, some_maker
from t2j_lsp.translate.rule.library import is_loss
from t2j_lsp.translate.source.folding.uses import runs

from .file import Inference
from .forward_pass import UnknownParameter
from .module_methods import HOOKING

ROUNDS = 3
"""How far a class is followed that is handed from one function to the next."""


def called_function(fact: Fact) -> FunctionInfo | None:
    """The function of the file that a call runs: itself, a method, or a class's constructor."""
    if isinstance(fact, Function):
        return fact.info
    if isinstance(fact, Class):
        return fact.info.method("__init__")
    return None


def reached_functions(inference: Inference, code: Iterable[ast.AST]) -> set[FunctionInfo]:
    """The functions that some code calls, and those that these call."""
    reached: set[FunctionInfo] = set()
    waiting = list(code)
    while waiting:
        for node in walk(waiting.pop()):
            info = function_run_by(inference, node) if isinstance(node, ast.Call) else None
            if info is not None and info not in reached:
                reached.add(info)
                waiting.append(info.node)
    return reached


def function_run_by(inference: Inference, call: ast.Call) -> FunctionInfo | None:
    """The function of the file that a call runs, also by the class of the object that has it as a method."""
    info = called_function(inference.fact(call.func))
    owner = inference.fact(call.func.value) if info is None and isinstance(call.func, ast.Attribute) else None
    if isinstance(owner, Instance) and isinstance(call.func, ast.Attribute):
        return owner.cls.info.method(call.func.attr)
    return info


def bound_arguments(
    node: ast.Call, info: FunctionInfo, through_class: bool = False
) -> Iterator[tuple[ast.arg, ast.expr]]:
    """The parameters of a function of the file with the arguments that a call gives them.

    ``through_class``: the instance is among them, as in ``Net.forward(net, x)``.
    """
    arguments = info.node.args
    plain = [*arguments.posonlyargs, *arguments.args] if through_class else own_parameters(info)
    if any(isinstance(a, ast.Starred) for a in node.args):
        return
    yield from zip(plain, node.args, strict=False)
    by_name = {a.arg: a for a in [*plain, *arguments.kwonlyargs]}
    for keyword in node.keywords:
        if keyword.arg in by_name:
            yield by_name[keyword.arg], keyword.value


def spreads(call: ast.Call) -> bool:
    """Whether a call hands on ``*args`` or ``**options``, so that it doesn't say what it gives."""
    return any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)


def facts_given(inference: Inference, value: ast.expr, depth: int = 0) -> Iterator[Fact]:
    """What a value is: of a parameter, what every call of the function gives for it, whatever its use tells of it."""
    around = ancestors(value, inference.source.parents)
    function = next((inference.functions[at] for at in around if at in inference.functions), None)
    named = () if function is None else named_parameters(function.node)
    if not isinstance(value, ast.Name) or function is None or all(value.id != one.arg for one in named):
        yield UNKNOWN if isinstance(value, ast.IfExp) else inference.fact(value)
        return
    calls = [n for n in inference.source.nodes if isinstance(n, ast.Call)]
    for call in (n for n in calls if called_function(inference.fact(n.func)) is function):
        bound = [given for parameter, given in bound_arguments(call, function) if parameter.arg == value.id]
        if len(bound) != 1 or depth > 3:
            yield UNKNOWN
        else:
            yield from facts_given(inference, bound[0], depth + 1)


def own_parameters(info: FunctionInfo) -> list[ast.arg]:
    """Parameters by position, without the instance."""
    plain = symbols.positional_parameters(info.node)
    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in info.node.decorator_list)
    return plain[1:] if info.owner is not None and not static else plain


def with_call_sites(inference: Inference) -> Inference:
    """The inference repeated with the modules, makers of modules and tensors that the file hands around."""
    assumed: dict[ast.AST, Fact] = {}
    for _ in range(ROUNDS):
        facts: dict[ast.AST, Fact] = {}
        state = inference.state
        handed = _handed(inference) if state.callers.calls_unknown or state.callers.asks_callers else {}
        if state.callers.calls_unknown:
            facts = {node: some_maker(fact) for node, fact in handed.items() if _holds_makers(fact)}
        if state.callers.asks_callers:
            used = _shown_by_use(inference)
            facts |= {node: TENSOR for node, fact in handed.items() if isinstance(fact, Tensor) and node not in used}
            facts |= dict.fromkeys(_arrays_of_modules(inference), TENSOR)
        if state.callers.hands_modules:
            facts.update(_modules_handed(inference))
        if state.callers.hands_classes:
            facts.update(_classes_handed(inference))
        if all(assumed.get(node) == fact for node, fact in facts.items()):
            break
        assumed.update(facts)
        inference = inference.knowing(assumed)
    return inference


def _shown_by_use(inference: Inference) -> set[ast.AST]:
    """Parameters whose use shows that they are tensors, and so what callers give: an assumption would not."""
    functions = inference.functions.values()
    return {p for f in functions for p in named_parameters(f.node) if isinstance(f.learned.get(p.arg), Tensor)}


def called_by_modules(functions: Iterable[FunctionInfo]) -> set[FunctionInfo]:
    """Functions that methods of modules call, directly or through others."""
    reached: set[FunctionInfo] = set()
    waiting = [info for info in functions if info.runs_in_module]
    while waiting:
        called = {info for info in waiting.pop().callees if isinstance(info, FunctionInfo)} - reached
        reached |= called
        waiting += called
    return reached


def _arrays_of_modules(inference: Inference) -> Iterator[ast.AST]:
    """Where names get their values that are written to as arrays are, in functions that modules call."""
    written = inference.state.callers.arrays_written
    called = called_by_modules(inference.functions.values()) if written else set()
    for info, name in written:
        if info in called:
            for node in symbols.walk(info.node):
                stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name
                if stored or isinstance(node, ast.arg) and node.arg == name:
                    yield node


def _handed(inference: Inference) -> dict[ast.AST, Fact]:
    """What is passed for each parameter, and put into each container of the module level and of classes."""
    seen: dict[ast.AST, Fact] = {}
    facts, env = inference.facts, inference.env

    def see(node: ast.AST, fact: Fact) -> None:
        if fact != UNKNOWN and not isinstance(fact, UnknownParameter):
            seen[node] = join(seen[node], fact) if node in seen else fact

    stores = _stores(inference)
    for node in inference.source.nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name() | ast.Attribute() as holder, attr=name)) if name in _PUTS:
                for store in stores.get(_last_name(holder), ()) if node.args else ():
                    see(store, ListOf(facts.get(node.args[-1], UNKNOWN)))
            case ast.Call():
                info = _called(facts.get(node.func, UNKNOWN)) or base_method(inference, node)
                if info is not None and not info.external:
                    for parameter, value in bound_arguments(node, info):
                        see(parameter, facts.get(value, UNKNOWN))
                        if facts.get(value, UNKNOWN) == UNKNOWN and isinstance(value, ast.Name):
                            see(parameter, _before(inference, node, value))
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                for decorator in node.decorator_list:
                    info = called_function(facts.get(decorator, UNKNOWN))
                    if info is not None and not info.external and (parameters := own_parameters(info)):
                        see(parameters[0], env.get(node.name, UNKNOWN))
            case ast.Assign(targets=[ast.Subscript(value=ast.Name() | ast.Attribute() as holder)]):
                for store in stores.get(_last_name(holder), ()):
                    see(store, ListOf(facts.get(node.value, UNKNOWN)))
            case _:
                pass
    for info in inference.functions.values():
        for parameter, default in defaults(info):
            if parameter in seen and facts.get(default, UNKNOWN) != NONE:
                see(parameter, facts.get(default, UNKNOWN))
    return seen


def _before(inference: Inference, call: ast.Call, value: ast.Name) -> Fact:
    """What a variable that a call gives anew held before its loop: ``w`` of ``w, loss = step(w, x)``."""
    parents = inference.source.parents
    around = list(ancestors(call, parents))
    match parents[call]:
        case ast.Assign(targets=[ast.Name() as target]):
            given = [target]
        case ast.Assign(targets=[ast.Tuple(elts=elements)]):
            given = [one for one in elements if isinstance(one, ast.Name)]
        case _:
            return UNKNOWN
    again = [one for one in given if one.id == value.id]
    if not again or not any(isinstance(one, ast.For | ast.While) for one in around):
        return UNKNOWN
    scope = symbols.nearest(ast.FunctionDef, call, parents)
    stores = [
        n
        for n in inference.source.names.get(value.id, ())
        if isinstance(n.ctx, ast.Store) and n not in again and symbols.nearest(ast.FunctionDef, n, parents) is scope
    ]
    first = [inference.fact(n) for n in stores]
    return first[0] if first and all(isinstance(fact, Tensor) for fact in first) else UNKNOWN


_PUTS = frozenset({"append", "appendleft", "add", "insert", "setdefault"})
"""Methods of containers that put their last argument into them."""


def _last_name(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else f".{node.attr}"


def _stores(inference: Inference) -> dict[str, list[ast.Name]]:
    """Where names of the module level get their values, and attributes of classes (``.registry``), by the name."""
    stores: dict[str, list[ast.Name]] = {}
    classes = [info.node for info in inference.classes.values()]
    for body, written in ((inference.source.tree.body, "{}"), *((node.body, ".{}") for node in classes)):
        for statement in body:
            if isinstance(statement, ast.Assign | ast.AnnAssign):
                for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
                    if isinstance(target, ast.Name):
                        stores.setdefault(written.format(target.id), []).append(target)
    return stores


def _modules_handed(inference: Inference) -> dict[ast.AST, Fact]:
    """The parameters for which every call of the file passes a module, or an object that holds modules.

    A constructor is for others to call as well, with modules of classes that this file doesn't know, unless the file is
    a program; but where it is given a loss, it will be given a loss.
    """
    seen: dict[ast.arg, Fact] = {}
    for node in inference.source.nodes:
        if not isinstance(node, ast.Call):
            continue
        if (hooked := _hooked(inference, node)) is not None:
            parameter, fact = hooked
            seen[parameter] = join(seen[parameter], fact) if parameter in seen else fact
        info = _called(inference.fact(node.func)) or base_method(inference, node)
        if info is None or info.external:
            continue
        through_class = not info.static and _is_through_class(inference, node)
        for parameter, value in bound_arguments(node, info, through_class):
            fact = inference.fact(value)
            if parameter.annotation is None and fact != UnknownParameter(parameter.arg):
                seen[parameter] = join(seen[parameter], fact) if parameter in seen else fact
    constructors = [info for info in inference.functions.values() if info.name == "__init__"]
    program = runs(inference.source.tree)
    constructed = {a for info in constructors if not program for a in info.node.args.args}
    some = {a: AnyModule(layer_names(fact)) if is_loss(fact) else AnyModule() for a, fact in seen.items()}
    handed = {a: some[a] if a in constructed else fact for a, fact in seen.items() if is_module(fact)}
    held: dict[ast.AST, Fact] = {a: fact for a, fact in seen.items() if holds_modules(fact)}
    return held | handed


def _classes_handed(inference: Inference) -> dict[ast.AST, Fact]:
    """The parameters with a class of modules for a default that are this class in every call of a program."""
    given: dict[ast.AST, Fact] = {}
    for info in inference.functions.values():
        for parameter, default in defaults(info):
            if isinstance(fact := inference.fact(default), Class) and fact.info.is_module and not info.external:
                given[parameter] = fact
    if not given or not runs(inference.source.tree):
        return {}
    for node in inference.source.nodes:
        if isinstance(node, ast.Call) and (called := _called(inference.fact(node.func))) is not None:
            for parameter, value in bound_arguments(node, called):
                if parameter in given and inference.fact(value) != given[parameter]:
                    del given[parameter]
    return given


def _hooked(inference: Inference, node: ast.Call) -> tuple[ast.arg, Fact] | None:
    """The parameter of a hook that is the module it is registered on, and that module."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr=name), args=[hook, *_]) if name in HOOKING:
            function = inference.fact(hook)
            if isinstance(function, Function) and (parameters := own_parameters(function.info)):
                return parameters[0], inference.fact(owner)
    return None


def _called(fact: Fact) -> FunctionInfo | None:
    """The function of the file that a call runs; of an object that is no module its ``__call__``."""
    if isinstance(fact, Instance) and not fact.cls.info.is_module:
        return fact.cls.info.method("__call__")
    return called_function(fact)


def base_method(inference: Inference, node: ast.Call) -> FunctionInfo | None:
    """The method of a base class of the file that ``super().__init__(net)`` calls."""
    cls = symbols.nearest(ast.ClassDef, node, inference.source.parents)
    info = inference.classes.get(cls) if isinstance(cls, ast.ClassDef) else None
    if info is None or not isinstance(node.func, ast.Attribute) or not symbols.is_super(node.func.value):
        return None
    return next((m for one in info.ancestry()[1:] if (m := one.methods.get(node.func.attr)) is not None), None)


def _is_through_class(inference: Inference, node: ast.Call) -> bool:
    """Whether a function is a method that is called by its class, and so handed its instance."""
    if not isinstance(node.func, ast.Attribute) or not isinstance(inference.fact(node.func), Function):
        return False
    return isinstance(inference.fact(node.func.value), Class)


def defaults(info: FunctionInfo) -> list[tuple[ast.arg, ast.expr]]:
    """The parameters that have a default, each with it."""
    return symbols.defaults(info.node.args)


def _holds_makers(fact: Fact) -> bool:
    match fact:
        case ListOf():
            return _holds_makers(fact.item)
        case Tuple():
            return bool(fact.items) and all(map(_holds_makers, fact.items))
        case _:
            return makes_modules(fact)
