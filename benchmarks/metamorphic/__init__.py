"""Changes of a PyTorch source that change nothing, which must not change its conversion's verdict."""
