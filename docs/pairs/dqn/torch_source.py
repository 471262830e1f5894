import torch
from torch import nn
from torch.nn import functional as F

GAMMA = 0.9


class QNetwork(nn.Module):
    def __init__(self, states=4, actions=2, hidden=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(states, hidden), nn.ReLU(), nn.Linear(hidden, actions))

    def forward(self, state):
        return self.net(state)


def train(steps=20, batch=8):
    torch.manual_seed(0)
    policy, target = QNetwork(), QNetwork()
    target.load_state_dict(policy.state_dict())
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    for step in range(steps):
        state, after, reward = torch.randn(batch, 4), torch.randn(batch, 4), torch.randn(batch)
        action = torch.randint(0, 2, (batch, 1))
        value = policy(state).gather(1, action).squeeze(1)
        with torch.no_grad():
            wanted = reward + GAMMA * target(after).max(1).values
        loss = F.smooth_l1_loss(value, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            target.load_state_dict(policy.state_dict())
    return policy


if __name__ == "__main__":
    train()
