"""Which files hold unit tests."""

from __future__ import annotations

import ast

FRAMEWORKS = ("pytest", "unittest", "torch.testing")


def is_test_file(tree: ast.Module) -> bool:
    """Whether a file holds unit tests: it imports a framework for them, or has functions that pytest collects."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(a.name.split(".")[0] in FRAMEWORKS for a in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(FRAMEWORKS):
            return True
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef)]
    return any(f.name.startswith("test_") and any(isinstance(n, ast.Assert) for n in ast.walk(f)) for f in functions)
