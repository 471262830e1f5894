import torch

torch.manual_seed(0)
n_in, n_h, n_out = 4, 10, 3
W1 = torch.randn(n_in, n_h) * 0.3
b1 = torch.zeros(n_h)
W2 = torch.randn(n_h, n_out) * 0.3
b2 = torch.zeros(n_out)
params = [W1, b1, W2, b2]
for p in params:
    p.requires_grad = True
print(sum(p.nelement() for p in params))

Xtr = torch.randn(90, n_in)
Ytr = Xtr[:, :3].argmax(1)
lossi = []
for i in range(30):
    # minibatch construct
    ix = torch.randint(0, Xtr.shape[0], (30,))
    Xb, Yb = Xtr[ix], Ytr[ix]
    # forward pass
    h = torch.tanh(Xb @ W1 + b1)
    logits = h @ W2 + b2
    loss = torch.nn.functional.cross_entropy(logits, Yb)
    # backward pass
    for p in params:
        p.grad = None
    loss.backward()
    # update
    lr = 0.5 if i < 20 else 0.05
    for p in params:
        p.data += -lr * p.grad
    # track stats
    lossi.append(loss.log10().item())
    if i % 10 == 0:
        print(f'{i:7d}/{30:7d}: {loss.item():.4f}')

with torch.no_grad():
    h = torch.tanh(Xtr @ W1 + b1)
    logits = h @ W2 + b2
    print('train', torch.nn.functional.cross_entropy(logits, Ytr).item())
