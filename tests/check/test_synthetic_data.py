"""``t2j run --data synthetic``: data sets and texts that are not there are made up, alike on both sides."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from t2j_lsp.api import convert_file
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.programs.run import RunSettings, run_program
from t2j_lsp.contract import Options, ProgramReport, VerdictKind

DATASETS = '''\
"""Constructors that fail as torchvision's do where the files are not there."""

import torch
from torch.utils.data import Dataset


class MNIST(Dataset):
    classes = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]

    def __init__(self, root, train=True, transform=None, download=False):
        self.root, self.train, self.transform = root, train, transform
        raise RuntimeError("Dataset not found. You can use download=True to download it")

    def __getitem__(self, index):
        image = self.data[index].float()[None] / 255
        return (image if self.transform is None else self.transform(image)), int(self.targets[index])

    def __len__(self):
        return len(self.data)
'''
DIGITS = """\
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, random_split
from torchvision.datasets import MNIST


def as_tensor(image):
    return image if isinstance(image, torch.Tensor) else torch.tensor(list(image.getdata())).reshape(1, 28, 28) / 255


data = MNIST("data", train=True, transform=as_tensor)
train, valid = random_split(data, [50000, 10000])
loader = DataLoader(train, batch_size=16, shuffle=True, num_workers=2)
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
criterion = nn.CrossEntropyLoss()
print(len(data), len(data.classes))
for epoch in range(2):
    for images, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.5f}")
"""
LETTERS = """\
import torch
import torch.nn as nn

with open("data/input.txt", "r", encoding="utf-8") as file:
    text = file.read()
chars = sorted(set(text))
index = {c: i for i, c in enumerate(chars)}
encoded = torch.tensor([index[c] for c in text[:2000]])
model = nn.Sequential(nn.Embedding(len(chars), 8), nn.Linear(8, len(chars)))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
print(len(text), len(chars))
for step in range(5):
    at = step * 50
    optimizer.zero_grad()
    loss = criterion(model(encoded[at : at + 50]), encoded[at + 1 : at + 51])
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.5f}")
"""
OWN = """\
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(100, 3)
loader = DataLoader(TensorDataset(x, x.sum(dim=1, keepdim=True)), batch_size=5)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen = 0
for inputs, targets in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    seen += 1
print(seen, loss.item())
"""


def run(
    pool: Pool, folder: Path, source: str, mistake: tuple[str, str] | None = None, **settings: bool
) -> ProgramReport:
    """The report on a program, or on the conversion of one with a mistake."""
    program = folder / "program.py"
    program.write_text(source)
    if find_spec("torchvision") is None:
        (folder / "torchvision").mkdir(exist_ok=True)
        (folder / "torchvision" / "__init__.py").touch()
        (folder / "torchvision" / "datasets.py").write_text(DATASETS)
    wrong = source.replace(*mistake) if mistake else source
    assert mistake is None or wrong != source
    translation = convert_file(program, Options(), wrong.encode()).translation
    assert not translation.gaps
    return run_program(
        program,
        translation.code,
        RunSettings(**settings),
        pool=pool,
        neighbour=lambda path: path.read_text(),
        source_map=translation.source_map if mistake is None else None,
    )


def test_a_data_set_that_is_not_there_is_made_up_alike_on_both_sides(pool: Pool, tmp_path: Path) -> None:
    report = run(pool, tmp_path, DIGITS, synthetic=True)
    assert report.verdict is VerdictKind.EQUIVALENT, report
    assert report.synthetic == ("MNIST: 60000 made-up images", "a pass over a loader ends after 8 batches")
    assert report.steps == 16 and report.values["parameters"].numbers == 15700
    # There is something to learn in it: images are patterns of their class.
    wrong = run(pool, tmp_path, DIGITS, ("lr=0.05", "lr=0.06"), synthetic=True)
    assert wrong.verdict is VerdictKind.DIFFERENT and wrong.divergence is not None, wrong
    assert wrong.divergence.torch is not None
    assert DIGITS.splitlines()[wrong.divergence.torch.line - 1].startswith('    print(f"epoch')


def test_without_the_option_nothing_is_made_up(pool: Pool, tmp_path: Path) -> None:
    report = run(pool, tmp_path, LETTERS)
    assert report.verdict is VerdictKind.UNCHECKED and report.synthetic == ()
    assert report.reason is not None and "input.txt" in report.reason and "--data synthetic" in report.reason
    whole = run(pool, tmp_path, OWN)
    assert (whole.verdict, whole.steps, whole.synthetic) == (VerdictKind.EQUIVALENT, 20, ())


def test_a_text_that_is_not_there_is_made_up(pool: Pool, tmp_path: Path) -> None:
    report = run(pool, tmp_path, LETTERS, synthetic=True)
    assert report.verdict is VerdictKind.EQUIVALENT, report
    assert report.synthetic == ("input.txt: a text of made-up words",)
    assert report.values["printed"].numbers == 7
    wrong = run(pool, tmp_path, LETTERS, ("at + 1 : at + 51", "at : at + 50"), synthetic=True)
    assert wrong.verdict is VerdictKind.DIFFERENT


def test_what_is_there_is_taken_and_a_pass_over_it_is_cut(pool: Pool, tmp_path: Path) -> None:
    report = run(pool, tmp_path, OWN, synthetic=True)
    assert report.verdict is VerdictKind.EQUIVALENT, report
    assert (report.steps, report.synthetic) == (8, ("a pass over a loader ends after 8 batches",))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "input.txt").write_text("to be or not to be " * 150)
    own = run(pool, tmp_path, LETTERS, synthetic=True)
    assert (own.verdict, own.synthetic) == (VerdictKind.EQUIVALENT, ())


def test_files_of_other_kinds_are_not_made_up(pool: Pool, tmp_path: Path) -> None:
    report = run(pool, tmp_path, f"{OWN}open('missing.csv')\n", synthetic=True)
    assert report.verdict is VerdictKind.UNCHECKED and "missing.csv" in (report.reason or "")


@pytest.mark.parametrize("kind", ["CIFAR10", "CIFAR100", "USPS", "SVHN", "MNIST", "ImageFolder"])
def test_a_data_set_keeps_its_shapes(kind: str) -> None:
    from t2j_lsp.check.workers.torch_side import stand_ins

    if kind == "ImageFolder":
        pytest.importorskip("PIL", reason="images of a folder need Pillow")
    made = type(kind, (), {"train": True, "split": "train"})()
    number = stand_ins._FILL[{"CIFAR100": "CIFAR10"}.get(kind, kind)](made)
    if kind == "ImageFolder":
        assert len(made.samples) == number and set(made.targets) == {0, 1} and made.classes == ["class 0", "class 1"]
        return
    shapes = {"CIFAR10": (50000, 32, 32, 3), "CIFAR100": (50000, 32, 32, 3), "USPS": (7291, 16, 16)}
    shapes |= {"SVHN": (73257, 3, 32, 32), "MNIST": (60000, 28, 28)}
    labels = made.labels if kind == "SVHN" else made.targets
    assert tuple(made.data.shape) == shapes[kind] and number == shapes[kind][0] == len(labels)
    assert {int(label) for label in labels} == set(range(100 if kind == "CIFAR100" else 10))
