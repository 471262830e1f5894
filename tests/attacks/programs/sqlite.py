"""Makes a table in a database of another folder, attached to one in memory."""

import sqlite3

import torch
import torch.nn as nn

PLACES: dict[str, str] = {}


def attack():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("ATTACH DATABASE ? AS theirs", (PLACES["outside"] + "/data.db",))
    connection.execute("CREATE TABLE theirs.mine (x)")


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
