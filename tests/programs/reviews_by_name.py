"""Reviews told good from bad: batches are dicts with texts in them, functions that switch the model's mode, a best state."""
from collections import defaultdict

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

np.random.seed(7)
torch.manual_seed(7)
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
REVIEWS = [("a fine story", 1), ("a dull story", 0), ("really fine acting", 1), ("really dull acting", 0), ("fine", 1),
           ("weak acting", 0), ("a strong story", 1), ("dull and weak", 0)] * 3
WORDS = {word: i + 1 for i, word in enumerate(sorted(set(" ".join(text for text, _ in REVIEWS).split())))}


class Reviews(Dataset):
    def __init__(self, pairs, length):
        self.pairs = pairs
        self.length = length

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        text, target = self.pairs[i]
        ids = [WORDS[word] for word in text.split()][: self.length]
        padding = [0] * (self.length - len(ids))
        return {
            "text": text,
            "ids": torch.tensor(ids + padding),
            "mask": torch.tensor([1] * len(ids) + padding),
            "target": torch.tensor(target, dtype=torch.long),
        }


class Classifier(nn.Module):
    def __init__(self, classes):
        super(Classifier, self).__init__()
        self.embedding = nn.Embedding(len(WORDS) + 1, 12, padding_idx=0)
        self.drop = nn.Dropout(p=0.3)
        self.out = nn.Linear(12, classes)

    def forward(self, ids, mask):
        hidden = self.embedding(ids) * mask.unsqueeze(-1)
        pooled = hidden.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
        return self.out(self.drop(pooled))


def train_epoch(model, loader, loss_fn, optimizer, device, scheduler, n):
    model = model.train()
    losses = []
    correct = 0
    for d in loader:
        ids = d["ids"].to(device)
        mask = d["mask"].to(device)
        target = d["target"].to(device)
        outputs = model(ids=ids, mask=mask)
        _, preds = torch.max(outputs, dim=1)
        loss = loss_fn(outputs, target)
        correct += torch.sum(preds == target)
        losses.append(loss.item())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    return correct.double() / n, np.mean(losses)


def evaluate(model, loader, loss_fn, device, n):
    model = model.eval()
    losses = []
    correct = 0
    with torch.no_grad():
        for d in loader:
            ids = d["ids"].to(device)
            mask = d["mask"].to(device)
            target = d["target"].to(device)
            outputs = model(ids=ids, mask=mask)
            _, preds = torch.max(outputs, dim=1)
            correct += torch.sum(preds == target)
            losses.append(loss_fn(outputs, target).item())
    return correct.double() / n, np.mean(losses)


def predictions(model, loader):
    model = model.eval()
    texts, found, probabilities = [], [], []
    with torch.no_grad():
        for d in loader:
            names = d["text"]
            outputs = model(ids=d["ids"].to(device), mask=d["mask"].to(device))
            texts.extend(names)
            found.extend(torch.max(outputs, dim=1)[1])
            probabilities.extend(nn.functional.softmax(outputs, dim=1))
    return texts, torch.stack(found).cpu(), torch.stack(probabilities).cpu()


training = DataLoader(Reviews(REVIEWS[:16], 4), batch_size=4, num_workers=0)
validation = DataLoader(Reviews(REVIEWS[16:], 4), batch_size=4, num_workers=0)
model = Classifier(2)
model = model.to(device)
EPOCHS = 3
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-2)
total = len(training) * EPOCHS
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, 1 - step / total))
loss_fn = nn.CrossEntropyLoss().to(device)
history = defaultdict(list)
best = 0
for epoch in range(EPOCHS):
    train_acc, train_loss = train_epoch(model, training, loss_fn, optimizer, device, scheduler, 16)
    val_acc, val_loss = evaluate(model, validation, loss_fn, device, 8)
    print(f"{epoch + 1}/{EPOCHS} train {train_loss:.5f} {train_acc:.3f} validation {val_loss:.5f} {val_acc:.3f}")
    history["train"].append(train_acc)
    history["validation"].append(val_acc)
    if val_acc > best:
        torch.save(model.state_dict(), "best.bin")
        best = val_acc
texts, found, probabilities = predictions(model, validation)
print(texts[:2], found, probabilities[:, 1])
