import numpy as np
import torch
from torch import nn


class QuantileLoss(nn.Module):
    def __init__(self, quantiles):
        super().__init__()
        self.quantiles = quantiles

    def forward(self, preds, target):
        assert not target.requires_grad
        assert preds.size(0) == target.size(0)
        losses = []
        for i, q in enumerate(self.quantiles):
            errors = target - preds[:, i]
            losses.append(torch.max((q - 1) * errors, q * errors).unsqueeze(1))
        loss = torch.mean(torch.sum(torch.cat(losses, dim=1), dim=1))
        return loss


class q_model(nn.Module):
    def __init__(self, quantiles, in_shape=1, dropout=0.2):
        super().__init__()
        self.quantiles = quantiles
        self.num_quantiles = len(quantiles)
        self.in_shape = in_shape
        self.out_shape = len(quantiles)
        self.dropout = dropout
        self.build_model()
        self.init_weights()

    def build_model(self):
        self.base_model = nn.Sequential(
            nn.Linear(self.in_shape, 16),
            nn.ReLU(),
            nn.Dropout(self.dropout),
            nn.Linear(16, 16),
            nn.ReLU(),
        )
        final_layers = [nn.Linear(16, 1) for _ in range(len(self.quantiles))]
        self.final_layers = nn.ModuleList(final_layers)

    def init_weights(self):
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.orthogonal_(m.weight)
                nn.init.constant_(m.bias, 0)

    def forward(self, x):
        tmp_ = self.base_model(x)
        return torch.cat([layer(tmp_) for layer in self.final_layers], dim=1)


class Learner:
    def __init__(self, model, optimizer_class, loss_func, device='cpu'):
        self.model = model.to(device)
        self.optimizer = optimizer_class(self.model.parameters())
        self.loss_func = loss_func.to(device)
        self.device = device
        self.loss_history = []

    def fit(self, x, y, epochs, batch_size):
        self.model.train()
        for e in range(epochs):
            shuffle_idx = np.arange(x.shape[0])
            np.random.shuffle(shuffle_idx)
            x = x[shuffle_idx]
            y = y[shuffle_idx]
            epoch_losses = []
            for idx in range(0, x.shape[0], batch_size):
                self.optimizer.zero_grad()
                batch_x = torch.from_numpy(x[idx: min(idx + batch_size, x.shape[0])]).float().to(self.device)
                batch_y = torch.from_numpy(y[idx: min(idx + batch_size, y.shape[0])]).float().to(self.device)
                preds = self.model(batch_x)
                loss = self.loss_func(preds, batch_y)
                loss.backward()
                self.optimizer.step()
                epoch_losses.append(loss.cpu().detach().numpy())
            epoch_loss = np.mean(epoch_losses)
            self.loss_history.append(epoch_loss)
            print("Epoch {}: {:.3f}".format(e + 1, epoch_loss))

    def predict(self, x, mc=False):
        if mc:
            self.model.train()
        else:
            self.model.eval()
        return self.model(torch.from_numpy(x).to(self.device).float()).cpu().detach().numpy()


np.random.seed(1)
x_train = np.random.uniform(0, 10, 120)
y_train = x_train * np.sin(x_train) + np.random.normal(0, 0.5 + 0.1 * x_train)
quantiles = [.05, .5, .95]
model = q_model(quantiles)
loss_func = QuantileLoss(quantiles)
learner = Learner(model, torch.optim.Adam, loss_func)
learner.fit(x_train[:, None], y_train, epochs=4, batch_size=32)
preds = learner.predict(np.linspace(0, 10, 5)[:, None])
print(preds)
