"""The source text of an expression, or of a statement's head, with what was rewritten in it put in place."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence

from t2j_lsp import symbols
from t2j_lsp.symbols import nearest
from t2j_lsp.translate.rule.definitions import Function
from t2j_lsp.translate.rule.factory import KEYS, FactoryKeywords, FactoryName
from t2j_lsp.translate.rule.facts import UNKNOWN, Qual, Tensor
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.pieces import (
    ANY,
    ARGUMENT,
    ATOM,
    Piece,
    bare_newline,
    bracket,
    breaks_line,
    enclosed_tuple,
    precedence,
    slot,
)

from .context import Context, Edits
from .handlers import ExpressionRenderer
from .rngs import rngs_expression
from .scope import Scope
from .variables import Variables, is_metadata
from .walk_order import asks_for_none

_TAKES_ARRAYS = names_with(Trait.TAKES_ARRAYS)

_WALKS = ("enumerate", "reversed", "zip")
"""Functions that hand on, one by one, what they are given."""


class Copier:
    """Copies expressions with their rewritten children."""

    def __init__(self, context: Context, renderer: ExpressionRenderer, variables: Callable[[], Variables]) -> None:
        self.ctx = context
        self.renderer = renderer
        self.variables = variables

    def generic(self, node: ast.expr) -> Piece:
        """The source text of ``node`` with its rewritten children in place."""
        if isinstance(node, ast.Call) and any(isinstance(k, FactoryKeywords) for k in node.keywords):
            return self.rebuilt(node, None, [], None)
        if isinstance(node, ast.Dict) and any(isinstance(value, FactoryName) for value in node.values):
            return Piece(self._without_factory(node))
        text = self.splice(node)
        if isinstance(node, ast.Tuple) and enclosed_tuple(text):
            return Piece(text)
        return Piece(text, precedence(node))

    def splice(self, node: ast.AST, start: int | None = None, end: int | None = None) -> str:
        """Text ``start:end`` (the node's own span by default) with the child expressions rendered."""
        first, last = self.ctx.source.span(node) if start is None or end is None else (start, end)
        out: list[str] = []
        position = first
        for parent, field, child in sorted(children(node), key=lambda c: (c[2].lineno, c[2].col_offset)):
            if child.lineno == 0:
                continue  # a callee that stands for one outside of the text
            begin, stop = self.ctx.source.span(child)
            if begin < position or stop > last:
                continue
            piece = self.render_in(parent, field, child)
            text = piece.text
            if text != self.ctx.source.text[begin:stop] and self._needs_brackets(
                parent, field, child, piece, begin, stop
            ):
                text = bracket(piece, slot(parent, field, child))
            out.append(self.ctx.source.text[position:begin])
            out.append(text)
            position = stop
        out.append(self.ctx.source.text[position:last])
        return "".join(out)

    def _without_factory(self, node: ast.Dict) -> str:
        """A dict without the factory keywords that it is made of: ``{**dd, **options}`` is ``{**options}``."""
        source, (position, last) = self.ctx.source, self.ctx.source.span(node)
        ends = [source.span(value)[1] for value in node.values]
        starts = [
            source.text.rindex("**", 0, source.span(value)[0]) if key is None else source.span(key)[0]
            for key, value in zip(node.keys, node.values, strict=True)
        ]
        out: list[str] = []
        for place, value in enumerate(node.values):
            if isinstance(value, FactoryName):
                ends_list = place + 1 == len(starts)
                begin = ends[place - 1] if ends_list and place else starts[place]
                out.append(self.splice(node, position, max(begin, position)))
                position = ends[place] if ends_list else starts[place + 1]
        return "".join([*out, self.splice(node, position, last)])

    def render_in(self, parent: ast.AST, field: str, child: ast.expr) -> Piece:
        """Render a child, knowing where it stands: a variable read there may need its value taken."""
        piece = self.renderer.render(child)
        fact = self.ctx.fact(child)
        if isinstance(child, ast.Attribute) and fact == UNKNOWN and self._is_mixed_in(child, parent):
            return Piece(f"{self.renderer.need('jnp')}.asarray({piece.text})")
        if not isinstance(fact, Tensor) or not fact.variable:
            return piece
        if isinstance(child, ast.Name | ast.Attribute) and self._takes_arrays(child):
            return piece if piece.text.endswith(("]", ".T", ")")) else Piece(f"{bracket(piece, ATOM)}[...]")
        if not isinstance(child, ast.Attribute):
            ordered = isinstance(child, ast.Name) and isinstance(parent, ast.Compare)
            return Piece(f"{piece.text}[...]") if ordered and self._value_wanted(parent, field, child) else piece
        if isinstance(getattr(child, "ctx", None), ast.Load) and self._value_wanted(parent, field, child):
            return self.variables().value(child, piece, needed=isinstance(parent, ast.Compare))
        return piece

    def _takes_arrays(self, argument: ast.expr) -> bool:
        """Whether it is handed to einops or to a writer of logs, which take arrays and no Variables."""
        call = self.ctx.source.parents.get(argument)
        if isinstance(call, ast.keyword):
            call = self.ctx.source.parents.get(call)
        if not isinstance(call, ast.Call):
            return False
        if isinstance(call.func, ast.Attribute) and call.func.attr in _TAKES_ARRAYS:
            return True
        fact = self.ctx.fact(call.func)
        return isinstance(fact, Qual) and fact.name.startswith("einops.")

    def _is_mixed_in(self, node: ast.Attribute, call: ast.AST) -> bool:
        """Whether einops gets an attribute of ``self`` that the class assigns nowhere: it may be a Variable."""
        if not isinstance(call, ast.Call) or node not in call.args[:1] or ast.unparse(node.value) != "self":
            return False
        if not isinstance(fact := self.ctx.fact(call.func), Qual) or not fact.name.startswith("einops."):
            return False
        around = nearest(ast.ClassDef, node, self.ctx.source.parents)
        return around is not None and not any(
            isinstance(one, ast.Attribute) and one.attr == node.attr and isinstance(one.ctx, ast.Store)
            for one in symbols.walk(around)
        )

    def _value_wanted(self, parent: ast.AST, field: str, child: ast.expr) -> bool:
        """Whether a Variable standing here must be read with ``[...]``: operators and subscripts take it as it is."""
        if isinstance(parent, ast.Compare):  # a Variable has no order, and its != is no array
            return not all(isinstance(op, ast.Eq | ast.Is | ast.IsNot) for op in parent.ops)
        if isinstance(parent, ast.BoolOp | ast.If | ast.IfExp):  # its truth is that of its length
            return field in ("test", "values")
        if isinstance(parent, ast.BinOp | ast.UnaryOp):
            return isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
        if isinstance(parent, ast.Subscript) and field == "value":
            return False
        if isinstance(parent, ast.Call) and isinstance(called := self.ctx.fact(parent.func), Function):
            return not asks_for_none(called.info.node)
        return not self._of_variable(parent) and not self._is_written(parent)

    def _is_written(self, parent: ast.AST) -> bool:
        """Whether it gets a name that is written into: ``for p, s in zip((self.a, self.b), stds): normal_(p)``."""
        at: ast.AST | None = parent
        while isinstance(at, ast.Tuple | ast.List) or isinstance(at, ast.Call) and ast.unparse(at.func) in _WALKS:
            around = self.ctx.source.parents.get(at)
            if isinstance(around, ast.For) and around.iter is at:
                inside = [node for statement in around.body for node in symbols.walk(statement)]
                return any(_writes(node, name) for node in inside for name in _names([around.target]))
            at = around
        if not isinstance(at, ast.Assign):
            return False
        block = self.ctx.source.block_of(at) or []
        inside = [node for statement in block[block.index(at) + 1 :] for node in symbols.walk(statement)]
        return any(_hands_to_writer(node, name) for node in inside for name in _names(at.targets))

    def _of_variable(self, parent: ast.AST) -> bool:
        """Whether it reads what a Variable has beside its array: its shape, and what a program keeps with it."""
        match parent:
            case ast.Attribute(attr=name):
                called = self.ctx.source.parents.get(parent)
                own = name.startswith("_") and is_metadata(name)
                own = own and not (isinstance(called, ast.Call) and called.func is parent)
                return own or name in ("shape", "dtype", "ndim", "size")
            case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[_, ast.Constant(value=str() as name), *_]):
                return is_metadata(name)
        return False

    def _needs_brackets(
        self, parent: ast.AST, field: str, child: ast.expr, piece: Piece, start: int, stop: int
    ) -> bool:
        needed = slot(parent, field, child)
        if piece.precedence >= needed and not breaks_line(piece.text):
            return False
        if needed <= ARGUMENT:
            return piece.precedence < needed
        return not self.ctx.source.enclosed(start, stop)

    def copy_arguments(self, node: ast.Call) -> Piece:
        """The call as it stands, with only its arguments rendered: for calls that are left alone."""
        start, end = self.ctx.source.span(node)
        _, func_end = self.ctx.source.span(node.func)
        if isinstance(node.func, ast.Attribute) and not isinstance(self.ctx.fact(node.func), Qual):
            head = bracket(self.renderer.render(node.func.value), ATOM) + "." + node.func.attr
        else:
            head = self.ctx.source.text[start:func_end]
        return Piece(head + self.splice(arguments_only(node), func_end, end))

    def append_rngs(self, node: ast.Call) -> Piece:
        """The call with its arguments rendered and ``rngs=...`` added at the end."""
        if any(k.arg == "rngs" for k in node.keywords):
            return self.generic(node)
        return self.rebuilt(node, None, [], rngs_expression(self.ctx))

    def of_some_class(self, node: ast.Call) -> Piece:
        """The same for a class that is not known; ``device=device`` goes where no class of the file must be given it.

        It may be a layer's, which has no such parameter in Flax; in classes of the file it is None by default.
        """
        given = [k for k in node.keywords if k.arg in KEYS and isinstance(k.value, ast.Name) and k.value.id == k.arg]
        needed = {name for info in self.ctx.inference.classes.values() for name in info.needed}
        dropped = [k for k in given if k.arg not in needed]
        if not dropped or any(k.arg == "rngs" for k in node.keywords):
            return self.append_rngs(node)
        return self.rebuilt(node, None, dropped, rngs_expression(self.ctx))

    def rebuilt(
        self,
        node: ast.Call,
        head: str | None,
        dropped: Sequence[ast.expr | ast.keyword],
        rngs: str | None,
        unnamed: Sequence[ast.keyword] = (),
    ) -> Piece:
        """The call in its own layout, with another callee, without some keywords or their names, ``rngs`` added."""
        source = self.ctx.source
        if any(k.arg == "rngs" for k in node.keywords):
            rngs = None  # an earlier conversion added them
        _, end = source.span(node)
        _, func_end = source.span(node.func)
        if head is None:
            head = bracket(self.renderer.render(node.func), ATOM)
        arguments: list[ast.expr | ast.keyword] = sorted(
            [*node.args, *(k for k in node.keywords)], key=lambda a: source.span(a)[0]
        )
        dropped = [*dropped, *(k for k in node.keywords if isinstance(k, FactoryKeywords))]
        kept = [a for a in arguments if a not in dropped]
        opening = source.text.index("(", func_end, end)
        # Brackets around the callee are those of its new text.
        between = source.text[func_end:opening].rpartition(")")[2]
        if not kept:
            inner = source.text[opening + 1 : end - 1] if not arguments else ""
            inner = inner if "#" in inner else inner.rstrip()
            return Piece(f"{head}{between}({inner}{f'rngs={rngs}' if rngs else ''})")
        out = [head, f"{between}("]
        position = opening + 1
        for index, argument in enumerate(arguments):
            begin, stop = source.span(argument)
            if argument in dropped:
                if argument in arguments[:1] or all(a in dropped for a in arguments[:index]):
                    following = source.text.find(",", stop, end)
                    position = following + 1 if following >= 0 else stop
                    while position < end and source.text[position] in " ":
                        position += 1
                else:
                    position = stop
                    last_comma = "".join(out).rstrip()
                    if last_comma.endswith(","):
                        out = [last_comma[:-1]]
                continue
            gap = source.text[position:begin]
            if "".join(out[-1:]).rstrip().endswith(("(", ",")) and gap.lstrip().startswith(","):
                gap = gap.lstrip()[1:]
            out.append(gap)
            out.append(
                self._argument_text(
                    node, argument.value if isinstance(argument, ast.keyword) and argument in unnamed else argument
                )
            )
            position = stop
        bare = isinstance(kept[-1], ast.GeneratorExp) and source.span(kept[-1])[1] == end
        tail = source.text[position:end]
        if bare and rngs:  # the generator's own text has the call's brackets
            tail = ")"
        elif bare:
            out[1] = between
        if rngs:
            out.append(self._rngs_text(kept[-1], rngs))
        return Piece("".join(out) + tail)

    def _rngs_text(self, last: ast.expr | ast.keyword, rngs: str) -> str:
        """``, rngs=rngs``, on a line of its own where the arguments stand one to a line."""
        source = self.ctx.source
        begin, _ = source.span(last)
        line = source.line_of(begin)
        if source.text[source.starts[line - 1] : begin].strip():
            return f", rngs={rngs}"
        return f",{source.newline}{source.indent(line)}rngs={rngs}"

    def _argument_text(self, node: ast.Call, argument: ast.expr | ast.keyword) -> str:
        source = self.ctx.source
        if isinstance(argument, ast.keyword):
            begin, stop = source.span(argument)
            value_begin, value_stop = source.span(argument.value)
            prefix, suffix = source.text[begin:value_begin], source.text[value_stop:stop]
            return prefix + bracket(self.renderer.argument(argument.value), 1) + suffix
        if isinstance(argument, ast.Starred):
            return self.generic(argument).text
        return bracket(self.renderer.argument(argument), 1)


class Headers:
    """Rewrites the expressions of a statement."""

    def __init__(self, edits: Edits, scope: Scope, copier: Copier) -> None:
        self.edits = edits
        self.scope = scope
        self.copier = copier

    def expressions(self, node: ast.AST) -> None:
        """Render every expression that belongs to the statement itself."""
        for parent, field, child in children(node):
            self.expression(parent, field, child)

    def expression(self, parent: ast.AST, field: str, child: ast.expr) -> None:
        """Rewrite one expression of a statement."""
        piece = self.copier.render_in(parent, field, child)
        if piece.text != self.edits.source.segment(child):
            text = piece.text
            start, end = self.edits.source.span(child)
            whole = isinstance(parent, ast.Expr) and piece.precedence == ANY
            stands = not breaks_line(text) or "\\" in text and not bare_newline(text)
            if not stands and not whole and self.edits.source.brackets_around(start, end) is None:
                text = bracket(piece, ATOM) if piece.precedence < ATOM else text
            # A call that became an assignment takes the place of the whole statement, with any brackets around it.
            self.edits.replace(parent if whole else child, text)

    def annotation(self, node: ast.expr | None) -> None:
        """Rewrite an annotation."""
        if node is None:
            return
        saved, self.scope.annotation = self.scope.annotation, True
        try:
            self.expression(ast.Module([], []), "annotation", node)
        finally:
            self.scope.annotation = saved


def children(node: ast.AST) -> Iterator[tuple[ast.AST, str, ast.expr]]:
    """The nearest expressions below ``node``, each with the parent and field it stands in."""
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.expr):
                yield node, field, child
            elif isinstance(child, ast.keyword | ast.comprehension | ast.arguments | ast.arg | ast.withitem):
                yield from children(child)


def arguments_only(node: ast.Call) -> ast.Call:
    """The call without its callee, for rendering what stands between its brackets."""
    callee = ast.Constant(value=None, lineno=0, col_offset=0)
    return ast.copy_location(ast.Call(func=callee, args=node.args, keywords=node.keywords), node)


def _names(targets: Iterable[ast.expr]) -> set[str]:
    return {n.id for target in targets for n in symbols.walk(target) if isinstance(n, ast.Name)}


def _hands_to_writer(node: ast.AST, name: str) -> bool:
    """Whether it is a call of a function that fills what has this name: ``nn.init.zeros_(w)``."""
    match node:
        case ast.Call(func=ast.Attribute(attr=method), args=[ast.Name(id=first), *_]):
            return first == name and method.endswith("_")
    return False


def _writes(node: ast.AST, name: str) -> bool:
    """Whether it writes into a tensor of this name: by a method or function whose name says so, or by ``.data``."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=method)) if owner == name:
            return method.endswith("_")
        case ast.Attribute(value=ast.Name(id=owner), attr="data"):
            return owner == name
        case ast.AugAssign(target=ast.Name(id=target)):
            return target == name
        case ast.Subscript(value=ast.Name(id=owner), ctx=ast.Store()):
            return owner == name
    return _hands_to_writer(node, name)
