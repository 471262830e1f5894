import torch
import torch.optim as optim


def rosenbrock(p):
    return (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2


def minimise(start, steps=20, lr=0.05):
    p = torch.tensor(start, requires_grad=True)
    opt = optim.Adam([p], lr=lr)
    for step in range(steps):
        opt.zero_grad()
        value = rosenbrock(p)
        value.backward()
        opt.step()
        if step % 5 == 0:
            print(step, value.item(), p.tolist())
    return p.detach()


best = minimise([-1.2, 1.0])
print(best)
print(minimise([2.0, 2.0], steps=6))
