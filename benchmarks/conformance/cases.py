"""Source text of the samples in PyTorch's operator database, as function, method, in place, operator and with ``out=``.

A **case** is one spelling of one sample, a function of its tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from tests.rules.samples import operators, seed, seeded
from tests.rules.spellings import Case, NoLiteral, literal

DTYPES = {"float": torch.float64, "int": torch.int64, "bool": torch.bool}
SPELLINGS = ("function", "method", "in place", "operator", "out")

BINARY = {
    **{"add": "+", "sub": "-", "mul": "*", "div": "/", "true_divide": "/", "floor_divide": "//", "remainder": "%"},
    **{"pow": "**", "matmul": "@", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"},
    **{"bitwise_left_shift": "<<", "bitwise_right_shift": ">>"},
    **{"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="},
}
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
REFLECTED = {
    **{"__radd__": "+", "__rsub__": "-", "__rmul__": "*", "__rdiv__": "/", "__rmod__": "%", "__rpow__": "**"},
    **{"__rmatmul__": "@", "__rand__": "&", "__ror__": "|", "__rxor__": "^"},
}
UNARY = {"neg": "-{0}", "bitwise_not": "~{0}", "abs": "abs({0})"}
PROPERTIES = ("T", "H", "mT", "mH")

ARRANGED = {
    "where": (1, 0, 2),
    "einsum": (1, 0),
    "polygamma": (1, 0),
    "special.polygamma": (1, 0),
    "nn.functional.embedding": (1, 0),
    "nn.functional.embedding_bag": (1, 0),
}
"""Records whose samples have the function's arguments in another order, and what that is."""
IN_PLACE_ONLY = ("cauchy", "exponential", "geometric", "log_normal", "uniform", "normal.in_place")
"""Records of methods that fill a tensor, without a function of that name."""


@functools.cache
def records() -> dict[str, Any]:
    """PyTorch's operator records by full name: ``add``, ``linalg.svd``, ``std.unbiased``."""
    operators()
    from torch.testing._internal.common_methods_invocations import op_db

    return {op.full_name: op for op in op_db}


def resolved(root: Any, name: str) -> Any:
    """What a dotted name is in ``root``, None if it has no such name."""
    for part in name.split("."):
        root = getattr(root, part, None)
    return root


def is_public(op: Any) -> bool:
    """Whether users can call the operator: it has a documented kind of name."""
    name = op.name.removeprefix("torch.")
    if name in REFLECTED or name == "__getitem__" or name in PROPERTIES or op.full_name in IN_PLACE_ONLY:
        return True
    if name.startswith(("ops.", "jiterator")) or any(part.startswith("_") for part in name.split(".")):
        return False
    return callable(resolved(torch, name)) or callable(resolved(torch.Tensor, name))


def samples(op: Any, dtype: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Arguments of every sample of one dtype; none if the operator doesn't take it."""
    if not op.supports_dtype(DTYPES[dtype], "cpu"):
        return []
    seed(0)
    out = []
    for sample in seeded(op.sample_inputs_func(op, "cpu", DTYPES[dtype], False)):
        out.append(((sample.input, *sample.args), dict(sample.kwargs)))
    return out


def cases(op: Any, dtype: str, limit: int | None = None) -> tuple[list[Case], list[str]]:
    """Every sample in every spelling, and why samples have no text. At most ``limit`` samples, evenly spread."""
    every = samples(op, dtype)
    step = 1 if limit is None else max(1, -(-len(every) // limit))
    out: list[Case] = []
    textless: list[str] = []
    for index in range(0, len(every), step):
        args, kwargs = every[index]
        try:
            spelled = list(_spelled(op, args, kwargs))
        except NoLiteral as error:
            value = error.args[0]
            kind = str(value.layout) if isinstance(value, torch.Tensor) else type(value).__name__
            textless.append(f"sample {index} has no text: {kind}")
            continue
        for spelling, lines, tensors in spelled:
            name = f"case_{len(out)}"
            parameters = ", ".join(f"t{i}: torch.Tensor" for i in range(len(tensors)))
            body = "".join(f"    {line}\n" for line in lines)
            out.append(Case(spelling, f"def {name}({parameters}):\n{body}", tuple(tensors), index, name))
    return out, textless


def said(case: Case) -> Case:
    """The case with annotations that say what its tensors are, if one has no axes or elements, or no floats."""
    if all(t.numel() and t.ndim and t.is_floating_point() for t in case.tensors):
        return case
    annotated = ", ".join(f"t{i}: {annotation(t)}" for i, t in enumerate(case.tensors))
    _, _, body = case.text.partition("\n")
    return replace(case, text=f"def {case.name}({annotated}):\n{body}")


def annotation(tensor: torch.Tensor) -> str:
    """The type of a tensor in jaxtyping: ``Int64[torch.Tensor, "5 0"]``."""
    name = str(tensor.dtype).removeprefix("torch.").capitalize().replace("Uint", "UInt")
    name = {"Bfloat16": "BFloat16"}.get(name, name)
    return f'{name}[torch.Tensor, "{" ".join(map(str, tensor.shape))}"]'


Spelled = tuple[str, list[str], list[torch.Tensor]]


def _spelled(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Spelled]:
    name = op.name.removeprefix("torch.")
    tensors: list[torch.Tensor] = []
    texts = [literal(a, tensors) for a in args]
    keywords = [f"{k}={literal(v, tensors)}" for k, v in kwargs.items()]
    if name in PROPERTIES:
        yield "function", [f"return {texts[0]}.{name}"], tensors
        return
    if name == "__getitem__":
        yield "function", [f"return {texts[0]}[{texts[1]}]"], tensors
        return
    if name in REFLECTED:
        yield "function", [f"return {texts[1]} {REFLECTED[name]} {texts[0]}"], tensors
        return
    order = ARRANGED.get(name, range(len(texts)))
    arranged = [texts[i] for i in order if i < len(texts)] + texts[len(order) :]
    inside = ", ".join([*arranged, *keywords])
    function = f"torch.{name}"
    if callable(resolved(torch, name)) and op.full_name not in IN_PLACE_ONLY:
        yield "function", [f"return {function}({inside})"], tensors
        if op.supports_out:
            yield from _with_out(f"{function}({inside}", tensors)
    last = name.rpartition(".")[2]
    if isinstance(args[0], torch.Tensor) and name not in ARRANGED:
        rest = ", ".join([*texts[1:], *keywords])
        if callable(resolved(torch.Tensor, last)) and op.method_variant is not None:
            spelling = "method" if callable(resolved(torch, name)) else "function"
            yield spelling, [f"return {texts[0]}.{last}({rest})"], tensors
        if callable(getattr(torch.Tensor, f"{last}_", None)) and (op.inplace_variant or op.full_name in IN_PLACE_ONLY):
            yield "in place", [f"out = {texts[0]}.clone()", f"out.{last}_({rest})", "return out"], tensors
    yield from _as_operator(name, texts, keywords, tensors)


def _with_out(call: str, tensors: list[torch.Tensor]) -> Iterator[Spelled]:
    """The call into tensors of the result's shape and dtype, where PyTorch takes the call."""
    try:
        result = eval(f"{call})", {"torch": torch, **{f"t{i}": t for i, t in enumerate(tensors)}})
    except Exception:  # noqa: BLE001 - whatever PyTorch raises, it is no sample of out=
        return
    results = result if isinstance(result, tuple) else (result,)
    if not all(isinstance(t, torch.Tensor) and t.layout == torch.strided for t in results):
        return
    made = [f"torch.zeros({tuple(t.shape)}, dtype={t.dtype})" for t in results]
    names = [f"out{i}" for i in range(len(results))] if isinstance(result, tuple) else ["out"]
    out = f"({', '.join(names)})" if isinstance(result, tuple) else "out"
    lines = [f"{name} = {text}" for name, text in zip(names, made, strict=True)]
    yield "out", [*lines, f"{call}, out={out})", f"return {out}"], tensors


def _as_operator(name: str, texts: list[str], keywords: list[str], tensors: list[torch.Tensor]) -> Iterator[Spelled]:
    if keywords:
        return
    if name in UNARY and len(texts) == 1:
        yield "operator", [f"return {UNARY[name].format(texts[0])}"], tensors
    if name in BINARY and len(texts) == 2:
        symbol = BINARY[name]
        right = f"({texts[1]})" if texts[1].startswith("-") else texts[1]
        left = f"({texts[0]})" if texts[0].startswith("-") else texts[0]
        yield "operator", [f"return {left} {symbol} {right}"], tensors
        if texts[0].startswith("t") and symbol not in COMPARISONS:
            yield "operator", [f"out = {texts[0]}.clone()", f"out {symbol}= {right}", "return out"], tensors
