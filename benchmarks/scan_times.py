"""Compile times of a deep transformer, converted with and without ``--scan``: trace and compile of its train step.

    python -m benchmarks.scan_times [--depth 48] [--width 128]

A process for each row. Timed, in seconds of the processor, are `lower` (JAX traces) and `compile` (XLA) of an AdamW
step, and the step itself.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from typing import Any

SOURCE = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim, heads, dropout=0.1):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim), nn.Dropout(dropout))

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class Encoder(nn.Module):
    def __init__(self, vocab, dim, depth, heads):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList([Block(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
"""


def measured(depth: int, width: int, scan: bool) -> dict[str, float]:
    """Seconds for making the model, tracing and compiling its step, and one step."""
    import jax
    import jax.numpy as jnp
    import optax
    from flax import nnx

    from t2j_lsp import convert

    namespace: dict[str, Any] = {}
    exec(convert(SOURCE, scan=scan).code, namespace)
    start = time.process_time()
    model = namespace["Encoder"](256, width, depth, 4, rngs=nnx.Rngs(0))
    jax.block_until_ready(jax.tree.leaves(nnx.state(model, nnx.Param)))
    times = {"made": time.process_time() - start}
    optimizer = nnx.Optimizer(model, optax.adamw(1e-3), wrt=nnx.Param)
    tokens = jnp.arange(4 * 32).reshape(4, 32) % 256

    @nnx.jit
    def step(model: nnx.Module, optimizer: nnx.Optimizer[Any], tokens: jax.Array) -> jax.Array:
        def loss(model: Any) -> jax.Array:
            return optax.softmax_cross_entropy_with_integer_labels(model(tokens), tokens).mean()

        value, grads = nnx.value_and_grad(loss)(model)
        optimizer.update(model, grads)
        return value

    start = time.process_time()
    lowered = step.lower(model, optimizer, tokens)
    times["traced"] = time.process_time() - start
    start = time.process_time()
    compiled = lowered.compile()
    times["compiled"] = time.process_time() - start
    compiled(model, optimizer, tokens).block_until_ready()
    start = time.process_time()
    for _ in range(5):
        value = compiled(model, optimizer, tokens)
    value.block_until_ready()
    times["step"] = (time.process_time() - start) / 5
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depth", type=int, default=48)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--one", choices=("loop", "scan"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        times = measured(arguments.depth, arguments.width, arguments.one == "scan")
        print(arguments.one, *(f"{times[name]:8.2f}" for name in ("made", "traced", "compiled")), end=" ")
        print(f"{times['step']:8.3f}")
        return
    print(f"{arguments.depth} layers of width {arguments.width}, seconds of the processor")
    print("     " + "".join(f"{name:>9}" for name in ("made", "traced", "compiled", "step")), flush=True)
    for one in ("loop", "scan"):
        command = [sys.executable, "-m", "benchmarks.scan_times", "--one", one]
        sizes = ["--depth", str(arguments.depth), "--width", str(arguments.width)]
        subprocess.run([*command, *sizes], check=True, env={**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false"})


if __name__ == "__main__":
    main()
