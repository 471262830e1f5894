"""Parameters and buffers, which are Variables in NNX: which one an expression names, and its value."""

from __future__ import annotations

import ast
from collections.abc import Callable

from t2j_lsp.translate.inference.named_layers import RENAMED
from t2j_lsp.translate.rule.definitions import Instance, layer_names
from t2j_lsp.translate.rule.facts import UNKNOWN, AnyModule, Fact, Qual, Tensor
from t2j_lsp.translate.rule.layer import LAYERS, LayerRule, flax_names
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.pieces import ARGUMENT, ATOM, Piece, bracket
from t2j_lsp.translate.rule.record import REGISTRY
from t2j_lsp.translate.rule.tensors import behind_data

from .context import Context
from .handlers import ExpressionRenderer
from .properties import given_by, property_of
from .wrapped_layers import INSIDE, is_being_built, is_wrapped, shares_weight

_SECOND_NAME = (
    "a kernel in Flax's layout gets a second name, and what is read of it in PyTorch's layout is neither trained nor "
    "saved: read the layer's own where it is used"
)
_OF_VARIABLES = frozenset({"copy_from", "get_value", "raw_value", "ref", "replace", "set_value", "value", "var_type"})


def is_metadata(name: str) -> bool:
    """Whether a parameter's attribute is one that a program made up: neither PyTorch's nor a Variable's."""
    return name not in _OF_VARIABLES and name not in ("grad", "data") and f"torch.Tensor.{name}" not in REGISTRY.rules


class Variables:
    """The Variables that expressions name, and the layouts they have."""

    def __init__(self, context: Context, renderer: ExpressionRenderer) -> None:
        self.ctx = context
        self.renderer = renderer
        self.unsure: set[ast.expr] = set()
        """Attributes of modules that are marked and stay as they stand."""
        self._picks: set[tuple[int, str]] = set()
        self._picked: dict[ast.expr, str] = {}
        """Names that statements in front give to parameters which one of two kinds of modules may have."""

    def parameter(self, node: ast.expr, constant: bool = False) -> tuple[str, bool] | None:
        """The text of the Variable that a node names, and whether its layout is Flax's.

        With ``constant`` the layout does not matter, and a module of unknown class will do where it is an attribute: it
        was built by a class that was passed, which is a helper, and these answer to ``weight`` too.
        """
        node = behind_data(node)
        if node in self._picked:
            return self._picked[node], True
        fact = self.ctx.fact(node)
        if isinstance(node, ast.Name):
            return (node.id, fact.any_layout) if isinstance(fact, Tensor) and fact.variable else None
        if isinstance(node, ast.Subscript) and isinstance(fact, Tensor) and fact.variable and fact.any_layout:
            return self.renderer.render(node).text, True  # of a list or dict of parameters
        if not isinstance(node, ast.Attribute) or not isinstance(fact, Tensor) or not fact.variable:
            return None
        if (held := self._held(node)) is None:
            return None
        path, owner, name = held
        text = bracket(self.renderer.render(node.value), ATOM) + path
        if is_wrapped(owner):
            if name != "bias" and not (shares_weight(owner) and is_being_built(self.ctx)):
                return None
            text += f".{INSIDE}"
        forms = flax_names(owner, name)
        if forms:
            if len(forms) != 1:
                return self._either(node, text, layer_names(owner)) if constant and not path else None
            form = forms.pop()
            return f"{text}.{form}", form == "kernel"
        if isinstance(owner, AnyModule):
            answers = name not in RENAMED or isinstance(node.value, ast.Attribute)
            return (f"{text}.{name}", False) if constant and not owner.names and answers else None
        return f"{text}.{name}", False

    def _held(self, node: ast.Attribute) -> tuple[str, Fact, str] | None:
        """Where the parameter that an attribute reads is, behind properties; what has it, and under which name.

        None where a property gives more than an attribute, so that what it gives is no Variable.
        """
        path, owner, name = "", self.ctx.fact(node.value), node.attr
        while (info := property_of(owner, name)) is not None:
            if (given := given_by(info, self.ctx.inference)) is None:
                return None
            path, owner, name = path + given[0], given[1], given[2]
        return path, owner, name

    def refuses_second_name(self, node: ast.stmt, value: ast.expr, what: str) -> bool:
        """Whether a statement gives a layer's kernel another name, which is said then: what is read is no variable."""
        parameter = self.parameter(value) if isinstance(value, ast.Attribute) else None
        if parameter is None or not parameter[1]:
            return False
        self.ctx.report.gap(node, what, "unsure", _SECOND_NAME)
        return True

    def is_of_some_layer(self, node: ast.Attribute) -> bool:
        """Whether it is a parameter of a module whose class isn't known: ``m.bias`` of ``for m in model.modules()``."""
        fact, owner = self.ctx.fact(node), self.ctx.fact(node.value)
        return isinstance(fact, Tensor) and fact.variable and isinstance(owner, AnyModule)

    def _either(self, node: ast.Attribute, text: str, names: frozenset[str]) -> tuple[str, bool] | None:
        """The parameter of a module that may be of two kinds, ``kernel`` in one and ``weight`` in the other.

        A statement in front picks it; None where there is no place for one.
        """
        kinds: dict[str, set[str]] = {}
        for name in sorted(names & LAYERS.keys()):
            kinds.setdefault(LAYERS[name].attributes.get(node.attr, node.attr), set()).add(flax_class(name))
        statement = self.ctx.scope.statement
        if len(kinds) != 2 or statement is None or not statement.hoistable:
            return None
        first, second = sorted(kinds, key=lambda kind: kind == node.attr)
        bases = [self.renderer.need(base) for base in sorted(kinds[first])]
        classes = bases[0] if len(bases) == 1 else f"({', '.join(bases)})"
        taken = node.attr in self.ctx.names.of_source | self.ctx.names.reserved
        picked = self.ctx.names.fresh(node.attr) if taken else node.attr
        self._picked[node] = picked
        line = f"{picked} = {text}.{first} if isinstance({text}, {classes}) else {text}.{second}"
        block = self.ctx.source.block_of(statement.node)
        if (id(block), line) not in self._picks:
            self._picks.add((id(block), line))
            statement.before.append(line)
        return picked, True

    def may_change_kind(self, node: ast.expr) -> bool:
        """Whether nothing is known of a module's own variable: by ``.data`` it may get another shape or dtype."""
        fact = self.ctx.fact(node)
        owner = self.ctx.fact(node.value) if isinstance(node, ast.Attribute) else None
        own = isinstance(owner, Instance) and owner.cls.info.layer_base is None
        return own and isinstance(fact, Tensor) and fact.rank is None and fact.dtype is None

    def is_initialised(self, value: ast.expr) -> bool:
        """Whether it is what a function of torch.nn.init fills."""
        node: ast.expr | ast.keyword = value
        parent = self.ctx.source.parents.get(node)
        while isinstance(parent, ast.Attribute) and parent.attr == "data":
            node, parent = parent, self.ctx.source.parents.get(parent)
        if isinstance(parent, ast.keyword) and parent.arg == "tensor":
            node, parent = parent, self.ctx.source.parents.get(parent)
        if not isinstance(parent, ast.Call) or node not in (*parent.args[:1], *parent.keywords):
            return False
        fact = self.ctx.fact(parent.func)
        return isinstance(fact, Qual) and fact.name.startswith("torch.nn.init.")

    def read(self, node: ast.expr, piece: Piece, needed: bool = False) -> Piece:
        """The value of an expression that stands where an array is wanted, and None won't do where it is ``needed``."""
        fact = self.ctx.fact(node)
        if isinstance(node, ast.Attribute) and isinstance(fact, Tensor) and fact.variable:
            return self.value(node, piece, needed)
        return piece

    def value(self, node: ast.Attribute, piece: Piece, needed: bool = False) -> Piece:
        """The array in a Variable. An attribute that may be None is passed as it is, unless it is ``needed``."""
        owner = self.ctx.fact(node.value)
        if not needed and isinstance(owner, Instance) and owner.cls.info.may_be_none(node.attr):
            return piece
        if (
            not needed
            and isinstance(owner, Instance)
            and any(_may_lack(LAYERS[n], node.attr) for n in layer_names(owner) & LAYERS.keys())
        ):
            return (
                piece  # A class that derives from a layer may be built without its bias, from a loss without weights.
            )
        if node in self.unsure or piece.text.endswith((".T", "]", ")")):
            return piece
        return Piece(f"{bracket(piece, ATOM)}[...]")

    def in_flax_layout(self, target: ast.expr, piece: Piece) -> str | None:
        """A weight in PyTorch's layout as the kernel that ``target`` names; None if which layer's isn't known."""
        target = behind_data(target)
        if not isinstance(target, ast.Attribute):
            return None
        if layer_names(self._owner(target)) <= names_with(Trait.LINEAR):
            return f"{bracket(piece, ATOM)}.T"
        return f"{self.renderer.need('jnp')}.moveaxis({bracket(piece, ARGUMENT)}, (0, 1), (-1, -2))"

    def in_torch_layout(self, target: ast.expr, kernel: str) -> Piece:
        """The kernel that ``target`` names, as the weight in PyTorch's layout."""
        target = behind_data(target)
        owner = self._owner(target) if isinstance(target, ast.Attribute) else UNKNOWN
        if layer_names(owner) <= names_with(Trait.LINEAR):
            return Piece(f"{kernel}.T")
        return Piece(f"{self.renderer.need('jnp')}.moveaxis({kernel}[...], (-1, -2), (0, 1))")

    def _owner(self, node: ast.Attribute) -> Fact:
        held = self._held(node)
        return UNKNOWN if held is None else held[1]

    def with_part(self, target: ast.expr, kernel: str, part: Callable[[str], str]) -> str | None:
        """The statement that gives the kernel that ``target`` names another part, which PyTorch's layout says.

        ``part`` makes the new weight of the one in PyTorch's layout. None if which layer's it is isn't known.
        """
        turned = self.in_flax_layout(target, Piece(part(self.in_torch_layout(target, kernel).text), ATOM))
        return f"{kernel}[...] = {turned}" if turned is not None else None


def _may_lack(layer: LayerRule, name: str) -> bool:
    """Whether a layer can be built so that an attribute is None."""
    parameters = layer.signature.parameters or ()
    return name in layer.switches or any(p.name == name and p.default == "None" for p in parameters)


def flax_class(name: str) -> str:
    """The Flax class that stands for a layer in every form, its helper's included; the helper where there is none."""
    layer = LAYERS[name]
    return layer.flax or layer.base
