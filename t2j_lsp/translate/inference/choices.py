"""Layers by a name that is one of several: ``getattr(nn, kind)`` where ``kind in ("LSTM", "GRU")``.

The names are written in the code around it, or are those of the few layers that take the keywords it is called with.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors, named_parameters, nearest
from t2j_lsp.translate.rule.facts import Fact, Qual
from t2j_lsp.translate.rule.layer import LAYERS, LayerRule
from t2j_lsp.translate.rule.names import canonical
from t2j_lsp.translate.source.folding.uses import runs
from t2j_lsp.translate.source.text import Source

BY_NAME = frozenset({"getattr"})
"""The function that takes a name."""
_FEW = 4
"""As many layers at most make a table that is read."""


def chosen_names(source: Source) -> Mapping[ast.Call, tuple[str, ...]]:
    """The names that each ``getattr(x, name)`` may be given, where its parser, its call or code around says which."""
    choices = {}
    for node in source.nodes:
        match node:
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Name() | ast.Attribute() as name], keywords=[]):
                names = _asked(source, node, name) or _of_parser(source, name) or _by_keywords(source, node)
                names = names or _of_calls(source, node, name)
                if names:
                    choices[node] = tuple(dict.fromkeys(names))
    return choices


def chosen_layers(owner: Fact, names: Sequence[str]) -> dict[str, LayerRule]:
    """The layers of a library that some names say, by these; none if one is no layer whose class stands for it."""
    rules = {n: LAYERS.get(canonical(f"{owner.name}.{n}")) for n in names} if isinstance(owner, Qual) else {}
    layers = {
        name: rule
        for name, rule in rules.items()
        if rule is not None and (rule.random or rule.elementwise) and not rule.spatial
    }
    return layers if len(layers) == len(rules) else {}


def _asked(source: Source, node: ast.Call, name: ast.expr) -> Sequence[str]:
    """The names of the conditions and assertions that hold where the call stands."""
    text = ast.unparse(name)
    inner: ast.AST = node
    for around in ancestors(node, source.parents):
        if isinstance(around, ast.If | ast.FunctionDef | ast.AsyncFunctionDef):
            body = source.block_of(inner) if isinstance(inner, ast.stmt) else None
            if body is not None and inner in body:
                above = body[: body.index(inner)]
                if any(_stores(statement, text) for statement in above):
                    return ()
                tests = [s.test for s in above if isinstance(s, ast.Assert)]
                tests += [
                    _negated(s.test) for s in above if isinstance(s, ast.If) and isinstance(s.body[-1], ast.Raise)
                ]
                if isinstance(around, ast.If):
                    tests.append(around.test if body is around.body else _negated(around.test))
                for test in tests:
                    if names := _in_test(test, text):
                        return names
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.For | ast.While):
            return ()
        inner = around
    return ()


def _negated(test: ast.expr) -> ast.expr:
    """What holds where a test doesn't."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.Compare(left=left, ops=[ast.NotIn() | ast.NotEq() as op], comparators=those):
            return ast.Compare(left, [ast.In() if isinstance(op, ast.NotIn) else ast.Eq()], those)
        case ast.BoolOp(op=ast.And(), values=values):
            return ast.BoolOp(ast.Or(), [_negated(value) for value in values])
        case ast.BoolOp(op=ast.Or(), values=values):
            return ast.BoolOp(ast.And(), [_negated(value) for value in values])
    return ast.UnaryOp(ast.Not(), test)


def _stores(node: ast.AST, text: str) -> bool:
    return any(
        isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Store) and ast.unparse(n) == text
        for n in symbols.walk(node)
    )


def _in_test(test: ast.expr, text: str) -> Sequence[str]:
    """The texts that a name is compared with: ``kind in ("LSTM", "GRU")``, ``kind == "LSTM" or kind == "GRU"``."""
    match test:
        case ast.Compare(left=left, ops=[ast.In()], comparators=[ast.List() | ast.Tuple() | ast.Set() as those]):
            return _texts(those.elts) if ast.unparse(left) == text else ()
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[one]):
            return _texts([one]) if ast.unparse(left) == text else ()
        case ast.BoolOp(op=ast.Or(), values=values):
            each = [_in_test(value, text) for value in values]
            return [name for names in each for name in names] if all(each) else ()
        case ast.BoolOp(op=ast.And(), values=values):
            return next(filter(None, (_in_test(value, text) for value in values)), ())
    return ()


def _texts(nodes: Sequence[ast.expr]) -> Sequence[str]:
    texts = [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return texts if len(texts) == len(nodes) else ()


def _of_parser(source: Source, name: ast.expr) -> Sequence[str]:
    """The choices of the argument that ``args.rnn`` is read from, where one parser of the file has it."""
    if not isinstance(name, ast.Attribute) or not isinstance(name.value, ast.Name):
        return ()
    choices = []
    for node in source.nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="add_argument"), args=flags) if flags:
                names = [flag.lstrip("-").replace("-", "_") for flag in _texts(flags)]
                given = {k.arg: k.value for k in node.keywords}
                if name.attr in names or name.attr in _texts([given["dest"]] if "dest" in given else []):
                    choices.append(given.get("choices"))
            case ast.Attribute(attr=attr, ctx=ast.Store()) if attr == name.attr:
                return ()
    if len(choices) != 1 or not isinstance(choices[0], ast.List | ast.Tuple):
        return ()
    return _texts(choices[0].elts)


def _by_keywords(source: Source, node: ast.Call) -> Sequence[str]:
    """The layers that take all keywords of ``getattr(nn, kind)(3, 4, bidirectional=True)``, where these are few."""
    call = source.parents.get(node)
    if not isinstance(call, ast.Call) or call.func is not node:
        return ()
    given = {k.arg for k in call.keywords}
    if not given or None in given:
        return ()
    names = [name.rpartition(".")[2] for name, rule in LAYERS.items() if given <= rule.signature.by_name.keys()]
    return names if len(names) <= _FEW else ()


def _of_calls(source: Source, node: ast.Call, name: ast.expr) -> Sequence[str]:
    """The texts that a program's every call of the function around gives to a parameter of it, or its default."""
    function = nearest(ast.FunctionDef, node, source.parents)
    if not isinstance(name, ast.Name) or function is None or not runs(source.tree) or _stores(function, name.id):
        return ()
    home = source.parents.get(function)
    built = isinstance(home, ast.ClassDef) and function.name == "__init__"
    called = {function.name}
    if built and isinstance(home, ast.ClassDef):
        called = _built_alike(source, home)
    if not built and home is not source.tree or name.id not in [p.arg for p in named_parameters(function)]:
        return ()
    defaults = _defaults(function)
    index = [p.arg for p in symbols.positional_parameters(function)][built:]
    given: list[ast.expr] = []
    for use in source.nodes:
        if isinstance(use, ast.Name) and use.id in called and isinstance(use.ctx, ast.Load):
            call = source.parents.get(use)
            if built and _makes_none(use, call, called):
                continue
            if not isinstance(call, ast.Call) or call.func is not use or _spreads(call):
                return ()
            bound = dict(zip(index, call.args, strict=False)) | {k.arg: k.value for k in call.keywords if k.arg}
            value = bound.get(name.id, defaults.get(name.id))
            if value is None:
                return ()
            given.append(value)
    return _texts(given)


def _built_alike(source: Source, cls: ast.ClassDef) -> set[str]:
    """A class of the module level, and those below it that have no constructor of their own."""
    names = {cls.name}
    for other in source.tree.body:
        if isinstance(other, ast.ClassDef) and any(isinstance(b, ast.Name) and b.id in names for b in other.bases):
            if not any(isinstance(s, ast.FunctionDef) and s.name in ("__init__", "__new__") for s in other.body):
                names.add(other.name)
    return names


def _makes_none(use: ast.Name, parent: ast.AST | None, called: Collection[str]) -> bool:
    """Whether a class that is named makes no object there: ``super(Net, self)``, ``isinstance(m, Net)``, ``m: Net``."""
    match parent:
        case ast.Call(func=ast.Name("super" | "isinstance" | "issubclass")):
            return True
        case ast.arg():
            return True
        case ast.AnnAssign(annotation=named) | ast.FunctionDef(returns=named):
            return named is use
        case ast.ClassDef(name=name):
            return name in called
    return False


def _defaults(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """What the parameters of a function are where a call says nothing of them."""
    return {parameter.arg: value for parameter, value in symbols.defaults(function.args)}


def _spreads(call: ast.Call) -> bool:
    return any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)
