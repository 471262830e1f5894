"""Saves its weights over a file of another folder, named by a Path."""

import pathlib

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}


def attack(module):
    torch.save(module.state_dict(), pathlib.Path(PLACES["outside"]) / "best.pt")


# t2j: x=f32[2, 3]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        attack(self)
        return self.fc(x)


if __name__ == "__main__":
    Net()(torch.ones(2, 3))
