"""Parameters that are made of other parameters: in PyTorch the two share their memory, in JAX they would be two arrays.

``self.v = nn.Parameter(self.w)``, and ``self.sampler = Sampler(self.w)`` where that constructor makes one of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.translate.inference.call_sites import bound_arguments
from t2j_lsp.translate.rule.binding import argument
from t2j_lsp.translate.rule.definitions import Class
from t2j_lsp.translate.rule.facts import Fact, Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with

from .context import Context

_SHARED = "PyTorch's new parameter shares the memory of {}: what updates one updates both, and JAX's would be two"


def report_shared_parameters(ctx: Context, node: ast.Call, called: Fact) -> None:
    """Report a call in a module that makes a parameter of one that the module keeps."""
    function = ctx.scope.function
    if function is None or function.owner is None or not function.owner.is_module:
        return
    statement = ctx.source.parents.get(node)
    targets = [ast.unparse(t) for t in statement.targets] if isinstance(statement, ast.Assign) else []
    instance = next((a.arg for a in symbols.positional_parameters(function.node)), "")
    for value in _made_of(node, called):
        fact, text = ctx.fact(value), ast.unparse(value)
        kept = isinstance(value, ast.Attribute) and ast.unparse(value.value) == instance
        if kept and isinstance(fact, Tensor) and fact.variable and text not in targets:
            ctx.report.gap(node, ast.unparse(node.func), "refused", _SHARED.format(text))


def _made_of(node: ast.Call, called: Fact) -> Iterator[ast.expr]:
    """The arguments of a call that parameters are made of."""
    makers = names_with(Trait.MAKES_PARAMETER)
    if isinstance(called, Qual) and called.name in makers and (data := argument(node, 0, "data")) is not None:
        yield data
    init = called.info.method("__init__") if isinstance(called, Class) and called.info.is_module else None
    if init is None:
        return
    names = {name.rpartition(".")[2] for name in makers}
    made = {
        call.args[0].id
        for call in symbols.walk(init.node)
        if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Name)
        if ast.unparse(call.func).rpartition(".")[2] in names
    }
    yield from (value for parameter, value in bound_arguments(node, init) if parameter.arg in made)
