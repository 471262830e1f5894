import numpy as np, torch
from torch import nn

rng = np.random.default_rng(0)
n_users, n_items, k = 20, 15, 4
U, V = rng.normal(size=(n_users, k)), rng.normal(size=(n_items, k))
R = U @ V.T
users, items = np.nonzero(rng.random((n_users, n_items)) < 0.5)
ratings = R[users, items]

class MF(nn.Module):
    def __init__(self, n_users, n_items, n_factors=4):
        super().__init__()
        self.u, self.v = nn.Embedding(n_users, n_factors), nn.Embedding(n_items, n_factors)
        self.ub, self.vb = nn.Embedding(n_users, 1), nn.Embedding(n_items, 1)
        self.mu = nn.Parameter(torch.zeros(1))
        for emb in (self.u, self.v): nn.init.normal_(emb.weight, std=0.1)
        for emb in (self.ub, self.vb): nn.init.zeros_(emb.weight)
    def forward(self, u, i):
        return (self.u(u) * self.v(i)).sum(1) + self.ub(u).squeeze(1) + self.vb(i).squeeze() + self.mu

model = MF(n_users, n_items); opt = torch.optim.Adagrad(model.parameters(), lr=0.1, weight_decay=1e-5); mse = nn.MSELoss()
u, i, r = torch.LongTensor(users), torch.LongTensor(items), torch.FloatTensor(ratings)
for epoch in range(8):
    perm = torch.randperm(len(r)); tot = 0.
    for b in range(0, len(r), 32):
        j = perm[b:b+32]
        loss = mse(model(u[j], i[j]), r[j])
        opt.zero_grad(); loss.backward(); opt.step()
        tot += loss.item() * len(j)
    if epoch % 2: print(epoch, tot / len(r))
