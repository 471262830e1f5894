"""What a call as a statement reads and gives new values: attributes of its object, variables around the function."""

from __future__ import annotations

import ast

from t2j_lsp.symbols import walk
from t2j_lsp.translate.inference.call_sites import called_function
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.rule.definitions import Class, Function, FunctionInfo, is_module
from t2j_lsp.translate.rule.facts import Fact, Object, Qual
from t2j_lsp.translate.training.program.flow import DataFlow, Uses


class CallEffects:
    """Looks at the functions of the file that calls run, and at those that these call."""

    def __init__(self, inference: Inference, self_name: str | None) -> None:
        self.inference = inference
        self.self_name = self_name
        """What the scope of the calls calls its object, whose attributes are variables."""
        self._uses: dict[tuple[ast.AST, str], Uses] = {}

    def __call__(self, call: ast.Call) -> Uses:
        """The variables that a call may read, modules apart, and give new values, as its scope names them."""
        info = called_function(self.inference.fact(call.func))
        if info is None or info.external:
            return Uses()
        return self._of(info, self._receiver(call, self.self_name), frozenset())

    def _receiver(self, call: ast.Call, own: str | None) -> str:
        """The scope's object, if a method of it is called."""
        match call.func:
            case ast.Attribute(value=ast.Name(id=name)) if name == own:
                return self.self_name or ""
        return ""

    def _of(self, info: FunctionInfo, receiver: str, running: frozenset[FunctionInfo]) -> Uses:
        """What a function uses, of the object ``receiver`` if it is a method of it."""
        key = info.node, receiver
        if key in self._uses or info in running:
            return self._uses.get(key, Uses())
        parameters = info.node.args.args
        own = parameters[0].arg if info.owner is not None and not info.static and parameters else None
        flow = DataFlow(self.inference.source.symbols, own)
        uses = Uses()
        for statement in info.node.body:
            kept = self._modules(statement)
            uses.reads |= self._outside(info, own, receiver, flow.reads(statement) - kept)
            uses.writes |= self._outside(info, own, receiver, flow.writes(statement))
            for call in (n for n in walk(statement) if isinstance(n, ast.Call)):
                inner = called_function(self.inference.fact(call.func))
                if inner is not None and not inner.external:
                    is_own = own is not None and self._receiver(call, own) != ""
                    inside = self._of(inner, receiver if is_own else "", running | {info})
                    uses.reads |= inside.reads
                    uses.writes |= inside.writes
        self._uses[key] = uses
        return uses

    def _outside(self, info: FunctionInfo, own: str | None, receiver: str, names: set[str]) -> set[str]:
        """Those of a function's variables that aren't its own, as the scope of the calls names them."""
        local, outside = self.inference.source.symbols.bound(info.node), set[str]()
        for name in names:
            head, _, attribute = name.partition(".")
            if attribute and head == own:
                outside |= {f"{receiver}.{attribute}"} if receiver else set()
            elif name not in local:
                outside.add(name)
        return outside

    def _modules(self, statement: ast.stmt) -> set[str]:
        """The variables in a statement that hold modules, optimizers and functions, of which is known otherwise."""
        nodes = (n for n in walk(statement) if isinstance(n, ast.Name | ast.Attribute))
        return {ast.unparse(n) for n in nodes if _is_known(self.inference.fact(n))}


def _is_known(fact: Fact) -> bool:
    return is_module(fact) or isinstance(fact, Object | Function | Class | Qual)
