import torch
import torch.nn as nn
import torch.nn.functional as F

activation = {}


def get_activation(name):
    def hook(model, input, output):
        activation[name] = output.detach()
    return hook


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
        self.conv2 = nn.Conv2d(4, 8, 3, padding=1)
        self.fc = nn.Linear(8, 3)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.relu(self.conv2(x))
        return self.fc(x.mean(dim=(2, 3)))


def main():
    torch.manual_seed(7)
    images = torch.rand(24, 1, 8, 8)
    labels = torch.randint(0, 3, (24,))
    model = ConvNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(4):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        print('epoch', epoch, 'loss', loss.item())

    handle = model.conv2.register_forward_hook(get_activation('conv2'))
    model.eval()
    with torch.no_grad():
        output = model(images[:2])
    handle.remove()
    print('output', output)
    print('conv2', activation['conv2'].shape, activation['conv2'].mean().item())


if __name__ == '__main__':
    main()
