"""`reset_parameters` draws what PyTorch's layers draw."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from t2j_lsp.rules.helpers.conv import ConvTranspose2d
from t2j_lsp.rules.helpers.embedding import Embedding
from t2j_lsp.rules.helpers.norm import BatchNorm2d
from t2j_lsp.rules.helpers.recurrent import GRU
from t2j_lsp.rules.helpers.resetting import has_reset_parameters, reset_layer, reset_parameters

R = nnx.Rngs(0)
LAYERS = {
    "Linear": (torch.nn.Linear(60, 70), nnx.Linear(60, 70, rngs=R)),
    "Conv2d": (torch.nn.Conv2d(12, 40, 3, groups=4), nnx.Conv(12, 40, (3, 3), feature_group_count=4, rngs=R)),
    "ConvTranspose2d": (torch.nn.ConvTranspose2d(12, 70, 3), ConvTranspose2d(12, 70, 3, rngs=R)),
    "plain ConvTranspose": (torch.nn.ConvTranspose2d(12, 70, 3), nnx.ConvTranspose(12, 70, (3, 3), rngs=R)),
    "Embedding": (torch.nn.Embedding(50, 30, padding_idx=2), Embedding(50, 30, padding_idx=2, rngs=R)),
    "GRU": (torch.nn.GRU(20, 30, num_layers=2), GRU(20, 30, num_layers=2, rngs=R)),
    "BatchNorm2d": (torch.nn.BatchNorm2d(8), BatchNorm2d(8, rngs=R)),
    "LayerNorm": (torch.nn.LayerNorm(8, bias=False), nnx.LayerNorm(8, use_bias=False, rngs=R)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_has_initial_values_of_pytorchs_distribution(name: str) -> None:
    torch_layer, layer = LAYERS[name]
    torch.manual_seed(0)
    for p in torch_layer.parameters():
        torch.nn.init.constant_(p, 7)
    torch_layer.reset_parameters()
    state = nnx.state(layer, (nnx.Param, nnx.BatchStat))
    nnx.update(layer, nnx.map(lambda path, v: v.replace(jnp.full_like(v[...], 7)), state))
    assert has_reset_parameters(layer)
    reset_parameters(layer, nnx.Rngs(1))
    want = [p.detach().numpy() for p in torch_layer.parameters()]
    got = [np.asarray(p) for _, p in nnx.to_flat_state(nnx.state(layer, nnx.Param))]
    assert sorted(p.size for p in got) == sorted(p.size for p in want)
    for size in {p.size for p in want}:
        drawn, wanted = (np.concatenate([p.ravel() for p in each if p.size == size]) for each in (got, want))
        bound = 0 if wanted.std() == 0 else 0.35 * wanted.std()
        assert abs(drawn.mean() - wanted.mean()) <= bound and abs(drawn.std() - wanted.std()) <= bound
        if name != "Embedding":  # uniform: no value is beyond the bound
            assert np.abs(drawn).max() <= max(1, np.abs(wanted).max() * 1.1)
            assert np.abs(drawn).max() == pytest.approx(np.abs(wanted).max(), rel=0.1)


def test_running_statistics_and_padding_start_over() -> None:
    norm, table = BatchNorm2d(3, rngs=R), Embedding(5, 3, padding_idx=2, rngs=R)
    norm.mean[...], norm.var[...], table.embedding[...] = norm.mean + 2, norm.var * 5, table.embedding + 1
    reset_layer(norm, R)
    reset_layer(table, R)
    assert (norm.mean[...] == 0).all() and (norm.var[...] == 1).all()
    assert (table.embedding[2] == 0).all() and (table.embedding[3] != 0).all()


def test_a_method_of_a_class_s_own_is_called_with_the_generator_if_it_takes_one() -> None:
    class Plain(nnx.Module):
        def reset_parameters(self) -> None:
            self.called = "plain"

    class Drawing(nnx.Module):
        def reset_parameters(self, *, rngs: nnx.Rngs) -> None:
            self.called = rngs is R

    plain, drawing = Plain(), Drawing()
    reset_parameters(plain, R)
    reset_parameters(drawing, R)
    assert plain.called == "plain" and drawing.called is True


def test_what_pytorch_does_not_reset_is_said() -> None:
    dropout = nnx.Dropout(0.5, rngs=R)
    assert not has_reset_parameters(dropout)
    with pytest.raises(TypeError, match="no initial values of Dropout"):
        reset_parameters(dropout, R)
