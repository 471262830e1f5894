import torch as th
import torch.nn.functional as F

th.manual_seed(42)
N, D = 120, 5
X = th.randn(N, D)
w_true = th.tensor([1.5, -2., 0.5, 0., 1.])
t = (X @ w_true + 0.3 * th.randn(N) > 0).float()

model = th.nn.Linear(D, 1)
opt = th.optim.LBFGS(model.parameters(), lr=1, max_iter=4, line_search_fn="strong_wolfe")
lam = 1e-2


def closure():
    opt.zero_grad()
    logits = model(X).squeeze(1)
    loss = F.binary_cross_entropy_with_logits(logits, t) + lam * model.weight.pow(2).sum()
    loss.backward()
    return loss


for it in range(4):
    loss = opt.step(closure)
    with th.inference_mode():
        acc = ((model(X).squeeze(1) > 0).float() == t).float().mean()
    print("iter", it, "loss %.5f" % loss.item(), "acc %.3f" % acc.item())
print(model.weight.data, model.bias.data)
