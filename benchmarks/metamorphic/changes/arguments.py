"""Arguments of torch's functions and layers: by place, by name, defaults spelled out."""

from __future__ import annotations

import random
from collections.abc import Callable

import libcst as cst

from benchmarks.metamorphic.change import change
from benchmarks.metamorphic.signatures import Parameter, parameters
from benchmarks.metamorphic.source import Source

Rewrite = Callable[[list[cst.Arg], tuple[Parameter, ...]], list[cst.Arg]]


class _Calls(cst.CSTTransformer):
    """Rewrites the arguments of calls of torch's functions and layers."""

    def __init__(self, source: Source, rewrite: Rewrite) -> None:
        self.source = source
        self.rewrite = rewrite

    def visit_FormattedString(self, node: cst.FormattedString) -> bool:
        """Calls in f-strings stay: before Python 3.12, defaults there can't have the string's quotes."""
        return False

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        full = self.source.dotted(original_node.func)
        known = parameters(full) if full is not None else ()
        if not known or any(a.star for a in original_node.args) or not original_node.args:
            return updated_node
        return updated_node.with_changes(args=self.rewrite(list(updated_node.args), known))


def _by_place(args: list[cst.Arg], known: tuple[Parameter, ...]) -> list[cst.Arg]:
    """Keywords that continue the arguments before them lose their names."""
    out: list[cst.Arg] = []
    for index, argument in enumerate(args):
        if argument.keyword is not None:
            if index != len(out) or index >= len(known) or known[index].name != argument.keyword.value:
                return [*out, *args[index:]]
            argument = argument.with_changes(keyword=None, equal=cst.MaybeSentinel.DEFAULT)
        out.append(argument)
    return out


def _by_name(args: list[cst.Arg], known: tuple[Parameter, ...]) -> list[cst.Arg]:
    """Arguments by place get their names."""
    if sum(a.keyword is None for a in args) > len(known):
        return args
    return [_named(a, known[i].name) if a.keyword is None else a for i, a in enumerate(args)]


def _named(argument: cst.Arg, name: str) -> cst.Arg:
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return argument.with_changes(keyword=cst.Name(name), equal=equal)


def _explicit(args: list[cst.Arg], known: tuple[Parameter, ...]) -> list[cst.Arg]:
    """Parameters that are not given get their defaults."""
    given = {a.keyword.value for a in args if a.keyword is not None}
    given |= {p.name for p in known[: sum(a.keyword is None for a in args)]}
    more = [p for p in known if p.name not in given and p.default is not None and p.name[0] != "_"]
    added = [_named(cst.Arg(cst.parse_expression(p.default or "")), p.name) for p in more]
    return [*args, *added]


@change("keywords to positions")
def keywords_to_positions(source: Source, rng: random.Random) -> cst.Module:
    """torch.cat(tensors, 1) for torch.cat(tensors, dim=1)."""
    return source.module.visit(_Calls(source, _by_place))


@change("positions to keywords")
def positions_to_keywords(source: Source, rng: random.Random) -> cst.Module:
    """nn.Linear(in_features=3, out_features=4) for nn.Linear(3, 4)."""
    return source.module.visit(_Calls(source, _by_name))


@change("defaults spelled out")
def defaults_spelled_out(source: Source, rng: random.Random) -> cst.Module:
    """Every default of a layer or function of torch given as an argument."""
    return source.module.visit(_Calls(source, _explicit))
