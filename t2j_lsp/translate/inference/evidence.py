"""What the use of a parameter tells of it: a tensor, a size, a class of modules."""

from __future__ import annotations

import ast
import re

from t2j_lsp import symbols
from t2j_lsp.translate.rule.binding import bind
from t2j_lsp.translate.rule.definitions import Function, FunctionInfo, is_module_class
from t2j_lsp.translate.rule.facts import INT, NONE, TENSOR, UNKNOWN, AnyModule, Fact, ModuleClass, Tensor
from t2j_lsp.translate.rule.join import join_all, lambdas
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.record import REGISTRY
from t2j_lsp.translate.source.text import Source

from .forward_pass import State, UnknownParameter
from .module_states import MODULE_NAMES, evaluates_copy
from .repeated_sizes import RepeatedSizes

_SIZES = frozenset(
    {
        "in_features", "out_features", "in_channels", "out_channels", "num_embeddings", "embedding_dim", "num_features",
        "num_channels", "num_groups", "input_size", "hidden_size", "num_layers", "embed_dim", "num_heads", "d_model",
        "nhead", "dim_feedforward", "groups",
    }
)  # fmt: skip
"""Parameters of layers that take one int and nothing else."""

_SHAPES = frozenset(("normalized_shape",))
"""Those that take one int or several."""

_CLASS_NAME = re.compile(
    r"(^|_)(layer|block|norm|act|activation|conv|module)(_?(layer|block|cls|class|klass|fn|type))?$"
)


class ParameterEvidence:
    """Evidence of parameters; what is found makes the function be inferred again, knowing it."""

    def __init__(self, state: State, source: Source) -> None:
        self.state = state
        self.source = source
        self.repeated = RepeatedSizes(source, state.facts)

    def add(self, fact: Fact, kind: Fact = TENSOR) -> None:
        """The value was used where only a tensor can stand, or only another ``kind`` of value."""
        if not isinstance(fact, UnknownParameter):
            return
        self.state.body.weak.discard(fact.name)
        if isinstance(self.state.body.observed.get(fact.name), UnknownParameter | None):
            self.state.body.observed[fact.name] = kind

    def demanded(self, before: dict[str, Fact], after: dict[str, Fact]) -> None:
        """``if not torch.is_tensor(x): raise ...``: what the function goes on with is what it has to be given."""
        for name, fact in after.items():
            if isinstance(fact, Tensor):
                self.add(before.get(name, UNKNOWN))

    def add_weak(self, fact: UnknownParameter) -> None:
        """A method was called on the value that tensors have, but other objects may have too."""
        if not fact.foreign and fact.name not in self.state.body.observed:
            self.state.body.observed[fact.name] = TENSOR
            self.state.body.weak.add(fact.name)

    def runs(self, fact: Fact) -> None:
        """A module is called on the value: a tensor, unless methods that only others have are called on it, too."""
        if isinstance(fact, UnknownParameter):
            self.add_weak(fact)

    def copied(self, node: ast.Call, fact: Fact) -> Fact:
        """What a copy is: a module where a parameter that is called so is copied and told to evaluate."""
        if isinstance(fact, UnknownParameter) and fact.name in MODULE_NAMES and evaluates_copy(self.source, node):
            self.add(fact, AnyModule())
            return AnyModule()
        return fact

    def gives_tensor(self, node: ast.expr | None) -> None:
        """``torch.mean(x.var(axis=0))``: the method gives what only a tensor's gives, so ``x`` is one.

        So is the ``x`` of ``x.max(1)[1].type_as(y)``.
        """
        while True:
            match node:
                case ast.Call(func=ast.Attribute(value=inner, attr=name)):
                    if REGISTRY.get(f"torch.Tensor.{name}") is None:
                        return
                case ast.Subscript(
                    value=ast.Call(func=ast.Attribute(attr="max" | "min")) as inner, slice=ast.Constant()
                ):
                    pass
                case _:
                    break
            node = inner
        if node is not None:
            self.add(self.state.facts.get(node, UNKNOWN))

    def foreign(self, fact: UnknownParameter) -> None:
        """A method that tensors don't have was called on the value: it is a tensor only if something else says so."""
        if fact.name in self.state.body.weak or fact.name not in self.state.body.observed:
            self.state.body.weak.discard(fact.name)
            self.state.body.observed[fact.name] = UnknownParameter(fact.name, foreign=True)

    def indexed(self, owner: Fact, index: ast.expr) -> None:
        """``x[:, None]`` and ``x[..., 0]``: tensors, unless the file has other arrays too."""
        parts = index.elts if isinstance(index, ast.Tuple) else []
        compared = isinstance(owner, UnknownParameter) and (
            _compares(index, owner.name) or self.state.in_module() and isinstance(index, ast.Compare)
        )
        if not compared and not any(
            isinstance(p, ast.Slice) or isinstance(p, ast.Constant) and p.value in (None, ...) for p in parts
        ):
            return
        if isinstance(owner, UnknownParameter):
            if self.state.in_module() or not self.state.other_arrays:
                self.add(owner)

    def sizes(self, node: ast.Call, name: str) -> None:
        """``nn.Linear(dim, 4 * dim)``: dim is an int."""
        bound = bind(LAYERS[name].signature, node, None) or {}
        for parameter in bound.keys() & _SIZES:
            self.add(self.state.facts.get(bound[parameter][0], UNKNOWN), INT)
            self.repeated.is_size(bound[parameter][0])
        for parameter in bound.keys() & _SHAPES:
            self.repeated.may_be_size(bound[parameter][0])

    def passed(self, callee: FunctionInfo | None, node: ast.Call, skip: int) -> None:
        """An argument is what the callee's own use of its parameter tells."""
        if callee is None or not callee.learned:
            return
        names: list[str | None] = [a.arg for a in symbols.positional_parameters(callee.node)[skip:]]
        pairs = [*zip(names, node.args, strict=False), *((k.arg, k.value) for k in node.keywords)]
        for name, value in pairs:
            if name in callee.learned:
                self.add(self.state.facts.get(value, UNKNOWN), callee.learned[name])

    def given_class(self, facts: list[Fact]) -> Fact:
        """``norm_layer or nn.LayerNorm``: a class, whatever was passed."""
        for fact in facts:
            self.add(fact, ModuleClass())
        known = all(fact == NONE or is_module_class(fact, LAYERS) for fact in facts)
        return join_all(facts) if known else ModuleClass(frozenset().union(*map(lambdas, facts)))

    def default_given(self, test: ast.expr, before: dict[str, Fact], after: dict[str, Fact]) -> None:
        """``if norm is None: norm = nn.LayerNorm``: what is passed is of the same kind."""
        if (name := self._asked_for_none(test)) is None:
            return
        fact = after.get(name, UNKNOWN)
        if is_module_class(fact, LAYERS):
            self.add(before.get(name, UNKNOWN), ModuleClass())
        elif isinstance(fact, Tensor) and fact.sure:
            self.add(before.get(name, UNKNOWN))

    def _asked_for_none(self, test: ast.expr) -> str | None:
        """The ``x`` of ``x is None``, and of ``not exists(x)`` where a function of the user's asks for that."""
        match test:
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
                return name
            case ast.UnaryOp(op=ast.Not(), operand=ast.Call(func=asked, args=[ast.Name(id=name)], keywords=[])):
                fact = self.state.facts.get(asked)
                return name if isinstance(fact, Function) and _tells_whether_given(fact.info.node) else None
        return None

    def builds_by_name(self, function: UnknownParameter, node: ast.Call) -> bool:
        """``norm_layer(dim)`` in a module's constructor builds a layer, if nothing else is known of ``norm_layer``.

        So it does in a method that the constructor calls: ``self._make_stage(block, 64)``.
        """
        building = self.state.in_module() and self.state.function is not None and _constructs(self.state.function)
        return building and isinstance(node.func, ast.Name) and _CLASS_NAME.search(function.name) is not None


def _constructs(function: FunctionInfo) -> bool:
    """Whether it is a class's constructor, or a method that the constructor calls."""
    constructor = function.owner.method("__init__") if function.owner is not None else None
    if constructor is None or function is constructor:
        return function is constructor
    calls = (n.func for n in symbols.walk(constructor.node) if isinstance(n, ast.Call))
    return any(isinstance(f, ast.Attribute) and f.attr == function.name for f in calls)


def _tells_whether_given(function: ast.AST) -> bool:
    """``def exists(v): return v is not None``."""
    match function:
        case ast.FunctionDef(
            args=ast.arguments(args=[parameter]),
            body=[
                ast.Return(
                    value=ast.Compare(left=ast.Name(id=name), ops=[ast.IsNot()], comparators=[ast.Constant(value=None)])
                )
            ],
        ):
            return name == parameter.arg
    return False


def _compares(index: ast.expr, name: str) -> bool:
    """``x[x > 0]``: a mask of the value itself."""
    named = any(isinstance(n, ast.Name) and n.id == name for n in symbols.walk(index))
    return named and isinstance(index, ast.Compare) and not isinstance(index.ops[0], ast.In | ast.NotIn | ast.Is)
