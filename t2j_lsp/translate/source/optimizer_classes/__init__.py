"""Classes that derive from ``torch.optim.Optimizer``, as functions that make transformations of optax."""
