"""Helper classes that each converted file has a copy of: a class of another file is none of this one's.

``isinstance(m, nn.LSTM)`` and ``activation == nn.PReLU`` ask for this file's copy. What Flax has a class for is the
same everywhere, and so is what one module beside the files has.
"""

from __future__ import annotations

import ast

from t2j_lsp import symbols
from t2j_lsp.translate.inference.type_comparisons import listed
from t2j_lsp.translate.layout.first import shared_base
from t2j_lsp.translate.rule.definitions import Class, Instance
from t2j_lsp.translate.rule.facts import Object, Qual
from t2j_lsp.translate.rule.join import class_names
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import CLASSES, object_of
from t2j_lsp.translate.source.folding.uses import runs
from t2j_lsp.translate.source.helpers import helper_names

from .context import Context

_COMPARED = (
    "each converted file has a {} of its own, so that a class that another file hands over equals none of this one's: "
    "convert with --helpers module, or ask issubclass of Flax's class"
)
_ASKED = (
    "each converted file has a {} of its own, of which what another file makes is no instance: convert with --helpers "
    "module"
)

_FUNCTION = "what another file makes of {} may be a function of JAX, which is no instance: ask where the layer is made"


def report_compared_class(ctx: Context, node: ast.Compare) -> None:
    """``activation == nn.ReLU`` of what a function is given."""
    function, sides = ctx.scope.function, (node.left, *node.comparators)
    if ctx.options.helpers != "inline" or runs(ctx.source.tree) or function is None or len(sides) != 2:
        return
    named = [f for s in sides for c in listed(s) if isinstance(f := ctx.fact(c), Qual) and f.name in LAYERS]
    given = symbols.parameter_names(function.node)
    if named and any(isinstance(side, ast.Name) and side.id in given for side in sides):
        ctx.report.gap(node, named[0].name, "unsure", _COMPARED.format(_short(named[0].name)))


def report_asked_class(ctx: Context, node: ast.Call) -> None:
    """``isinstance(m, nn.LSTM)`` where modules of other files are among those that are asked."""
    match node:
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name() as one, asked]) if (
            (name := _functions_class(ctx, asked)) is not None and _is_walked(ctx, one) and _is_of_other_files(ctx)
        ):
            ctx.report.gap(node, name, "unsure", _FUNCTION.format(f"nn.{_short(name)}"))
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, asked]) if ctx.options.helpers == "inline":
            names = sorted(n for c in listed(asked) for n in class_names(ctx.fact(c)) if _is_copied(ctx, n))
            if names and _is_of_other_files(ctx):
                ctx.report.gap(node, names[0], "unsure", _ASKED.format(_short(names[0])))
            elif (name := _copied_object(ctx, asked)) is not None and _is_given(ctx, node.args[0]):
                ctx.report.gap(node, name, "unsure", _ASKED.format(_short(name)))


def _functions_class(ctx: Context, asked: ast.expr) -> str | None:
    """A layer that a file which doesn't ask for its class may have as a function."""
    names = {n for c in listed(asked) for n in class_names(ctx.fact(c))}
    return min((n for n in names if n in LAYERS and LAYERS[n].function), default=None)


def _is_walked(ctx: Context, asked: ast.Name) -> bool:
    """Whether a name is bound by a walk over modules, or given to a function of a file without modules."""
    if _is_given(ctx, asked):
        return True
    walks = (n for n in ctx.source.nodes if isinstance(n, ast.For | ast.comprehension))
    return any(isinstance(n, ast.Name) and n.id == asked.id for walk in walks for n in ast.walk(walk.target))


def _is_copied(ctx: Context, name: str) -> bool:
    """Whether what stands for a layer is a helper, and no class of Flax's nor a function."""
    rule = LAYERS.get(name)
    if rule is None or rule.function or rule.base.startswith("nnx."):
        return False
    return shared_base(name, ctx.inference) is None


def _copied_object(ctx: Context, asked: ast.expr) -> str | None:
    """The class of a distribution that a helper stands for, and of which the file makes none."""
    names = {n for c in listed(asked) for n in class_names(ctx.fact(c))}
    copied = {n for n in names if n in CLASSES and CLASSES[n].annotation in helper_names() and object_of([n])}
    own = {fact.name for n in ctx.source.nodes if isinstance(n, ast.Call) and isinstance(fact := ctx.fact(n), Object)}
    return min(copied - own, default=None)


def _is_given(ctx: Context, asked: ast.expr) -> bool:
    """Whether callers hand over what is asked, and may stand in other files."""
    function = ctx.scope.function
    if ctx.options.resolve is None or runs(ctx.source.tree) or function is None:
        return False
    return isinstance(asked, ast.Name) and asked.id in symbols.parameter_names(function.node)


def _is_of_other_files(ctx: Context) -> bool:
    """Whether the file has parts from other files, or no modules of its own to ask and is no program."""
    calls = (n for n in ctx.source.nodes if isinstance(n, ast.Call))
    made = (fact.cls.info for call in calls if isinstance(fact := ctx.fact(call), Instance))
    bases = (b.info for info in ctx.inference.classes.values() for b in info.bases if isinstance(b, Class))
    if any(info.external and info.is_module for info in (*made, *bases)):
        return True
    own = runs(ctx.source.tree) or any(info.is_module for info in ctx.inference.classes.values())
    return ctx.options.resolve is not None and not own


def _short(name: str) -> str:
    return name.rpartition(".")[2]
