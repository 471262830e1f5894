"""Fixed bugs: JAX conversions that went wrong, what they said, and the corrections that hold.

``programs/`` holds the examples as their authors write them, ``fixed_bugs.jsonl`` the same as data, with what running
them showed, and ``terms.jsonl`` the words they are found by; ``index`` finds the ones that help with a piece of code,
``similar`` those that are really like what went wrong. Installed as ``t2j_lsp.retrieval``.
"""

from .index import Index, dataset
from .similar import Similar

__all__ = ["Index", "Similar", "dataset"]
