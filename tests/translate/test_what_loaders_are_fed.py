"""What feeds a kept loader stays PyTorch's, and becomes arrays where JAX code reads it."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = """import numpy
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
STEP = """        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
"""


def converted(source: str) -> str:
    done = convert(HEAD + source)
    assert not done.gaps, [gap.reason for gap in done.gaps]
    return done.code


def test_a_name_that_gets_batches_after_it_fed_the_loader() -> None:
    code = converted(f"""

def train():
    x = torch.rand(8, 3)
    y = x.sum(1, keepdim=True)
    loader = DataLoader(TensorDataset(x, y), batch_size=4)
    for batch in loader:
        x, y = batch
        x = x.to(dtype=torch.float32)
{STEP}    print(loss.item())


train()
""")
    assert "x, y = jax.tree.map(jnp.asarray, batch)" in code
    assert "jnp.asarray(x, dtype=jnp.float32)" in code
    assert "    x = torch.rand(8, 3)\n" in code


@pytest.mark.parametrize(
    "scaled", ["scaled = lambda x: torch.from_numpy(x / 2)", "def scaled(x):\n    return torch.from_numpy(x / 2)"]
)
def test_what_a_kept_function_gives_a_model_is_an_array(scaled: str) -> None:
    code = converted(
        f"""
{scaled}
data = np.ones((8, 3), np.float32)
loader = DataLoader(TensorDataset(scaled(data), torch.rand(8, 1)), batch_size=4)
for _ in range(2):
    for x, y in loader:
{STEP}
print(model(scaled(data)).sum().item())
""".replace("np.", "numpy.")
    )
    assert "TensorDataset(scaled(data)," in code
    assert "model(jnp.asarray(scaled(data)))" in code


def test_an_iterator_with_a_name_gives_arrays() -> None:
    code = converted(f"""
loader = DataLoader(TensorDataset(torch.rand(8, 3), torch.rand(8, 1)), batch_size=4)
for _ in range(2):
    for x, y in loader:
{STEP}
batches = iter(loader)
x, y = next(batches)
print(F.l1_loss(model(x), y).item())
""")
    assert "x, y = jax.tree.map(jnp.asarray, next(batches))" in code


def test_tensors_in_a_list_that_feeds_a_loader_are_arrays_where_they_are_read() -> None:
    code = converted(f"""
pairs = []
for i in range(8):
    pairs.append((torch.rand(3), torch.rand(1)))
loader = DataLoader(pairs, batch_size=4)
for _ in range(2):
    for x, y in loader:
{STEP}
for x, _ in pairs[:2]:
    print(len(pairs), model(x).item())
""")
    assert "for x, _ in jax.tree.map(jnp.asarray, pairs)[:2]:" in code
    assert "pairs.append((torch.rand(3), torch.rand(1)))" in code


def test_values_that_no_compiled_function_takes_are_made_arrays_in_front_of_it() -> None:
    code = converted("""
index = {"a": 0, "b": 1}
words = [("a", "b"), ("b", "a")]
for first, second in words:
    optimizer.zero_grad()
    loss = model(torch.eye(3)[0]) * torch.tensor([index[second]], dtype=torch.float32)
    loss.sum().backward()
    optimizer.step()
""")
    assert "array([index[second]]" not in code.partition("def train_step")[2].partition("for first")[0]
    assert "train_step(jnp.array([index[second]], dtype=jnp.float32))" in code


def test_old_constructors_take_sizes_and_values() -> None:
    code = converted("""
import numpy as np

values = np.load("x.npy")
a = torch.FloatTensor(values)
c = torch.FloatTensor(2, 3)
""")
    assert "of_size_or_values(values, dtype=jnp.float32)" in code
    assert "c = jnp.empty((2, 3), dtype=jnp.float32)" in code


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ("envs.action_space.shape", "jnp.array(envs.action_space.shape, dtype=jnp.float32)"),
        ("net(x).shape", "jnp.empty(net(x).shape, dtype=jnp.float32)"),
        ("x.shape", "jnp.empty(x.shape, dtype=jnp.float32)"),
        ("other.shape", None),
    ],
)
def test_shapes_are_sizes_if_they_are_a_tensors(shape: str, wanted: str | None) -> None:
    """Those of a package without tensors are tuples, which are values; of others it isn't known."""
    done = convert(f"""import gym
import torch
from torch import nn

envs = gym.make("CartPole-v1")
net = nn.Linear(3, 2)
x, other = torch.ones(3), envs.step()
y = torch.FloatTensor({shape})
""")
    assert (wanted is None) == bool(done.gaps)
    assert wanted is None or f"y = {wanted}\n" in done.code


def test_modules_of_a_dataset_stay_with_the_modules_they_are_made_of() -> None:
    inner = "class Inner(nn.Module):\n    def forward(self, s):\n        return torch.tensor([float(len(s))])\n"
    code = converted(f"""

{inner}

class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, s):
        return self.inner(s)


class Names(torch.utils.data.Dataset):
    def __init__(self):
        self.encoder = Encoder()

    def __getitem__(self, i):
        return self.encoder("ab"[i])


for x in DataLoader(Names()):
    print(x * 2)
""")
    assert inner in code and "class Encoder(nn.Module):" in code


READ = """

class Own(torch.utils.data.Dataset):
    def __init__(self, n):
        self.x = torch.ones(n, 3)

    def __getitem__(self, i):
        return {"image": self.x[i], "label": i}


own = Own(4)
loader = DataLoader(own)
pairs = torch.utils.data.TensorDataset(torch.ones(2, 3), torch.zeros(2))
y = %s
print(y)
"""
READS = [
    ("torch.stack([own[i]['image'] for i in range(2)])", "jnp.stack([jnp.asarray(own[i]['image']) for i in range(2)])"),
    ("loader.dataset[1]['image'] * 2", "jnp.asarray(loader.dataset[1]['image']) * 2"),
    ("pairs.tensors[0].unsqueeze(0)", "jnp.asarray(pairs.tensors[0])[None]"),
    ("own.x.float().mean(0)", "jnp.asarray(own.x, dtype=jnp.float32).mean(axis=0)"),
    ("own.x.shape[0]", "own.x.shape[0]"),
]


@pytest.mark.parametrize(("read", "expected"), READS)
def test_what_is_read_of_a_data_set_becomes_an_array(read: str, expected: str) -> None:
    assert f"y = {expected}\n" in converted(READ % read)


FED = """

class Fitting:
    def __init__(self, x, y, size):
        self.mean = x.mean(0)
        self.loader = DataLoader(TensorDataset(x, y), batch_size=size)


def loader_of(x, y):
    x = x.float()
    return DataLoader(TensorDataset(x, y), batch_size=4)


X, Y = torch.rand(8, 3), torch.rand(8, 1)
fitting = Fitting(X[:4], y=Y[:4], size=2)
for x, y in loader_of(X, Y):
{step}
pairs = [(torch.rand(3), i) for i in range(8)]
for x, i in DataLoader(pairs, batch_size=4):
    print(model(x).sum())
print(model(X).sum(), model(torch.stack([x for x, _ in pairs])).sum())
"""


def test_what_is_handed_to_who_feeds_a_loader_stays() -> None:
    """It was made an array on the way, which no TensorDataset takes."""
    code = converted(FED.format(step=STEP.replace("        ", "    ")))
    assert "Fitting(X[:4], y=Y[:4], size=2)" in code and "loader_of(X, Y)" in code
    assert "self.mean = jnp.asarray(x).mean(axis=0)" in code
    assert "model(jnp.asarray(X)).sum()" in code or "model, jnp.asarray(X)" in code
    assert "for x, _ in jax.tree.map(jnp.asarray, pairs)" in code


def test_a_name_that_is_given_anew_stays_in_pytorch_only_where_a_loader_takes_it() -> None:
    """The first value of ``X`` goes through a network, the second into a data set."""
    code = convert(
        "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader, TensorDataset\n"
        "net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(144, 2))\n"
        "X = torch.rand(1, 1, 8, 8)\nfor layer in net:\n    X = layer(X)\n    print(X.shape)\n"
        "X = torch.rand(32, 1, 8, 8)\ny = torch.zeros(32)\nloader = DataLoader(TensorDataset(X, y))\n"
    ).code
    assert "X = rngs.uniform((1, 1, 8, 8))" in code and "    X = layer(X)\n" in code
    assert "X = torch.rand(32, 1, 8, 8)\ny = torch.zeros(32)\n" in code


FOLDS = """
def fold(x, y, i):
    part = None
    for j in range(3):
        if j != i:
            part = x[j::3] if part is None else torch.cat([part, x[j::3]])
    return part, y[i::3], x[i::3], y[i::3]


def fit(net, inputs, labels, held, wanted, epochs):
    loader = DataLoader(TensorDataset(inputs, labels), batch_size=4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
        if wanted is not None:
            print(F.l1_loss(net(held), wanted).item())


x, y = torch.rand(12, 3), torch.rand(12, 1)
fit(model, *fold(x, y, 0), 2)
"""


def test_what_is_spread_over_the_parameters_of_a_function_feeds_its_loader() -> None:
    """Cross-validation of "Dive into Deep Learning": the loader was given JAX arrays, and died of them."""
    code = converted(FOLDS)
    assert "torch.cat([part, x[j::3]])" in code
    assert "x, y = torch.rand(12, 3), torch.rand(12, 1)" in code
    assert "TensorDataset(inputs, labels)" in code
    assert "net, jnp.asarray(held)" in " ".join(code.split())
    assert "if wanted is not None:" in code


def test_where_it_is_none_in_another_call_it_is_still_an_array() -> None:
    code = converted(FOLDS + "fit(model, torch.rand(8, 3), torch.rand(8, 1), None, None, 1)\n")
    assert "net, jnp.asarray(held)" in " ".join(code.split())
    assert "fit(model, torch.rand(8, 3), torch.rand(8, 1), None, None, 1)" in code
