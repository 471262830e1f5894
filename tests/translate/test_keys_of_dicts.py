"""A loop over a dict gives its keys: what is asked of them is asked of texts, not of the tensors that it holds."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = "import torch\n\n\ndef renamed(sd: dict[str, torch.Tensor]):\n"

LOOPS = {
    "comprehension": "return [key.split('.') for key in sd]",
    "loop": "for key in sd:\n        print(key.split('.'))",
    "numbered": "for i, key in enumerate(sd):\n        print(i, key.split('.'))",
    "zipped": "for key, value in zip(sd, sd.values()):\n        print(key.split('.'), value.shape)",
    "sorted": "return [key.split('.') for key in sorted(sd)]",
    "listed": "return list(sd)[0].split('.')",
    "unpacked": "first, second = sd\n    return first.split('.')",
    "starred": "return [*sd][0].split('.')",
    "largest": "return max(sd).split('.')",
    "next": "return next(iter(sd)).split('.')",
    "keys": "return [key.split('.') for key in sd.keys()]",
    "copied": "return [key.split('.') for key in sd.copy()]",
}


@pytest.mark.parametrize("body", LOOPS.values(), ids=LOOPS)
def test_what_a_loop_over_a_dict_gives_is_a_key(body: str) -> None:
    converted = convert(f"{HEAD}    {body}\n").code

    assert ".split('.')" in converted
    assert "split(k" not in converted.replace(" ", "")


def test_the_values_of_a_dict_are_tensors() -> None:
    converted = convert(f"{HEAD}    return [v.t() for v in sd.values()] + [v.t() for v in list(sd.values())]\n")

    assert converted.code.count("v.T for v in") == 2


def test_a_loop_over_a_dict_of_modules_gives_names() -> None:
    converted = convert(
        "import torch\nfrom torch import nn\n\n\nclass Heads(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.heads = nn.ModuleDict({'a.0': nn.ReLU(), 'b.1': nn.Tanh()})\n\n"
        "    def forward(self, x):\n        return {key.split('.')[0]: self.heads[key](x) for key in self.heads}\n"
    )

    assert not converted.gaps
    assert "key.split('.')[0]" in converted.code
