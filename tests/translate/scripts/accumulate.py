import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATION_STEPS = 2
MAX_NORM = 0.5


class Classifier(nn.Module):
    def __init__(self, vocab_size=11, dim=4, num_classes=3):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, dim, padding_idx=0)
        self.rnn = nn.GRU(dim, 5, batch_first=True)
        self.head = nn.Linear(5, num_classes)

    def forward(self, tokens):
        _, hidden = self.rnn(self.embedding(tokens))
        return self.head(hidden[-1])


losses, norms, rates = [], [], []
tokens = torch.arange(48).reshape(8, 6) % 11
labels = torch.arange(8) % 3
loader = DataLoader(TensorDataset(tokens, labels), batch_size=2)
model = Classifier()
# train
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.05, weight_decay=0.01)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=10)

for epoch in range(2):
    model.train()
    optimizer.zero_grad()
    for step, (inputs, targets) in enumerate(loader):
        logits = model(inputs)
        loss = criterion(logits, targets) / ACCUMULATION_STEPS
        loss.backward()
        losses.append(loss.item() * ACCUMULATION_STEPS)

        if (step + 1) % ACCUMULATION_STEPS == 0:
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
            norms.append(norm.item())
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            rates.append(scheduler.get_last_lr()[0])
