import torch
import torch.nn as nn
from trainer import Trainer

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
data = [(torch.randn(6, 5), torch.randint(0, 3, (6,))) for _ in range(5)]
Trainer(model, torch.optim.Adam(model.parameters(), 1e-2), nn.CrossEntropyLoss()).fit(data, 2)
