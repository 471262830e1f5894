"""Lazy layers that are attributes of a module, ``self.fc = nn.LazyLinear(10)``: the sizes that ``forward`` hands them.

What it takes is annotated (``x: Float[Tensor, "batch 3 32 32"]``), or shown by a call of the one module of its class
that the file makes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp.symbols import walk
from t2j_lsp.translate.inference.annotations import axes_of
from t2j_lsp.translate.inference.call_sites import bound_arguments, own_parameters
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.sequentials import LENGTHENING
from t2j_lsp.translate.rule.definitions import Class, ClassInfo, FunctionInfo, Instance
from t2j_lsp.translate.rule.facts import Qual
from t2j_lsp.translate.rule.sizes import UNKNOWN_SIZES, Sizes, given_sizes, layer_of_function

from .lazy_sizes import SizedLayers, agree, follow, given_to, made_sizes


def lazy_children(inference: Inference) -> SizedLayers:
    """The lazy layers that classes of the file make in their constructors, with the sizes that are sure."""
    sized: SizedLayers = {}
    for info in inference.classes.values():
        forward, made = info.methods.get("forward"), info.methods.get("__init__")
        derived = any(info in other.ancestry()[1:] for other in inference.classes.values())
        if info.is_module and not derived and forward is not None and made is not None and made.node.args.args:
            sized |= _of_class(inference, info, forward, _layers(inference, info, made))
    return sized


def _of_class(inference: Inference, info: ClassInfo, forward: FunctionInfo, layers: dict[str, ast.Call]) -> SizedLayers:
    """What all that is known of the inputs of a class's ``forward`` agrees on."""
    sized: SizedLayers = {}
    for sizes in _inputs(inference, info, forward):
        walked = _SizeWalk(inference, forward, layers, sizes)
        if not walked.agreed or not agree(sized, walked.sized):
            return {}
    return sized


def _layers(inference: Inference, info: ClassInfo, made: FunctionInfo) -> dict[str, ast.Call]:
    """The attributes that the constructor makes by a call, in any case, and that nothing in the file sets anew."""
    own, layers = made.node.args.args[0].arg, dict[str, ast.Call]()
    for statement in made.node.body:
        match statement:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=holder), attr=name)], value=ast.Call() as call):
                if holder == own and not _is_set_anew(inference, info, name):
                    layers[name] = call
    return layers


def _is_set_anew(inference: Inference, info: ClassInfo, name: str) -> bool:
    """Whether an attribute may be something else than what it was made as, or get other parts."""
    inside = set(walk(info.node))
    stores = 0
    for node in inference.source.nodes:
        match node:
            case ast.Attribute(value=holder, attr=attr, ctx=ast.Store() | ast.Del()) if attr == name:
                stores += node in inside
                if node not in inside and not (isinstance(holder, ast.Name) and holder.id == "self"):
                    return True
            case ast.Attribute(value=ast.Attribute(attr=attr), attr=done) if attr == name and done in LENGTHENING:
                return True
            case ast.Subscript(value=ast.Attribute(attr=attr), ctx=ast.Store() | ast.Del()) if attr == name:
                return True
            case _:
                pass
    return stores != 1


def _inputs(inference: Inference, info: ClassInfo, forward: FunctionInfo) -> Iterator[dict[str, Sizes]]:
    """The sizes of what ``forward`` takes, by the names of its parameters, as each place says that knows any."""
    seen = {}
    for parameter in own_parameters(forward):
        axes = axes_of(parameter.annotation, lambda name: inference.env.get(name))
        if axes is not None:
            seen[parameter.arg] = Sizes(*axes)
    if seen:
        yield seen
    calls = [node for node in inference.source.nodes if isinstance(node, ast.Call)]
    made = [call for call in calls if isinstance(cls := inference.fact(call.func), Class) and cls.info is info]
    for call in calls if len(made) == 1 else ():
        owner = inference.fact(call.func)
        if isinstance(owner, Instance) and owner.cls.info is info:
            given = {one.arg: made_sizes(inference, value) for one, value in bound_arguments(call, forward)}
            yield seen | {name: sizes for name, sizes in given.items() if sizes is not None}


class _SizeWalk:
    """The sizes that the statements of ``forward`` hand to layers, as far as they are followed in order."""

    def __init__(
        self, inference: Inference, forward: FunctionInfo, layers: dict[str, ast.Call], sizes: dict[str, Sizes]
    ) -> None:
        self.inference, self.layers, self.env = inference, layers, dict(sizes)
        self.own = forward.node.args.args[0].arg if forward.node.args.args else ""
        self.sized: SizedLayers = {}
        self.agreed = True
        for statement in forward.node.body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if any(isinstance(n, ast.NamedExpr | ast.Attribute) and _rebinds(n) for n in walk(node)):
            self.env.clear()
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                self.env[name] = self._sizes(value)
            case ast.Return(value=ast.expr() as value) | ast.Expr(value=value):
                self._sizes(value)
            case _:
                for inner in walk(node):
                    if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load):
                        self.env.pop(inner.id, None)

    def _sizes(self, node: ast.expr) -> Sizes:
        match node:
            case ast.Name(id=name):
                return self.env.get(name, UNKNOWN_SIZES)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=self.own), attr=name), args=[given], keywords=[]) if (
                name in self.layers
            ):
                one: SizedLayers = {}
                sizes = follow(self.inference, self.layers[name], self._sizes(given), one)
                self.agreed = agree(self.sized, one) and self.agreed
                return sizes
            case ast.Call(func=func, args=[given, *others]) if isinstance(fact := self.inference.fact(func), Qual):
                return self._called(fact.name, self._sizes(given), others, node)
            case ast.Call(func=ast.Attribute(value=owner, attr=name), args=others):
                sizes = self._sizes(owner)
                if name in ("view", "reshape") and _keeps_first(owner, others):
                    name, others = "flatten", [ast.Constant(1)]
                return self._called(f"torch.{name}", sizes, others, node) if sizes != UNKNOWN_SIZES else sizes
            case ast.BinOp(left=left, right=ast.Constant()):
                return self._sizes(left)
            case ast.BinOp(left=left, right=right):
                first, second = self._sizes(left), self._sizes(right)
                return first if first == second else UNKNOWN_SIZES
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                for one_of_them in elts:
                    self._sizes(one_of_them)
            case _:
                pass
        return UNKNOWN_SIZES

    def _called(self, function: str, sizes: Sizes, others: list[ast.expr], node: ast.Call) -> Sizes:
        """The sizes that a function gives for those of its first argument."""
        if (like := layer_of_function(function)) is None:
            return UNKNOWN_SIZES
        layer, defaults = like
        rest = ast.Call(node.func, others, node.keywords)
        return given_sizes(layer, given_to(layer, rest, [], defaults), sizes)


def _rebinds(node: ast.NamedExpr | ast.Attribute) -> bool:
    """Whether names may hold other tensors in the midst of a statement, or others of other sizes: ``unsqueeze_``."""
    return isinstance(node, ast.NamedExpr) or node.attr.endswith("_")


def _keeps_first(owner: ast.expr, sizes: list[ast.expr]) -> bool:
    """``x.view(x.size(0), -1)``, and the same by ``x.shape[0]`` or ``len(x)``."""
    if len(sizes) != 2 or ast.unparse(sizes[1]) != "-1" or not isinstance(owner, ast.Name):
        return False
    return ast.unparse(sizes[0]) in (f"{owner.id}.size(0)", f"{owner.id}.shape[0]", f"len({owner.id})")
