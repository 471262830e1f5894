"""What a file does with its modules, and what only those who call its functions can tell: found by the forward pass."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from t2j_lsp.translate.rule.definitions import FunctionInfo, Instance
from t2j_lsp.translate.rule.facts import AnyModule, Fact, Layer


@dataclass
class ModuleUses:
    """What decides how modules and containers of them are made in Flax."""

    indexed: set[ast.Call] = field(default_factory=set)
    """Constructor calls of containers that are indexed, measured or iterated."""
    listed: set[ast.Call] = field(default_factory=set)
    """Those of them of which more is asked than the child at a number: `nnx.Sequential` has these in a list."""
    handed: frozenset[ast.Call] | None = None
    """Those that other files are handed and read; None before it was asked."""
    indexes_any: bool = False
    """Whether a module of unknown class is indexed somewhere."""
    unpacked: list[ast.expr] = field(default_factory=list)
    """Targets to which a module of unknown class is unpacked, which say it too if it may be a Sequential."""
    indexes_own: bool = False
    """Whether a container of a class of the file is, or something of which nothing is known."""
    hooks_any: bool = False
    """Whether a hook is put on a module of which nobody knows what it is."""
    called_as_classes: set[ast.Lambda] = field(default_factory=set)
    """Lambdas that are called where a class may stand instead, and so with its ``rngs``."""
    isinstance_classes: set[str] = field(default_factory=set)
    """torch layers that isinstance asks for."""
    isinstance_questions: set[frozenset[str]] = field(default_factory=set)
    """The same, by question: those that stand together in one call."""

    def note_indexed(self, fact: Fact, at_number: bool = False) -> None:
        """A value was indexed, measured or iterated; ``at_number``: a child was read at a place that is written out."""
        if isinstance(fact, Layer) and fact.name == "torch.nn.Sequential":
            if fact.node is not None:
                self.indexed.add(fact.node)
                if not at_number:
                    self.listed.add(fact.node)
            else:
                self.indexes_any = True
        elif isinstance(fact, AnyModule):
            self.indexes_any = True
        elif isinstance(fact, Instance) and fact.cls.info.layer_base is not None:
            self.indexes_own = True


@dataclass
class CallerQuestions:
    """What is asked of call sites (`call_sites.py`)."""

    calls_unknown: bool = False
    """Whether something is called of which nothing is known: a parameter, an item of a dictionary."""
    hands_modules: bool = False
    """Whether a function or class of the file is called with a module."""
    hands_classes: bool = False
    """Whether a parameter has a class of modules for a default."""
    asks_callers: bool = False
    """Whether a parameter is written to or asked in a way that only what is passed for it tells the meaning of."""
    arrays_written: set[tuple[FunctionInfo, str]] = field(default_factory=set)
    """Names in functions that are written to as only arrays are, tensors where a module calls the function."""
