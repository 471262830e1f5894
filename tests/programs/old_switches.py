"""A classifier in the way of 2017: size_average, Variable, a layer that shows what goes through, noise around a mean."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Variable

torch.manual_seed(4)


class Show(nn.Module):
    def __init__(self, label):
        super(Show, self).__init__()
        self.label = label

    def forward(self, x):
        print("   ", self.label, "sees", x.size())
        return x


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.body = nn.Sequential(nn.Linear(2, 6), Show("hidden"), nn.ReLU(), nn.Linear(6, 2))

    def forward(self, x):
        return F.log_softmax(self.body(x), dim=1)


centre = torch.ones(10, 2)
x0 = torch.normal(2 * centre, 1)            # around (2, 2)
x1 = torch.normal(-2 * centre, 1)           # around (-2, -2)
jitter = torch.normal(torch.zeros(20, 2), torch.ones(20, 2))
x = Variable(torch.cat((x0, x1), 0) + 0.1 * jitter)
y = Variable(torch.cat((torch.zeros(10), torch.ones(10)), 0).type(torch.LongTensor))

net = Net()
criterion = nn.NLLLoss(size_average=False)  # the sum
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.5)
for epoch in range(5):
    optimizer.zero_grad()
    loss = criterion(net(x), y)
    loss.backward()
    optimizer.step()
    print(epoch, loss.item(), F.nll_loss(net(x), y, size_average=True).item())

each = F.nll_loss(net(x), y, reduce=False)
print(each.size(), each.data.sum().item())
nets = [net, Net()]
[one.eval() for one in nets]
