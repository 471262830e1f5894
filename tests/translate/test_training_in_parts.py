"""Train steps whose model, loss and batches come from elsewhere: callers, settings, iterators of loaders."""

from __future__ import annotations

import re
from typing import Any

import pytest

from t2j_lsp import convert

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"
STEP = """\
def step(model{annotated}, x, y, optimizer, loss_fn{loss}, k=2):
    {computed}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()
"""


def stepped(computed: str, annotated: str = "", loss: str = "") -> str:
    done = convert(HEAD + STEP.format(computed=computed, annotated=annotated, loss=loss))
    assert not done.gaps
    return done.code


@pytest.mark.parametrize("computed", ["loss = F.cross_entropy(model(x), y)", "loss = F.mse_loss(model(x), target=y)"])
def test_what_a_loss_compares_with_is_an_array_whatever_is_known_of_it(computed: str) -> None:
    assert "static_argnames" not in stepped(computed)


@pytest.mark.parametrize(
    "computed", ["loss = model(torch.cat([x, y], 1)).mean()", "loss = F.mse_loss(model(x), torch.stack((y, y)).sum(0))"]
)
def test_what_is_joined_in_a_list_is_an_array(computed: str) -> None:
    assert "static_argnames" not in stepped(computed, ": nn.Module")


@pytest.mark.parametrize(
    "computed", ["loss = F.cross_entropy(model(x)[:, :k], y)", "loss = F.mse_loss(model(x).reshape([k, -1]), y)"]
)
def test_what_shapes_are_made_of_is_known_when_it_is_traced(computed: str) -> None:
    assert 'static_argnames="k"' in stepped(computed)


@pytest.mark.parametrize("loss", ["", ": nn.Module", ": torch.nn.Module"])
def test_a_loss_that_is_called_a_module_may_be_a_function(loss: str) -> None:
    code = stepped("loss = loss_fn(model(x), y)", ": nn.Module", loss)
    assert "train_step(model, optimizer, jax.tree_util.Partial(loss_fn), x, y)" in code
    assert "value_and_grad(lambda model: loss_fn(model(x), y))(model)" in code


CONDITIONAL = """\
def on_batch(model, loss_fn, x, y, optimizer=None, reduction="mean"):
    loss = loss_fn(model(x), y, reduction=reduction)

    if optimizer is not None:
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return loss.item(), len(x)
"""


def test_a_step_that_is_made_where_there_is_an_optimizer_keeps_its_settings() -> None:
    done = convert(HEAD + CONDITIONAL)
    assert not done.gaps
    assert '@nnx.jit(static_argnames="reduction")\ndef train_step(' in done.code
    assert 'eval_step = nnx.jit(compute_loss, static_argnames="reduction")' in done.code


def test_a_parameter_may_have_the_name_of_something_of_the_module_level() -> None:
    """PyTorch's `nn_tutorial`: `loss_func = F.cross_entropy`, and `loss_batch(model, loss_func, xb, yb, opt=None)`."""
    done = convert(HEAD + "loss_fn = F.cross_entropy\n\n\n" + CONDITIONAL)
    assert not done.gaps
    assert "eval_step(model, jax.tree_util.Partial(loss_fn), x, y, reduction)" in done.code


def test_a_step_that_turns_out_not_to_be_one_when_it_is_written_is_left() -> None:
    text = stepped("loss = F.cross_entropy(model(x), y)")
    assert "value_and_grad" in text
    clipped = STEP.replace(
        "    optimizer.step()", "    nn.utils.clip_grad_norm_(model.parameters())\n    optimizer.step()"
    )
    done = convert(HEAD + clipped.format(computed="loss = F.cross_entropy(model(x), y)", annotated="", loss=""))
    assert any("what the gradients are clipped to" in gap.reason for gap in done.gaps)
    assert "loss.backward()" in done.code


ITERATORS = """\
from torch.utils.data import DataLoader


class Endless:
    def __init__(self, data):
        self.loader = DataLoader(data, batch_size=4)
        self.batches = iter(self.loader)

    def next(self):
        try:
            batch = next(self.batches)
        except StopIteration:
            self.batches = iter(self.loader)
            batch = next(self.batches)
        return batch


def train(model, data, optimizer, steps):
    endless = Endless(data)
    for _ in range(steps):
        batch = [t.to("cpu") for t in endless.next()]
        x, y = batch
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_batches_that_an_object_takes_from_an_iterator_are_arrays() -> None:
    done = convert(HEAD + ITERATORS)
    assert not done.gaps
    assert done.code.count("batch = jax.tree.map(jnp.asarray, next(self.batches))") == 2
    assert "batch = [t for t in endless.next()]" in done.code


@pytest.mark.parametrize("taken", ["x, y = next(batches)", "x, y = next(batches, None)"])
def test_an_iterator_that_is_made_again_gives_arrays(taken: str) -> None:
    text = f"""\
from torch.utils.data import DataLoader

loader = DataLoader(torch.zeros(8, 3))
batches = iter(loader)
for step in range(9):
    if step == 5:
        batches = iter(loader)
    {taken}
    print(x.view(-1).mean(), y.size(0))
"""
    code = convert(HEAD + text).code
    assert f"x, y = jax.tree.map(jnp.asarray, {taken.partition(' = ')[2]})" in code
    assert "print(x.reshape(-1).mean(), y.shape[0])" in code


METERED = """\
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen, total, parts = [], 0.0, 2
for step in range(6):
    x = torch.randn(4, 3)
    loss = (model(x) ** 2).mean()
    {told}
    {scaled}
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    "message", ["seen.append(loss.item())", "total += float(loss) * len(x)", "print(loss.item(), step)"]
)
@pytest.mark.parametrize("scaled", ["loss = loss / parts", "if parts > 1: loss = loss / parts", "loss /= parts"])
def test_a_loss_that_is_told_before_it_is_scaled_is_kept(message: str, scaled: str) -> None:
    done = convert(HEAD + METERED.format(told=message, scaled=scaled))
    assert not done.gaps
    assert "        raw_loss = loss\n" in done.code
    assert re.search(r"    raw_loss = (bound_jit\()?train_step\b", done.code)
    assert message.replace("loss", "raw_loss") in done.code


def test_a_loss_that_is_kept_and_changed_in_place_is_left() -> None:
    assert not convert(HEAD + METERED.format(told="seen.append(loss)", scaled="loss = loss / parts")).gaps
    assert convert(HEAD + METERED.format(told="seen.append(loss)", scaled="loss /= parts")).gaps


def test_a_batch_that_is_fetched_in_front_of_the_backward_pass_is_fetched_behind_the_step() -> None:
    loop = """\
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(4, 3), torch.zeros(4)
for step in range(4):
    loss = F.cross_entropy(model(x), y.long())
    x, y = torch.randn(4, 3), torch.zeros(4)
    {used}
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    done = convert(HEAD + loop.format(used=""))
    assert not done.gaps
    assert "    train_step(x, y)\n    x, y = rngs.normal((4, 3)), jnp.zeros(4)" in done.code
    used = convert(HEAD + loop.format(used="loss = loss + x.mean() * 0 + model(x).mean()"))
    assert "    x, y = rngs.normal((4, 3)), jnp.zeros(4)\n" in used.code
    assert "train_step(model, optimizer, x, y)\n    x, y =" not in used.code


def test_what_each_branch_gives_a_value_first_is_no_input_of_the_step() -> None:
    text = """\
model = nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(targets, forced: bool):
    loss = 0
    given = torch.zeros(1, 3)
    if forced:
        for target in targets:
            out = model(given)
            loss += F.mse_loss(out, target)
            given = target
    else:
        for target in targets:
            out = model(given)
            best, at = out.topk(1)
            given = torch.zeros(1, 3) + best
            loss += F.mse_loss(out, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()
"""
    done = convert(HEAD + text)
    assert not done.gaps
    assert "def train_step(model, optimizer, targets, forced)" in done.code
    assert "bound_jit(train_step, model, optimizer, forced=forced)(targets)" in done.code


CLIPPED = """\
def train(model, loader, criterion, optimizer, clip=1.0):
    for x, y in loader:
        {first}loss = criterion(model(x), y)
        {second}loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        {third}optimizer.step()
        print(loss.item())
"""
ZERO = "optimizer.zero_grad()\n        "


@pytest.mark.parametrize(("first", "second"), [(ZERO, ""), ("", ZERO), (ZERO, ZERO)])
def test_gradients_that_are_zeroed_in_front_of_the_pass_do_not_add_up(first: str, second: str) -> None:
    done = convert(HEAD + CLIPPED.format(first=first, second=second, third=""))
    assert not done.gaps
    assert "zero_gradients" not in done.code
    assert "loss, grads = gradients(model, jax.tree_util.Partial(criterion), x, y)\n        if clip:" in done.code


def test_gradients_that_are_zeroed_in_between_on_a_condition_are_zeroed_there() -> None:
    code = convert(HEAD + CLIPPED.format(first=ZERO, second="", third="if not clip:\n            " + ZERO)).code
    assert "        if not clip:\n            grads = zero_gradients(model)\n        apply_gradients_graph(" in code


HELD = """\
class Trainer:
    def __init__(self, model, opt, criterion):
        self.model, self.opt, self.criterion = model, opt, criterion

    def fit(self, loader):
        for x, y in loader:
            self.opt.zero_grad()
            loss = self.criterion(self.model(x), y)
            loss.backward()
            self.opt.step()
"""


def test_a_loss_that_an_object_was_given_is_a_function_and_takes_arrays() -> None:
    done = convert(HEAD + HELD)
    assert not done.gaps
    assert "@nnx.jit\ndef train_step(model, opt, criterion, x, y):" in done.code
    assert "self.model, self.opt, jax.tree_util.Partial(self.criterion), x, y\n" in done.code


@pytest.mark.jax
def test_a_loss_that_an_object_was_given_may_be_a_module() -> None:
    import jax.numpy as jnp
    import optax
    from flax import nnx

    class Weighted(nnx.Module):
        def __init__(self) -> None:
            self.weight = nnx.BatchStat(jnp.arange(3.0))

        def __call__(self, x: Any, y: Any) -> Any:
            return jnp.mean(self.weight * (x - y) ** 2)

    made: dict[str, Any] = {}
    exec(convert(HEAD + HELD).code, made)
    model = nnx.Linear(3, 3, rngs=nnx.Rngs(0))
    before = model.kernel[...]
    x = jnp.linspace(-1, 1, 12).reshape(4, 3)
    made["Trainer"](model, nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param), Weighted()).fit([(x, x + 1)])
    moved = jnp.abs(model.kernel[...] - before).max(axis=0)
    assert moved[0] == 0 and (moved[1:] > 0).all()


UPDATERS = """\
import torch
from torch import nn


def epoch(net, batches, updater):
    for x, y in batches:
        loss = nn.functional.mse_loss(net(x), y)
        if isinstance(updater, torch.optim.Optimizer):
            # PyTorch's own
            updater.zero_grad()
            loss.backward()
            updater.step()
        else:
            loss.sum().backward()
            updater(x.shape[0])


net = nn.Linear(2, 1)
batches = [(torch.randn(4, 2), torch.randn(4, 1))]
epoch(net, batches, {given})
"""


def test_a_branch_for_what_is_never_given_goes() -> None:
    done = convert(UPDATERS.format(given="torch.optim.SGD(net.parameters(), lr=0.1)"))
    assert not done.gaps, done.gaps
    assert "isinstance(updater" not in done.code and "train_step(net, updater, x, y)" in done.code
    assert any("the other branch goes" in note.reason for note in done.notes)


@pytest.mark.parametrize("given", ["make_updater()", "torch.optim.SGD(net.parameters(), lr=0.1) if net else print"])
def test_a_branch_stays_for_what_may_be_given(given: str) -> None:
    done = convert(UPDATERS.format(given=given))
    assert [gap.code for gap in done.gaps][:1] == ["training-loop"], done.gaps
    assert "isinstance(updater, " in done.code


def test_what_a_loop_gives_a_value_first_and_the_step_later_is_no_input() -> None:
    text = """\
def train(args, loader, model, criterion, optimizer):
    for x, y in loader:
        outputs = []
        for run in range(args.runs):
            output = model(x)
            outputs.append(output)
        output = torch.mean(torch.stack(outputs), dim=0)
        loss = criterion(output, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        output = output.float()
        print(loss.item(), output.mean().item())
"""
    done = convert(HEAD + text)
    assert not done.gaps
    assert "def train_step(model, optimizer, criterion, x, outputs, y, runs):\n    def loss_fn(model):\n" in done.code


def test_a_dtype_of_the_function_around_is_a_setting_of_the_step() -> None:
    text = """\
def train(model, loader, dtype: torch.dtype):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = F.mse_loss(model(x), y.to(dtype))
        if dtype == torch.float32:
            loss = loss * 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
    done = convert(HEAD + text)
    assert not done.gaps
    assert '@nnx.jit(static_argnames="dtype")\ndef train_step(model, optimizer, x, y, dtype):\n' in done.code
    assert "        train_step(model, optimizer, x, y, dtype)\n" in done.code
