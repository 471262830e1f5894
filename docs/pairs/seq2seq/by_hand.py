"""By hand, `nnx.GRUCell` in `nnx.RNN`, whose carry goes from encoder to decoder as it is: (batch, hidden). The
conversion has one class `GRU` for both, with PyTorch's weights, and states of shape (1, batch, hidden).
"""

from flax import nnx


class Encoder(nnx.Module):
    def __init__(self, words, dim, hidden, *, rngs: nnx.Rngs):
        self.embed = nnx.Embed(words, dim, rngs=rngs)
        self.rnn = nnx.RNN(nnx.GRUCell(dim, hidden, rngs=rngs), return_carry=True, rngs=rngs)

    def __call__(self, tokens):
        hidden, _ = self.rnn(self.embed(tokens))
        return hidden


class Decoder(nnx.Module):
    def __init__(self, words, dim, hidden, *, rngs: nnx.Rngs):
        self.embed = nnx.Embed(words, dim, rngs=rngs)
        self.rnn = nnx.RNN(nnx.GRUCell(dim, hidden, rngs=rngs), return_carry=True, rngs=rngs)
        self.head = nnx.Linear(hidden, words, rngs=rngs)

    def __call__(self, tokens, hidden):
        hidden, states = self.rnn(self.embed(tokens), initial_carry=hidden)
        return self.head(states), hidden


class Seq2Seq(nnx.Module):
    def __init__(self, source_words=11, target_words=13, dim=6, hidden=8, *, rngs: nnx.Rngs):
        self.encoder = Encoder(source_words, dim, hidden, rngs=rngs)
        self.decoder = Decoder(target_words, dim, hidden, rngs=rngs)

    def __call__(self, source, target):
        logits, _ = self.decoder(target, self.encoder(source))
        return logits
