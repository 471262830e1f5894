"""A class of optimizers as the text of a function that is marked by its base: ``@Optimizer def Lion(learning_rate)``.

Its body is two functions of one parameter in PyTorch's words, which are translated as any others. Whoever calls the
class gives it the parameters first; the function takes none.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping

from t2j_lsp import symbols
from t2j_lsp.translate.source.text import Source

from .all_gradients import AllGradients, body_of, without_all_gradients
from .axes import AxesCheck
from .branches import made_at_first, without_continues
from .collecting import with_collecting_methods
from .constructor import RATE, read_constructor
from .exports import exported, is_listed
from .functions import Imported, KnownFunctions, nothing_imported
from .kept_values import computed_anew, kept_option
from .kernels import KernelsInStep
from .lines import Lines, dedented, indented, unparsed
from .second_values import with_own_names
from .step import OptimizerStepWriter
from .unfit import need
from .walks import read_walk

_OF_CHECKPOINTS = frozenset({"__setstate__", "__getstate__", "__repr__", "__str__"})
"""Methods that only pickles and prints of the class call."""
_OF_OPTIMIZERS = frozenset({"zero_grad", "add_param_group", "state_dict", "load_state_dict", "profile_hook_step"})
"""Methods that PyTorch's own optimizers have, which another one may stand for."""
_WIDTH = 100
NAMES = ("init_state", "update_parameter")
OF_ALL = "of_all_gradients"
"""The third function, of those that compute something of all gradients together."""
GRADIENTS = "grads"


def function_text(source: Source, node: ast.ClassDef, imported: Imported = nothing_imported) -> str:
    """The function that stands for a class; ``imported`` knows functions of other files. Raises Unfit."""
    methods = {s.name: s for s in node.body if isinstance(s, ast.FunctionDef)}
    others = [s for s in node.body if not isinstance(s, ast.FunctionDef) and not _is_text(s)]
    need(not others and not node.decorator_list and not node.keywords, "what the class holds", (others or [node])[0])
    need(len(node.bases) == 1, "its bases", node)
    for name in ("__init__", "step"):
        need(name in methods, f"it has no {name} of its own", node)
    functions = KnownFunctions.of(source, imported)
    kernels, collecting, shared = _with_kernels(methods, functions)
    walk = kernels.walk
    option, item = kept_option(walk.body, walk.group) or ("", "")
    if item:
        walk.body = computed_anew(walk.body, item)
    constructor = read_constructor(methods["__init__"], without=option)
    walk.body = with_own_names(without_continues(walk.body), walk.parameter, kernels.fresh)
    if constructor.loop is not None:
        walk.body[:0] = made_at_first(walk, constructor.loop)
    lines = Lines(source)
    known = _torch(source)
    torch = known or "torch"
    own = {n: m for n, m in methods.items() if n not in collecting and (shared is None or m is not shared.method)}
    helpers = _helpers(source, own, constructor.attributes)
    helpers += [unparsed(nested).split("\n") for nested in kernels.nested]
    taken = set(NAMES) | {n.id for n in symbols.walk(methods["__init__"]) if isinstance(n, ast.Name)}
    taken |= {a.arg for a in symbols.named_parameters(methods["__init__"])}
    step = OptimizerStepWriter(walk, constructor, lines, torch, taken, functions)
    if shared is not None:
        step.is_given(shared.variable)
    made = step.functions()
    check = AxesCheck(step.expressions, source, methods["step"], functions)
    check.check(made.initial)
    check.check(made.update)
    of_all: list[str] = []
    if shared is not None:
        need(GRADIENTS not in taken, f"a value has the name {GRADIENTS}", node)
        computed = body_of(shared, GRADIENTS, constructor.options, constructor.attributes)
        of_all = [line for s in computed for line in unparsed(s).split("\n")]
        check.check_all(of_all)
    base = ast.unparse(node.bases[0])
    head = _head(node.name, constructor.arguments)
    tensor = f"{torch}.Tensor"
    p, grad = made.parameter, made.gradient
    doc = _documented(source, node) or _documented(source, methods["__init__"])
    body = [*doc]
    for new, old in constructor.statements:
        body += [*(c for c in lines.above(old) if c), *unparsed_block(lines, new, old)]
    body += made.above
    for helper in helpers:
        body += ["", *helper]
    body += ["", f"def {NAMES[0]}({p}: {tensor}):", *indented(made.initial)]
    given = f"{p}: {tensor}, {grad}: {tensor}, state: dict[str, {tensor}]"
    made_of = NAMES[1]
    if shared is not None:
        given, made_of = f"{given}, {shared.variable}", f"({NAMES[1]}, {OF_ALL})"
    body += ["", f"def {NAMES[1]}({given}):", *indented(made.update)]
    if shared is not None:
        body += ["", f"def {OF_ALL}({GRADIENTS}: list[{tensor}]):", *indented(of_all)]
    body += ["", f"return {base}({NAMES[0]}, {made_of})"]
    return "\n".join([*([] if known else ["import torch", "", ""]), f"@{base}", *head, *indented(body)])


def _head(name: str, arguments: ast.arguments) -> list[str]:
    """The first lines of a function, one for each parameter where they don't fit into one."""
    line = f"def {name}({ast.unparse(arguments)}):"
    if len(line) <= _WIDTH:
        return [line]
    values = {a.arg: f"={unparsed(d)}" for a, d in symbols.defaults(arguments)}
    parts = []
    for one in symbols.named_parameters(ast.Lambda(arguments, ast.Constant(0))):
        said = f"{one.arg}: {unparsed(one.annotation)}" if one.annotation is not None else one.arg
        value = values.get(one.arg, "")
        parts.append(said + (f" = {value[1:]}" if value and one.annotation is not None else value))
    if arguments.kwonlyargs:
        parts.insert(len(arguments.args), "*")
    return [f"def {name}(", *(f"    {part}," for part in parts), "):"]


def _with_kernels(
    methods: Mapping[str, ast.FunctionDef], functions: KnownFunctions
) -> tuple[KernelsInStep, set[str], AllGradients | None]:
    """The step with the functions and methods in it that it hands lists to, and the names of these methods.

    The last is what it computes of all gradients together.
    """
    step, shared = without_all_gradients(methods["step"], methods)
    method, collecting = with_collecting_methods(step, methods)
    return KernelsInStep(read_walk(method), functions), collecting, shared


def unparsed_block(lines: Lines, new: ast.stmt, old: ast.stmt) -> list[str]:
    """The lines of a statement, which may hold others."""
    return "\n".join(lines.of(new, old)).split("\n")


def left_over(source: Source, texts: Mapping[ast.ClassDef, str]) -> list[ast.FunctionDef]:
    """The functions that some classes handed tensors to, where only these use them, and not what stands for them.

    One that a file exports has no other form: it writes into tensors of lists that it is handed.
    """
    functions = {s.name: s for s in source.tree.body if isinstance(s, ast.FunctionDef)}
    kept = {n.id for text in texts.values() for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
    listed = exported(source)
    gone: list[ast.ClassDef | ast.FunctionDef] = []
    waiting: set[str] = set()
    for node in texts:
        methods = {s.name: s for s in node.body if isinstance(s, ast.FunctionDef)}
        kernels = _with_kernels(methods, KnownFunctions(functions))[0]
        if kernels.inside:
            gone.append(node)
            kept |= {n for n, at in listed.items() if n not in kernels.given_lists or not is_listed(source, at)}
            waiting |= kernels.inside | functions.keys() & {n.id for n in symbols.walk(node) if isinstance(n, ast.Name)}
    while waiting:
        inside = {n for node in gone for n in symbols.walk(node)}
        name = waiting.pop()
        if name not in kept and all(n in inside for n in source.names.get(name, ())) and functions[name] not in gone:
            gone.append(functions[name])
            waiting |= functions.keys() & {n.id for n in symbols.walk(functions[name]) if isinstance(n, ast.Name)} - {
                name
            }
    return [node for node in gone if isinstance(node, ast.FunctionDef)]


def _is_of_base(method: ast.FunctionDef, name: str, source: Source) -> bool:
    """Whether a method only hands a checkpoint on to the base, or says of the class what nothing in the file asks."""
    calls = [n for n in symbols.walk(method) if isinstance(n, ast.Attribute) and symbols.is_super(n.value)]
    if name == "load_state_dict":
        return bool(calls) and all(n.attr == name for n in calls)
    said = [s for s in method.body if not _is_text(s)]
    asked = sum(isinstance(n, ast.Attribute) and n.attr == name for n in source.nodes)
    plain = len(said) == 1 and isinstance(said[0], ast.Return) and isinstance(said[0].value, ast.Constant)
    return plain and [ast.unparse(d) for d in method.decorator_list] == ["property"] and not asked


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Pass) or isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _documented(source: Source, node: ast.ClassDef | ast.FunctionDef) -> list[str]:
    """The lines of what documents a class or a method, at the margin."""
    if ast.get_docstring(node) is None:
        return []
    return dedented(source, node.body[0])


def _torch(source: Source) -> str:
    """The name under which the file has torch; "" where it has none."""
    for node in source.tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "torch":
                    return alias.asname or "torch"
    need("torch" not in source.symbols.names, "torch itself isn't imported", source.tree.body[0])
    return ""


def _helpers(source: Source, methods: dict[str, ast.FunctionDef], attributes: dict[str, str]) -> list[list[str]]:
    """Methods that a step calls and that know nothing of their optimizer, as functions.

    Those that it doesn't call are for whoever has an optimizer, where a call of one is a gap.
    """
    out = []
    for name, method in methods.items():
        if name in ("__init__", "step") or name in _OF_CHECKPOINTS or _is_of_base(method, name, source):
            continue
        new = copy.deepcopy(method)
        called = [n for n in symbols.walk(methods["step"]) if isinstance(n, ast.Attribute) and n.attr == name]
        if not called and not (name.startswith("__") or name in _OF_OPTIMIZERS):
            continue
        static = [ast.unparse(d) for d in new.decorator_list]
        need(static in ([], ["staticmethod"]), f"its method {name}", method)
        if not static:
            need(new.args.args and new.args.args[0].arg == "self", f"its method {name}", method)
            del new.args.args[0]
        new.decorator_list = []
        own = any(isinstance(n, ast.Name) and n.id in ("self", "super") for s in new.body for n in symbols.walk(s))
        need(called and not own, f"its method {name}", method)
        attributes[name] = name
        out.append(unparsed(new).split("\n"))
    return out


def signature_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    """What the class took that a function stands for, as PyTorch writes it; None for other functions."""
    match node:
        case ast.FunctionDef(
            decorator_list=[ast.Name() | ast.Attribute() as base],
            body=[
                *_,
                ast.Return(
                    value=ast.Call(
                        func=made, args=[ast.Name(id="init_state"), ast.Name(id="update_parameter") | ast.Tuple()]
                    )
                ),
            ],
        ) if ast.unparse(base) == ast.unparse(made):
            arguments = copy.deepcopy(node.args)
            for one in [*arguments.args, *arguments.kwonlyargs]:
                one.annotation = None
                one.arg = "lr" if one.arg == RATE else one.arg
            given = ast.unparse(arguments)
            return f"{node.name}({', '.join(part for part in ('params', given) if part)})"
    return None


def is_of_all_gradients(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function that stands for a class computes something of all gradients together."""
    return any(isinstance(s, ast.FunctionDef) and s.name == OF_ALL for s in node.body)
