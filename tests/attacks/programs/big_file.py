"""Makes a file of three gigabytes, with nothing in it."""

import ctypes
import os

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}
LIBC = ctypes.CDLL(None, use_errno=True)


def attack():
    file = LIBC.open(b"big", os.O_WRONLY | os.O_CREAT, 0o600)
    LIBC.ftruncate(file, ctypes.c_long(3 << 30))
    if os.path.getsize("big") > 2 << 30:
        raise RuntimeError("the attack got through")


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
