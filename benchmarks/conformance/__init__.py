"""Conformance with PyTorch's own databases of operators, modules and optimizers: every sample, converted and run."""
