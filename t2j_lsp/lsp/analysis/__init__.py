"""Analyses: what a program's text is, in torch's terms and in JAX's, worked out in a process of its own.

``model`` is what crosses to the server; ``units`` cuts programs into pieces; ``analyst`` keeps analyses up to date;
``partial`` converts a part of a file; ``process`` is the process, and ``service`` the server's side of it.
"""
