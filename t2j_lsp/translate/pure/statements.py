"""Writing the function that applies a module: its signature, what stands at its beginning, keys, and its statements."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from t2j_lsp.translate.expressions.context import Edits
from t2j_lsp.translate.source.text import Edit, Source

from .children import Constructor, Unconvertible
from .names import FunctionNames
from .plan import ModulePlan


@dataclass
class FunctionStatement:
    """What becomes of one statement: edits in it, lines in front of it."""

    node: ast.stmt
    edits: list[Edit] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    """What stands for the keys that it takes."""
    variables: dict[ast.Call, str] = field(default_factory=dict)
    """The variables that calls in it get in front of it."""


class FunctionText:
    """Records the edits that make ``forward`` a function."""

    def __init__(
        self, source: Source, constructor: Constructor, plan: ModulePlan, names: FunctionNames, edits: Edits
    ) -> None:
        self.source, self.constructor, self.plan, self.names, self.edits = source, constructor, plan, names, edits
        self.node = plan.info.methods[plan.method].node

    def write(
        self, statements: Sequence[FunctionStatement], prologue: Mapping[str, str], repeated: bool
    ) -> dict[str, str]:
        """Record the edits; what the stand-ins for keys became."""
        keys = self._keys(statements, repeated)
        self._signature()
        lines = [f"{name} = {text}" for name, text in prologue.items()]
        if self.plan.updates:
            lines.append(f"state = {self.names.library('jax')}.tree.map(lambda leaf: leaf, state)")
            if not _returns(self.node.body):
                raise Unconvertible(self.node, "its forward may end without a return, and has a state to give back")
        first = self.node.body[1] if _is_docstring(self.node.body[0]) and len(self.node.body) > 1 else self.node.body[0]
        if lines:
            self.edits.insert_before(first, lines, priority=-1)
        for one in statements:
            self._statement(one, keys)
        return keys

    def _keys(self, statements: Sequence[FunctionStatement], repeated: bool) -> dict[str, str]:
        """The keys by their stand-ins; where there are several, each statement splits its own off."""
        key, taken = self.plan.key, self.source.symbols.bound(self.node)
        tokens = [token for one in statements for token in one.keys]
        if len(tokens) == 1 and not repeated:
            return {tokens[0]: key}
        keys: dict[str, str] = {}
        for one in statements:
            count = len(one.keys)
            hint = "subkey" if "subkey" not in taken else "subkey_"
            names = [hint] if count == 1 else [f"{hint}{number}" for number in range(1, count + 1)]
            keys |= dict(zip(one.keys, names, strict=True))
            if count:
                number = f", {count + 1}" if count > 1 else ""
                one.before.insert(0, f"{key}, {', '.join(names)} = {self.names.helper('split_key')}({key}{number})")
        return keys

    def _statement(self, one: FunctionStatement, keys: Mapping[str, str]) -> None:
        before = [replaced(line, keys) for line in one.before]
        if before and not self.source.starts_line(one.node):
            raise Unconvertible(one.node, "several statements stand on one line")
        match one.node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if before and len(one.edits) == 1:
                if one.edits[0].new == name and (one.edits[0].start, one.edits[0].end) == self.source.span(value):
                    self.edits.insert_before(one.node, before[:-1], priority=2)
                    self.edits.replace(one.node, before[-1])
                    return
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if not before and len(one.edits) == 1:
                edit = one.edits[0]
                if edit.new == name and (edit.start, edit.end) == self.source.span(value):  # a layer that does nothing
                    self.edits.delete(one.node)
                    return
        for edit in one.edits:
            self.edits.add(edit.start, edit.end, replaced(edit.new, keys), edit.priority)
        if before:
            self.edits.insert_before(one.node, before, priority=2)

    def _signature(self) -> None:
        source, node = self.source, self.node
        start = source.span(node)[0]
        at = source.text.index(node.name, start)
        self.edits.add(at, at + len(node.name), self.names.method(self.plan.info, self.plan.method))
        first = node.args.args[0]
        end = source.span(first.annotation)[1] if first.annotation is not None else source.span(first)[1]
        self.edits.add(source.span(first)[0], end, "params, state" if self.plan.state else "params")
        keywords = [self._keyword(name) for name in self.plan.settings]
        if self.plan.draws:
            keywords.append(f"{self.plan.key}=None")
        if self.plan.trains:
            keywords.append("train=False")
        if keywords:
            star = [] if node.args.kwonlyargs or node.args.vararg else ["*"]
            at, comma = self._end_of_parameters(at)
            self.edits.add(at, at, ("" if comma else ",") + " " + ", ".join([*star, *keywords]), 9)
        if node.returns is not None and self.plan.updates:
            self.edits.replace(node.returns, f"tuple[{source.segment(node.returns)}, dict]")

    def _keyword(self, name: str) -> str:
        argument, default = self.constructor.parameters[name], self.constructor.defaults.get(name)
        text = name if argument.annotation is None else f"{name}: {self.source.segment(argument.annotation)}"
        if default is None:
            return text
        return f"{text}{'=' if argument.annotation is None else ' = '}{self.source.segment(default)}"

    def _end_of_parameters(self, at: int) -> tuple[int, bool]:
        """Where the parameter list ends, behind its last comma, and whether there is one."""
        depth, last, comma = 0, at, False
        text = self.source.text[at:]
        starts = [0]
        for line in text.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in (tokenize.NL, tokenize.COMMENT, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
                continue
            depth += token.string in ("(", "[", "{") and token.type == tokenize.OP
            depth -= token.string in (")", "]", "}") and token.type == tokenize.OP
            if token.string == ")" and depth == 0:
                break
            last, comma = at + starts[token.end[0] - 1] + token.end[1], token.string == ","
        return last, comma


def replaced(text: str, keys: Mapping[str, str]) -> str:
    """Code with the keys in place of their stand-ins."""
    for token, name in keys.items():
        text = text.replace(token, name)
    return text


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _returns(body: Sequence[ast.stmt]) -> bool:
    """Whether control can't fall out of the end of a block."""
    last = body[-1]
    if isinstance(last, ast.If):
        return bool(last.orelse) and _returns(last.body) and _returns(last.orelse)
    return isinstance(last, ast.Return | ast.Raise) or isinstance(last, ast.With) and _returns(last.body)
