"""Code of a data pipeline that stays as it is, and its tensors where JAX code reads them."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from t2j_lsp import symbols
from t2j_lsp.translate.expressions.context import Context, Report
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer, StatementRewriter
from t2j_lsp.translate.inference.forward_pass import is_known
from t2j_lsp.translate.rule.definitions import ClassInfo
from t2j_lsp.translate.rule.facts import Fact, ListOf, Qual, Tensor, Tuple, is_number
from t2j_lsp.translate.rule.join import element
from t2j_lsp.translate.rule.names import is_jax
from t2j_lsp.translate.rule.pieces import CONDITIONAL, Piece


def as_arrays(
    report: Report,
    renderer: ExpressionRenderer,
    text: str,
    one: bool,
    ordered: bool = False,
    mixed: bool = False,
    library: str = "jnp",
) -> Piece:
    """A PyTorch tensor, or a list, tuple or dict of them, as arrays of JAX, or of NumPy where that is the ``library``.

    ``ordered`` keeps the order of a dict.
    ``mixed``: where it isn't known of all of it that it is tensors, what else there is stays as it is.
    """
    report.count_converted()
    text = f"{renderer.need('OrderedDict')}({text})" if ordered else text
    asarray = f"{renderer.need(library)}.asarray"
    if mixed and one:
        return Piece(f'{asarray}({text}) if hasattr({text}, "shape") else {text}', CONDITIONAL)
    if mixed:
        asarray = f'lambda t: {asarray}(t) if hasattr(t, "shape") else t'
    return Piece(f"{asarray}({text})" if one else f"{renderer.need('jax')}.tree.map({asarray}, {text})")


def leave(statements: StatementRewriter) -> None:
    """The statement stays as it is."""


def holds_tensors(fact: Fact) -> bool:
    """Whether a value is a tensor, or a list or tuple of them, of such lists, or of tensors and numbers."""
    if isinstance(fact, Tuple) and fact.items:
        numbers = [is_number(item) for item in fact.items]
        held = [holds_tensors(item) for item in fact.items]
        return any(held) and all(a or b for a, b in zip(numbers, held, strict=True))
    return isinstance(fact, Tensor) or isinstance(fact, ListOf | Tuple) and holds_tensors(element(fact))


def knows_parts(fact: Fact) -> bool:
    """Whether it is known of a value what it is, and what is in it if it is a container."""
    if isinstance(fact, ListOf):
        return knows_parts(fact.item)
    return all(map(knows_parts, fact.items)) if isinstance(fact, Tuple) else is_known(fact)


def written_names(statement: ast.stmt) -> set[str]:
    """The names that a statement gives values, or parts of one."""
    targets: list[ast.expr] = []
    match statement:
        case ast.Assign():
            targets = statement.targets
        case ast.AugAssign() | ast.AnnAssign():
            targets = [statement.target]
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=receiver), attr=method))):
            return {receiver} if method in ("append", "extend", "update") or method.endswith("_") else set()
    return {node.id for target in targets for node in symbols.walk(target) if isinstance(node, ast.Name)}


def assigned_to(value: ast.expr, parents: Mapping[ast.AST, ast.AST]) -> ast.Name | None:
    """The variable that an assignment gives a value, which may be one of several: ``x, y = x.cuda(), y.cuda()``."""
    match around := parents.get(value):
        case ast.Assign(targets=[ast.Name() as given]):
            return given
        case ast.Tuple(elts=values):
            match parents.get(around):
                case ast.Assign(targets=[ast.Tuple(elts=targets)]) if len(targets) == len(values):
                    one = targets[values.index(value)]
                    return one if isinstance(one, ast.Name) else None
    return None


def makes_arrays(ctx: Context, node: ast.AST | None) -> bool:
    """Whether it is a call of JAX, in a file that was converted before, or a dict in order for one."""
    fact = ctx.fact(node.func) if isinstance(node, ast.Call) else None
    if node is None or not isinstance(fact, Qual):
        return False
    if fact.name == "collections.OrderedDict":
        return makes_arrays(ctx, ctx.source.parents.get(node))
    return is_jax(fact.name)


def makes_numpy(context: Context, call: ast.Call) -> bool:
    """``x = np.asarray(x)``, as it is written of a batch that compiled functions alone read."""
    named = assigned_to(call, context.source.parents)
    given = [ast.unparse(one) for one in call.args]
    return named is not None and given == [named.id] and context.fact(call.func) == Qual("numpy.asarray")


def last_given(info: ClassInfo, name: str) -> ast.expr | None:
    """What the constructor of a class gives an attribute at last; None if anything else gives it values, too."""
    last: ast.expr | None = None
    for method in info.methods.values():
        for statement in symbols.walk(method.node):
            match statement:
                case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=given)]) if given == name:
                    if statement not in method.node.body or method.name != "__init__":
                        return None
                    if last is None or statement.lineno > last.lineno:
                        last = statement.value
    return last


def handed_on(statement: ast.stmt) -> ast.expr | None:
    """What a statement gives another name, or a list: ``train = samples[:6]``, ``rows.append(row)``."""
    match statement:
        case ast.Assign(value=value):
            return value
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="append" | "extend" | "update"), args=[value])):
            return value
    return None
