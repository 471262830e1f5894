"""Kills the process that started it, and lives on."""

import ctypes
import os

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}
LIBC = ctypes.CDLL(None, use_errno=True)


def attack():
    watching = (os.getppid(), os.getpid())
    done, says = os.pipe()
    child = LIBC.fork()
    if child == 0:
        LIBC.prctl(15, PLACES["mark"].encode())
        LIBC.setsid()
        for pid in watching:
            if pid > 1:
                LIBC.kill(pid, 9)
        os.write(says, b"done")
        LIBC.sleep(300)
        os._exit(0)
    if child > 0:
        os.read(done, 4)  # Not before the other one did what it is here for.


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
