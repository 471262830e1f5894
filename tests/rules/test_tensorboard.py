"""Conversions of ``rules/tensorboard.py``: the writer is that of tensorboardX, and is handed arrays."""

from __future__ import annotations

import pytest

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

HEAD = "import torch\nfrom torch import nn\nfrom torch.utils.tensorboard import SummaryWriter\n\n\n"
ROWS = [
    ("SummaryWriter()", "SummaryWriter()"),
    ("SummaryWriter('runs/a', flush_secs=5)", "SummaryWriter('runs/a', flush_secs=5)"),
    ("SummaryWriter(comment='b')", "SummaryWriter(comment='b')"),
    ("writer.add_scalar('loss', x.mean(), step)", "writer.add_scalar('loss', x.mean(), step)"),
    (
        "writer.add_scalar('loss', x.mean(), step, new_style=True)",
        "writer.add_scalar('loss', x.mean(), global_step=step)",
    ),
    ("writer.add_histogram('b', layer.bias, step)", "writer.add_histogram('b', layer.bias[...], step)"),
    ("writer.add_histogram('b', values=layer.bias)", "writer.add_histogram('b', values=layer.bias[...])"),
    ("writer.add_histogram('w', layer.weight, step)", "writer.add_histogram('w', layer.kernel.T, step)"),
    ("other.add_histogram('b', layer.bias, step)", "other.add_histogram('b', layer.bias[...], step)"),
    ("writer.add_image('x', x.permute(2, 0, 1))", "writer.add_image('x', x.transpose(2, 0, 1))"),
    (
        "writer.add_hparams({'lr': 1}, {'loss': 2}, run_name='a')",
        "writer.add_hparams({'lr': 1}, {'loss': 2}, name='a')",
    ),
    ("writer.log_dir, writer.get_logdir()", "writer.logdir, writer.logdir"),
]


def converted(expression: str) -> tuple[str, list[str]]:
    """What an expression becomes in a function that is given a writer, and the reasons for gaps."""
    signature = "def log(writer: SummaryWriter, other, layer: nn.Linear, x: torch.Tensor, step: int):\n"
    result = translate(f"{HEAD}{signature}    return {expression}\n", Options(helpers="import"))
    return result.code, [gap.reason for gap in result.gaps]


@pytest.mark.parametrize(("torch", "jax"), ROWS, ids=[row[0] for row in ROWS])
def test_calls_stay_with_arrays_for_tensors(torch: str, jax: str) -> None:
    code, gaps = converted(torch)
    assert code.rstrip().endswith(f"    return {jax}") and not gaps
    assert "from tensorboardX import SummaryWriter\n" in code and "torch.utils" not in code


@pytest.mark.parametrize("call", ["add_graph(layer, x)", "add_tensor('x', x)", "add_onnx_graph('x')"])
def test_what_the_other_writer_has_not_is_refused(call: str) -> None:
    code, (reason,) = converted(f"writer.{call}")
    assert f"writer.{call}" in code and reason


def test_other_spellings_of_the_import() -> None:
    source = (
        "from torch.utils import tensorboard\nimport torch.utils.tensorboard as tb\n\n"
        "one = tensorboard.SummaryWriter()\ntwo = tb.SummaryWriter('a')\n"
    )
    code = translate(source, Options()).code
    assert code == "from tensorboardX import SummaryWriter\n\none = SummaryWriter()\ntwo = SummaryWriter('a')\n"


def test_a_writer_is_called_outside_of_the_compiled_step() -> None:
    source = HEAD + (
        "def train(x, y):\n    model = nn.Linear(3, 1)\n    writer = SummaryWriter()\n"
        "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "    for step in range(9):\n        optimizer.zero_grad()\n"
        "        loss = nn.functional.mse_loss(model(x), y)\n        writer.add_scalar('loss', loss, step)\n"
        "        loss.backward()\n        optimizer.step()\n"
    )
    result = translate(source, Options())
    assert not result.gaps
    assert "        loss = bound_train_step(x, y)\n        writer.add_scalar('loss', loss, step)" in result.code
