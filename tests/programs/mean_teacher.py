import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def update_ema_variables(model, ema_model, alpha, global_step):
    # Use the true average until the exponential average is more correct
    alpha = min(1 - 1 / (global_step + 1), alpha)
    for ema_param, param in zip(ema_model.parameters(), model.parameters()):
        ema_param.data.mul_(alpha).add_(param.data, alpha=1 - alpha)


def create_model(ema=False):
    model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
    if ema:
        for param in model.parameters():
            param.detach_()
    return model


model = create_model()
ema_model = create_model(ema=True)
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)
x_l, y_l = torch.randn(16, 5), torch.randint(0, 3, (16,))
x_u = torch.randn(48, 5)
global_step = 0
for epoch in range(6):
    model.train()
    ema_model.train()
    for i in range(3):
        x = torch.cat([x_l, x_u[i * 16:(i + 1) * 16]])
        logits = model(x)
        with torch.no_grad():
            ema_logits = ema_model(x)
        class_loss = F.cross_entropy(logits[:16], y_l)
        consistency_loss = F.mse_loss(F.softmax(logits, dim=1), F.softmax(ema_logits, dim=1))
        loss = class_loss + 10.0 * consistency_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        global_step += 1
        update_ema_variables(model, ema_model, 0.9, global_step)
    print(f"Epoch {epoch}: class {class_loss.item():.4f} consistency {consistency_loss.item():.5f}")
model.eval()
ema_model.eval()
with torch.no_grad():
    print((ema_model(x_u) - model(x_u)).abs().max().item())
