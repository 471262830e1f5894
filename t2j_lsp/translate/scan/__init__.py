"""Loops over layers that are alike, which become one layer that ``nnx.scan`` runs."""
