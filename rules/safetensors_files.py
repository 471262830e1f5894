"""``safetensors.torch``: the same files by ``safetensors.flax``, which takes and gives JAX arrays.

https://huggingface.co/docs/safetensors/api/flax
"""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import STR, ListOf, Tensor
from t2j_lsp.translate.rule.record import CLOSE, Call, Piece, Refusal, Row, refuse, rule

MODULE = "safetensors.torch"

Row(
    f"{MODULE}.save_file(tensors, filename, metadata=None)",
    "save_file({tensors}, {filename}, metadata={metadata?})",
    fidelity=CLOSE,
    note="It writes the values of arrays, which are not known under jit: call it outside.",
    result="none",
)
Row(
    f"{MODULE}.load_file(filename, device='cpu')",
    "load_file({filename})",
    ignore=["device"],
    result=lambda call: ListOf(Tensor(), STR),
)
for name in ("save", "load"):
    refuse(f"{MODULE}.{name}", f"safetensors.flax.{name} does the same for JAX arrays: import it from there.")
refuse(f"{MODULE}.save_model", "It takes PyTorch's modules: save the state_dict() by save_file.")
refuse(f"{MODULE}.load_model", "It takes PyTorch's modules: give load_state_dict() what load_file reads.")


@rule(
    "safetensors.safe_open(filename, framework, device='cpu')",
    jax='safe_open(filename, framework="flax")',
    aliases=[f"{MODULE}.safe_open"],
    ignore=["device"],
    result="unknown",
)
def safe_open(call: Call) -> Piece | Refusal | None:
    """The file gives JAX arrays; where it gave NumPy's it does so still."""
    framework = call["framework"].literal
    if framework in ("pt", "torch", "pytorch"):
        return call.emit('safe_open({filename}, framework="flax")')
    if isinstance(framework, str):
        return call.emit("safe_open({filename}, framework={framework})")
    return call.refuse("Whether it gives PyTorch's tensors isn't known: name the framework.")
