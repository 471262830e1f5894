"""Makes a file with a bare system call."""

import ctypes
import os
import platform

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}
LIBC = ctypes.CDLL(None, use_errno=True)


def attack():
    number = {"x86_64": 257, "aarch64": 56}[platform.machine()]  # openat
    path = (PLACES["project"] + "/made.json").encode()
    LIBC.syscall(number, -100, path, os.O_WRONLY | os.O_CREAT, 0o600)


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
