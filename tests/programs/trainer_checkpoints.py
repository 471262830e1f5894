from pathlib import Path

import torch
from torch import nn, optim


class Classifier(nn.Module):
    def __init__(self, vocab_size: int, hidden: int = 16):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, 8)
        self.gru = nn.GRU(8, hidden, batch_first=True)
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, 2)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        out, _ = self.gru(self.embedding(tokens))
        return self.head(self.norm(out.mean(1)))


class Trainer:
    def __init__(self, model: nn.Module, lr: float, out_dir: str):
        self.model = model
        self.optimizer = optim.AdamW(model.parameters(), lr=lr)
        self.scheduler = optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=8)
        self.criterion = nn.CrossEntropyLoss()
        self.out_dir = Path(out_dir)
        self.out_dir.mkdir(parents=True, exist_ok=True)
        self.best_loss = float("inf")
        self.epoch = 0

    def save(self, name: str) -> None:
        state = {
            "epoch": self.epoch,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "best_loss": self.best_loss,
        }
        torch.save(state, self.out_dir / name)

    def load(self, name: str) -> None:
        state = torch.load(self.out_dir / name, map_location="cpu", weights_only=False)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.epoch = state["epoch"]
        self.best_loss = state["best_loss"]

    def train_epoch(self, batches):
        self.model.train()
        total = 0.0
        for tokens, labels in batches:
            logits = self.model(tokens)
            loss = self.criterion(logits, labels)
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            total += loss.item()
        self.scheduler.step()
        return total / len(batches)

    def fit(self, batches, epochs: int) -> None:
        while self.epoch < epochs:
            loss = self.train_epoch(batches)
            self.epoch += 1
            print(f"[{self.epoch:02d}] loss={loss:.4f} lr={self.scheduler.get_last_lr()[0]:.2e}")
            if loss < self.best_loss:
                self.best_loss = loss
                self.save("best.pt")
            self.save("last.pt")


def make_batches(n: int):
    batches = []
    for _ in range(n):
        tokens = torch.randint(0, 30, (8, 6))
        batches.append((tokens, (tokens.sum(1) % 2)))
    return batches


if __name__ == "__main__":
    torch.manual_seed(1)
    batches = make_batches(5)
    Trainer(Classifier(30), 3e-3, "runs").fit(batches, 4)
    resumed = Trainer(Classifier(30), 3e-3, "runs")
    resumed.load("last.pt")
    resumed.fit(batches, 8)
    print(f"best {resumed.best_loss:.4f}")
