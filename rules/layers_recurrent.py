"""Recurrent layers and cells, and sequences of unequal lengths (torch docs: torch.nn, Recurrent Layers).

Flax's cells have other parameters (an LSTM of eight kernels and one bias) and ``nnx.RNN`` returns no stacked states, so
these are helper classes throughout.
"""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import PACKED, TENSOR, Fact, Tensor, Tuple
from t2j_lsp.translate.rule.layer import layer
from t2j_lsp.translate.rule.library import Trait, trait
from t2j_lsp.translate.rule.record import CLOSE, Call, Piece, Refusal, Row, refuse, rule

FLOATS = Tensor(dtype="float")
STATE = Tuple((FLOATS, FLOATS))
LAYERS = "bias=True, batch_first=False, dropout=0.0, bidirectional=False"

layer(
    f"torch.nn.LSTM(input_size, hidden_size, num_layers=1, {LAYERS}, proj_size=0, device=None, dtype=None)",
    result=Tuple((FLOATS, STATE)),
)
layer(
    f"torch.nn.GRU(input_size, hidden_size, num_layers=1, {LAYERS}, device=None, dtype=None)",
    result=Tuple((FLOATS, FLOATS)),
)
layer(
    f"torch.nn.RNN(input_size, hidden_size, num_layers=1, nonlinearity='tanh', {LAYERS}, device=None, dtype=None)",
    result=Tuple((FLOATS, FLOATS)),
)
CELL = "input_size, hidden_size, bias=True"
layer(f"torch.nn.LSTMCell({CELL}, device=None, dtype=None)", result=STATE)
layer(f"torch.nn.GRUCell({CELL}, device=None, dtype=None)", result=FLOATS)
layer(f"torch.nn.RNNCell({CELL}, nonlinearity='tanh', device=None, dtype=None)", result=FLOATS)
for name in ("RNNBase", "RNNCellBase"):
    refuse(f"torch.nn.{name}", "The base class of PyTorch's recurrent layers: use nn.LSTM, nn.GRU or nn.RNN.")

# Sequences of unequal lengths -----------------------------------------------------------------------------------

STORED = "PyTorch stores a packed sequence without padding; here it has its padding: take it by pad_packed_sequence"


def _packed(call: object) -> Fact:
    return PACKED


def _padded_and_lengths(call: object) -> Fact:
    return Tuple((TENSOR, Tensor(1, "int")))


Row(
    "torch.nn.utils.rnn.pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side='right')",
    "pad_sequence({sequences}, batch_first={batch_first?}, padding_value={padding_value?},"
    " padding_side={padding_side?})",
)
trait(Trait.PADS, "torch.nn.utils.rnn.pad_sequence")


@rule(
    "torch.nn.utils.rnn.pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True)",
    jax="pack_padded_sequence(input, lengths, batch_first=batch_first)",
    result=_packed,
    ignore=["enforce_sorted"],
)
def packed(call: Call) -> Piece | Refusal:
    if call.site.unpacked:
        return call.refuse(STORED)
    return call.emit("pack_padded_sequence({input}, {lengths}, batch_first={batch_first?})")


Row(
    "torch.nn.utils.rnn.pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None)",
    "pad_packed_sequence({sequence}, batch_first={batch_first?}, padding_value={padding_value?},"
    " total_length={total_length?})",
    fidelity=CLOSE,
    note="The result is as long as the array that was packed, or total_length; PyTorch cuts it at the longest length.",
    result=_padded_and_lengths,
)
for name, reason in {
    "pack_sequence": "Pad with pad_sequence and pack with pack_padded_sequence.",
    "unpack_sequence": "A list of arrays of unequal lengths does not come out of jitted code: keep it padded.",
    "unpad_sequence": "A list of arrays of unequal lengths does not come out of jitted code: keep it padded.",
    "PackedSequence": "PyTorch stores a packed sequence without padding, which has no fixed shape.",
    "invert_permutation": "The helper keeps the order of the batch: there is nothing to invert.",
}.items():
    refuse(f"torch.nn.utils.rnn.{name}", reason)
