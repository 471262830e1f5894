"""Takes three gigabytes of memory."""

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}


def attack():
    taken = [bytearray(b"x") * (1 << 28) for _ in range(12)]
    raise RuntimeError("the attack got through" if taken else "")


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
