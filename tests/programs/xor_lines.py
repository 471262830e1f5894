import torch, torch.nn as nn, torch.optim as optim
torch.manual_seed(0)
X = torch.tensor([[0,0],[0,1],[1,0],[1,1]], dtype=torch.float32); Y = torch.tensor([[0],[1],[1],[0]], dtype=torch.float32)
class XOR(nn.Module):
    def __init__(self, hidden=4):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 1))
    def forward(self, x): return self.net(x)
model = XOR(); opt = optim.RMSprop(model.parameters(), lr=0.05); loss_fn = nn.BCEWithLogitsLoss()
history = []
for ep in range(60):
    loss = loss_fn(model(X), Y); opt.zero_grad(); loss.backward(); opt.step()
    history += [loss.item()]
    if not ep % 20: print(ep, round(history[-1], 5))
with torch.no_grad(): print((torch.sigmoid(model(X)) > 0.5).int().squeeze().tolist(), sum(history) / len(history))
for name, p in model.named_parameters(): print(name, tuple(p.shape), p.data.norm().item())
