"""Forecasting a noisy sine with an LSTM: windows, a scaler, early stopping with restored weights, an autoregressive rollout."""
from copy import deepcopy
from dataclasses import dataclass
from typing import List, Optional, Tuple

import numpy as np
import torch
from torch import nn, Tensor
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    window: int = 8
    hidden: int = 12
    layers: int = 1
    lr: float = 1e-2
    epochs: int = 10
    patience: int = 2
    seed: int = 0


class WindowDataset(Dataset):
    def __init__(self, series: np.ndarray, window: int):
        self.series = torch.from_numpy(series.astype(np.float32))
        self.window = window

    def __len__(self) -> int:
        return len(self.series) - self.window

    def __getitem__(self, i: int) -> Tuple[Tensor, Tensor]:
        return self.series[i:i + self.window].unsqueeze(-1), self.series[i + self.window]


class Forecaster(nn.Module):
    def __init__(self, cfg: Config) -> None:
        super().__init__()
        self.lstm = nn.LSTM(1, cfg.hidden, num_layers=cfg.layers, batch_first=True)
        self.head = nn.Sequential(nn.Linear(cfg.hidden, cfg.hidden), nn.SiLU(), nn.Linear(cfg.hidden, 1))

    def forward(self, x: Tensor, state: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        out, state = self.lstm(x, state)
        return self.head(out[:, -1]).squeeze(-1), state


class EarlyStopping:
    def __init__(self, patience: int, min_delta: float = 0.0):
        self.patience, self.min_delta = patience, min_delta
        self.counter = 0
        self.best: float = float('inf')
        self.state = None

    def __call__(self, value: float, model: nn.Module) -> bool:
        if value < self.best - self.min_delta:
            self.best, self.counter = value, 0
            self.state = deepcopy(model.state_dict())
        else:
            self.counter += 1
        return self.counter >= self.patience


def run(cfg: Config) -> List[float]:
    torch.manual_seed(cfg.seed)
    rng = np.random.default_rng(cfg.seed)
    raw = np.sin(np.arange(90) * 0.3) + rng.normal(0, 0.1, 90)
    mean, std = raw[:60].mean(), raw[:60].std()
    series = (raw - mean) / std
    train_dl = DataLoader(WindowDataset(series[:60], cfg.window), batch_size=16, shuffle=True)
    val_dl = DataLoader(WindowDataset(series[60:], cfg.window), batch_size=64)
    model = Forecaster(cfg)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=cfg.lr, steps_per_epoch=len(train_dl), epochs=cfg.epochs)
    loss_fn = nn.SmoothL1Loss(beta=0.5)
    stop = EarlyStopping(cfg.patience, 1e-3)
    history: List[float] = []
    for epoch in range(cfg.epochs):
        model.train()
        running = 0.0
        for xb, yb in train_dl:
            opt.zero_grad()
            pred, _ = model(xb)
            loss = loss_fn(pred, yb)
            loss.backward()
            grad_norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            running += loss.item() * xb.size(0)
        model.eval()
        with torch.no_grad():
            val = sum(loss_fn(model(xb)[0], yb).item() * len(xb) for xb, yb in val_dl) / len(val_dl.dataset)
        history.append(val)
        print(f'{epoch:02d} train {running / len(train_dl.dataset):.4f} val {val:.4f} |g| {grad_norm:.3f} lr {sched.get_last_lr()[0]:.5f}')
        if stop(val, model):
            print('early stop at', epoch)
            break
    if stop.state is not None:
        model.load_state_dict(stop.state)
    model.eval()
    window = torch.tensor(series[60:60 + cfg.window], dtype=torch.float32).view(1, -1, 1)
    preds = []
    with torch.no_grad():
        for _ in range(5):
            nxt, _ = model(window)
            preds.append(nxt.item() * std + mean)
            window = torch.cat([window[:, 1:], nxt.view(1, 1, 1)], dim=1)
    print('rollout', [round(float(p), 3) for p in preds])
    return history


if __name__ == '__main__':
    history = run(Config())
    print('best', min(history), 'of', len(history))
