import torch
from torch import nn
from torch.nn import init

torch.manual_seed(0)


def init_weights(net, init_type='normal', init_gain=0.02):
    def init_func(m):
        classname = m.__class__.__name__
        if hasattr(m, 'weight') and (classname.find('Conv') != -1 or classname.find('Linear') != -1):
            if init_type == 'normal':
                init.normal_(m.weight.data, 0.0, init_gain)
            else:
                raise NotImplementedError('initialization method [%s] is not implemented' % init_type)
            if hasattr(m, 'bias') and m.bias is not None:
                init.constant_(m.bias.data, 0.0)
        elif classname.find('BatchNorm2d') != -1:
            init.normal_(m.weight.data, 1.0, init_gain)
            init.constant_(m.bias.data, 0.0)
    print('initialize network with %s' % init_type)
    net.apply(init_func)
    return net


net = init_weights(nn.Sequential(
    nn.Conv2d(2, 6, 3, padding=1), nn.BatchNorm2d(6), nn.LeakyReLU(0.2, True),
    nn.ConvTranspose2d(6, 4, 2, stride=2, bias=False), nn.InstanceNorm2d(4), nn.ReLU(True), nn.Flatten(), nn.Linear(256, 3)))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, betas=(0.5, 0.999))
for step in range(5):
    x = torch.randn(6, 2, 4, 4)
    loss = nn.functional.cross_entropy(net(x), x.sum((1, 2, 3)).gt(0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, round(loss.item(), 4))
