"""Functions with a gradient of their own: which have the short base, that of one array, and which the whole one."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

SOURCE = """import torch


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        {forward}

    @staticmethod
    def backward(ctx, grad):
        {backward}


print(Twice.apply(torch.ones(3)))
"""
KEEPS = "ctx.save_for_backward(x)\n        return x.clamp(min=0)"
OF_ONE = {
    "kept": (KEEPS, "x, = ctx.saved_tensors\n        return grad * x"),
    "nothing kept": ("return x.sign()", "return grad"),
    "a copy that is written to": (
        KEEPS,
        "x, = ctx.saved_tensors\n        g = grad.clone()\n        g[x < 0] = 0\n        return g",
    ),
    "two ways": (
        KEEPS,
        "x, = ctx.saved_tensors\n        if x.ndim > 1:\n            return grad\n        return -grad",
    ),
    "two kept": (
        "y = x.exp()\n        ctx.save_for_backward(x, y)\n        return y",
        "x, y = ctx.saved_tensors\n        return y * grad",
    ),
}
OF_MORE = {
    "a tuple": (KEEPS, "return (grad,)"),
    "a tuple by name": (KEEPS, "given = (grad,)\n        return given"),
    "what was kept, as a whole": (KEEPS, "given = ctx.saved_tensors\n        return given"),
    "none": (KEEPS, "return None"),
    "a number": ("ctx.scale = 2\n        return x.sign()", "return grad * ctx.scale"),
    "a question": (KEEPS, "return grad * 2 if ctx.needs_input_grad[0] else None"),
    "several": (KEEPS, "return grad.split(1)"),
    "its argument may be a number": ("return x * 2", "return grad * 2"),
    "two outputs": ("return x.sign(), x.exp()", "return grad * 2"),
}


def code_of(forward: str, backward: str) -> str:
    return convert(SOURCE.format(forward=forward, backward=backward)).code


@pytest.mark.parametrize("case", OF_ONE)
def test_a_function_of_one_array_has_a_short_base(case: str) -> None:
    code = code_of(*OF_ONE[case])
    assert "class Twice(Function):" in code and "def apply(cls, x):" in code
    assert "FunctionContext" not in code and "places" not in code


@pytest.mark.parametrize("case", OF_MORE)
def test_any_other_has_the_whole_one(case: str) -> None:
    code = code_of(*OF_MORE[case])
    assert "def apply(cls, *given):" in code or "class Twice(torch.autograd.Function)" in code


def test_one_that_takes_more_keeps_the_whole_base_for_all() -> None:
    source = SOURCE.format(forward=KEEPS, backward="return grad")
    other = source[source.index("class Twice") : source.index("print")].replace("Twice", "Other")
    other = other.replace("(ctx, x)", "(ctx, x, y)").replace("return grad", "return grad, grad")
    code = convert(source.replace("print(", f"{other}print(Other, ")).code
    assert "def apply(cls, *given):" in code
