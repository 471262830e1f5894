"""Tests of the checker. Those that run code share one warm pair of workers."""
