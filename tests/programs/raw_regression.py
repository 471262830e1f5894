import torch
import torch.nn.functional as F

torch.manual_seed(0)
X = torch.randn(60, 2)
y = X @ torch.tensor([[2.0], [-3.4]]) + 4.2

w = torch.randn(2, 1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)


def model(X):
    return X @ w + b


optimizer = torch.optim.SGD([w, b], lr=0.1, momentum=0.9)
for epoch in range(5):
    for i in range(0, 60, 20):
        loss = F.mse_loss(model(X[i:i + 20]), y[i:i + 20])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(f'epoch {epoch} loss {F.mse_loss(model(X), y).item():.4f}')
print('w', w.flatten().tolist(), 'b', b.item())
