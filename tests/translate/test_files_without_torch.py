"""Files that compute with tensors of others and import nothing of PyTorch, and calls that only a tensor's can be."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

RESET = """\
def reset(v, spike, detach: bool):
    if detach:
        spike = spike.detach()
    return (1.0 - spike) * v
"""
STREAM = """\
import sys


def unwrap(stream):
    return stream.detach()


raw = unwrap(sys.stdout)
"""


def test_what_is_detached_and_computed_with_is_a_tensor() -> None:
    code = convert(RESET).code
    assert "spike = jax.lax.stop_gradient(spike)" in code
    assert convert(code).code == code


def test_streams_are_detached_too() -> None:
    assert convert(STREAM).code == STREAM


@pytest.mark.parametrize("read", ["h, w = images[0].size()[-2:]", "n, c, h, w = images[0].size()"])
def test_a_size_of_which_parts_are_taken_is_a_tensors(read: str) -> None:
    text = "import torch\n\n\ndef crop(images):\n    if not isinstance(images, list):\n        images = [images]\n"
    code = convert(f"{text}    {read}\n    return torch.is_tensor(images[0]), h, w\n").code
    assert read.replace(".size()", ".shape") in code


def test_a_size_that_is_handed_on_whole_stays() -> None:
    text = "import torch\n\n\ndef area(window):\n    return window.parent.size()\n"
    assert "window.parent.size()" in convert(text).code


def test_a_number_of_what_may_be_a_tensor_is_noted() -> None:
    text = (
        "import torch\n\n\nclass Metric(torch.nn.Module):\n    def forward(self, output):\n"
        "        return [float(output.detach() if torch.is_tensor(output) else output)]\n"
    )
    assert "value-needed" in {note.code for note in convert(text).notes}


@pytest.mark.parametrize("call", ["mean(dim=-1)", "max(dim=0)[0]", "sum(dim=1)"])
def test_an_axis_that_is_called_dim_is_a_tensors(call: str) -> None:
    """Of a file that imports nothing; xarray's axes have names."""
    code = convert(f"def score(x):\n    return x.{call}\n").code
    assert "axis=" in code and call not in code
    named = "def score(x):\n    return x.mean(dim='time')\n"
    assert convert(named).code == named


AUDIO = """\
import torchaudio


def peak(wav):
    return wav.abs().max()
"""


def test_a_library_of_pytorchs_alone_brings_tensors() -> None:
    code = convert(AUDIO).code
    assert "jnp" in code and "wav.abs()" not in code
    assert convert(AUDIO.replace("torchaudio", "pandas")).code == AUDIO.replace("torchaudio", "pandas")


@pytest.mark.parametrize("read", ["torchaudio.load(path)[0]", "torchvision.io.read_image(path)"])
def test_tensors_that_are_read_of_files_are_said(read: str) -> None:
    text = f"import torch, torchaudio, torchvision\n\n\ndef loud(path):\n    return torch.tanh({read})\n"
    (gap,) = convert(text).gaps
    assert "gives PyTorch's tensors" in gap.reason


def test_axes_that_are_permuted_are_a_tensors() -> None:
    text = (
        "def flat(x):\n    dims = (0, *range(x.ndim - 1, 0, -1))\n    return x.permute(dims).reshape(x.shape[0], -1)\n"
    )
    assert "x.transpose(dims).reshape(x.shape[0], -1)" in convert(text).code


def test_a_lambda_of_what_a_list_of_tensors_holds_computes_with_tensors() -> None:
    text = "import torch\n\n\ndef each(f, xs):\n    return [f(x) for x in xs]\n\n\n"
    code = convert(f"{text}def sizes(xs: list[torch.Tensor]):\n    return each(lambda t: t.abs(), xs)\n").code
    assert "each(lambda t: absolute(t), xs)" in code
