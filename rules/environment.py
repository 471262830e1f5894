"""What a program asks of its surroundings: devices, CUDA, backends, versions, constants, seeds."""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import NONE, Object, Scalar
from t2j_lsp.translate.rule.library import Trait, platform, trait
from t2j_lsp.translate.rule.record import CLOSE, Call, Piece, Refusal, Row, drop, refuse, rule

# Constants ------------------------------------------------------------------------------------------------------

for name in ("pi", "inf", "nan", "e"):
    Row(f"torch.{name}", f"jnp.{name}", result="float")
Row("torch.newaxis", "None", result="unknown")
refuse("torch.__version__", "A question about PyTorch's version; jax.__version__ is JAX's.")
trait(Trait.VERSION, "torch.__version__")
refuse("torch.version.*", "A question about PyTorch's build; jax.__version__ is JAX's.")

for name, count in {"single": 1, "pair": 2, "triple": 3, "quadruple": 4}.items():
    Row(f"torch.nn.modules.utils._{name}(x)", f"per_axis({{x}}, {count})", result="unknown")

# Devices --------------------------------------------------------------------------------------------------------


@rule("torch.device(type, index=None)", jax="jax.devices()[0]", ignore=["index"], result="device")
def device(call: Call) -> Piece:
    """JAX puts arrays on its default device, the first accelerator; the name mostly isn't read any more."""
    if call["type"].literal == "cpu":
        return call.emit('jax.devices("cpu")[0]')
    return call.emit("jax.devices()[0]")


platform("cuda", "gpu")
platform("cpu", "cpu")
for name in ("mps", "xpu", "npu", "hpu", "meta", "ipu", "vulkan"):
    platform(name, "")
Row("torch.cuda.is_available()", 'jax.default_backend() == "gpu"', result="bool")
for name in ("cuda", "accelerator"):
    Row(f"torch.{name}.device_count()", "jax.local_device_count()", result="int")
Row("torch.accelerator.is_available()", 'jax.default_backend() != "cpu"', result="bool")
Row(
    "torch.accelerator.current_accelerator(check_available=False)",
    "jax.devices()[0]",
    ignore=["check_available"],
    result="device",
)


def _device(call: Call) -> str | None:
    """The device that is asked for: an object, or a number among those of this process; None if that isn't known."""
    given = call["device"]
    if isinstance(given.fact, Object) and given.fact.kind == "device":
        return "{device}"
    if not call.given("device") or given.fact == NONE:
        return "jax.local_devices()[0]"
    return "jax.local_devices()[{device}]" if isinstance(given.fact, Scalar) and given.fact.kind == "int" else None


@rule("torch.cuda.get_device_name(device=None)", jax="device.device_kind", result="str")
def get_device_name(call: Call) -> Piece:
    """What XLA calls the kind of a device."""
    return call.emit(f"{_device(call) or 'jax.local_devices()[0]'}.device_kind")


def _memory(name: str, key: str) -> None:
    """A figure of the allocator: of XLA's own, which holds most of the memory from the start."""

    @rule(
        f"torch.cuda.{name}(device=None)",
        jax=f'device.memory_stats()["{key}"]',
        fidelity=CLOSE,
        note="XLA's allocator is asked, which has other figures than PyTorch's; there is none on a CPU.",
        result="int",
    )
    def emit(call: Call) -> Piece | Refusal:
        device = _device(call)
        if device is None:
            return call.refuse("Which device this is isn't known here: device.memory_stats() has its figures.")
        return call.emit(f'({device}.memory_stats() or {{}}).get("{key}", 0)')


for name, key in {"memory_allocated": "bytes_in_use", "memory_reserved": "pool_bytes"}.items():
    _memory(name, key)
    _memory(f"max_{name}", f"peak_{key}")

Row("torch.cuda.is_bf16_supported(including_emulation=True)", "True", ignore=["including_emulation"], result="bool")
Row("torch.backends.mps.is_available()", "False", result="bool")
Row("torch.xpu.is_available()", "False", result="bool")
Row("torch.backends.cudnn.is_available()", 'jax.default_backend() == "gpu"', result="bool")
for name in ("get_default_device", "cuda.current_device", "accelerator.current_device_index"):
    refuse(f"torch.{name}", "JAX names devices by objects: jax.devices()[0] is the default one.")
for name in ("cuda.set_device", "set_default_device", "accelerator.set_device_index"):
    drop(f"torch.{name}", 'JAX computes on its first device: jax.config.update("jax_default_device", device).')

# CUDA, backends and threads -------------------------------------------------------------------------------------

MEMORY = "XLA manages device memory itself."
for name in ("empty_cache", "ipc_collect", "reset_peak_memory_stats", "reset_max_memory_allocated"):
    drop(f"torch.cuda.{name}", MEMORY)
for name in ("mps.empty_cache", "xpu.empty_cache", "accelerator.empty_cache"):
    drop(f"torch.{name}", MEMORY)
for name in ("cuda", "mps", "xpu", "accelerator"):
    drop(
        f"torch.{name}.synchronize",
        "JAX waits where a value is read; to time a computation call jax.block_until_ready.",
    )
refuse("torch.accelerator.*", "JAX names devices by objects: see jax.devices() and jax.local_devices().")
refuse("torch.cuda.*", "There is no CUDA interface in JAX: see jax.devices() and jax.profiler.")
refuse("torch.mps.*", "There is no MPS interface in JAX.")
refuse("torch.xpu.*", "There is no XPU interface in JAX.")
for name, value in {"enabled": True, "deterministic": False, "benchmark": False, "allow_tf32": True}.items():
    Row(f"torch.backends.cudnn.{name}", str(value), result="bool")  # what PyTorch begins with
refuse("torch.backends.cudnn.version", "A question about PyTorch's build; XLA brings a cuDNN of its own.")
drop("torch.backends.*", "Backend switches of PyTorch have no counterpart: XLA chooses its kernels.")
drop(
    "torch.use_deterministic_algorithms", "XLA is deterministic on CPU and TPU; on GPU set --xla_gpu_deterministic_ops."
)
drop("torch.set_float32_matmul_precision", 'JAX has jax.config.update("jax_default_matmul_precision", ...).')
for name in ("set_num_threads", "set_num_interop_threads", "set_printoptions", "set_flush_denormal"):
    drop(f"torch.{name}", "A setting of PyTorch's own runtime.")
for name in ("get_num_threads", "get_num_interop_threads"):
    refuse(f"torch.{name}", "XLA manages its threads itself.")

# Seeds ----------------------------------------------------------------------------------------------------------


@rule("torch.manual_seed(seed)", jax="rngs = nnx.Rngs(seed)", aliases=["torch.random.manual_seed"], result="unknown")
def manual_seed(call: Call) -> Refusal:
    """As a statement it becomes the ``nnx.Rngs`` of the code after it; here its value is used."""
    return call.refuse("The value of manual_seed is PyTorch's generator: make an nnx.Rngs(seed) and pass it on.")


for name in ("cuda.manual_seed", "cuda.manual_seed_all", "mps.manual_seed", "xpu.manual_seed"):
    drop(f"torch.{name}", "nnx.Rngs is seeded once, for all devices.")

trait(Trait.SEED, "torch.manual_seed", "torch.random.manual_seed")
trait(Trait.DEVICE_SEED, "torch.cuda.manual_seed", "torch.cuda.manual_seed_all")
trait(Trait.DEVICE_TEST, "torch.cuda.is_available", "torch.backends.mps.is_available", "torch.xpu.is_available")
trait(Trait.DEVICE_TEST, "torch.accelerator.is_available", "torch.accelerator.current_accelerator")
trait(Trait.FALSE, "torch.backends.mps.is_available", "torch.xpu.is_available")
