"""Tests of the rules: every rule is driven with real calls, and what it makes of them is run against PyTorch."""
