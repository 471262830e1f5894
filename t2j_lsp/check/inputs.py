"""The arguments of a check: array specifications, the ``# t2j:`` comment that gives them, and drawing their values.

The comment stands above a class or function (or above its ``forward``), or on its first line::

    # t2j: args=(3, 64), kwargs={"bias": False}
    # t2j: x=f32[2, 3, 17, 19], mask=bool[2, 5], ids=0 <= i64[2, 7] < 100, sizes=[f32[2, 3], f32[2, 5]]
    # t2j: raises={"ids": 100 <= i64[2, 7] < 200}

``args`` and ``kwargs`` go to the constructor (of a class) and are Python expressions in the file's namespace. Every
other name is a parameter of ``forward`` or of the function: a dtype with a shape, with bounds where they matter; a
list, tuple or dict of these; or any other expression, taken as it is. ``raises`` gives other values of some of them,
for which the program raises an error, and so must its conversion (when it runs without ``jit``).
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .protocol import NdArray, Record

DTYPES = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "bool": "bool",
}  # fmt: skip
_MARK = "t2j:"
RAISING = "eval error"
"""How the names of observations begin that are made with inputs on which the program is to raise."""

BESIDE = "eval output (beside the stated lengths)"
"""An observation with other lengths than the user stated, which the converted program may refuse."""

OWN = "with the file's own optimizer"
"""Part of the names of what is observed when a module is trained as its file trains it."""
OWN_TRAINING = "the training with the file's own optimizer"
"""The phase of the JAX side that observes it."""
PUSH = 0.01
"""Every element of the gradients that show a schedule's later counts where no learning rate can be read."""
PULLS = (1.0, 0.1, 10.0, 0.01, 100.0, 1.0, 0.3, 3.0)
"""What the loss is multiplied by in turn where gradients are clipped: some are far above what they are clipped to and
some below, and an optimizer that divides by their size doesn't hide to what."""
METRICS = (*(5.0 - n for n in range(4)), *(1.5 for _ in range(40)), *(1.0 + n for n in range(40)))
"""What a schedule that watches a loss is told after the training: a loss that falls, stays, and rises."""


@dataclass(frozen=True)
class ArraySpec:
    """An array to draw: ``low`` inclusive, ``high`` exclusive for integers; bounds of floats scale the values."""

    dtype: str
    shape: tuple[int, ...]
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        short = next((s for s, long in DTYPES.items() if long == self.dtype), self.dtype)
        text = f"{short}[{', '.join(map(str, self.shape)) or '()'}]"
        if self.low is not None:
            text = f"{self.low:g} <= {text}"
        return text if self.high is None else f"{text} < {self.high:g}"


@dataclass(frozen=True)
class Code:
    """An expression to evaluate in the namespace of the checked file.

    ``converted`` is a module whose function ``value`` returns what the expression becomes in JAX; empty where nobody
    converted it.
    """

    text: str
    converted: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass
class Arguments:
    """Positional and keyword arguments. Values are plain data, `ArraySpec` or `Code`, in containers too.

    ``call`` is an expression that gives the positional arguments, for the torch side to evaluate.
    """

    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)
    call: str | None = None

    def to_plain(self) -> dict[str, Any]:
        kwargs = {k: _to_plain(v) for k, v in self.kwargs.items()}
        return {"args": [_to_plain(a) for a in self.args], "kwargs": kwargs, "call": self.call}

    @staticmethod
    def from_plain(data: dict[str, Any]) -> Arguments:
        kwargs = {k: _from_plain(v) for k, v in data["kwargs"].items()}
        return Arguments([_from_plain(a) for a in data["args"]], kwargs, data["call"])

    @property
    def code(self) -> list[str]:
        """The expressions among the values, which need the file's names."""
        lines: list[str] = [] if self.call is None else [self.call]
        map_values((self.args, self.kwargs), lambda v: lines.append(v.text) if isinstance(v, Code) else None)
        return lines

    def __str__(self) -> str:
        if self.call is not None:
            return f"*{self.call}"
        parts = [*map(_shown, self.args), *(f"{k}={_shown(v)}" for k, v in self.kwargs.items())]
        return ", ".join(parts)


def _shown(value: Any) -> str:
    """A value as a comment has it: ``[f32[3, 5], 2]``."""
    match value:
        case list():
            return f"[{', '.join(map(_shown, value))}]"
        case tuple():
            return f"({', '.join(map(_shown, value))}{',' * (len(value) == 1)})"
        case dict():
            return f"{{{', '.join(f'{k!r}: {_shown(v)}' for k, v in value.items())}}}"
    return str(value)


@dataclass
class InputPlan:
    """One way to build and call an object. ``inputs`` None means: find them out. ``source`` says where it is from.

    ``raising`` are inputs on which it is to raise an error; ``known`` are single arguments of inputs to find out, and
    ``several`` those of them that are lists of tensors.
    """

    init: Arguments
    inputs: Arguments | None
    source: str
    raising: list[Arguments] = field(default_factory=list)
    known: dict[str, Any] = field(default_factory=dict)
    several: list[str] = field(default_factory=list)

    def to_plain(self) -> dict[str, Any]:
        inputs = None if self.inputs is None else self.inputs.to_plain()
        raising = [a.to_plain() for a in self.raising]
        known = {name: _to_plain(value) for name, value in self.known.items()}
        plain = {"init": self.init.to_plain(), "inputs": inputs, "source": self.source, "raising": raising}
        return plain | {"known": known, "several": self.several}

    @staticmethod
    def from_plain(data: dict[str, Any]) -> InputPlan:
        inputs = None if data["inputs"] is None else Arguments.from_plain(data["inputs"])
        raising = [Arguments.from_plain(a) for a in data["raising"]]
        known = {name: _from_plain(value) for name, value in data["known"].items()}
        return InputPlan(Arguments.from_plain(data["init"]), inputs, data["source"], raising, known, data["several"])


def map_values(value: Any, leaf: Any) -> Any:
    """``leaf`` applied to everything in nested lists, tuples and dicts that is none of these."""
    if isinstance(value, list):
        return [map_values(v, leaf) for v in value]
    if isinstance(value, tuple):
        return tuple(map_values(v, leaf) for v in value)
    if isinstance(value, dict):
        return {k: map_values(v, leaf) for k, v in value.items()}
    return leaf(value)


def _to_plain(value: Any) -> Any:
    def leaf(item: Any) -> Any:
        if isinstance(item, ArraySpec):
            fields: dict[str, Any] = {
                "dtype": item.dtype,
                "shape": list(item.shape),
                "low": item.low,
                "high": item.high,
            }
            return Record("ArraySpec", fields)
        return Record("Code", {"text": item.text, "converted": item.converted}) if isinstance(item, Code) else item

    return map_values(value, leaf)


def _from_plain(value: Any) -> Any:
    def leaf(item: Any) -> Any:
        fields: dict[str, Any] = item.fields if isinstance(item, Record) else {}
        if isinstance(item, Record) and item.name == "ArraySpec":
            return ArraySpec(fields["dtype"], tuple(fields["shape"]), fields["low"], fields["high"])
        return Code(**fields) if isinstance(item, Record) and item.name == "Code" else item

    return map_values(value, leaf)


def converted_code(plain: Any, convert: Callable[[str], str]) -> Any:
    """Plain arguments in which expressions that name PyTorch have what they become in JAX."""

    def leaf(item: Any) -> Any:
        text = item.fields["text"] if isinstance(item, Record) and item.name == "Code" else None
        if not isinstance(text, str) or not _names_torch(text):
            return item
        return Record("Code", item.fields | {"converted": convert(text)})

    return map_values(plain, leaf)


def _names_torch(text: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id in ("torch", "nn", "F") for n in ast.walk(ast.parse(text)))


class CommentError(Exception):
    """A ``# t2j:`` comment can't be read."""


def parse_comment(text: str) -> dict[str, Any]:
    """The entries of one ``# t2j:`` comment, without its mark.

    >>> parse_comment("args=(3, 64), x=f32[2, 3], ids=i64[7] < 100")["x"]
    ArraySpec(dtype='float32', shape=(2, 3), low=None, high=None)
    """
    try:
        call = ast.parse(f"_({text.strip()})", mode="eval").body
    except SyntaxError as error:
        raise CommentError(f"`# t2j: {text.strip()}` can't be read: {error.msg}") from error
    if not isinstance(call, ast.Call) or call.args or any(k.arg is None for k in call.keywords):
        raise CommentError(f"`# t2j: {text.strip()}` should be entries like x=f32[2, 3, 17, 19]")
    return {str(k.arg): _entry(k.value) for k in call.keywords}


def _entry(node: ast.expr) -> Any:
    match node:
        case ast.List(elts=items):
            return [_entry(i) for i in items]
        case ast.Tuple(elts=items):
            return tuple(_entry(i) for i in items)
        case ast.Dict(keys=keys, values=values) if all(isinstance(k, ast.Constant) for k in keys):
            return {k.value: _entry(v) for k, v in zip(keys, values, strict=True) if isinstance(k, ast.Constant)}
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            return _bounded(node, [left, *comparators], ops)
    spec = _spec(node)
    if spec is not None:
        return spec
    try:
        return ast.literal_eval(node)
    except ValueError:
        return Code(ast.unparse(node))


def _spec(node: ast.expr) -> ArraySpec | None:
    match node:
        case ast.Name(id=name) if name in DTYPES and name != "bool":
            return ArraySpec(DTYPES[name], ())
        case ast.Subscript(value=ast.Name(id=name), slice=index) if name in DTYPES:
            try:
                shape = ast.literal_eval(index)
            except ValueError:
                return None
            shape = shape if isinstance(shape, tuple) else (shape,)
            return ArraySpec(DTYPES[name], shape) if all(isinstance(n, int) and n >= 0 for n in shape) else None
    return None


def _bounded(node: ast.Compare, parts: list[ast.expr], ops: list[ast.cmpop]) -> Any:
    specs = [_spec(p) for p in parts]
    at = next((i for i, s in enumerate(specs) if s is not None), None)
    if at is None:
        return Code(ast.unparse(node))
    spec = specs[at]
    low: float | None = None
    high: float | None = None
    for i, op in enumerate(ops):
        lower = i + 1 == at
        if not (lower or i == at):
            raise CommentError(f"`{ast.unparse(node)}` should be like 0 <= i64[2, 7] < 100")
        try:
            bound = ast.literal_eval(parts[i] if lower else parts[i + 1])
        except ValueError as error:
            raise CommentError(f"the bounds in `{ast.unparse(node)}` should be numbers") from error
        if lower and isinstance(op, ast.LtE):
            low = bound
        elif lower and isinstance(op, ast.Lt):
            low = bound + 1
        elif not lower and isinstance(op, ast.Lt):
            high = bound
        elif not lower and isinstance(op, ast.LtE):
            high = bound + 1
        else:
            raise CommentError(f"`{ast.unparse(node)}` should use < or <=")
    assert spec is not None
    return ArraySpec(spec.dtype, spec.shape, low, high)


def comments_for(text: str, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, Any]:
    """The entries of every ``# t2j:`` comment that belongs to a class or function."""
    marks = dict(_marks(text))
    entries: dict[str, Any] = {}
    spots: list[ast.stmt] = [node, *(s for s in node.body if isinstance(node, ast.ClassDef) and _is_forward(s))]
    for spot in spots:
        decorators = getattr(spot, "decorator_list", [])
        first = min([spot.lineno, *(d.lineno for d in decorators)])
        above = first - 1
        lines = text.splitlines()
        while above >= 1 and lines[above - 1].lstrip().startswith("#"):
            above -= 1
        body: list[ast.stmt] = getattr(spot, "body", [])
        last = body[0].lineno if body else spot.lineno
        for line in range(above + 1, last + 1):
            if line in marks:
                entries |= parse_comment(marks[line])
    return entries


def _is_forward(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.FunctionDef) and statement.name == "forward"


def _marks(text: str) -> Iterator[tuple[int, str]]:
    if _MARK not in text:
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            body = token.string.lstrip("#").strip()
            if body.startswith(_MARK):
                yield token.start[0], body[len(_MARK) :]


def draw(spec: ArraySpec, rng: np.random.Generator) -> NdArray:
    """Telling values for a specification, exactly representable in float32 (bfloat16 is drawn as float32).

    Floats are signed, with spread, and hold exact zeros and pairs of equal neighbours where there is room; integers
    cover their whole range, ends included, and repeat; booleans are both.
    """
    size = int(np.prod(spec.shape, dtype=np.int64))
    kind = np.dtype("float32" if spec.dtype == "bfloat16" else spec.dtype).kind
    if kind == "b":
        flat: NdArray = rng.random(size) < 0.6
        if size >= 2 and flat.all() == flat.any():
            flat[size // 2] = not flat[0]
    elif kind in "iu":
        low = 0 if spec.low is None else int(spec.low)
        high = (low + 8) if spec.high is None else int(spec.high)
        flat = rng.integers(low, max(high, low + 1), size)
        if size >= 4:
            flat[size // 2] = low
            flat[size // 2 - 1] = max(high - 1, low)
            flat[-1] = flat[0]
    else:
        flat = _floats(spec, size, rng)
        if kind == "c":
            flat = flat + 1j * _floats(spec, size, rng)
    dtype = "float32" if spec.dtype == "bfloat16" else spec.dtype
    return flat.reshape(spec.shape).astype(dtype)


def _floats(spec: ArraySpec, size: int, rng: np.random.Generator) -> NdArray:
    flat: NdArray = rng.standard_normal(size)
    if spec.low is not None or spec.high is not None:
        low = -1.0 if spec.low is None else spec.low
        high = low + 2.0 if spec.high is None else spec.high
        flat = rng.uniform(low, high, size)
    elif size >= 12:
        flat[rng.choice(size, max(1, size // 24), replace=False)] = 0.0
        spots = rng.choice(size - 1, max(1, size // 24), replace=False)
        flat[spots + 1] = flat[spots]
    return flat.astype(np.float32)
