"""Tests of the translator: whole files and modules are converted and run beside their PyTorch source."""
