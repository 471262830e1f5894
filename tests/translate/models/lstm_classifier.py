"""Text classification with a bidirectional LSTM over packed sequences."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class LSTMClassifier(nn.Module):
    def __init__(self, vocab_size, embedding_dim, hidden_dim, output_dim, n_layers=2, bidirectional=True, dropout=0.5, pad_idx=0):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embedding_dim, padding_idx=pad_idx)
        self.lstm = nn.LSTM(
            embedding_dim,
            hidden_dim,
            num_layers=n_layers,
            bidirectional=bidirectional,
            dropout=dropout if n_layers > 1 else 0,
            batch_first=True,
        )
        self.fc = nn.Linear(hidden_dim * 2 if bidirectional else hidden_dim, output_dim)
        self.dropout = nn.Dropout(dropout)
        self.bidirectional = bidirectional

    def forward(self, text, text_lengths):
        embedded = self.dropout(self.embedding(text))
        packed = pack_padded_sequence(embedded, text_lengths.cpu(), batch_first=True, enforce_sorted=False)
        packed_output, (hidden, cell) = self.lstm(packed)
        output, _ = pad_packed_sequence(packed_output, batch_first=True, total_length=text.size(1))
        if self.bidirectional:
            hidden = torch.cat((hidden[-2, :, :], hidden[-1, :, :]), dim=1)
        else:
            hidden = hidden[-1, :, :]
        pooled = output.max(dim=1).values
        logits = self.fc(self.dropout(hidden))
        return F.softmax(logits, dim=1), pooled


class CharRNN(nn.Module):
    """A GRU that carries its state from call to call."""

    def __init__(self, num_chars, hidden_size=12, num_layers=1):
        super(CharRNN, self).__init__()
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.encoder = nn.Embedding(num_chars, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, num_layers)
        self.decoder = nn.Linear(hidden_size, num_chars)

    def init_hidden(self, batch_size):
        weight = next(self.parameters()).data
        return weight.new_zeros(self.num_layers, batch_size, self.hidden_size)

    def forward(self, input, hidden):
        batch_size = input.size(0)
        encoded = self.encoder(input)
        output, hidden = self.gru(encoded.view(1, batch_size, -1), hidden)
        output = self.decoder(output.view(batch_size, -1))
        return output, hidden


class CellLoop(nn.Module):
    """An LSTM cell stepped by hand, outputs collected in a list."""

    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.cell = nn.LSTMCell(input_size, hidden_size)
        self.out = nn.Linear(hidden_size, 1)

    def forward(self, x, steps_ahead=2):
        outputs = []
        h_t = torch.zeros(x.size(0), self.hidden_size, dtype=x.dtype, device=x.device)
        c_t = torch.zeros(x.size(0), self.hidden_size, dtype=x.dtype, device=x.device)
        for input_t in x.split(1, dim=1):
            h_t, c_t = self.cell(input_t, (h_t, c_t))
            output = self.out(h_t)
            outputs += [output]
        for i in range(steps_ahead):
            h_t, c_t = self.cell(output, (h_t, c_t))
            output = self.out(h_t)
            outputs += [output]
        return torch.cat(outputs, dim=1)
