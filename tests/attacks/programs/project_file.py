"""Leaves a file in the project as it is imported."""

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}


def attack():
    with open(PLACES["project"] + "/cache.json", "w") as file:
        file.write("{}")
    return 2


WIDTH = attack()


# t2j: x=f32[2, 3]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, WIDTH)

    def forward(self, x):
        return self.fc(x)


if __name__ == "__main__":
    Net()(torch.ones(2, 3))
