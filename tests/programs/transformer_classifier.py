import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=64):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer('pe', pe)

    def forward(self, x):
        x = x + self.pe[:x.size(0)]
        return self.dropout(x)


class TransformerClassifier(nn.Module):
    def __init__(self, ntoken, d_model, nhead, d_hid, nlayers, nclass, dropout=0.1):
        super().__init__()
        self.d_model = d_model
        self.pos_encoder = PositionalEncoding(d_model, dropout)
        encoder_layers = nn.TransformerEncoderLayer(d_model, nhead, d_hid, dropout)
        self.transformer_encoder = nn.TransformerEncoder(encoder_layers, nlayers)
        self.embedding = nn.Embedding(ntoken, d_model)
        self.linear = nn.Linear(d_model, nclass)
        self.init_weights()

    def init_weights(self):
        initrange = 0.1
        self.embedding.weight.data.uniform_(-initrange, initrange)
        self.linear.bias.data.zero_()
        self.linear.weight.data.uniform_(-initrange, initrange)

    def forward(self, src, src_key_padding_mask=None):
        src = self.embedding(src) * math.sqrt(self.d_model)
        src = self.pos_encoder(src.transpose(0, 1))
        output = self.transformer_encoder(src, src_key_padding_mask=src_key_padding_mask)
        return self.linear(output.mean(dim=0))


class ParityDataset(Dataset):
    def __init__(self, n, length, ntoken):
        g = torch.Generator().manual_seed(0)
        self.x = torch.randint(1, ntoken, (n, length), generator=g)
        self.y = (self.x == 3).sum(1) % 2

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def get_lr(step, d_model, warmup):
    step = max(step, 1)
    return d_model ** -0.5 * min(step ** -0.5, step * warmup ** -1.5)


def main():
    torch.manual_seed(0)
    d_model, warmup = 16, 10
    model = TransformerClassifier(12, d_model, 2, 32, 2, 2)
    train_set = ParityDataset(48, 8, 12)
    loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: get_lr(s, d_model, warmup))
    n_params = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(f"{n_params:,} trainable parameters")
    for epoch in range(3):
        model.train()
        total_loss, correct = 0., 0
        for x, y in loader:
            mask = (x == 0)
            optimizer.zero_grad(set_to_none=True)
            out = model(x, src_key_padding_mask=mask)
            loss = criterion(out, y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            scheduler.step()
            total_loss += loss.item() * len(x)
            correct += (out.argmax(dim=-1) == y).sum().item()
        print(f"| epoch {epoch} | loss {total_loss / len(train_set):.4f} | acc {correct / len(train_set):.3f} "
              f"| lr {scheduler.get_last_lr()[0]:.5f}")


if __name__ == "__main__":
    main()
