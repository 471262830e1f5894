"""Signatures: the torch text of a rule as data."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property


class RuleError(Exception):
    """A rule table that contradicts itself."""


@dataclass(frozen=True)
class Parameter:
    """A parameter as PyTorch's signature has it."""

    name: str
    default: str | None = None
    """Source text of the default, None if the argument is required."""
    kind: str = "normal"
    """``normal``, ``star`` (``*size``), ``keyword`` (keyword only) or ``starstar``."""


@dataclass(frozen=True)
class Signature:
    """``torch.cat(tensors, dim=0)`` as data. ``parameters`` is None for an attribute or a plain value."""

    text: str
    name: str
    parameters: tuple[Parameter, ...] | None

    @cached_property
    def by_name(self) -> dict[str, Parameter]:
        return {p.name: p for p in self.parameters or ()}


def parse_signature(text: str) -> Signature:
    """Read a signature; raises RuleError if it is not one."""
    if "(" not in text:
        return Signature(text, text, None)
    name, _, rest = text.partition("(")
    try:
        arguments = ast.parse(f"def f({rest.strip()[:-1]}): pass").body[0].args  # type: ignore[attr-defined]
    except SyntaxError as error:
        raise RuleError(f"not a signature: {text!r}") from error
    out: list[Parameter] = []
    plain = arguments.posonlyargs + arguments.args
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    for argument, default in zip(plain, defaults, strict=True):
        out.append(Parameter(argument.arg, ast.unparse(default) if default else None))
    if arguments.vararg:
        out.append(Parameter(arguments.vararg.arg, None, "star"))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        out.append(Parameter(argument.arg, ast.unparse(default) if default else None, "keyword"))
    if arguments.kwarg:
        out.append(Parameter(arguments.kwarg.arg, None, "starstar"))
    return Signature(text, name.strip(), tuple(out))
