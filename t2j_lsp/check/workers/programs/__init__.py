"""Runs whole programs inside a worker: what both sides share. It imports neither framework."""
