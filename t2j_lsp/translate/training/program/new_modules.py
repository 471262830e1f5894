"""What makes modules that are nowhere else yet: constructors, functions that return such, and variables read once.

A module is a tree (see `trees`) if each part of it was made for it. ``layers`` of ``nn.Sequential(*layers)`` were if
nothing else reads the list, and so was what ``block(8, 16)`` gives if each call of the function makes it anew.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors, nearest
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.inference.call_sites import bound_arguments, called_function
from t2j_lsp.translate.rule.definitions import Class, ClassInfo, FunctionInfo, is_module
from t2j_lsp.translate.rule.facts import Fact, ListOf, Qual, Tensor
from t2j_lsp.translate.rule.facts import Tuple as TupleFact
from t2j_lsp.translate.rule.layer import LAYERS

_LOOKS = frozenset(
    {"parameters", "named_parameters", "buffers", "named_buffers", "state_dict", "load_state_dict", "eval", "train"}
)
"""Methods of every module that give nothing which holds it."""
_PASSES = frozenset({"enumerate", "zip", "len", "reversed", "isinstance"})


class NewModules:
    """Looks at calls, lists and variables of a file."""

    def __init__(self, context: Context, is_tree: Callable[[Fact], bool]) -> None:
        self.ctx = context
        self.source, self.parents = context.source, context.source.parents
        self.is_tree = is_tree
        self._known: dict[FunctionInfo, bool] = {}
        self._made: dict[ast.Name, bool] = {}

    def is_new(self, node: ast.expr) -> bool:
        """Whether an expression makes modules that are trees, or a list of such."""
        match node:
            case ast.Dict(keys=keys, values=values):
                return None not in keys and all(map(self.is_new, values))
            case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords) if self._is_builtin(node.func):
                return all(keyword.arg is not None and self.is_new(keyword.value) for keyword in keywords)
            case ast.Call():
                made = self.gives_new(node) or self.constructs(node) and self.is_tree(self.ctx.fact(node))
                return (made or self._makes_layer_by_name(node)) and self.made_in_place(node)
            case ast.List() | ast.Tuple():
                return all(map(self.is_new, node.elts))
            case ast.ListComp() | ast.GeneratorExp():
                return self.is_new(node.elt)
            case ast.Starred():
                return self.is_new(node.value)
            case ast.Name():
                return self.is_made_for(node)
            case ast.BinOp(op=ast.Add()):
                return self.is_new(node.left) and self.is_new(node.right)
        return False

    def _is_builtin(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and self.source.home(node) is None and node.id not in self.ctx.inference.env

    def constructs(self, call: ast.Call) -> bool:
        """Whether a call makes a new module: one of a function may give one that is there already."""
        fact = self.ctx.fact(call.func)
        return isinstance(fact, Class) or isinstance(fact, Qual) and fact.name in LAYERS

    def _makes_layer_by_name(self, call: ast.Call) -> bool:
        """Whether it makes a layer of PyTorch's by a name that need not be known: ``getattr(nn, activation)(0.1)``."""
        match call.func:
            case ast.Call(func=ast.Name(id="getattr"), args=[ast.expr() as owner, *_]):
                fact = self.ctx.fact(owner)
                return isinstance(fact, Qual) and fact.name == "torch.nn"
        return False

    def made_in_place(self, call: ast.Call) -> bool:
        """Whether no module that is there already is handed to a call."""
        return not any(self.stands_already(node) for node in symbols.walk(call))

    # --- functions ------------------------------------------------------------------------------------------------

    def gives_new(self, call: ast.Call) -> bool:
        """Whether a function of the file makes what it returns anew at each call, or returns what it is given here."""
        info = called_function(self.ctx.fact(call.func))
        if info is None or info.external or not isinstance(info.node, ast.FunctionDef) or info.node.decorator_list:
            return False
        if info not in self._known:
            self._known[info] = False  # of a function that calls itself
            self._known[info] = self._makes_anew(info)
        returned = [value for value in self._returned(info) if isinstance(value, ast.Name)]
        handed = {value.id for value in returned if self._is_handed_back(value, info)}
        given = [value for parameter, value in bound_arguments(call, info) if parameter.arg in handed]
        return self._known[info] and len(given) == len(handed) and all(map(self.is_new, given))

    def _returned(self, info: FunctionInfo) -> list[ast.expr | None]:
        inside = (n for n in symbols.walk(info.node) if isinstance(n, ast.Return))
        return [n.value for n in inside if nearest(ast.FunctionDef, n, self.parents) is info.node]

    def _makes_anew(self, info: FunctionInfo) -> bool:
        values = self._returned(info)
        back = [v for v in values if isinstance(v, ast.Name) and self._is_handed_back(v, info)]
        if not values or not all(v is not None and (v in back or self.is_new(v)) for v in values):
            return False
        return not any(self.stands_already(n) for n in symbols.walk(info.node) if n not in back)

    def _is_handed_back(self, value: ast.Name, info: FunctionInfo) -> bool:
        """``return layer`` of a parameter that the function only looks at."""
        if value.id not in symbols.parameter_names(info.node):
            return False
        named = [n for n in symbols.walk(info.node) if isinstance(n, ast.Name) and n.id == value.id and n is not value]
        return all(map(self._is_looked_at, named))

    # --- variables ------------------------------------------------------------------------------------------------

    def is_made_for(self, node: ast.Name) -> bool:
        """Whether a variable is a new module, or a list of such, that nothing keeps but what is read here.

        ``layer = nn.TransformerEncoderLayer(...)``, and ``layers`` of ``nn.Sequential(*layers)``.
        """
        if node not in self._made:
            self._made[node] = False  # of a list that is made of itself
            self._made[node] = self._is_made_for(node)
        return self._made[node]

    def _is_made_for(self, node: ast.Name) -> bool:
        home = self.source.home(node)
        if home is not None and not isinstance(home, ast.FunctionDef) or self._in_loop(node, home):
            return False
        everywhere = self.source.nodes if home is None else symbols.walk(home)
        named = [n for n in everywhere if isinstance(n, ast.Name) and n.id == node.id and n is not node]
        if home is not None and node.id in symbols.parameter_names(home):
            return self._is_kept_parameter(node, home) and all(map(self._is_looked_at, named))
        return bool(named) and all(self._fills(n) or self._is_looked_at(n) for n in named)

    def _in_loop(self, node: ast.AST, home: ast.AST | None) -> bool:
        """Whether code of a function may run several times, or later."""
        for around in ancestors(node, self.parents):
            if around is home:
                return False
            if isinstance(around, ast.For | ast.While | ast.Lambda | ast.comprehension | ast.FunctionDef):
                return True
        return home is not None

    def _fills(self, node: ast.Name) -> bool:
        """``x = Net()``, ``layers = []``, ``layers += [...]``, ``layers.append(...)``: with what is made there."""
        match self.parents.get(node):
            case ast.Assign(targets=[target], value=value) | ast.AugAssign(target=target, value=value):
                return target is node and self.is_new(value)
            case ast.Attribute(attr="append" | "extend") as method:
                call = self.parents.get(method)
                plain = isinstance(call, ast.Call) and call.func is method and isinstance(self.parents[call], ast.Expr)
                return plain and all(map(self.is_new, call.args))  # type: ignore[union-attr]
        return False

    def _is_looked_at(self, node: ast.Name) -> bool:
        """``layer.weight`` and ``net.eval()``: what keeps no module."""
        read = self.parents.get(node)
        if not isinstance(read, ast.Attribute) or not isinstance(read.ctx, ast.Load):
            return False
        call = self.parents.get(read)
        if isinstance(call, ast.Call) and call.func is read:
            return read.attr in _LOOKS or isinstance(self.parents.get(call), ast.Expr)
        return not is_module(self.ctx.fact(read)) and not isinstance(call, ast.Assign)

    def _is_kept_parameter(self, node: ast.Name, home: ast.FunctionDef) -> bool:
        """``self.inner = inner`` of a class whose constructor is handed a new module at each of its calls."""
        info = self.ctx.inference.functions.get(home)
        owner = info.owner if info is not None else None
        if info is None or owner is None or home.name != "__init__" or not isinstance(self.parents[node], ast.Assign):
            return False
        calls = self._constructions(owner)
        if not calls:
            return False
        given = [[v for p, v in bound_arguments(call, info) if p.arg == node.id] for call in calls]
        return all(len(values) == 1 and self.is_new(values[0]) for values in given)

    def _constructions(self, owner: ClassInfo) -> list[ast.Call] | None:
        """The calls that make objects of a class; None if others may, or there are none."""
        calls: list[ast.Call] = []
        for node in self.source.nodes:
            if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
                continue
            if not isinstance(fact := self.ctx.fact(node), Class) or fact.info is not owner:
                continue
            call = self.parents.get(node)
            if isinstance(call, ast.Call) and call.func is node:
                calls.append(call)
            elif not isinstance(call, ast.arg) and not symbols.is_super(call):
                return None
        return calls or None

    def holds_function(self, owner: ClassInfo, name: str) -> bool:
        """Whether an attribute is what the constructor is given: a function of arrays at each of its calls."""
        constructor = owner.methods.get("__init__")
        own = {n for one in owner.ancestry() for method in one.methods.values() for n in symbols.walk(method.node)}
        stored = [n for n in self.source.attributes.get(name, ()) if not isinstance(n.ctx, ast.Load)]
        stores = [n for n in stored if n in own or not isinstance(n.value, ast.Name) or n.value.id != "self"]
        if constructor is None or len(stores) != 1:
            return False
        match self.parents.get(stores[0]):
            case ast.Assign(targets=[_], value=ast.Name(id=parameter)) as kept if kept in constructor.node.body:
                pass
            case _:
                return False
        named = [n for n in symbols.walk(constructor.node) if isinstance(n, ast.Name) and n.id == parameter]
        calls = self._constructions(owner)
        if not calls or not all(isinstance(n.ctx, ast.Load) for n in named):
            return False
        given = [[v for p, v in bound_arguments(call, constructor) if p.arg == parameter] for call in calls]
        return all(len(values) == 1 and self._is_of_arrays(values[0]) for values in given)

    def _is_of_arrays(self, node: ast.expr) -> bool:
        """Whether a function only computes with what it is given, and what libraries have."""
        fact = self.ctx.fact(node)
        info = called_function(fact)
        if isinstance(node, ast.Lambda):
            code: ast.AST = node.body
        elif info is not None and info.owner is None and info.outer is None and not info.external:
            code = info.node
        else:
            return isinstance(fact, Qual) and fact.name not in LAYERS
        return not any(map(self._reaches_objects, symbols.walk(code)))

    def _reaches_objects(self, node: ast.AST) -> bool:
        """Whether code may change an object that it isn't given."""
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            return True
        if isinstance(node, ast.Call):
            return called_function(self.ctx.fact(node.func)) is not None
        return isinstance(node, ast.Name) and is_module(self.ctx.fact(node)) or isinstance(node, ast.Global)

    # --- values ---------------------------------------------------------------------------------------------------

    def stands_already(self, node: ast.AST) -> bool:
        """Whether a module or a parameter of one is handed on as a value."""
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            return False
        parent, fact = self.parents.get(node), self.ctx.fact(node)
        if isinstance(parent, ast.Assign) and isinstance(node, ast.Attribute) and isinstance(fact, Tensor):
            return is_module(self.ctx.fact(node.value))
        if not is_module(fact) and not (isinstance(fact, ListOf | TupleFact) and _holds_modules(fact)):
            return False
        called = symbols.is_callee(node, self.parents)
        if isinstance(node, ast.Name) and node.id == "self":
            return not called and not isinstance(parent, ast.Attribute) and not symbols.is_super(parent)
        if isinstance(node, ast.Name) and self.is_made_for(node):
            return False
        if isinstance(parent, ast.Tuple | ast.List):
            parent = self.parents.get(parent)
            return not isinstance(parent, ast.For | ast.comprehension)
        if isinstance(parent, ast.Attribute | ast.Subscript | ast.For | ast.comprehension):
            return False
        if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id in _PASSES:
            return False
        return not called


def _holds_modules(fact: Fact) -> bool:
    match fact:
        case ListOf():
            return is_module(fact.item) or _holds_modules(fact.item)
        case TupleFact():
            return any(is_module(one) or _holds_modules(one) for one in fact.items)
    return False
