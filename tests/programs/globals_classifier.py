import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 16)
        self.drop = nn.Dropout(0.2)
        self.fc2 = nn.Linear(16, 3)

    def forward(self, x):
        return self.fc2(self.drop(F.relu(self.fc1(x))))


model = Net()
optimizer = optim.Adam(model.parameters(), lr=0.01)
X = torch.randn(60, 4)
Y = (X[:, 0] > 0).long() + (X[:, 1] > 0).long()


def loss_of(xb, yb):
    return F.cross_entropy(model(xb), yb)


def train():
    model.train()
    total = 0.0
    for i in range(0, 60, 20):
        xb, yb = X[i:i + 20], Y[i:i + 20]
        optimizer.zero_grad()
        loss = loss_of(xb, yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / 3


def evaluate():
    model.eval()
    with torch.no_grad():
        out = model(X)
    return (out.argmax(1) == Y).float().mean().item(), loss_of(X, Y).item()


for epoch in range(4):
    print(epoch, train(), *evaluate())
