"""Smaller inputs for programs that take long: as small as they run with and every layer still has something to mix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from t2j_lsp.check.inputs import Arguments, ArraySpec
from t2j_lsp.check.workers.torch_side.build import outline
from t2j_lsp.check.workers.torch_side.prepare import drawn_arguments
from t2j_lsp.check.workers.torch_side.shallower import lighter, shallower
from t2j_lsp.check.workers.torch_side.smaller import smaller


class Halves(nn.Module):
    """Takes only what two halvings and doublings give back."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 3, 2, stride=2)
        self.up = nn.ConvTranspose2d(3, 3, 2, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.up(self.up(self.down(self.down(x)))) + x


class Two(nn.Module):
    """Two sequences of one length."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 6)
        self.mix = nn.Linear(12, 6)

    def forward(self, ids: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        return self.mix(torch.cat([self.embedding(ids), features], dim=-1))


def shrunk(model: nn.Module, *inputs: object, in_time: bool = True) -> tuple[list[tuple[int, ...]], str] | None:
    """The new shapes, and how they are said."""

    def run(arguments: Arguments) -> None:
        drawn = drawn_arguments(arguments, np.random.default_rng(0))
        model(*(torch.from_numpy(np.asarray(a)) for a in drawn.args))

    change = smaller(model, Arguments(list(inputs)), run, lambda: in_time)
    return None if change is None else ([tuple(a.shape) for a in change[0].args], change[1])


@pytest.mark.parametrize(
    ("model", "shape", "expected"),
    [
        (nn.Conv2d(3, 4, 3), (8, 3, 128, 128), (3, 3, 17, 19)),
        (nn.Conv3d(3, 4, 3), (2, 3, 16, 112, 112), (2, 3, 5, 15, 17)),
        (Halves(), (4, 3, 128, 96), (3, 3, 16, 24)),
        (nn.Sequential(nn.Flatten(2), nn.Linear(64, 2)), (6, 3, 8, 8), (3, 3, 8, 8)),
        (nn.Sequential(nn.AvgPool2d(8), nn.Conv2d(3, 4, 1)), (4, 3, 64, 64), (3, 3, 17, 19)),
        (nn.LSTM(6, 5, batch_first=True), (4, 200, 6), (3, 25, 6)),
    ],
    ids=["axes that differ", "video", "axes that are halved", "only the batch", "no axis of one", "a sequence"],
)
def test_the_smallest_that_runs_and_tells(model: nn.Module, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    change = shrunk(model, ArraySpec("float32", shape))
    assert change is not None
    assert change[0] == [expected]
    assert change[1] == f"f32{list(shape)} became f32{list(expected)}"


def test_axes_of_one_length_stay_so_among_inputs() -> None:
    change = shrunk(Two(), ArraySpec("int64", (4, 80), 0, 50), ArraySpec("float32", (4, 80, 6)))
    assert change is not None
    assert change[0] == [(3, 11), (3, 11, 6)]


def test_given_arrays_keep_their_values() -> None:
    array = np.arange(4 * 3 * 64 * 64, dtype=np.float32).reshape(4, 3, 64, 64)
    seen = []

    def run(arguments: Arguments) -> None:
        seen.append(arguments.args[0])

    change = smaller(nn.Identity(), Arguments([array]), run, lambda: True)
    assert change is not None
    np.testing.assert_array_equal(change[0].args[0], array[:3, :, :9, :11])
    assert seen[0] is array


def test_inputs_stay_where_nothing_smaller_runs_or_no_time_is_left() -> None:
    assert shrunk(nn.Sequential(nn.Flatten(), nn.Linear(192, 2)), ArraySpec("float32", (2, 3, 8, 8))) is None
    assert shrunk(nn.Conv2d(3, 4, 3), ArraySpec("float32", (8, 3, 128, 128)), in_time=False) is None


class Block(nn.Module):
    def __init__(self, dim: int, act: type[nn.Module] = nn.ReLU) -> None:
        super().__init__()
        self.fc, self.act = nn.Linear(dim, dim), act()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.act(self.fc(x))


class Stages(nn.Module):
    """Blocks in stages, of which every fourth has another activation if ``mixed``."""

    def __init__(
        self, dim: int = 8, depths: tuple[int, ...] = (3, 1, 6), tail_layers: int = 4, mixed: bool = False
    ) -> None:
        super().__init__()
        count = sum(depths)
        acts = [nn.Tanh if mixed and i % 8 == 7 else nn.ReLU for i in range(count)]
        self.blocks = nn.ModuleList(Block(dim, act) for act in acts)
        self.tail = nn.Sequential(*(nn.Linear(dim, dim) for _ in range(tail_layers)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return self.tail(x)


@pytest.mark.parametrize(
    ("init", "kwargs", "said"),
    [
        (Arguments(), {"depths": (2, 1, 2), "tail_layers": 2}, "fewer blocks: depths=(2, 1, 2), tail_layers=2"),
        (Arguments([8]), {"depths": (2, 1, 2), "tail_layers": 2}, "fewer blocks: depths=(2, 1, 2), tail_layers=2"),
        (
            Arguments([], {"tail_layers": 9}),
            {"tail_layers": 2, "depths": (2, 1, 2)},
            "fewer blocks: depths=(2, 1, 2), tail_layers=2",
        ),
        (Arguments([], {"mixed": True}), {"mixed": True, "tail_layers": 2}, "fewer blocks: tail_layers=2"),
    ],
    ids=["defaults", "given by position", "given by name", "one kind would be gone"],
)
def test_blocks_are_fewer_where_layers_of_the_same_kinds_run(init: Arguments, kwargs: object, said: str) -> None:
    """A width is no count of blocks: the input doesn't fit another one, and its name tells nothing of blocks."""

    def made(arguments: Arguments) -> tuple[nn.Module, Callable[[], None]]:
        model = Stages(*arguments.args, **arguments.kwargs)
        return model, lambda: model(torch.ones(2, 8))

    shrunk = shallower(Stages, init, made, lambda: True)
    assert shrunk is not None
    assert shrunk[0].args == init.args and shrunk[0].kwargs == kwargs
    assert shrunk[1] == said
    assert shallower(Stages, init, made, lambda: False) is None


def test_a_module_without_repetition_stays_as_it_is() -> None:
    def made(arguments: Arguments) -> tuple[nn.Module, Callable[[], None]]:
        model = Block(*arguments.args, **arguments.kwargs)
        return model, lambda: model(torch.ones(2, *[model.fc.in_features]))

    assert shallower(Block, Arguments([], {"dim": 8}), made, lambda: True) is None


class OfOneLength(nn.Module):
    """Takes sequences of the length that it is built for, and is wide inside."""

    def __init__(self, seq_len: int = 64, dim: int = 96, num_blocks: int = 4) -> None:
        super().__init__()
        self.seq_len = seq_len
        self.first = nn.Linear(3, dim)
        self.rest = nn.Sequential(*(nn.Linear(dim, dim) for _ in range(num_blocks)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.shape[1] == self.seq_len
        return self.rest(self.first(x))


def test_widths_inside_leave_inputs_as_they_are() -> None:
    made = [
        (init.kwargs, stays)
        for init, _, stays in lighter(OfOneLength, Arguments([], {}), lambda a: OfOneLength(**a.kwargs))
    ]
    assert made == [
        ({"seq_len": 16, "dim": 16, "num_blocks": 2}, False),
        ({"dim": 16, "num_blocks": 2}, True),
        ({"num_blocks": 2}, False),
        ({"num_blocks": 2}, True),
    ]


class AsksForValues(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rates = [rate.item() for rate in torch.linspace(0, 1, 3)]
        self.fc = nn.Linear(2, 2)


def test_an_outline_has_no_values_where_the_program_can_do_without() -> None:
    rng = np.random.default_rng(0)
    plain = outline(OfOneLength, Arguments([], {}), {}, False, rng)
    assert plain.first.weight.device.type == "meta"
    assert outline(AsksForValues, Arguments([], {}), {}, False, rng).fc.weight.device.type == "cpu"
