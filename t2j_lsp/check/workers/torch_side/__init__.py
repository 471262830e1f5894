"""The worker that runs the PyTorch program."""
