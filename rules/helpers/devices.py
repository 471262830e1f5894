"""What PyTorch calls the devices of JAX."""

import jax


def kind_of_device(device: jax.Device) -> str:
    """`device.type` in PyTorch's words: "cuda" where JAX calls a platform "gpu", else as JAX does ("cpu", "tpu")."""
    return "cuda" if device.platform == "gpu" else device.platform
