"""Models of PyTorch libraries that the benchmark converts, each in a tiny configuration with every kind of block.

``make`` is evaluated at the end of the model's own file; ``p`` in it is the rate of every dropout that can be set.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from .torchvision_cases import BUILD, Case


@dataclass(frozen=True)
class LibraryCase(Case):
    """One model: ``family`` is its file, as ``package/module`` without ``.py``."""

    @property
    def file(self) -> str:
        """The file's path below the folder that holds the package."""
        return f"{self.family}.py"

    def text(self, original: str) -> str:
        """The model's file with a function ``t2j_benchmark_model(p)`` at its end, which is converted as the rest is.

        Constants that the file computes in float32 are computed in float64: sines differ in the last place.
        """
        original = original.replace("torch.float32", "torch.float64")
        return f"{original}\n\ndef {BUILD}(p: float):\n    return {self.make}\n"


_SIZES = "image_size=8, patch_size=4, num_classes=3, dim=12, depth=2, heads=2, mlp_dim=20, dim_head=5"
_RATES = "dropout=p, emb_dropout=p"
_IMAGE = (2, 3, 8, 8)


def _vit(module: str, make: str, shape: tuple[int, ...] = _IMAGE, variant: str = "") -> LibraryCase:
    return LibraryCase(f"vit_pytorch/{module}", variant, make, shape)


_VIT: tuple[LibraryCase, ...] = (
    _vit("vit", f"ViT({_SIZES}, {_RATES})"),
    _vit("vit", f"ViT({_SIZES}, {_RATES}, pool='mean')", variant="mean"),
    _vit("simple_vit", f"SimpleViT({_SIZES})"),
    _vit("deepvit", f"DeepViT({_SIZES}, {_RATES})"),
    _vit("cait", f"CaiT({_SIZES}, cls_depth=1, {_RATES})"),
    _vit(
        "cct",
        "CCT(img_size=16, embedding_dim=12, n_conv_layers=2, kernel_size=3, stride=2, padding=1, dropout_rate=p, "
        "attention_dropout=p, stochastic_depth_rate=p, num_layers=2, num_heads=2, mlp_ratio=2., num_classes=3, "
        "positional_embedding='learnable')",
        (2, 3, 16, 16),
    ),
    _vit(
        "cct",
        "CCT(img_size=16, embedding_dim=12, n_conv_layers=1, kernel_size=3, stride=2, padding=1, dropout_rate=p, "
        "attention_dropout=p, stochastic_depth_rate=p, num_layers=1, num_heads=2, mlp_ratio=2., num_classes=3, "
        "positional_embedding='sine')",
        (2, 3, 16, 16),
        "sine",
    ),
    _vit(
        "cvt",
        "CvT(num_classes=3, s1_emb_dim=8, s1_heads=1, s1_depth=1, s1_mlp_mult=2, s2_emb_dim=10, s2_heads=1, "
        "s2_depth=1, s2_mlp_mult=2, s3_emb_dim=12, s3_heads=2, s3_depth=1, s3_mlp_mult=2, dropout=p)",
        (2, 3, 32, 32),
    ),
    _vit(
        "levit",
        "LeViT(image_size=64, num_classes=3, dim=(8, 10, 12), depth=(1, 1, 1), heads=(2, 2, 2), mlp_mult=2, stages=3, "
        "dim_key=4, dim_value=6, dropout=p, num_distill_classes=4)",
        (2, 3, 64, 64),
    ),
    _vit(
        "nest",
        "NesT(image_size=16, patch_size=4, num_classes=3, dim=8, heads=2, num_hierarchies=2, block_repeats=(1, 1), "
        "mlp_mult=2, dim_head=4, dropout=p)",
        (2, 3, 16, 16),
    ),
    _vit(
        "mobile_vit",
        "MobileViT((64, 64), [8, 10, 12], [4, 4, 6, 6, 8, 8, 10, 10, 12, 12, 14], num_classes=3, expansion=2, "
        "depths=(1, 1, 1))",
        (2, 3, 64, 64),
    ),
    _vit(
        "twins_svt",
        "TwinsSVT(num_classes=3, s1_emb_dim=8, s1_patch_size=2, s1_local_patch_size=4, s1_global_k=2, s1_depth=1, "
        "s2_emb_dim=10, s2_patch_size=2, s2_local_patch_size=4, s2_global_k=2, s2_depth=1, s3_emb_dim=12, "
        "s3_patch_size=2, s3_local_patch_size=2, s3_global_k=2, s3_depth=1, s4_emb_dim=14, s4_patch_size=2, "
        "s4_local_patch_size=1, s4_global_k=1, s4_depth=1, dropout=p)",
        (1, 3, 32, 32),
    ),
    _vit(
        "pit",
        "PiT(image_size=16, patch_size=4, num_classes=3, dim=12, depth=(1, 1), heads=2, mlp_dim=20, dim_head=4, "
        "dropout=p, emb_dropout=p)",
        (1, 3, 16, 16),
    ),
    _vit(
        "max_vit",
        "MaxViT(num_classes=3, dim=8, depth=(1, 1), dim_head=4, dim_conv_stem=6, window_size=2, "
        "mbconv_expansion_rate=2, dropout=p)",
        (2, 3, 16, 16),
    ),
    _vit(
        "t2t",
        "T2TViT(image_size=16, num_classes=3, dim=12, depth=1, heads=2, mlp_dim=20, dim_head=4, dropout=p, "
        "emb_dropout=p, t2t_layers=((3, 2), (3, 2)))",
        (1, 3, 16, 16),
    ),
    _vit(
        "xcit",
        f"XCiT({_SIZES}, cls_depth=1, {_RATES}, local_patch_kernel_size=3)",
    ),
    _vit(
        "regionvit",
        "RegionViT(dim=(32, 32, 32, 32), depth=(1, 1, 1, 1), window_size=2, num_classes=3, "
        "tokenize_local_3_conv=True, use_peg=True, attn_dropout=p, ff_dropout=p)",
        (1, 3, 64, 64),
    ),
    _vit(
        "scalable_vit",
        "ScalableViT(num_classes=3, dim=8, depth=(1, 1), heads=(1, 2), reduction_factor=(2, 1), window_size=(2, 2), "
        "iwsa_dim_key=4, iwsa_dim_value=4, ssa_dim_key=4, ssa_dim_value=4, ff_expansion_factor=2, dropout=p)",
        (1, 3, 16, 16),
    ),
    _vit(
        "sep_vit",
        "SepViT(num_classes=3, dim=8, depth=(1, 1), heads=(1, 2), window_size=2, dim_head=4, ff_mult=2, dropout=p)",
        (1, 3, 56, 56),
    ),
    _vit("vit_for_small_dataset", f"ViT({_SIZES}, {_RATES})"),
    _vit(
        "efficient",
        "ViT(image_size=8, patch_size=4, num_classes=3, dim=12, "
        "transformer=nn.TransformerEncoderLayer(12, 2, 20, p, batch_first=True))",
    ),
    _vit(
        "vivit",
        "ViViT(image_size=8, image_patch_size=4, frames=4, frame_patch_size=2, num_classes=3, dim=12, "
        "spatial_depth=1, temporal_depth=1, heads=2, mlp_dim=20, dim_head=5, dropout=p, emb_dropout=p)",
        (1, 3, 4, 8, 8),
    ),
    _vit(
        "vivit",
        "ViViT(image_size=8, image_patch_size=4, frames=4, frame_patch_size=2, num_classes=3, dim=12, spatial_depth=1, "
        "temporal_depth=1, heads=2, mlp_dim=20, dim_head=5, variant='factorized_self_attention', use_flash_attn=False)",
        (1, 3, 4, 8, 8),
        "self attention",
    ),
    _vit(
        "rvt",
        "RvT(image_size=8, patch_size=2, num_classes=3, dim=12, depth=1, heads=2, mlp_dim=20, dim_head=4, dropout=p, "
        "emb_dropout=p)",
    ),
    _vit("parallel_vit", f"ViT({_SIZES}, {_RATES})"),
    _vit("vit_with_patch_merger", f"ViT({_SIZES}, {_RATES}, patch_merge_num_tokens=3)"),
    _vit("vit_with_patch_dropout", f"ViT({_SIZES}, {_RATES}, patch_dropout=0.)"),
    _vit(
        "learnable_memory_vit",
        f"Adapter(vit=ViT({_SIZES}, {_RATES}), num_memories_per_layer=2, num_classes=4)",
    ),
    _vit(
        "cross_vit",
        "CrossViT(image_size=16, num_classes=3, sm_dim=8, lg_dim=10, sm_patch_size=4, sm_enc_heads=2, "
        "sm_enc_mlp_dim=12, sm_enc_dim_head=4, lg_patch_size=8, lg_enc_depth=1, lg_enc_heads=2, lg_enc_mlp_dim=14, "
        "lg_enc_dim_head=4, cross_attn_depth=1, cross_attn_heads=2, cross_attn_dim_head=4, depth=1, dropout=p, "
        "emb_dropout=p)",
        (1, 3, 16, 16),
    ),
    _vit(
        "look_vit",
        "LookViT(dim=8, image_size=16, num_classes=3, depth=1, patch_size=4, heads=2, mlp_factor=2, dim_head=4, "
        "highres_patch_size=2, highres_mlp_factor=2, cross_attn_heads=2, cross_attn_dim_head=4, "
        "patch_conv_kernel_size=3, dropout=p)",
        (1, 3, 16, 16),
    ),
    _vit("jumbo_vit", f"JumboViT({_SIZES}, jumbo_cls_k=2)"),
    _vit("simple_uvit", f"SimpleUViT({_SIZES})"),
    _vit("normalized_vit", f"nViT({_SIZES}, dropout=p)"),
    _vit(
        "jet_vit",
        f"JetViT({_SIZES.replace('dim_head=5', 'dim_head=6')}, {_RATES}, window_size=3)",
    ),
    _vit(
        "looped_vit",
        "LoopedViT(num_classes=3, dim=12, image_size=8, patch_size=4, pre_loop_depth=1, num_looped_blocks=1, "
        "post_loop_depth=1, loop_depth=2, heads=2, dim_head=4, mlp_dim=20, dropout=p, emb_dropout=p)",
    ),
    _vit(
        "vit_1d",
        "ViT(seq_len=12, patch_size=3, num_classes=3, dim=12, depth=1, heads=2, mlp_dim=20, dim_head=4, dropout=p, "
        "emb_dropout=p)",
        (2, 3, 12),
    ),
    _vit(
        "vit_3d",
        "ViT(image_size=8, image_patch_size=4, frames=4, frame_patch_size=2, num_classes=3, dim=12, depth=1, heads=2, "
        "mlp_dim=20, dim_head=4, dropout=p, emb_dropout=p)",
        (1, 3, 4, 8, 8),
    ),
    _vit(
        "simple_vit_1d",
        "SimpleViT(seq_len=12, patch_size=3, num_classes=3, dim=12, depth=1, heads=2, mlp_dim=20, dim_head=4)",
        (2, 3, 12),
    ),
    _vit(
        "simple_vit_3d",
        "SimpleViT(image_size=8, image_patch_size=4, frames=4, frame_patch_size=2, num_classes=3, dim=12, depth=1, "
        "heads=2, mlp_dim=20, dim_head=4)",
        (1, 3, 4, 8, 8),
    ),
    _vit("simple_vit_with_qk_norm", f"SimpleViT({_SIZES})"),
    _vit("simple_vit_with_register_tokens", f"SimpleViT({_SIZES})"),
    _vit("simple_vit_with_fft", f"SimpleViT({_SIZES}, freq_patch_size=4)"),
    _vit("simple_vit_with_value_residual", f"SimpleViT({_SIZES})"),
    _vit("simple_vit_with_hyper_connections", f"SimpleViT({_SIZES}, num_residual_streams=2)"),
    _vit("simple_vit_attn_residual", f"SimpleViTAttnResidual({_SIZES})"),
    _vit("simple_vit_orthog_residual_update", f"SimpleViT({_SIZES})"),
    _vit("simple_vit_with_sparse_gating", f"SimpleViTWithSparseGating({_SIZES})"),
    _vit("simple_vit_with_specialized_cls", f"SimpleViT({_SIZES})"),
    _vit("simple_vit_with_relative_proj_pos_bias", f"SimpleViT({_SIZES}, num_distance_basis=4, max_dist=8)"),
    _vit("vit_5", f"ViT({_SIZES.replace('dim_head=5', 'dim_head=8')}, {_RATES})"),
    _vit("vit_detpool", f"ViTDetPool({_SIZES}, {_RATES})"),
    _vit("vit_with_keel_post_ln", f"ViT({_SIZES}, {_RATES})"),
    _vit(
        "max_vit_with_registers",
        "MaxViT(num_classes=3, dim=8, depth=(1, 1), dim_head=4, dim_conv_stem=6, window_size=2, "
        "mbconv_expansion_rate=2, dropout=p, num_register_tokens=2)",
        (2, 3, 16, 16),
    ),
    _vit(
        "ats_vit",
        "ViT(image_size=8, patch_size=4, num_classes=3, dim=12, depth=2, max_tokens_per_depth=(4, 3), heads=2, "
        "mlp_dim=20, dim_head=4)",
    ),
)


@dataclass(frozen=True)
class TransformersCase(LibraryCase):
    """A layer of transformers, in the file's own text without the imports of the rest of the library."""

    def text(self, original: str) -> str:
        """The file with stand-ins for the library around it, and a model that calls the layer at its end."""
        lines = original.splitlines()
        for node in ast.parse(original).body:
            if isinstance(node, ast.ImportFrom) and node.level and not (node.module or "").endswith("pytorch_utils"):
                for line in range(node.lineno - 1, node.end_lineno or node.lineno):
                    lines[line] = ""
        text = "\n".join(lines).replace("torch.float32", "torch.float64").replace(".float()", ".double()")
        made = f"class Made(nn.Module):\n{self.make}\n\ndef {BUILD}(p: float):\n    return Made(p)\n"
        return f"from __future__ import annotations\n{_STAND_INS}\n{text}\n\n{made}"


_STAND_INS = """
from types import SimpleNamespace
import torch
from torch import nn

def returns_itself(*args, **kwargs):
    return lambda function: function

auto_docstring = use_kernel_forward_from_hub = use_kernelized_func = returns_itself

def dynamic_rope_update(function):
    return function

class GradientCheckpointingLayer(nn.Module):
    pass

class AttentionFunctions:
    def get_interface(self, name, default):
        return default

ALL_ATTENTION_FUNCTIONS = AttentionFunctions()
ACT2FN = {"silu": nn.functional.silu, "gelu": nn.functional.gelu}

def apply_chunking_to_forward(function, size, axis, x):
    return function(x)

def settings(p):
    return SimpleNamespace(
        hidden_size=12, num_attention_heads=4, num_key_value_heads=2, head_dim=4, intermediate_size=20,
        attention_bias=True, mlp_bias=False, attention_dropout=p, rms_norm_eps=1e-6, hidden_act="silu",
        max_position_embeddings=16, rope_parameters={"rope_type": "default", "rope_theta": 100.0},
        _attn_implementation="eager", activation_function="gelu", attn_pdrop=p, resid_pdrop=p, n_inner=None,
        layer_norm_epsilon=1e-5, scale_attn_weights=True, scale_attn_by_inverse_layer_idx=True,
        reorder_and_upcast_attn=False, add_cross_attention=False, hidden_dropout_prob=p,
        attention_probs_dropout_prob=p, layer_norm_eps=1e-12, chunk_size_feed_forward=0, is_decoder=False,
        qkv_bias=True, image_size=8, patch_size=4, num_channels=3, position_embedding_type="absolute",
    )
"""


def _layer(model: str, make: str, variant: str = "") -> TransformersCase:
    body = "    def __init__(self, p):\n        super().__init__()\n" + make
    return TransformersCase(f"transformers/models/{model}/modeling_{model}", variant, body, (2, 5, 12))


_TRANSFORMERS: tuple[LibraryCase, ...] = (
    _layer(
        "llama",
        "        self.rotary = LlamaRotaryEmbedding(settings(p))\n"
        "        self.layer = LlamaDecoderLayer(settings(p), 0)\n"
        "    def forward(self, x):\n"
        "        mask = torch.full((5, 5), -1e9).triu(1)\n"
        "        positions = torch.arange(x.shape[1]).unsqueeze(0)\n"
        "        return self.layer(x, attention_mask=mask, position_embeddings=self.rotary(x, positions))",
    ),
    _layer(
        "gpt2",
        "        self.layer = GPT2Block(settings(p), 1)\n"
        "    def forward(self, x):\n"
        "        return self.layer(x, attention_mask=torch.full((5, 5), -1e9).triu(1))",
    ),
    _layer(
        "bert",
        "        self.layer = BertLayer(settings(p), 0)\n    def forward(self, x):\n        return self.layer(x)",
    ),
    _layer(
        "vit",
        "        self.layer = ViTLayer(settings(p))\n    def forward(self, x):\n        return self.layer(x)",
    ),
)

CASES: tuple[LibraryCase, ...] = (*_VIT, *_TRANSFORMERS)
