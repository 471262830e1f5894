"""Next letters of words: batches from an iterator that an object makes again, a loop without an end, a greedy sampler."""
import torch
import torch.nn as nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

WORDS = "ladder marble needle orchid pepper quiver ribbon saddle timber velvet walnut zipper".split()
LETTERS = sorted(set("".join(WORDS)))


class Letters(Dataset):
    def __init__(self, words, length):
        self.words = words
        self.length = length
        self.index = {letter: i + 1 for i, letter in enumerate(LETTERS)}

    def __len__(self):
        return len(self.words)

    def __getitem__(self, i):
        codes = torch.tensor([self.index[letter] for letter in self.words[i]], dtype=torch.long)
        x = torch.zeros(self.length + 1, dtype=torch.long)
        y = torch.full((self.length + 1,), -1, dtype=torch.long)
        x[1 : 1 + len(codes)] = codes
        y[: len(codes)] = codes
        y[len(codes)] = 0
        return x, y


class Endless:
    def __init__(self, dataset, **options):
        self.loader = DataLoader(dataset, **options)
        self.batches = iter(self.loader)

    def next(self):
        try:
            batch = next(self.batches)
        except StopIteration:
            self.batches = iter(self.loader)
            batch = next(self.batches)
        return batch


class Model(nn.Module):
    def __init__(self, size, width=24):
        super().__init__()
        self.embedding = nn.Embedding(size, width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, size)

    def forward(self, x, targets=None):
        hidden, _ = self.gru(self.embedding(x))
        logits = self.head(hidden)
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss


@torch.no_grad()
def complete(model, codes, steps):
    for _ in range(steps):
        logits, _ = model(codes)
        codes = torch.cat((codes, logits[:, -1, :].argmax(dim=-1, keepdim=True)), dim=1)
    return codes


torch.manual_seed(11)
model = Model(len(LETTERS) + 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, betas=(0.9, 0.99))
endless = Endless(Letters(WORDS, 6), batch_size=5, shuffle=True)
step = 0
while True:
    batch = endless.next()
    batch = [t.to("cpu") for t in batch]
    x, y = batch
    logits, loss = model(x, y)
    model.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step} | loss {loss.item():.4f}")
    step += 1
    if step >= 40:
        break
print(complete(model, torch.tensor([[0, 1], [0, 5]]), 4).tolist())
