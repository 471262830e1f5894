"""Gradients of one of the modules that an optimizer updates, clipped without those of the others."""

import pytest

from t2j_lsp.translate import translate

TEXT = """\
import torch
import torch.nn as nn

torch.manual_seed(0)
enc, dec, other = nn.Linear(4, 8), nn.Linear(8, 4), nn.Linear(4, 1)
opt = torch.optim.Adam(list(enc.parameters()) + list(dec.parameters()), lr=0.05)
x = torch.randn(8, 4)
for i in range(4):
    opt.zero_grad()
    loss = (dec(torch.tanh(enc(x))) - x + other(x)).pow(2).sum()
    loss.backward()
    {clips}
    opt.step()
    print(loss.item())
"""
NORM, VALUE = "nn.utils.clip_grad_norm_({}, 1.0)", "nn.utils.clip_grad_value_({}, 0.1)"


@pytest.mark.parametrize("clip", [NORM, VALUE])
def test_each_has_gradients_of_its_own(clip: str) -> None:
    done = translate(TEXT.format(clips=clip.format("dec.parameters()")))
    assert not done.gaps and "dec_grads = jax.tree.map(" in done.code and "enc_grads = " not in done.code
    assert "opt.update((enc, dec), (enc_grads, dec_grads))" in done.code


def test_each_may_be_clipped() -> None:
    clips = "\n    ".join(NORM.format(f"{name}.parameters()") for name in ("enc", "dec"))
    done = translate(TEXT.format(clips=clips))
    assert not done.gaps and all(f"{name}_grads = jax.tree.map(" in done.code for name in ("enc", "dec"))


@pytest.mark.parametrize(
    "clips",
    [
        NORM.format("other.parameters()"),
        NORM.format("[dec.weight]"),
        f"{NORM.format('list(enc.parameters()) + list(dec.parameters())')}\n    {NORM.format('dec.parameters()')}",
        "for p in dec.parameters():\n        p.grad.add_(0.1 * p.data)",
    ],
)
def test_what_else_is_clipped_is_said(clips: str) -> None:
    assert translate(TEXT.format(clips=clips)).gaps


def test_a_module_and_a_part_of_another_one_have_theirs_by_place() -> None:
    text = TEXT.format(clips="pass").replace("list(dec.parameters())", "list(other.b.parameters())")
    text = text.replace("nn.Linear(4, 1)\n", "Two()\n").replace(
        "torch.manual_seed(0)\n",
        "class Two(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 1)\n\n"
        "    def forward(self, x):\n        return self.b(self.a(x))\n\n\ntorch.manual_seed(0)\n",
    )
    done = translate(text)
    assert not done.gaps and "opt.update((enc, other.b), (grads[0], grads[1].b))" in done.code
