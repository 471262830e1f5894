"""Tests of the fixed bugs and of finding them."""
