from torch import nn


class Tagger(nn.Module):
    def __init__(self, words=20, tags=5, dim=8, hidden=6):
        super().__init__()
        self.embed = nn.Embedding(words, dim)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, tags)

    def forward(self, tokens):
        states, _ = self.lstm(self.embed(tokens))
        return self.head(states)
