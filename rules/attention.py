"""Attention as a function: ``F.scaled_dot_product_attention``. The layers are in ``layers``."""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.definitions import Function
from t2j_lsp.translate.rule.facts import UNKNOWN, Tensor, Tuple
from t2j_lsp.translate.rule.library import Trait, takes_tensors, trait
from t2j_lsp.translate.rule.record import CLOSE, Call, Piece, Refusal, Row, refuse, rule

from ._arguments import rank_of
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


@rule(
    f"{F}.multi_head_attention_forward(query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias,"
    " bias_k, bias_v, add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training=True, key_padding_mask=None,"
    " need_weights=True, attn_mask=None, use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None,"
    " v_proj_weight=None, static_k=None, static_v=None, average_attn_weights=True, is_causal=False)",
    jax="multi_head_attention_forward(query, key, value, num_heads, projections, ...)",
    ignore=["embed_dim_to_check", "in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight", "training"],
    result=lambda call: Tuple((same(call), UNKNOWN)),
)
def multi_head_attention_forward(call: Call) -> Piece | Refusal:
    """The projections are three matrices in both of PyTorch's ways to give them."""
    separate = call.literal("use_separate_proj_weight")
    if not isinstance(separate, bool):
        return call.refuse("Whether there is one matrix of projections or three, the source doesn't show.")
    if call.literal("is_causal") is not False:
        return call.refuse("With is_causal PyTorch may leave the mask aside: give attn_mask alone.")
    if not (call["static_k"].is_none and call["static_v"].is_none):
        return call.refuse("static_k and static_v are given in place of the projected ones: write what is computed.")
    three = "({q_proj_weight}, {k_proj_weight}, {v_proj_weight})"
    arguments = (
        "{query}, {key}, {value}, {num_heads}, "
        + (three if separate else "jnp.split({in_proj_weight}, 3)")
        + ", {in_proj_bias}, {out_proj_weight}, {out_proj_bias}"
    )
    for name in ("bias_k", "bias_v"):
        arguments += "" if call[name].is_none else f", {name}={{{name}}}"
    arguments += "" if call.literal("add_zero_attn") is False else ", add_zero_attn={add_zero_attn}"
    drops = call.literal("dropout_p") != 0 and call.literal("training") is not False
    if drops:
        rate = "{dropout_p}" if call.literal("training") is True else "{dropout_p} if {training} else 0.0"
        arguments += f", dropout_p={rate}"
    arguments += ", key_padding_mask={key_padding_mask?}, need_weights={need_weights?}, attn_mask={attn_mask?}"
    arguments += ", average_attn_weights={average_attn_weights?}"
    if not drops:
        return call.emit(f"multi_head_attention_forward({arguments})")
    return call.emit(f"multi_head_attention_forward({arguments}, rngs={{rngs}})", rngs=call.site.rngs())


@rule(
    f"{F}._canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True)",
    jax="additive_mask(mask, target_type)",
    ignore=["mask_name", "other_type", "other_name", "check_other"],
    result=lambda call: Tensor(rank_of(call["mask"])),
    fidelity=CLOSE,
    note="A mask of numbers gets the target's dtype too, and no mask is warned of.",
)
def canonical_mask(call: Call) -> Piece | Refusal:
    if not isinstance(call["mask"].fact, Tensor):
        return call.refuse("The mask may be None: ask for that, and convert what is one by additive_mask.")
    return call.emit("additive_mask({mask}, {target_type})")


@rule(f"{F}._none_or_dtype(input)", jax="x.dtype", result="dtype")
def none_or_dtype(call: Call) -> Piece:
    known = isinstance(call["input"].fact, Tensor)
    return call.emit("{input}.dtype" if known else "None if {input} is None else {input}.dtype")


KERNEL = "XLA chooses the attention kernel: nothing depends on this."
for name in ("ERROR", "MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION", "OVERRIDEABLE"):
    Row(f"torch.nn.attention.SDPBackend.{name}", f'"{name}"', result="str", fidelity=CLOSE, note=f"A name. {KERNEL}")
refuse("torch.nn.attention.SDPBackend.*", "XLA chooses the attention kernel; drop the context.")
Row(
    "torch.nn.attention.sdpa_kernel(backends, set_priority=False)",
    "contextlib.nullcontext()",
    fidelity=CLOSE,
    note=KERNEL,
    result="unknown",
    ignore=("backends", "set_priority"),
)
Row(
    "torch.backends.cuda.sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True)",
    "contextlib.nullcontext()",
    fidelity=CLOSE,
    note=KERNEL,
    result="unknown",
    ignore=("enable_flash", "enable_math", "enable_mem_efficient", "enable_cudnn"),
)
trait(Trait.TRANSPARENT, "torch.nn.attention.sdpa_kernel", "torch.backends.cuda.sdp_kernel")

# FlexAttention --------------------------------------------------------------------------------------------------

FLEX = "torch.nn.attention.flex_attention"
BLOCKS = "The mask is an array of booleans, and all scores are computed: XLA has no kernel that skips blocks."


@rule(
    f"{FLEX}.flex_attention(query, key, value, score_mod=None, block_mask=None, scale=None, enable_gqa=False,"
    " return_lse=False, kernel_options=None, *, return_aux=None)",
    jax="flex_attention(query, key, value, score_mod, block_mask)",
    ignore=["kernel_options"],
    result=same,
)
def flex_attention(call: Call) -> Piece | Refusal:
    if call.literal("return_lse") is not False or not call["return_aux"].is_none:
        return call.refuse("The helper gives the output alone: compute the logarithm of the sums beside it.")
    return call.emit(
        "flex_attention({query}, {key}, {value}, score_mod={score_mod?}, block_mask={block_mask?}, scale={scale?},"
        " enable_gqa={enable_gqa?})"
    )


@rule(
    f"{FLEX}.create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN, device=None, BLOCK_SIZE=128, _compile=False,"
    " separate_full_blocks=True, compute_dq_write_order=False, dq_kv_order=True)",
    jax="index_mask(mask_mod, B, H, Q_LEN, KV_LEN)",
    ignore=["BLOCK_SIZE", "_compile", "separate_full_blocks", "compute_dq_write_order", "dq_kv_order"],
    fidelity=CLOSE,
    note=BLOCKS,
    result=lambda call: Tensor(4, "bool"),
)
def create_block_mask(call: Call) -> Piece | Refusal:
    return _index_mask(call, "mask_mod")


@rule(
    f"{FLEX}.create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device=None)",
    jax="index_mask(mask_mod, B, H, Q_LEN, KV_LEN)",
    result=lambda call: Tensor(4, "bool"),
)
def create_mask(call: Call) -> Piece | Refusal:
    return _index_mask(call, "mod_fn")


def _index_mask(call: Call, function: str) -> Piece | Refusal:
    node, fact = call[function].node, call[function].fact
    arguments = (
        node.args if isinstance(node, ast.Lambda) else fact.info.node.args if isinstance(fact, Function) else None
    )
    if arguments is not None and len(arguments.args) == 5:
        return call.refuse("It is a function of scores, not of indices alone: write the mask that it means.")
    return call.emit(f"index_mask({{{function}}}, {{B}}, {{H}}, {{Q_LEN}}, {{KV_LEN}})")


for _name in ("and_masks", "or_masks"):

    @rule(f"{FLEX}.{_name}(*mask_mods)", jax=f"{_name}(f, g)", result="unknown")
    def _joined(call: Call, name: str = _name) -> Piece:
        return call.emit(f"{name}({{mods}})", mods=", ".join(item.text for item in call["mask_mods"].items))


takes_tensors(f"{FLEX}.flex_attention", 3)
takes_tensors(f"{F}.scaled_dot_product_attention", 4)
