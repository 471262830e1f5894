"""What training loops call besides the optimizer: clipping, mixed precision, gradient scaling, data parallelism.

Inside a loop that converts, these become part of its train step. What stands elsewhere is left, with the reason.
"""

from __future__ import annotations

from t2j_lsp.translate.rule.library import Trait, trait
from t2j_lsp.translate.rule.record import Call, Refusal, refuse, rule

LOOP = "It works on stored gradients, which JAX doesn't have: it converts only in a training loop that converts."


@rule(
    "torch.nn.utils.clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None)",
    jax="grads = clip_grad_norm(grads, max_norm)",
    aliases=["torch.nn.utils.clip_grad_norm"],
)
def clip_grad_norm_(call: Call) -> Refusal:
    """In a training loop: a helper with PyTorch's coefficient, max_norm / (norm + 1e-6)."""
    return call.refuse(LOOP)


@rule(
    "torch.nn.utils.clip_grad_value_(parameters, clip_value, foreach=None)",
    jax="grads = jax.tree.map(lambda g: jnp.clip(g, -clip_value, clip_value), grads)",
)
def clip_grad_value_(call: Call) -> Refusal:
    return call.refuse(LOOP)


SCALER = (
    "Gradient scaling guards float16; the loop runs in float32, where it has nothing to do, and converts without it."
)
for name in ("torch.amp.GradScaler", "torch.cuda.amp.GradScaler"):
    refuse(name, SCALER)
AUTOCAST = "JAX has no autocast: give the layers dtype=jnp.bfloat16, which leaves their parameters in float32."
for name in ("torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast"):
    refuse(name, AUTOCAST)
refuse("torch.nn.utils.get_total_norm", "Gradients are values in JAX: optax.tree.norm(grads).")
refuse("torch.nn.utils.clip_grads_with_norm_", LOOP)

trait(Trait.CLIPS_NORM, "torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_norm")
trait(Trait.CLIPS_VALUE, "torch.nn.utils.clip_grad_value_")
