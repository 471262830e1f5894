"""Layers as functions, for the target ``jax`` (torch docs: torch.nn).

Each row names the function that a layer is with its settings: a helper of a dict of parameters, or a function of
``torch.nn.functional``, whose rule says what it becomes. What has no row stays PyTorch, with the class around it.
"""

from __future__ import annotations

from t2j_lsp.translate.rule.functional import drawn, dropping, functional

functional("torch.nn.Linear", "dense", init="init_dense", takes=("in_features", "out_features", "bias"))
functional(
    "torch.nn.Embedding",
    "embed",
    ("padding_idx",),
    init="init_embed",
    takes=("num_embeddings", "embedding_dim", "padding_idx"),
)

_CONV = {"padding_mode": ("'zeros'", '"zeros"')}
for _rank in (1, 2, 3):
    _given = {} if _rank == 2 else {"rank": str(_rank)}
    functional(
        f"torch.nn.Conv{_rank}d",
        "convolve",
        ("stride", "padding", "dilation", "groups"),
        init="init_conv",
        takes=("in_channels", "out_channels", "kernel_size", "groups", "bias"),
        given=_given,
        fixed=_CONV,
    )
    functional(
        f"torch.nn.ConvTranspose{_rank}d",
        "conv_transpose",
        ("stride", "padding", "output_padding", "groups", "dilation"),
        init="init_conv_transpose",
        takes=("in_channels", "out_channels", "kernel_size", "groups", "bias"),
        given=_given,
        fixed=_CONV,
    )
    functional(
        f"torch.nn.BatchNorm{_rank}d",
        "batchnorm",
        ("eps", "momentum"),
        init="init_norm",
        takes=("num_features", "affine", "bias"),
        keyed=False,
        state="init_running_stats",
        fixed={"track_running_stats": ("True",)},
        never={"momentum": ("None",)},
    )
    functional(
        f"torch.nn.InstanceNorm{_rank}d",
        "torch.nn.functional.instance_norm",
        ("eps",),
        fixed={"num_features": (), "affine": ("False",), "track_running_stats": ("False",)},
    )
    functional(
        f"torch.nn.MaxPool{_rank}d",
        f"torch.nn.functional.max_pool{_rank}d",
        ("kernel_size", "stride", "padding", "dilation", "ceil_mode"),
        fixed={"return_indices": ("False",)},
    )
    functional(
        f"torch.nn.AvgPool{_rank}d",
        f"torch.nn.functional.avg_pool{_rank}d",
        ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad")
        + (("divisor_override",) if _rank > 1 else ()),
    )
    functional(f"torch.nn.AdaptiveAvgPool{_rank}d", f"torch.nn.functional.adaptive_avg_pool{_rank}d", ("output_size",))
    functional(
        f"torch.nn.AdaptiveMaxPool{_rank}d",
        f"torch.nn.functional.adaptive_max_pool{_rank}d",
        ("output_size",),
        fixed={"return_indices": ("False",)},
    )

functional(
    "torch.nn.LayerNorm",
    "layernorm",
    ("eps",),
    init="init_norm",
    takes=("normalized_shape", "bias"),
    keyed=False,
    fixed={"elementwise_affine": ("True",)},
)
functional(
    "torch.nn.RMSNorm",
    "rmsnorm",
    ("eps",),
    init="init_norm",
    takes=("normalized_shape",),
    given={"bias": "False"},
    keyed=False,
    fixed={"elementwise_affine": ("True",)},
)
functional(
    "torch.nn.GroupNorm",
    "groupnorm",
    ("num_groups", "eps"),
    init="init_norm",
    takes=("num_channels", "affine", "bias"),
    keyed=False,
)

functional("torch.nn.Dropout", "drop", {"p": "rate"}, draws=True)
functional("torch.nn.Dropout2d", "drop_channels", {"p": "rate"}, draws=True)
functional("torch.nn.Identity", "")
functional("torch.nn.Flatten", "torch.flatten", ("start_dim", "end_dim"), written={"start_dim": "1", "end_dim": "-1"})
functional("torch.nn.Unflatten", "torch.unflatten", {"dim": "dim", "unflattened_size": "sizes"})
functional("torch.nn.PixelShuffle", "torch.nn.functional.pixel_shuffle", ("upscale_factor",))
functional("torch.nn.PixelUnshuffle", "torch.nn.functional.pixel_unshuffle", ("downscale_factor",))
functional(
    "torch.nn.Upsample",
    "torch.nn.functional.interpolate",
    ("size", "scale_factor", "mode", "align_corners"),
    fixed={"recompute_scale_factor": ("None",)},
)

functional("einops.layers.torch.Rearrange", "einops.rearrange", ("pattern",), rest="axes_lengths")
functional("einops.layers.torch.Reduce", "einops.reduce", ("pattern", "reduction"), rest="axes_lengths")

functional("torch.nn.Sigmoid", "torch.sigmoid")
functional("torch.nn.Tanh", "torch.tanh")
for _name, _function, _options in (
    ("ReLU", "relu", ()),
    ("ReLU6", "relu6", ()),
    ("GELU", "gelu", ("approximate",)),
    ("SiLU", "silu", ()),
    ("Mish", "mish", ()),
    ("SELU", "selu", ()),
    ("ELU", "elu", ("alpha",)),
    ("CELU", "celu", ("alpha",)),
    ("LeakyReLU", "leaky_relu", ("negative_slope",)),
    ("Hardtanh", "hardtanh", ("min_val", "max_val")),
    ("Hardswish", "hardswish", ()),
    ("Hardsigmoid", "hardsigmoid", ()),
    ("Hardshrink", "hardshrink", ("lambd",)),
    ("Softshrink", "softshrink", ("lambd",)),
    ("Softplus", "softplus", ("beta", "threshold")),
    ("Softsign", "softsign", ()),
    ("Tanhshrink", "tanhshrink", ()),
    ("LogSigmoid", "logsigmoid", ()),
    ("GLU", "glu", ("dim",)),
    ("Softmax", "softmax", ("dim",)),
    ("Softmin", "softmin", ("dim",)),
    ("LogSoftmax", "log_softmax", ("dim",)),
):
    functional(f"torch.nn.{_name}", f"torch.nn.functional.{_function}", _options)

drawn("torch.randn", "jax.random.normal")
drawn("torch.rand", "jax.random.uniform")
dropping("torch.nn.functional.dropout", "drop")
dropping("torch.nn.functional.dropout2d", "drop_channels")
