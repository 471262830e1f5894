"""Soft actor-critic with a replay buffer: three optimizers, a target network by Polyak averaging, a learnt temperature."""
import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

LOG_STD_MAX = 2
LOG_STD_MIN = -5


class PointEnv:
    def reset(self, rng):
        self.x = rng.uniform(-1, 1, 2).astype(np.float32)
        self.t = 0
        return self.x.copy()

    def step(self, a):
        self.x = np.clip(self.x + 0.2 * a, -2, 2).astype(np.float32)
        self.t += 1
        return self.x.copy(), -float((self.x ** 2).sum()), self.t >= 10


class QNet(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.fc1 = nn.Linear(obs_dim + act_dim, 16)
        self.fc2 = nn.Linear(16, 16)
        self.fc3 = nn.Linear(16, 1)

    def forward(self, x, a):
        x = torch.cat([x, a], 1)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


class Actor(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.fc1 = nn.Linear(obs_dim, 16)
        self.fc_mean = nn.Linear(16, act_dim)
        self.fc_logstd = nn.Linear(16, act_dim)
        self.register_buffer("action_scale", torch.tensor(1.0))

    def forward(self, x):
        x = F.relu(self.fc1(x))
        mean = self.fc_mean(x)
        log_std = torch.tanh(self.fc_logstd(x))
        log_std = LOG_STD_MIN + 0.5 * (LOG_STD_MAX - LOG_STD_MIN) * (log_std + 1)
        return mean, log_std

    def get_action(self, x):
        mean, log_std = self(x)
        std = log_std.exp()
        normal = Normal(mean, std)
        x_t = normal.rsample()
        y_t = torch.tanh(x_t)
        action = y_t * self.action_scale
        log_prob = normal.log_prob(x_t)
        log_prob -= torch.log(self.action_scale * (1 - y_t.pow(2)) + 1e-6)
        log_prob = log_prob.sum(1, keepdim=True)
        return action, log_prob


def main():
    random.seed(1)
    rng = np.random.RandomState(1)
    torch.manual_seed(1)
    env = PointEnv()
    actor = Actor(2, 2)
    qf1, qf2 = QNet(2, 2), QNet(2, 2)
    qf1_target, qf2_target = QNet(2, 2), QNet(2, 2)
    qf1_target.load_state_dict(qf1.state_dict())
    qf2_target.load_state_dict(qf2.state_dict())
    q_optimizer = torch.optim.Adam(list(qf1.parameters()) + list(qf2.parameters()), lr=3e-3)
    actor_optimizer = torch.optim.Adam(list(actor.parameters()), lr=1e-3)
    target_entropy = -2.0
    log_alpha = torch.zeros(1, requires_grad=True)
    alpha = log_alpha.exp().item()
    a_optimizer = torch.optim.Adam([log_alpha], lr=3e-3)
    gamma, tau, batch_size = 0.9, 0.05, 16

    buffer = deque(maxlen=200)
    obs = env.reset(rng)
    for step in range(60):
        if step < 20:
            action = rng.uniform(-1, 1, 2).astype(np.float32)
        else:
            with torch.no_grad():
                action, _ = actor.get_action(torch.as_tensor(obs).unsqueeze(0))
            action = action[0].numpy()
        next_obs, reward, done = env.step(action)
        buffer.append((obs, action, reward, next_obs, float(done)))
        obs = next_obs if not done else env.reset(rng)
        if step < 20 or step % 4:
            continue
        batch = random.sample(buffer, batch_size)
        o, a, r, o2, d = (torch.as_tensor(np.array(x), dtype=torch.float32) for x in zip(*batch))
        with torch.no_grad():
            next_actions, next_log_pi = actor.get_action(o2)
            q1_next = qf1_target(o2, next_actions)
            q2_next = qf2_target(o2, next_actions)
            min_q_next = torch.min(q1_next, q2_next) - alpha * next_log_pi
            next_q = r.flatten() + (1 - d.flatten()) * gamma * min_q_next.view(-1)
        q1 = qf1(o, a).view(-1)
        q2 = qf2(o, a).view(-1)
        qf1_loss = F.mse_loss(q1, next_q)
        qf2_loss = F.mse_loss(q2, next_q)
        qf_loss = qf1_loss + qf2_loss
        q_optimizer.zero_grad()
        qf_loss.backward()
        q_optimizer.step()

        pi, log_pi = actor.get_action(o)
        min_q_pi = torch.min(qf1(o, pi), qf2(o, pi))
        actor_loss = ((alpha * log_pi) - min_q_pi).mean()
        actor_optimizer.zero_grad()
        actor_loss.backward()
        actor_optimizer.step()

        with torch.no_grad():
            _, log_pi = actor.get_action(o)
        alpha_loss = (-log_alpha.exp() * (log_pi + target_entropy)).mean()
        a_optimizer.zero_grad()
        alpha_loss.backward()
        a_optimizer.step()
        alpha = log_alpha.exp().item()

        for param, target_param in zip(qf1.parameters(), qf1_target.parameters()):
            target_param.data.copy_(tau * param.data + (1 - tau) * target_param.data)
        for param, target_param in zip(qf2.parameters(), qf2_target.parameters()):
            target_param.data.copy_(tau * param.data + (1 - tau) * target_param.data)
        if step % 12 == 0:
            print(step, 'q', qf_loss.item(), 'actor', actor_loss.item(), 'alpha', alpha)


if __name__ == '__main__':
    main()
