"""The worker that runs the JAX program."""
