"""Training steps: which statements they are made of, what they are given, and how the compiled function is written."""
