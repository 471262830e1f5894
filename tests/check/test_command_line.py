"""Programs that read their command line: placeholders for what must be given, the same on both sides."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from t2j_lsp.api import convert
from t2j_lsp.check.arguments.command_line import placeholders
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.run import check_files
from t2j_lsp.contract import ObjectVerdict, VerdictKind

from .conftest import AMPLE


def odd(text: str) -> int:
    if int(text) % 2 == 0:
        raise argparse.ArgumentTypeError("not odd")
    return int(text)


def parser(*arguments: tuple[Any, ...], **options: dict[str, Any]) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser()
    for names in arguments:
        *flags, more = names
        made.add_argument(*flags, **more)
    return made


REQUIRED = {
    "nothing": ([("--lr", {"type": float, "default": 0.3})], {"lr": 0.3}),
    "a float that is known": ([("--lr", {"type": float, "required": True})], {"lr": 0.1}),
    "an integer by its name": ([("--num-classes", {"type": int, "required": True})], {"num_classes": 10}),
    "a word": ([("-d", "--data", {"required": True, "help": "the folder"})], {"data": "data"}),
    "a position": ([("data", {"metavar": "DIR"}), ("--resume", {})], {"data": "data", "resume": None}),
    "a position that may be left out": ([("data", {"nargs": "?", "default": "imagenet"})], {"data": "imagenet"}),
    "the first choice": ([("--arch", {"choices": ["resnet18", "vgg"], "required": True})], {"arch": "resnet18"}),
    "a number among choices": ([("depth", {"type": int, "choices": (18, 34)})], {"depth": 18}),
    "two numbers": ([("--betas", {"type": float, "nargs": 2, "required": True})], {"betas": 2}),
    "some words": ([("files", {"nargs": "+"})], {"files": ["files"]}),
    "a switch": ([("--train", {"action": "store_true", "required": True})], {"train": True}),
    "repeated": ([("--layer", {"action": "append", "type": int, "required": True})], {"layer": [2]}),
    "a type of its own": ([("--k", {"type": odd, "required": True})], {}),
    "a list in a type of its own": (
        [("--sizes", {"type": lambda text: [int(n) for n in text.split(",")], "required": True})],
        {"sizes": [4]},
    ),
    "a path": ([("--out", {"type": Path, "required": True})], {"out": Path("4")}),
}


@pytest.mark.parametrize("case", [name for name in REQUIRED if name != "a type of its own"])
def test_what_is_required_gets_a_word_that_its_parser_takes(case: str) -> None:
    arguments, wanted = REQUIRED[case]
    made = parser(*arguments)
    result = vars(made.parse_args(list(placeholders(made))))
    if case == "two numbers":
        result = {name: len(values) for name, values in result.items()}
    assert result == wanted


def test_what_no_word_fits_fails_as_it_would(capsys: pytest.CaptureFixture[str]) -> None:
    made = parser(*[("--k", {"type": lambda text: 1 / 0, "required": True})])
    with pytest.raises((SystemExit, ZeroDivisionError)):
        made.parse_args(list(placeholders(made)))


def test_groups_and_subcommands() -> None:
    made = argparse.ArgumentParser()
    group = made.add_mutually_exclusive_group(required=True)
    group.add_argument("--cpu", action="store_true")
    group.add_argument("--gpu", type=int)
    commands = made.add_subparsers(required=True, dest="command")
    train = commands.add_parser("train")
    train.add_argument("data")
    train.add_argument("--lr", type=float, required=True)
    commands.add_parser("test")
    result = vars(made.parse_args(list(placeholders(made))))
    assert result == {"cpu": True, "gpu": None, "command": "train", "data": "data", "lr": 0.1}


NET = """
import argparse
import sys
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(5, 3)

    def forward(self, x):
        return self.fc(x)

"""
LOOP = """
    for epoch in range(args.epochs):
        for x, y in []:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
"""
WHOLE = (
    """
def main():
    parser = argparse.ArgumentParser(description="PyTorch ImageNet Training")
    parser.add_argument("data", metavar="DIR", help="path to dataset")
    parser.add_argument("--epochs", default=90, type=int, metavar="N")
    parser.add_argument("--lr", "--learning-rate", required=True, type=float, dest="lr")
    parser.add_argument("--momentum", default=0.9, type=float, metavar="M")
    args = parser.parse_args()
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=args.momentum)
"""
    + LOOP
    + "\n\nif __name__ == '__main__':\n    main()\n"
)
FUNCTION = (
    """
def get_args_parser(add_help=True):
    parser = argparse.ArgumentParser(add_help=add_help)
    parser.add_argument("--data-path", required=True, type=str)
    parser.add_argument("--epochs", required=True, type=int)
    parser.add_argument("--lr", default=0.25, type=float)
    parser.add_argument("--opt", choices=["sgd", "adam"], required=True)
    return parser


def main(args):
    model = Net()
    if args.opt == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, nesterov=True, momentum=0.8)
    else:
        raise RuntimeError(args.opt)
"""
    + LOOP
    + """

if __name__ == "__main__":
    args = get_args_parser().parse_args()
    main(args)
"""
)
KNOWN = (
    """
def parse(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--epochs", type=int, default=2)
    args, unknown = parser.parse_known_args(argv)
    return args


def run(args):
    model = Net()
    optimizer = optim.AdamW(model.parameters(), lr=args.lr)
"""
    + LOOP
    + "\n\nif __name__ == '__main__':\n    run(parse(sys.argv[1:]))\n"
)
GUARD = """
def fit(args, model):
    optimizer = optim.RMSprop(model.parameters(), lr=args.lr, alpha=args.alpha)
    for x, y in []:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--lr", type=float, required=True)
    group = p.add_argument_group("optimizer")
    group.add_argument("--alpha", type=float, default=0.95)
    p.add_argument("checkpoint")
    args = p.parse_args()
    fit(args, Net())
"""
GLOBAL = """
parser = argparse.ArgumentParser("word-level language model")
parser.add_argument("--data", type=str, required=True)
parser.add_argument("--lr", type=float, default=0.2)
args = parser.parse_args()
model = Net()
optimizer = optim.SGD(model.parameters(), lr=args.lr)
for step in range(3):
    x, y = torch.randn(4, 5), torch.randint(0, 3, (4,))
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
"""
CONFIG = (
    """
@dataclass
class TrainConfig:
    lr: float = 0.05
    epochs: int = 3


def train(args: TrainConfig):
    model = Net()
    optimizer = optim.Adam(model.parameters(), lr=args.lr)
"""
    + LOOP
    + "\n\nif __name__ == '__main__':\n    train(TrainConfig())\n"
)
WORKER = """
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    hyper = parser.add_argument_group("hyperparameters")
    hyper.add_argument("--wd", "--weight-decay", default=0.05, type=float, dest="weight_decay")
    parser.add_argument("--dist-url", required=True)
    args = parser.parse_args()
    args.distributed = args.dist_url != ""
    main_worker(0, args)


def main_worker(gpu, args):
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), 0.01, weight_decay=args.weight_decay)
    for x, y in []:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
"""
PROGRAMS = {
    "a worker that main calls": (WORKER, "AdamW", "`--dist-url dist_url data`", ("args.weight_decay", "0.04")),
    "a parser in main": (WHOLE, "SGD", "`--learning-rate 0.1 data`", ("0.9", "0.8")),
    "a parser from a function": (FUNCTION, "SGD", "--opt sgd", ("momentum=0.8", "momentum=0.9")),
    "known arguments alone": (KNOWN, "AdamW", "`--lr 0.1`", ("weight_decay=0.01", "weight_decay=0.1")),
    "a parser under the guard": (GUARD, "RMSprop", "`--lr 0.1 checkpoint`", ("args.alpha", "0.5")),
    "a parser at the top level": (GLOBAL, "SGD", "`--data data`", ("args.lr", "0.1")),
    "a dataclass": (CONFIG, "Adam", "", ("args.lr", "0.1")),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_optimizer_of_a_program_that_must_be_told_something(program: str, pool: Pool, tmp_path: Path) -> None:
    source, optimizer, line, (old, new) = PROGRAMS[program]
    path = tmp_path / "main.py"
    path.write_text(NET + source)
    code = convert(NET + source).code

    def verdict(text: str) -> ObjectVerdict:
        return check_files(path, text, ["Net"], pool=pool, initial=False, eager=False, budget=AMPLE).objects[0]

    right = verdict(code)
    assert right.verdict is VerdictKind.EQUIVALENT, right.reason
    stage = right.stages["behavioral"]
    assert f"its own optimizer {optimizer} " in stage.observed[-1], (stage.reason, code)
    assert line in stage.observed[-1] and bool(line) == ("command line" in stage.observed[-1])
    head, _, rest = code.partition("class Net")
    assert old in rest, rest
    assert verdict(f"{head}class Net{rest.replace(old, new)}").verdict is VerdictKind.DIFFERENT
