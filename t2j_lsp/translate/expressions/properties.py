"""Parameters that a property of a module of the project gives: ``self.fc.weight`` of ``return self.linear.weight``."""

from __future__ import annotations

import ast

from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import FunctionInfo, Instance
from t2j_lsp.translate.rule.facts import UNKNOWN, Fact


def property_of(owner: Fact, name: str) -> FunctionInfo | None:
    """The property of a class of the project that an attribute of an instance reads."""
    method = owner.cls.info.method(name) if isinstance(owner, Instance) else None
    decorators = method.node.decorator_list if method is not None else []
    return method if any(isinstance(d, ast.Name) and d.id == "property" for d in decorators) else None


def given_by(info: FunctionInfo, inference: Inference) -> tuple[str, Fact, str] | None:
    """The attribute of ``self`` that a property gives, and nothing else: where it is, what has it, and its name."""
    body = info.node.body[ast.get_docstring(info.node, clean=False) is not None :]
    match info.node.args.args, body:
        case [ast.arg(arg=own)], [ast.Return(value=ast.Attribute(value=held, attr=name))]:
            home = info.home if isinstance(info.home, Inference) else inference
            path = ast.unparse(held)
            if path == own or path.startswith(f"{own}.") and path.replace(".", "").isidentifier():
                return path.removeprefix(own), home.facts.get(held, UNKNOWN), name
    return None
