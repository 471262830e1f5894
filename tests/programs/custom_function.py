import torch
import torch.nn as nn


class StraightThrough(torch.autograd.Function):
    """Rounds in the forward pass, and passes the gradient of values in [-1, 1]."""

    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return input.sign()

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[input.abs() > 1] = 0
        return grad_input


class BinaryLinear(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_features, in_features) * 0.3)
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, x):
        return nn.functional.linear(x, StraightThrough.apply(self.weight), self.bias)


model = nn.Sequential(BinaryLinear(8, 16), nn.BatchNorm1d(16), nn.Hardtanh(), BinaryLinear(16, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
x = torch.randn(64, 8)
y = (x[:, 0] > 0).long()
for i in range(10):
    optimizer.zero_grad()
    out = model(x)
    loss = criterion(out, y)
    loss.backward()
    optimizer.step()
    for p in model.parameters():
        p.data.clamp_(-1, 1)
    acc = (out.argmax(1) == y).float().mean()
    print(i, '%.5f' % loss.item(), '%.3f' % acc.item())
