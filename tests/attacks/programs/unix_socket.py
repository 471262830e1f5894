"""Talks to a program that listens in the project."""

import socket

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}


def attack():
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(PLACES["unix"])


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
