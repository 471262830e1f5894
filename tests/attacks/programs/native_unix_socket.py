"""Talks to programs that listen in the project and under an abstract name, with the C library."""

import ctypes
import socket
import struct

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}
LIBC = ctypes.CDLL(None, use_errno=True)


def attack():
    for name in (PLACES["unix"].encode(), b"\0" + PLACES["abstract"].encode()):
        address = struct.pack("H", socket.AF_UNIX) + name
        LIBC.connect(LIBC.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0), address, len(address))


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
