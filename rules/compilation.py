"""TorchScript, ``torch.compile``, gradient switches, checkpointing, and packages that JAX has no counterpart of."""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import TENSOR, ListOf, is_tensor
from t2j_lsp.translate.rule.library import Trait, trait
from t2j_lsp.translate.rule.pieces import OR
from t2j_lsp.translate.rule.record import CLOSE, Call, Piece, Refusal, Row, drop, refuse, rule

from ._arguments import spread

# Gradient switches: `with` blocks and decorators are handled where they stand ------------------------------------


@rule(
    "torch.no_grad()",
    jax="jax.lax.stop_gradient(result)",
    aliases=["torch.autograd.no_grad"],
    result="unknown",
)
def no_grad(call: Call) -> Refusal:
    """``with torch.no_grad():`` and ``@torch.no_grad()`` put jax.lax.stop_gradient around what leaves them."""
    return call.refuse("Only a with block or a decorator of no_grad converts: use jax.lax.stop_gradient on the values.")


@rule(
    "torch.inference_mode(mode=True)",
    jax="jax.lax.stop_gradient(result)",
    aliases=["torch.autograd.inference_mode"],
    result="unknown",
)
def inference_mode(call: Call) -> Refusal:
    return call.refuse("Only a with block or a decorator converts: use jax.lax.stop_gradient on the values.")


refuse(
    "torch.set_grad_enabled",
    "JAX takes gradients only where they are asked for; use jax.lax.stop_gradient on a value.",
    aliases=["torch.autograd.set_grad_enabled"],
)
refuse("torch.is_grad_enabled", "JAX has no global gradient switch.")
refuse("torch.autograd.Function", "A custom backward is written with jax.custom_vjp.")
refuse(
    "torch.autograd.grad",
    "Write the differentiated expression as a function f and call jax.grad(f)(x).",
    result=lambda call: ListOf(TENSOR),
)
trait(Trait.INPUT_GRADIENT, "torch.autograd.grad")
trait(Trait.BACKWARD_PASS, "torch.autograd.backward")
PROFILER = "PyTorch's own profiler: jax.profiler.trace writes a trace for TensorBoard or Perfetto."
OVERRIDES = "JAX has no such protocol."
for name, reason in {
    "backward": "Write the loss as a function of the model and call nnx.value_and_grad on it.",
    "gradcheck": "jax.test_util.check_grads(f, args, order=1) compares gradients with finite differences.",
    "gradgradcheck": "jax.test_util.check_grads(f, args, order=2) compares second derivatives with finite differences.",
    "detect_anomaly": 'jax.config.update("jax_debug_nans", True) stops at the first NaN.',
    "variable": "Variables are tensors since PyTorch 0.4: leave it out.",
    "SavedTensor": "jax.custom_vjp hands what the backward pass needs over as a value, the residuals.",
    "NestedIOFunction": "A custom backward is written with jax.custom_vjp, whose arguments may be any pytree.",
    "enforce_grad_layout_policy": "JAX arrays have no strides: a gradient has the layout that XLA gives it.",
    "DeviceType": "A JAX device says by .platform what it is.",
    "is_multithreading_enabled": "JAX's backward pass is a compiled program, which has no threads to set.",
    "set_multithreading_enabled": "JAX's backward pass is a compiled program, which has no threads to set.",
    "is_view_replay_enabled": "JAX arrays are never views.",
    **dict.fromkeys(("handle_torch_function", "has_torch_function", "is_tensor_like"), OVERRIDES),
    **{f"Profiler{part}": PROFILER for part in ("Activity", "Config", "Event", "State")},
    "kineto_available": PROFILER,
}.items():
    refuse(f"torch.autograd.{name}", reason)
drop(
    "torch.autograd.set_detect_anomaly",
    'jax.config.update("jax_debug_nans", True) stops at the first NaN, in forward passes too.',
    aliases=["torch.autograd.anomaly_mode.set_detect_anomaly"],
)
refuse("torch.autograd.*", "JAX differentiates functions: see jax.grad, jax.vjp and jax.custom_vjp.")
refuse("torch.Tensor.backward", "Write the loss as a function of the model and call nnx.value_and_grad on it.")

Row(
    "torch.amp.is_autocast_available(device_type)",
    "False",
    fidelity=CLOSE,
    note="JAX has no autocast.",
    ignore=["device_type"],
    result="bool",
)
for name in ("custom_fwd", "custom_bwd"):
    refuse(
        f"torch.amp.{name}",
        "JAX has no autocast, which this prepares a function for: leave it out.",
        aliases=[f"torch.cuda.amp.{name}"],
    )
ENABLED = ("is_autocast_enabled", "is_autocast_cpu_enabled")
for name in (*ENABLED, "is_inference_mode_enabled", "are_deterministic_algorithms_enabled"):
    Row(f"torch.{name}()", "False", result="bool")
DEFAULT_DTYPE = "JAX has no autocast: this is the dtype that PyTorch's has where nobody sets another."
for name, dtype in (("gpu", "float16"), ("cpu", "bfloat16")):
    Row(f"torch.get_autocast_{name}_dtype()", f"jnp.{dtype}", result="dtype", fidelity=CLOSE, note=DEFAULT_DTYPE)


@rule(
    "torch.get_autocast_dtype(device_type)",
    jax='jnp.bfloat16 if device_type == "cpu" else jnp.float16',
    result="dtype",
    fidelity=CLOSE,
    note=DEFAULT_DTYPE,
)
def get_autocast_dtype(call: Call) -> Piece:
    kind = call.literal("device_type")
    if isinstance(kind, str):
        return call.emit("jnp.bfloat16" if kind == "cpu" else "jnp.float16", device_type=None)
    return call.emit('jnp.bfloat16 if {device_type} == "cpu" else jnp.float16')


# TorchScript ----------------------------------------------------------------------------------------------------

for name in ("torch.jit.is_scripting()", "torch.jit.is_tracing()", "torch._C._get_tracing_state()"):
    Row(name, "False", result="bool")
for name in ("ignore", "unused", "export", "script_method", "interface", "_script_if_tracing"):
    drop(f"torch.jit.{name}", "There is no TorchScript to hide code from.")
Row("torch.jit.script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None)", "{obj}", result="same")
Row("torch.jit.annotate(the_type, the_value)", "{the_value}", ignore=["the_type"], result="unknown")
Row("torch.jit.annotations.List", "list", result="unknown")
refuse("torch.jit.*", "JAX compiles with jax.jit or nnx.jit, and exports with jax.export.")
drop("torch.fx.wrap", "JAX traces with jax.jit, which needs no such mark.")
refuse("torch.fx.*", "JAX's counterpart of a traced graph is a jaxpr: see jax.make_jaxpr.")
refuse("torch.onnx.*", "JAX exports with jax.export.")
for name in ("QuantStub", "DeQuantStub"):
    refuse(
        f"torch.ao.quantization.{name}",
        "It hands its input on until the model is quantised: leave it out, and quantise with the qwix package.",
        aliases=[f"torch.quantization.{name}"],
    )
refuse("torch.ao.*", "JAX has no counterpart of PyTorch's quantisation here.")


@rule(
    "torch.compile(model=None, *, fullgraph=False, dynamic=None, backend=None, mode=None, options=None, disable=False,"
    " **rest)",
    jax="model",
    fidelity=CLOSE,
    ignore=["fullgraph", "dynamic", "backend", "mode", "options", "disable", "rest"],
    note="torch.compile goes: put the training step or the inference function under nnx.jit.",
    result="same",
)
def compile_(call: Call) -> Piece | Refusal:
    return call.emit("{model}") if call.given("model") else call.refuse("Put the function under nnx.jit.")


for name in ("is_compiling()", "is_dynamo_compiling()", "is_exporting()"):
    Row(f"torch.compiler.{name}", "False", result="bool")
for name in ("reset", "cudagraph_mark_step_begin", "set_stance", "allow_in_graph", "assume_constant_result"):
    drop(f"torch.compiler.{name}", "JAX compiles what stands under jax.jit, which has no such switch.")


@rule(
    "torch.compiler.disable(fn=None, recursive=True, *, reason=None)",
    jax="fn",
    ignore=["recursive", "reason"],
    result="same",
)
def disable(call: Call) -> Piece | Refusal:
    return (
        call.emit("{fn}") if call.given("fn") else call.refuse("JAX compiles what stands under jax.jit: leave it out.")
    )


refuse("torch.compiler.*", "JAX compiles with jax.jit, and says with jax.make_jaxpr or .lower() what it compiles.")


@rule("torch._assert(condition, message)", jax="assert condition, message", result="none")
def assert_(call: Call) -> Piece | Refusal:
    """A statement becomes an assertion; conditions on values don't run under jit, conditions on shapes do."""
    if not call.site.statement:
        return call.refuse("Only torch._assert as a statement converts, to an assert.")
    if is_tensor(call["condition"].fact):
        call.note("An assertion on array values fails under jax.jit; see jax.experimental.checkify.")
    return Piece(f"assert {call['condition'].operand(OR)}, {call['message'].operand(OR)}")


# Memory for time ------------------------------------------------------------------------------------------------


@rule(
    "torch.utils.checkpoint.checkpoint(function, *args, use_reentrant=None, context_fn=noop_context_fn, "
    "determinism_check='default', debug=False, early_stop=True)",
    jax="function(*args)",
    fidelity=CLOSE,
    ignore=["use_reentrant", "context_fn", "determinism_check", "debug", "early_stop"],
    note="The values are the same, but everything is kept in memory: put nnx.remat on the function to recompute it.",
    result="tensor",
)
def checkpoint(call: Call) -> Piece:
    return call.emit("{function}({args})", args=spread(call["args"]))


# Packages -------------------------------------------------------------------------------------------------------

PACKAGES = {
    "multiprocessing": "One JAX process drives all devices of a host.",
    "sparse": "JAX keeps sparse arrays in jax.experimental.sparse, with another interface.",
    "profiler": "JAX profiles with jax.profiler.trace.",
    "utils.tensorboard": "The package tensorboardX has its own names for this: import them from there.",
    "nested": "JAX has no nested tensors: pad, and keep the lengths.",
    "futures": "JAX dispatches asynchronously by itself.",
    "overrides": "JAX has no such protocol.",
}
for name, reason in PACKAGES.items():
    refuse(f"torch.{name}.*", reason)

# Contexts and decorators ----------------------------------------------------------------------------------------

for name in ("no_grad", "inference_mode"):
    trait(Trait.NO_GRADIENT, f"torch.{name}", f"torch.autograd.{name}")
trait(Trait.TRANSPARENT, "torch.enable_grad", "torch.autograd.enable_grad", "torch.autograd.profiler.record_function")
trait(Trait.TRANSPARENT, "torch.profiler.record_function")
trait(Trait.GRADIENT_SWITCH, "torch.set_grad_enabled", "torch.autograd.set_grad_enabled")
trait(Trait.FORWARD, "torch.autograd.enable_grad", "torch.autograd.set_grad_enabled")
trait(Trait.FORWARD, "torch.enable_grad", "torch.set_grad_enabled", "contextlib.nullcontext")
trait(Trait.FORWARD, "torch.autograd.set_detect_anomaly")
trait(Trait.AUTOCAST, *(f"torch.{where}autocast" for where in ("", "amp.", "cuda.amp.", "cpu.amp.")))
trait(Trait.STUB, "torch.jit._overload_method", "torch.jit._overload")
for name in ("script", "ignore", "unused", "export", "script_method", "_script_if_tracing", "interface"):
    trait(Trait.DROPPED_DECORATOR, f"torch.jit.{name}")
trait(Trait.DROPPED_DECORATOR, "torch.fx.wrap", "torch.compiler.disable", "torch._dynamo.disable")
trait(Trait.DROPPED_DECORATOR, "torch.compiler.allow_in_graph", "torch.compiler.assume_constant_result")
trait(Trait.DROPPED_DECORATOR, *(f"torch.{where}autocast" for where in ("", "amp.", "cuda.amp.", "cpu.amp.")))
for name in ("custom_fwd", "custom_bwd"):
    trait(Trait.DROPPED_DECORATOR, f"torch.amp.{name}", f"torch.cuda.amp.{name}")
trait(Trait.COMPILES, "torch.compile")
trait(Trait.PLAIN_ANNOTATION, "torch.jit.Final")

# Questions whose answer is no in JAX ----------------------------------------------------------------------------

trait(Trait.FALSE, "torch.jit.is_scripting", "torch.jit.is_tracing", "torch.onnx.is_in_onnx_export")
trait(Trait.FALSE, *(f"torch.{name}" for name in ENABLED))
trait(Trait.FALSE, "torch.compiler.is_compiling", "torch.compiler.is_dynamo_compiling", "torch._dynamo.is_compiling")
for kind in ("", "_unary", "_variadic"):
    trait(Trait.FALSE, f"torch.overrides.has_torch_function{kind}")
trait(Trait.RECOMPUTES, "torch.utils.checkpoint.checkpoint")
for name in ("checkpoint", "checkpoint_sequential"):
    trait(Trait.TRACES, f"torch.utils.checkpoint.{name}")
refuse(
    "torch.utils.checkpoint.*", "What is kept and what is computed again, a policy says: jax.checkpoint(f, policy=...)."
)
