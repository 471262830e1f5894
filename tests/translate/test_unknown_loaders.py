"""Functions that are given a loader and a model by another file: what the loader yields is PyTorch's there."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx
from torch.utils.data import DataLoader, TensorDataset

from t2j_lsp import convert

EVALUATE = """import torch
import torch.nn as nn


def run(model, {loader}):
    model.eval()
    seen, ys = [], []
    with torch.no_grad():
        for {items} in {loop}:
            {body}
    return seen
"""
BODIES = {
    "moved": (
        "x, y = x.to('cpu'), y.to('cpu')\n            seen.append((model(x).argmax(1) == y).float().mean().item())"
    ),
    "a loss": "seen.append(nn.functional.cross_entropy(model(x), y).item())",
    "an output with a name": "out = model(x)\n            seen.append((out.argmax(1) == y).sum().item())",
    "labels that are joined": "seen.append(model(x)); ys.append(y)\n    seen = torch.cat(seen), torch.cat(ys)",
    "parts of labels": "_, top = model(x).topk(1, dim=1)\n            seen.append((top == y[:, None]).sum().item())",
    "labels that are compared": "seen.append((model(x).argmax(1) == y.view(-1)).sum().item())",
    "statistics behind a size": "torch.numel(y[0]); seen.append(torch.mean(y * 1.0).item() + torch.mean(x).item())",
    "statistics": "seen.append(torch.mean(x ** 2, dim=0).sum().item())",
    "a call of forward": "x = x.to('cpu'); seen.append(model.forward(x).sum().item())",
    "labels that are counted": "out = model(x)\n            seen.append(out.sum().item() + y.size(0))",
}


BOTH = "x, y = jnp.asarray(x), jnp.asarray(y)"


def ran(code: str, model: Any) -> Any:
    space: dict[str, Any] = {}
    exec(compile(code, "program", "exec"), space)
    x, y = torch.linspace(-1, 1, 24).reshape(8, 3), torch.arange(8) % 2
    return space["run"](model, DataLoader(TensorDataset(x, y), batch_size=4))


@pytest.fixture(scope="module")
def models() -> tuple[torch.nn.Module, nnx.Module]:
    layer = torch.nn.Linear(3, 2)
    model = nnx.Linear(3, 2, rngs=nnx.Rngs(0))
    model.kernel[...], model.bias[...] = jnp.asarray(layer.weight.detach().T), jnp.asarray(layer.bias.detach())
    return layer, model


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_what_a_loader_yields_is_made_arrays(body: str, models: tuple[torch.nn.Module, nnx.Module]) -> None:
    source = EVALUATE.format(loader="test_loader", items="x, y", loop="test_loader", body=body)
    done = convert(source)
    assert not done.gaps
    assert "jnp.asarray(x)" in done.code
    assert ".to(" not in done.code
    for own, torchs in zip(ran(done.code, models[1]), ran(source, models[0]), strict=True):
        np.testing.assert_allclose(own, torchs, rtol=1e-5)


@pytest.mark.parametrize(
    ("loader", "loop", "items", "body", "line"),
    [
        ("loaders", "loaders['val']", "x, _", "seen.append(model(x))", "x = jnp.asarray(x)"),
        (
            "loader",
            "enumerate(loader)",
            "i, (x, y)",
            "seen.append(model(x, y))",
            "x, y = jnp.asarray(x), jnp.asarray(y)",
        ),
        ("loader", "loader", "batch", "seen.append(model(batch[0]))", "batch = jax.tree.map(jnp.asarray, batch)"),
        ("loader", "loader", "x, names", "seen.append((model(x), names))", "x = jnp.asarray(x)"),
        ("loader", "loader", "x, names", "out = model(x)\n            seen += zip(out, names)", "x = jnp.asarray(x)"),
        (
            "loader",
            "loader",
            "x, names",
            "out = model(x)\n            seen += [seen[out[0]] == names[0]]",
            "x = jnp.asarray(x)",
        ),
        ("loader", "loader", "x, name", "out = model(x)\n            save(out, name)", "x = jnp.asarray(x)"),
        ("loader", "loader", "x, y", "out = model(x)\n            seen.append(dice_score(out, y))", BOTH),
    ],
)
def test_of_what_a_loader_yields_that_is_made_an_array_which_a_model_gets(
    loader: str, loop: str, items: str, body: str, line: str
) -> None:
    code = convert(EVALUATE.format(loader=loader, loop=loop, items=items, body=body)).code
    assert f"        {line}\n" in code


@pytest.mark.parametrize(
    ("loader", "body"), [("things", "seen.append(model(x))"), ("loader", "seen.append(x)"), ("loader", "print(x, y)")]
)
def test_what_may_be_no_batch_stays(loader: str, body: str) -> None:
    assert "asarray" not in convert(EVALUATE.format(loader=loader, loop=loader, items="x, y", body=body)).code


def test_a_model_that_nothing_says_more_of_has_the_name_of_one() -> None:
    source = "import torch\n\n\ndef run(model, loader):\n    for x, y in loader:\n        print(torch.mean(model(x)))\n"
    assert "        x = jnp.asarray(x)\n" in convert(source).code
    assert "asarray" not in convert(source.replace("model", "score")).code


def test_labels_beside_an_output_are_arrays_for_a_step() -> None:
    source = (
        "import torch\n\n\ndef train(model, loader, optimizer, criterion):\n    for x, y in loader:\n"
        "        optimizer.zero_grad()\n        loss = criterion(model(x), y)\n        loss.backward()\n"
        "        optimizer.step()\n"
    )
    done = convert(source)
    assert not done.gaps
    assert "        x, y = jnp.asarray(x), jnp.asarray(y)\n" in done.code


TRAINING = """import torch


def train(model, criterion, optimiser, batches, device):
    for j, (x, y) in enumerate(batches):
        optimiser.zero_grad()
        y = y.to(device)
        loss = criterion(model.forward(x.to(device)), y)
        loss.backward()
        optimiser.step()
"""


def test_a_model_may_be_called_by_its_forward() -> None:
    done = convert(TRAINING)
    assert not done.gaps
    assert done.code == convert(TRAINING.replace("model.forward(", "model(")).code


@pytest.mark.parametrize(("base", "called"), [("nn.Module", "model(x)"), ("object", "model.forward(x)")])
def test_what_has_a_forward_is_a_module_where_no_other_class_has_one(base: str, called: str) -> None:
    head = "import torch\nfrom torch import nn\n\n\n"
    cls = f"class Dense({base}):\n    def forward(self, x):\n        return torch.relu(x)\n\n\n"
    assert f"return {called}\n" in convert(f"{head}{cls}def run(model, x):\n    return model.forward(x)\n").code


SCALED = TRAINING.replace("device):", "scaler):").replace("        y = y.to(device)\n", "").replace("x.to(device)", "x")
STEPPED = "        scaler.scale(loss).backward()\n        scaler.step(optimiser)\n        scaler.update()\n"


def test_a_scaler_and_its_optimizer_are_seen_by_what_is_done_with_them() -> None:
    done = convert(SCALED.replace("        loss.backward()\n        optimiser.step()\n", STEPPED))
    assert not done.gaps
    assert "optimiser.update(model, grads)" in done.code
    assert "scale(" not in done.code


SEVERAL = """import torch


def train(encoder, decoder, {names}, batches):
    for x, y in batches:
        {names[0]}.zero_grad()
        {names[1]}.zero_grad()
        h = encoder(x)
        loss = torch.mean((decoder(h) - y) ** 2)
        loss.backward()
        {names[0]}.step()
        {names[1]}.step()
"""


@pytest.mark.parametrize(
    ("first", "second", "told_apart"),
    [
        ("encoder_optimizer", "decoder_optimizer", True),
        ("opt_encoder", "opt_decoder", True),
        ("first", "second", False),
    ],
)
def test_optimizers_are_told_apart_by_their_modules_names(first: str, second: str, told_apart: bool) -> None:
    source = SEVERAL.replace("{names}", f"{first}, {second}").replace("{names[0]}", first).replace("{names[1]}", second)
    done = convert(source)
    assert bool(done.gaps) is not told_apart
    if told_apart:
        assert f"{first}.update(encoder, " in done.code and f"{second}.update(decoder, " in done.code
