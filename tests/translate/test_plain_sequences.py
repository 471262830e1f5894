"""``transforms.Normalize`` is given the sequences that it makes tensors of; anything else that it is given is said."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = "import torch\nfrom torchvision import transforms\nfrom torchvision.transforms import v2\n\n\n"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("transforms.Normalize(mean=torch.tensor(mean), std=torch.as_tensor(std))", "(mean=mean, std=std)"),
        ("transforms.Normalize(torch.tensor([0.5]), torch.tensor([0.25]), True)", "([0.5], [0.25], True)"),
        ("v2.Normalize(torch.tensor(mean), std)", "(mean, std)"),
    ],
)
def test_sequences_are_handed_as_they_are(given: str, wanted: str) -> None:
    done = convert(f"{HEAD}def make(mean, std):\n    return transforms.Compose([{given}])\n")
    assert not done.gaps
    assert f"Normalize{wanted}" in done.code


@pytest.mark.parametrize(
    "given", ["torch.tensor(mean, dtype=torch.float64)", "torch.tensor(mean) / 255", "torch.tensor(std.mean(dim=0))"]
)
def test_what_is_computed_is_a_gap(given: str) -> None:
    text = f"{HEAD}def make(mean, std: torch.Tensor):\n    return transforms.Normalize({given}, [0.5])\n"
    assert convert(text).gaps
