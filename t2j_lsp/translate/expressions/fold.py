"""Conditions whose value is known: no TorchScript, no old PyTorch, no tracing, one device, all parameters trained."""

from __future__ import annotations

import ast
from collections.abc import Callable

from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.forward_pass import UnknownParameter, dotted
from t2j_lsp.translate.inference.versions import of_version
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact, Object, Qual, Tensor
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import PLATFORMS, Trait, names_with
from t2j_lsp.translate.rule.names import canonical, is_torch
from t2j_lsp.translate.rule.record import REGISTRY

_GENERATOR = Object("generator")


def _has_rule(owner: ast.expr, name: str, inference: Inference) -> bool | None:
    """``hasattr(F, "scaled_dot_product_attention")`` asks for PyTorch's version: a name that rules know is there.

    So is one that they refuse, and a module that holds such names: ``hasattr(torch, "compiler")``.
    """
    fact = inference.fact(owner)
    if not isinstance(fact, Qual) or not is_torch(fact.name):
        return None
    full = canonical(f"{fact.name}.{name}")
    if full in LAYERS or full in REGISTRY.rules or full in REGISTRY.prefixes:
        return True
    return True if any(known.startswith(f"{full}.") for known in (*REGISTRY.rules, *REGISTRY.prefixes)) else None


def _of_devices(node: ast.Compare, inference: Inference) -> bool | None:
    """``x.device == y.device`` of a tensor and another: traced arrays know none, and all have the same."""
    match node:
        case ast.Compare(
            left=ast.Attribute(attr="device", value=one),
            ops=[ast.Eq() | ast.NotEq() as operator],
            comparators=[ast.Attribute(attr="device", value=other)],
        ):
            owners = [inference.fact(one), inference.fact(other)]
            unknown = all(isinstance(f, Tensor | UnknownParameter) or f in (UNKNOWN, _GENERATOR) for f in owners)
            known = any(isinstance(fact, Tensor) for fact in owners)
            return isinstance(operator, ast.Eq) if known and unknown else None
    return None


def asked_platforms(node: ast.Compare, fact: Callable[[ast.AST], Fact]) -> tuple[ast.expr, list[str]] | None:
    """``x.device.type == "cuda"``, ``device.type in ("cuda", "mps")``: the device, and what JAX calls these platforms.

    So for the device's text, ``str(x.device) == "cpu"``, which is ``cpu:0`` in JAX.
    None for any other comparison, and where one of the names isn't known.
    """
    match node:
        case ast.Compare(left=asked, ops=[ast.Eq() | ast.NotEq()], comparators=[ast.Constant()]):
            given = node.comparators
        case ast.Compare(
            left=asked,
            ops=[ast.In() | ast.NotIn()],
            comparators=[ast.Tuple(elts=given) | ast.List(elts=given) | ast.Set(elts=given)],
        ):
            pass
        case _:
            return None
    match asked:
        case ast.Attribute(attr="type", value=device) | ast.Call(func=ast.Name(id="str"), args=[device], keywords=[]):
            pass
        case _:
            return None
    held = fact(device)
    names = [one.value if isinstance(one, ast.Constant) else None for one in given]
    if not isinstance(held, Object) or held.kind != "device" or not all(name in PLATFORMS for name in names):
        return None
    return device, [PLATFORMS[name] for name in names if isinstance(name, str) and PLATFORMS[name]]


def _asks_before_detaching(flag: ast.Attribute, inference: Inference) -> bool:
    """``t.detach() if t.requires_grad else t``: what has no gradient is the same without one."""
    asked, parents = dotted(flag.value), inference.source.parents
    test: ast.AST = flag
    around = parents.get(test)
    if isinstance(around, ast.BoolOp) and isinstance(around.op, ast.And):
        test, around = around, parents.get(around)
    match around:
        case ast.IfExp(body=detached, orelse=other) if around.test is test:
            pass
        case ast.If(body=[ast.Assign(targets=[other], value=detached)], orelse=[]) if around.test is test:
            pass
        case _:
            return False
    match detached:
        case ast.Call(func=ast.Attribute(value=owner, attr="detach"), args=[], keywords=[]):
            return bool(asked) and dotted(owner) == asked == dotted(other)
    return False


def fold(node: ast.expr, inference: Inference) -> bool | None:
    """The value of a condition if it is known whatever the inputs; None otherwise."""
    match node:
        case ast.Compare(
            left=ast.Constant(value=str() as name),
            ops=[ast.In() | ast.NotIn() as operator],
            comparators=[ast.Call(func=ast.Name(id="dir"), args=[owner], keywords=[])],
        ):
            known = _has_rule(owner, name, inference)
            return None if known is None else known == isinstance(operator, ast.In)
        case ast.Compare():
            asked = asked_platforms(node, inference.fact)
            if asked is not None and not asked[1]:  # no device of JAX's is one
                return isinstance(node.ops[0], ast.NotEq | ast.NotIn)
            return of_version(node, inference.fact) if (same := _of_devices(node, inference)) is None else same
        case ast.Call(func=ast.Name(id="hasattr"), args=[owner, ast.Constant(value=str() as name)]):
            return _has_rule(owner, name, inference)
        case ast.Call():
            fact = inference.fact(node.func)
            return False if isinstance(fact, Qual) and fact.name in names_with(Trait.FALSE) else None
        case ast.UnaryOp(op=ast.Not()):
            inner = fold(node.operand, inference)
            return None if inner is None else not inner
        case ast.BoolOp():
            values = [fold(value, inference) for value in node.values]
            stop = isinstance(node.op, ast.Or)
            if stop in values:
                return stop
            return None if None in values else not stop
        case ast.Attribute(attr="requires_grad", value=owner):
            if _asks_before_detaching(node, inference):
                return True
            if inference.freezes:
                return None
            fact = inference.fact(owner)
            return True if isinstance(fact, Tensor) and fact.any_layout else None
        case _:
            return None
