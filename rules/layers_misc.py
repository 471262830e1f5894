"""Layers and wrappers that no other file covers, and the reasons for those that have no JAX form."""

from __future__ import annotations

import ast
from dataclasses import replace

from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.rule.facts import Fact, Layer, Tensor
from t2j_lsp.translate.rule.layer import LAYERS, layer
from t2j_lsp.translate.rule.library import Trait, names_with, trait
from t2j_lsp.translate.rule.pieces import Piece
from t2j_lsp.translate.rule.record import CLOSE, Call, Refusal, Row, refuse, rule

SYNCHRONISED = (
    "Under jit an array sharded over devices is one array: statistics of the batch are those of the whole batch."
)


def _sync_batch_norm(call: Call) -> Piece | Refusal | None:
    if not call["process_group"].is_none:
        return call.refuse("a process group is a mesh axis in JAX: see jax.sharding")
    return call.refuse("the helper has affine=False, and no scale without bias") if call.given("bias") else None


layer(
    "torch.nn.SyncBatchNorm(num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True,"
    " process_group=None, device=None, dtype=None, *, bias=True)",
    _sync_batch_norm,
    helper="ChannelsFirstBatchNorm",
    attributes={"weight": "scale", "running_mean": "mean", "running_var": "var"},
    result=Tensor(dtype="same"),
    fidelity=CLOSE,
    note=SYNCHRONISED,
    jax="ChannelsFirstBatchNorm(num_features, ...)",
)
Row(
    "torch.nn.SyncBatchNorm.convert_sync_batchnorm(module, process_group=None)",
    "{module}",
    fidelity=CLOSE,
    note=SYNCHRONISED,
    result="same",
)

# Without a JAX form ---------------------------------------------------------------------------------------------

SHARDED = "One JAX program drives all devices: shard the batch (jax.device_put with a NamedSharding), not the model."
LAZY = "Its size is known only after the first call; write the class without Lazy and state the size."


def _refuse_lazy(name: str, argument: str) -> None:
    """A layer that takes a size from its first input, which Flax wants as it is made."""
    refuse(
        f"torch.nn.Lazy{name}",
        f"It takes {argument} from its first input: give it, as nn.{name}({argument}, ...); print(model) in PyTorch "
        "shows the number after one call.",
    )


_refuse_lazy("Linear", "in_features")
for name, argument in {
    **dict.fromkeys(("Conv", "ConvTranspose"), "in_channels"),
    **dict.fromkeys(("BatchNorm", "InstanceNorm"), "num_features"),
}.items():
    for rank in (1, 2, 3):
        _refuse_lazy(f"{name}{rank}d", argument)
for name, reason in {
    "UninitializedParameter": LAZY,
    "UninitializedBuffer": LAZY,
    "parallel.*": SHARDED,
    "Container": "Deprecated since PyTorch 0.4: derive from nn.Module.",
    "CrossMapLRN2d": "Old; nn.LocalResponseNorm is its successor.",
    "factory_kwargs": "A helper of PyTorch's own layers.",
    "quantized.FloatFunctional": "Its add, mul and cat are jnp.add, jnp.multiply and jnp.concatenate: call these.",
    "quantized.*": "JAX has no counterpart of PyTorch's quantised layers here.",
    "quantizable.*": "JAX has no counterpart of PyTorch's quantised layers here.",
    "qat.*": "JAX has no counterpart of PyTorch's quantised layers here.",
    "intrinsic.*": "JAX has no counterpart of PyTorch's fused layers: XLA fuses by itself.",
    "attention.*": "It chooses or varies kernels of PyTorch's: write the mask as an array, or use Pallas.",
}.items():
    refuse(f"torch.nn.{name}", reason)
refuse("torch.quantization.*", "JAX has no counterpart of PyTorch's quantisation here.")

# torch.nn.utils -------------------------------------------------------------------------------------------------

FLAT = "Of which module these are the parameters isn't said here; jax.flatten_util.ravel_pytree has Flax's order."
Row(
    "torch.nn.utils.parameters_to_vector(parameters)",
    "jnp.concatenate([p.ravel() for p in {parameters}])",
)


@rule(
    "torch.nn.utils.vector_to_parameters(vec, parameters)",
    jax="vector_to_parameters(vec, module)",
    result="unknown",
)
def vector_to_parameters(call: Call) -> Piece | Refusal:
    """A helper that writes into the places of the parameters, in PyTorch's order and layouts."""
    match call["parameters"].node:
        case ast.Call(func=ast.Attribute(attr="parameters", value=module), args=[], keywords=[]):
            if is_module(call.site.fact(module)):
                return call.emit("vector_to_parameters({vec}, {parameters})")
    return call.refuse(FLAT)


SPECTRAL = (
    "nnx.SpectralNorm writes the divided weight back into its layer; PyTorch's goes on training the weight itself."
)
WEIGHT = "What stands for weight_norm keeps the length and the direction: multiply them where the layer is built anew."
for name, reason in {
    "remove_spectral_norm": SPECTRAL,
    "parametrizations.spectral_norm": SPECTRAL,
    "remove_weight_norm": WEIGHT,
    "parametrizations.orthogonal": "NNX has no parametrised parameters: compute the orthogonal matrix in __call__.",
    "parametrize.*": "NNX has no parametrised parameters: compute the value in __call__.",
    "prune.*": "NNX has no pruning: multiply the kernel by a mask that is kept in a variable.",
    "fusion.*": "XLA fuses by itself; to fold a batch norm into a convolution scale its kernel.",
    "fuse_conv_bn_eval": "XLA fuses by itself; to fold a batch norm into a convolution scale its kernel.",
    "fuse_conv_bn_weights": "XLA fuses by itself; to fold a batch norm into a convolution scale its kernel.",
    "fuse_linear_bn_eval": "XLA fuses by itself; to fold a batch norm into a linear layer scale its kernel.",
    "fuse_linear_bn_weights": "XLA fuses by itself; to fold a batch norm into a linear layer scale its kernel.",
    "stateless.*": "An NNX module is a pytree: nnx.split and nnx.merge give its function of the parameters.",
    "skip_init": "Build the module under nnx.eval_shape, which initialises nothing.",
}.items():
    refuse(f"torch.nn.utils.{name}", reason)


def _around(call: Call, name: str) -> Fact:
    """The layer, with a module of its own around it."""
    made = call["module"].fact
    return replace(made, wrapped=name) if isinstance(made, Layer) else made


@rule(
    "torch.nn.utils.spectral_norm(module, name='weight', n_power_iterations=1, eps=1e-12, dim=None)",
    jax="SpectralNorm(module, n_power_iterations, eps, rngs=rngs)",
    fidelity=CLOSE,
    note="Names that the program asks for have the layer's weight as weight; PyTorch's is weight_orig from then on.",
    result=lambda call: _around(call, "torch.nn.utils.spectral_norm"),
)
def spectral_norm(call: Call) -> Piece | Refusal:
    """A module around the layer, which PyTorch changes in place."""
    made = call["module"].fact
    if not isinstance(made, Layer) or made.node is not call["module"].node:
        return call.refuse("PyTorch changes the layer that it is given: build the layer in the call")
    if made.name not in names_with(Trait.LINEAR) and LAYERS[made.name].flax != "nnx.Conv":
        return call.refuse(f"SpectralNorm here is of linear layers and convolutions, and not of {made.name}")
    if call.given("name") or call.literal("dim") not in (None, 0):
        return call.refuse("SpectralNorm here is of the weight, with its outputs first")
    return call.emit(
        "SpectralNorm({module}, n_power_iterations={n_power_iterations?}, eps={eps?}, rngs={rngs})",
        rngs=call.site.rngs(),
    )


def _weight_norm(name: str, parametrized: bool) -> None:
    names = "parametrizations.weight.original0 and original1" if parametrized else "weight_g and weight_v"

    @rule(
        f"torch.nn.utils.{name}(module, name='weight', dim=0)",
        jax="WeightNorm(module, dim, parametrized=...)",
        fidelity=CLOSE,
        note=f"Names that the program asks for have scale and weight; PyTorch's are {names}.",
        result=lambda call: _around(call, f"torch.nn.utils.{name}"),
    )
    def emit(call: Call) -> Piece | Refusal:
        made, dim = call["module"].fact, call.literal("dim")
        if not isinstance(made, Layer) or made.node is not call["module"].node:
            return call.refuse("PyTorch changes the layer that it is given: build the layer in the call")
        if made.name not in names_with(Trait.LINEAR) and LAYERS[made.name].flax not in (
            "nnx.Conv",
            "nnx.ConvTranspose",
        ):
            return call.refuse(f"WeightNorm here is of linear layers and convolutions, and not of {made.name}")
        most = 1 if LAYERS[made.name].flax == "nnx.ConvTranspose" else 4
        if call.given("name") and call.literal("name") != "weight" or not isinstance(dim, int) or not 0 <= dim <= most:
            return call.refuse("WeightNorm here is of the weight, with a length for each slice along a numbered axis")
        style = "" if parametrized else ", parametrized=False"
        return call.emit(f"WeightNorm({{module}}, dim={{dim?}}{style})")


_weight_norm("weight_norm", parametrized=False)
_weight_norm("parametrizations.weight_norm", parametrized=True)
trait(Trait.SHARES_WEIGHT, "torch.nn.utils.spectral_norm")
