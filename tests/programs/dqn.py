import random
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

Transition = namedtuple('Transition', ('state', 'action', 'next_state', 'reward', 'done'))


class GridWorld:
    def __init__(self, size=4):
        self.size = size

    def reset(self):
        self.pos = [0, 0]
        return self._obs()

    def _obs(self):
        return np.array(self.pos, dtype=np.float32) / (self.size - 1)

    def step(self, action):
        dx, dy = [(0, 1), (0, -1), (1, 0), (-1, 0)][action]
        self.pos[0] = min(max(self.pos[0] + dx, 0), self.size - 1)
        self.pos[1] = min(max(self.pos[1] + dy, 0), self.size - 1)
        done = self.pos == [self.size - 1, self.size - 1]
        return self._obs(), (1.0 if done else -0.01), done


class ReplayMemory(object):
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class QNetwork(nn.Module):
    def __init__(self, n_observations, n_actions):
        super(QNetwork, self).__init__()
        self.layer1 = nn.Linear(n_observations, 24)
        self.layer2 = nn.Linear(24, 24)
        self.layer3 = nn.Linear(24, n_actions)

    def forward(self, x):
        x = F.relu(self.layer1(x))
        x = F.relu(self.layer2(x))
        return self.layer3(x)


class Agent:
    def __init__(self, state_size, action_size, seed):
        self.action_size = action_size
        random.seed(seed)
        self.qnetwork_local = QNetwork(state_size, action_size)
        self.qnetwork_target = QNetwork(state_size, action_size)
        self.qnetwork_target.load_state_dict(self.qnetwork_local.state_dict())
        self.optimizer = optim.Adam(self.qnetwork_local.parameters(), lr=5e-3)
        self.memory = ReplayMemory(500)
        self.gamma, self.tau, self.batch_size = 0.95, 0.05, 16
        self.t_step = 0

    def act(self, state, eps=0.):
        state = torch.from_numpy(state).float().unsqueeze(0)
        self.qnetwork_local.eval()
        with torch.no_grad():
            action_values = self.qnetwork_local(state)
        self.qnetwork_local.train()
        if random.random() > eps:
            return np.argmax(action_values.cpu().data.numpy())
        else:
            return random.choice(np.arange(self.action_size))

    def step(self, *transition):
        self.memory.push(*transition)
        self.t_step = (self.t_step + 1) % 4
        if self.t_step == 0 and len(self.memory) > self.batch_size:
            self.learn(self.memory.sample(self.batch_size))

    def learn(self, experiences):
        batch = Transition(*zip(*experiences))
        states = torch.from_numpy(np.vstack(batch.state)).float()
        actions = torch.from_numpy(np.vstack(batch.action)).long()
        rewards = torch.from_numpy(np.vstack(batch.reward)).float()
        next_states = torch.FloatTensor(np.array(batch.next_state))
        dones = torch.from_numpy(np.vstack(batch.done).astype(np.uint8)).float()

        Q_targets_next = self.qnetwork_target(next_states).detach().max(1)[0].unsqueeze(1)
        Q_targets = rewards + (self.gamma * Q_targets_next * (1 - dones))
        Q_expected = self.qnetwork_local(states).gather(1, actions)
        loss = F.mse_loss(Q_expected, Q_targets)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.soft_update(self.qnetwork_local, self.qnetwork_target, self.tau)

    def soft_update(self, local_model, target_model, tau):
        for target_param, local_param in zip(target_model.parameters(), local_model.parameters()):
            target_param.data.copy_(tau * local_param.data + (1.0 - tau) * target_param.data)


def main():
    env = GridWorld()
    agent = Agent(2, 4, seed=0)
    scores, eps = [], 1.0
    for i_episode in range(1, 9):
        state = env.reset()
        score = 0
        for t in range(20):
            action = agent.act(state, eps)
            next_state, reward, done = env.step(action)
            agent.step(state, action, next_state, reward, done)
            state = next_state
            score += reward
            if done:
                break
        scores.append(score)
        eps = max(0.1, 0.9 * eps)
        if i_episode % 4 == 0:
            print('Episode {}\tAverage Score: {:.2f}'.format(i_episode, np.mean(scores)))
    x = torch.tensor([[0.0, 0.0], [0.5, 0.5]])
    print(agent.qnetwork_target(x).detach().numpy().round(4))


if __name__ == '__main__':
    main()
