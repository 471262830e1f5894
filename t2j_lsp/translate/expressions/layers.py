"""Constructors of layers: the direct form where it is exact, else a helper with the same arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import takewhile

from t2j_lsp import symbols
from t2j_lsp.contract import NOTE_CODES
from t2j_lsp.symbols import nearest, with_ancestors
from t2j_lsp.translate.inference.call_sites import facts_given
from t2j_lsp.translate.inference.containers import SEQUENTIAL
from t2j_lsp.translate.inference.dicts import is_stock_dict
from t2j_lsp.translate.inference.forward_pass import CONTAINERS, contents, dotted
from t2j_lsp.translate.inference.sequentials import is_empty_sequential, is_indexed_sequential, is_stock_sequential
from t2j_lsp.translate.inference.subscripts import is_number
from t2j_lsp.translate.rule.binding import arguments_of, bind, spelled
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.rule.factory import FactoryKeywords
from t2j_lsp.translate.rule.facts import Layer, Qual, Tensor
from t2j_lsp.translate.rule.layer import LAYERS, LayerRule
from t2j_lsp.translate.rule.names import is_complex_dtype, is_narrow_dtype
from t2j_lsp.translate.rule.pieces import ARGUMENT, ATOM, Piece, bracket, precedence
from t2j_lsp.translate.rule.record import Call, CannotHoist, Refusal
from t2j_lsp.translate.source.helpers import constructor_parameters, positional_parameters
from t2j_lsp.translate.source.text import Source

from .context import Context
from .copying import Copier, arguments_only
from .handlers import ExpressionRenderer
from .rngs import rngs_expression
from .rule_application import Sites
from .unknown_makers import report_unknown_makers

_UNTAKEN = "those in the dict are not all known to what stands for it in JAX"
_NO_AXES = "PyTorch takes a tensor without axes for a vector here, JAX raises: make it one with x.reshape(1)"
COMPLEX = "Flax's layers draw real numbers: give them param_dtype, and a kernel_init and bias_init of complex numbers"
_NARROW = "a layer's dtype goes, and its parameters are float32: nnx layers take param_dtype"
_SCOPES = ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.JoinedStr
_TABLE = ("num_embeddings", "embedding_dim", "device", "dtype")


class Layers:
    """What builds a layer."""

    def __init__(self, context: Context, renderer: ExpressionRenderer, copier: Copier, site: Sites) -> None:
        self.ctx = context
        self.renderer = renderer
        self.copier = copier
        self.site = site

    def call(self, node: ast.Call, layer: LayerRule) -> Piece | None:
        """``nn.Linear(3, 4)``: the direct form where it is exact, else the helper with the same arguments."""
        if bind(layer.signature, node, None) is None and not _spreads(node):
            self.ctx.report.gap(node, layer.name, "arguments", f"the arguments do not fit {layer.signature.text}")
            return self.copier.copy_arguments(node)
        dtypes = list(self._dtypes(node, layer))
        if any(map(is_complex_dtype, dtypes)):
            self.ctx.report.gap(node, layer.name, "refused", COMPLEX)
            return self.copier.copy_arguments(node)
        if any(map(is_narrow_dtype, dtypes)):
            self.ctx.report.note(node, layer.name, "note", _NARROW)
        if layer.name in CONTAINERS:
            report_unknown_makers(self.ctx, node.args)
        piece = self._direct(node, layer)
        if piece is None:
            last = layer.last_helper if node in self.ctx.plan.layout.channels_last else None
            piece = self._helper_call(node, layer, last or layer.helper)
        self.ctx.report.count_converted()
        if layer.note is not None:
            self.ctx.report.note(node, layer.name, NOTE_CODES[layer.fidelity], layer.note)
        return piece

    def _dtypes(self, node: ast.Call, layer: LayerRule) -> Iterator[str]:
        """The dtypes that a layer's parameters may have, by name: as given here, by the file's calls, or by default."""
        given = [k.value for k in node.keywords if k.arg == "dtype"]
        given += (bind(layer.signature, node, None) or {}).get("dtype", []) if not given else []
        function, inference = self.ctx.scope.function, self.ctx.inference
        for one in given:
            facts = [self.ctx.fact(one), *facts_given(inference, one)]
            if isinstance(one, ast.Name) and function is not None:
                facts += [self.ctx.fact(d) for a, d in symbols.defaults(function.node.args) if a.arg == one.id]
            yield from (fact.name for fact in facts if isinstance(fact, Qual))

    def called(self, node: ast.Call, layer: LayerRule) -> Piece | None:
        """A layer that is called: Flax has other names for what PyTorch calls ``input``, so it goes by position."""
        given = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "input" and not node.args)]
        fact = self.ctx.fact(given[0]) if given else None
        if "dim" in layer.signature.by_name and isinstance(fact, Tensor) and fact.rank == 0:
            self.ctx.report.gap(node, layer.name, "refused", _NO_AXES)
        if isinstance(node.func, ast.Call) and (whole := self._at_once(node, node.func)) is not None:
            return whole
        if not given or node.args:
            return None
        rest = [k for k in node.keywords if k.arg != "input"]
        texts = [bracket(self.renderer.argument(given[0]), ARGUMENT)]
        texts += [f"{f'{k.arg}=' if k.arg else '**'}{bracket(self.renderer.argument(k.value), ARGUMENT)}" for k in rest]
        return Piece(f"{bracket(self.renderer.render(node.func), ATOM)}({', '.join(texts)})")

    def _at_once(self, node: ast.Call, made: ast.Call) -> Piece | None:
        """``nn.KLDivLoss(reduction="sum")(x, y)``, of a layer that is a function: one call of it."""
        text = self.renderer.render(made).text
        tree = ast.parse(text, mode="eval").body
        match tree:
            case ast.Lambda(args=ast.arguments(args=[parameter]), body=body):
                return self._of_argument(node, text, parameter.arg, body)
            case ast.Call(func=func, args=[function], keywords=options) if ast.unparse(func) == "functools.partial":
                pass
            case _:
                return None
        if node.keywords or not node.args or not options or any(not k.arg for k in options):
            return None
        source = self.ctx.source
        given = self.copier.splice(arguments_only(node), source.span(made)[1], source.span(node)[1])
        given = given[: given.rindex(")")].rstrip(", \n")
        return Piece(f"{ast.unparse(function)}{given}, {', '.join(map(ast.unparse, options))})")

    def _of_argument(self, node: ast.Call, text: str, parameter: str, body: ast.expr) -> Piece | None:
        """``nn.LeakyReLU(0.2)(y)``, of a layer that is a lambda: its body, with the argument for the parameter."""
        inside = list(symbols.walk(body))
        uses = [n for n in inside if isinstance(n, ast.Name) and n.id == parameter]
        plain = text.isascii() and "\n" not in text and not any(isinstance(n, _SCOPES) for n in inside)
        match node:
            case ast.Call(args=[given], keywords=[]) if plain and not isinstance(given, ast.Starred):
                if len(uses) != 1 and not (uses and isinstance(given, ast.Name)):
                    return None
            case _:
                return None
        piece = self.renderer.argument(given)
        arguments = {a for n in inside if isinstance(n, ast.Call) for a in [*n.args, *(k.value for k in n.keywords)]}
        end = body.end_col_offset
        for use in sorted(uses, key=lambda use: -use.col_offset):
            written = bracket(piece, ARGUMENT if use in arguments else ATOM)
            text = text[: use.col_offset] + written + text[use.end_col_offset : end]
            end = len(text)
        return Piece(text[body.col_offset :], precedence(body))

    def _direct(self, node: ast.Call, layer: LayerRule) -> Piece | None:
        asked = self.ctx.inference.isinstance_classes
        if self.ctx.inference.settings.of(node, layer.name):
            return None
        if layer.function and (layer.name in asked or _is_exchanged(node, self.ctx, self._attribute_stores)):
            return None
        build = layer.direct
        if node in self.ctx.plan.layout.channels_last and layer.channels_last is not None:
            build = layer.channels_last
        elif node in self.ctx.plan.layout.channels_first and layer.channels_first is not None:
            build = layer.channels_first
        if layer.name in self.ctx.plan.short_layers and build is (layer.channels_last or layer.direct):
            build = layer.short
        if layer.border is not None and (spatial := self.ctx.plan.layout.borders.get(node)):
            build = layer.border.form(spatial)
        if layer.on_linear is not None and self.is_linears_table(node):
            build = layer.on_linear
        if layer.name == SEQUENTIAL:
            return self._sequential(node)
        if layer.name == "torch.nn.ModuleList" and (items := contents(node)) is not None:
            return self._container(node, items, "List")
        if layer.name == "torch.nn.ModuleDict" and (items := contents(node)) is not None:
            return self._container(node, items, "Dict") if is_stock_dict(self.ctx.inference, node) else None
        if build is None:
            return None
        bound = bind(layer.signature, node, None)
        if bound is None:
            return None
        site = self.site(node, layer.name)
        call = Call(
            layer.signature, arguments_of(layer.signature, bound, self.renderer.argument, self.ctx.fact), site, node
        )
        try:
            result = build(call)
        except CannotHoist:
            return None
        if isinstance(result, Refusal):
            self.ctx.report.gap(node, layer.name, "refused", result.reason)
            return self.copier.copy_arguments(node)
        return result

    def is_linears_table(self, node: ast.Call | None) -> bool:
        """Whether a statement behind an Embedding's constructor, in its block, makes a Linear's parameter its table."""
        if node is None or len(node.args) > 2 or any(k.arg not in _TABLE for k in node.keywords):
            return False
        statement: ast.AST | None = node
        while statement is not None and not isinstance(statement, ast.stmt):
            if isinstance(statement, ast.ListComp | ast.GeneratorExp | ast.DictComp | ast.Lambda):
                return False  # One of several.
            statement = self.ctx.source.parents.get(statement)
        block = self.ctx.source.block_of(statement) if statement is not None else None
        for other in block or []:
            match other:
                case ast.Assign(
                    targets=[ast.Attribute(value=into, attr="weight")],
                    value=ast.Attribute(value=ast.Attribute() as source, attr="weight"),
                ) if dotted(into):
                    table, linear = self.ctx.fact(into), self.ctx.fact(source)
                    if isinstance(table, Layer) and table.node is node and isinstance(linear, Layer):
                        return linear.name == "torch.nn.Linear"
        return False

    @cached_property
    def _attribute_stores(self) -> Mapping[str, Sequence[ast.Attribute]]:
        """Where the file assigns attributes, by their names."""
        stores: dict[str, list[ast.Attribute]] = {}
        for node in self.ctx.source.nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                stores.setdefault(node.attr, []).append(node)
        return stores

    def _container(self, node: ast.Call, items: ast.expr, name: str) -> Piece:
        """nnx.List or nnx.Dict in the layout of the call. A generator's own text has the call's brackets."""
        head = f"{self.renderer.need('nnx')}.{name}"
        if isinstance(items, ast.GeneratorExp):
            return Piece(head + bracket(self.renderer.argument(items), ATOM))
        return self.copier.rebuilt(node, head, [], None, node.keywords)

    def _sequential(self, node: ast.Call) -> Piece | None:
        """nnx.Sequential where no child returns a tuple, which nnx would spread; None for one with names."""
        if is_stock_sequential(self.ctx.inference, node) or is_empty_sequential(self.ctx.inference, node):
            return self.copier.rebuilt(node, f"{self.renderer.need('nnx')}.Sequential", [], None)
        if is_indexed_sequential(self.ctx.inference, node):
            return self.copier.rebuilt(node, self.renderer.need("IndexedSequential"), [], None)
        return None

    def child(self, node: ast.Subscript) -> Piece | None:
        """``model[0]`` of an nnx.Sequential, which has its children in a list."""
        fact = self.ctx.fact(node.value)
        if not isinstance(fact, Layer) or fact.name != SEQUENTIAL or fact.node not in self.ctx.source.parents:
            return None
        if not is_number(node.slice) or not is_stock_sequential(self.ctx.inference, fact.node):
            return None
        owner = bracket(self.copier.render_in(node, "value", node.value), ATOM)
        return Piece(f"{owner}.layers[{self.renderer.render(node.slice).text}]")

    def _helper_call(self, node: ast.Call, layer: LayerRule, helper: str) -> Piece:
        """The helper has what it needs of PyTorch's parameters: what is only said to be as by default goes."""
        taken = constructor_parameters(helper)
        unknown = [k for k in node.keywords if taken is not None and k.arg not in taken]
        inside = [k for k in spelled(node.keywords) if k not in node.keywords]
        if taken is not None and any(k.arg not in taken for k in inside):
            self.ctx.report.gap(node, layer.name, "arguments", f"write the arguments of {layer.name} out: {_UNTAKEN}")
        gone = ("device", "dtype", *layer.ignore)
        dropped = [k for k in node.keywords if k.arg in gone or k in unknown and _is_default(layer, k)]
        rngs = rngs_expression(self.ctx) if layer.random else None
        unnamed = [k for k in unknown if contents(node) is k.value]
        untaken = [k.arg for k in unknown if k.arg is not None and k not in dropped and k not in unnamed]
        surplus = _misplaced(node, layer, helper) if taken is not None else {}
        behind = {a: name for a, name in surplus.items() if name in gone or _is_default(layer, ast.keyword(name, a))}
        untaken += [name for a, name in surplus.items() if a not in behind]
        if untaken:
            reason = f"what stands for {layer.name} in JAX has no {untaken[0]!r}"
            self.ctx.report.gap(node, layer.name, "arguments", reason)
            return Piece(self.ctx.source.segment(node))
        return self.copier.rebuilt(node, self.renderer.need(helper), [*dropped, *behind], rngs, unnamed)


def _misplaced(node: ast.Call, layer: LayerRule, helper: str) -> dict[ast.expr, str]:
    """What a call gives by position, with its parameter, where what stands for the layer has another or none."""
    names = [p.name for p in layer.signature.parameters or () if p.kind == "normal"]
    taken = positional_parameters(helper)
    if taken is None or any(isinstance(a, ast.Starred) for a in node.args):
        return {}
    pairs = zip(node.args, names, [*taken, *[""] * len(names)], strict=False)
    return {a: name for a, name, own in pairs if name != own and own in ("", "rngs", *names)}


def _is_default(layer: LayerRule, keyword: ast.keyword) -> bool:
    """Whether an argument is what its parameter is without it."""
    parameter = layer.signature.by_name.get(keyword.arg or "")
    return parameter is not None and parameter.default == ast.unparse(keyword.value)


def _is_exchanged(node: ast.Call, ctx: Context, stores: Mapping[str, Sequence[ast.Attribute]]) -> bool:
    """Whether a layer stands, or is exchanged, in an attribute of a module that exists: ``net.fc = Identity()``.

    Flax tells attributes that hold modules from those that hold functions, and one can't become the other.
    """
    value: ast.AST = node
    source = ctx.source
    while isinstance(parent := source.parents.get(value), ast.IfExp | ast.BoolOp):
        value = parent
    if not isinstance(parent, ast.Assign | ast.AnnAssign):
        return False
    targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
    attributes = [target for target in targets if isinstance(target, ast.Attribute)]
    return any(_takes_turns(parent, target, stores.get(target.attr, ()), ctx) for target in attributes) or any(
        not _own(one, source) or _overwrites(source.parents.get(one), parent, ctx)
        for target in attributes
        for one in stores.get(target.attr, ())
    )


def _takes_turns(statement: ast.stmt, target: ast.Attribute, stores: Sequence[ast.Attribute], ctx: Context) -> bool:
    """Whether a module's attribute is None first, and then this function or, in another branch, a module."""
    source, home = ctx.source, nearest(ast.ClassDef, target, ctx.source.parents)
    others = [
        one
        for store in stores
        if nearest(ast.ClassDef, store, source.parents) is home
        if isinstance(one := source.parents.get(store), ast.Assign | ast.AnnAssign) and one is not statement
    ]
    if not any(isinstance(one.value, ast.Constant) and one.value.value is None for one in others):
        return False
    return any(
        one.value is not None and is_module(ctx.fact(one.value)) and not _is_function(one.value, ctx) for one in others
    )


def _is_function(value: ast.expr, ctx: Context) -> bool:
    """Whether the direct form of a layer that is built here is a plain function."""
    fact = ctx.fact(value)
    return isinstance(fact, Layer) and fact.name in LAYERS and LAYERS[fact.name].function


def _overwrites(one: ast.AST | None, other: ast.stmt, ctx: Context) -> bool:
    """Whether of two assignments in a constructor both may run, and the one gives no function."""
    source = ctx.source
    if not isinstance(one, ast.Assign | ast.AnnAssign) or one is other or one.value is None:
        return False
    if _is_function(one.value, ctx) or not is_module(ctx.fact(one.value)):
        return False
    return any(
        (block := source.block_of(a)) is not None and a is not b and b in block
        for a in _around(one, source)
        for b in _around(other, source)
    )


def _around(statement: ast.stmt, source: Source) -> list[ast.stmt]:
    """A statement and those around it, as far as its function goes."""
    inside = takewhile(lambda at: not isinstance(at, ast.FunctionDef), with_ancestors(statement, source.parents))
    return [at for at in inside if isinstance(at, ast.stmt)]


def _own(target: ast.Attribute, source: Source) -> bool:
    """Whether an attribute is set by the constructor of its object."""
    function = nearest(ast.FunctionDef, target, source.parents)
    if function is None or function.name != "__init__":
        return False
    own = symbols.positional_parameters(function)[:1]
    return isinstance(target.value, ast.Name) and any(target.value.id == one.arg for one in own)


def _spreads(node: ast.Call) -> bool:
    """Whether the call has ``*args`` or ``**kwargs``, which may hold anything."""
    unknown = any(k.arg is None and not isinstance(k, FactoryKeywords) for k in node.keywords)
    return unknown or any(isinstance(a, ast.Starred) for a in node.args)
