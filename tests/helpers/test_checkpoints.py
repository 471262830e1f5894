"""Checkpoints: names and layouts of PyTorch, files that are read again, and files that `torch.save` wrote."""

import argparse
import collections
import copy
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch
from flax import nnx

from t2j_lsp.contract import Options
from t2j_lsp.rules.helpers import norm
from t2j_lsp.rules.helpers.checkpoints import (
    StateDict,
    load_pickle,
    load_state_dict,
    read_pickle,
    read_plain_pickle,
    safe_globals,
    save_pickle,
)
from t2j_lsp.rules.helpers.training import LRScheduler
from t2j_lsp.translate import translate
from t2j_lsp.weights import load_torch_state
from tests.translate.printed import printed

SOURCE = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 4, (2, 3)), nn.BatchNorm2d(4), nn.ReLU(), nn.ConvTranspose2d(4, 5, 3))
        self.blocks = nn.ModuleList([nn.Linear(2, 3, bias=False) for _ in range(2)])
        self.by_name = nn.ModuleDict({"norm": nn.LayerNorm(3), "group": nn.GroupNorm(2, 4)})
        self.embed = nn.Embedding(5, 3)
        self.rnn = nn.LSTM(3, 4, num_layers=2, dropout=0.1)
        self.attention = nn.MultiheadAttention(4, 2, dropout=0.1)
        self.prelu = nn.PReLU()
        self.scale = nn.Parameter(torch.ones(3))
        self.register_buffer("table", torch.arange(4.0))
        self.register_buffer("cache", torch.zeros(2), persistent=False)
        self.tied = nn.Linear(3, 5, bias=False)
        self.tied.weight = self.embed.weight

    def forward(self, x):
        return self.net(x)
"""


@pytest.fixture(scope="module")
def pair() -> tuple[torch.nn.Module, Callable[[], nnx.Module]]:
    """A module of PyTorch's with random values, and what makes its conversion with other ones."""
    spaces = []
    for code in (SOURCE, translate(SOURCE, Options(helpers="import")).code):
        module = ModuleType("net")
        exec(code, module.__dict__)
        spaces.append(module.__dict__)
    net = spaces[0]["Net"]()
    with torch.no_grad():
        for value in net.state_dict().values():
            value.copy_(torch.rand(value.shape) + 1)
    return net, lambda: spaces[1]["Net"](rngs=nnx.Rngs(1))


def equal(result: dict, wanted: dict) -> None:
    wanted = {name: value for name, value in wanted.items() if not name.endswith("num_batches_tracked")}
    assert result.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_array_equal(result[name], np.asarray(value), err_msg=name)


def test_a_state_dict_has_pytorchs_names_and_layouts(pair: tuple) -> None:
    net, make = pair
    module = load_torch_state(make(), {k: v.numpy() for k, v in net.state_dict().items()})
    equal(dict(StateDict(module)), net.state_dict())


def test_a_fresh_module_is_walked_in_pytorchs_order(pair: tuple) -> None:
    net, make = pair
    names = [name for name in StateDict(make()) if not name.startswith(("rnn", "attention"))]
    assert sorted(names) == sorted(n for n in net.state_dict() if n in names)
    assert names[:2] == ["scale", "table"]


def test_files_of_pytorch_are_read_without_it(pair: tuple, tmp_path: Path) -> None:
    net, make = pair
    state = {
        **net.state_dict(),
        "turned": torch.arange(6.0).reshape(2, 3).T,
        "half": torch.ones(2, dtype=torch.bfloat16),
        "empty": torch.zeros(0, 2),
        "flags": torch.tensor([True, False]),
        "parameter": torch.nn.Parameter(torch.ones(2)),
    }
    torch.save({"epoch": 3, "size": torch.Size([2]), "model": state, "rate": 0.1}, tmp_path / "old.pth")
    loaded = load_pickle(tmp_path / "old.pth")
    assert (loaded["epoch"], loaded["rate"], loaded["size"]) == (3, 0.1, (2,))
    model = loaded["model"]
    np.testing.assert_array_equal(model["turned"], [[0, 3], [1, 4], [2, 5]])
    assert model["half"].dtype == jnp.bfloat16 and model["empty"].shape == (0, 2)
    assert model["flags"].tolist() == [True, False] and model["parameter"].tolist() == [1, 1]
    module = make()
    load_state_dict(module, {name: model[name] for name in net.state_dict()})
    equal(dict(StateDict(module)), net.state_dict())


@pytest.mark.parametrize("read", [load_pickle, read_pickle, read_plain_pickle])
def test_a_checkpoint_is_read_as_it_was_written(
    pair: tuple, tmp_path: Path, read: Callable[[Path], dict[object, Any]]
) -> None:
    net, make = pair
    module, path = load_torch_state(make(), {k: v.numpy() for k, v in net.state_dict().items()}), tmp_path / "new.pth"
    save_pickle({"epoch": 3, "model": StateDict(module), "losses": [jnp.array(0.5)], 7: {"a": (1, "b")}}, path)
    loaded = read(path)
    assert (loaded["epoch"], loaded["losses"], loaded[7]) == (3, [0.5], {"a": (1, "b")})
    assert type(loaded["losses"][0]) is np.ndarray and type(loaded["model"]) is dict
    equal(loaded["model"], net.state_dict())


@pytest.mark.parametrize("write", [save_pickle, torch.save])
def test_an_open_file_is_written_and_read_and_stays_open(
    write: Callable[[object, object], None], tmp_path: Path
) -> None:
    with open(tmp_path / "net.pth", "wb") as file:
        write({"epoch": 3}, file)
        assert not file.closed
    with open(tmp_path / "net.pth", "rb") as file:
        assert load_pickle(file) == {"epoch": 3} and not file.closed
    buffer = io.BytesIO()
    write({"epoch": 4}, buffer)
    buffer.seek(0)
    assert load_pickle(buffer) == {"epoch": 4}
    buffer.seek(0)
    if write is save_pickle:
        assert read_pickle(buffer) == {"epoch": 4}


def test_values_that_are_written_one_after_the_other_are_read_so(tmp_path: Path) -> None:
    with open(tmp_path / "two.pth", "wb") as file:
        save_pickle(jnp.arange(3), file)
        save_pickle({"epoch": 3}, file)
    with open(tmp_path / "two.pth", "rb") as file:
        assert load_pickle(file).tolist() == [0, 1, 2] and load_pickle(file) == {"epoch": 3}


def test_a_state_dict_follows_the_module_and_its_copy_does_not() -> None:
    module = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
    state, kept = StateDict(module), copy.deepcopy(StateDict(module))
    module.bias[...] = jnp.ones(2)
    assert state["bias"].tolist() == [1, 1] and kept["bias"].tolist() == [0, 0]
    state["bias"] = jnp.zeros(2)
    assert module.bias[...].tolist() == [1, 1]
    del state["weight"]
    assert list(state) == ["bias"] and len(state) == 1


def test_what_does_not_fit_is_said_and_nothing_is_loaded() -> None:
    module = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    before = copy.deepcopy(StateDict(module))
    state = {"weight": np.ones((2, 3)), "other": np.ones(2)}
    with pytest.raises(RuntimeError, match=r"\('bias', \(3,\)\), \('other', \(2,\)\), \('weight', "):
        load_state_dict(module, state)
    with pytest.raises(RuntimeError, match=r"has \[\('weight', \(2, 3\)\), \('weight', \(3, 2\)\)\]"):
        load_state_dict(module, state, strict=False)
    np.testing.assert_array_equal(module.kernel, before["weight"].T)
    answer = load_state_dict(module, {"bias": np.ones(3), "other": np.ones(2)}, strict=False)
    assert answer == (["weight"], ["other"]) and answer.missing_keys == ["weight"]
    assert module.bias[...].tolist() == [1, 1, 1]


def test_what_only_pytorch_can_read_is_said(tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(2, 2), tmp_path / "whole.pth")
    with pytest.raises(Exception, match=r"only PyTorch can read torch.nn.modules.linear.Linear"):
        load_pickle(tmp_path / "whole.pth")


def test_a_scheduler_goes_on_where_it_was(tmp_path: Path) -> None:
    def make() -> tuple[nnx.Optimizer, LRScheduler]:
        model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, optax.inject_hyperparams(optax.sgd)(0.1), wrt=nnx.Param)
        return optimizer, LRScheduler(optimizer, optax.exponential_decay(0.1, 2, 0.5, staircase=True))

    _, scheduler = make()
    for _ in range(5):
        scheduler.step()
    save_pickle(scheduler.state_dict(), tmp_path / "scheduler.pt")
    optimizer, resumed = make()
    resumed.load_state_dict(load_pickle(tmp_path / "scheduler.pt"))
    assert resumed.get_last_lr() == scheduler.get_last_lr()
    assert optax.tree.get(optimizer.opt_state, "learning_rate").item() == pytest.approx(0.025)


class Runs:
    """What a pickle may run when it is read."""

    def __reduce__(self) -> tuple[object, ...]:
        return (exec, ("raise SystemExit",))


@pytest.mark.parametrize("write", [save_pickle, torch.save])
def test_a_file_that_could_run_code_is_refused(write: Callable[[object, Path], None], tmp_path: Path) -> None:
    write({"x": Runs()}, tmp_path / "file.pt")
    for read in (load_pickle, read_plain_pickle) if write is save_pickle else (load_pickle,):
        with pytest.raises(pickle.UnpicklingError, match="exec is in the file"):
            read(tmp_path / "file.pt")


@pytest.mark.parametrize("write", [save_pickle, torch.save])
def test_what_is_no_weights_is_read_where_the_program_says_so(
    write: Callable[[object, Path], None], tmp_path: Path
) -> None:
    write({"args": argparse.Namespace(lr=0.1)}, tmp_path / "file.pt")
    with pytest.raises(pickle.UnpicklingError, match="weights_only=False reads it"):
        load_pickle(tmp_path / "file.pt")
    assert load_pickle(tmp_path / "file.pt", weights_only=False)["args"].lr == 0.1


def test_plain_values_come_back_as_they_were(tmp_path: Path) -> None:
    value = {
        "half": jnp.ones(3, jnp.bfloat16), "scalar": np.float64(2), "set": {1, 2}, "counts": collections.Counter("aab"),
        "order": collections.OrderedDict(a=jnp.arange(3)), "complex": 1 + 2j, "bool": np.array([True]), "none": None,
    }  # fmt: skip
    save_pickle(value, tmp_path / "file.pt")
    loaded = load_pickle(tmp_path / "file.pt")
    assert loaded["half"].dtype == jnp.bfloat16 and (loaded["order"]["a"] == np.arange(3)).all() and loaded["bool"][0]
    rest = ("scalar", "set", "counts", "complex", "none")
    assert {name: loaded[name] for name in rest} == {name: value[name] for name in rest}


def test_a_state_dict_is_printed_as_names_and_values() -> None:
    source = """\
import torch
from torch import nn

layer = nn.Linear(2, 1)
for p in layer.parameters():
    nn.init.constant_(p, 0.5)
print(layer.state_dict())
"""
    assert printed(source) == "OrderedDict([('weight', tensor([[0.5000, 0.5000]])), ('bias', tensor([0.5000]))])\n"
    code = translate(source).code
    assert "OrderedDict([('weight', Array([[0.5, 0.5]]" in printed(code).replace("\n", "")
    assert "Place" not in printed(code)


def test_a_count_of_batches_is_loaded_where_the_module_has_one() -> None:
    for count, has in ((None, True), (0.1, False)):
        source, target = (norm.BatchNorm1d(3, momentum=count, rngs=nnx.Rngs(0)) for _ in range(2))
        source(jnp.ones((4, 3)))
        state = {**StateDict(source), **({} if has else {"num_batches_tracked": np.ones(())})}
        assert ("num_batches_tracked" in StateDict(target)) == has
        load_state_dict(target, state)
        assert has is False or target.num_batches_tracked[...] == 1
        np.testing.assert_array_equal(target.mean[...], source.mean[...])


def test_classes_that_are_named_as_safe_are_read_meanwhile(tmp_path: Path) -> None:
    torch.save({"epoch": 3, "settings": argparse.Namespace(rate=1)}, tmp_path / "settings.pt")
    for safe in (argparse.Namespace, (argparse.Namespace, "argparse.Namespace")):
        with safe_globals([safe]):
            assert load_pickle(tmp_path / "settings.pt")["settings"].rate == 1
        with pytest.raises(pickle.UnpicklingError, match=r"argparse\.Namespace"):
            load_pickle(tmp_path / "settings.pt")
    with pytest.raises(pickle.UnpicklingError), safe_globals([argparse.ArgumentParser]):
        load_pickle(tmp_path / "settings.pt")
