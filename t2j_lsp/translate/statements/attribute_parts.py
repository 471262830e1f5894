"""What statements put into lists of a class's own, and what gives a module a part under another name."""

from __future__ import annotations

import ast


def registers(node: ast.AST, known: set[str]) -> bool:
    """Whether something gives a module a part under another name, as ``add_module`` and ``ModuleList(parts)`` do."""
    match node:
        case ast.Call(func=ast.Name(id="setattr")) | ast.Attribute(attr="_modules" | "__dict__"):
            return True
        case ast.Call(func=ast.Attribute(attr="add_module" | "register_module" | "setattr")):
            return True
        case ast.Call(func=ast.Attribute(value=holder, attr="append" | "insert"), args=[*_, part]):
            return ast.unparse(part) in known and isinstance(part, ast.Name) and ast.unparse(holder) not in known
        case ast.Call(func=func, args=arguments) if ast.unparse(func).endswith(
            ("Sequential", "ModuleList", "ModuleDict")
        ):
            return any(ast.unparse(a.value if isinstance(a, ast.Starred) else a) in known for a in arguments)
    return False
