"""Code that runs inside the worker processes: one side imports torch, the other jax and flax."""
