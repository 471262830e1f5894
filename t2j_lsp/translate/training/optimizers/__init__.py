"""Optimizers and what they update: parameter groups, frozen parameters, bare tensors, learning rates and schedules."""
