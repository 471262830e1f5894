"""Overwrites a file with open, another with a Path, and empties a third."""

import os
import pathlib

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}


def attack():
    tries = [
        lambda: open(PLACES["outside"] + "/best.pt", "w").close(),
        lambda: pathlib.Path(PLACES["outside"], "runs", "last.pt").write_bytes(b"gone"),
        lambda: os.truncate(PLACES["home"] + "/notes.txt", 0),
    ]
    for one in tries:
        try:
            one()
        except OSError:
            continue


# t2j: x=f32[2, 3]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        attack()
        return self.fc(x)


if __name__ == "__main__":
    Net()(torch.ones(2, 3))
