"""Tests of the model lane."""
