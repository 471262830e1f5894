/** The programs that the tests open. */

export const NET = `import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 16)
        self.fc2 = nn.Linear(16, 4)

    def forward(self, x):
        x = F.gelu(self.fc1(x))
        return F.log_softmax(self.fc2(x), dim=-1)
`;

/** Runs for a long time on the torch side. */
export const SLOW = `import time

import torch
import torch.nn as nn


class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        time.sleep(600)
        return self.fc(x)
`;

/** Writes a file when it is imported, constructed or run. */
export const marked = (marker) => `import pathlib

import torch
import torch.nn as nn

pathlib.Path(${JSON.stringify(marker)}).write_text("imported")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        pathlib.Path(${JSON.stringify(marker)}).write_text("constructed")
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        pathlib.Path(${JSON.stringify(marker)}).write_text("run")
        return torch.relu(self.fc(x))
`;
