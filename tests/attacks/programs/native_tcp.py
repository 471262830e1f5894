"""Connects to a program of this machine with the C library."""

import ctypes
import socket
import struct

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}
LIBC = ctypes.CDLL(None, use_errno=True)


def attack():
    address = struct.pack("=HHI8x", socket.AF_INET, socket.htons(int(PLACES["tcp"])), socket.htonl(0x7F000001))
    LIBC.connect(LIBC.socket(socket.AF_INET, socket.SOCK_STREAM, 0), address, len(address))


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
