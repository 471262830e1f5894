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


KEEPS_X = "ctx.save_for_backward(x)\n        return {}"
ALIKE = {
    "the same": (KEEPS_X.format("x.sign()"), "return grad"),
    "numbers beside it": (
        KEEPS_X.format("0.5 * (5 * x**3 - 3 * x)"),
        "x, = ctx.saved_tensors\n        return -2 * grad * x",
    ),
    "written to itself": OF_ONE["a copy that is written to"],
    "a mask": (KEEPS_X.format("x.sign()"), "x, = ctx.saved_tensors\n        return grad * (x.abs() < 1)"),
}
SUMMED = {
    "a sum": (KEEPS_X.format("x.sum()"), "x, = ctx.saved_tensors\n        return grad * torch.ones_like(x)"),
    "a name that gets one": (KEEPS_X.format("x.sign()"), "grad = grad.sum()\n        return grad"),
    "what it is given, summed first": (
        "ctx.save_for_backward(x)\n        x = x.sum()\n        return x.sign()",
        "return grad",
    ),
    "kept another": (
        "ctx.save_for_backward(x.sum())\n        return x.sign()",
        "s, = ctx.saved_tensors\n        return s",
    ),
    "another array": ("ctx.save_for_backward(x)\n        return x.sign() * SCALES", "return grad * SCALES"),
    "a turn": (KEEPS_X.format("x.t()"), "return grad.t()"),
    "a product of matrices": (KEEPS_X.format("x.sign()"), "x, = ctx.saved_tensors\n        return grad @ x"),
    "a part": (KEEPS_X.format("x.sign()"), "x, = ctx.saved_tensors\n        return grad * x[0]"),
    "where without values": (
        KEEPS_X.format("x.sign()"),
        "x, = ctx.saved_tensors\n        return torch.where(x)[0] * grad",
    ),
}


@pytest.mark.parametrize("case", ALIKE)
def test_a_gradient_of_the_shape_of_its_array_is_not_summed(case: str) -> None:
    code = code_of(*ALIKE[case])
    assert "context.backward(context, gradient).astype(x.dtype)" in code and "summed_like" not in code


@pytest.mark.parametrize("case", SUMMED)
def test_any_other_gradient_is_summed(case: str) -> None:
    code = code_of(*SUMMED[case])
    assert "summed_like" in code or "class Twice(torch.autograd.Function)" in code
