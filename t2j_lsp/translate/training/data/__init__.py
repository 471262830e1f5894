"""Data pipelines and batches: what stays in PyTorch, and where its tensors become arrays."""
