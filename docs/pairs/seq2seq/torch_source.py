from torch import nn


class Encoder(nn.Module):
    def __init__(self, words, dim, hidden):
        super().__init__()
        self.embed = nn.Embedding(words, dim)
        self.rnn = nn.GRU(dim, hidden, batch_first=True)

    def forward(self, tokens):
        _, hidden = self.rnn(self.embed(tokens))
        return hidden


class Decoder(nn.Module):
    def __init__(self, words, dim, hidden):
        super().__init__()
        self.embed = nn.Embedding(words, dim)
        self.rnn = nn.GRU(dim, hidden, batch_first=True)
        self.head = nn.Linear(hidden, words)

    def forward(self, tokens, hidden):
        states, hidden = self.rnn(self.embed(tokens), hidden)
        return self.head(states), hidden


class Seq2Seq(nn.Module):
    def __init__(self, source_words=11, target_words=13, dim=6, hidden=8):
        super().__init__()
        self.encoder = Encoder(source_words, dim, hidden)
        self.decoder = Decoder(target_words, dim, hidden)

    def forward(self, source, target):
        logits, _ = self.decoder(target, self.encoder(source))
        return logits
