"""Networks whose weights stand in lists and dicts, trained by optimizers that are handed these lists."""
import torch
import torch.nn.functional as F


def init(n_in, n_out):
    w = torch.randn(n_in, n_out) / n_in ** 0.5
    w.requires_grad_()
    b = torch.zeros(n_out, requires_grad=True)
    return w, b


torch.manual_seed(0)
x = torch.randn(48, 3)
target = torch.sin(x).sum(1, keepdim=True)

layers = [init(i, o) for i, o in zip([3, 16, 16], [16, 16, 1])]
params = [p for layer in layers for p in layer]


def mlp(x):
    for w, b in layers[:-1]:
        x = torch.tanh(x @ w + b)
    w, b = layers[-1]
    return x @ w + b


opt = torch.optim.Adam(params, lr=1e-2)
for step in range(30):
    loss = F.mse_loss(mlp(x), target)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 10 == 0:
        print(f"mlp {step} {loss.item():.5f}")
print(sum(p.numel() for p in params))

weights = {"w": torch.zeros(3, 1, requires_grad=True), "b": torch.zeros(1, requires_grad=True)}
sgd = torch.optim.SGD(list(weights.values()), lr=0.1, momentum=0.9)
for step in range(10):
    sgd.zero_grad()
    error = F.l1_loss(x @ weights["w"] + weights["b"], target)
    error.backward()
    sgd.step()
print(f"linear {error.item():.5f}", weights["w"].flatten().tolist())

scales = []
for n in (3, 1):
    scales.append(torch.ones(n, requires_grad=True))


def scaled(x, scales):
    return (x * scales[0]).sum(1, keepdim=True) * scales[1]


adam = torch.optim.AdamW(scales, lr=0.05)
for step in range(10):
    distance = F.smooth_l1_loss(scaled(x, scales), target)
    adam.zero_grad()
    distance.backward()
    adam.step()
    with torch.no_grad():
        scales[1].clamp_(max=0.9)
print(f"scaled {distance.item():.5f}", scales[1].item())

head = [torch.randn(3, 1, requires_grad=True), torch.zeros(1, requires_grad=True)]
for step in range(10):
    residual = F.mse_loss(x @ head[0] + head[1], target)
    residual.backward()
    with torch.no_grad():
        for p in head:
            p -= 0.1 * p.grad
            p.grad = None
print(f"by hand {residual.item():.5f}", head[1].item())

u = torch.randn(3, 1, requires_grad=True)
v = torch.zeros(1, requires_grad=True)
named = [u, v]
for step in range(10):
    for p in named:
        p.grad = None
    penalty = F.mse_loss(x @ u + v, target) + 0.01 * sum((p ** 2).sum() for p in named)
    penalty.backward()
    for p in named:
        p.data += -0.1 * p.grad
print(f"with decay {penalty.item():.5f}", u.norm().item())
