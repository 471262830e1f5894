"""Where Python needs the value of an array: a number, a text, a size. It works eagerly, and fails under jit."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator, Mapping

from t2j_lsp import symbols
from t2j_lsp.translate.inference.forward_pass import dotted, is_known
from t2j_lsp.translate.inference.numpy_attributes import NUMPY, computes_of_unknown, computes_outside
from t2j_lsp.translate.inference.rngs import build_methods
from t2j_lsp.translate.rule.definitions import Function
from t2j_lsp.translate.rule.facts import ListOf, Tensor
from t2j_lsp.translate.rule.library import Trait, is_size, is_whole_number, names_with
from t2j_lsp.translate.rule.record import Argument, Rule

from .context import Context
from .tensor_code import TensorCode

_VALUE = "the value of an array is not known under jit, and this fails there"
_FORMAT = "the value of an array is not known under jit, and its format fails there: use jax.debug.print"
_SIZE = "what an array's values make this large fails under jit: give the size as a number, or use a mask"
_AXIS = "an axis that is an array's value is not known under jit, and this fails there: use range or whole numbers"
_AXES = re.compile(r"dims?[01]?")
_HELD = (
    "NNX hands what a module keeps to compiled code, NumPy's arrays too, and this fails there: compute with jax.numpy"
)
_OUTSIDE = "NumPy computes this from what the function is given, which fails under jit: compute with jax.numpy there"
_GLOBAL = "under jit a global keeps values of the trace that set it, and the next call fails on them: set it outside"
_HOST = frozenset({"cv2", "math", "numpy", "pandas", "scipy", "skimage", "sklearn"})
"""Libraries whose functions compute with values, and know nothing of tracing."""
_PERCENT = re.compile(r"%(?:\(\w+\))?[-+ #0]*[\d*]*(?:\.[\d*]+)?([a-zA-Z%])")
_NUMBERS = frozenset("diouxXeEfFgGc")


class KnownValues:
    """Notes on values that jit doesn't know, in code that is likely compiled."""

    def __init__(self, context: Context, code: TensorCode) -> None:
        self.ctx = context
        self.code = code

    def number(self, node: ast.Call, tensor: ast.expr | None) -> None:
        """``x.item()`` and ``int(x)``, as conditions on arrays do."""
        if tensor is not None and self._is_array(tensor):
            self._note(node, ast.unparse(node.func), _VALUE)

    def counted(self, node: ast.Call) -> None:
        """``range(1, n + 1)``, where ``n`` may be what ``lengths.max()`` gives."""
        noted = any(map(self._is_array, node.args)) or not self.code.is_traced
        if not noted and any(map(self._counts, node.args)):
            self._note(node, "range", _VALUE)

    def _counts(self, node: ast.expr) -> bool:
        if isinstance(node, ast.BinOp):
            return self._counts(node.left) or self._counts(node.right)
        return self._is_value(node) or self._is_given_as_value(node)

    def handed_out(self, node: ast.Call, name: str) -> None:
        """``linear_sum_assignment(cost)``, ``np.median(x)`` and ``math.sqrt(x)``: functions of other libraries."""
        if name.partition(".")[0] in _HOST or name.endswith(".from_dlpack"):
            self.number(node, next((a for a in node.args if self._is_array(a)), None))

    def held(self, node: ast.Call) -> None:
        """``np.cos(self.table)`` of an array of NumPy's, here or in the function of the file that is given it."""
        function, inference = self.code.function, self.ctx.inference
        if function is None or function.owner is None or not function.runs_in_module or not inference.has(NUMPY):
            return
        if computes_outside(node, inference.facts) and function.name not in build_methods(function.owner):
            self._note(node, ast.unparse(node.func), _HELD)

    def _of_numpy(self, node: ast.expr) -> None:
        """What NumPy computes of something that a caller gives; objects with methods of their own are not compiled."""
        function = self.code.function
        if function is None or function.owner is not None and not function.runs_in_module:
            return
        given = [self.code.origin(a) for a in node.args[:1]] if isinstance(node, ast.Call) else []
        if any(computes_of_unknown(a, self.ctx.inference.facts) for a in given):
            self._note(node, "numpy", _OUTSIDE)

    def text(self, node: ast.expr) -> None:
        """``f"{x:.3f}"``, ``"{:.3f}".format(x)``, ``format(x, ".3f")`` and ``"%.3f" % x``, and no ``f"{x}"``."""
        if any(map(self._is_array, _formatted(node))):
            self._note(node, "format", _FORMAT)

    def asked(self, node: ast.expr, rule: Rule, arguments: Mapping[str, Argument]) -> None:
        """``torch.arange(lengths.max())``, ``torch.from_numpy(np.pad(x, 1))``."""
        if any(rule.name in names_with(trait) for trait in (Trait.FROM_VALUES, Trait.FROM_NUMPY)):
            self._of_numpy(node)
        if any(_AXES.fullmatch(name) and self._is_axis(arguments[name]) for name in arguments):
            self._note(node, rule.name, _AXIS)
        for stated, reason in ((is_size, _SIZE), (is_whole_number, _VALUE)):
            named = [name for name in arguments if stated(name, rule.name)]
            if any(self._makes_size(part) for name in named for part in _parts(arguments[name])):
                self._note(node, rule.name, reason)

    def kept(self, node: ast.Assign) -> bool:
        """``global table; table = make(n)``: what is kept is of the trace that it was made in. Nothing is rewritten."""
        function, value = self.code.function, node.value
        if function is None or not isinstance(value, ast.Call) or not isinstance(node.targets[0], ast.Name):
            return False
        outer = {name for n in symbols.walk(function.node) if isinstance(n, ast.Global) for name in n.names}
        if node.targets[0].id in outer and self.code.is_traced and self._makes_arrays(value):
            self._note(node, "global", _GLOBAL)
        return False

    def _makes_arrays(self, call: ast.Call) -> bool:
        """Whether a call gives an array, or what a function of the file makes of some."""
        called = self.ctx.fact(call.func)
        if isinstance(called, Function) and not called.info.external:
            return any(isinstance(self.ctx.inference.facts.get(n), Tensor) for n in symbols.walk(called.info.node))
        return isinstance(self.ctx.fact(call), Tensor)

    def bound(self, node: ast.expr | None) -> bool:
        """Whether a size or a bound is an array's value, or may be one."""
        return node is not None and (self._is_value(node) or self._is_one_of(node) or self._is_given_as_value(node))

    def _is_value(self, node: ast.expr) -> bool:
        """``lengths.max() if n is None else n`` and ``n or lengths.max()`` as well."""
        match node:
            case ast.IfExp(body=one, orelse=other):
                return self._is_value(one) or self._is_value(other)
            case ast.BoolOp(values=values):
                return any(map(self._is_value, values))
            case ast.BinOp(left=one, right=other):
                return isinstance(self.ctx.fact(node), Tensor) or self._is_value(one) or self._is_value(other)
        return isinstance(self.ctx.fact(node), Tensor)

    def _is_given_as_value(self, node: ast.expr) -> bool:
        """Whether a name is given an array's value somewhere: ``if n is None: n = lengths.max()``."""
        function = self.code.function
        if function is None or not isinstance(node, ast.Name) or is_known(self.ctx.fact(node)):
            return False
        return any(
            isinstance(n, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == node.id for t in n.targets)
            and self._is_value(n.value)
            for n in symbols.walk(function.node)
        )

    def _makes_size(self, node: ast.expr) -> bool:
        return self.code.is_traced and self.bound(node)

    def _is_axis(self, argument: Argument) -> bool:
        """Whether an axis, or one of several, is an array's value: of ``*torch.arange(x.ndim)``, ``list(order)``."""
        if not self.code.is_traced:
            return False
        nodes = [part.value if isinstance(part, ast.Starred) else part for part in _parts(argument)]
        nodes += [a for n in nodes if isinstance(n, ast.Call) and dotted(n.func) in ("list", "tuple") for a in n.args]
        facts = map(self.ctx.fact, nodes)
        return any(isinstance(f.item if isinstance(f, ListOf) else f, Tensor) for f in facts)

    def _is_one_of(self, node: ast.expr) -> bool:
        """Whether it is one of what isn't known to be no tensor, for each of something: ``lengths[b]`` in a loop."""
        match node:
            case ast.Subscript(ast.Name() as held, ast.Name(index)) if not is_known(self.ctx.fact(held)):
                function = self.code.function
                around = symbols.walk(function.node) if function is not None else ()
                return any(isinstance(n, ast.For) and index in _names(n.target) for n in around)
        return False

    def _is_array(self, node: ast.expr) -> bool:
        either = [node.body, node.orelse] if isinstance(node, ast.IfExp) else [node]
        return self.code.is_traced and any(map(self.code.may_be_tensor, either))

    def _note(self, node: ast.expr | ast.stmt, name: str, reason: str) -> None:
        self.ctx.report.note(node, name, "value-needed", reason)


def _names(target: ast.expr) -> set[str]:
    return {n.id for n in symbols.walk(target) if isinstance(n, ast.Name)}


def _parts(argument: Argument) -> Iterator[ast.expr]:
    """The single sizes of an argument: those of ``*size`` and of a tuple."""
    for one in argument.items or (argument,):
        match one.node:
            case ast.Tuple(elts=items) | ast.List(elts=items):
                yield from items
            case ast.expr() as node:
                yield node


def _formatted(node: ast.expr) -> Iterator[ast.expr]:
    """What is written in a format of its own."""
    match node:
        case ast.JoinedStr(values=values):
            for value in values:
                if isinstance(value, ast.FormattedValue) and value.format_spec is not None and value.conversion < 0:
                    yield value.value
        case ast.Call(ast.Name("format"), [value, _]):
            yield value
        case ast.Call(ast.Attribute(ast.Constant(str(text)), "format"), args):
            yield from _by_fields(text, args, {k.arg: k.value for k in node.keywords if k.arg is not None})
        case ast.BinOp(ast.Constant(str(text)), ast.Mod(), right):
            kinds = [kind for kind in _PERCENT.findall(text) if kind != "%"]
            given = right.elts if isinstance(right, ast.Tuple) else [right]
            yield from (value for kind, value in zip(kinds, given, strict=False) if kind in _NUMBERS)


def _by_fields(text: str, args: list[ast.expr], named: Mapping[str, ast.expr]) -> Iterator[ast.expr]:
    """The arguments of ``str.format`` whose fields have a specification."""
    try:
        fields = [field[1:] for field in string.Formatter().parse(text) if field[1] is not None]
    except ValueError:
        return
    for place, (name, spec, conversion) in enumerate(fields):
        if spec and not conversion:
            at = place if not name else int(name) if name.isdigit() else None
            value = named.get(name or "") if at is None else args[at] if at < len(args) else None
            if value is not None:
                yield value
