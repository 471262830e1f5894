"""Files that were converted before, in part: what is JAX already stays as it is."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = "import torch\nimport jax\nimport jax.numpy as jnp\nfrom flax import nnx\n"
LEFT = "def left(path):\n    return torch.jit.load(path)\n"
SETTLED = [
    pytest.param("def f(x: jax.Array):\n    return x.transpose(0, 2, 1)\n", id="a method of arrays"),
    pytest.param(
        "def f(left, at, x):\n    sums = left.sums\n    sums = sums.at[at].add(x / 2)\n    return sums.at[0].set(x)\n",
        id="writing at places",
    ),
    pytest.param(
        "class Norm(nnx.BatchNorm):\n    def __init__(self, n, *, rngs: nnx.Rngs):\n"
        "        super().__init__(n, rngs=rngs)\n\n\n"
        "class Net(nnx.Module):\n    def __init__(self, kind, *, rngs: nnx.Rngs):\n"
        "        self.norm = kind(3, rngs=rngs)\n\n\n"
        "def kind_of(n):\n    return Norm if n else None\n\n\n"
        "net = Net(Norm, rngs=nnx.Rngs(0))\n",
        id="a class that is handed over",
    ),
    pytest.param("def f(x):\n    x = jnp.abs(x)\n    y = x\n    y &= x\n    return x, y\n", id="writing in place"),
    pytest.param(
        "class Net(nnx.Module):\n"
        "    def __init__(self, *, rngs: nnx.Rngs):\n"
        "        self.fc = nnx.Linear(3, 3, rngs=rngs)\n\n"
        "    def reset(self):\n"
        "        self.head = left('head')\n\n"
        "    def __call__(self, x):\n"
        "        return self.fc(x)\n",
        id="a module",
    ),
]


@pytest.mark.parametrize("code", SETTLED)
def test_jax_code_beside_what_is_left_of_torch_stays(code: str) -> None:
    text = f"{HEAD}\n\n{LEFT}\n\n{code}"
    assert code in convert(text).code


@pytest.mark.parametrize(
    ("code", "becomes"),
    [
        pytest.param("def f(x):\n    return torch.cat([x, x], dim=1)\n", "jnp.concatenate", id="names torch"),
        pytest.param("def f(x: torch.Tensor):\n    return x.permute(0, 2, 1)\n", "x.transpose", id="by an annotation"),
        pytest.param("def f(x):\n    return x.unsqueeze(0)\n", "x[None]", id="names neither"),
        pytest.param(
            "class Net(torch.nn.Module):\n    def forward(self, x):\n        return jnp.abs(x).unsqueeze(1)\n",
            "__call__",
            id="a module of torch",
        ),
    ],
)
def test_what_is_torch_beside_jax_code_is_converted(code: str, becomes: str) -> None:
    assert becomes in convert(f"{HEAD}\n\n{code}").code


HALF = """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.training_only = 0.1

    def forward(self, x, mask):
        kept = mask.clone()
        kept &= ~(torch.rand_like(x) > 0.5)
        x = left(x, mask)
        return torch.dropout(self.fc(x), 0.1, self.training) * kept, mask


def left(x, mask):
    return torch.nn.functional._canonical_mask(mask, "mask", None, "", x.dtype)


class Twice(Attention):
    def forward(self, x, mask):
        x, mask = super().forward(x, mask)
        kept = mask
        mask = kept.clone()
        mask |= torch.rand_like(x) > 0.5
        torch.jit.fork(left, x, mask)
        return x * kept
"""


def test_a_class_of_which_something_was_left_keeps_its_generator() -> None:
    once = convert(f"import torch\nfrom torch import nn\n\n{HALF}").code
    assert "self.rngs" in once and "torch.jit" in once
    assert convert(once).code == once


WAYS = {
    "a variable that is written to": """
def f(model):
    for _, m in nnx.iter_modules(model):
        if isinstance(m, nnx.Conv):
            m.kernel[...] = jnp.zeros_like(m.kernel[...])
    torch.jit.save(model)
""",
    "a parameter that is written to": """
def f(model, path):
    for _, p in nnx.to_flat_state(nnx.state(model, nnx.Param)):
        if p.ndim > 1:
            p[...] = jnp.zeros(p.shape, p.dtype)
    return torch.jit.load(path)
""",
    "a variable of a module of PyTorch": """
class Net(torch.nn.Module):
    def reset(self):
        self.layer.embedding[...] = self.start[...]
""",
    "a transpose of all axes": """
def f(x: jax.Array):
    x = torch.jit.load('x')(x).abs()
    return x.abs().transpose(0, 2, 1)
""",
    "an axis": """
def f(model, y):
    x = torch.jit.load('x')(y).unsqueeze(0)
    return jnp.abs(x).min(axis=-1).mean() + x.min(axis=-1)
""",
    "a generator that is passed": """
def g(x, *, rngs: nnx.Rngs):
    return x + rngs.normal(x.shape)


def f(path):
    rngs = nnx.Rngs(3)
    x = torch.jit.load(path)
    return g(x, rngs=rngs)
""",
    "a generator that isn't asked for": """
class Kept(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs | None = None):
        self.x = 1


def f(path):
    made = Kept()
    return torch.jit.load(path)(made)
""",
}


@pytest.mark.parametrize("code", WAYS.values(), ids=WAYS)
def test_jax_code_in_a_function_of_which_something_was_left_stays(code: str) -> None:
    """The statement with torch in it may be marked; nothing else changes."""
    kept = [line for line in code.splitlines() if line and "torch" not in line]
    once = convert(f"{HEAD}\n\n{code}").code
    assert [line for line in once.splitlines() if line in kept] == kept
    assert convert(once).code == once


def test_batches_become_arrays_once() -> None:
    text = (
        "import torch\nfrom torch.utils.data import DataLoader\n\n\n"
        "def total(dataset):\n    found = 0.0\n"
        "    for batch in DataLoader(dataset, batch_size=4):\n        found += torch.relu(batch).sum()\n"
        "    return found\n"
    )
    once = convert(text).code
    assert once.count("jnp.asarray") == 1
    assert convert(once).code == once


LOOP = """
import torch
from torch import nn
from torch.utils.data import DataLoader


class Net(nn.Module):
    def forward(self, x):
        return x.sum()


def train(engine, dataset):
    model, loader = engine.wrap(Net()), DataLoader(dataset, batch_size=2)
    optimizer = engine.optimizer(model)
    for images, target in loader:
        images = images.cuda()
        loss = nn.functional.cross_entropy(model(images), target.cuda())
        loss.backward()
    optimizer.step()
    images, target = next(iter(loader))
    return images.sum(), torch.jit.load(dataset)
"""
TEST = """
import unittest

import torch
from torch import nn


class Case(unittest.TestCase):
    def setUp(self):
        self.layer = nn.Linear(3, 3)
        torch.distributed.rpc.init_rpc("worker")

    def test_sum(self):
        self.assertEqual(self.layer(torch.rand(2, 3)).shape, (2, 3))
"""


MODES = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(torch.as_tensor(m.weight))

    @torch.no_grad()
    def train(self, mode=True):
        super().train(mode)
        self.bias = torch.zeros(3)

    def sample(self, x, was_training):
        self.net.train() if was_training else self.net.eval()
        return torch.jit.load(x)
"""


METHOD = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from elsewhere import averaged, optimizer_of


class Distillation:
    def __init__(self, student, name, steps):
        self.student = student.to("cpu")
        self.optimizer = optimizer_of(name)(self.student.parameters())
        self.steps = steps

    def update(self, batches):
        loss, count = 0, 0
        for x, y in batches:
            loss = loss + F.mse_loss(self.student(x), y)
            count += 1
            if count % self.steps == 0:
                self.optimizer.zero_grad()
                loss.backward()
                self.reduce()
                self.optimizer.step()
                loss = 0

    def reduce(self):
        averaged(self.student.parameters(), self.steps)
"""


@pytest.mark.parametrize(
    "source", [LOOP, TEST, MODES, METHOD], ids=["training code", "unit tests", "modes", "a method that a loop calls"]
)
def test_what_was_left_is_left_again(source: str) -> None:
    once = convert(source)
    assert once.gaps
    again = convert(once.code)
    assert again.code == once.code
    assert {gap.reason for gap in again.gaps} >= {gap.reason for gap in once.gaps if gap.code == "training-loop"}


def test_what_another_conversion_cut_stays_as_it_cut_it() -> None:
    """Without a gradient, `clamp` is JAX's own `clip`, which PyTorch has as well."""
    text = "import torch\nimport jax.numpy as jnp\n\n\ndef f(x: torch.Tensor):\n    return jnp.ones(2), x.clip(0, 1)\n"
    assert "return jnp.ones(2), x.clip(0, 1)" in convert(text).code
    assert "clamp(x, 0, 1)" in convert(text.replace("import jax.numpy", "import other")).code


TRAINER = """import torch.nn.functional as F


class Trainer:
    def __init__(self, model: torch.nn.Module):
        self.model = model
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def target(self, x{rngs}):
        return jax.lax.stop_gradient(self.model(x))

    def train(self, batches):
        for batch in batches:
            self.optimizer.zero_grad()
            loss = F.mse_loss(self.model(batch), self.target(batch))
            loss.backward()
            self.optimizer.step()
        return loss
"""


@pytest.mark.parametrize("rngs", ["", ", *, rngs=None"])
def test_a_function_that_stays_as_it_is_is_given_no_module_by_its_calls(rngs: str) -> None:
    text = HEAD + TRAINER.format(rngs=rngs)
    translation = convert(text)
    assert translation.gaps and "self.target(batch))" in translation.code
    assert convert(translation.code).code == translation.code


DISTRIBUTION = """from torch.distributions import Distribution


class Own(Distribution):
    def log_prob(self, value):
        return torch.exp(value)


def made(loc: torch.Tensor) -> Distribution:
    return Own(loc)
"""


def test_what_stays_pytorch_keeps_the_name_of_its_base() -> None:
    once = convert("import torch\n" + DISTRIBUTION).code
    assert "from torch.distributions import Distribution\n" in once and "class Own(Distribution):" in once
    assert "class Distribution_:" in once and "-> Distribution_:" in once
    assert convert(once).code == once


REPLACED = """from torch import nn


class Own(nn.Module):
    def forward(self, x):
        return torch.relu(x)


class Net(nn.Module):
    def __init__(self, own):
        super().__init__()
        self.loss = nn.BCEWithLogitsLoss(reduction="none")
        if own:
            self.loss = Own()

    def forward(self, x, y):
        return self.loss(x, y)
"""


def test_a_module_in_the_place_of_a_converted_one_is_marked_no_second_time() -> None:
    once = convert("import torch\n" + REPLACED).code
    assert "self.loss = Own(rngs=rngs)" in once
    assert convert(once).code == once


FUNCTIONS_LEFT = """import torch
from torch import nn


def build(parameters, name, conf):
    cls = getattr(torch.optim, name)
    return cls(parameters, **conf)


class Embedding(nn.Embedding):
    def train(self, mode=True):
        nn.Embedding.train(self, mode)
        if mode:
            self.merged = False


def turned(encoder, x):
    mask = encoder(x)[1]
    return torch.relu(mask.permute(1, 0).unsqueeze(2)), mask.permute(0, -1)
"""


def test_nothing_more_is_said_inside_a_function_that_was_left() -> None:
    once = convert(FUNCTIONS_LEFT)
    assert once.gaps
    assert convert(once.code).code == once.code


WRITTEN = {
    "metadata of Flax": "    w = nnx.Param(x)\n    w.set_metadata(lr=0.1)\n",
    "a transposition by a list": "    x = x.transpose([0, 2, 1])\n",
    "a divergence": "    d = torch.distributions.Normal(x, x)\n    x = d.kl_divergence(d)\n",
}


@pytest.mark.parametrize("lines", WRITTEN.values(), ids=WRITTEN)
def test_what_only_output_has_is_no_gap_in_output(lines: str) -> None:
    head = "import jax.numpy as jnp\nimport torch\nfrom flax import nnx\n\n\n"
    assert not convert(f"{head}def f(x: torch.Tensor):\n{lines}    return x\n").gaps


DATA = """import jax
from flax import nnx
import torch


class Bank(nnx.Module):
    def __init__(self, blur, *, rngs: nnx.Rngs):
        self.blur = nnx.data(None)
        self.memory: jax.Array | None = None
        if blur:
            self.blur = nnx.Linear(3, 3, rngs=rngs)

    def fill(self, sampler):
        self.memory = sampler(torch.jit.load("x"))
"""


def test_what_an_earlier_conversion_left_unmarked_stays() -> None:
    code = convert(DATA).code
    assert "self.blur = nnx.Linear(3, 3, rngs=rngs)\n" in code and code.count("nnx.data(") == 1


def test_a_first_batch_whose_order_is_kept_is_made_arrays_once() -> None:
    text = (
        "import torch\nfrom torch.utils.data import DataLoader\n\n\ndef run(data):\n"
        "    loader = DataLoader(data)\n    batch = next(iter(loader))\n    for k, v in batch.items():\n"
        "        print(k, torch.relu(v))\n    for x, y in loader:\n        print(torch.relu(x))\n\n\n"
        "def other(y):\n    return y + 1\n"
    )
    once = convert(text).code
    assert "jax.tree.map(jnp.asarray, OrderedDict(next(iter(loader))))" in once
    assert "x = jnp.asarray(x)" in once and "y = " not in once
    assert convert(once).code == once
