"""A word-level RNN language model with truncated backpropagation, the way of the classic example."""
import logging
import math
from dataclasses import dataclass

import torch
import torch.nn as nn

logging.basicConfig(level=logging.INFO)
log = logging.getLogger("lm")


@dataclass
class Config:
    emsize: int = 12
    nhid: int = 16
    nlayers: int = 2
    dropout: float = 0.1
    lr: float = 5.0
    clip: float = 0.25
    bptt: int = 7
    batch_size: int = 4
    epochs: int = 3


class RNNModel(nn.Module):
    def __init__(self, ntoken, cfg):
        super().__init__()
        self.ntoken = ntoken
        self.drop = nn.Dropout(cfg.dropout)
        self.encoder = nn.Embedding(ntoken, cfg.emsize)
        self.rnn = nn.GRU(cfg.emsize, cfg.nhid, cfg.nlayers, dropout=cfg.dropout)
        self.decoder = nn.Linear(cfg.nhid, ntoken)
        self.nhid, self.nlayers = cfg.nhid, cfg.nlayers

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        output = self.drop(output)
        decoded = self.decoder(output)
        decoded = decoded.view(-1, self.ntoken)
        return nn.functional.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return weight.new_zeros(self.nlayers, bsz, self.nhid)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    data = data.narrow(0, 0, nbatch * bsz)
    data = data.view(bsz, -1).t().contiguous()
    return data


def repackage_hidden(h):
    """Wraps hidden states in new Tensors, to detach them from their history."""
    if isinstance(h, torch.Tensor):
        return h.detach()
    else:
        return tuple(repackage_hidden(v) for v in h)


class Trainer:
    def __init__(self, model, cfg, train_data, val_data):
        self.model, self.cfg = model, cfg
        self.train_data, self.val_data = train_data, val_data
        self.criterion = nn.NLLLoss()
        self.lr = cfg.lr

    def get_batch(self, source, i):
        seq_len = min(self.cfg.bptt, len(source) - 1 - i)
        data = source[i:i + seq_len]
        target = source[i + 1:i + 1 + seq_len].view(-1)
        return data, target

    def evaluate(self):
        self.model.eval()
        total_loss = 0.
        hidden = self.model.init_hidden(self.cfg.batch_size)
        with torch.no_grad():
            for i in range(0, self.val_data.size(0) - 1, self.cfg.bptt):
                data, targets = self.get_batch(self.val_data, i)
                output, hidden = self.model(data, hidden)
                hidden = repackage_hidden(hidden)
                total_loss += len(data) * self.criterion(output, targets).item()
        return total_loss / (len(self.val_data) - 1)

    def train_epoch(self):
        self.model.train()
        total_loss = 0.
        hidden = self.model.init_hidden(self.cfg.batch_size)
        for batch, i in enumerate(range(0, self.train_data.size(0) - 1, self.cfg.bptt)):
            data, targets = self.get_batch(self.train_data, i)
            self.model.zero_grad()
            hidden = repackage_hidden(hidden)
            output, hidden = self.model(data, hidden)
            loss = self.criterion(output, targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.clip)
            for p in self.model.parameters():
                p.data.add_(p.grad, alpha=-self.lr)
            total_loss += loss.item()
        return total_loss / (batch + 1)

    def fit(self):
        best_val_loss = None
        for epoch in range(1, self.cfg.epochs + 1):
            train_loss = self.train_epoch()
            val_loss = self.evaluate()
            log.info("epoch %d train %.4f valid %.4f ppl %.3f", epoch, train_loss, val_loss, math.exp(val_loss))
            if not best_val_loss or val_loss < best_val_loss:
                best_val_loss = val_loss
            else:
                # Anneal the learning rate if no improvement has been seen in the validation dataset.
                self.lr /= 4.0


def main():
    torch.manual_seed(1111)
    cfg = Config()
    ids = torch.arange(240) % 11
    train_data, val_data = batchify(ids[:160], cfg.batch_size), batchify(ids[160:], cfg.batch_size)
    Trainer(RNNModel(11, cfg), cfg, train_data, val_data).fit()


if __name__ == "__main__":
    main()
