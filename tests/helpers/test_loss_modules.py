"""Loss modules against PyTorch's: the options of the constructor arrive, and weights are buffers of the same name."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from t2j_lsp.rules.helpers import loss_modules, loss_pair_modules
from t2j_lsp.rules.helpers.container import Buffer
from tests.helpers.compare import array, close, same_module

PROBS = array(3, 4, low=0.1, high=0.9)
LOGITS = array(3, 4)
TARGET = array(3, 4, low=0.1, high=0.9, seed=1)
CLASSES = np.array([1, 3, 0])
SIGNS = np.array([1.0, -1.0, 1.0])
WEIGHT = array(4, low=0.2)


class Constants(torch.nn.Module):
    """Calls a loss with fixed targets, which need no gradient."""

    def __init__(self, inner: torch.nn.Module, targets: tuple[np.ndarray, ...]):
        super().__init__()
        self.inner, self.targets = inner, [torch.from_numpy(t) for t in targets]

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.inner(*inputs, *self.targets)


class ConstantsNNX(nnx.Module):
    def __init__(self, inner: nnx.Module, targets: tuple[np.ndarray, ...]):
        self.inner, self.targets = inner, nnx.List([jnp.asarray(t) for t in targets])

    def __call__(self, *inputs: Any) -> Any:
        return self.inner(*inputs, *self.targets)


Case = tuple[str, tuple[Any, ...], dict[str, Any], tuple[np.ndarray, ...], tuple[np.ndarray, ...]]
CASES: list[Case] = [
    ("MSELoss", (), dict(reduction="sum"), (LOGITS,), (TARGET,)),
    ("L1Loss", (), {}, (LOGITS,), (TARGET,)),
    ("SmoothL1Loss", (), dict(beta=0.5), (LOGITS,), (TARGET,)),
    ("HuberLoss", ("sum", 0.5), {}, (LOGITS,), (TARGET,)),
    ("KLDivLoss", (), dict(reduction="batchmean", log_target=True), (LOGITS,), (TARGET,)),
    ("GaussianNLLLoss", (), dict(full=True, eps=0.3), (LOGITS,), (TARGET, PROBS)),
    ("PoissonNLLLoss", (False, True), dict(eps=0.1), (PROBS,), (CLASSES[:, None].astype(float),)),
    ("CrossEntropyLoss", (WEIGHT,), dict(ignore_index=3, label_smoothing=0.1), (LOGITS,), (CLASSES,)),
    ("CrossEntropyLoss", (), {}, (LOGITS,), (TARGET,)),
    ("NLLLoss", (), dict(weight=WEIGHT, ignore_index=3), (LOGITS,), (CLASSES,)),
    ("BCELoss", (), dict(weight=WEIGHT), (PROBS,), (TARGET,)),
    ("BCEWithLogitsLoss", (), dict(pos_weight=WEIGHT, reduction="none"), (LOGITS,), (TARGET,)),
    ("SoftMarginLoss", (), {}, (LOGITS[:, 0],), (SIGNS,)),
    ("MultiMarginLoss", (2, 0.5, WEIGHT), {}, (LOGITS,), (CLASSES,)),
    ("MultiLabelMarginLoss", (), dict(reduction="none"), (LOGITS,), (np.array([[1, 0, -1, 2]] * 3),)),
    ("MultiLabelSoftMarginLoss", (WEIGHT,), {}, (LOGITS,), (TARGET,)),
    ("CosineSimilarity", (0, 0.5), {}, (LOGITS, TARGET), ()),
    ("PairwiseDistance", (1, 0.1, True), {}, (LOGITS, TARGET), ()),
    ("CosineEmbeddingLoss", (0.3,), dict(reduction="sum"), (LOGITS, TARGET), (SIGNS,)),
    ("MarginRankingLoss", (0.3,), {}, (LOGITS[:, 0], TARGET[:, 0]), (SIGNS,)),
    ("HingeEmbeddingLoss", (0.7,), dict(reduction="none"), (LOGITS[:, 0],), (SIGNS,)),
    ("TripletMarginLoss", (0.5, 1.0, 1e-3, True), dict(reduction="sum"), (LOGITS, TARGET, PROBS), ()),
    ("TripletMarginWithDistanceLoss", (), dict(margin=0.5, swap=True), (LOGITS, TARGET, PROBS), ()),
]


def convert(value: Any, to: Any) -> Any:
    return to(value.copy()) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize(("name", "args", "kwargs", "inputs", "targets"), CASES, ids=[f"{c[0]}-{c[2]}" for c in CASES])
def test_module(
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    inputs: tuple[np.ndarray, ...],
    targets: tuple[np.ndarray, ...],
) -> None:
    def make(library: Any, to: Any) -> Any:
        return getattr(library, name)(*(convert(a, to) for a in args), **{k: convert(v, to) for k, v in kwargs.items()})

    jax_side = make(loss_modules if hasattr(loss_modules, name) else loss_pair_modules, jnp.asarray)
    torch_side = make(torch.nn, torch.from_numpy)
    same_module(ConstantsNNX(jax_side, targets), Constants(torch_side, targets), *inputs, jit=True)


def test_weights_are_buffers_and_not_parameters() -> None:
    loss = loss_modules.BCEWithLogitsLoss(jnp.ones(4), pos_weight=jnp.ones(4), rngs=nnx.Rngs(0))
    assert isinstance(loss.weight, Buffer) and isinstance(loss.pos_weight, Buffer)
    assert not jax.tree.leaves(nnx.state(loss, nnx.Param))


def test_ctc_loss_module() -> None:
    log_probs, targets = array(6, 2, 4, high=0.0), np.array([[1, 2], [3, 3]])
    lengths = (np.array([6, 5]), np.array([2, 1]))
    want = torch.nn.CTCLoss(blank=0, reduction="sum", zero_infinity=True)(
        torch.from_numpy(log_probs).log_softmax(-1), *(torch.from_numpy(x) for x in (targets, *lengths))
    )
    jax_side = loss_modules.CTCLoss(blank=0, reduction="sum", zero_infinity=True, rngs=nnx.Rngs(0))
    logs = jnp.asarray(torch.from_numpy(log_probs).log_softmax(-1).numpy())
    close(jax_side(logs, *(jnp.asarray(x) for x in (targets, *lengths))), want.numpy(), "loss")


def test_options_after_the_deprecated_ones_must_be_named() -> None:
    with pytest.raises(TypeError):
        loss_modules.MSELoss(False)  # PyTorch's size_average
