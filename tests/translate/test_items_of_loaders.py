"""Samplers, classes and items that feed a kept loader stay PyTorch's, and become arrays where they are read."""

from __future__ import annotations

import textwrap

import pytest

from t2j_lsp import convert

from .test_what_loaders_are_fed import HEAD, STEP, converted

SAMPLER = f"""
class Episodes:
    def __init__(self, count, n):
        self.count, self.n = count, n

    def __len__(self):
        return self.count

    def __iter__(self):
        for _ in range(self.count):
            yield torch.randperm(self.n)[:4]


episodes = Episodes(3, 8)
loader = DataLoader(TensorDataset(torch.rand(8, 3), torch.rand(8, 1)), batch_sampler=episodes)
for _ in range(2):
    for x, y in loader:
{STEP}
"""


def test_a_sampler_that_derives_of_nothing_draws_in_pytorch() -> None:
    """Its `__iter__` was given `rngs`, which no loader has."""
    code = converted(SAMPLER)
    assert "yield torch.randperm(self.n)[:4]" in code
    assert "rngs" not in code.partition("class Episodes")[2].partition("for x, y")[0]


@pytest.mark.parametrize(
    "use", ["for rows in episodes.halves(torch.rand(8, 3)):\n    print(rows.mean().item())\n", "evaluate(episodes)\n"]
)
def test_a_class_whose_instances_other_code_has_is_jaxs(use: str) -> None:
    code = convert(HEAD + SAMPLER + use).code
    assert "yield torch.randperm(self.n)[:4]" not in code
    assert "yield torch.randperm(self.n)[:4]" in convert(HEAD + SAMPLER + "print(len(episodes))\n").code


def test_a_class_that_makes_a_loader_for_itself_feeds_none() -> None:
    """It trains: what it can't know, the optimizer that another file makes, is a gap, and no data pipeline's."""
    lines = (
        "class Trainer:",
        "    def __init__(self, model, data):",
        "        self.model, self.data = model, data",
        "    def run(self):",
        "        optimizer = self.model.configure_optimizers()",
        "        for x, y in DataLoader(self.data, batch_size=4):",
        "            loss = self.model(x, y)",
        "            loss.backward()",
        "            optimizer.step()",
    )
    done = convert(HEAD + "\n".join(lines) + "\n")
    assert [gap.code for gap in done.gaps] == ["training-loop"]
    assert not any("data pipeline uses this" in finding.reason for finding in done.findings)


def test_attributes_that_feed_a_loader_are_arrays_where_they_are_read() -> None:
    code = converted(f"""

class Trainer:
    def __init__(self):
        self.x = torch.rand(8, 3)
        self.y = (self.x.sum(1, keepdim=True) > 1).float()
        self.loader = DataLoader(TensorDataset(self.x, self.y), batch_size=4)
        self.features = self.x.shape[1]

    def weight(self):
        positive = self.y.sum()
        return (len(self.y) - positive) / positive

    def train(self):
        for x, y in self.loader:
{textwrap.indent(STEP, "    ")}        return loss.item() * self.weight().item()


trainer = Trainer()
print(trainer.train(), trainer.x.mean().item())
""")
    assert "self.x = torch.rand(8, 3)\n" in code
    assert "positive = jnp.asarray(self.y).sum()\n" in code
    assert "jnp.asarray(trainer.x).mean().item()" in code
    assert "self.x.shape[1]" in code


@pytest.mark.parametrize("given", ["samples = make(8)", "samples, rest = make(8), make(4)"])
def test_samples_that_a_function_makes_stay_pytorchs(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    source = f"""

def make(n):
    out = []
    for i in range(n):
        out.append({{"x": torch.full((i % 3 + 1,), float(i))}})
    return out


def collate(batch):
    return nn.utils.rnn.pad_sequence([sample["x"] for sample in batch], batch_first=True)


def loader_of(dataset):
    return DataLoader(dataset, batch_size=4, collate_fn=collate)


{given}
for x in loader_of(samples):
    print(torch.flip(x, (1,)).sum().item(), len(samples))
print(samples[5]["x"].mean().item())
"""
    code = converted(source)
    assert "torch.full((i % 3 + 1,), float(i))" in code and "jnp.flip(x, axis=(1,))" in code
    exec(HEAD + source, {})
    expected = capsys.readouterr().out
    exec(code, {})
    assert capsys.readouterr().out == expected


def test_samples_of_which_not_all_is_known_stay_pytorchs(capsys: pytest.CaptureFixture[str]) -> None:
    source = """

def sample(i):
    return {"x": torch.full((3,), float(i)), "label": i % 2}


def make(n):
    return [sample(i) for i in range(n)]


samples = make(8)
for batch in DataLoader(samples, batch_size=4):
    print(torch.flip(batch["x"], (1,)).sum().item(), batch["label"].sum().item(), len(samples))
"""
    code = converted(source)
    assert '"x": torch.full((3,), float(i))' in code
    exec(HEAD + source, {})
    expected = capsys.readouterr().out
    exec(code, {})
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize(
    ("read", "reading"),
    [
        ("held = samples[6:]\nfor one in held:\n    {}", " = {}samples[6:])"),
        ("for one in samples[6:]:\n    {}", " in {}samples[6:]):"),
        ("for one in samples:\n    {}", " in {}samples):"),
        ("one = samples[3]\n{}", " = {}samples[3])"),
    ],
)
def test_items_of_which_not_all_is_known_become_arrays_where_they_are_read(
    read: str, reading: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = f"""

def make(n):
    out = []
    for i in range(n):
        x = torch.full((3,), float(i))
        out.append({{"x": x, "y": (x.sum() > 9).long(), "id": i}})
    return out


samples = make(8)
train = samples[:6]
for batch in DataLoader(train, batch_size=3):
    print(torch.flip(batch["x"], (1,)).sum().item())
{read.format('print(one["id"], torch.argmax(one["x"]).eq(one["y"]).item())')}
"""
    code = converted(source)
    assert "train = samples[:6]\n" in code
    guarded = 'jax.tree.map(lambda t: jnp.asarray(t) if hasattr(t, "shape") else t, '
    assert reading.format(guarded) in " ".join(code.split()).replace("( ", "(").replace(" )", ")")
    exec(HEAD + source, {})
    expected = capsys.readouterr().out
    exec(code, {})
    assert capsys.readouterr().out == expected


REUSED = """
x = torch.randn(32, 4)
y = x.sum(1, keepdim=True)
loader = DataLoader(TensorDataset(x, y), batch_size=8)
model = nn.Linear(4, 1)
for x, y in loader:
    print(model(x).shape, x.size(0))
print(x.mean())
"""


def test_batches_that_take_the_names_of_what_the_loader_was_fed_are_converted_once() -> None:
    code = convert(HEAD + REUSED).code
    assert "    x, y = jnp.asarray(x), jnp.asarray(y)\n    print(bound_forward(model)(x).shape, x.shape[0])\n" in code
    assert "print(jnp.asarray(x).mean())" in code
