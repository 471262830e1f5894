"""A small language model whose forward gives an object with the loss in it, trained for a number of steps."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Settings:
    vocabulary: int = 13
    width: int = 16
    length: int = 10


@dataclass
class Output:
    logits: torch.Tensor
    loss: torch.Tensor | None = None


class LanguageModel(nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.embed = nn.Embedding(settings.vocabulary, settings.width)
        self.position = nn.Parameter(torch.zeros(1, settings.length, settings.width))
        self.mix = nn.GRU(settings.width, settings.width, batch_first=True)
        self.head = nn.Linear(settings.width, settings.vocabulary)

    def forward(self, tokens: torch.Tensor, labels: torch.Tensor | None = None) -> Output:
        hidden, _ = self.mix(self.embed(tokens) + self.position[:, : tokens.shape[1]])
        logits = self.head(hidden)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return Output(logits=logits, loss=loss)


def train(steps: int = 6, learning_rate: float = 1e-2) -> list[float]:
    settings = Settings()
    model = LanguageModel(settings)
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.95), weight_decay=0.1)
    losses: list[float] = []
    for step in range(steps):
        batch = torch.randint(0, settings.vocabulary, (4, settings.length))
        optimizer.zero_grad(set_to_none=True)
        output = model(batch, labels=batch)
        if output.loss is None:
            raise RuntimeError("the model gave no loss")
        output.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(float(output.loss.detach()))
        print(f"step {step}: {losses[-1]:.4f}, largest logit {output.logits.max().item():.4f}")
    model.eval()
    with torch.no_grad():
        print("without labels:", model(torch.arange(10).view(1, 10)).logits.sum().item())
    return losses


if __name__ == "__main__":
    torch.manual_seed(0)
    train()
