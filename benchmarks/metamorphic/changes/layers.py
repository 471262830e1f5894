"""How layers are named, built and collected."""

from __future__ import annotations

import random
from collections.abc import Sequence

import libcst as cst
import torch

from benchmarks.metamorphic.change import change
from benchmarks.metamorphic.source import Source
from benchmarks.metamorphic.variables import Variables, with_imports

_ACTIVATIONS = ("ReLU", "GELU", "Tanh", "Sigmoid", "SiLU", "LeakyReLU", "Hardswish")


class _LayerCalls(cst.CSTTransformer):
    """Base of transforms of constructors of torch.nn."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def layer(self, node: cst.Call) -> str | None:
        """The class of torch.nn that a call makes one of, where it is named by its module (``nn.Linear``)."""
        home, _, name = (self.source.dotted(node.func) or "").rpartition(".")
        kind = getattr(torch.nn, name, None) if home == "torch.nn" and isinstance(node.func, cst.Attribute) else None
        return name if isinstance(kind, type) and issubclass(kind, torch.nn.Module) else None


class _Getattr(_LayerCalls):
    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        name = self.layer(original_node)
        if name is None or not isinstance(updated_node.func, cst.Attribute):
            return updated_node
        args = [cst.Arg(updated_node.func.value), cst.Arg(cst.SimpleString(f'"{name}"'))]
        return updated_node.with_changes(func=cst.Call(cst.Name("getattr"), args))


@change("layers by getattr")
def layers_by_getattr(source: Source, rng: random.Random) -> cst.Module:
    """getattr(nn, "Linear")(3, 4) for nn.Linear(3, 4)."""
    return source.module.visit(_Getattr(source))


class _Table(_LayerCalls):
    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        name = self.layer(original_node)
        if name not in _ACTIVATIONS or not isinstance(updated_node.func, cst.Attribute):
            return updated_node
        nn = cst.Module([]).code_for_node(updated_node.func.value)
        others = sorted({name, "ReLU", "Tanh"})
        table = ", ".join(f'"{one.lower()}": {nn}.{one}' for one in others)
        return updated_node.with_changes(func=cst.parse_expression(f'{{{table}}}["{name.lower()}"]'))


@change("layers by a table of names")
def layers_by_table(source: Source, rng: random.Random) -> cst.Module:
    """{"relu": nn.ReLU, "tanh": nn.Tanh}["relu"]() for nn.ReLU()."""
    return source.module.visit(_Table(source))


class _Settings(_LayerCalls):
    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        keywords = [a for a in updated_node.args if a.keyword is not None]
        if self.layer(original_node) is None or not keywords or any(a.star for a in updated_node.args):
            return updated_node
        first = [a for a in updated_node.args if a.keyword is None]
        last = keywords[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        table = cst.Call(cst.Name("dict"), [*keywords[:-1], last])
        return updated_node.with_changes(args=[*first, cst.Arg(table, star="**")])


@change("settings in a dict")
def settings_in_a_dict(source: Source, rng: random.Random) -> cst.Module:
    """nn.Conv2d(3, 4, **dict(kernel_size=3)) for nn.Conv2d(3, 4, kernel_size=3)."""
    return source.module.visit(_Settings(source))


class _Constants(_LayerCalls):
    """Numbers among a layer's arguments become constants of the module."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.constants: dict[str, str] = {}

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        if self.layer(original_node) is None:
            return updated_node
        return updated_node.with_changes(args=[self._constant(a) for a in updated_node.args])

    def _constant(self, argument: cst.Arg) -> cst.Arg:
        if not isinstance(argument.value, cst.Integer) or not argument.value.value.isdecimal():
            return argument
        number = argument.value.value
        name = self.constants.setdefault(number, self.source.fresh(f"SIZE_{number}"))
        return argument.with_changes(value=cst.Name(name))


@change("numbers as constants")
def numbers_as_constants(source: Source, rng: random.Random) -> cst.Module:
    """SIZE_3 = 3 at the top, nn.Linear(SIZE_3, SIZE_4) below."""
    constants = _Constants(source)
    changed = source.module.visit(constants)
    return with_imports(changed, [f"{name} = {number}" for number, name in constants.constants.items()])


# --- containers -----------------------------------------------------------------------------------------------------


def _children(node: cst.Call) -> list[cst.BaseExpression] | None:
    """What a Sequential is given, where it is given layers one by one."""
    if len(node.args) < 2 or any(a.keyword is not None or a.star for a in node.args):
        return None
    return [a.value for a in node.args]


class _Sequential(_LayerCalls):
    def __init__(self, source: Source, form: str) -> None:
        super().__init__(source)
        self.form = form

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        children = _children(updated_node) if self.layer(original_node) == "Sequential" else None
        if children is None:
            return updated_node
        elements = [cst.Element(child) for child in children]
        if self.form == "list":
            return updated_node.with_changes(args=[cst.Arg(cst.List(elements), star="*")])
        pairs = [
            cst.Element(cst.Tuple([cst.Element(cst.SimpleString(f'"{i}"')), cst.Element(child)]))
            for i, child in enumerate(children)
        ]
        table = cst.Call(cst.Name(self.form), [cst.Arg(cst.List(pairs))])
        return updated_node.with_changes(args=[cst.Arg(table)])


@change("Sequential of a list")
def sequential_of_a_list(source: Source, rng: random.Random) -> cst.Module:
    """nn.Sequential(*[a, b]) for nn.Sequential(a, b)."""
    return source.module.visit(_Sequential(source, "list"))


@change("Sequential of an OrderedDict")
def sequential_of_a_dict(source: Source, rng: random.Random) -> cst.Module:
    """nn.Sequential(OrderedDict([("0", a), ("1", b)])) for nn.Sequential(a, b)."""
    if source.bound["OrderedDict"] and source.imports.get("OrderedDict") != "collections.OrderedDict":
        return source.module
    changed = source.module.visit(_Sequential(source, "OrderedDict"))
    if changed.deep_equals(source.module) or source.bound["OrderedDict"]:
        return changed
    return with_imports(changed, ["from collections import OrderedDict"])


class _Filled(_LayerCalls):
    """Containers that are made empty and filled by statements behind."""

    def __init__(self, source: Source, line: str) -> None:
        super().__init__(source)
        self.line = line

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.BaseStatement]:
        match original_node.body:
            case [cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute() as target)], value=cst.Call() as call)]:
                children = _children(call) if self.layer(call) == "Sequential" else None
                if children is None:
                    return updated_node
                code = cst.Module([]).code_for_node
                empty = updated_node.with_changes(
                    body=[original_node.body[0].with_changes(value=call.with_changes(args=[]))]
                )
                lines = [
                    cst.parse_statement(self.line.format(code(target), i, code(child)))
                    for i, child in enumerate(children)
                ]
                return cst.FlattenSentinel([empty, *lines])
        return updated_node


@change("Sequential by append")
def sequential_by_append(source: Source, rng: random.Random) -> cst.Module:
    """self.net = nn.Sequential() and self.net.append(a) for nn.Sequential(a, b)."""
    return source.module.visit(_Filled(source, "{0}.append({2})"))


@change("Sequential by add_module")
def sequential_by_add_module(source: Source, rng: random.Random) -> cst.Module:
    """self.net = nn.Sequential() and self.net.add_module("0", a) for nn.Sequential(a, b)."""
    return source.module.visit(_Filled(source, '{0}.add_module("{1}", {2})'))


class _Loop(_LayerCalls):
    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.BaseStatement]:
        match original_node.body:
            case [
                cst.Assign(
                    targets=[cst.AssignTarget(target=cst.Attribute() as target)],
                    value=cst.Call(
                        args=[cst.Arg(value=cst.ListComp(elt=elt, for_in=loop), star="", keyword=None)]
                    ) as call,
                ) as made
            ] if self.layer(call) == "ModuleList" and self._is_simple(loop):
                code = cst.Module([]).code_for_node
                empty = updated_node.with_changes(body=[made.with_changes(value=call.with_changes(args=[]))])
                assert isinstance(loop.target, cst.Name)
                item = self.source.fresh(f"each_{loop.target.value}")
                made_one = elt.visit(_Renamed(loop.target.value, item))
                assert isinstance(made_one, cst.BaseExpression)
                text = f"for {item} in {code(loop.iter)}:\n    {code(target)}.append({code(made_one)})\n"
                return cst.FlattenSentinel([empty, cst.parse_statement(text)])
        return updated_node

    def _is_simple(self, loop: cst.CompFor) -> bool:
        """Whether a comprehension has one loop with one variable."""
        return not loop.ifs and loop.inner_for_in is None and isinstance(loop.target, cst.Name)


class _Renamed(Variables):
    def __init__(self, old: str, new: str) -> None:
        super().__init__()
        self.old, self.new = old, new

    def variable(self, node: cst.Name) -> cst.BaseExpression | None:
        return cst.Name(self.new) if node.value == self.old else None


@change("ModuleList filled in a loop")
def module_list_in_a_loop(source: Source, rng: random.Random) -> cst.Module:
    """A loop that appends for nn.ModuleList([... for ...])."""
    return source.module.visit(_Loop(source))


class _ByIndex(cst.CSTTransformer):
    """Loops over the modules of a list go over its indices."""

    def __init__(self, source: Source, lists: Sequence[str]) -> None:
        self.source = source
        self.lists = lists

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> cst.For:
        match original_node:
            case cst.For(
                target=cst.Name(value=name),
                iter=cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value=attribute)),
                body=cst.IndentedBlock(),
            ) if attribute in self.lists:
                index = self.source.fresh("index")
                first = cst.parse_statement(f"{name} = self.{attribute}[{index}]")
                assert isinstance(updated_node.body, cst.IndentedBlock)
                body = updated_node.body.with_changes(body=[first, *updated_node.body.body])
                loop = cst.parse_expression(f"range(len(self.{attribute}))")
                return updated_node.with_changes(target=cst.Name(index), iter=loop, body=body)
        return updated_node


@change("loops by index")
def loops_by_index(source: Source, rng: random.Random) -> cst.Module:
    """For i in range(len(self.layers)): layer = self.layers[i] for for layer in self.layers."""
    lists: list[str] = []

    class Find(_LayerCalls):
        def visit_Assign(self, node: cst.Assign) -> None:
            match node:
                case cst.Assign(
                    targets=[cst.AssignTarget(target=cst.Attribute(attr=cst.Name(value=name)))],
                    value=cst.Call() as call,
                ) if self.layer(call) == "ModuleList":
                    lists.append(name)

    source.module.visit(Find(source))
    return source.module.visit(_ByIndex(source, lists))
