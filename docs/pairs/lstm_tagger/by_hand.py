"""By hand, each direction is an `nnx.LSTMCell`, with kernels for each gate and one bias where PyTorch adds two. The
conversion keeps PyTorch's stacked weights, both biases and the final states, which checkpoints hold and callers ask
for.
"""

from flax import nnx


class Tagger(nnx.Module):
    def __init__(self, words=20, tags=5, dim=8, hidden=6, *, rngs: nnx.Rngs):
        self.embed = nnx.Embed(words, dim, rngs=rngs)
        ahead = nnx.RNN(nnx.LSTMCell(dim, hidden, rngs=rngs), rngs=rngs)
        back = nnx.RNN(nnx.LSTMCell(dim, hidden, rngs=rngs), rngs=rngs)
        self.lstm = nnx.Bidirectional(ahead, back, rngs=rngs)
        self.head = nnx.Linear(2 * hidden, tags, rngs=rngs)

    def __call__(self, tokens):
        return self.head(self.lstm(self.embed(tokens)))
