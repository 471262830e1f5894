import torch
import torch.nn as nn


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find('Conv') != -1:
        nn.init.normal_(m.weight.data, 0.0, 0.02)
    elif classname.find('BatchNorm') != -1:
        nn.init.normal_(m.weight.data, 1.0, 0.02)
        nn.init.constant_(m.bias.data, 0)


def init_linear(m):
    if type(m) == nn.Linear:
        torch.nn.init.kaiming_normal_(m.weight, nonlinearity='relu')
        m.bias.data.fill_(0.01)


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.LeakyReLU(0.2),
            nn.Conv2d(4, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.LeakyReLU(0.2),
        )
        self.classifier = nn.Sequential(nn.Flatten(), nn.Linear(32, 10), nn.ReLU(), nn.Linear(10, 2))

    def forward(self, x):
        return self.classifier(self.features(x))


net = Net()
net.features.apply(weights_init)
net.classifier.apply(init_linear)
for i, child in enumerate(net.children()):
    if i == 0:
        for param in child.parameters():
            param.requires_grad = False
for name, param in net.named_parameters():
    if param.requires_grad:
        print(name, tuple(param.shape))
optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, net.parameters()), lr=1e-2)
loss_fn = nn.CrossEntropyLoss()
X = torch.rand(32, 1, 8, 8)
y = (X.mean(dim=(1, 2, 3)) > 0.5).long()
for epoch in range(5):
    pred = net(X)
    loss = loss_fn(pred, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"loss: {loss.item():>7f}")
