# Text classification: EmbeddingBag over batches of different lengths.
from collections import Counter
from typing import List, Tuple

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

try:
    from tqdm.auto import tqdm
except ImportError:
    def tqdm(x, **kwargs):
        return x

CORPUS = [
    ("the market fell sharply on monday", 0), ("stocks rose after the bank cut rates", 0),
    ("the striker scored twice in the second half", 1), ("the team won the cup final", 1),
    ("scientists found water on the moon", 2), ("a new telescope found a distant moon", 2),
    ("the bank reported a loss", 0), ("a late goal won the match for the team", 1),
    ("the rocket reached the moon on monday", 2), ("rates rose and stocks fell", 0),
    ("the coach praised the goal", 1), ("water was found by the telescope", 2),
]


class Vocabulary:
    def __init__(self, texts: List[str]):
        counts = Counter(w for t in texts for w in t.split())
        self.itos = ["<unk>"] + sorted(counts)
        self.stoi = {w: i for i, w in enumerate(self.itos)}

    def __len__(self) -> int:
        return len(self.itos)

    def __call__(self, text: str) -> List[int]:
        return [self.stoi.get(w, 0) for w in text.split()]


class News(Dataset):
    def __init__(self, rows: List[Tuple[str, int]]):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


vocab = Vocabulary([text for text, _ in CORPUS])


def collate_batch(batch):
    label_list, text_list, offsets = [], [], [0]
    for _text, _label in batch:
        label_list.append(_label)
        processed_text = torch.tensor(vocab(_text), dtype=torch.int64)
        text_list.append(processed_text)
        offsets.append(processed_text.size(0))
    label_list = torch.tensor(label_list, dtype=torch.int64)
    offsets = torch.tensor(offsets[:-1]).cumsum(dim=0)
    text_list = torch.cat(text_list)
    return label_list, text_list, offsets


class TextClassificationModel(nn.Module):
    def __init__(self, vocab_size: int, embed_dim: int, num_class: int) -> None:
        super().__init__()
        self.embedding = nn.EmbeddingBag(vocab_size, embed_dim, sparse=False)
        self.fc = nn.Linear(embed_dim, num_class)
        self.init_weights()

    def init_weights(self) -> None:
        initrange = 0.5
        self.embedding.weight.data.uniform_(-initrange, initrange)
        self.fc.weight.data.uniform_(-initrange, initrange)
        self.fc.bias.data.zero_()

    def forward(self, text: Tensor, offsets: Tensor) -> Tensor:
        embedded = self.embedding(text, offsets)
        return self.fc(embedded)


def train(dataloader: DataLoader) -> float:
    model.train()
    total_acc, total_count = 0, 0
    for idx, (label, text, offsets) in enumerate(tqdm(dataloader, leave=False)):
        optimizer.zero_grad()
        predicted_label = model(text, offsets)
        loss = criterion(predicted_label, label)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        total_acc += (predicted_label.argmax(1) == label).sum().item()
        total_count += label.size(0)
    return total_acc / total_count


def evaluate(dataloader: DataLoader) -> float:
    model.eval()
    total_acc, total_count = 0, 0
    with torch.no_grad():
        for idx, (label, text, offsets) in enumerate(dataloader):
            predicted_label = model(text, offsets)
            loss = criterion(predicted_label, label)
            total_acc += (predicted_label.argmax(1) == label).sum().item()
            total_count += label.size(0)
    print("last loss", loss.item())
    return total_acc / total_count


EPOCHS = 5
model = TextClassificationModel(len(vocab), 8, 3)
criterion = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=5.0)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1.0, gamma=0.5)
dataset = News(CORPUS)
train_dataloader = DataLoader(dataset, batch_size=4, shuffle=True, collate_fn=collate_batch)
total_accu = None
for epoch in range(1, EPOCHS + 1):
    train(train_dataloader)
    accu_val = evaluate(train_dataloader)
    if total_accu is not None and total_accu > accu_val:
        scheduler.step()
    else:
        total_accu = accu_val
    print("| end of epoch {:3d} | accuracy {:8.3f} | lr {}".format(epoch, accu_val, scheduler.get_last_lr()[0]))
