"""``torch.nn.functional``: activations, layers as functions, losses. What they become, and what is left alone."""

from __future__ import annotations

import pytest

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

from .conversion import HEADER, agrees, converted, left_alone, refused

ACTIVATIONS = [
    ("F.relu(x)", "jax.nn.relu(x)", "x"),
    ("torch.relu(x - 1)", "jax.nn.relu(x - 1)", "x"),
    ("x.relu()", "jax.nn.relu(x)", "x"),
    ("F.gelu(x)", "jax.nn.gelu(x, approximate=False)", "x"),
    ("F.gelu(x, approximate='tanh')", "jax.nn.gelu(x, approximate=True)", "x"),
    ("F.silu(x, inplace=False)", "jax.nn.silu(x)", "x"),
    ("x.sigmoid()", "jax.nn.sigmoid(x)", "x"),
    ("F.leaky_relu(x, 0.2)", "leaky_relu(x, negative_slope=0.2)", "x"),
    ("F.elu(x)", "jax.nn.elu(x)", "x"),
    ("F.softplus(x, beta=2)", "softplus(x, beta=2)", "x"),
    ("F.hardtanh(x, -0.5, 0.5)", "hardtanh(x, min_val=-0.5, max_val=0.5)", "x"),
    ("F.glu(x, dim=2)", "jax.nn.glu(x, axis=2)", "x"),
    ("F.prelu(x, p[0])", "prelu(x, p[0])", "xp"),
    ("F.softmax(x, dim=-1)", "jax.nn.softmax(x, axis=-1)", "x"),
    ("x.softmax(1)", "jax.nn.softmax(x, axis=1)", "x"),
    ("F.softmax(x, 1, dtype=torch.float64)", "jax.nn.softmax(x.astype(jnp.float64), axis=1)", "x"),
    ("F.log_softmax(x)", "jax.nn.log_softmax(x, axis=implicit_softmax_axis(x.ndim))", "x"),
    ("F.log_softmax(p.reshape(2, 3))", "jax.nn.log_softmax(p.reshape(2, 3), axis=1)", "p"),
    ("F.softmin(x, dim=1)", "jax.nn.softmax(-x, axis=1)", "x"),
]

LAYERS = [
    ("F.linear(x, s)", "x @ s.T", "xs"),
    ("F.linear(x, s, u)", "affine(x, s, u)", "xsu"),
    ("F.layer_norm(x, (4,), u, u)", "layer_norm(x, (4,), weight=u, bias=u)", "xu"),
    ("F.layer_norm(x, x.shape[-1:], eps=1e-6)", "layer_norm(x, x.shape[-1:], eps=1e-6)", "x"),
    ("F.normalize(x, dim=-1)", "normalize(x, dim=-1)", "x"),
    ("F.conv1d(x, x[:, :, :2], padding=1)", "conv_nd(x, x[:, :, :2], padding=1)", "x"),
    ("F.max_pool1d(x, 2)", "max_pool1d(x, 2)", "x"),
    ("F.avg_pool2d(x[None], 2, stride=1)", "avg_pool2d(x[None], 2, stride=1)", "x"),
    ("F.avg_pool1d(x, x.shape[-1:])", "jnp.mean(x, axis=-1, keepdims=True)", "x"),
    ("y = x[None]; F.avg_pool2d(y, y.size()[-2:])", "y = x[None]; jnp.mean(y, axis=(-2, -1), keepdims=True)", "x"),
    ("F.avg_pool2d(x, x.size()[1:])", "avg_pool2d(x, x.shape[1:])", "x"),
    ("F.adaptive_avg_pool2d(x[None], (1, 1))", "jnp.mean(x[None], axis=(-2, -1), keepdims=True)", "x"),
    ("F.adaptive_avg_pool1d(x, 3)", "adaptive_avg_pool1d(x, 3)", "x"),
    (
        "F.interpolate(x[None], scale_factor=2, mode='bilinear', align_corners=False)",
        "interpolate(x[None], scale_factor=2)",
        "x",
    ),
    ("F.pad(x, (1, 2))", "pad(x, (1, 2))", "x"),
    ("F.pad(a.reshape(3, 5), (1, 2))", "jnp.pad(a.reshape(3, 5), ((0, 0), (1, 2)))", "a"),
    (
        "F.pad(u.reshape(4), (1, 2), value=2.0)",
        "jnp.pad(u.reshape(4), ((1, 2),), constant_values=2.0)",
        "u",
    ),
    ("F.pad(x, (1, 2), mode='reflect')", "pad(x, (1, 2), mode='reflect')", "x"),
    ("F.pad(x, (-1, 2))", "pad(x, (-1, 2))", "x"),
    ("F.embedding(i, a)", "jnp.take(a, i, axis=0)", "ia"),
    ("F.embedding(i, a, padding_idx=0)", "embedding(i, a, padding_idx=0)", "ia"),
    ("F.one_hot(i, 4)", "jax.nn.one_hot(i, 4, dtype=jnp.int64)", "i"),
    ("F.one_hot(i, 4).float()", "jax.nn.one_hot(i, 4, dtype=jnp.float32)", "i"),
    ("F.one_hot(i[0], 4).t().float()", "jax.nn.one_hot(i[0], 4, dtype=jnp.float32).T", "i"),
    ("F.one_hot(i, 4).permute(1, 0, 2).float()", "jax.nn.one_hot(i, 4, dtype=jnp.float32).transpose(1, 0, 2)", "i"),
    ("F.pixel_shuffle(e.reshape(1, 14, 3, 2)[:, :12], 2)", "pixel_shuffle(e.reshape(1, 14, 3, 2)[:, :12], 2)", "e"),
    (
        "F.scaled_dot_product_attention(x, y, y, is_causal=True)",
        "scaled_dot_product_attention(x, y, y, is_causal=True)",
        "xy",
    ),
    ("F._canonical_mask(x > 0, 'm', F._none_or_dtype(y > 0), '', y.dtype)", "additive_mask(x > 0, y.dtype)", "xy"),
    ("F._canonical_mask(x, 'm', None, '', y.dtype, check_other=False)", "additive_mask(x, y.dtype)", "xy"),
]

LOSSES = [
    ("F.mse_loss(x, y)", "jnp.mean(jnp.square(x - y))", "xy"),
    ("F.mse_loss(x, y, reduction='none')", "jnp.square(x - y)", "xy"),
    ("F.mse_loss(x, y, reduction='sum') / 2", "jnp.sum(jnp.square(x - y)) / 2", "xy"),
    ("F.l1_loss(x + 1, y)", "jnp.mean(absolute(x + 1 - y))", "xy"),
    ("F.l1_loss(x, y + 1)", "jnp.mean(absolute(x - (y + 1)))", "xy"),
    ("F.smooth_l1_loss(x, y)", "jnp.mean(optax.huber_loss(x, y))", "xy"),
    ("F.smooth_l1_loss(x, y, beta=0.5)", "smooth_l1_loss(x, y, beta=0.5)", "xy"),
    ("F.huber_loss(x, y, delta=0.5)", "jnp.mean(optax.huber_loss(x, y, delta=0.5))", "xy"),
    ("F.cross_entropy(a, j)", "cross_entropy(a, j)", "aj"),
    ("F.cross_entropy(a, j, label_smoothing=0.1)", "cross_entropy(a, j, label_smoothing=0.1)", "aj"),
    ("F.nll_loss(a, j, reduction='sum')", "nll_loss(a, j, reduction='sum')", "aj"),
    (
        "F.binary_cross_entropy_with_logits(x, y)",
        "jnp.mean(optax.sigmoid_binary_cross_entropy(x, y))",
        "xy",
    ),
    (
        "F.binary_cross_entropy_with_logits(x, y, pos_weight=u)",
        "binary_cross_entropy_with_logits(x, y, pos_weight=u)",
        "XYU",
    ),
    ("F.kl_div(a, b.exp(), reduction='batchmean')", "kl_div(a, jnp.exp(b), reduction='batchmean')", "ab"),
    ("F.cosine_similarity(x, y, dim=-1)", "cosine_similarity(x, y, dim=-1)", "xy"),
]
ROWS = [*ACTIVATIONS, *LAYERS, *LOSSES]


@pytest.mark.parametrize(("torch_code", "jax_code", "inputs"), ROWS, ids=[row[0] for row in ROWS])
def test_becomes(torch_code: str, jax_code: str, inputs: str) -> None:
    agrees(torch_code, jax_code, inputs)


MODULE = """
class Block(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        {line}
        return x
"""
TRAINING = [
    (
        "x = F.dropout(x, self.p, self.training)",
        "x = dropout(x, self.p, deterministic=self.deterministic, rngs=self.rngs)",
    ),
    (
        "x = F.dropout2d(x, p=0.1, training=not self.training)",
        "x = dropout2d(x, 0.1, deterministic=not self.deterministic, rngs=self.rngs)",
    ),
    ("x = F.dropout(x)", "x = dropout(x, 0.5, deterministic=False, rngs=self.rngs)"),
    (
        "x = F.scaled_dot_product_attention(x, x, x, dropout_p=self.p if self.training else 0.0)",
        "x = scaled_dot_product_attention(\n            x, x, x, dropout_p=",
    ),
    ("F.relu(x, inplace=True)", "x = jax.nn.relu(x)"),
    ("x = F.relu_(x)", "x = jax.nn.relu(x)"),
]


@pytest.mark.parametrize(("line", "expected"), TRAINING)
def test_in_a_module(line: str, expected: str) -> None:
    translation = translate(HEADER + MODULE.format(line=line))
    assert expected.replace(" ", "").replace("\n", "") in translation.code.replace(" ", "").replace("\n", "")
    assert not translation.gaps


def test_dropout_outside_training_goes() -> None:
    assert converted("F.dropout(x, 0.3, training=False) + 1", "x")[0] == "x + 1"


@pytest.mark.parametrize(
    ("torch_code", "jax_code"),
    [("F.one_hot(i)", "one_hot(i)"), ("F.one_hot(i).float()", "one_hot(i).astype(jnp.float32)")],
)
def test_one_hot_without_a_number_of_classes_is_noted(torch_code: str, jax_code: str) -> None:
    text, translation = converted(torch_code, "i")
    assert text == jax_code
    assert "num_classes" in translation.notes[0].reason


NOT_TORCH = [
    "def relu(x):\n    return x if x > 0 else 0\n\n\ndef f(x):\n    return relu(x)",
    "class F2:\n    @staticmethod\n    def pad(x, n):\n        return x\n\n\ndef f(x):\n    return F2.pad(x, 1)",
    "def f(loss_fn, x):\n    return loss_fn(x)",
    "def f(text: str):\n    return text.center(3)",
    "def dropout(x, p):\n    return x\n\n\ndef f(x):\n    return dropout(x, 0.5)",
    "def f(x):\n    return np.pad(x, 1)",
    "def f(image):\n    return image.normalize()",
]


@pytest.mark.parametrize("source", NOT_TORCH)
def test_code_that_is_not_torchs_stays(source: str) -> None:
    left_alone(source)


FLEX = "import torch.nn.attention.flex_attention as t; q = x[:, None]; "
FLEX_ATTENTION = [
    (
        "t.flex_attention(q, q, q, score_mod=lambda s, b, h, i, j: s + (i - j) * b)",
        "flex_attention(q, q, q, score_mod=lambda s, b, h, i, j: s + (i - j) * b)",
    ),
    (
        "t.flex_attention(q, q, q, None, t.create_block_mask(lambda b, h, i, j: i > j, None, None, 3, 3, 'cpu'))",
        "flex_attention(q, q, q, block_mask=index_mask(lambda b, h, i, j: i > j, None, None, 3, 3))",
    ),
    (
        "t.flex_attention(q.expand(2, 4, 3, 4), q, q, None, None, 0.3, True)",
        "flex_attention(         jnp.broadcast_to(q, (2, 4, 3, 4)), q, q, scale=0.3, enable_gqa=True     )",
    ),
    (
        "t.create_mask(t.and_masks(lambda b, h, i, j: i > j, lambda b, h, i, j: h < b), 2, 2, 3, 4, 'cpu')",
        "index_mask(and_masks(lambda b, h, i, j: i > j, lambda b, h, i, j: h < b), 2, 2, 3, 4)",
    ),
    (
        "t.create_mask(t.or_masks(lambda b, h, i, j: i > j, lambda b, h, i, j: h < b), 2, 2, 3, 4, 'cpu')",
        "index_mask(or_masks(lambda b, h, i, j: i > j, lambda b, h, i, j: h < b), 2, 2, 3, 4)",
    ),
]


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize(("torch_code", "jax_code"), FLEX_ATTENTION)
def test_scores_and_masks_are_functions_of_indices(torch_code: str, jax_code: str) -> None:
    """FlexAttention's second example masks a whole row, which gives zeros; it has no gradients on a CPU."""
    agrees(FLEX + torch_code, f"q = x[:, None]; {jax_code}", "X")


def test_a_compiled_function_under_its_own_name_is_no_import_of_torch() -> None:
    lines = (
        "import torch",
        "from torch.nn.attention.flex_attention import flex_attention",
        "flex_attention = torch.compile(flex_attention)",
        "def f(q):\n    return flex_attention(q, q, q)\n",
    )
    code = translate("\n".join(lines)).code
    assert "torch" not in code.partition("# PyTorch behaviour")[0]
    assert "flex_attention = flex_attention_" in code


OLD_SWITCHES = [
    ("F.mse_loss(x, y, size_average=False)", "jnp.sum(jnp.square(x - y))"),
    ("F.mse_loss(x, y, reduce=False)", "jnp.square(x - y)"),
    ("F.mse_loss(x, y, False, False)", "jnp.square(x - y)"),
    ("F.mse_loss(x, y, size_average=True, reduction='sum')", "jnp.mean(jnp.square(x - y))"),
    ("F.mse_loss(x, y, size_average=None, reduction='sum')", "jnp.sum(jnp.square(x - y))"),
    ("F.smooth_l1_loss(x, y, reduce=True)", "jnp.mean(optax.huber_loss(x, y))"),
    ("nn.MSELoss(size_average=False)", 'functools.partial(mse_loss, reduction="sum")'),
    ("nn.BCELoss(size_average=True)", "binary_cross_entropy"),
    ("F.mse_loss(x, y, reduction='elementwise_mean')", "jnp.mean(jnp.square(x - y))"),
    ("nn.CrossEntropyLoss(reduction='elementwise_mean')", "cross_entropy"),
]


@pytest.mark.parametrize(("source", "text"), OLD_SWITCHES)
def test_old_switches_of_losses_say_the_reduction(source: str, text: str) -> None:
    """``reduce=False`` is "none"; else ``size_average`` is "mean" or "sum"; both overrule ``reduction``."""
    assert converted(source, "xy")[0] == text


def test_old_switches_of_losses_with_weights_say_it_too() -> None:
    made = "first = nn.NLLLoss(w, size_average=False)\nsecond = nn.NLLLoss(weight=w, reduce=False)\n"
    source = f"{HEADER}\n\nw = torch.ones(3)\n{made}"
    code = translate(source, Options(helpers="import")).code
    assert 'NLLLoss(weight=w, reduction="sum")' in code and 'NLLLoss(weight=w, reduction="none")' in code


ATTENTION = "F.multi_head_attention_forward(x, x, x, 4, 2, w, None, None, None, False, 0.0, w, None"
REFUSED = [
    ("F.cross_entropy(a, j, size_average=flag)", "deprecated", "aj"),
    ("[F.batch_norm(x, u, u, training=True) for _ in i]", "in place", "xui"),
    ("[F.instance_norm(x, u, u) for _ in i]", "running statistics", "xui"),
    ("F.embedding(i, a, max_norm=1.0)", "renormalises", "ia"),
    ("torch.nn.attention.flex_attention.create_mask(lambda s, b, h, i, j: s, 1, 1, 2, 2)", "function of scores", ""),
    ("torch.nn.attention.flex_attention.flex_attention(x, x, x, return_lse=True)", "output alone", "x"),
    (f"{ATTENTION}, is_causal=True)", "give attn_mask alone", "x"),
    (f"{ATTENTION}, use_separate_proj_weight=flag)", "doesn't show", "x"),
    (f"{ATTENTION}, static_k=x)", "in place of the projected", "x"),
]


@pytest.mark.parametrize(("torch_code", "reason", "inputs"), REFUSED)
def test_is_refused(torch_code: str, reason: str, inputs: str) -> None:
    refused(torch_code, reason, inputs)
