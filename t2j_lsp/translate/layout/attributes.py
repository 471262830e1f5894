"""What the attributes of a file's modules hold, where each of their uses is a call of the module in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import ClassInfo, Instance
from t2j_lsp.translate.rule.facts import Layer

from .handed import HandedOn
from .uses import leaves_layout

Key = tuple[ClassInfo, str]
"""An attribute of the instances of a class."""


def module_classes(inference: Inference) -> Iterator[ClassInfo]:
    """The file's own classes of modules."""
    for info in inference.classes.values():
        if info.is_module and info.node in inference.classes:
            yield info


class ExchangedAttributes:
    """The attributes that other code than the constructor of their own class assigns: ``net.conv1 = nn.Conv2d(1, 8)``.

    What stands in them has PyTorch's axes.
    """

    def __init__(self, inference: Inference) -> None:
        self.of_any: set[str] = set()
        self.of_classes: set[Key] = set()
        self.all = False
        for node in inference.source.nodes:
            match node:
                case ast.Call(func=ast.Name(id="setattr"), args=[owned, ast.Constant(value=str() as name), _]):
                    if not self._is_own(inference, owned):
                        self.of_any.add(name)
                case ast.Call(func=ast.Name(id="setattr"), args=[owned, _, _]):
                    self.all |= not self._is_own(inference, owned)
            if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Store):
                continue
            owner = inference.facts.get(node.value)
            if not isinstance(owner, Instance):
                self.of_any.add(node.attr)
            elif not self._is_own(inference, node.value):
                self.of_classes |= {(info, node.attr) for info in owner.cls.info.ancestry()}

    def __contains__(self, key: object) -> bool:
        return isinstance(key, tuple) and (self.all or key[1] in self.of_any or key in self.of_classes)

    @staticmethod
    def _is_own(inference: Inference, owner: ast.expr) -> bool:
        """Whether it is the instance that the constructor around it makes."""
        parents, fact = inference.source.parents, inference.facts.get(owner)
        function = symbols.nearest(ast.FunctionDef, owner, parents)
        own = function is not None and function.name == "__init__"
        return own and isinstance(fact, Instance) and function is not None and parents[function] is fact.cls.info.node


def called_attributes(inference: Inference, handed: HandedOn) -> Iterator[tuple[Key, list[ast.expr]]]:
    """What constructors assign to attributes of which every use in the file is a call with one argument."""
    exchanged = ExchangedAttributes(inference)
    for info in module_classes(inference):
        init = info.methods.get("__init__")
        held: dict[str, list[ast.expr]] = {}
        if init is None or info.layer_base is not None:
            continue
        for node in symbols.walk(init.node):
            match node:
                case (
                    ast.Assign(targets=[ast.Attribute() as target], value=value)
                    | ast.AnnAssign(target=ast.Attribute() as target, value=ast.expr() as value)
                ) if isinstance(inference.facts.get(target.value), Instance):
                    held.setdefault(target.attr, []).append(value)
        for name, values in held.items():
            given = [handed.modules(init, one.id) if isinstance(one, ast.Name) else [one] for one in values]
            values = [one for some in given for one in some or []]
            known = values and None not in given and (info, name) not in exchanged
            if known and _only_called(inference, info, name):
                yield (info, name), values


def _only_called(inference: Inference, info: ClassInfo, name: str) -> bool:
    """Whether the attribute is used, and every use of it in the file is ``self.name(x)`` in this class."""
    reads = inference.attribute_reads
    if (None, name) in reads or of_foreign_base(info, name):
        return False
    used = False
    for node in reads.get((info, name), ()):
        owner = inference.facts[node.value]
        if not isinstance(owner, Instance) or owner.cls.info is not info:
            return False
        if leaves_layout(node, inference):
            continue
        call = inference.source.parents.get(node)
        if not isinstance(call, ast.Call) or call.func is not node or len(call.args) != 1 or call.keywords:
            return False
        if isinstance(call.args[0], ast.Starred):
            return False
        used = True
    return used


def of_foreign_base(info: ClassInfo, name: str) -> bool:
    """Whether a base of a class stands in another file and has to do with the attribute."""
    bases = (base for base in info.ancestry()[1:] if base.external)
    return any(isinstance(n, ast.Attribute) and n.attr == name for base in bases for n in symbols.walk(base.node))


def makers_of_layers(inference: Inference) -> dict[ast.Call, set[ast.Call]]:
    """By the constructor call of a layer, the other calls that give it."""
    makers: dict[ast.Call, set[ast.Call]] = {}
    for node, fact in inference.facts.items():
        if isinstance(node, ast.Call) and isinstance(fact, Layer) and fact.node is not None and fact.node is not node:
            makers.setdefault(fact.node, set()).add(node)
    return makers
