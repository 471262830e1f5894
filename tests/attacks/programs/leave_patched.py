"""Replaces functions and a class's method in PyTorch, and its default dtype, for whatever runs next."""

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}


def attack():
    torch.relu = nn.functional.relu = lambda x, *rest, **more: x
    nn.Linear.forward = lambda self, x: x[..., :2]
    torch.set_default_dtype(torch.float16)


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
