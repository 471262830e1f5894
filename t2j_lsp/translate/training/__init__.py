"""Training code: optimizers and schedules, and loops that become a compiled train step."""
