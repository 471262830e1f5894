"""Training code: its optimizers and data, and loops that become compiled train steps. ``plan`` is the way in."""
