"""Parts that are picked by their number in a Sequential, ``net[0]``, ``net.body[:2]``: how their parameters are called.

Flax keeps the children of a Sequential elsewhere than PyTorch, so PyTorch's names say which parameters are meant.
"""

from __future__ import annotations

import ast

from t2j_lsp.translate.inference.containers import SEQUENTIAL
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.sequentials import LENGTHENING
from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.rule.facts import Fact, Layer


def numbered_part(node: ast.expr, inference: Inference) -> tuple[ast.expr, str] | None:
    """The module that a part is of, and the condition on ``torch_name`` that its parameters fulfil.

    None unless some Sequential on the way to the part is asked for a child by its number.
    """
    ends, owner, numbered = [""], node, False
    while True:
        match owner:
            case ast.Attribute(value=outer, attr=name) if is_module(inference.fact(outer)):
                ends = [f"{name}.{end}" for end in ends]
            case ast.Subscript(value=outer, slice=asked) if (numbers := _numbers(outer, asked, inference)) is not None:
                if not numbers or len(numbers) > 1 and owner is not node:
                    return None
                ends, numbered = [f"{number}.{end}" for number in numbers for end in ends], True
            case ast.Subscript(value=outer, slice=ast.Constant(value=int() as number)) if number >= 0:
                fact = inference.fact(outer)
                if not isinstance(fact, Layer) or fact.name != "torch.nn.ModuleList":
                    return None
                ends = [f"{number}.{end}" for end in ends]
            case _:
                break
        owner = outer
    if not numbered:
        return None
    names = ", ".join(f'"{end}"' for end in ends)
    return owner, f"torch_name.startswith({names if len(ends) == 1 else f'({names})'})"


def is_numbered(fact: Fact) -> bool:
    """Whether it is a Sequential of children that were given one by one, and so are called 0, 1, 2 and so on."""
    if not isinstance(fact, Layer) or fact.name != SEQUENTIAL or fact.items is None or fact.node is None:
        return False
    given = fact.node.args
    return len(given) > 1 or any(isinstance(one, ast.Starred) for one in given)


def _numbers(owner: ast.expr, asked: ast.expr, inference: Inference) -> list[int] | None:
    """The numbers of the children that are picked of a Sequential; None for other owners, or if they aren't known."""
    fact = inference.fact(owner)
    if not isinstance(fact, Layer) or fact.items is None or not is_numbered(fact):
        return None
    numbers = range(len(fact.items))
    try:
        match asked:
            case ast.Slice():
                lower, upper, step = (None if end is None else int(ast.literal_eval(end)) for end in _ends(asked))
                picked = list(numbers[lower:upper:step])
            case _:
                picked = [numbers[int(ast.literal_eval(asked))]]
    except (ValueError, TypeError, IndexError):
        return None
    return None if _changes(fact, inference) else picked


def _ends(node: ast.Slice) -> tuple[ast.expr | None, ast.expr | None, ast.expr | None]:
    return node.lower, node.upper, node.step


def _changes(fact: Fact, inference: Inference) -> bool:
    """Whether a program gives a Sequential other children than those it is made of."""
    for node in inference.source.nodes:
        match node:
            case ast.Attribute(attr=name, value=owner) if name in LENGTHENING:
                pass
            case ast.Subscript(value=owner, ctx=ast.Del()):
                pass
            case _:
                continue
        if inference.fact(owner) == fact:
            return True
    return False
