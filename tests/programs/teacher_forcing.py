import random

import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, SOS, EOS = 0, 1, 2
random.seed(4)
torch.manual_seed(4)


class Encoder(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.embedding = nn.Embedding(n, d, padding_idx=PAD)
        self.rnn = nn.GRU(d, d)

    def forward(self, src):
        _, hidden = self.rnn(self.embedding(src))
        return hidden


class Decoder(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.output_dim = n
        self.embedding = nn.Embedding(n, d)
        self.rnn = nn.GRU(d, d)
        self.fc_out = nn.Linear(2 * d, n)

    def forward(self, input, hidden):
        embedded = F.relu(self.embedding(input.unsqueeze(0)))
        output, hidden = self.rnn(embedded, hidden)
        return self.fc_out(torch.cat((output[0], embedded[0]), 1)), hidden


class Seq2Seq(nn.Module):
    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(self, src, trg, teacher_forcing_ratio=0.5):
        outputs = torch.zeros(trg.shape[0], trg.shape[1], self.decoder.output_dim)
        hidden = self.encoder(src)
        input = trg[0, :]
        for t in range(1, trg.shape[0]):
            output, hidden = self.decoder(input, hidden)
            outputs[t] = output
            teacher_force = random.random() < teacher_forcing_ratio
            top1 = output.argmax(1)
            input = trg[t] if teacher_force else top1
        return outputs


def masked_loss(output, trg):
    """The words that count, each class as much as another; what padding says is pushed down where there is any."""
    keep = trg != PAD
    output, words = output[keep], trg[keep]
    loss = torch.stack([F.cross_entropy(output[words == w], words[words == w]) for w in torch.unique(words)]).mean()
    wrong = output.argmax(1) != words
    if wrong.any():
        hard = F.cross_entropy(output[wrong], words[wrong])
    else:
        hard = torch.tensor(0.0)
    return loss + 0.1 * hard, int(wrong.sum())


def batch(size=6, length=5):
    trg = torch.full((length + 2, size), PAD)
    trg[0] = SOS
    for i in range(size):
        n = random.randint(2, length)
        trg[1 : n + 1, i] = torch.tensor([random.randint(3, 8) for _ in range(n)])
        trg[n + 1, i] = EOS
    return trg[1:].flip(0), trg


model = Seq2Seq(Encoder(9, 12), Decoder(9, 12))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(6):
    src, trg = batch()
    optimizer.zero_grad()
    output = model(src, trg)
    loss, wrong = masked_loss(output[1:].view(-1, 9), trg[1:].reshape(-1))
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f} wrong {wrong}")
model.eval()
with torch.no_grad():
    src, trg = batch()
    print(model(src, trg, 0).argmax(-1)[1:, 0].tolist())
