"""What the code of a class or function tells of its own arguments: texts, objects that have attributes, functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from t2j_lsp.check.inputs import Code
from t2j_lsp.symbols import positional_parameters

from .handed_on import HandingOn
from .settings import FileSettings

_OF_ARRAYS = frozenset({"T", "data", "device", "dtype", "grad", "imag", "mT", "ndim", "real", "requires_grad", "shape"})
"""Attributes that arrays have, too."""
_FIRST = "torch.tanh([*args, *kwargs.values()][0])"
"""What a function that stands in for a module gives: a value of the form of the first that it is given."""


def known_arguments(function: ast.FunctionDef | ast.AsyncFunctionDef, settings: FileSettings) -> dict[str, Any]:
    """Arguments of a call that are surely no tensors, by parameter, as far as they have no default.

    None for one that is no tensor and can't be made up: code that sets its attributes would work with a tensor, too.
    """
    known: dict[str, Any] = {}
    parameters = positional_parameters(function)
    handed = HandingOn(settings.functions, lambda one, taker: _without_settings(one, taker).get(one.arg))
    for parameter in parameters[: len(parameters) - len(function.args.defaults)]:
        own = _without_settings(parameter, function)
        if own:
            known |= own
        elif parameter.annotation is None and (taken := handed.value(parameter, function)) is not None:
            known[parameter.arg] = taken
        elif _is_object(parameter.arg, function):
            made = settings.namespace(parameter.arg, function, None)
            known |= {parameter.arg: made} if made is not None else {}
    return known


def _without_settings(parameter: ast.arg, function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, Any]:
    """What a function's own code says of a parameter, by its name: nothing, or what to give for it."""
    name = parameter.arg
    text = text_for(name, parameter.annotation, function)
    if text is not None:
        return {name: text}
    if parameter.annotation is None:
        if _has_keys(name, function):
            return {name: {}}  # what is asked of it tells its keys
        if _is_key(name, function):
            return {name: "key"}
        if _TOKENS.fullmatch(name.lower()):
            return {name: 1}
        if _holds_rows(name, function):
            return {name: [[1, 2, 0], [2, 1]]}
    if _is_of_numpy(name, function) or _is_given_attributes(name, function):
        return {name: None}
    if parameter.annotation is None:
        if (numbers := _numbers(name, function)) is not None:
            return {name: numbers}
        if (math := _of_math(name, function)) is not None:
            place = (
                positional_parameters(function).index(parameter) if parameter in positional_parameters(function) else 0
            )
            return {name: math + place if isinstance(math, float) else math}
    return {}


_TOKENS = re.compile(r"(pad|padding|ignore|eos|bos|unk)_?(token|token_id|id|idx|index|value)")
"""Names of what padding, or a place that doesn't count, is marked by: a number."""
_OF_LISTS = frozenset({"FloatTensor", "IntTensor", "LongTensor", "tensor"})
"""Functions that make tensors of lists; of a tensor, ``torch.tensor(x)`` is a mistake that PyTorch warns of."""


def _holds_rows(name: str, function: ast.AST) -> bool:
    """Whether tensors are made of the items of a parameter, one by one: ``for row in rows: torch.tensor(row)``."""
    nodes = list(ast.walk(function))
    made: set[str] = set()
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr=maker), args=[ast.Name(id=item), *_]) if maker in _OF_LISTS:
                made.add(item)
    loops = [n for n in nodes if isinstance(n, ast.For | ast.comprehension)]
    return any(name in _items_of(loop.target, loop.iter, item) for loop in loops for item in made)


def _is_given_attributes(name: str, function: ast.AST) -> bool:
    """Whether attributes of a parameter are set that arrays don't have."""
    return any(a.attr not in _OF_ARRAYS for a in _attributes(name, function, ast.Store))


def _is_of_numpy(name: str, function: ast.AST) -> bool:
    """Whether all that is done with a parameter is done by numpy, which takes no array that is traced."""
    calls = [n for n in ast.walk(function) if isinstance(n, ast.Call)]
    inside = {id(n) for c in calls if ast.unparse(c.func).startswith(("np.", "numpy.")) for n in ast.walk(c)}
    reads = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name]
    return bool(reads) and all(id(n) in inside for n in reads)


_OF_NUMBERS = frozenset({"int", "range", "round"})
_TAKING_NUMBERS = _OF_NUMBERS | {"abs", "float", "isinstance", "len", "max", "min", "print", "str"}


def _numbers(name: str, function: ast.AST) -> float | list[int] | None:
    """A number, or a list of as many as are asked for, for a parameter that is only computed with and made a number.

    ``int(height * sizes[0])``, ``float(2 * sigma**2)``, ``angle = float(angle)``: a tensor's value would be asked for
    there, and numbers are what is meant.
    """
    parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    places: set[int | None] = set()
    made = fraction = False
    counted = any(map(_is_count_of_parts, parents))
    for node in [n for n in parents if isinstance(n, ast.Name) and n.id == name]:
        read: ast.AST = node
        place: int | None = None
        match parents[node]:
            case ast.Subscript(value=value, slice=ast.Constant(int(index))) as item if value is node and index >= 0:
                read, place = item, index
        around = parents[read]
        if isinstance(around, ast.Attribute | ast.Subscript | ast.Starred | ast.keyword):
            return None
        if isinstance(around, ast.Call) and _called(around) not in _TAKING_NUMBERS:
            if not isinstance(around.func, ast.Name) or not counted:
                return None
        while isinstance(around, ast.BinOp | ast.UnaryOp):
            read, around = around, parents[around]
        made |= isinstance(around, ast.Call) and _called(around) in _OF_NUMBERS
        again = ast.unparse(parents[around]).startswith(f"{name} = float(") if isinstance(around, ast.Call) else False
        computed = isinstance(read, ast.BinOp) or again
        fraction |= isinstance(around, ast.Call) and _called(around) == "float" and computed
        places.add(place)
    if fraction and not made and places == {None}:
        return 1.5
    if not made or None in places and len(places) > 1:
        return None
    return 2 if places == {None} else [*range(1, max(place for place in places if place is not None) + 2)]


def _is_count_of_parts(node: ast.AST) -> bool:
    """``int(rows / columns)``: of numbers, whichever functions of the file are handed these, too."""
    match node:
        case ast.Call(func=ast.Name(id="int"), args=[ast.BinOp(left=ast.Name(), op=ast.Div(), right=ast.Name())]):
            return True
    return False


_OF_INTEGERS = frozenset({"comb", "factorial", "gcd", "isqrt", "lcm", "perm"})
_UP_TO_ONE = frozenset({"acos", "asin", "atanh"})


def _of_math(name: str, function: ast.AST) -> float | int | None:
    """A number for a parameter that ``math`` computes with: of a tensor, ``math.log(sigma)`` asks for its value."""
    parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    functions: set[str] = set()
    for read in (n for n in parents if isinstance(n, ast.Name) and n.id == name):
        around = parents[read]
        if isinstance(around, ast.Attribute | ast.Subscript):
            return None  # an array
        while isinstance(around, ast.BinOp | ast.UnaryOp):
            around = parents[around]
        match around:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr=called)):
                functions.add(called)
    if not functions or functions & _UP_TO_ONE:
        return None
    return 2 if functions & _OF_INTEGERS else 1.5


def _called(call: ast.Call) -> str | None:
    return call.func.id if isinstance(call.func, ast.Name) else None


def _has_keys(name: str, function: ast.AST) -> bool:
    """Whether a parameter is asked for texts, as a dict is, ``features["out"]``, or filled where a key is missing."""
    read = (n for n in ast.walk(function) if isinstance(n, ast.Subscript) and ast.unparse(n.value) == name)
    texts = any(isinstance(n.slice, ast.Constant) and isinstance(n.slice.value, str) for n in read)
    return texts or any(held == name for held, _ in _filled(function))


def _is_key(name: str, function: ast.AST) -> bool:
    """Whether a parameter is such a key."""
    return any(key == name for _, key in _filled(function))


def _filled(function: ast.AST) -> set[tuple[str, str]]:
    """Dicts and their keys by name: ``if key not in state: state[key] = make()``."""
    asked: set[tuple[str, str]] = set()
    stored: set[tuple[str, str]] = set()
    for node in ast.walk(function):
        match node:
            case ast.Compare(left=ast.Name(id=key), ops=[ast.In() | ast.NotIn()], comparators=[ast.Name(id=held)]):
                asked.add((held, key))
            case ast.Subscript(value=ast.Name(id=held), slice=ast.Name(id=key), ctx=ast.Store()):
                stored.add((held, key))
    return asked & stored


def _is_object(name: str, function: ast.AST) -> bool:
    """Whether attributes of a parameter are read that arrays don't have, and none of its methods is called."""
    read = list(_attributes(name, function, ast.Load))
    called = {n.func for n in ast.walk(function) if isinstance(n, ast.Call)}
    return any(a.attr not in _OF_ARRAYS for a in read) and called.isdisjoint(read)


_WALKS = frozenset({"enumerate", "len", "list", "max", "min", "reversed", "sum", "tuple", "zip"})
_JOINS = frozenset({"cat", "concat", "stack"})


def lists_of_tensors(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Required parameters that are walked over or counted, and are never used as one tensor is."""
    parameters = positional_parameters(function)
    names = [p.arg for p in parameters[: len(parameters) - len(function.args.defaults)] if _may_be_list(p.annotation)]
    parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    reads = [n for n in parents if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    uses = {name: [_use_of_list(n, parents[n]) for n in reads if n.id == name] for name in names}
    return [name for name, seen in uses.items() if True in seen and None not in seen]


def _may_be_list(annotation: ast.expr | None) -> bool:
    return annotation is None or re.search(r"[Ll]ist|[Ss]equence|[Tt]uple", ast.unparse(annotation)) is not None


def _use_of_list(node: ast.Name, parent: ast.AST) -> bool | None:
    """Whether a use shows a list: True for a walk over it, False for one of its items, None for anything else."""
    match parent:
        case ast.For(iter=walked) | ast.comprehension(iter=walked) | ast.Starred(value=walked):
            return True if walked is node else None
        case ast.Call(func=ast.Name(id=name)) if name in _WALKS:
            return True
        case ast.Call(func=ast.Attribute(attr=name), args=[first, *_]) if name in _JOINS and first is node:
            return True
        case ast.Subscript(value=value, slice=index) if value is node:
            return None if isinstance(index, ast.Tuple) else False
    return None


def _attributes(name: str, tree: ast.AST, context: type[ast.expr_context]) -> Iterator[ast.Attribute]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, context) and ast.unparse(node.value) == name:
            yield node


def text_for(name: str, annotation: ast.expr | None, node: ast.AST) -> str | None:
    """The first text that a parameter, or what is kept under its name, is compared with; None if there is none."""
    kind = ast.unparse(annotation).strip("'\"") if annotation is not None else "str"
    if "Literal" in kind and annotation is not None:
        return next(_texts(annotation), None)
    if "str" not in kind:
        return None
    compared = [n for n in ast.walk(node) if isinstance(n, ast.Compare) and _is_of(n.left, name)]
    compared.sort(key=lambda n: (n.lineno, n.col_offset))
    return next((text for n in compared for other in n.comparators for text in _texts(other)), None)


def _is_of(node: ast.expr, name: str) -> bool:
    """Whether it is a parameter, what a method keeps of it under its name, or either in small letters."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "lower":
        return _is_of(node.func.value, name)
    return ast.unparse(node) in (name, f"self.{name}")


def _texts(node: ast.expr) -> Iterator[str]:
    """The texts that are written in an expression: one, or the items of a list of them."""
    match node:
        case ast.Constant(str(text)):
            yield text
        case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
            for item in items:
                yield from _texts(item)
        case ast.Subscript(slice=inner):
            yield from _texts(inner)


def called(node: ast.AST, init: ast.FunctionDef) -> dict[str, Code]:
    """What stands in for the parameters of a constructor that are kept and called later: modules and functions."""
    kept = {
        (target.attr, statement.value.id)
        for statement in ast.walk(init)
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Name)
        for target in statement.targets
        if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self"
    }
    calls: dict[str, list[ast.Call]] = {}
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            calls.setdefault(ast.unparse(call.func), []).append(call)
    results = {id(value): count for value, count in _unpacked(node)}
    made = {}
    for attribute, parameter in kept:
        if own := calls.get(f"self.{attribute}"):
            count = max(results.get(id(call), 0) for call in own)
            plain = all(len(call.args) == 1 and not call.keywords for call in own)
            module = "nn.Sequential(nn.Tanh())" if _is_handed_on(parameter, init) else "nn.Tanh()"
            made[parameter] = Code(module if plain and not count else _function(count))
    return made


def _is_handed_on(parameter: str, init: ast.FunctionDef) -> bool:
    """Whether a constructor gives a parameter to a function, which may ask it for what modules have: ``.eval()``.

    An activation is a function in JAX, which has nothing of the kind.
    """
    calls = (n for n in ast.walk(init) if isinstance(n, ast.Call))
    given = (a for call in calls for a in (*call.args, *(k.value for k in call.keywords)))
    return any(isinstance(a, ast.Name) and a.id == parameter for a in given)


_KEEPS = frozenset({"ModuleList", "Sequential"})
_PUTS = frozenset({"append", "add_module", "register_module"})


def module_lists(init: ast.FunctionDef) -> set[str]:
    """The parameters of a constructor that are lists of modules: their items are kept among its children.

    ``nn.ModuleList(blocks)``, ``nn.Sequential(*blocks)``, ``for m in blocks: self.stages.append(m)``.
    """
    kept: set[str] = set()
    for node in ast.walk(init):
        match node:
            case ast.Call(func=ast.Attribute(attr=kind) | ast.Name(id=kind), args=[given]) if kind in _KEEPS:
                match given:
                    case ast.Name(id=name) | ast.Starred(value=ast.Name(id=name)):
                        kept.add(name)
                    case ast.ListComp(elt=ast.Name(id=item), generators=[generator]):
                        kept |= _items_of(generator.target, generator.iter, item)
            case ast.For(target=target, iter=iterable, body=body):
                for call in (n for s in body for n in ast.walk(s) if isinstance(n, ast.Call)):
                    if isinstance(call.func, ast.Attribute) and call.func.attr in _PUTS and call.args:
                        if isinstance(put := call.args[-1], ast.Name):
                            kept |= _items_of(target, iterable, put.id)
    return kept - {n.id for n in ast.walk(init) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _items_of(target: ast.expr, iterable: ast.expr, item: str) -> set[str]:
    """The name that is iterated, where ``item`` is what a loop over it, or over ``enumerate`` of it, gives."""
    match target, iterable:
        case (ast.Name(id=one), ast.Name(id=name)) if one == item:
            return {name}
        case (ast.Tuple(elts=[_, ast.Name(id=one)]), ast.Call(func=ast.Name(id="enumerate"), args=[ast.Name(id=name)])):
            return {name} if one == item else set()
    return set()


def some_modules(width: int) -> Code:
    """A list of modules, each of which takes what the one before it gives."""
    return Code(f"[nn.Linear({width}, {width}), nn.Linear({width}, {width})]")


def _function(count: int) -> str:
    """A function of whatever it is given; ``count`` is the number of its results, 0 for one that is no tuple."""
    return f"lambda *args, **kwargs: {f'({_FIRST},) * {count}' if count else _FIRST}"


def _unpacked(tree: ast.AST) -> Iterator[tuple[ast.expr, int]]:
    """Values of which several parts are taken, and how many at least: ``a, b = f(x)``, ``f(x)[0]``."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign([ast.Tuple(elts=parts)], value):
                yield value, len(parts)
            case ast.Subscript(value=ast.Call() as value, slice=ast.Constant(int(index))) if index >= 0:
                yield value, index + 1
