"""Prints of modules that compiled code makes: ``jax.debug.print("{} sees", self.label, ordered=True)``."""

from __future__ import annotations

import ast

from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import StatementRewriter
from t2j_lsp.translate.inference.host_random import PRINTS
from t2j_lsp.translate.inference.traced_prints import is_known_print
from t2j_lsp.translate.rule.facts import Scalar
from t2j_lsp.translate.training.program.text import rendered


def plan_prints(context: Context) -> None:
    """Have the prints of modules written so that they are made whenever compiled code runs."""
    if not context.inference.has(PRINTS):
        return
    for node in context.source.nodes:
        match node:
            case ast.Expr(value=ast.Call(func=ast.Name(id="print")) as call) if is_known_print(context.inference, call):
                if node not in context.plan.statement_handlers:
                    _plan(context, node, call)


def _plan(context: Context, statement: ast.Expr, call: ast.Call) -> None:
    def handler(statements: StatementRewriter) -> None:
        words, given = [], []
        for argument in call.args:
            if isinstance(argument, ast.Constant):
                words.append(str(argument.value).replace("{", "{{").replace("}", "}}"))
                continue
            before, text = rendered(context, statements, argument, statement)
            assert not before
            fact = context.fact(argument)
            is_text = isinstance(argument, ast.JoinedStr) or isinstance(fact, Scalar) and fact.kind == "str"
            words.append("{}")
            given.append(text if is_text else f"str({text})")
        shown = ", ".join([_quoted(" ".join(words)), *given, "ordered=True"])
        context.edits.replace(statement, f"{statements.renderer.need('jax')}.debug.print({shown})")
        context.report.count_converted()

    context.plan.on_statement(statement, handler)


def _quoted(text: str) -> str:
    """A text as Python has it, in double quotes where it has none itself."""
    written = repr(text)
    return f'"{written[1:-1]}"' if written.startswith("'") and '"' not in text else written
