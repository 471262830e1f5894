"""Texts that the server's tests open."""

NET = """import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        y = F.gelu(self.fc(x))
        return torch.softmax(y, dim=-1)


def watch(x: torch.Tensor):
    x.register_hook(print)
    return torch.cat([x, x])


def order(x: torch.Tensor):
    return torch.svd(x)
"""

LOOP = """import torch
import torch.nn as nn

model = nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    x = torch.randn(2, 8)
    loss = model(x).pow(2).mean()
    loss.register_hook(print)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def line_of(text: str, needle: str) -> int:
    """The line, from 0, that holds a text."""
    return text[: text.index(needle)].count("\n")


def place_of(text: str, needle: str) -> tuple[int, int]:
    """Line and column, from 0, of a text."""
    index = text.index(needle)
    return text[:index].count("\n"), index - (text.rfind("\n", 0, index) + 1)
