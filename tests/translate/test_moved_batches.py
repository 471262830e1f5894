"""Batches that a loop moves to a device, whole and in parts: each is an array before a compiled step takes it."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

TEXT = """\
import torch
import torch.nn as nn
from torch.utils.data import DataLoader

device = "cpu"
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for {target} in DataLoader(torch.zeros(8, 3)):
    {moved}
    loss = nn.functional.cross_entropy({out}, {y})
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def converted(target: str, *moved: str, out: str = "model(x)", y: str = "y") -> str:
    done = convert(TEXT.format(target=target, moved="\n    ".join(moved), out=out, y=y))
    assert not done.gaps
    assert convert(done.code).code == done.code
    return done.code


@pytest.mark.parametrize(("first", "second"), [("0", "1"), ("'x'", "'y'")])
def test_items_that_are_moved_one_by_one_are_all_arrays(first: str, second: str) -> None:
    code = converted("batch", f"x = batch[{first}].to(device)", "print(len(x))", f"y = batch[{second}].cuda()")
    assert f"    x = np.asarray(batch[{first}])\n" in code
    assert f"    y = np.asarray(batch[{second}])\n" in code


def test_what_is_moved_beside_a_call_of_the_model_is_an_array_before_the_step() -> None:
    code = converted("d", 'y, out = d["y"].to(device), model(d["x"])', out="out")
    assert "    d = jax.tree.map(" in code and 'y, out = d["y"], model(d["x"])' in code


def test_an_item_that_is_not_moved_makes_the_batch_arrays() -> None:
    code = converted("batch", "x = batch[0].to(device)", "y = batch[1]")
    assert "    batch = jax.tree.map(jnp.asarray, batch)\n    x = batch[0]\n    y = batch[1]\n" in code


@pytest.mark.parametrize("moved", ["out = model(x.to(device))", "out = model(x.to(device)).view(-1, 2)"])
def test_what_a_step_moves_is_an_array_before_it(moved: str) -> None:
    code = converted("x, y", moved, out="out", y="y.to(device)")
    assert "    x, y = np.asarray(x), np.asarray(y)\n" in code
    assert "model(x)" in code


def test_what_is_moved_in_place_is_converted_there() -> None:
    code = converted("x, y", "x, y = x.to(device), y.to(device)")
    assert code.count("np.asarray") == 2
    code = converted("batch", "batch = tuple(t.to(device) for t in batch)", "x, y = batch")
    assert "batch = tuple(jnp.asarray(t) for t in batch)" in code


@pytest.mark.parametrize("device", ["'cuda'", "'cpu'", "device"])
def test_a_batch_is_moved_in_front_of_the_step_whatever_the_device_is_called(device: str) -> None:
    code = converted("x, y", f"x, y = x.to({device}), y.to({device})")
    assert "\n    x, y = np.asarray(x), np.asarray(y)\n" in code


ADDED = """\
import torch
import torch.nn as nn


def train(model, loader, optimizer, loss_fn, every):
    {first}
    for i, (x, y) in enumerate(loader):
        loss = loss_fn(model(x), y) / every
        loss.backward()
        if {test}:
            optimizer.step()
            optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("first", "test", "said"),
    [
        ("model.train()", "(i + 1) % every == 0", True),
        ("optimizer.zero_grad()", "(i + 1) % every == 0", False),
        ("optimizer = torch.optim.Adam(model.parameters())", "(i + 1) % every == 0", False),
        ("model.train()", "(i + 1) % every == 0 or i + 1 == len(loader)", False),
    ],
)
def test_gradients_that_wait_for_a_step_in_the_next_call_are_told(first: str, test: str, said: bool) -> None:
    done = convert(ADDED.format(first=first, test=test))
    assert not done.gaps
    assert any("still waiting for a step" in finding.reason for finding in done.findings) is said


NAMED = """\
from torch.utils.data import DataLoader


def predict(model, data):
    seen = []
    for batch in DataLoader(data):
        {first}
        ids = batch["ids"].to("cpu")
        seen.extend(model(ids))
    return seen
"""


@pytest.mark.parametrize("first", ["texts = batch['text']", "print(batch['text'])"])
def test_items_that_stay_where_they_are_may_be_texts(first: str) -> None:
    code = convert("import torch\n" + NAMED.format(first=first)).code
    assert 'lambda t: jnp.asarray(t) if hasattr(t, "shape") else t, batch' in " ".join(code.split())


IN_A_FUNCTION = """\
import torch
import torch.nn as nn
from torch.utils.data import DataLoader


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        return self.layer(x)


def loss_of(net, batch):
    return net(batch).mean()


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in DataLoader(torch.zeros(8, 3)):
    optimizer.zero_grad()
    loss = {loss}
    loss.backward()
    optimizer.step()
    print(batch.data.sum())
"""


@pytest.mark.parametrize("loss", ["model(batch).mean()", "model.forward(batch).mean()", "loss_of(model, batch)"])
def test_a_batch_that_a_function_gives_a_module_is_one_tensor(loss: str) -> None:
    done = convert(IN_A_FUNCTION.format(loss=loss))
    assert not done.gaps
    assert "    batch = jnp.asarray(batch)\n" in done.code
    assert "print(batch.sum())" in done.code


def test_tensors_that_an_image_data_set_holds_are_arrays_where_they_are_read() -> None:
    """``MNIST(...).data`` is a PyTorch tensor, of which JAX code takes an array; what a loader is made of stays."""
    source = """\
import torch
from torch.utils.data import DataLoader, TensorDataset
from torchvision import datasets

mnist = datasets.MNIST("data", train=False)
x = torch.unsqueeze(mnist.test_data, dim=1).type(torch.FloatTensor)[:20] / 255.
y = mnist.targets[:20].numpy()
print(mnist.data.shape, len(mnist.targets), x.mean(), y)
loader = DataLoader(TensorDataset(mnist.data, mnist.targets))
"""
    done = convert(source)
    assert not done.gaps
    assert "x = jnp.asarray(mnist.test_data)[:, None].astype(jnp.float32)[:20] / 255." in done.code
    assert "y = np.asarray(jnp.asarray(mnist.targets)[:20])" in done.code
    assert "print(mnist.data.shape, len(" in done.code
    assert "TensorDataset(mnist.data, mnist.targets)" in done.code


OBJECTS = """\
import torch
import torch.nn as nn
from torch.utils.data import DataLoader


class Batch:
    def __init__(self, x, y):
        self.x, self.y = x, y


def batches(count):
    for _ in range(count):
        yield Batch(torch.ones(4, 3), torch.ones(4, 2))


def run(batches, model, optimizer):
    for batch in batches:
        loss = nn.functional.mse_loss(model(batch.x), batch.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def test_what_a_batch_that_is_an_object_holds_is_passed() -> None:
    done = convert(OBJECTS + "run(batches(3), model, optimizer)\n")
    assert not done.gaps
    assert "bound_jit(train_step, model, optimizer)(batch.x, batch.y)" in done.code
    assert "jax.tree.map" not in done.code


def test_a_loader_of_objects_is_told() -> None:
    done = convert(OBJECTS + "run(DataLoader(torch.zeros(8, 3), collate_fn=Batch), model, optimizer)\n")
    assert any("objects" in gap.reason for gap in done.gaps), done.gaps


HELD = """
import torch

class Data:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def to(self, device):
        for k, v in self.__dict__.items():
            setattr(self, k, v.to(device))
        return self

net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for batch in [Data(torch.ones(2), torch.zeros(1))]:
    batch = batch.to("cpu")
    optimizer.zero_grad()
    loss = (net(batch.x) - batch.y).square().sum()
    loss.backward()
    optimizer.step()
"""


def test_what_a_loop_over_a_dict_moves_is_a_tensor() -> None:
    done = convert(HELD)
    assert not done.gaps and "v.to(" not in done.code


MOVES = {
    "parts of a batch": "def f(batch, device):\n    g, t = batch\n    return g{to}, t{to}\n",
    "a list of them": "def f(batch, device):\n    return [x{to} for x in batch]\n",
}


@pytest.mark.parametrize("to", [".to(device)", ".to(device, non_blocking=True)", ".to(device=device)"])
@pytest.mark.parametrize("text", MOVES.values(), ids=MOVES)
def test_what_is_moved_to_a_device_stays_where_it_is(text: str, to: str) -> None:
    done = convert("import torch\n\n\n" + text.format(to=to))
    assert ".to(" not in done.code and not done.gaps


def test_a_class_with_a_way_to_move_keeps_it() -> None:
    own = "class Pair:\n    def to(self, device):\n        self.moved = device\n        return self\n\n\n"
    code = convert("import torch\n\n\n" + own + MOVES["parts of a batch"].format(to=".to(device)")).code
    assert "return g.to(device), t.to(device)" in code
