"""Features of a ResNet without its last layer."""

import torch
from torch import nn
from torchvision import models

torch.manual_seed(0)
resnet = models.resnet18(weights=None)
extractor = nn.Sequential(*list(resnet.children())[:-1])
extractor.eval()
with torch.no_grad():
    features = extractor(torch.randn(2, 3, 32, 32)).squeeze()
print(features.shape, features.mean().item())
