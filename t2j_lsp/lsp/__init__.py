"""The language server: hover, diagnostics, conversions and checks in the editor, over stdio or TCP.

The server's own process parses nothing and imports neither the translator nor torch nor jax: it holds texts, answers
requests from the last analysis, and leaves analyses to one process (``analysis``) and checks to another (``checking``).
"""
