"""Attention and transformer layers (torch docs: torch.nn, Transformer Layers).

``nnx.MultiHeadAttention`` has three separate projections, batches first, and returns no weights; PyTorch's packs them,
puts the batch second by default and returns a pair. So these are helper classes, under PyTorch's parameter names.
"""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import Tensor, Tuple
from t2j_lsp.translate.rule.layer import layer
from t2j_lsp.translate.rule.library import Trait, trait
from t2j_lsp.translate.rule.record import CLOSE, Row

FLOATS = Tensor(dtype="float")
ACTIVATION = "activation=relu"
SIZES = f"dim_feedforward=2048, dropout=0.1, {ACTIVATION}"


layer(
    "torch.nn.MultiheadAttention(embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False,"
    " kdim=None, vdim=None, batch_first=False, device=None, dtype=None)",
    result=Tuple((FLOATS, FLOATS)),
    jax="MultiheadAttention(embed_dim, num_heads, ...)",
)
for name in ("Encoder", "Decoder"):
    layer(
        f"torch.nn.Transformer{name}Layer(d_model, nhead, {SIZES}, layer_norm_eps=1e-05, batch_first=False,"
        " norm_first=False, bias=True, device=None, dtype=None)",
        result=FLOATS,
    )
    trait(Trait.SAME_SHAPE, f"torch.nn.Transformer{name}Layer")
layer(
    "torch.nn.TransformerEncoder(encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True)",
    result=FLOATS,
    random=False,
    fidelity=CLOSE,
    note="With a padding mask PyTorch's nested-tensor path zeroes padded positions of the output in eval mode.",
)
layer("torch.nn.TransformerDecoder(decoder_layer, num_layers, norm=None)", result=FLOATS, random=False)
layer(
    f"torch.nn.Transformer(d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, {SIZES},"
    " custom_encoder=None, custom_decoder=None, layer_norm_eps=1e-05, batch_first=False, norm_first=False, bias=True,"
    " device=None, dtype=None)",
    result=FLOATS,
)
Row(
    "torch.nn.Transformer.generate_square_subsequent_mask(sz, device=None, dtype=None)",
    "generate_square_subsequent_mask({sz})",
    ignore=["dtype"],
    result="float tensor",
)
