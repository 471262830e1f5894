"""What tests of a file's own training share: the head of such a file, and what a verdict says of its training."""

from __future__ import annotations

from t2j_lsp.contract import ObjectVerdict

HEAD = """\
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.optim.lr_scheduler import CosineAnnealingLR, OneCycleLR, StepLR


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(5, 7)
        self.bn = nn.BatchNorm1d(7)
        self.fc2 = nn.Linear(7, 3)

    def forward(self, x):
        return self.fc2(F.relu(self.bn(self.fc1(x))))
"""


def said(verdict: ObjectVerdict) -> str:
    """What the training was done with."""
    return verdict.stages["behavioral"].observed[-1]
