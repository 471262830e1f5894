"""The constructor of an optimizer: what it checks, and which options the groups of parameters have."""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass, field

from t2j_lsp import symbols

from .kept_values import only_keeps
from .unfit import Unfit, need

RATE = "learning_rate"
"""What optax calls the learning rate."""
_NUMBER = "float | int"


@dataclass
class OptimizerConstructor:
    """What a constructor says of its optimizer."""

    arguments: ast.arguments
    """What the function takes: all but ``self`` and the parameters."""
    parameters: str
    """The name of the parameters that it updates."""
    statements: list[tuple[ast.stmt, ast.stmt]] = field(default_factory=list)
    """Its checks and the values that it computes, as they are now and as they were."""
    options: dict[str, str] = field(default_factory=dict)
    """The options of a group, and the variables that have them."""
    attributes: dict[str, str] = field(default_factory=dict)
    """What it keeps in attributes, and the variables that have it."""
    loop: ast.For | None = None
    """The loop over its parameters in which it makes their states."""
    numbers: dict[str, ast.expr] = field(default_factory=dict)
    """Attributes that are numbers, which a step may count up."""


def read_constructor(method: ast.FunctionDef, without: str = "") -> OptimizerConstructor:
    """What a constructor says, without an option that only keeps values. Raises Unfit."""
    return _Reader(method, without).read()


class _Reader:
    def __init__(self, method: ast.FunctionDef, without: str) -> None:
        self.method, self.without = method, without
        arguments = copy.deepcopy(method.args)
        named = [*arguments.posonlyargs, *arguments.args]
        need(len(named) >= 2 and not arguments.vararg and not arguments.kwarg, "what its constructor takes", method)
        need(not arguments.posonlyargs, "what its constructor takes by position only", method)
        self.made = OptimizerConstructor(arguments, named[1].arg)
        plain = len(arguments.args) - len(arguments.defaults)
        need(plain >= 2, "its parameters have a default", method)
        arguments.args = arguments.args[2:]
        self._required(arguments, plain - 2)
        self.dicts: dict[str, ast.expr] = {}
        self.passed: ast.expr | None = None
        self.taken = {a.arg for a in symbols.named_parameters(method)} | {
            n.id for n in symbols.walk(method) if isinstance(n, ast.Name)
        }

    def _required(self, arguments: ast.arguments, plain: int) -> None:
        """``lr=required`` is a parameter without a default."""
        while arguments.defaults and _is_required(arguments.defaults[0]):
            del arguments.defaults[0]
            plain += 1
        need(not any(map(_is_required, arguments.defaults)), "the order of what its constructor takes", self.method)
        for one in [*arguments.args, *arguments.kwonlyargs]:
            need(one.arg != RATE, "a parameter has the name learning_rate", self.method)
            if one.arg == "lr":
                one.arg = RATE

    def read(self) -> OptimizerConstructor:
        for statement in self.method.body:
            if not (self.without and only_keeps(statement, self.without)):
                self._statement(statement)
        need(self.passed is not None, "its constructor doesn't give its base the options", self.method)
        assert self.passed is not None
        self._options(self.passed)
        return self.made

    # --- statements -----------------------------------------------------------------------------------------------

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return
            case ast.Expr(value=ast.Call() as call) if _is_base_call(call):
                given = [*call.args, *(k.value for k in call.keywords)]
                given = [v for v in given if not (isinstance(v, ast.Name) and v.id == "self")]
                named = isinstance(given[0], ast.Name) and given[0].id == self.made.parameters if given else False
                need(named and len(given) == 2, "what its constructor gives its base", node)
                self.passed = given[1]
                return
            case ast.For(iter=iterated) if ast.unparse(iterated) == "self.param_groups" and self.passed is not None:
                need(self.made.loop is None, "its constructor walks over its parameters more than once", node)
                self.made.loop = node
                return
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_dict(value) and name == "defaults":
                self.dicts[name] = value
                return
            case (
                ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value)
                | ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=name), value=ast.expr() as value)
            ):
                self._attribute(node, name, value)
                return
        need(not self._mentions(node), "its constructor does something with the parameters or itself", node)
        self._keep(node)

    def _mentions(self, node: ast.AST) -> bool:
        names = {n.id for n in symbols.walk(node) if isinstance(n, ast.Name)}
        return not names.isdisjoint({"self", self.made.parameters, "super", "defaults"})

    def _keep(self, node: ast.stmt) -> None:
        """A check, or a value that is computed; what is asked of a learning rate is asked of numbers only."""
        asks = any(isinstance(n, ast.Name) and n.id == "lr" for n in symbols.walk(node))
        if isinstance(node, ast.If) and not node.orelse and _asks_for_tensor(node.test):
            return
        new = self._renamed(copy.deepcopy(node))
        match new:
            case ast.If(test=test, body=[ast.Raise()], orelse=[]) if asks:
                asked = _without_required(test)
                if asked is None:
                    return
                new.test = ast.BoolOp(ast.And(), [_is_number(), asked])
            case ast.Assert(test=test) if asks:
                new.test = ast.BoolOp(ast.Or(), [ast.UnaryOp(ast.Not(), _is_number()), test])
            case ast.Expr(value=ast.Call()) if asks:
                new = ast.If(_is_number(), [new], [])
            case ast.If() | ast.Raise() | ast.Assert() | ast.Expr(value=ast.Call()):
                need(not asks, "what its constructor does by the learning rate", node)
            case ast.Assign(targets=[ast.Name() | ast.Tuple()]) | ast.AnnAssign(target=ast.Name()):
                new.value = _of_first_rate(new.value) if asks else new.value
            case _:
                raise Unfit("a statement of its constructor", node)
        self.made.statements.append((ast.fix_missing_locations(new), node))

    def _renamed(self, node: ast.stmt) -> ast.stmt:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and inner.id == "lr":
                inner.id = RATE
        return node

    def _attribute(self, node: ast.stmt, name: str, value: ast.expr) -> None:
        need(not self._mentions(value), "what its constructor keeps", node)
        if isinstance(value, ast.Constant) and type(value.value) in (int, float):
            self.made.numbers[name] = value
        if isinstance(value, ast.Name) and value.id != "lr":
            self.made.attributes[name] = value.id
            return
        need(name not in self.taken, f"two values have the name {name}", node)
        self.made.attributes[name] = name
        self.made.statements.append((self._computed(name, value), node))

    # --- options --------------------------------------------------------------------------------------------------

    def _options(self, node: ast.expr) -> None:
        """The options of a group, by the dict that the base is given."""
        if isinstance(node, ast.Name):
            need(node.id in self.dicts, "its options are not written out", node)
            node = self.dicts[node.id]
        match node:
            case ast.Dict(keys=keys, values=values):
                need(all(isinstance(k, ast.Constant) for k in keys), "its options are not written out", node)
                pairs = [(str(k.value), v) for k, v in zip(keys, values, strict=True) if isinstance(k, ast.Constant)]
            case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
                need(all(k.arg for k in keywords), "its options are not written out", node)
                pairs = [(str(k.arg), k.value) for k in keywords]
            case _:
                raise Unfit("its options are not written out", node)
        parameters = {a.arg for a in symbols.named_parameters(self.method)} - {"self", self.made.parameters}
        for key, value in (pair for pair in pairs if pair[0] != self.without):
            if isinstance(value, ast.Name) and value.id in parameters and (key == "lr" or value.id != "lr"):
                self.made.options[key] = RATE if value.id == "lr" else value.id
                continue
            need(not self._mentions(value), f"its option {key}", value)
            if isinstance(value, ast.Name) and value.id != "lr":
                self.made.options[key] = value.id
                continue
            name = key if key not in self.taken else f"{key}_of_group"
            need(name not in self.taken, f"two values have the name {name}", value)
            self.made.options[key] = name
            new = self._computed(name, value)
            self.made.statements.append((new, ast.copy_location(ast.Pass(), value)))

    def _computed(self, name: str, value: ast.expr) -> ast.stmt:
        """A variable that is given what the constructor computes."""
        new = self._renamed(_assigned(name, value))
        assert isinstance(new, ast.Assign)
        if any(isinstance(n, ast.Name) and n.id == RATE for n in ast.walk(new.value)):
            new.value = _of_first_rate(new.value)
        return ast.fix_missing_locations(new)


def _of_first_rate(value: ast.expr | None) -> ast.expr:
    """What is computed of the rate that an optimizer is made with: one that changes while it runs isn't known then."""
    assert value is not None
    return ast.IfExp(_is_number(), value, ast.Constant(None))


def is_of_first_rate(node: ast.stmt) -> bool:
    """Whether a statement computes something of the rate that an optimizer is made with."""
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    return isinstance(value, ast.IfExp) and ast.dump(value.test) == ast.dump(_is_number())


def _assigned(name: str, value: ast.expr) -> ast.stmt:
    made = ast.Assign([ast.Name(name, ast.Store())], copy.deepcopy(value))
    return ast.fix_missing_locations(ast.copy_location(made, value))


def _is_required(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "required"


def _is_number() -> ast.expr:
    return ast.parse(f"isinstance({RATE}, {_NUMBER})", mode="eval").body


def _is_dict(node: ast.expr) -> bool:
    return isinstance(node, ast.Dict) or isinstance(node, ast.Call) and ast.unparse(node.func) == "dict"


def _is_base_call(call: ast.Call) -> bool:
    """``super().__init__(params, defaults)``, or by the name of a class."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr != "__init__":
        return False
    by_name = isinstance(func.value, ast.Name | ast.Attribute) and func.value is not None
    return symbols.is_super(func.value) or by_name and bool(call.args) and ast.unparse(call.args[0]) == "self"


def _asks_for_tensor(test: ast.expr) -> bool:
    """Whether a test only holds for a rate that is a tensor."""
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            return any(map(_asks_for_tensor, values))
        case ast.Call(func=func, args=[ast.Name(id="lr"), *kinds]):
            return ast.unparse(func).endswith("is_tensor") or [ast.unparse(k)[-6:] for k in kinds] == ["Tensor"]
    return False


def _without_required(test: ast.expr) -> ast.expr | None:
    """A test of a rate without ``lr is not required``; None for ``lr is required``."""

    def asks(node: ast.expr) -> bool:
        return isinstance(node, ast.Compare) and any(map(_is_required, node.comparators))

    if asks(test):
        return None
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        rest = [one for one in test.values if not asks(one)]
        return rest[0] if len(rest) == 1 else ast.BoolOp(ast.And(), rest)
    return test
