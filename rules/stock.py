"""Why a helper stands where JAX, Flax or optax have a function that looks like it. Hovers show the reason."""

from __future__ import annotations

from t2j_lsp.translate.rule.record import instead

# Activations and attention --------------------------------------------------------------------------------------

instead("jax.nn.leaky_relu has gradient 1 at 0, where PyTorch's is negative_slope.", "leaky_relu", "LeakyReLU")
instead("jax.nn.hard_tanh has fixed bounds, and a gradient on them.", "hardtanh", "Hardtanh")
instead("jax.nn.softplus has neither beta nor threshold.", "softplus", "Softplus")
instead("jax.nn.softmax gives NaN for a row of minus infinities.", "softmax_or_zeros")
instead(
    "jax.nn.dot_product_attention has the heads behind the lengths, and no dropout.", "scaled_dot_product_attention"
)
instead("nnx.MultiHeadAttention returns no attention weights, and keeps its parameters by heads.", "MultiheadAttention")

# Special functions ----------------------------------------------------------------------------------------------

instead("jax.scipy.special.digamma has a gradient that is off by orders of magnitude below -8.", "digamma")
instead("jax.scipy.special.polygamma is off by orders of magnitude below -8.", "polygamma")
instead("jax.scipy.special.xlogy has a gradient that isn't finite where x is 0 and y is 0 or less.", "xlogy")
instead("jax.scipy.special.erfcx is 0 above 26 in float64, where it should be 1 / (x * sqrt(pi)).", "erfcx")

# Matrices -------------------------------------------------------------------------------------------------------

instead("jax.lax.linalg.triangular_solve broadcasts no batch axes.", "solve_triangular")

# Convolution and pooling ----------------------------------------------------------------------------------------

instead("jax.lax.conv_general_dilated wants strides, paddings and the order of axes spelled out.", "conv_nd")
instead("jax.lax.conv_transpose counts padding differently, and has no groups or output_padding.", "conv_transpose_nd")
instead(
    "nnx.Conv takes channels last, (N, H, W, C), and draws other initial values.",
    "ConvNd",
    "Conv1d",
    "Conv2d",
    "Conv3d",
)
instead(
    "nnx.ConvTranspose takes channels last, counts padding differently, and has no groups or output_padding.",
    "ConvTransposeNd",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
)
instead(
    "nnx.max_pool takes channels last, and has no dilation, ceil_mode or indices.",
    *("max_pool", "max_pool1d", "max_pool2d", "max_pool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d"),
    "max_pool_with_indices",
)
instead(
    "nnx.avg_pool takes channels last, and has no ceil_mode or divisor_override.",
    *("avg_pool", "avg_pool1d", "avg_pool2d", "avg_pool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d"),
)
instead(
    "Flax has no adaptive pooling.",
    *(f"adaptive_{kind}_pool{rank}" for kind in ("avg", "max") for rank in ("", "1d", "2d", "3d")),
    *(f"Adaptive{kind}Pool{rank}d" for kind in ("Avg", "Max") for rank in (1, 2, 3)),
)
instead(
    "jax.image.resize smooths where it shrinks, picks other pixels for `nearest`, and has no align_corners.",
    *("interpolate", "Upsample", "UpsamplingNearest2d", "UpsamplingBilinear2d"),
)
instead("jax.scipy.ndimage.map_coordinates takes one image, positions in pixels, and other borders.", "grid_sample")
instead("jnp.pad takes a pair for every axis, the first axis first, and can't crop.", "pad")

# Layers ---------------------------------------------------------------------------------------------------------

instead("Flax has no function for it, only the module nnx.Dropout.", "dropout")
instead("nnx.Embed has no padding_idx, and draws other initial values.", "Embedding")
instead("Indexing the weight would give the row `padding_idx` a gradient.", "embedding")
instead("jax.nn.one_hot gives floats, and zeros for ids out of range.", "one_hot")
instead(
    "nnx.BatchNorm takes channels last, and its running variance is that of the batch without Bessel's correction.",
    *("BatchNorm", "ChannelsFirstBatchNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d"),
)
instead("nnx.GroupNorm takes channels last.", "GroupNorm")
instead("Flax has no function for it, only the module nnx.LayerNorm.", "layer_norm")
instead("Flax has no function for it, only the module nnx.GroupNorm.", "group_norm")
instead("Flax has no function for it, only the module nnx.BatchNorm.", "batch_norm")
instead("Flax has no function for it, only the module nnx.RMSNorm.", "rms_norm")
instead(
    "nnx.RNN runs one layer; PyTorch's has several, two directions, dropout between layers, and two biases.",
    *("LSTM", "GRU", "RNN"),
)
instead("nnx.LSTMCell has one bias where PyTorch's has two, and its carry in the other order.", "LSTMCell")
instead("nnx.Sequential takes no dict of names, and can't be sliced.", "Sequential")
instead("nnx.Sequential can't be indexed, sliced or iterated.", "IndexedSequential")
instead("A slice or a sum of an nnx.List is no nnx.List.", "ModuleList")
instead("An nnx.Dict comes out of nnx.jit with its items sorted.", "ModuleDict")
instead(
    "Flax has no such layers.",
    *("Transformer", "TransformerEncoder", "TransformerDecoder", "TransformerEncoderLayer", "TransformerDecoderLayer"),
)

# Initial values -------------------------------------------------------------------------------------------------

instead("Flax's own default for kernels is lecun_normal.", "uniform_fan_in")
instead("Flax's own default for a bias is zeros.", "uniform_bias")
instead("Flax's own defaults are lecun_normal and zeros.", "uniform_init", "linear", "conv", "transposed_conv")
instead("nnx.initializers.truncated_normal counts its bounds in standard deviations.", "trunc_normal")
instead("nnx.initializers.kaiming_uniform always has the gain of ReLU, and fan_in.", "kaiming_uniform")
instead("nnx.initializers.kaiming_normal truncates, and always has the gain of ReLU, and fan_in.", "kaiming_normal")

# Losses ---------------------------------------------------------------------------------------------------------

instead(
    "optax has one function for indices and another for probabilities; neither knows ignore_index, class weights or a"
    " reduction.",
    *("cross_entropy", "CrossEntropyLoss"),
)
instead("optax's cross entropies take logits, not log probabilities.", "nll_loss", "NLLLoss")
instead("optax.sigmoid_binary_cross_entropy takes logits.", "binary_cross_entropy", "BCELoss")
instead(
    "optax.sigmoid_binary_cross_entropy has no weight, pos_weight or reduction.",
    *("binary_cross_entropy_with_logits", "BCEWithLogitsLoss"),
)
instead("optax.kl_divergence sums over the last axis, and has no reduction.", "kl_div", "KLDivLoss")
instead("optax.huber_loss has no reduction.", "huber_loss", "HuberLoss")
instead("optax.huber_loss is this times beta, and has no reduction.", "smooth_l1_loss", "SmoothL1Loss")
instead("optax.squared_error has no reduction.", "mse_loss", "MSELoss")
instead("optax.ctc_loss takes paddings where PyTorch takes lengths, and has no reduction.", "ctc_loss", "CTCLoss")

# Shapes, order, indices -----------------------------------------------------------------------------------------

instead("jnp.squeeze raises where the axis is longer than 1.", "squeeze")
instead("jnp.split takes the positions to cut at, or a number of parts, and not their size.", "split")
instead("jnp.array_split makes parts of other sizes: 7 in 3 is 3, 2, 2.", "chunk")
instead("jnp.broadcast_to has no -1.", "expand")
instead("x.at[...] takes whole indices, and not an index along one axis.", "along_axis")
instead("jnp.max gives no indices.", "max_with_indices")
instead("jnp.min gives no indices.", "min_with_indices")
instead("jnp.sort gives no indices.", "sort_with_indices")
instead("jax.lax.top_k finds the largest elements only.", "top_k")
instead("jnp.median gives the mean of the two middle elements.", "lower_median", "median_with_indices")
instead("jnp.nanmedian gives the mean of the two middle elements.", "lower_nanmedian", "nanmedian_with_indices")
instead("jax.lax.cummax gives no indices.", "cummax_with_indices")
instead("jax.lax.cummin gives no indices.", "cummin_with_indices")
instead("jax.random.choice takes one vector of probabilities.", "multinomial")
instead("jax.scipy.signal.stft scales its result.", "stft")

# Training -------------------------------------------------------------------------------------------------------

instead("An optimizer takes a filter, not a flag: wrt=.", "set_trainable", "is_trainable")
instead(
    "A module that is called outside of a compiled function is not compiled by itself.",
    "forward",
    "forward_graph",
    "call_method",
    "call_method_graph",
)
instead(
    "optax.clip_by_global_norm scales by max_norm / norm, PyTorch by max_norm / (norm + 1e-6).",
    "clip_grad_norm",
    "clip_grad_norm_of",
)
instead("optax counts a schedule by updates; PyTorch's goes on where its step() is called.", "LRScheduler")
instead("optax.contrib.reduce_on_plateau is part of the optimizer, which needs the value then.", "ReduceLROnPlateau")
instead(
    "optax.MultiSteps counts the updates itself, and averages over them.",
    "zero_gradients",
    "apply_gradients",
    "apply_gradients_graph",
    "zero_step",
    "apply_step",
)
instead("jax.vjp gives a function for each call, and sums nothing over the calls.", "recorded", "stacked", "pull_back")
instead("optax.cosine_decay_schedule stays at its end, where PyTorch's goes up again.", "cosine_annealing")
instead("optax.trace has no dampening.", "dampened_trace")
instead("optax.amsgrad takes the maximum behind the correction of the bias.", "scale_by_amsgrad")
instead("optax.adagrad adds eps inside of the root, and starts its sums at 0.1.", "scale_by_adagrad")
instead("optax.nadam has a constant momentum coefficient.", "scale_by_nadam")
