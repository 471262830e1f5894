"""``with torch.no_grad():`` inside a function: what is computed there must not carry a gradient to where it is read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import takewhile

from t2j_lsp import symbols
from t2j_lsp.symbols import ancestors, named_parameters
from t2j_lsp.translate.expressions.context import Context
from t2j_lsp.translate.expressions.handlers import ExpressionRenderer
from t2j_lsp.translate.expressions.module_methods import registration
from t2j_lsp.translate.expressions.tensor_code import TensorCode
from t2j_lsp.translate.expressions.variables import Variables
from t2j_lsp.translate.inference.fillers import filled
from t2j_lsp.translate.inference.module_methods import running_methods
from t2j_lsp.translate.rule.definitions import FunctionInfo, Instance
from t2j_lsp.translate.rule.facts import Layer, ListOf, Qual, Scalar, Tensor, Tuple
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.rule.pieces import enclosed_tuple

from .overwriting import Overwriting, assigned_names, changed_in_place, writes_data
from .stopped_values import StoppedValues, loads_after, overwritten_inside, value_of, writes
from .unknown_passes import UnknownPasses, differentiable

NO_GRAD = names_with(Trait.NO_GRADIENT)
_RETURNS = "it overwrites parameters that other methods read, and returns: their gradient goes on to what they were"


class NoGradient:
    """Puts ``jax.lax.stop_gradient`` around what leaves a block without gradients."""

    def __init__(self, context: Context, renderer: ExpressionRenderer, variables: Variables, code: TensorCode) -> None:
        self.ctx = context
        self.renderer = renderer
        self.variables = variables
        self.overwriting = Overwriting(context, code)
        self.stopped = StoppedValues(context, code, self.is_buffer, self._is_trained)

    def enter_block(self, node: ast.With | ast.AsyncWith) -> None:
        """Before a block is rewritten: what can't be stopped behind it is stopped where it is made."""
        around = self._function_around(node)
        if around is not None and node not in self.ctx.plan.undifferentiated:
            self.stopped.plan(node, around, loads_after(around, node) - self._bound_first(node))
            self._stop_parts(node)

    def enter_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """The same of a function as a whole."""
        self.stopped.plan(node, node, set())
        self._stop_parts(node)

    def leave_block(self, node: ast.With | ast.AsyncWith) -> None:
        """Inside a function, which a train step is too, values computed without gradient must not carry one later."""
        around = self._function_around(node)
        if around is None or node in self.ctx.plan.undifferentiated:
            return
        used_later = loads_after(around, node) - self._bound_first(node)
        names: list[str] = []
        aliases: dict[str, str] = {}
        bound = self._bound_in_front_of_end(node, around)
        self.wrap_returns(node)
        passes = UnknownPasses(self.ctx, node)
        for inner in symbols.walk(node):
            for target in assigned_names(inner):
                if target.id not in used_later or target.id in names or not passes.carries(target):
                    continue
                if target in self.stopped.targets:
                    continue
                source = self._source(inner, target, node)
                if source is not None:
                    aliases |= {target.id: source} if source else {}
                    continue
                if target.id in bound or not isinstance(inner, ast.stmt) or not self._is_only_looped(inner, node):
                    names.append(target.id)
                else:  # behind the block it may not have a value
                    stop = f"{self.renderer.need('jax')}.lax.stop_gradient"
                    self.ctx.edits.insert_after(inner, [f"{target.id} = {stop}({target.id})"])
        variables = self._variables_written(node)
        names += [f"{text}[...]" for text, trained in variables.items() if not trained]
        # The new value is a leaf again in PyTorch: its gradient is the parameter's.
        kept = [f"{text}[...]" for text, trained in variables.items() if trained]
        kept += (overwritten := self.overwriting.names(node, used_later))
        names += [name for name in self.stopped.filled(node, around, used_later) if name not in (*names, *overwritten)]
        if names or kept or aliases:
            stop = f"{self.renderer.need('jax')}.lax.stop_gradient"
            self.ctx.edits.insert_after(node.body[-1], [f"{name} = {stop}({name})" for name in names])
            self.overwriting.keep(node, node.body[-1], {text: text for text in kept} | aliases, stop)

    def leaving(self, node: ast.With) -> list[str] | None:
        """The names that carry a gradient out of a block; None where other things do, or names that may be unbound."""
        around = self._function_around(node)
        if around is None or node in self.ctx.plan.undifferentiated:
            return []
        passes, used_later = UnknownPasses(self.ctx, node), loads_after(around, node) - self._bound_first(node)
        if self.stopped.stops(node, around, used_later) or self.stopped.filled(node, around, used_later):
            return None
        bound, names = self._bound_in_front_of_end(node, around), dict[str, None]()
        for inner in symbols.walk(node):
            if isinstance(inner, ast.Return | ast.Yield | ast.YieldFrom):
                return None
            for target in assigned_names(inner):
                if target.id in used_later and passes.carries(target):
                    if self._source(inner, target, node) is not None:
                        return None
                    names[target.id] = None
        if names.keys() - bound or self._variables_written(node) or self.overwriting.names(node, used_later):
            return None
        return list(names)

    def _function_around(self, node: ast.stmt) -> ast.AST | None:
        """The function that a block stands in; the module for a block that moves into a train step."""
        if self.ctx.scope.function is not None:
            return self.ctx.scope.function.node
        return self.ctx.source.tree if node in self.ctx.plan.train_steps else None

    def leave_data(self, node: ast.stmt) -> None:
        """A statement that writes through ``.data`` in code that is differentiated."""
        function = self.ctx.scope.function
        if function is None or node in self.ctx.plan.undifferentiated or not writes_data(node):
            return
        kept = [f"{text}[...]" for text, trained in self._variables_written(node).items() if trained]
        handed_back = filled(function, self.ctx.inference)
        later = loads_after(function.node, node) | ({handed_back} if handed_back is not None else set())
        kept += self.overwriting.names(node, later)
        if kept:
            stop = f"{self.renderer.need('jax')}.lax.stop_gradient"
            self.overwriting.keep(node, node, {text: text for text in kept}, stop)

    def leave_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """A method without gradients that overwrites parameters which others read."""
        kept = [f"{text}[...]" for text, trained in self._variables_written(node).items() if trained]
        if not kept:
            return
        if any(isinstance(n, ast.Return) for n in symbols.walk(node)):
            self.ctx.report.gap(node, node.name, "refused", _RETURNS)
            return
        body = [s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
        stop = f"{self.renderer.need('jax')}.lax.stop_gradient"
        self.overwriting.keep(body[0], body[-1], {text: text for text in kept}, stop)

    def _is_only_looped(self, inner: ast.stmt, node: ast.With | ast.AsyncWith) -> bool:
        """Whether a statement of a block stands in loops alone: branches may go, with what is put into them."""
        if not self.ctx.source.starts_line(inner):
            return False
        around = takewhile(lambda at: at is not node, ancestors(inner, self.ctx.source.parents))
        return all(isinstance(at, ast.For | ast.While | ast.With) for at in around)

    def _bound_in_front_of_end(self, node: ast.With | ast.AsyncWith, scope: ast.AST) -> set[str]:
        """Names that surely have a value behind a block: bound in it, or in front of it, under no condition."""
        function, parents = self.ctx.scope.function, self.ctx.source.parents
        given = {a.arg for a in named_parameters(function.node)} if function is not None else set()
        around = {*ancestors(node, parents)}
        sure = [*node.body]
        sure += [
            n
            for n in symbols.walk(scope)
            if isinstance(n, ast.stmt) and n.lineno < node.lineno and parents.get(n) in around
        ]
        return given | {name.id for s in sure for name in assigned_names(s)}

    def _bound_first(self, node: ast.stmt) -> set[str]:
        """Names that are bound anew behind a block before anything reads them."""
        block = self.ctx.source.block_of(node) or []
        read: set[str] = set()
        bound: set[str] = set()
        for later in block[block.index(node) + 1 :] if block else []:
            read |= {n.id for n in symbols.walk(later) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
            bound |= {name.id for name in assigned_names(later)} - read
        return bound

    def wrap_returns(self, block: ast.stmt) -> None:
        """What a block or a function returns carries no gradient."""
        for value, parts in self._returned(block):
            if parts == [value] and (behind := self._behind(value, block)) is not None:
                stop = f"{self.renderer.need('jax')}.lax.stop_gradient"
                start, end = self.ctx.source.span(value)
                bare = isinstance(value, ast.Tuple) and not enclosed_tuple(self.ctx.source.segment(value))
                opening, closing = ("((", "))") if bare else ("(", ")")
                self.ctx.edits.add(start, start, f"{stop}{opening}", 1)
                self.ctx.edits.add(end, end, closing, 1)
                if behind:
                    self.ctx.edits.add(end, end, behind, 2)

    def _stop_parts(self, block: ast.stmt) -> None:
        """Parts of tuples that are returned are stopped where they are written, which the tuple is as a whole."""
        for value, parts in self._returned(block):
            for part in parts:
                if part is not value and (behind := self._behind(part, block)) is not None:
                    self.ctx.scope.stopped[part] = behind

    def _returned(self, block: ast.stmt) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
        """What a block or a function returns, and what of it is stopped, where nothing is yet."""
        passes = UnknownPasses(self.ctx, block)
        for node in symbols.walk(block):
            if not isinstance(node, ast.Return) or node.value is None or node in self.stopped.returns:
                continue
            if passes.carries(node.value):
                yield node.value, self._arrays(node.value, passes)

    def _arrays(self, value: ast.expr, passes: UnknownPasses) -> list[ast.expr]:
        """What is stopped of a value: all of it, or its arrays alone where words or objects may stand beside them."""
        if not isinstance(value, ast.Tuple) or all(self._is_number(item) for item in value.elts):
            return [value]
        if any(isinstance(item, ast.Starred) for item in value.elts):
            return [value]
        return [part for item in value.elts if passes.carries(item) for part in self._arrays(item, passes)]

    def _is_number(self, value: ast.expr) -> bool:
        """Whether a value is an array or a number, or has only such parts."""
        match fact := self.ctx.fact(value):
            case Scalar():
                return fact.kind != "str"
            case ListOf():
                return isinstance(fact.item, Tensor)
            case Tuple():
                return bool(fact.items) and all(isinstance(item, Tensor) for item in fact.items)
        return isinstance(fact, Tensor)

    def _behind(self, value: ast.expr, block: ast.stmt) -> str | None:
        """What stands behind a value that is stopped; None where it is not to be.

        What was made outside of the block, or is written to, keeps its own gradient.
        """
        held = changed_in_place(value)
        whole = isinstance(block, ast.FunctionDef | ast.AsyncFunctionDef)
        outer = held is not None and held.id not in self.stopped.bound_before(value, block)
        changed = outer and held is not None and held.id in overwritten_inside(block)
        if outer and not changed and held is value:
            return None
        if held is None or not outer or whole or self.overwriting.fills(block, held.id):
            return ""
        old = held.id
        if changed:
            old = self.ctx.names.fresh(f"old_{old}")
            self.ctx.edits.insert_before(block, [f"{old} = {held.id}"])
        return f" + ({old} - {self.renderer.need('jax')}.lax.stop_gradient({old}))"

    def _source(self, statement: ast.AST, target: ast.Name, block: ast.stmt) -> str | None:
        """The array of outside of a block that a statement writes to and gives another name.

        Empty where nothing writes to it; None where the name is that of a value made in the block.
        """
        value = value_of(statement, target)
        if value is not None and self._is_trained(value):
            return ""
        held = changed_in_place(value) if value is not None else None
        if value is None or held is None or held.id == target.id or held.id in self.stopped.bound_before(value, block):
            return None
        return held.id if held.id in overwritten_inside(block) else ""

    def _variables_written(self, node: ast.stmt) -> dict[str, bool]:
        """Parameters that get a value here and are read below, and buffers whose value could carry a gradient there.

        Each with whether it is a parameter.
        """
        around = self._function_around(node)
        assert around is not None
        if self._gives_initial_values():
            return {}
        read, called = _attributes_after(around, node), _called_after(around, node)
        beside = self._running_beside()
        read_beside = {text for method in beside for text in _attributes_after(method.node)}
        called_beside = {text for method in beside for text in _called_after(method.node)}
        written: dict[str, bool] = {}
        for inner in (n for n in symbols.walk(node) if isinstance(n, ast.stmt)):
            for target, sources in writes(inner):
                used = ast.unparse(target) in read or _owner(target) in called
                if not used and self._is_trained(target):
                    used = ast.unparse(target) in read_beside or _owner(target) in called_beside
                variable = self.variables.parameter(target) if used else None
                facts = [self.ctx.fact(n) for s in sources for n in symbols.walk(s) if isinstance(n, ast.expr)]
                values = [f for f in facts if isinstance(f, Tensor) and not f.variable]
                if variable is not None and (self._is_trained(target) or any(map(differentiable, values))):
                    written[variable[0]] = self._is_trained(target)
        return written

    def _running_beside(self) -> list[FunctionInfo]:
        """The other methods of its class that run where this one does, as its module is called."""
        function = self.ctx.scope.function
        if function is None or function.owner is None or not function.runs_in_module:
            return []
        for cls in self.ctx.inference.classes.values():
            if function.owner in cls.ancestry():
                running = list(running_methods(cls))
                if function in running or self._is_called_by_others(function):
                    return [method for method in running if method is not function]
        return []

    def _gives_initial_values(self) -> bool:
        """Whether this is a constructor of a module, or a method that gives nothing and no call of the module runs."""
        function = self.ctx.scope.function
        if function is None or function.owner is None or not function.owner.acts_as_module:
            return False
        classes = [cls for cls in self.ctx.inference.classes.values() if function.owner in cls.ancestry()]
        if any(function in running_methods(cls) for cls in classes) or self._is_called_by_others(function):
            return False
        gives = any(isinstance(n, ast.Return) and n.value is not None for n in symbols.walk(function.node))
        return function.name == "__init__" or not gives and any(cls.method("forward") is not None for cls in classes)

    def _is_called_by_others(self, function: FunctionInfo) -> bool:
        """Whether another module calls a method: ``self.block.clip()``."""
        for info in self.ctx.inference.classes.values():
            for method in info.methods.values() if info.is_module else ():
                for call in symbols.walk(method.node) if method.runs_in_module else ():
                    match call:
                        case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name == function.name:
                            fact = self.ctx.fact(owner)
                            if isinstance(fact, Instance) and function.owner in fact.cls.info.ancestry():
                                return info is not function.owner
        return False

    def is_buffer(self, target: ast.expr) -> bool:
        """Whether something is a variable that isn't trained."""
        return self.variables.parameter(target) is not None and not self._is_trained(target)

    def _is_trained(self, target: ast.expr) -> bool:
        """Whether a variable is a parameter: it is assigned one in the class."""
        owner = self.ctx.fact(target.value) if isinstance(target, ast.Attribute) else None
        derived = isinstance(owner, Instance) and owner.cls.info.layer_base in LAYERS
        if (isinstance(owner, Layer) or derived) and isinstance(target, ast.Attribute):
            if target.attr in ("weight", "bias"):
                return True
        if not isinstance(owner, Instance) or not isinstance(target, ast.Attribute):
            return False
        made = names_with(Trait.PARAMETER)
        for inner in (n for info in owner.cls.info.ancestry() for n in symbols.walk(info.node)):
            match inner:
                case ast.Assign(targets=[ast.Attribute(attr=name)], value=ast.Call(func=func)) if name == target.attr:
                    fact = self.ctx.fact(func)
                    return isinstance(fact, Qual) and fact.name in made and not fact.name.endswith("Buffer")
                case ast.Call(func=ast.Attribute(attr="register_parameter")) if parts := registration(inner):
                    if isinstance(parts[0], ast.Constant) and parts[0].value == target.attr:
                        return True
        return False


def _attributes_after(function: ast.AST, node: ast.stmt | None = None) -> set[str]:
    """Attributes that are read behind a statement of a function, or anywhere in it, as text."""
    return {
        ast.unparse(n)
        for n in symbols.walk(function)
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load) and _is_after(n, node)
    }


def _called_after(function: ast.AST, node: ast.stmt | None = None) -> set[str]:
    """Attributes that are called behind a statement, or anywhere, as text: a module reads its parameters then."""
    calls = (n for n in symbols.walk(function) if isinstance(n, ast.Call) and _is_after(n, node))
    called = {ast.unparse(n.func) for n in calls if isinstance(n.func, ast.Attribute)}
    return called | {"self" for text in called if text.startswith("super(")}


def _is_after(inner: ast.expr, node: ast.stmt | None) -> bool:
    return node is None or inner.lineno > (node.end_lineno or node.lineno)


def _owner(target: ast.expr) -> str:
    """The module that holds a parameter, as text."""
    return ast.unparse(target.value) if isinstance(target, ast.Attribute) else ""
