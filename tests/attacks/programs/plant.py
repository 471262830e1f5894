"""Plants a compiled program where those of another project are kept."""

import ctypes
import glob
import os

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}
LIBC = ctypes.CDLL(None, use_errno=True)


def attack():
    for folder in (PLACES["cache"] + "/xla/0123456789abcdef0123456789abcdef", PLACES["cache"] + "/xla"):
        file = LIBC.open((folder + "/planted-cache").encode(), os.O_WRONLY | os.O_CREAT, 0o600)
        LIBC.write(file, b"code", 4)
    for path in glob.glob(PLACES["cache"] + "/xla/*/theirs-cache"):
        LIBC.unlink(path.encode())


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
