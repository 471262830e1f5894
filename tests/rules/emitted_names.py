"""Checks emitted JAX code against the installed packages: every dotted name, method and keyword must exist."""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import inspect
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import einops
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.experimental.sparse import BCOO

from t2j_lsp.plugins import helper_sources
from t2j_lsp.rules.helpers import distributions, distributions_continuous, distributions_gamma, transforms

ROOTS = {
    "jax": jax,
    "jnp": jnp,
    "np": np,
    "nnx": nnx,
    "optax": optax,
    "einops": einops,
    "contextlib": contextlib,
    "functools": functools,
    "math": math,
}
ARRAY = type(jnp.zeros(1))
UPDATES = type(jnp.zeros(1).at[0])
"""What ``x.at[...]`` is."""


@functools.cache
def helpers() -> dict[str, Any]:
    """Every definition of rules/helpers, by name."""
    names: dict[str, Any] = {}
    for file in helper_sources():
        module = importlib.import_module(f"t2j_lsp.rules.helpers.{file.removesuffix('.py')}")
        names |= {n: v for n, v in vars(module).items() if getattr(v, "__module__", None) == module.__name__}
        names |= {n: v for n, v in vars(module).items() if n.isupper()}
    return names


def problems(text: str) -> Iterator[str]:
    """What is wrong with one emitted expression or statement."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        yield f"does not parse: {error.msg}"
        return
    for node in ast.walk(tree):
        try:
            if isinstance(node, ast.Attribute):
                resolve(node)
            elif isinstance(node, ast.Call):
                yield from _keywords(node)
        except AttributeError as error:
            yield str(error)


def resolve(node: ast.expr) -> Any:
    """The object that an expression names, None for a value. Raises AttributeError where a name does not exist."""
    match node:
        case ast.Name():
            return ROOTS.get(node.id, helpers().get(node.id, nnx.Rngs if node.id == "rngs" else None))
        case ast.Attribute(value=ast.Subscript(value=ast.Attribute(attr="at"))):
            return getattr(UPDATES, node.attr)
        case ast.Attribute():
            owner = resolve(node.value)
            if owner is nnx.Rngs or owner is _stream:
                return _drawn(node.attr)
            if owner is not None:
                return getattr(owner, node.attr)
            return _method(node)
        case _:
            return None


@functools.cache
def _drawn(name: str) -> Any:
    """``rngs.normal`` and ``rngs.params.normal`` are jax.random.normal without its key; any other name is a stream."""
    return functools.partial(getattr(jax.random, name), None) if hasattr(nnx.RngStream, name) else _stream


def _stream() -> jax.Array:
    raise NotImplementedError


def _method(node: ast.Attribute) -> Any:
    """A method of an array. What a call or a name gives may also be a dtype, a device or a tuple."""
    for kind in (jax.Array, ARRAY):
        result = getattr(kind, node.attr, None)
        if result is not None:
            return result if callable(result) else None
    others = (*OBJECTS, nnx.Variable, nnx.Module, np.finfo, np.dtype, jax.Device, str, dict)
    if any(hasattr(other, node.attr) for other in others) or node.attr in RESULT_FIELDS:
        return None
    raise AttributeError(f"an array has no attribute {node.attr!r}")


class SummaryWriter:
    """What the output uses of the writer of tensorboardX, which need not be installed."""

    logdir = ""

    def add_scalar(
        self, tag, scalar_value, global_step=None, walltime=None, display_name="", summary_description=""
    ) -> None: ...  # type: ignore[no-untyped-def]

    def add_hparams(self, hparam_dict, metric_dict, name=None, global_step=None) -> None: ...  # type: ignore[no-untyped-def]


OBJECTS = (
    SummaryWriter(),
    distributions.Normal(0.0, 1.0),
    distributions_continuous.Exponential(1.0),
    distributions_continuous.Uniform(0.0, 1.0),
    distributions_gamma.Gamma(1.0, 1.0),
    transforms.Transform(),
    BCOO.fromdense(np.eye(2)),
)
"""What has methods and attributes of its own."""
RESULT_FIELDS = {"values", "indices", "kernel", "bias", "deterministic", "mean", "var", "eigenvalues", "eigenvectors"}
"""Fields of what helpers and jnp.linalg return, and of modules."""


@functools.cache
def signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _keywords(node: ast.Call) -> Iterator[str]:
    function = resolve(node.func)
    stated = signature(function) if callable(function) else None
    if stated is None or any(p.kind is p.VAR_KEYWORD for p in stated.parameters.values()):
        return
    for keyword in node.keywords:
        if keyword.arg is not None and keyword.arg not in stated.parameters:
            yield f"{ast.unparse(node.func)} has no keyword {keyword.arg!r}"
    positional = [p for p in stated.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    bound = isinstance(function, functools.partial) or ast.unparse(node.func).startswith(("jnp.", "jax.", "np."))
    most = len(positional) - (not bound and "self" in stated.parameters)
    some = any(p.kind is p.VAR_POSITIONAL for p in stated.parameters.values())
    if not some and len(node.args) > most and not any(isinstance(a, ast.Starred) for a in node.args):
        yield f"{ast.unparse(node.func)} takes {most} positional arguments, not {len(node.args)}"


def optional_defaults(template: str) -> Iterator[tuple[str, str, Any]]:
    """For each ``keyword={hole?}`` of a template: the hole, the keyword, and its default in JAX."""
    holes: dict[str, str] = {}

    def place(match: re.Match[str]) -> str:
        if match[1] == "rngs":
            return "rngs"
        name = f"_{len(holes)}_"
        holes[name] = match[1] if match[2] else ""
        return name

    tree = ast.parse(re.sub(r"\{(\w+)(\?)?(?::\w+)?\}", place, template).strip(), mode="eval")
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function = resolve(node.func)
        stated = signature(function) if callable(function) else None
        for keyword in node.keywords:
            if (
                isinstance(keyword.value, ast.Name)
                and holes.get(keyword.value.id)
                and keyword.arg
                and stated is not None
            ):
                parameter = stated.parameters.get(keyword.arg)
                if parameter is not None:
                    yield holes[keyword.value.id], f"{ast.unparse(node.func)}({keyword.arg})", parameter.default
