"""The norm of all gradients, which a loop adds up to print it: PyTorch's own function gives it, and clips nothing.

``clip_grad_norm_(model.parameters(), float("inf"))`` leaves the gradients as they are. Where a file that has gaps adds
the squares of the parameters' norms, it is read as if it called that.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp.contract import Finding
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.source.rearranged import Edits, Fragment, RearrangedText
from t2j_lsp.translate.training.program.gradient_forms import asks_for_gradient

_ROOTS = ("{0} ** 0.5", "{0} ** (1.0 / 2)", "{0} ** (1 / 2)", "{0} ** (1.0 / 2.0)", "math.sqrt({0})", "np.sqrt({0})")


def with_norms_of_gradients_called(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which a function gives such norms; None if there are none, or everything converts."""
    source = inference.source
    imports = [a for n in source.nodes if isinstance(n, ast.Import) for a in n.names]
    bound = any(a.name == "torch" and a.asname is None for a in imports)
    if not bound or "grad" not in source.words or not any(gap.code == "training-loop" for gap in gaps):
        return None
    edits: Edits = []
    for node in source.nodes:
        block = source.block_of(node) if isinstance(node, ast.For) else None
        if not isinstance(node, ast.For) or block is None or not 0 < block.index(node) < len(block) - 1:
            continue
        at = block.index(node)
        first, last = block[at - 1], block[at + 1]
        name = _adds_squares(inference, node)
        if name is None or not _is_zero(first, name) or not _is_root(last, name) or not source.starts_line(first):
            continue
        start, end = source.span(first)[0], source.span(last)[1]
        if "#" in source.text[start:end] or last.end_lineno is None:
            continue
        call = f'torch.nn.utils.clip_grad_norm_({source.segment(node.iter)}, float("inf"))'
        text = f"{name} = {call}{source.newline}{source.indent(first.lineno)}{name} = {name}.item()"
        edits.append((start, end, [Fragment(text, start, end)]))
    return RearrangedText.of(source.text, edits)


def _is_zero(node: ast.stmt, name: str) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id=target)], value=ast.Constant(value=0)):
            return target == name
    return False


def _is_root(node: ast.stmt, name: str) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id=target)], value=value):
            return target == name and ast.unparse(value) in [root.format(name) for root in _ROOTS]
    return False


def _adds_squares(inference: Inference, node: ast.For) -> str | None:
    """The variable to which a loop over a module's parameters adds the squares of their gradients' norms."""
    match node:
        case ast.For(
            target=ast.Name(id=parameter),
            iter=ast.Call(func=ast.Attribute(attr="parameters", value=module), args=[], keywords=[]),
            body=body,
            orelse=[],
        ) if is_module(inference.fact(module)):
            pass
        case _:
            return None
    if len(body) == 1 and isinstance(body[0], ast.If) and not body[0].orelse and asks_for_gradient(body[0].test):
        body = body[0].body
    norm: ast.expr | None = None
    match body:
        case [ast.Assign(targets=[ast.Name(id=held)], value=norm), ast.AugAssign(op=ast.Add()) as added]:
            wanted = [f"{held}.item() ** 2", f"{held} ** 2"]
        case [ast.AugAssign(op=ast.Add(), value=ast.BinOp(op=ast.Pow(), left=left)) as added]:
            match left:
                case ast.Call(func=ast.Attribute(attr="item", value=norm), args=[]):
                    pass
                case _:
                    return None
            wanted = [ast.unparse(added.value)]
            if not wanted[0].endswith("** 2"):
                return None
        case _:
            return None
    if not isinstance(added.target, ast.Name) or ast.unparse(added.value) not in wanted[:1]:
        return None
    return added.target.id if norm is not None and _is_norm(norm, parameter) else None


def _is_norm(node: ast.expr, parameter: str) -> bool:
    """``p.grad.detach().data.norm(2)``."""
    match node:
        case ast.Call(func=ast.Attribute(attr="norm", value=held), args=[] | [ast.Constant(value=2)], keywords=[]):
            pass
        case _:
            return False
    while True:
        match held:
            case (
                ast.Attribute(attr="data", value=inner)
                | ast.Call(func=ast.Attribute(attr="detach", value=inner), args=[])
            ):
                held = inner
            case _:
                return ast.unparse(held) == f"{parameter}.grad"
