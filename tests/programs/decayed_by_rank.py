"""Next letters with a transformer: decay of matrices only, rates set at each step, gradients of two batches, the next
batch fetched in front of the backward pass."""
import inspect
import math
from contextlib import nullcontext

import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F

batch_size, block_size, steps, evaluate_every = 4, 8, 20, 10
rate, smallest, warmup = 1e-2, 1e-3, 4
decay, beta1, beta2, clip = 0.5, 0.9, 0.95, 1.0
accumulated = 2
device = "cpu"
device_type = "cuda" if "cuda" in device else "cpu"
dtype = "float32"
torch.manual_seed(5)
kinds = {"float32": torch.float32, "bfloat16": torch.bfloat16}
context = nullcontext() if device_type == "cpu" else torch.amp.autocast(device_type=device_type, dtype=kinds[dtype])
text = "the tide came in and the tide went out and the boats lay still " * 5
letters = sorted(set(text))
codes = np.array([letters.index(c) for c in text], dtype=np.uint16)
split = {"train": codes[:250], "validation": codes[250:]}


def get_batch(part):
    data = split[part]
    at = torch.randint(len(data) - block_size, (batch_size,))
    x = torch.stack([torch.from_numpy(data[i : i + block_size].astype(np.int64)) for i in at])
    y = torch.stack([torch.from_numpy(data[i + 1 : i + 1 + block_size].astype(np.int64)) for i in at])
    if device_type == "cuda":
        x, y = x.pin_memory().to(device, non_blocking=True), y.pin_memory().to(device, non_blocking=True)
    else:
        x, y = x.to(device), y.to(device)
    return x, y


class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.ln = nn.LayerNorm(n)
        self.attend = nn.MultiheadAttention(n, 2, batch_first=True, bias=False)
        self.mlp = nn.Sequential(nn.Linear(n, 2 * n), nn.GELU(), nn.Linear(2 * n, n))

    def forward(self, x):
        t = x.size(1)
        mask = torch.triu(torch.ones(t, t, dtype=torch.bool, device=x.device), diagonal=1)
        h = self.ln(x)
        x = x + self.attend(h, h, h, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(h)


class Model(nn.Module):
    def __init__(self, size, n=16):
        super().__init__()
        self.parts = nn.ModuleDict(dict(
            tokens=nn.Embedding(size, n),
            places=nn.Embedding(block_size, n),
            blocks=nn.ModuleList([Block(n) for _ in range(2)]),
        ))
        self.head = nn.Linear(n, size, bias=False)
        self.parts.tokens.weight = self.head.weight
        print("%d parameters" % sum(p.numel() for p in self.parameters()))

    def forward(self, x, targets=None):
        places = torch.arange(0, x.size(1), dtype=torch.long, device=x.device)
        h = self.parts.tokens(x) + self.parts.places(places)
        for block in self.parts.blocks:
            h = block(h)
        logits = self.head(h)
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss

    def make_optimizer(self, decay, rate, betas, device_type):
        named = {n: p for n, p in self.named_parameters()}
        named = {n: p for n, p in named.items() if p.requires_grad}
        decayed = [p for n, p in named.items() if p.dim() >= 2]
        others = [p for n, p in named.items() if p.dim() < 2]
        groups = [{"params": decayed, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}]
        fused = "fused" in inspect.signature(torch.optim.AdamW).parameters and device_type == "cuda"
        extra = dict(fused=True) if fused else dict()
        return torch.optim.AdamW(groups, lr=rate, betas=betas, **extra)


model = Model(len(letters))
model.to(device)
scaler = torch.amp.GradScaler(device_type, enabled=(dtype == "float16"))
optimizer = model.make_optimizer(decay, rate, (beta1, beta2), device_type)


@torch.no_grad()
def estimate():
    model.eval()
    means = {}
    for part in ["train", "validation"]:
        losses = torch.zeros(2)
        for k in range(2):
            x, y = get_batch(part)
            with context:
                _, loss = model(x, y)
            losses[k] = loss.item()
        means[part] = losses.mean()
    model.train()
    return means


def rate_at(step):
    if step < warmup:
        return rate * (step + 1) / (warmup + 1)
    done = (step - warmup) / (steps - warmup)
    return smallest + 0.5 * (1.0 + math.cos(math.pi * done)) * (rate - smallest)


x, y = get_batch("train")
step = 0
while True:
    for group in optimizer.param_groups:
        group["lr"] = rate_at(step)
    if step % evaluate_every == 0:
        means = estimate()
        print(f"step {step}: train {means['train']:.4f}, validation {means['validation']:.4f}")
    for _ in range(accumulated):
        with context:
            logits, loss = model(x, y)
            loss = loss / accumulated
        x, y = get_batch("train")
        scaler.scale(loss).backward()
    if clip != 0.0:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    if step % 5 == 0:
        print(f"{step}: {loss.item() * accumulated:.4f}")
    step += 1
    if step > steps:
        break
