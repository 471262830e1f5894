"""Connects to a program of this machine."""

import socket

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}


def attack():
    socket.create_connection(("127.0.0.1", int(PLACES["tcp"])), timeout=5).close()


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
