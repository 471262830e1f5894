"""Two modules trained by one optimizer over an inner loop, as sequence-to-sequence tutorials write it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from t2j_lsp import convert

PROGRAM = """import torch
import torch.nn as nn

torch.manual_seed(0)
first, second = nn.Linear(3, 3), nn.Linear(3, 2)
params = list(first.parameters()) + list(second.parameters())
optimizer = torch.optim.SGD(params, lr=0.1)
inputs = torch.linspace(-1, 1, 24).reshape(2, 4, 3)
targets = torch.linspace(0, 1, 16).reshape(2, 4, 2)
losses = []
for epoch in range(3):
    optimizer.zero_grad()
    hidden = torch.tanh(first(inputs[:, 0]))
    loss = 0
    for t in range(1, 4):
        output = second(hidden)
        loss = loss + ((output - targets[:, t]) ** 2).mean()
        hidden = torch.tanh(first(inputs[:, t] + hidden))
    loss.backward()
    CLIP
    optimizer.step()
    losses.append(SHOWN)
"""
SHOWN = {"the loss": "loss.item()", "the last output": "output.sum().item()"}
CLIPS = {"no": "pass", "clipped": "torch.nn.utils.clip_grad_norm_(params, 0.5)"}
FILL = """
import numpy as np
for module, scale in ((first, 0.1), (second, 0.2)):
    PUT
"""
TORCH = FILL.replace(
    "PUT",
    """with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.linspace(-scale, scale, p.numel()).reshape(p.shape))""",
)
JAX = FILL.replace(
    "PUT",
    """weight = np.linspace(-scale, scale, module.kernel[...].size).reshape(module.kernel[...].T.shape)
    module.kernel[...] = jnp.asarray(weight.T, jnp.float32)
    module.bias[...] = jnp.linspace(-scale, scale, module.bias[...].size)""",
)


@pytest.mark.parametrize("shown", SHOWN)
@pytest.mark.parametrize("clip", CLIPS)
def test_a_loop_inside_of_a_step_gives_what_it_gave(shown: str, clip: str) -> None:
    source = PROGRAM.replace("SHOWN", SHOWN[shown]).replace("CLIP", CLIPS[clip])
    done = convert(source)
    assert not done.gaps and "params" not in done.code
    head = "for epoch in range(3):"
    spaces: list[dict[str, list[float]]] = [{}, {}]
    exec(compile(source.replace(head, f"{TORCH}\n{head}"), "source", "exec"), spaces[0])
    exec(compile(done.code.replace(head, f"{JAX}\n{head}"), "converted", "exec"), spaces[1])
    np.testing.assert_allclose(spaces[1]["losses"], spaces[0]["losses"], rtol=1e-4)
    assert len(set(spaces[0]["losses"])) == 3 and torch.is_grad_enabled()


def test_a_list_of_parameters_that_something_else_reads_stays_a_gap() -> None:
    source = PROGRAM.replace("SHOWN", "len(params)").replace("CLIP", "pass")
    assert any("parameters" in gap.message for gap in convert(source).gaps)
