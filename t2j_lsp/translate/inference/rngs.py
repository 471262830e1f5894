"""Where random keys come from: which functions take ``rngs`` and which modules keep their own.

JAX has no global generator. Constructors get a keyword ``rngs``, and so does every function that builds modules or
draws numbers; a module whose ``__call__`` draws keeps ``self.rngs``.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Sequence

from t2j_lsp import symbols
from t2j_lsp.translate.rule.definitions import ClassInfo, FunctionInfo

from .conditional_seeds import draws_unseeded
from .file import Inference
from .looked_up import note_looked_up
from .unit_tests import INSTANCE_SET_UP, caller_of, seeds_all
from .unseen_calls import called_unseen


def plan_rngs(inference: Inference, untouched: Collection[ast.AST] = ()) -> None:
    """Decide ``takes_rngs`` of every function and ``keeps_rngs`` of every class, here and in imported files.

    Functions that stay ``untouched`` take none, whatever an earlier plan of the file said.
    """
    if untouched:
        _forget(inference, untouched)
    note_looked_up(inference)
    if inference.project is not None:
        _plan_files(inference.project.inferred())
    for info in inference.functions.values():
        info.called_by = caller_of(info, inference)
        if seeds_all(info, inference):
            info.seeds, info.draws = False, True
    for node in inference.settled:
        info = inference.functions[node]
        info.settled, info.takes_rngs = True, _asks_for_rngs(info)
    _plan_files([inference])


def _forget(inference: Inference, untouched: Collection[ast.AST]) -> None:
    """Take back what was decided before it turned out which functions stay."""
    for info in inference.functions.values():
        info.takes_rngs = info.makes_rngs = info.reads_rngs = False
        info.settled |= info.node in untouched
    for cls in inference.classes.values():
        cls.keeps_rngs = False


def _asks_for_rngs(info: FunctionInfo) -> bool:
    """Whether JAX code can't be called without ``rngs``."""
    arguments = info.node.args
    given = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return any(argument.arg == "rngs" and default is None for argument, default in given)


def _plan_files(files: Sequence[Inference]) -> None:
    functions = [(info, file) for file in files for info in file.functions.values()]
    classes = [cls for file in files for cls in file.classes.values()]
    changed = True
    while changed:
        changed = False
        for info, file in functions:
            kept = info.owner is not None and info.owner.keeps_rngs and not info.static
            if not info.takes_rngs and not info.reads_rngs and not kept and _decide(info, file):
                changed = True
        changed |= _spread_overrides(classes)
    for cls in classes:
        if cls.is_module:
            init = cls.methods.get("__init__")
            if init is not None:
                init.takes_rngs = True


def _spread_overrides(classes: Iterable[ClassInfo]) -> bool:
    """A method that takes rngs takes them in every class that overrides it; whether something changed."""
    changed = False
    for info in classes:
        for name, method in info.methods.items():
            for base in info.ancestry()[1:]:
                other = base.methods.get(name)
                if name == "__init__" or other is None or other.settled or method.settled:
                    continue
                if other.reads_rngs or method.reads_rngs:
                    for one in (m for m in (other, method) if m.takes_rngs):
                        one.takes_rngs, one.reads_rngs, changed = False, True, True
                elif other.takes_rngs != method.takes_rngs:
                    method.takes_rngs = other.takes_rngs = changed = True
    return changed


def _is_settled(info: FunctionInfo) -> bool:
    return info.settled or info.outer is not None and _is_settled(info.outer)


def _decide(info: FunctionInfo, file: Inference) -> bool:
    """Whether something changed."""
    if info.seeds and info.external and _needs(info) and draws_unseeded(info, file):
        info.draws, info.seeds = True, False
    if _is_settled(info) or not _needs(info) or info.seeds or _has_generator(info):
        return False
    if info.outer is not None:
        # A nested function sees the rngs of the one around it.
        if not info.outer.builds:
            info.outer.builds = True
            return True
        return False
    if info.called_by == "own" or info.called_by and _set_up_of(info) is not None:
        info.seeds = info.makes_rngs = True
        return True
    owner = info.owner
    if owner is not None and owner.has_generator and not info.static:
        return False
    if not info.called_by and called_unseen(info, file):
        info.reads_rngs = True
        return True
    if owner is not None and owner.is_module:
        if info.name == "__init__":
            info.takes_rngs = True
            return True
        if info.static or info.name in build_methods(owner):
            info.takes_rngs = True
            return True
        if not owner.keeps_rngs:
            owner.keeps_rngs = True
            return True
        return False
    info.takes_rngs = True
    return True


def _has_generator(info: FunctionInfo) -> bool:
    """Whether a function makes its ``rngs`` itself, as an earlier conversion wrote it."""
    return any(makes_rngs(node) for node in symbols.walk(info.node))


def makes_rngs(node: ast.AST) -> bool:
    """Whether a statement is ``rngs = nnx.Rngs(...)``."""
    match node:
        case ast.Assign(targets=[ast.Name(id="rngs")], value=ast.Call(func=ast.Attribute(attr="Rngs"))):
            return True
    return False


def draws_from_module(inference: Inference) -> bool:
    """Whether functions of a file draw from the ``rngs`` of its module level."""
    return any(info.reads_rngs for info in inference.functions.values() if not info.external)


def _set_up_of(info: FunctionInfo) -> FunctionInfo | None:
    """The method that runs before a test of the same class, where it needs random numbers: they share a stream."""
    methods = info.owner.methods if info.owner is not None and info.called_by else {}
    setup = next((method for name, method in methods.items() if name in INSTANCE_SET_UP), None)
    return setup if setup is not None and (setup.seeds or _needs(setup)) else None


def start_of_rngs(info: FunctionInfo, generator: str) -> str:
    """The statement that gives a test or its set-up the generator."""
    if info.name in INSTANCE_SET_UP and info.owner is not None and info.called_by:
        return f"rngs = self.rngs = {generator}"
    return "rngs = self.rngs" if info.makes_rngs and _set_up_of(info) is not None else f"rngs = {generator}"


def _needs(info: FunctionInfo) -> bool:
    if info.builds or info.draws:
        return True
    for callee in info.callees:
        if isinstance(callee, FunctionInfo):
            if callee.takes_rngs and not callee.seeds:
                return True
        elif not callee.is_module:
            init = callee.method("__init__")
            if init is not None and init.takes_rngs:
                return True
    if info.owner is not None:
        for name in info.self_calls:
            method = info.owner.method(name)
            if method is not None and method.takes_rngs:
                return True
    return False


def build_methods(owner: ClassInfo) -> set[str]:
    """Methods that only run while the module is being built: reached from ``__init__`` and from nowhere else."""
    built = _reach(owner, ["__init__"])
    called = _reach(owner, [n for c in owner.ancestry() for n in c.methods if n not in built])
    return built - called - {"__init__"}


def _reach(owner: ClassInfo, start: list[str]) -> set[str]:
    seen: set[str] = set()
    ancestry = owner.ancestry()
    queue = list(start)
    while queue:
        name = queue.pop()
        if name in seen:
            continue
        seen.add(name)
        for info in ancestry:
            method = info.methods.get(name)
            if method is not None:
                queue.extend(method.self_calls)
                queue.extend(c.name for c in method.callees if isinstance(c, FunctionInfo) and c.owner in ancestry)
    return seen
