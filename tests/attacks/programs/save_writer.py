"""Saves tensors with PyTorch's native writer alone, which Python doesn't see."""

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}


def attack():
    writer = torch._C.PyTorchFileWriter(PLACES["outside"] + "/best.pt")
    writer.write_record("data", b"gone", 4)
    writer.write_end_of_file()


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
