"""Fills a tensor that shares its memory with a file."""

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}


def attack():
    tensor = torch.from_file(PLACES["outside"] + "/best.pt", shared=True, size=16, dtype=torch.uint8)
    tensor.fill_(0)


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
