"""Facts of expressions."""

from __future__ import annotations

import ast
from dataclasses import replace

from t2j_lsp.translate.rule.facts import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    NOTHING,
    STR,
    UNKNOWN,
    AnyModule,
    Class,
    Fact,
    Instance,
    Layer,
    ListOf,
    Object,
    Partial,
    Qual,
    Scalar,
    Shape,
    Tensor,
    Tuple,
    is_module,
    is_module_class,
)
from t2j_lsp.translate.rule.join import element, join
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.names import canonical

from .calls import CallInference
from .narrowing import Narrowing
from .state import CONTAINERS, Parameter, constant_fact, dotted, join_all

VIEWS_OF_TENSOR = {"shape": Shape(), "dtype": Object("dtype"), "device": Object("device"), "ndim": INT}


class ExpressionInference(CallInference, Narrowing):
    """Facts of expressions; the statements are in the subclass."""

    def _expr(self, node: ast.expr, env: dict[str, Fact]) -> Fact:
        match node:
            case ast.Constant():
                return constant_fact(node.value)
            case ast.Name():
                return env.get(node.id, UNKNOWN)
            case ast.Attribute():
                return self._attribute(node, env)
            case ast.Call():
                return self._call(node, env)
            case ast.BinOp():
                return self.arithmetic(self.expr(node.left, env), self.expr(node.right, env), node.op)
            case ast.UnaryOp():
                inner = self.expr(node.operand, env)
                return BOOL if isinstance(node.op, ast.Not) else inner
            case ast.Compare():
                parts = [self.expr(node.left, env), *(self.expr(c, env) for c in node.comparators)]
                if any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops):
                    return BOOL
                ranks = [p.rank for p in parts if isinstance(p, Tensor)]
                if ranks:
                    return Tensor(ranks[0] if len(set(ranks)) == 1 else None, "bool")
                return UNKNOWN if any(p == UNKNOWN or isinstance(p, Parameter) for p in parts) else BOOL
            case ast.BoolOp():
                inner_env = dict(env)
                facts = []
                for value in node.values:
                    facts.append(self.expr(value, inner_env))
                    if isinstance(node.op, ast.And):
                        self.narrow(value, inner_env)
                if isinstance(node.op, ast.Or) and is_module_class(facts[-1], LAYERS):
                    return self._given_class(facts)
                return join_all(facts)
            case ast.IfExp():
                self.expr(node.test, env)
                then = dict(env)
                self.narrow(node.test, then)
                branches = [self.expr(node.body, then), self.expr(node.orelse, env)]
                if any(is_module_class(fact, LAYERS) for fact in branches):
                    return self._given_class(branches)
                return join_all(branches)
            case ast.Subscript():
                return self._subscript(node, env)
            case ast.Tuple() | ast.List():
                items = [self.expr(e, env) for e in node.elts]
                if any(isinstance(e, ast.Starred) for e in node.elts):
                    return ListOf(join_all(items))
                return Tuple(tuple(items)) if items else ListOf(NOTHING)
            case ast.Set():
                return ListOf(join_all([self.expr(e, env) for e in node.elts]))
            case ast.Dict():
                keys = [self.expr(k, env) for k in node.keys if k is not None]
                values = [self.expr(v, env) for v in node.values]
                return ListOf(join_all(values), join_all(keys) if keys else STR)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                scope = self._comprehension(node.generators, env)
                return ListOf(self.expr(node.elt, scope))
            case ast.DictComp():
                scope = self._comprehension(node.generators, env)
                key = self.expr(node.key, scope)
                return ListOf(self.expr(node.value, scope), key)
            case ast.Lambda():
                scope = {**env, **{a.arg: UNKNOWN for a in ast.walk(node.args) if isinstance(a, ast.arg)}}
                for default in [*node.args.defaults, *node.args.kw_defaults]:
                    self.expr(default, env)
                body = self.expr(node.body, scope)
                return Partial(body) if is_module(body) else UNKNOWN
            case ast.Starred():
                return element(self.expr(node.value, env))
            case ast.Yield():
                self.yielded.append(self.expr(node.value, env) if node.value is not None else NONE)
                return UNKNOWN
            case ast.YieldFrom():
                self.yielded.append(element(self.expr(node.value, env)))
                return UNKNOWN
            case ast.NamedExpr():
                fact = self.expr(node.value, env)
                self.bind(node.target, fact, env, node.value)
                return fact
            case ast.JoinedStr():
                for value in node.values:
                    if isinstance(value, ast.FormattedValue):
                        self.expr(value.value, env)
                        if value.format_spec is not None:
                            self.expr(value.format_spec, env)
                return STR
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.expr(child, env)
                return UNKNOWN

    def _comprehension(self, generators: list[ast.comprehension], env: dict[str, Fact]) -> dict[str, Fact]:
        inner = dict(env)
        for generator in generators:
            self.bind(generator.target, self._iterated(generator.iter, self.expr(generator.iter, inner)), inner, None)
            for condition in generator.ifs:
                self.expr(condition, inner)
                self.narrow(condition, inner)
        return inner

    def _iterated(self, node: ast.expr, fact: Fact) -> Fact:
        self._note_indexed(fact)
        return element(fact)

    # --- attributes and subscripts --------------------------------------------------------------------------------

    def _attribute(self, node: ast.Attribute, env: dict[str, Fact]) -> Fact:
        owner = self.expr(node.value, env)
        name = node.attr
        if name == "__name__" and isinstance(node.value, ast.Attribute) and node.value.attr == "__class__":
            return Object("class name", dotted(node.value.value))
        if name == "__name__" and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name):
            return Object("class name", dotted(node.value.args[0])) if node.value.func.id == "type" else UNKNOWN
        narrowed = env.get(dotted(node))
        if narrowed is not None:
            return narrowed
        match owner:
            case Qual():
                return self.module_member(owner.name, name) or Qual(canonical(f"{owner.name}.{name}"))
            case Instance():
                return self._instance_attribute(owner, name)
            case Class():
                self.infer_class(owner.info)
                method = owner.info.method(name)
                return method.fact if method else owner.info.attribute(name)
            case Tensor():
                return self._tensor_attribute(owner, name)
            case Parameter() if name in ("shape", "dtype", "device", "ndim", "requires_grad", "data"):
                in_module = self.current is not None and self.current.owner is not None and self.current.owner.is_module
                if name in ("requires_grad", "device", "data") and in_module:
                    self._evidence(owner)
                return VIEWS_OF_TENSOR.get(name, UNKNOWN)
            case Layer():
                child = named_child(owner, name)
                return (
                    self.facts.get(child, AnyModule()) if child is not None else self._layer_attribute(owner.name, name)
                )
            case AnyModule():
                if name in ("weight", "bias", "running_mean", "running_var"):
                    return Tensor(variable=True)
                return UNKNOWN
            case Object() if name in ("dtype", "device"):
                return Object(name)
            case _:
                return UNKNOWN

    def _instance_attribute(self, owner: Instance, name: str) -> Fact:
        info = owner.cls.info
        self.infer_class(info)
        if name == "training" and info.acts_as_module:
            return BOOL
        method = info.method(name)
        if method is not None:
            if self.current is not None:
                self.current.self_calls.add(name)
                if self.current.owner is not info:
                    self.current.callees.add(method)
            if any(
                isinstance(d, ast.Name) and d.id in ("property", "cached_property") for d in method.node.decorator_list
            ):
                return self.infer_function(method)
            return method.fact
        fact = info.attribute(name)
        if fact is UNKNOWN and info.layer_base is not None:
            return self._layer_attribute(info.layer_base, name)
        if name in ("T_destination", "dump_patches"):
            return UNKNOWN
        return fact

    def _layer_attribute(self, layer: str, name: str) -> Fact:
        if name in ("weight", "bias", "running_mean", "running_var", "in_proj_weight", "in_proj_bias"):
            return Tensor(variable=True)
        if name in (
            "in_features",
            "out_features",
            "in_channels",
            "out_channels",
            "embedding_dim",
            "groups",
            "embed_dim",
        ):
            return INT
        if name == "out_proj":
            return Layer("torch.nn.Linear")
        return UNKNOWN

    def _tensor_attribute(self, owner: Tensor, name: str) -> Fact:
        if name == "shape":
            return Shape(owner.rank)
        if name in VIEWS_OF_TENSOR:
            return VIEWS_OF_TENSOR[name]
        if name in ("T", "mT", "H", "mH", "data", "grad", "real", "imag"):
            return replace(owner, variable=False)
        if name in ("requires_grad", "is_cuda", "is_leaf", "is_sparse"):
            return BOOL
        return UNKNOWN

    def _subscript(self, node: ast.Subscript, env: dict[str, Fact]) -> Fact:
        owner = self.expr(node.value, env)
        index = self.expr(node.slice, env)
        self._indexed_as_tensor(owner, node.slice)
        match owner:
            case Tuple() if isinstance(index, Scalar) and isinstance(index.value, int):
                if -len(owner.items) <= index.value < len(owner.items):
                    return owner.items[index.value]
                return UNKNOWN
            case Tuple() | ListOf() if isinstance(node.slice, ast.Slice):
                return ListOf(element(owner))
            case Shape():
                return Shape() if isinstance(node.slice, ast.Slice) else INT
            case Object(kind="array"):
                return owner
            case Tensor():
                return Tensor(_indexed_rank(owner.rank, node.slice, index), owner.dtype, owner.sure)
            case Layer() if owner.name in CONTAINERS:
                self._note_indexed(owner)
                if isinstance(node.slice, ast.Slice):
                    return Layer(owner.name)
                if owner.items is not None and isinstance(index, Scalar) and isinstance(index.value, int):
                    if -len(owner.items) <= index.value < len(owner.items):
                        return owner.items[index.value]
                return element(owner) if owner.items is not None else AnyModule()
            case Instance() if owner.cls.info.layer_base in CONTAINERS:
                return AnyModule()
            case AnyModule():
                self._note_indexed(owner)
                return AnyModule()
            case _:
                return element(owner)

    # --- calls ----------------------------------------------------------------------------------------------------

    # --- evidence -------------------------------------------------------------------------------------------------

    def learn_rank(self, node: ast.expr, rank: int, env: dict[str, Fact]) -> None:
        """``b, c, h, w = x.shape`` says that x has four dims."""
        if isinstance(node, ast.Name):
            fact = env.get(node.id)
            if isinstance(fact, Tensor):
                env[node.id] = replace(fact, rank=rank)

    def arithmetic(self, left: Fact, right: Fact, op: ast.operator) -> Fact:
        if isinstance(left, Tensor) or isinstance(right, Tensor):
            tensors = [f for f in (left, right) if isinstance(f, Tensor)]
            ranks = {t.rank for t in tensors}
            rank = ranks.pop() if len(ranks) == 1 and not isinstance(op, ast.MatMult) else None
            dtypes = {t.dtype for t in tensors}
            dtype = dtypes.pop() if len(dtypes) == 1 else None
            if dtype == "bool" or isinstance(op, ast.Div):
                dtype = None if dtype == "bool" and not isinstance(op, ast.Div) else "float"
            if len(tensors) == 1 and dtype == "int" and left not in (INT, BOOL) and right not in (INT, BOOL):
                other = right if isinstance(left, Tensor) else left
                dtype = "int" if isinstance(other, Scalar) and other.kind == "int" else None
            return Tensor(rank, dtype, all(t.sure for t in tensors))
        for fact in (left, right):
            if isinstance(fact, Object) and fact.kind == "array":
                return fact
        if isinstance(left, Tuple | ListOf | Shape) and isinstance(op, ast.Add):
            if isinstance(left, Tuple) and isinstance(right, Tuple):
                return Tuple(left.items + right.items)
            return join(left, right) if isinstance(right, Tuple | ListOf | Shape) else UNKNOWN
        if isinstance(op, ast.Mult) and isinstance(left, Tuple | ListOf) and isinstance(right, Scalar):
            return ListOf(element(left))
        if isinstance(left, Scalar) and isinstance(right, Scalar):
            if left.kind == "str" or right.kind == "str":
                return STR
            if isinstance(op, ast.Div):
                return FLOAT
            return FLOAT if "float" in (left.kind, right.kind) else INT
        if isinstance(left, Scalar) or isinstance(right, Scalar):
            known = left if isinstance(left, Scalar) else right
            return STR if known == STR else UNKNOWN
        return UNKNOWN


def named_child(layer: Layer, name: str) -> ast.expr | None:
    """The child that a ModuleDict or Sequential was given under a name, where the constructor shows it."""
    if layer.node is None or not layer.node.args or layer.name not in CONTAINERS:
        return None
    given = layer.node.args[0]
    pairs: list[tuple[ast.expr | None, ast.expr]] = []
    if isinstance(given, ast.Dict):
        pairs = list(zip(given.keys, given.values, strict=True))
    elif isinstance(given, ast.Call):
        for keyword in given.keywords:
            if keyword.arg == name:
                return keyword.value
        given = given.args[0] if given.args else given
    if isinstance(given, ast.List | ast.Tuple):
        pairs = [(e.elts[0], e.elts[1]) for e in given.elts if isinstance(e, ast.Tuple) and len(e.elts) == 2]
    elif isinstance(given, ast.Dict):
        pairs = list(zip(given.keys, given.values, strict=True))
    for key, value in pairs:
        if isinstance(key, ast.Constant) and key.value == name:
            return value
    return None


def _indexed_rank(rank: int | None, index: ast.expr, fact: Fact) -> int | None:
    if rank is None:
        return None
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    if any(isinstance(p, ast.Starred) for p in parts):
        return None
    for part in parts:
        match part:
            case ast.Slice():
                pass
            case ast.Constant(value=None):
                rank += 1
            case ast.Constant(value=v) if v is Ellipsis:
                pass
            case ast.Constant(value=int()) | ast.UnaryOp(operand=ast.Constant(value=int())):
                rank -= 1
            case _:
                if isinstance(fact, Scalar) and fact.kind == "int" and len(parts) == 1:
                    rank -= 1
                else:
                    return None
    return rank
