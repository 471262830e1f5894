"""Methods by a name that an assert says: ``assert mode in {"mean", "sum"}``, then ``getattr(x, mode)(dim=1)``.

JAX's arrays have other methods and keywords, so that a file that has gaps is read as if each were called where it is
meant: ``x.mean(dim=1) if mode == "mean" else x.sum(dim=1)``. Names with which the function has returned before go.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from t2j_lsp import symbols
from t2j_lsp.contract import Finding
from t2j_lsp.symbols import FunctionNode
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.record import REGISTRY
from t2j_lsp.translate.source.positions import spans_lines
from t2j_lsp.translate.source.rearranged import RearrangedText

from .left_out import Stays
from .spread_settings import SpreadSettings

_MOST = 4


def with_asserted_methods_called(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which each method is called by its name; None if there are none, or all convert."""
    written = _AssertedMethods(inference)
    for node in inference.source.nodes if any(gap.name == "getattr" for gap in gaps) else ():
        match node:
            case ast.Call(func=ast.Name(id="getattr"), args=[ast.Name() as owner, ast.Name() as name], keywords=[]):
                try:
                    written.named(node, owner, name)
                except Stays:
                    continue
    return RearrangedText.of(inference.source.text, written.made_edits())


class _AssertedMethods(SpreadSettings):
    def named(self, asked: ast.Call, owner: ast.Name, name: ast.Name) -> None:
        """A method that is looked up, and called at once or in the next statement. Raises Stays."""
        home = self.source.home(name)
        if not isinstance(home, FunctionNode) or self._is_bound(home, name.id):
            raise Stays
        call, kept = self._call(home, asked)
        methods = [m for m in self._asserted(home, name.id, asked) if m not in {*self._left(asked, name.id)}]
        if not methods or len(methods) > _MOST or any(REGISTRY.get(f"torch.Tensor.{m}") is None for m in methods):
            raise Stays
        plain = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
        if spans_lines(call) or any(isinstance(n, plain) for n in symbols.walk(call)):
            raise Stays
        given = self.source.text[self.source.span(call.func)[1] : self.source.span(call)[1]]
        either = (self.either(call, f"{owner.id}.{method}") for method in methods)
        texts = (f"({one})" if one else f"{owner.id}.{m}{given}" for one, m in zip(either, methods, strict=True))
        *conditions, last = texts
        text = "".join(f"{one} if {name.id} == {m!r} else " for one, m in zip(conditions, methods, strict=False)) + last
        self.put(call, f"({text})" if conditions else text)
        if kept is not None:
            self.drop(kept)

    def _is_bound(self, home: ast.AST, name: str) -> bool:
        """Whether a name is more than a parameter that stays what it was."""
        uses = [n for n in symbols.walk(home) if isinstance(n, ast.Name) and n.id == name]
        is_given = isinstance(home, FunctionNode) and name in symbols.parameter_names(home)
        return not is_given or any(not isinstance(n.ctx, ast.Load) for n in uses)

    def _call(self, home: ast.AST, asked: ast.Call) -> tuple[ast.Call, ast.Assign | None]:
        """The call of what is looked up, and the statement that keeps it. Raises Stays."""
        match self.parents.get(asked):
            case ast.Call(func=func) as call if func is asked:
                return call, None
            case ast.Assign(targets=[ast.Name(id=kept)]) as made:
                block = self.source.block_of(made) or []
                behind = block[block.index(made) + 1] if made is not block[-1] else None
                uses = [n for n in symbols.walk(home) if isinstance(n, ast.Name) and n.id == kept]
                for one in symbols.walk(behind) if isinstance(behind, ast.Return | ast.Assign) else ():
                    if isinstance(one, ast.Call) and len(uses) == 2 and one.func in uses:
                        return one, made
        raise Stays

    def _asserted(self, home: ast.AST, name: str, asked: ast.Call) -> list[str]:
        """The texts that an assert of the function's own statements says of a name; none if there is none before."""
        for statement in home.body if isinstance(home, FunctionNode) else ():
            match statement:
                case ast.Assert(test=ast.Compare(left=ast.Name(id=tested), ops=[ast.In()], comparators=[given])) if (
                    tested == name and isinstance(given, ast.Set | ast.Tuple | ast.List)
                ):
                    texts = [e.value for e in given.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
                    before = statement.lineno < asked.lineno
                    return list(dict.fromkeys(texts)) if before and len(texts) == len(given.elts) else []
        return []

    def _left(self, asked: ast.Call, name: str) -> Iterator[str]:
        """The texts with which the function returns or raises before, in a block around."""
        node: ast.AST | None = asked
        while node is not None and not isinstance(node, FunctionNode):
            for one in self.source.block_of(node) or [] if isinstance(node, ast.stmt) else []:
                if one is node:
                    break
                match one:
                    case ast.If(
                        test=ast.Compare(
                            left=ast.Name(id=tested), ops=[ast.Eq()], comparators=[ast.Constant(str(text))]
                        ),
                        body=[*_, ast.Return() | ast.Raise()],
                    ) if tested == name:
                        yield text
            node = self.parents.get(node)
