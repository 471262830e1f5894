"""Makes a pipe and a device node in another folder."""

import os
import stat

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}


def attack():
    tries = [
        lambda: os.mkfifo(PLACES["outside"] + "/pipe"),
        lambda: os.mknod(PLACES["outside"] + "/node", stat.S_IFREG | 0o600),
        lambda: os.mkdir(PLACES["outside"] + "/folder"),
    ]
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
