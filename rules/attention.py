"""Attention as a function: ``F.scaled_dot_product_attention``. The layers are in ``layers``."""

from __future__ import annotations

from t2j_lsp.translate.rule.library import Trait, takes_tensors, trait
from t2j_lsp.translate.rule.record import Call, Piece, refuse, rule

from ._facts import same

F = "torch.nn.functional"


@rule(
    f"{F}.scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,"
    " enable_gqa=False)",
    jax="scaled_dot_product_attention(query, key, value, attn_mask)",
    result=same,
)
def scaled_dot_product_attention(call: Call) -> Piece:
    """Dropout acts in eval mode too unless its rate is 0, as in PyTorch."""
    arguments = (
        "{query}, {key}, {value}, attn_mask={attn_mask?}, dropout_p={dropout_p?}, is_causal={is_causal?},"
        " scale={scale?}, enable_gqa={enable_gqa?}"
    )
    if call.literal("dropout_p") == 0:
        return call.emit(f"scaled_dot_product_attention({arguments})")
    return call.emit(f"scaled_dot_product_attention({arguments}, rngs={{rngs}})", rngs=call.site.rngs())


refuse(
    f"{F}.multi_head_attention_forward",
    "Its 20 arguments are the inside of nn.MultiheadAttention: use that layer, which t2j converts.",
)
KERNEL = "XLA chooses the attention kernel; drop the context."
refuse("torch.nn.attention.sdpa_kernel", KERNEL)
refuse("torch.nn.attention.SDPBackend.*", KERNEL)
refuse("torch.backends.cuda.sdp_kernel", KERNEL)
trait(Trait.TRANSPARENT, "torch.nn.attention.sdpa_kernel", "torch.backends.cuda.sdp_kernel")

takes_tensors(f"{F}.scaled_dot_product_attention", 4)
