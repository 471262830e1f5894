"""Leaves a process behind in a session of its own, with no file open and an empty environment."""

import ctypes
import os

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}
LIBC = ctypes.CDLL(None, use_errno=True)


def attack():
    child = LIBC.fork()
    if child == 0:
        LIBC.prctl(15, PLACES["mark"].encode())
        LIBC.setsid()
        LIBC.clearenv()
        os.closerange(0, 256)
        if LIBC.fork() == 0:
            LIBC.execl(b"/bin/sleep", PLACES["mark"].encode(), b"300", None)
            LIBC.sleep(300)
        os._exit(0)
    LIBC.waitpid(child, None, 0)  # What is left behind is there before this program ends.


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
