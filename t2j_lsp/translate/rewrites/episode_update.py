"""Whether what an episode kept is all that the update's loss could be differentiated by; see `episodes`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import FunctionInfo
from t2j_lsp.translate.rule.facts import Qual, Tensor
from t2j_lsp.translate.rule.names import is_torch
from t2j_lsp.translate.source.positions import spans_lines

from .episode_parts import TO_HOST, ActingFunction, RecordedEpisode, Unseen, appends, need, reads, stores


class UpdateCheck:
    """Looks at the function that makes the update."""

    def __init__(self, inference: Inference, episode: RecordedEpisode) -> None:
        self.inference, self.source, self.episode = inference, inference.source, episode
        self.parents = self.source.parents

    def check(self) -> None:
        """Raises Unseen unless the block can be a function of the kept values, which are used nowhere else."""
        episode = self.episode
        inside = {n for s in episode.block for n in symbols.walk(s)}
        rest = {n for s in episode.rest for n in symbols.walk(s)}
        refused = (ast.Return, ast.Global, ast.Nonlocal, ast.Delete, ast.FunctionDef, ast.ClassDef, ast.With, ast.Try)
        need(not any(isinstance(n, refused) for n in inside))
        need(all(self.source.starts_line(s) for s in episode.update.body))
        need(not any(spans_lines(n) for n in inside))
        for kept in episode.recorded:
            for use in kept.uses:
                need(use in inside or self._is_filled(use, episode.acting) or use in rest and self._clears(use))
            cleared = [n for s in episode.rest for n in symbols.walk(s) if n in kept.uses and s in self._statements(n)]
            need(cleared)
            need(not any(self._changes(n) for n in kept.uses if n in inside))
        for kept in episode.recorded:
            named = {n for n in inside if isinstance(n, ast.Name) and n.id == kept.name and isinstance(n.ctx, ast.Load)}
            need(all(self._is_sequence(n, kept.name) for n in {*kept.uses, *named} if n in inside))
        bound = {name for s in episode.block for name in stores(s)}
        read = {n.id for s in episode.rest for n in reads(s)} & bound
        loss = episode.loss.id if isinstance(episode.loss, ast.Name) else ""
        need(read <= {loss})
        for node in inside:
            if isinstance(node, ast.If | ast.IfExp | ast.While):
                need(not isinstance(self.inference.fact(node.test), Tensor))
            if isinstance(node, ast.Call):
                self._check_call(node)

    def _check_call(self, node: ast.Call) -> None:
        """Raises Unseen if a call of the block may take values out of traced arrays."""
        fact = self.inference.fact(node.func)
        if isinstance(node.func, ast.Attribute) and node.func.attr in TO_HOST - {"item"}:
            raise Unseen
        if isinstance(fact, Qual) and not is_torch(fact.name):
            need(not any(isinstance(self.inference.fact(a), Tensor) for a in node.args))
        if isinstance(node.func, ast.Name) and node.func.id in ("float", "int", "bool", "print"):
            need(not any(isinstance(self.inference.fact(n), Tensor) for a in node.args for n in symbols.walk(a)))
        need(not isinstance(getattr(fact, "info", None), FunctionInfo))

    def _is_sequence(self, use: ast.expr, name: str) -> bool:
        """Whether a list is used as an array of its items can be: ``2 * saved`` says something else of it."""
        match parent := self.parents.get(use):
            case ast.Assign(targets=[ast.Name(id=target)]):
                return target == name
            case ast.Subscript(slice=ast.Slice()):
                return self._is_sequence(parent, name)
            case ast.Call():
                return use in parent.args
        return isinstance(parent, ast.For | ast.comprehension | ast.Subscript)

    def _statements(self, node: ast.AST) -> Iterator[ast.AST]:
        yield next(a for a in ancestors(node, self.parents) if isinstance(a, ast.stmt))

    def _is_filled(self, use: ast.expr, acting: ActingFunction) -> bool:
        statement = next(self._statements(use))
        return statement in acting.tail and appends(statement)

    def _clears(self, use: ast.expr) -> bool:
        """``del saved[:]`` and ``saved.clear()``."""
        parent = self.parents.get(use)
        match parent:
            case ast.Subscript(slice=ast.Slice(lower=None, upper=None, step=None), ctx=ast.Del()):
                return True
            case ast.Attribute(attr="clear"):
                return isinstance(self.parents.get(parent), ast.Call)
        return False

    def _changes(self, use: ast.expr) -> bool:
        parent = self.parents.get(use)
        if isinstance(parent, ast.Attribute):
            return True
        return isinstance(parent, ast.Subscript) and not isinstance(parent.ctx, ast.Load)
