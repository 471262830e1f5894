"""Makes links to its own files in another folder, and a link of its own to a file there that it writes through."""

import os

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}


def attack():
    tries = [
        lambda: os.link("mine", PLACES["outside"] + "/linked"),
        lambda: os.symlink(os.path.abspath("mine"), PLACES["outside"] + "/pointing"),
        lambda: os.symlink(PLACES["outside"] + "/best.pt", "there"),
        lambda: open("there", "w").close(),
    ]
    with open("mine", "w") as file:
        file.write("mine")
    for one in tries:
        try:
            one()
        except OSError:
            continue


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
