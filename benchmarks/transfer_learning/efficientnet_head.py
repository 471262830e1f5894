"""EfficientNet-B0 with a head of one's own behind a frozen body."""

import torch
import torchvision.models as models
from torch import nn

torch.manual_seed(0)
model = models.efficientnet_b0(weights=None)
for param in model.features.parameters():
    param.requires_grad = False
model.classifier = nn.Sequential(nn.Dropout(p=0.2), nn.Linear(model.classifier[1].in_features, 4))
optimizer = torch.optim.Adam(model.classifier.parameters(), lr=0.01)
x, y = torch.randn(2, 3, 32, 32), torch.tensor([3, 1])
for step in range(2):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    print(step, loss.item())
model.eval()
with torch.no_grad():
    print(model(x).softmax(1))
