"""Seeds of loaders that stay PyTorch: their order is the source's, so the generator's seed stays beside nnx's."""

from __future__ import annotations

import pytest
import torch

from t2j_lsp import convert

HEAD = """import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(3)
data = TensorDataset(torch.arange(12.0).reshape(12, 1), torch.zeros(12, 1))
"""
LOOP = """net = nn.Linear(1, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
order = []
for x, y in loader:
    order.append(x[:, 0].tolist())
    optimizer.zero_grad()
    nn.functional.mse_loss(net(x), y).backward()
    optimizer.step()
"""
LOADERS = {
    "shuffled": ("loader = DataLoader(data, batch_size=4, shuffle=True)\n", True),
    "shuffled where asked": ("again = True\nloader = DataLoader(data, 4, again)\n", True),
    "in order": ("loader = DataLoader(data, batch_size=4, shuffle=False)\n", False),
    "split": ("part, _ = random_split(data, [8, 4])\nloader = DataLoader(part, batch_size=4)\n", True),
}


@pytest.mark.parametrize("name", LOADERS)
def test_the_seed_of_a_loader_stays_where_it_draws(name: str) -> None:
    loader, draws = LOADERS[name]
    done = convert(HEAD + loader + LOOP)
    assert not done.gaps
    lines = done.code.splitlines()
    assert ("torch.manual_seed(3)" in lines) is draws
    if draws:
        assert lines[lines.index("torch.manual_seed(3)") + 1] == "rngs = nnx.Rngs(3)"
    assert convert(done.code).code == done.code


def test_a_converted_loop_sees_the_batches_in_the_source_s_order() -> None:
    source = HEAD + LOADERS["split"][0].replace("batch_size=4)", "batch_size=4, shuffle=True)") + LOOP
    # The weights of the source are drawn after the split and before the shuffle.
    source = source.replace("loader =", "torch.manual_seed(4)\nloader =")
    spaces: list[dict[str, object]] = []
    for code in (source, convert(source).code):
        # Each epoch of a loader draws its own seed when it begins.
        code = code.replace("for x, y in loader:", "torch.manual_seed(5)\nfor x, y in loader:")
        spaces.append({})
        state = torch.get_rng_state()
        exec(compile(code if "import torch" in code else f"import torch\n{code}", "program", "exec"), spaces[-1])
        torch.set_rng_state(state)
    assert spaces[0]["order"] == spaces[1]["order"]


def test_what_a_part_of_a_kept_data_set_holds_becomes_arrays() -> None:
    source = HEAD + "part, other = random_split(data, [8, 4])\nxs = torch.stack([x for x, _ in other])\n"
    source += "first = torch.exp(part[0][0])\nmean = (xs.mean() + first).item()\n"
    done = convert(source)
    spaces: list[dict[str, object]] = [{}, {}]
    for code, space in zip((source, done.code), spaces, strict=True):
        exec(compile(code, "program", "exec"), space)
    assert not done.gaps and spaces[1]["mean"] == pytest.approx(spaces[0]["mean"])
