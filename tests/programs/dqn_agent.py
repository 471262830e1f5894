import random
from collections import deque, namedtuple
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

Transition = namedtuple('Transition', ('state', 'action', 'next_state', 'reward'))


class QNet(nn.Module):
    def __init__(self, n_obs, n_act):
        super().__init__()
        self.l1 = nn.Linear(n_obs, 24)
        self.l2 = nn.Linear(24, n_act)

    def forward(self, x):
        return self.l2(torch.tanh(self.l1(x)))


class Agent:
    def __init__(self, n_obs, n_act):
        self.n_act = n_act
        self.policy_net = QNet(n_obs, n_act)
        self.target_net = QNet(n_obs, n_act)
        self.target_net.load_state_dict(self.policy_net.state_dict())
        self.target_net.eval()
        self.optimizer = torch.optim.Adam(self.policy_net.parameters(), lr=1e-3)
        self.memory = deque(maxlen=200)
        self.gamma = 0.9

    def act(self, state, eps):
        if random.random() < eps:
            return random.randrange(self.n_act)
        with torch.no_grad():
            return self.policy_net(torch.from_numpy(state).float().unsqueeze(0)).argmax(1).item()

    def _td_loss(self, s, a, s2, r):
        q = self.policy_net(s).gather(1, a.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            target = r + self.gamma * self.target_net(s2).max(1)[0]
        return F.smooth_l1_loss(q, target)

    def learn(self, batch_size=16):
        if len(self.memory) < batch_size:
            return None
        batch = Transition(*zip(*random.sample(self.memory, batch_size)))
        s = torch.tensor(np.array(batch.state), dtype=torch.float32)
        a = torch.tensor(batch.action)
        s2 = torch.tensor(np.array(batch.next_state), dtype=torch.float32)
        r = torch.tensor(batch.reward, dtype=torch.float32)
        loss = self._td_loss(s, a, s2, r)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def sync(self):
        self.target_net.load_state_dict(self.policy_net.state_dict())


random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
agent = Agent(3, 2)
state = np.zeros(3, dtype=np.float32)
for t in range(60):
    action = agent.act(state, 0.3)
    nxt = np.clip(state + (0.1 if action else -0.1), -1, 1).astype(np.float32)
    agent.memory.append(Transition(state, action, nxt, float(nxt.sum())))
    state = nxt
    loss = agent.learn()
    if t % 20 == 0:
        agent.sync()
    if loss is not None and t % 10 == 0:
        print(t, loss)
