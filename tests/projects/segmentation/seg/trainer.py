import time

import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau

from .metrics import EarlyStopping, iou


class Trainer:
    def __init__(self, model, loss_fn, cfg, device="cpu"):
        self.model = model.to(device)
        self.loss_fn = loss_fn
        self.cfg = cfg
        self.device = device
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)
        self.scheduler = ReduceLROnPlateau(self.optimizer, mode="max", factor=0.5, patience=0)
        self.stopper = EarlyStopping(cfg.patience)
        self.history = {"train": [], "val": []}

    def _run_epoch(self, loader, train=True):
        self.model.train(train)
        total = 0.0
        score = 0.0
        with torch.set_grad_enabled(train):
            for batch in loader:
                img = batch["image"].to(self.device)
                mask = batch["mask"].to(self.device)
                logits = self.model(img)
                loss = self.loss_fn(logits, mask)
                if train:
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
                total += loss.item() * len(img)
                score += iou(logits, mask) * len(img)
        n = len(loader.dataset)
        return total / n, score / n

    def fit(self, train_loader, val_loader):
        for epoch in range(self.cfg.epochs):
            t0 = time.time()
            tr_loss, tr_iou = self._run_epoch(train_loader)
            va_loss, va_iou = self._run_epoch(val_loader, train=False)
            self.history["train"].append(tr_loss)
            self.history["val"].append(va_loss)
            self.scheduler.step(va_iou)
            print(f"[{epoch + 1}] loss={tr_loss:.4f}/{va_loss:.4f} iou={tr_iou:.3f}/{va_iou:.3f}")
            if va_iou >= (self.stopper.best or 0):
                torch.save(self.model.state_dict(), self.cfg.ckpt)
            if self.stopper(va_iou):
                print("early stop")
                break
        self.model.load_state_dict(torch.load(self.cfg.ckpt))
        return self.history
