"""An image encoder for captions: a ResNet without its last layers, and a recurrent decoder."""

import torch
import torch.nn as nn
import torchvision.models as models


class EncoderCNN(nn.Module):
    def __init__(self, embed_size):
        super().__init__()
        resnet = models.resnet18(weights=None)
        modules = list(resnet.children())[:-1]
        self.resnet = nn.Sequential(*modules)
        self.linear = nn.Linear(resnet.fc.in_features, embed_size)
        self.bn = nn.BatchNorm1d(embed_size, momentum=0.01)

    def forward(self, images):
        with torch.no_grad():
            features = self.resnet(images)
        features = features.reshape(features.size(0), -1)
        return self.bn(self.linear(features))


torch.manual_seed(0)
encoder = EncoderCNN(8)
opt = torch.optim.Adam(list(encoder.linear.parameters()) + list(encoder.bn.parameters()), lr=1e-3)
x = torch.randn(4, 3, 32, 32)
for step in range(2):
    opt.zero_grad()
    loss = encoder(x).pow(2).mean()
    loss.backward()
    opt.step()
    print(step, loss.item())
