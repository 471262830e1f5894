"""Every spelling of a sample call that a rule's names and signatures allow, each as a function of its tensors."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from t2j_lsp.translate.rule.record import Rule, Signature

from .samples import Sample


class NoLiteral(Exception):
    """An argument that can't be spelled in source text."""


@dataclass
class Case:
    """One spelling of one call."""

    spelling: str
    text: str
    """The function's source."""
    tensors: tuple[torch.Tensor, ...]
    sample: int
    name: str = ""


def cases(rule: Rule, samples: list[Sample]) -> list[Case]:
    """Every sample in every spelling that the rule's names and signatures allow."""
    out: list[Case] = []
    for index, sample in enumerate(samples):
        try:
            spelled = list(_spellings(rule, sample))
        except NoLiteral:
            continue
        for spelling, (prepare, expression, tensors) in spelled:
            name = f"case_{len(out)}"
            parameters = ", ".join(f"t{i}: torch.Tensor" for i in range(len(tensors)))
            body = "".join(f"    {line}\n" for line in [*prepare, f"return {expression}"])
            out.append(Case(spelling, f"def {name}({parameters}):\n{body}", tuple(tensors), index, name))
    return out


Spelled = tuple[list[str], str, list[torch.Tensor]]


def _spellings(rule: Rule, sample: Sample) -> Iterator[tuple[str, Spelled]]:
    for name in rule.names():
        method = name.startswith("torch.Tensor.")
        for signature in rule.signatures:
            bound = _bind(signature, sample)
            if bound is None:
                continue
            if signature.parameters is None:
                if method:
                    tensors: list[torch.Tensor] = []
                    text = f"{literal(sample.args[0], tensors)}.{name.rpartition('.')[2]}"
                    yield f"{rule.name} positional", ([], text, tensors)
                continue
            if method and name.endswith("_"):
                yield f"{rule.name} positional", _in_place(name[:-1], signature, bound)
                continue
            starred = any(p.kind == "star" and bound.get(p.name) for p in signature.parameters)
            for style in ("positional", "keyword", "shuffled"):
                if style != "positional" and (starred or name != rule.name and not (method and rule.method)):
                    continue
                yield f"{name} {style}", _call(name, signature, bound, style, method)
            if method and rule.method and callable(_torch(name + "_")) and _floating(sample):
                yield "in place", _in_place(name, signature, bound)


def _floating(sample: Sample) -> bool:
    return isinstance(sample.args[0], torch.Tensor) and sample.args[0].is_floating_point()


def _torch(name: str) -> Any:
    value: Any = torch
    for part in name.split(".")[1:]:
        value = getattr(value, part, None)
    return value


def _bind(signature: Signature, sample: Sample) -> dict[str, Any] | None:
    """The sample's arguments by parameter; None if they don't fit."""
    if signature.parameters is None:
        return {"self": sample.args[0]} if len(sample.args) == 1 and not sample.kwargs else None
    bound: dict[str, Any] = {}
    queue = list(sample.args)
    for parameter in signature.parameters:
        if parameter.kind == "star":
            bound[parameter.name] = tuple(queue)
            queue = []
        elif parameter.kind == "normal" and queue:
            bound[parameter.name] = queue.pop(0)
    known = {p.name for p in signature.parameters if p.kind in ("normal", "keyword")}
    if queue or set(sample.kwargs) - known or set(sample.kwargs) & set(bound):
        return None
    bound |= sample.kwargs
    required = {p.name for p in signature.parameters if p.default is None and p.kind in ("normal", "keyword")}
    return bound if required <= set(bound) else None


def _call(name: str, signature: Signature, bound: dict[str, Any], style: str, method: bool) -> Spelled:
    tensors: list[torch.Tensor] = []
    positional: list[str] = []
    keywords: list[str] = []
    gap = False
    for index, parameter in enumerate(signature.parameters or ()):
        if parameter.name not in bound:
            gap = gap or parameter.kind == "normal"
            continue
        value = bound[parameter.name]
        if parameter.kind == "star":
            positional += [literal(item, tensors) for item in value]
        elif parameter.kind == "keyword" or gap or (style != "positional" and not (method and index == 0)):
            keywords.append(f"{parameter.name}={literal(value, tensors)}")
        else:
            positional.append(literal(value, tensors))
    if style == "shuffled":
        keywords.reverse()
    if method:
        receiver, *positional = positional
        return [], f"{receiver}.{name.rpartition('.')[2]}({', '.join(positional + keywords)})", tensors
    return [], f"{name}({', '.join(positional + keywords)})", tensors


def _in_place(name: str, signature: Signature, bound: dict[str, Any]) -> Spelled:
    _, text, tensors = _call(name, signature, bound, "positional", method=True)
    receiver, dot, rest = text.partition(f".{name.rpartition('.')[2]}(")
    return [f"out = {receiver}.clone()", f"out{dot[:-1]}_({rest}"], "out", tensors


def literal(value: Any, tensors: list[torch.Tensor]) -> str:
    """Source text of an argument; tensors become parameters of the case."""
    match value:
        case torch.Tensor():
            if value.layout != torch.strided or value.is_quantized or value.dtype in (torch.float16, torch.bfloat16):
                raise NoLiteral(value)
            tensors.append(value.detach())
            return f"t{len(tensors) - 1}"
        case float() if value != value or abs(value) == float("inf"):
            return f'float("{value}")'
        case None | bool() | int() | float() | complex() | str():
            return repr(value)
        case torch.dtype():
            return str(value)
        case torch.Size():
            return str(tuple(value))
        case list():
            return "[" + ", ".join(literal(item, tensors) for item in value) + "]"
        case tuple() if type(value) is tuple:
            return "(" + ", ".join(literal(item, tensors) for item in value) + ("," if len(value) == 1 else "") + ")"
        case slice():
            bounds = (literal(bound, tensors) for bound in (value.start, value.stop, value.step))
            return f"slice({', '.join(bounds)})"
        case types.EllipsisType():
            return "..."
        case torch.device():
            return f"torch.device({str(value)!r})"
        case torch.memory_format() | torch.layout():
            return str(value)
        case _:
            raise NoLiteral(value)
