"""Functions that are called where t2j can't write ``rngs=rngs``: they draw from the ``rngs`` of the module level.

Python calls ``__iter__`` and properties, a decorator whatever it was given, a library the methods of its own classes,
and ``env.step(a)`` is a call of a method of the file if ``env`` is an object of it, which isn't known of each.
"""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.definitions import Class, ClassInfo, Function, FunctionInfo, Instance
from t2j_lsp.translate.rule.facts import Qual

from .file import Inference
from .forward_pass import is_known

CALLED_BY_NAME = frozenset({"__init__", "__new__"})
"""Methods with two underscores that a call of the class calls, which is given ``rngs``."""
_SAYS_NOTHING = frozenset({"object", "abc.ABC", "typing.Generic", "typing.Protocol", "enum.Enum"})
"""Bases that call no method of a class."""


def called_unseen(info: FunctionInfo, file: Inference) -> bool:
    """Whether something may call a function of the module level, or a method, that nobody can have pass ``rngs``."""
    owner = info.owner
    if owner is not None and owner.is_module and not info.static:
        return False  # its instances keep their own
    if info.is_wrapped:
        return True
    if owner is None or owner.is_module or info.name in CALLED_BY_NAME:
        return False
    if info.name.startswith("__") and info.name.endswith("__"):
        return True
    if _has_foreign_base(owner) and not _is_called(info, file):
        return True
    return info.name in _called_on_unknown(file)


def _called_on_unknown(file: Inference) -> set[str]:
    """The methods that are called on something of which nothing is known, or that a class leaves to those below it."""
    calls = (n.func for n in file.source.nodes if isinstance(n, ast.Call))
    methods = [f for f in calls if isinstance(f, ast.Attribute) and not is_known(file.fact(f))]
    return {f.attr for f in methods if isinstance(owner := file.fact(f.value), Instance) or not is_known(owner)}


def _has_foreign_base(owner: ClassInfo) -> bool:
    return any(
        base.name not in _SAYS_NOTHING if isinstance(base, Qual) else not isinstance(base, Class)
        for cls in owner.ancestry()
        for base in cls.bases
        if not (isinstance(base, Qual) and base.name.startswith("torch."))
    )


def _is_called(info: FunctionInfo, file: Inference) -> bool:
    """Whether code of the file calls it, and is seen to."""
    assert info.owner is not None
    own = any(info.name in method.self_calls for cls in info.owner.ancestry() for method in cls.methods.values())
    return own or any(_calls(n, info, file) for n in file.source.nodes)


def _calls(node: ast.AST, info: FunctionInfo, file: Inference) -> bool:
    fact = file.fact(node.func) if isinstance(node, ast.Call) else None
    return isinstance(fact, Function) and fact.info is info
