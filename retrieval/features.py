"""What fixed bugs and questions are compared by: names of torch and JAX, the structure of code, words of an error."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

_ROOTS = {
    "nn": "torch.nn", "F": "torch.nn.functional", "jnp": "jax.numpy", "np": "numpy", "lax": "jax.lax",
    "optim": "torch.optim", "random": "jax.random",
}  # fmt: skip
"""The usual aliases; any other is read off the imports."""
_SAME = {
    "dim": "axis", "dims": "axis", "keepdim": "keepdims", "cat": "concatenate", "concat": "concatenate",
    "eps": "epsilon", "smooth_l1_loss": "huber_loss", "layer_norm": "LayerNorm", "negative_slope": "slope",
    "size": "shape", "view": "reshape", "unsqueeze": "expand_dims", "permute": "transpose", "transpose": "swapaxes",
    "moveaxis": "permute", "masked_fill": "where", "clamp": "clip", "detach": "stop_gradient", "randn_like": "normal",
    "randn": "normal", "rand": "uniform", "rand_like": "uniform", "pow": "**", "mT": "T", "t": "T", "Conv1d": "Conv",
    "Conv2d": "Conv", "Conv3d": "Conv", "Embedding": "Embed", "ModuleList": "List", "Parameter": "Param",
    "padding_idx": "padding", "stride": "strides", "bias": "use_bias", "forward": "__call__", "to": "astype",
    "float": "astype", "long": "astype", "matmul": "@", "bmm": "@", "mm": "@", "amax": "max", "amin": "min",
    "gather": "take_along_axis", "chunk": "split", "SGD": "sgd", "Adam": "adam", "AdamW": "adamw",
    "cross_entropy": "softmax_cross_entropy_with_integer_labels",
    "binary_cross_entropy_with_logits": "sigmoid_binary_cross_entropy", "repeat": "tile", "scatter_add": "add",
    "index_add": "add", "BatchNorm1d": "BatchNorm", "BatchNorm2d": "BatchNorm", "max_pool2d": "max_pool",
    "avg_pool2d": "avg_pool", "unbiased": "ddof", "correction": "ddof", "betas": "b1", "T_max": "decay_steps",
}  # fmt: skip
"""Words of PyTorch, and words of JAX that mean the same."""
_NUMBER = re.compile(r"(?<![A-Za-z_])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_DIFFERS = re.compile(r"([a-z][\w \[\].]*?) differs by ([\d.e+-]+) of its scale")
_LACKS = re.compile(r"has no attribute '?(\w+)")
_ELEMENTWISE = frozenset({"exp", "log", "sqrt", "sin", "cos", "tan", "tanh", "abs", "floor", "sigmoid", "relu"})
_WORD = re.compile(r"[A-Za-z_][\w.]*[\w]|[A-Za-z]")


def names(code: str) -> list[str]:
    """Every dotted name that is called or read, under its full name; methods of values as ``.name``."""
    tree = parse(code)
    if tree is None:
        return _WORD.findall(code)
    aliases = dict(_ROOTS) | dict(_imports(tree))
    collected = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            dotted = _dotted(node)
            root = dotted.split(".")[0] if dotted else ""
            known = aliases.get(root, root if root in ("torch", "jax", "flax", "optax", "nnx") else "")
            collected.append(known + dotted[len(root) :] if known else f".{node.attr}")
        elif isinstance(node, ast.Name) and node.id in aliases:
            collected.append(aliases[node.id])
    return collected


def structure(code: str) -> list[str]:
    """The shape of the code: what stands in what, decorators, keywords of calls, operators."""
    tree = parse(code)
    if tree is None:
        return ["unparsable"]
    parts: list[str] = []
    for node in ast.walk(tree):
        kind = type(node).__name__
        parts += [f"{kind}_{type(child).__name__}" for child in ast.iter_child_nodes(node) if _tells(child)]
        match node:
            case ast.Call(func=function, keywords=keywords):
                last = (_dotted(function) or "call").split(".")[-1]
                parts += [f"{last}_{k.arg or 'star'}" for k in keywords]
                parts.append(f"{last}_{len(node.args)}")
            case ast.FunctionDef(decorator_list=decorators) | ast.ClassDef(decorator_list=decorators):
                parts += [f"decorated_{_dotted(d) or type(d).__name__}" for d in decorators]
            case ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.UnaryOp(op=op):
                parts.append(f"{kind}_{type(op).__name__}")
            case _:
                pass
    return parts


def differences(first: str, second: str) -> list[str]:
    """What the second piece of code has and the first has not (``plus``), and the other way round (``minus``).

    Words of PyTorch and JAX that mean the same are one: a right translation has few differences from its source, and an
    error stands out among them.
    """
    before, after = vocabulary(first), vocabulary(second)
    return [f"plus {word}" for word in sorted(after - before)] + [f"minus {word}" for word in sorted(before - after)]


def vocabulary(code: str) -> set[str]:
    """What code calls, with which keywords and which kinds of arguments; what it returns and assigns; its operators."""
    tree = parse(code)
    if tree is None:
        return set(_WORD.findall(code))
    words: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=function, args=arguments, keywords=keywords):
                name = same(_last(function))
                words |= {name, f"{name}({','.join(sorted(same(k.arg or '*') for k in keywords))})"}
                words.add(f"{name}:{','.join(_kind(a) for a in arguments)}")
                words |= {f"{name}.{same(k.arg or '*')}={_kind(k.value)}" for k in keywords}
                words |= {f"{name}@{i}={a.value!r}" for i, a in enumerate(arguments) if isinstance(a, ast.Constant)}
            case ast.Attribute(attr=name):
                words.add(same(name))
            case ast.Return(value=ast.expr() as value):
                words.add(f"return {_kind(value)}")
            case ast.Assign(targets=[target], value=value):
                words |= {f"{_kind(target)} = {_kind(value)}", f"{type(target).__name__} = {type(value).__name__}"}
                words |= {"_ =" for n in ast.walk(target) if isinstance(n, ast.Name) and n.id == "_"}
            case ast.AugAssign(target=target, op=op):
                words.add(f"{_kind(target)} {type(op).__name__}=")
            case ast.BinOp(left=left, op=op, right=right):
                words.add(f"{_kind(left)} {type(op).__name__} {_kind(right)}")
            case ast.UnaryOp(op=op, operand=operand):
                words.add(f"{type(op).__name__} {_kind(operand)}")
            case ast.If(test=test) | ast.IfExp(test=test):
                words.add(f"if {_kind(test)}")
            case ast.For(iter=items):
                words.add(f"for in {_kind(items)}")
            case ast.Subscript(value=value, slice=index):
                words.add(f"{_kind(value)}[{_kind(index)}]")
            case ast.Expr(value=value):
                words.add(f"statement {_kind(value)}")
            case ast.FunctionDef(args=arguments, decorator_list=decorators):
                words |= {f"decorated {same(_last(d))}" for d in decorators}
                words.add(f"def/{len(arguments.args)}")
            case _:
                pass
    return words


def _kind(node: ast.expr) -> str:
    """What an expression is, in a word or two: a constant by its value, a call by its name."""
    match node:
        case ast.Constant(value=value):
            return repr(value)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)):
            return f"-{value!r}"
        case ast.Call(func=function):
            return f"{same(_last(function))}()"
        case ast.Name() | ast.Attribute():
            return "name"
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return f"({','.join(_kind(e) for e in elements)})"
        case _:
            return type(node).__name__


def _last(node: ast.expr) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case ast.Call(func=function):
            return _last(function)
        case _:
            return type(node).__name__


def same(name: str) -> str:
    """One word for what PyTorch and JAX call by two."""
    return _SAME.get(name, name)


def defined(code: str) -> frozenset[str]:
    """The names of the classes and functions that a program defines at its top."""
    tree = parse(code)
    return (
        frozenset(n.name for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef)) if tree else frozenset()
    )


def message(error: str) -> list[str]:
    """The words of an error message, its numbers all alike; of a difference in values, what differs and how much."""
    if match := _DIFFERS.search(error):
        magnitude = math.floor(math.log10(float(match[2]))) if float(match[2]) > 0 else 0
        return [
            *_WORD.findall(error[: match.start()]),
            *_WORD.findall(match[1]),
            f"differs{max(-12, min(magnitude, 1))}",
        ]
    words = _WORD.findall(_NUMBER.sub(" N ", error))
    if (lacking := _LACKS.search(error)) and lacking[1] in _ELEMENTWISE:
        words.append("lacks elementwise function")
    return words


def parse(code: str) -> ast.Module | None:
    """The tree of a program or of some lines of one, however far they are indented; None where it is no Python."""
    lines = code.strip("\n").split("\n")
    margin = len(lines[0]) - len(lines[0].lstrip())
    for text in (code, "\n".join(line[margin:] for line in lines), _closed("\n".join(line[margin:] for line in lines))):
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError):
            continue
    return None


def _closed(lines: str) -> str:
    """Lines that end in the middle of a compound statement, with a body."""
    return lines.rstrip() + (" pass" if lines.rstrip().endswith(":") else "")


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (top, top)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((a.asname or a.name, f"{node.module}.{a.name}") for a in node.names)


def _dotted(node: ast.expr) -> str:
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


_TELLING = (
    ast.stmt, ast.Call, ast.BinOp, ast.Subscript, ast.Lambda, ast.Compare, ast.IfExp, ast.comprehension,
)  # fmt: skip


def _tells(node: ast.AST) -> bool:
    return isinstance(node, _TELLING)
