"""Whole numbers that JAX must know when it compiles are stated, for all functions whose schemas have some."""

from __future__ import annotations

import re

import pytest
import torch

from t2j_lsp.api import convert
from t2j_lsp.plugins import load_rules
from t2j_lsp.translate.rule.library import is_size, is_whole_number
from t2j_lsp.translate.rule.record import REGISTRY

load_rules()

WITHOUT = {
    "index": "an index may be an array",
    "start": "as index",
    "end": "as index",
    "shifts": "an array in jnp.roll, too",
    "padding_idx": "compared with the indices",
    "ignore_index": "compared with the labels",
    "blank": "compared with the labels",
    "fill_value": "a value",
    "high": "a bound of values",
    "low": "a bound of values",
    "to": "a bound of values",
    "correction": "computed with",
    "divisor_override": "computed with",
    "p": "computed with",
    "seed": "makes a key",
    "storage_offset": "has no rule but a refusal",
    "source": "an axis",
    "destination": "an axis",
    "axis0": "an axis",
    "axis1": "an axis",
    "start_dim": "an axis",
    "end_dim": "an axis",
    "mode": "chosen by a text",
    "padding_mode": "chosen by a text",
    "interpolation_mode": "chosen by a text",
    "reduction": "chosen by a text",
    "dtype": "no number",
    "layout": "no number",
    "memory_format": "no number",
    "device": "no number",
}
"""Parameters that schemas call whole numbers, and that JAX need not know, or that are no sizes."""
RARE = {
    "N", "C", "HxW", "group", "ind", "r", "edge_order", "compute_mode", "num_groups", "physical_layout", "type1",
    "type2", "from_", "step", "n", "k", "diagonal", "pad", "num_samples", "dims",
}  # fmt: skip
"""Those that mean something else from function to function: each function's own are stated, or have no example yet."""


def whole_numbers() -> list[tuple[str, str]]:
    """Rules' functions with their parameters that every form in PyTorch's schemas calls a whole number, or several."""
    forms: dict[str, list[torch.FunctionSchema]] = {}
    for schema in torch._C._jit_get_all_schemas():
        forms.setdefault(schema.name, []).append(schema)
    out = []
    for rule in REGISTRY:
        parts = rule.name.split(".")
        inside = "".join(f"{p}_" for p in parts[1:-1] if p in ("fft", "linalg", "special"))
        for parameter in (rule.signatures[0].parameters or ()) if rule.emit is not None else ():
            of_name = forms.get(f"aten::{inside}{parts[-1]}", [])
            kinds = [str(a.type) for schema in of_name for a in schema.arguments if a.name == parameter.name]
            if kinds and all(re.fullmatch(r"(Optional\[)?(List\[)?int\]*", kind) for kind in kinds):
                out.append((rule.name, parameter.name))
    return out


def test_every_whole_number_is_stated_or_need_not_be_known() -> None:
    open_ = [
        f"{function}: {name}"
        for function, name in whole_numbers()
        if not name.startswith("dim") and name not in WITHOUT and name not in RARE
        if not is_size(name, function) and not is_whole_number(name, function)
    ]
    assert not open_


TEXT = """import torch
import torch.nn.functional as F


def taper(spectrum, bins: int):
    return torch.fft.irfft(spectrum, bins)


def f(x: torch.Tensor, lengths: torch.Tensor, known: int):
    n = {size}
    return {call}
"""


@pytest.mark.parametrize("size", ["lengths.max()", "2 ** torch.ceil(torch.log2(lengths)).int()"])
@pytest.mark.parametrize(
    "call",
    [
        "torch.fft.rfft(x, n)", "torch.fft.fftn(x, s=(n, 4))", "x.tril(n)", "F.avg_pool1d(x, n)", "torch.diff(x, n=n)",
        "F.max_pool2d(x, 2, stride=n)", "torch.diagonal(x, n)", "torch.bincount(x, minlength=n)", "taper(x, n)",
    ],
)  # fmt: skip
def test_what_an_array_says_is_noted(size: str, call: str) -> None:
    def notes(call: str) -> list[str]:
        findings = convert(TEXT.format(size=size, call=call)).findings
        return [f.reason for f in findings if f.code == "value-needed" and f.span.line > 8]

    assert len(notes(call)) == 1 and "under jit" in notes(call)[0]
    assert not notes(re.sub(r"\bn\b(?!=)", "known", call))
