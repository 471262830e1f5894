"""What torchvision's transforms give outside of a data pipeline is an array where it is used as a tensor."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = """import torch
from torch import nn
from torchvision import transforms
from torchvision.models import ResNet18_Weights

preprocess = transforms.Compose([transforms.Resize(8), transforms.ToTensor()])
model = nn.Linear(8, 4)
"""
ARRAYS = {
    "a method": ("batch = preprocess(img).unsqueeze(0)", "batch = jnp.asarray(preprocess(img))[None]"),
    "a new axis": ("batch = preprocess(img)[None]", "batch = jnp.asarray(preprocess(img))[None]"),
    "a model": ("y = model(preprocess(img))", "y = model(jnp.asarray(preprocess(img)))"),
    "a stack": (
        "batch = torch.stack([preprocess(a), preprocess(b)])",
        "batch = jnp.stack([jnp.asarray(preprocess(a)), jnp.asarray(preprocess(b))])",
    ),
    "a variable": (
        "one = preprocess(img)\nbatch = one.unsqueeze(0)",
        "one = jnp.asarray(preprocess(img))\nbatch = one[None]",
    ),
    "weights": (
        "prepare = ResNet18_Weights.DEFAULT.transforms()\nbatch = prepare(img).unsqueeze(0)",
        "batch = jnp.asarray(prepare(img))[None]",
    ),
    "no variable": (
        "batch = transforms.ToTensor()(img).unsqueeze(0)",
        "batch = jnp.asarray(transforms.ToTensor()(img))[None]",
    ),
}
LEFT = {
    "an image": "small = transforms.Resize(8)(img)\nsmall.save('small.png')\n",
    "a data set": """class Images(torch.utils.data.Dataset):
    def __getitem__(self, i):
        return preprocess(self.images[i]).unsqueeze(0)
""",
    "an own data set": """class Images:
    def __getitem__(self, i):
        return preprocess(self.images[i])[None]
""",
    "another function": "def preprocess(x):\n    return x\n\n\nbatch = preprocess(img)[None]\n",
}


@pytest.mark.parametrize("name", ARRAYS)
def test_it_is_an_array_where_it_is_used_as_a_tensor(name: str) -> None:
    text, wanted = ARRAYS[name]
    translation = convert(HEAD + text + "\n")
    assert not translation.gaps
    assert wanted in translation.code


@pytest.mark.parametrize("name", LEFT)
def test_other_values_stay(name: str) -> None:
    assert "asarray" not in convert(HEAD + LEFT[name]).code


@pytest.mark.parametrize("call", ["preprocess(x)", "transforms.Normalize([0.5], [0.5])(x)"])
def test_one_of_an_array_is_said(call: str) -> None:
    translation = convert(f"{HEAD}x = torch.ones(1, 8, 8)\ny = {call}\n")
    assert [gap.code for gap in translation.gaps] == ["torch-only"]
    assert (
        f"# TODO(t2j): a transform of torchvision takes PyTorch's tensors and images, and no JAX arrays\ny = {call}"
        in (translation.code)
    )
