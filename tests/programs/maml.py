"""MAML on sinusoids: the inner step is a gradient of the loss, the outer one goes through it."""
import numpy as np
import torch
import torch.nn.functional as F


class SineTask:
    def __init__(self, rng):
        self.amplitude = rng.uniform(0.1, 5.0)
        self.phase = rng.uniform(0, np.pi)

    def sample(self, rng, k):
        x = rng.uniform(-5, 5, size=(k, 1))
        y = self.amplitude * np.sin(x + self.phase)
        return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


def net(x, params):
    x = F.linear(x, params[0], params[1])
    x = F.relu(x)
    x = F.linear(x, params[2], params[3])
    x = F.relu(x)
    return F.linear(x, params[4], params[5])


torch.manual_seed(0)
rng = np.random.RandomState(0)
params = [
    torch.Tensor(16, 1).uniform_(-1., 1.).requires_grad_(),
    torch.Tensor(16).zero_().requires_grad_(),
    torch.Tensor(16, 16).uniform_(-1. / 4, 1. / 4).requires_grad_(),
    torch.Tensor(16).zero_().requires_grad_(),
    torch.Tensor(1, 16).uniform_(-1. / 4, 1. / 4).requires_grad_(),
    torch.Tensor(1).zero_().requires_grad_(),
]
opt = torch.optim.SGD(params, lr=1e-2)
n_inner_loop, alpha = 2, 3e-2

for it in range(8):
    loss2 = 0.0
    opt.zero_grad()
    for task_index in range(3):
        task = SineTask(rng)
        x1, y1 = task.sample(rng, 10)
        loss = F.mse_loss(net(x1, params), y1)
        new_params = params
        for k in range(n_inner_loop):
            grads = torch.autograd.grad(loss, new_params, create_graph=True)
            new_params = [(new_params[i] - alpha * grads[i]) for i in range(len(params))]
            x2, y2 = task.sample(rng, 10)
            loss = F.mse_loss(net(x2, new_params), y2)
        loss2 += loss
    loss2 = loss2 / 3
    loss2.backward()
    opt.step()
    if it % 2 == 0:
        print('iter', it, 'loss', loss2.item())
print('bias', params[5].item(), 'norm', sum(p.norm().item() for p in params))
