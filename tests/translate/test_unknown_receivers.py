"""Attributes and methods of values of unknown type: a tensor's are converted, or said; none stays in silence."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = "import torch\nfrom torch import nn\n\n\n"


def asked(line: str) -> str:
    """A function that computes with tensors, and asks for something of a value that isn't one for sure."""
    return HEAD + f"def f(x, xs, y: torch.Tensor):\n    if {line}:\n        return y * 2\n    return torch.relu(y)\n"


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("x.is_cuda", 'jax.default_backend() == "gpu"'),
        ("xs[0].is_cuda", 'jax.default_backend() == "gpu"'),
        ("x.is_sparse", "if False"),
    ],
)
def test_what_only_tensors_have_is_asked_of_a_tensor(line: str, written: str) -> None:
    translation = convert(asked(line))
    assert written in translation.code and not translation.gaps
    assert any("is taken for a tensor" in note.reason for note in translation.findings)


@pytest.mark.parametrize("name", ["requires_grad", "grad_fn", "is_leaf"])
def test_what_arrays_do_not_have_is_a_gap(name: str) -> None:
    assert [gap.name for gap in convert(asked(f"x.{name}")).gaps] == [f"torch.Tensor.{name}"]


@pytest.mark.parametrize("text", [asked("x.is_ready"), "def f(x):\n    return x.is_cuda\n"])
def test_attributes_of_other_objects_stay(text: str) -> None:
    assert not convert(text).findings


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("y.device == x.grid.device", "return y * 2"),
        ("y.device != x.device", "return jax.nn.relu(y)"),
        ("x.device != y.device", "return jax.nn.relu(y)"),
    ],
)
def test_one_device_has_every_array(line: str, left: str) -> None:
    code = convert(asked(line)).code
    assert "device" not in code and code.partition("):\n")[2].strip().startswith(left)


def test_devices_of_what_is_not_known_may_not_be_compared_under_jit() -> None:
    notes = [f for f in convert(asked("x.device != xs.device")).findings if f.name == "torch.Tensor.device"]
    assert [note.code for note in notes] == ["value-needed"]


@pytest.mark.parametrize("line", ['x.device == "cuda"', "x.device == y.place", "x.place != xs.place"])
def test_other_comparisons_say_nothing_of_devices(line: str) -> None:
    assert not [f for f in convert(asked(line)).findings if f.code == "value-needed"]


def test_the_device_of_an_argument_among_many_goes_with_its_uses() -> None:
    text = "class Net(nn.Module):\n    def forward(self, *many):\n        at = many[-1].device\n"
    code = convert(HEAD + text + "        return torch.zeros(2).to(at) + many[0]\n").code
    assert "device" not in code and "return jnp.zeros(2) + many[0]" in code


SELECT = "def steps(x, dim):\n    return torch.stack([x.select(dim, t) for t in range(x.shape[dim])], dim)\n"


def test_the_step_of_an_unknown_value_is_a_gap() -> None:
    assert [gap.name for gap in convert(HEAD + SELECT).gaps] == ["torch.Tensor.select"]


def test_the_step_of_what_a_caller_gives_is_an_arrays() -> None:
    translation = convert(HEAD + SELECT + "\n\ndef last(y: torch.Tensor):\n    return steps(y, -1)\n")
    assert "jnp.take(x, t, axis=dim)" in translation.code and not translation.gaps


BASE = """
class Node(nn.Module):
    def charge(self, x, v):
        {body}

    def forward(self, x: torch.Tensor):
        v = self.charge(x, x)
        spike = (v >= 0.5).to(x)
        return spike.unsqueeze(0)


class Plain(Node):
    def charge(self, x, v):
        return x + v
"""


@pytest.mark.parametrize("body", ["raise NotImplementedError", '"""To be written."""', "pass", "..."])
def test_what_a_method_gives_that_derived_classes_write_is_not_known(body: str) -> None:
    translation = convert(HEAD + BASE.format(body=body))
    assert "(v >= 0.5).astype(x.dtype)" in translation.code and not translation.gaps


def test_what_a_method_gives_that_returns_nothing_is_none() -> None:
    body = "self.seen = x.shape"
    assert "(v >= 0.5).to(x)" in convert(HEAD + BASE.format(body=body)).code


@pytest.mark.parametrize(
    ("line", "written"), [("y.reshape(shape=(-1, 2))", "y.reshape((-1, 2))"), ("y.reshape(2, 1)",) * 2]
)
def test_a_keyword_that_only_tensors_take_tells_one(line: str, written: str) -> None:
    code = convert(HEAD + f"def f(x, make):\n    y = make(x)\n    return torch.relu({line})\n").code
    assert f"jax.nn.relu({written})" in code


@pytest.mark.parametrize(
    "target", ["nn.Module.register_parameter", "nn.Module.__call__", "torch.Tensor.size", "nn.Linear.forward"]
)
def test_a_method_that_is_put_into_a_class_of_pytorch_is_a_gap(target: str) -> None:
    translation = convert(HEAD + f"def patch(f):\n    {target} = f\n")
    assert len(translation.gaps) == 1 and f"    {target} = f" in translation.code


GIVEN = "def f(x: torch.Tensor, rng: torch.Generator):\n    {}\n    return torch.randn(x.shape, generator=rng)\n"


@pytest.mark.parametrize("line", ["state = rng.get_state()", "rng.set_state(x)", "rng.manual_seed(3)"])
def test_a_generator_that_is_given_has_no_state(line: str) -> None:
    translation = convert(HEAD + GIVEN.format(line))
    assert [gap.name for gap in translation.gaps] == [f"torch.Generator.{line.partition('rng.')[2].partition('(')[0]}"]


def test_a_generator_is_on_the_device_of_all() -> None:
    code = convert(HEAD + GIVEN.format("print(rng.device)")).code
    assert "print(jax.devices()[0])" in code


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("[x.to(input_device) for x in xs]", "[x for x in xs]"),
        ("{k: v.to(self_device) for k, v in xs.items()}", "{k: v for k, v in xs.items()}"),
        ("[x.to(args.device) for x in xs]", "[x for x in xs]"),
        ("[x.to(where) for x in xs]", "[x for x in xs]"),
    ],
)
def test_what_is_moved_to_a_device_is_there(line: str, written: str) -> None:
    text = f"{HEAD}def f(xs, input_device, self_device, args, where: torch.device):\n    return {line}\n"
    translation = convert(text)
    assert written in translation.code and not translation.gaps


def test_what_is_moved_or_cast_to_something_unknown_is_a_gap() -> None:
    text = f"{HEAD}def f(xs, where):\n    return [x.to(where) for x in xs]\n"
    assert [gap.name for gap in convert(text).gaps] == ["torch.Tensor.to"]
    own = f"{HEAD}class Unit:\n    def to(self, other):\n        return other\n\n\n"
    assert not convert(text.replace(HEAD, own)).gaps


@pytest.mark.parametrize(
    ("lines", "method"),
    [
        ("return (x == i).nonzero().squeeze(1)", "nonzero"),
        ("x = x.flatten()\n    return (x == i).nonzero()[0]", "nonzero"),
        ("keep = ~(x == i)\n    return keep.nonzero()", "nonzero"),
        ("y = x.flatten()\n    return y.repeat(i)", "repeat"),
        ("y = x[0] * i\n    return y.std()", "std"),
    ],
)
def test_what_is_computed_of_parameters_may_be_a_tensor_or_an_array(lines: str, method: str) -> None:
    gaps = convert("import numpy as np\n" + HEAD + f"def f(x, i):\n    {lines}\n").gaps
    assert [gap.name for gap in gaps] == [f"torch.Tensor.{method}"]


@pytest.mark.parametrize(
    "lines",
    [
        "groups = x.groupby('a')\n    return groups.size()",
        "with open(x) as f:\n        text = f.read()\n    return text.view()",
        "y = np.asarray(x)\n    return (y == i).nonzero()[0]",
    ],
)
def test_what_is_computed_of_others_objects_stays(lines: str) -> None:
    assert not convert("import numpy as np\n" + HEAD + f"def f(x, i):\n    {lines}\n").gaps
