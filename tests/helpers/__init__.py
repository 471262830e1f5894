"""Tests of rules/helpers: every helper against the PyTorch call it stands for, in float64."""
