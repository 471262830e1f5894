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

/** The rules refuse `torch.autograd.grad`, and mistakes in converting it are among the fixed bugs. */
export const PENALTY = `import torch


def penalty(f, x):
    (grad,) = torch.autograd.grad(f(x).sum(), x)
    return grad
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

/** Opens a pipe for reading when it is imported, constructed or run, and waits there for a writer. */
export const waitingAt = (pipe) => `import torch
import torch.nn as nn

WAITED = open(${JSON.stringify(pipe)}, "rb").close()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        open(${JSON.stringify(pipe)}, "rb").close()
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        open(${JSON.stringify(pipe)}, "rb").close()
        return torch.relu(self.fc(x))
`;

/** The rules refuse one call of it, and a model can answer for that. */
export const SLOPE = `import torch
import torch.nn as nn


# t2j: args=(4, 6), x=f32[3, 4]
class Slope(nn.Module):
    def __init__(self, features, out):
        super().__init__()
        self.fc = nn.Linear(features, out)

    def forward(self, x):
        y = torch.tanh(self.fc(x))
        dy = torch.ops.aten.cumsum(y, dim=1)
        return y + dy
`;
