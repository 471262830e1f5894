"""Fills an array that is mapped to a file."""

import numpy as np
import torch
import torch.nn as nn

PLACES: dict[str, str] = {}


def attack():
    array = np.memmap(PLACES["outside"] + "/best.pt", dtype=np.uint8, mode="r+")
    array[:] = 0
    array.flush()


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
