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


PIPELINE = """import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Encoder(nn.Module):
    def forward(self, s):
        return torch.tensor([ord(c) for c in s])


class Shared(nn.Module):
    def forward(self, s):
        return s * 2


def collate(batch):
    return torch.stack(batch)


class Names(Dataset):
    def __init__(self, names):
        self.names, self.encoder, self.other = names, Encoder(), Shared()

    def __getitem__(self, i):
        return self.other(self.encoder(self.names[i]))


loader = DataLoader(Names(["a", "b"]), collate_fn=collate)
net = nn.Sequential(Shared(), nn.Linear(3, 3))
for x in loader:
    print(net(x))
"""


def test_what_the_data_pipeline_uses_stays_with_it_and_is_said() -> None:
    translation = convert(PIPELINE)
    assert {(f.name, f.span.line) for f in translation.findings if f.code == "kept" and "." not in f.name} == {
        ("Encoder", 6),
        ("collate", 16),
    }
    for definition in ("class Encoder(nn.Module):\n    def forward", "def collate(batch):\n    return torch.stack"):
        assert definition in translation.code
    assert [(f.name, f.span.line) for f in translation.gaps] == [("Shared", 11)]


SEEDER = """
import random
import torch
import torch.nn as nn


def set_seed({parameters}):
    random.seed(seed)
    torch.manual_seed(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)
        torch.backends.cudnn.deterministic = True


def main(args):
    {call}
    return nn.Linear(4, 3)
"""
SEEDERS = [
    ("seed", "set_seed(args.seed)", "args.seed"),
    ("seed=7", "set_seed()", "7"),
    ("x, *, seed", "set_seed(1, seed=args.s + 1)", "args.s + 1"),
]


@pytest.mark.parametrize(("parameters", "call", "seed"), SEEDERS)
def test_a_function_that_seeds_seeds_the_rngs_of_its_caller(parameters: str, call: str, seed: str) -> None:
    done = convert(SEEDER.format(parameters=parameters, call=call))
    assert not done.gaps
    assert f"def set_seed({parameters}):\n    random.seed(seed)\n\n\n" in done.code
    assert f"def main(args):\n    {call}\n    rngs = nnx.Rngs({seed})\n" in done.code


def test_a_seed_that_may_not_be_set_is_not_relied_on() -> None:
    code = convert(SEEDER.format(parameters="seed", call="if args.seed: set_seed(args.seed)")).code
    assert "def main(args, *, rngs: nnx.Rngs):" in code or "def main(args, *, rngs):" in code


def test_a_seed_of_which_nothing_is_drawn_leaves_no_rngs() -> None:
    text = SEEDER.format(parameters="seed", call="set_seed(0)").replace("nn.Linear(4, 3)", "torch.ones(3)")
    assert "nnx" not in convert(text).code


def test_a_function_that_seeds_and_draws_keeps_its_own() -> None:
    text = SEEDER.format(parameters="seed", call="set_seed(0)").replace("random.seed(seed)", "self = nn.ReLU()")
    text = text.replace("    torch.manual_seed(seed)", "    torch.manual_seed(seed)\n    w = torch.randn(3)")
    assert "rngs = nnx.Rngs(seed)\n    w = rngs.normal(" in convert(text).code
