"""Fixed-bug examples: conversions that went wrong once, with the correction that holds.

The package holds no data and no search yet. Installed as ``t2j_lsp.retrieval``.
"""
