"""What each torch name becomes in JAX: one file for each subject of the torch API.

Every module here registers its rules when it is imported, and ``t2j_lsp.plugins.load_rules`` finds
the modules by a walk over this package. To add a rule, add a row to the file of its subject.
``helpers/`` holds JAX functions and NNX modules that are copied into converted code where needed.
Installed as ``t2j_lsp.rules``.
"""
