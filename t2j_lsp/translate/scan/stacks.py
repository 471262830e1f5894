"""Lists of layers that are alike, and why one is no stack: what PyTorch does with a list can't be done with a stack."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from t2j_lsp import symbols
from t2j_lsp.symbols import FunctionNode, ancestors, function_around
from t2j_lsp.translate.expressions.walk_order import WALKING
from t2j_lsp.translate.inference.call_sites import called_function
from t2j_lsp.translate.inference.file import Inference
from t2j_lsp.translate.inference.forward_pass import CONTAINERS
from t2j_lsp.translate.inference.host_random import method_called
from t2j_lsp.translate.rule.definitions import ClassInfo, FunctionInfo, Instance, is_module
from t2j_lsp.translate.rule.facts import AnyModule, Fact, Layer, Object, Qual
from t2j_lsp.translate.rule.library import Trait, names_with
from t2j_lsp.translate.training.program.cut_values import GROWING
from t2j_lsp.translate.training.program.step_calls import Reader
from t2j_lsp.translate.training.steps.jittable import Jittable

from .arguments import differs, is_stateless, may_be_shared
from .shapes import KeptShapes

COUNT = "stacked_layers"
"""The attribute in which a stack says how many layers it holds (`t2j_lsp.weights.stacks`)."""
_FROM_OUTSIDE = frozenset({"apply", "get_parameter", "get_submodule", "register_parametrization"})
_SIZES = frozenset({"numel", "nelement"})


class NotAStack(Exception):
    """Why a list stays as it is."""


@dataclass
class Stack:
    """A list of layers that becomes one layer: where it is made, and where it is run."""

    info: ClassInfo
    name: str
    made: ast.Assign
    layer: ast.Call
    """The constructor call of each layer."""
    count: ast.expr
    loops: list[ast.For]
    calls: list[ast.Call]
    """Calls of an ``nn.Sequential`` of them."""


class Stacks:
    """Finds the stacks of one file."""

    def __init__(self, inference: Inference) -> None:
        self.inference = inference
        self.parents = inference.source.parents
        self.shapes = KeptShapes(inference)
        self.jittable = Jittable(inference, Reader(inference), (), {})

    def candidates(self) -> Iterator[tuple[ClassInfo, ast.Assign]]:
        """Where attributes of modules get lists that a comprehension fills."""
        for info in self.inference.classes.values():
            init = info.methods.get("__init__")
            if not info.is_module or init is None or info.external:
                continue
            for node in symbols.walk(init.node):
                match node:
                    case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"))], value=ast.Call() as call):
                        if self._comprehension(call) is not None:
                            yield info, node

    def _comprehension(self, call: ast.Call) -> ast.ListComp | ast.GeneratorExp | None:
        fact = self.inference.fact(call)
        if not isinstance(fact, Layer) or fact.node is not call or len(call.args) != 1 or call.keywords:
            return None
        match fact.name, call.args[0]:
            case name, ast.ListComp() | ast.GeneratorExp() as filled if name == CONTAINERS[1]:
                return filled
            case name, ast.Starred(value=ast.ListComp() | ast.GeneratorExp() as filled) if name == CONTAINERS[0]:
                return filled
        return None

    def stack(self, info: ClassInfo, made: ast.Assign) -> Stack:
        """The list as a stack. Raises NotAStack with the reason where it can't be one."""
        assert isinstance(made.targets[0], ast.Attribute) and isinstance(made.value, ast.Call)
        name, filled = made.targets[0].attr, self._comprehension(made.value)
        assert filled is not None
        layer, count = self._alike(filled)
        self._check_file(name)
        stack = Stack(info, name, made, layer, count, [], [])
        self._check_layer(stack)
        self._find_uses(stack)
        return stack

    # --- how it is filled -----------------------------------------------------------------------------------------

    def _alike(self, filled: ast.ListComp | ast.GeneratorExp) -> tuple[ast.Call, ast.expr]:
        match filled.generators:
            case [
                ast.comprehension(
                    target=ast.Name(id=index),
                    iter=ast.Call(func=ast.Name(id="range"), args=[count], keywords=[]),
                    ifs=[],
                )
            ]:
                pass
            case _:
                raise NotAStack("its layers are not counted by range(n)")
        layer = filled.elt
        if not isinstance(layer, ast.Call):
            raise NotAStack("its layers are not made where it is filled")
        if any(isinstance(n, ast.Name) and n.id == index for n in symbols.walk(layer)):
            raise NotAStack(f"its layers are made with the index {index}, so they are not alike")
        if differs(count) or isinstance(count, ast.Constant) and (not isinstance(count.value, int) or count.value < 2):
            raise NotAStack("it isn't sure how many layers it has")
        return layer, count

    def _check_layer(self, stack: Stack) -> None:
        fact = self.inference.fact(stack.layer)
        text = ast.unparse(stack.layer.func)
        if isinstance(fact, Instance) and fact.cls.info.external:
            raise NotAStack(f"{text} is a class of another file")
        if not isinstance(fact, Instance) or not fact.cls.info.is_module:
            if not isinstance(fact, Layer) or fact.node is not stack.layer:
                raise NotAStack(f"it isn't sure what {text} makes")
        for argument in [*stack.layer.args, *(k.value for k in stack.layer.keywords)]:
            if differs(argument) and not is_stateless(self.inference.fact(argument)):
                raise NotAStack(f"the argument {ast.unparse(argument)} may be another one for each layer")
        shared = may_be_shared(self.inference, stack.layer)
        if shared is not None:
            raise NotAStack(f"its layers may share the module {shared}")
        for info in self._run_by(fact):
            if info.external:
                raise NotAStack(f"{info.name} is in another file")
            for node in symbols.walk(info.node):
                self._check_acts(info.name, node)
            problem = self.jittable.function_problem(info)
            if problem is not None:
                raise NotAStack(f"a scan traces its layers once: {problem}")

    def _run_by(self, called: Fact) -> list[FunctionInfo]:
        """The functions of the file that a call of a module runs."""
        seen: dict[FunctionInfo, None] = {}
        modules, functions = [called], list[FunctionInfo]()
        while modules or functions:
            while modules:
                match modules.pop():
                    case Instance(cls=cls):
                        forward = cls.info.method("__call__" if cls.info.has_own_call else "forward")
                        if forward is None:
                            raise NotAStack(f"what {cls.info.name} does is not in sight")
                        functions.append(forward)
                    case Layer(items=tuple() as items):
                        modules += items
                    case Layer(name=name) if name in CONTAINERS:
                        raise NotAStack("its layers hold modules that are not known")
                    case AnyModule():
                        raise NotAStack("its layers call modules that are not known")
            if functions and (info := functions.pop()) not in seen:
                seen[info] = None
                for call in (n for n in symbols.walk(info.node) if isinstance(n, ast.Call)):
                    fact = self.inference.fact(call.func)
                    if is_module(fact):
                        modules.append(fact)
                    elif (function := called_function(fact) or method_called(call, self.inference.facts)) is not None:
                        functions.append(function)
        return list(seen)

    @staticmethod
    def _check_acts(name: str, node: ast.AST) -> None:
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()):
                raise NotAStack(f"{name} assigns {ast.unparse(node)}, and a stack has it once for all layers")
            case ast.Call(func=ast.Attribute(value=ast.Attribute() as held, attr=attr)) if attr in GROWING:
                raise NotAStack(f"{name} adds to {ast.unparse(held)}, and a stack has it once for all layers")

    # --- what the rest of the file does with it -------------------------------------------------------------------

    def _check_file(self, name: str) -> None:
        """What walks over parameters would find stacks."""
        if self.inference.state.uses.hooks_any:
            raise NotAStack("the file gives modules hooks, and a stack has none for each layer")
        if COUNT in self.inference.source.words:
            raise NotAStack(f"the file has a {COUNT} of its own")
        for node in self.inference.source.nodes:
            match node:
                case ast.Call(func=ast.Attribute(value=owner, attr=method)) if method in WALKING | _FROM_OUTSIDE:
                    fact = self.inference.fact(owner)
                    if not isinstance(fact, Qual) and not self._walks_alike(node, method):
                        walked = f"{ast.unparse(node.func)}()"
                        raise NotAStack(
                            f"{walked} looks at parts one by one, and would find those of all layers in one"
                        )
                case ast.Constant(value=str() as text) if text == name or text.startswith(f"{name}."):
                    raise NotAStack(f"the file speaks of {text!r}")

    def _walks_alike(self, node: ast.Call, method: str) -> bool:
        """Whether a walk doesn't mind that layers come as one: for an optimizer, to clip, to count elements."""
        if method != "parameters":
            return False
        match self.parents.get(node):
            case ast.Call() as call:
                fact = self.inference.fact(call.func)
                clips = names_with(Trait.CLIPS_NORM) | names_with(Trait.CLIPS_VALUE)
                optimizes = isinstance(made := self.inference.fact(call), Object) and made.kind == "optimizer"
                return optimizes or isinstance(fact, Qual) and fact.name in clips
            case ast.comprehension() as part:
                match self.parents.get(part):
                    case (
                        ast.GeneratorExp(elt=ast.Call(func=ast.Attribute(attr=size)))
                        | ast.ListComp(elt=ast.Call(func=ast.Attribute(attr=size)))
                    ):
                        return size in _SIZES
        return False

    def _find_uses(self, stack: Stack) -> None:
        for node in self.inference.source.nodes:
            if isinstance(node, ast.Attribute) and node.attr == stack.name and node is not stack.made.targets[0]:
                if self._is_about(node, stack):
                    self._use(node, stack)
        if not stack.loops and not stack.calls:
            raise NotAStack("nothing runs its layers one behind the other")

    def _is_about(self, node: ast.Attribute, stack: Stack) -> bool:
        """Whether an attribute of this name may be the list: not that of a class which has nothing to do with it."""
        owner = self.inference.fact(node.value)
        if isinstance(owner, Instance):
            return owner.cls.info in stack.info.ancestry() or stack.info in owner.cls.info.ancestry()
        return not isinstance(owner, Qual | Object)

    def _use(self, node: ast.Attribute, stack: Stack) -> None:
        parent = self.parents.get(node)
        function = function_around(node, self.parents)
        own = isinstance(node.value, ast.Name) and node.value.id == "self"
        if not own or function not in [m.node for m in stack.info.methods.values()] or function.name == "__init__":
            raise NotAStack(f"{ast.unparse(node)} is used outside of the methods of {stack.info.name}")
        if any(isinstance(at, ast.With | ast.AsyncWith) for at in ancestors(node, self.parents)):
            raise NotAStack("its layers run in a with statement")
        match parent:
            case ast.For(iter=walked) if walked is node:
                self._check_loop(parent, function, stack)
                stack.loops.append(parent)
            case ast.Call(func=called, args=[argument], keywords=[]) if called is node:
                if isinstance(argument, ast.Starred) or not self.shapes.of_module(self._layer(stack)):
                    raise NotAStack(self._unsure(stack))
                stack.calls.append(parent)
            case _:
                raise NotAStack(f"{ast.unparse(node)} is used for more than running its layers one behind the other")

    def _reads_last(self, node: ast.Name) -> bool:
        """Whether a name is read that no loop around binds."""
        around = ancestors(node, self.parents)
        targets = (at.target for at in around if isinstance(at, ast.For | ast.comprehension))
        bound = any(isinstance(n, ast.Name) and n.id == node.id for target in targets for n in symbols.walk(target))
        return isinstance(node.ctx, ast.Load) and not bound

    def _layer(self, stack: Stack) -> Fact:
        return self.inference.fact(stack.layer)

    def _unsure(self, stack: Stack) -> str:
        made = ast.unparse(stack.layer.func)
        return f"it isn't sure that {made} gives an array of the shape that it is given, as a scan has to"

    def _check_loop(self, loop: ast.For, function: FunctionNode, stack: Stack) -> None:
        match loop:
            case ast.For(
                target=ast.Name(id=layer),
                body=[ast.Assign(targets=[ast.Name(id=carried)], value=value)],
                orelse=[],
            ) if layer != carried:
                pass
            case _:
                raise NotAStack("its loop does more than to hand one array from layer to layer")
        if any(isinstance(n, ast.Name) and n.id == layer and self._reads_last(n) for n in symbols.walk(function)):
            raise NotAStack(f"{layer} is read outside of the loop")
        runs = 0
        for node in symbols.walk(value):
            match node:
                case ast.Call(func=ast.Name(id=called), args=[ast.Name(id=first), *_]) if called == layer:
                    runs += 1
                    if first != carried:
                        raise NotAStack("a layer isn't given what the loop carries")
                case ast.Call(func=func):
                    fact = self.inference.fact(func)
                    if not isinstance(fact, Qual) or fact.name not in names_with(Trait.ELEMENTWISE):
                        raise NotAStack(f"its loop calls {ast.unparse(func)}, too")
                case ast.Attribute() if is_module(self.inference.fact(node)):
                    raise NotAStack(f"its loop hands {ast.unparse(node)} to each layer")
                case ast.Subscript() | ast.NamedExpr() | ast.Starred() | ast.Lambda() | ast.Await():
                    raise NotAStack("its loop does more than to hand one array from layer to layer")
        if runs != 1 or sum(isinstance(n, ast.Name) and n.id == layer for n in symbols.walk(value)) != 1:
            raise NotAStack("its loop does more than to run each layer once")
        if not self.shapes.of_value(value, frozenset({carried})):
            raise NotAStack(self._unsure(stack))
