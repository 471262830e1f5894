"""An optimizer whose groups are of different modules, or of modules and tensors, as an optimizer for each group.

``Adam([{"params": net.parameters()}, {"params": [log_sigma], "lr": 0.1}], lr=1e-3)``: each group is updated by itself
in PyTorch, with the options that it names and those of the call. Where a file has such an optimizer, it is read as if
its groups were optimizers, with what is called on it and the schedulers that it is given called on and given each.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from t2j_lsp.contract import Finding
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.facts import Object, Tensor
from t2j_lsp.translate.source.rearranged import RearrangedText
from t2j_lsp.translate.training.optimizers.groups import PARTS

from .left_out import ObjectLeftOut, Stays

_MOST = 6
_SHARED = frozenset({"zero_grad", "step"})


def with_optimizers_of_groups_apart(inference: Inference, gaps: Iterable[Finding]) -> RearrangedText | None:
    """The text in which such optimizers are several; None if there are none, or all of them are used otherwise."""
    lines = {gap.span.line for gap in gaps if gap.reason == PARTS}
    left_out = ObjectLeftOut(inference)
    for node in inference.source.nodes if lines else ():
        made = inference.fact(node) if isinstance(node, ast.Call) and node.lineno in lines else None
        if isinstance(node, ast.Call) and isinstance(made, Object) and made.kind == "optimizer":
            one = _Apart(inference, node)
            try:
                one.write()
            except Stays:
                continue
            left_out.instead |= one.instead
    return RearrangedText.of(inference.source.text, left_out.made_edits())


class _Apart(ObjectLeftOut):
    """One optimizer, and what becomes of its uses."""

    def __init__(self, inference: Inference, call: ast.Call) -> None:
        super().__init__(inference)
        self.call = call

    def write(self) -> None:
        """Raises Stays where the groups can't be read, or something else is done with the optimizer."""
        made = self.parents.get(self.call)
        if not isinstance(made, ast.Assign) or not isinstance(made.targets[0], ast.Name) or len(made.targets) > 1:
            raise Stays
        groups = [self._group(node) for node in self._listed()]
        if not 1 < len(groups) <= _MOST:
            raise Stays
        function, shared = self.source.segment(self.call.func), self._shared()
        texts = []
        for parameters, options in groups:
            given = ", ".join(f"{key}={value}" for key, value in {**shared, **options}.items())
            texts.append(f"{function}({parameters}, {given})" if given else f"{function}({parameters})")
        self._write_variable(made.targets[0], made, texts, _SHARED)

    def _write_variable(self, name: ast.Name, made: ast.Assign, texts: list[str], methods: frozenset[str]) -> None:
        """A variable for each text, instead of one, and what is called on it, on each. Raises Stays."""
        names = [name.id, *(self._fresh(f"{name.id}_{at}") for at in range(1, len(texts)))]
        self._lines(made, [f"{one} = {text}" for one, text in zip(names, texts, strict=True)])
        uses = [n for n in self.source.names.get(name.id, ()) if n is not name]
        for use in uses:
            match self.parents.get(use):
                case ast.Attribute(attr=attr) as method if attr in methods:
                    call = self.parents.get(method)
                    statement = self.parents.get(call) if isinstance(call, ast.Call) else None
                    if not isinstance(call, ast.Call) or call.func is not method or not isinstance(statement, ast.Expr):
                        raise Stays
                    rest = self.source.text[self.source.span(use)[1] : self.source.span(call)[1]]
                    self._lines(statement, [f"{one}{rest}" for one in names])
                case ast.Call(args=[first, *_]) as scheduler if first is use:
                    self._write_scheduler(scheduler, use, names)
                case _:
                    raise Stays

    def _write_scheduler(self, scheduler: ast.Call, use: ast.Name, names: list[str]) -> None:
        """A scheduler that is given the optimizer is one for each. Raises Stays."""
        fact, given = self.inference.fact(scheduler), self.parents.get(scheduler)
        if not isinstance(fact, Object) or fact.kind != "scheduler" or not isinstance(given, ast.Assign):
            raise Stays
        target = given.targets[0]
        if not isinstance(target, ast.Name) or len(given.targets) > 1:
            raise Stays
        (begin, end), (first, last) = self.source.span(scheduler), self.source.span(use)
        text = self.source.text
        self._write_variable(
            target, given, [f"{text[begin:first]}{one}{text[last:end]}" for one in names], frozenset({"step"})
        )

    def _lines(self, statement: ast.stmt, lines: list[str]) -> None:
        """Lines of their own in the place of a statement on one. Raises Stays."""
        block = self.source.block_of(statement) or []
        alone = not any(one.lineno == statement.lineno for one in block if one is not statement)
        if not alone or not self.source.starts_line(statement) or any("\n" in line for line in lines):
            raise Stays
        self.put(statement, f"{self.source.newline}{self.source.indent(statement.lineno)}".join(lines))

    def _fresh(self, name: str) -> str:
        if name in self.source.words:
            raise Stays
        return name

    def _listed(self) -> list[ast.Dict]:
        """The groups. Raises Stays."""
        given = self.call.args[0] if self.call.args else None
        if not isinstance(given, ast.List) or len(self.call.args) > 1:
            raise Stays
        groups = [one for one in given.elts if isinstance(one, ast.Dict)]
        if len(groups) < len(given.elts):
            raise Stays
        return groups

    def _shared(self) -> dict[str, str]:
        """The options of the call. Raises Stays."""
        if any(k.arg is None for k in self.call.keywords):
            raise Stays
        return {str(k.arg): self.source.segment(k.value) for k in self.call.keywords}

    def _group(self, node: ast.Dict) -> tuple[str, dict[str, str]]:
        """The parameters and options of a group. Raises Stays."""
        options: dict[str, str] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str) or not key.value.isidentifier():
                raise Stays
            text = self.source.segment(value)
            if "\n" in text:
                raise Stays
            is_tensor = isinstance(self.inference.fact(value), Tensor)
            options[key.value] = f"[{text}]" if key.value == "params" and is_tensor else text
        options.pop("name", None)
        if "params" not in options:
            raise Stays
        return options.pop("params"), options
