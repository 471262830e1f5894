"""What the installed torch says of its own signatures, from every place that states them.

Python functions have ``inspect.signature``. The rest is C: ``torch.overrides`` keeps a lambda for each, operators have
schemas, and docstrings begin with one signature for each overload. None of them is complete, so a rule's signature is
torch's if one of these sources states it.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import typing
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from t2j_lsp.translate.rule.record import RuleError, Signature, parse_signature

OMITTED = {"out", "names", "device", "dtype", "layout", "pin_memory", "requires_grad", "generator", "memory_format"}
OMITTED |= {"non_blocking", "copy", "sparse_grad"}
"""Parameters that a rule needn't list: the engine derives ``out``, the others say nothing about values."""

SAME_NAME = {"self": "input", "shape": "size", "sizes": "size", "repeats": "size", "dims": "size", "tensor1": "tensors"}
"""Names that torch's own sources use for one parameter."""


@dataclass(frozen=True)
class Stated:
    """One statement of a signature: parameters in order, each with its default's text (None: required)."""

    source: str
    parameters: tuple[tuple[str, str | None], ...]


def find(name: str) -> Any:
    """The torch object of a qualified name; raises AttributeError if torch has none."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            result: Any = importlib.import_module(".".join(parts[:end]))
        except ImportError:
            continue
        for part in parts[end:]:
            result = getattr(result, part)
        if end == len(parts) > 1:  # torch.nn.parallel.data_parallel is a module, and a function hides it
            result = getattr(importlib.import_module(".".join(parts[: end - 1])), parts[end - 1], result)
        return result
    raise AttributeError(name)


def statements(name: str) -> Iterator[Stated]:
    """Every signature that torch states for a qualified name."""
    result = find(name)
    target = result.__init__ if inspect.isclass(result) else result
    overloads = typing.get_overloads(target) if inspect.isfunction(target) else []
    named = [("inspect", target), ("overrides", _overrides().get(result)), *(("overload", one) for one in overloads)]
    for label, one in named:
        stated = _inspected(label, one, method=inspect.isclass(result)) if one is not None else None
        if stated is not None:
            yield stated
            if stated.parameters == (("args", None),):  # object's own constructor
                yield Stated(label, ())
    short = name.rpartition(".")[2]
    operator = {"torch.linalg": "linalg_", "torch.special": "special_", "torch.fft": "fft_"}.get(
        name.rpartition(".")[0], ""
    )
    for text in _schemas(operator + short):
        yield Stated("schema", tuple(_schema_parameters(text)))
    yield from _documented(result, short, name.startswith("torch.Tensor."))


@functools.cache
def _overrides() -> dict[Any, Any]:
    return dict(torch.overrides.get_testing_overrides())


def _inspected(label: str, function: Any, method: bool) -> Stated | None:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    kept = parameters[1:] if method else parameters
    names = [(p.name, None if p.default is p.empty else _text(p.default)) for p in kept if p.kind is not p.VAR_KEYWORD]
    return Stated(label, tuple(names))


def _text(value: Any) -> str:
    return getattr(value, "__name__", repr(value)) if callable(value) else repr(value)


@functools.cache
def _schemas(operator: str) -> tuple[str, ...]:
    return tuple(map(str, torch._C._jit_get_schemas_for_operator(f"aten::{operator}")))


def _schema_parameters(schema: str) -> Iterator[tuple[str, str | None]]:
    inside = schema[schema.index("(") + 1 : schema.rindex(") -> ")]
    for part in _split(inside):
        name, equals, default = part.rpartition(" ")[2].partition("=")
        if name != "*":
            yield name, default if equals else None


def _documented(value: Any, short: str, method: bool) -> Iterator[Stated]:
    """Signatures in a docstring: its first lines and its ``.. function::`` directives."""
    for line in (inspect.getdoc(value) or "").splitlines():
        match = re.match(
            rf"(?:\.\. (?:function|method|class):: *|class )?(?:[\w.]+\.)?{re.escape(short)}\((.*)\)", line.strip()
        )
        if match is None:
            continue
        inside = re.sub(r"\[,", ",", match[1]).replace("]", "") if "[," in match[1] else match[1]
        try:
            parsed = parse_signature(f"f({_valid(inside)})")
        except RuleError:
            continue
        parameters = tuple((p.name, p.default) for p in parsed.parameters or () if p.kind != "starstar")
        yield Stated("doc", (("input", None), *parameters) if method else parameters)


def _valid(text: str) -> str:
    """Make a documented signature valid Python: a second ``*`` goes, ``from`` is ``from_``."""
    parts = _split(text)
    if any(re.match(r"\*\w", p) for p in parts):
        parts = [p for p in parts if p != "*"]
    parts = [re.sub(r"^from\b", "from_", re.sub(r"^(?:Tensor|int|float|bool)(?:\[\])? ", "", p)) for p in parts]
    parts = [re.sub(r"^(\**\w+)\s*(?:\([^)]*\)|:[^=]*)", r"\1", p) for p in parts]
    return ", ".join(p for p in parts if p != "/")


def _split(text: str) -> list[str]:
    """Split at the commas outside brackets."""
    parts, depth, last = [], 0, ""
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append(last.strip())
            last = ""
        else:
            last += character
    return [p for p in [*parts, last.strip()] if p]


def _same(rule_default: str | None, torch_default: str | None) -> bool:
    """Whether two default texts mean one value, or the parameter is required in both."""
    if torch_default is None or rule_default is None:
        return torch_default is rule_default
    return _value(rule_default) == _value(torch_default)


def _value(text: str) -> Any:
    text = re.sub(r"^torch\.(?:nn\.functional\.)?(?=\w+$)", "", text.strip())
    text = {"long": "int64", "Mean": "'mean'", "<factory>": "None"}.get(text, text)
    try:
        value = eval(text, {"inf": float("inf"), "__builtins__": {"True": True, "False": False, "None": None}})
    except (NameError, SyntaxError):
        return text
    return tuple(value) if isinstance(value, list) else value


def disagreement(signature: Signature, without: Collection[str] = ()) -> str | None:
    """Why no source of torch states this signature, or None if one does. Parameters in ``without`` may be left out."""
    tried: list[str] = []
    for stated in statements(signature.name):
        why = _differs(signature, stated, without)
        if why is None:
            return None
        tried.append(f"{stated.source}: {why}")
    return "; ".join(dict.fromkeys(tried)) or "torch states no signature"


def _differs(signature: Signature, stated: Stated, without: Collection[str]) -> str | None:
    parameters = signature.parameters or ()
    jax_side = [
        (_name(p.name), p.default) for p in parameters if p.kind in ("normal", "star") and p.name not in OMITTED
    ]
    keywords = [(_name(p.name), p.default) for p in parameters if p.kind == "keyword" and p.name not in OMITTED]
    torch_side = [(_name(n), d) for n, d in stated.parameters if n not in OMITTED]
    positions = {name: index for index, (name, _) in enumerate(torch_side)}
    order = [name for name, _ in jax_side]
    if order != [name for name, _ in torch_side][: len(order)]:
        return f"{[n for n, _ in jax_side]} is not {[n for n, _ in torch_side]}"
    for name, default in [*jax_side, *keywords]:
        if name not in positions:
            return f"no parameter {name}"
        if not _same(default, torch_side[positions[name]][1]):
            return f"{name}={default} is {torch_side[positions[name]][1]}"
    missing = [n for n, _ in torch_side if n not in {m for m, _ in [*jax_side, *keywords]} and n not in without]
    return f"lacks {missing}" if missing else None


def _name(name: str) -> str:
    name = name.lstrip("*")
    return SAME_NAME.get(name, name)
