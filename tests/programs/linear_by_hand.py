import torch, math, random

def make(n=40):
    xs = torch.rand(n, 2); ys = 3 * xs[:, 0] - xs[:, 1] + .5
    return xs, ys

w = torch.zeros(2, requires_grad=True); b = torch.zeros(1, requires_grad=True)
lr = 1e-1

def step(x, y):
    global lr
    pred = x @ w + b
    loss = ((pred - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w.sub_(lr * w.grad); b.sub_(lr * b.grad)
        w.grad.zero_(); b.grad.zero_()
    return loss.item()

x, y = make()
for epoch in range(6):
    tot = 0
    for i in range(0, 40, 10): tot += step(x[i:i+10], y[i:i+10])
    if epoch == 3: lr *= .5
    print(epoch, round(tot / 4, 6))
print(w.tolist(), b.item(), math.isclose(w[0].item(), 3., abs_tol=3))
