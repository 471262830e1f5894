"""Switches the guard off where Python keeps it, then overwrites a file."""

import sys

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}


def attack():
    for name, module in list(sys.modules.items()):
        if name.endswith(".guard"):
            module._active = False
    with open(PLACES["outside"] + "/best.pt", "w") as file:
        file.write("gone")


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
