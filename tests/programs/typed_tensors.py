"""Two networks against each other on small pictures, with the old tensor types: on a device, or without one."""
import numpy as np
import torch
import torch.nn as nn
from torch.autograd import Variable
from torch.utils.data import DataLoader

torch.manual_seed(4)
cuda = True if torch.cuda.is_available() else False
Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor
SHAPE = (1, 5, 5)


class Maker(nn.Module):
    def __init__(self, latent):
        super(Maker, self).__init__()

        def block(n_in, n_out, normalize=True):
            layers = [nn.Linear(n_in, n_out)]
            if normalize:
                layers.append(nn.BatchNorm1d(n_out, 0.8))
            layers.append(nn.LeakyReLU(0.2, inplace=True))
            return layers

        self.model = nn.Sequential(
            *block(latent, 8, normalize=False), *block(8, 12), nn.Linear(12, int(np.prod(SHAPE))), nn.Tanh()
        )

    def forward(self, z):
        return self.model(z).view(z.size(0), *SHAPE)


class Judge(nn.Module):
    def __init__(self):
        super(Judge, self).__init__()
        self.model = nn.Sequential(
            nn.Linear(int(np.prod(SHAPE)), 12), nn.LeakyReLU(0.2, inplace=True), nn.Linear(12, 1), nn.Sigmoid()
        )

    def forward(self, images):
        return self.model(images.view(images.size(0), -1))


criterion = torch.nn.BCELoss()
maker = Maker(4)
judge = Judge()
if cuda:
    maker.cuda()
    judge.cuda()
    criterion.cuda()
loader = DataLoader([(torch.rand(SHAPE) * 2 - 1, 0) for _ in range(24)], batch_size=8, shuffle=True)
optimizer_m = torch.optim.Adam(maker.parameters(), lr=0.002, betas=(0.5, 0.999))
optimizer_j = torch.optim.Adam(judge.parameters(), lr=0.002, betas=(0.5, 0.999))
noise = np.random.RandomState(0)
for epoch in range(2):
    for i, (images, _) in enumerate(loader):
        valid = Variable(Tensor(images.size(0), 1).fill_(1.0), requires_grad=False)
        fake = Variable(Tensor(images.size(0), 1).fill_(0.0), requires_grad=False)
        real = Variable(images.type(Tensor))

        optimizer_m.zero_grad()
        z = Variable(Tensor(noise.normal(0, 1, (images.shape[0], 4))))
        made = maker(z)
        loss_m = criterion(judge(made), valid)
        loss_m.backward()
        optimizer_m.step()

        optimizer_j.zero_grad()
        loss_j = (criterion(judge(real), valid) + criterion(judge(made.detach()), fake)) / 2
        loss_j.backward()
        optimizer_j.step()
        print("[%d] [%d/%d] [%f] [%f]" % (epoch, i, len(loader), loss_j.item(), loss_m.item()))
