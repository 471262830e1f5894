"""The target ``jax``: classes of modules as pairs of functions, still in PyTorch's words, before anything else."""
