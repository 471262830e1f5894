"""Overwrites a file that it opens relative to its folder."""

import os

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}


def attack():
    folder = os.open(PLACES["outside"], os.O_RDONLY | os.O_DIRECTORY)
    os.write(os.open("best.pt", os.O_WRONLY | os.O_TRUNC, dir_fd=folder), b"gone")


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
