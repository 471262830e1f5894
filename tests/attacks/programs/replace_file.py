"""Moves a file of its own over another, by os.replace and by os.rename from folder to folder."""

import contextlib
import os

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}


def attack():
    def over(name, move):
        with open("mine", "w") as file:
            file.write("gone")
        with contextlib.suppress(OSError):
            move(os.path.abspath("mine"), PLACES["outside"] + name)

    def between(source, target):
        folder = os.open(os.path.dirname(target), os.O_RDONLY | os.O_DIRECTORY)
        os.rename(source, os.path.basename(target), dst_dir_fd=folder)

    over("/best.pt", os.replace)
    over("/runs/last.pt", between)


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
