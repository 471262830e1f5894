"""What t2j overrides and calls of pygls below its public surface is there in the installed version."""

from __future__ import annotations

import ast
import inspect

import pytest
from pygls.protocol import LanguageServerProtocol

from t2j_lsp.lsp import protocol
from t2j_lsp.lsp.protocol import Protocol


def private_names() -> set[str]:
    """Private methods of pygls that ``Protocol`` overrides (pygls has one of the same name) or calls."""
    tree = ast.parse(inspect.getsource(protocol))
    called = {
        node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name | ast.Call)
        and ast.unparse(node.func.value) in ("self", "super()")
    }
    own = {name for name in vars(Protocol) if callable(getattr(Protocol, name))}
    return {name for name in called | OVERRIDDEN.keys() if name.startswith("_") and name not in own - OVERRIDDEN.keys()}


OVERRIDDEN = {
    "_handle_request": ("msg_id", "method_name", "params"),
    "_handle_notification": ("method_name", "params"),
    "_execute_handler": ("msg_id", "handler", "callback", "args", "kwargs"),
    "_send_handler_result": ("future", "msg_id"),
    "_check_handler_result": ("future",),
    "_handle_response": ("msg_id", "result", "error"),
    "_send_data": ("data",),
}
"""What ``Protocol`` replaces of pygls 2, with the parameters that pygls calls it with."""


def test_every_private_name_is_there() -> None:
    missing = {name for name in private_names() if not name.startswith("__")} - set(dir(LanguageServerProtocol))
    assert not missing


@pytest.mark.parametrize("name", OVERRIDDEN)
def test_an_overridden_method_is_called_as_before(name: str) -> None:
    torch_side = tuple(inspect.signature(getattr(LanguageServerProtocol, name)).parameters)[1:]
    jax_side = tuple(inspect.signature(getattr(Protocol, name)).parameters)[1:]
    assert OVERRIDDEN[name] == torch_side == jax_side


def test_every_override_is_listed() -> None:
    own = {name for name in vars(Protocol) if name.startswith("_") and not name.startswith("__")}
    assert own & set(dir(LanguageServerProtocol)) == OVERRIDDEN.keys()
