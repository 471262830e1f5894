"""Data-parallel modules, process groups, and what a program asks of its devices."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from t2j_lsp.translate import translate

NET = """\
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

net = nn.Linear(3, 2)
"""


def converted(text: str) -> str:
    translation = translate(NET + text)
    assert translation.gaps == (), [gap.reason for gap in translation.gaps]
    return translation.code


@pytest.mark.parametrize(
    "wrapped",
    [
        "nn.DataParallel(net)",
        "nn.DataParallel(net, device_ids=[0, 1])",
        "DDP(net, device_ids=[0])",
        "DDP(net, **options)",
        "DDP(net, dim=0, process_group=None, static_graph=False)",
    ],
)
def test_a_wrapper_has_the_module_under_the_same_name(wrapped: str) -> None:
    code = converted(f"net = {wrapped}\ntorch.save(net.module.state_dict(), 'net.pt')\n")
    assert "net = DataParallel(net)" in code
    assert "torch_arrays(net.module)" in code


def test_a_process_group_that_is_none_goes_by_position_too() -> None:
    code = converted("norm = nn.SyncBatchNorm(4, 1e-5, 0.1, True, True, None, None)\n")
    assert "norm = ChannelsFirstBatchNorm(4, 1e-5, 0.1, True, True, rngs=rngs)" in code
    gaps = translate(NET + "norm = nn.SyncBatchNorm(4, 1e-5, 0.1, True, True, group)\n").gaps
    assert any("mesh axis" in gap.reason for gap in gaps)


def test_one_process_has_nobody_to_wait_for() -> None:
    code = converted(
        "dist.init_process_group('gloo', rank=0, world_size=1)\nloss = net(torch.ones(2, 3)).mean()\n"
        "dist.all_reduce(loss)\nif dist.get_rank() == 0:\n    print(loss / dist.get_world_size())\n"
        "dist.barrier()\ndist.destroy_process_group()\n"
    )
    assert "check_single_process(1)" in code
    assert "jax.process_index() == 0" in code and "loss / jax.process_count()" in code
    assert "barrier" not in code and "all_reduce" not in code


@pytest.mark.parametrize("call", ["dist.all_gather(parts, x)", "dist.send(x, 1)"])
def test_what_processes_exchange_stays(call: str) -> None:
    translation = translate(NET + f"x = torch.ones(3)\nparts = [torch.ones(3)]\n{call}\n")
    assert any("sharding" in gap.reason for gap in translation.gaps)


def test_a_name_in_the_text_of_an_f_string_keeps_no_import() -> None:
    code = converted("rank = 0\nprint(f'DDP on rank {rank}')\nnet = DDP(net)\n")
    assert "torch" not in {a.name for n in ast.walk(ast.parse(code)) if isinstance(n, ast.ImportFrom) for a in n.names}
    assert "DistributedDataParallel" not in code


@pytest.mark.parametrize(
    ("test", "wanted"),
    [
        ('device.type == "cuda"', 'device.platform == "gpu"'),
        ("device.type != 'cpu'", 'device.platform != "cpu"'),
        ("str(device) == 'cpu'", 'device.platform == "cpu"'),
        ("str(device) in ['cpu', 'cuda']", 'device.platform in ("cpu", "gpu")'),
    ],
)
def test_platforms_have_other_names(test: str, wanted: str) -> None:
    assert f"if {wanted}:" in converted(f"device = torch.device('cpu')\nif {test}:\n    print('there')\n")


def test_what_is_for_a_platform_that_jax_has_not_goes() -> None:
    translation = translate(NET + "device = torch.device('cpu')\nif device.type == 'mps':\n    print('there')\n")
    assert not translation.gaps and "there" not in translation.code


def test_a_module_that_is_called_on_several_devices_is_called() -> None:
    forward = "class Two(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    forward += "        self.main = nn.Linear(2, 2)\n\n"
    forward += "    def forward(self, x):\n        return nn.parallel.data_parallel(self.main, x{more})\n"
    assert "return self.main(x)" in converted(forward.format(more=", range(2)"))
    assert translate(NET + forward.format(more=", module_kwargs={'a': 1}")).gaps


def test_classes_that_derive_from_a_wrapper_are_made_as_modules_are() -> None:
    own = "class Own(nn.DataParallel):\n    def __getattr__(self, key):\n        return getattr(self.module, key)\n\n"
    code = converted(f"{own}\ndef main():\n    inner = nn.Linear(3, 2)\n    return Own(inner)(torch.ones(4, 3))\n")
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["main"](rngs=names["nnx"].Rngs(0)).shape == (4, 2)


BESIDE = """\
nn.init.constant_(net.weight, 0.5)
nn.init.constant_(net.bias, 0.25)
other = nn.DataParallel(net)
optimizer = torch.optim.SGD({trained}.parameters(), lr=0.1)
losses = []


def step(a, b, x):
    loss = (a(x) - 2 * b(x + 1)).square().mean(){behind}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())


for k in range(3):
    step(net, other, torch.arange(6.0).reshape(2, 3) / (5 + k))
"""


@pytest.mark.jax
@pytest.mark.parametrize("trained", ["net", "other"])
@pytest.mark.parametrize("behind", ["", " + b(x).detach().mean()"])
def test_a_module_beside_its_wrapper_gets_the_gradients_of_both(trained: str, behind: str) -> None:
    text = BESIDE.format(trained=trained, behind=behind)
    sides: list[dict[str, Any]] = [{}, {}]
    exec(NET + text, sides[0])
    exec(converted(text), sides[1])
    assert sides[1]["losses"] == pytest.approx(sides[0]["losses"], rel=1e-5)
    assert sides[1]["net"].kernel[...].T.ravel() == pytest.approx(sides[0]["net"].weight.detach().ravel(), rel=1e-5)
