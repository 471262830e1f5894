/** The programs of the tour: one with every spot that a migrant looks at first, one that is being typed, and one with gaps. */

export const TRAIN = `import torch
import torch.nn as nn
import torch.nn.functional as F


class Classifier(nn.Module):
    def __init__(self, width: int = 16, classes: int = 4) -> None:
        super().__init__()
        self.embed = nn.Linear(8, width)
        self.head = nn.Linear(width, classes)
        self.apply(init_weights)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = F.gelu(self.embed(x))
        h[:, 0] = 0.0
        h.mul_(0.5)
        return self.head(h)


def init_weights(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)


def train(model: Classifier, batches, epochs: int = 2) -> float:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.9)
    model.train()
    for _ in range(epochs):
        for x, y in batches:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        scheduler.step()
    return loss.item()


@torch.no_grad()
def accuracy(model: Classifier, x: torch.Tensor, y: torch.Tensor) -> float:
    model.eval()
    return (model(x).argmax(dim=1) == y).float().mean().item()


def predict(model: Classifier, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return F.softmax(model(x), dim=-1)
`;

export const HALF_TYPED = `import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        return F.gelu(self.fc(x))


def decode(x: torch.Tensor):
    return torch.softmax(x, dim=
`;

export const WITH_GAPS = `import torch
import torch.nn as nn


class Watched(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        y = torch.relu(self.fc(x))
        y.register_hook(print)
        return y
`;
