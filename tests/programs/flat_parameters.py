import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
other = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.BatchNorm2d(4))
flat = torch.cat([p.view(-1) for p in net.parameters()])
flat2 = torch.cat([p.data.flatten() for p in other.parameters()])
print(flat.shape, flat[:4], flat2.norm(), flat2[5:9])
v = parameters_to_vector(net.parameters())
print(v.shape[0], v[3:9])
vector_to_parameters(v * 2 + torch.arange(len(v)) * 0.01, net.parameters())
print(net(torch.ones(1, 3)))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
anchor = parameters_to_vector(net.parameters()).detach()
for i in range(3):
    x = torch.ones(2, 3) * i
    penalty = (parameters_to_vector(net.parameters()) - 0.5 * anchor).pow(2).sum() + torch.cat([p.view(-1) for p in net.parameters()])[2:9].sum()
    loss = net(x).pow(2).mean() + 0.1 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
