"""Deletes a file that it names relative to its folder, and a folder."""

import contextlib
import os
import shutil

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}


def attack():
    with contextlib.suppress(OSError):
        folder = os.open(PLACES["outside"], os.O_RDONLY | os.O_DIRECTORY)
        os.unlink("best.pt", dir_fd=folder)
    shutil.rmtree(PLACES["outside"] + "/runs")


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
