"""What t2j knows of one torch name: the rule's own record, under whichever spelling the user writes."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator, Mapping

from t2j_lsp.contract import FIDELITY_TEXT, Fidelity, HelperDoc, RuleDoc
from t2j_lsp.plugins import load_rules
from t2j_lsp.translate import translate
from t2j_lsp.translate.expressions.module_refusals import REFUSED, REFUSED_OF_LAYERS
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import ATTRIBUTES, CLASSES, TorchClass
from t2j_lsp.translate.rule.names import canonical
from t2j_lsp.translate.rule.record import DESCRIBED, REGISTRY, STOCK, parse_signature
from t2j_lsp.translate.source.helpers import Helper, helpers

_PREFIXES = {
    "F": "torch.nn.functional",
    "nn": "torch.nn",
    "init": "torch.nn.init",
    "optim": "torch.optim",
    "lr_scheduler": "torch.optim.lr_scheduler",
    "Tensor": "torch.Tensor",
    "tensor": "torch.Tensor",
    "x": "torch.Tensor",
}
_MODULE = "torch.nn.Module"
_REFUSED = REFUSED | REFUSED_OF_LAYERS
_BASES = (
    (re.compile(r"torch\.nn\.Parameter\."), "torch.Tensor."),
    (re.compile(r"torch\.nn\.[A-Z]\w*\."), f"{_MODULE}."),
    (
        re.compile(r"torch\.optim\.(?:swa_utils\.SWALR|lr_scheduler\.[A-Z]\w*)\."),
        "torch.optim.lr_scheduler.LRScheduler.",
    ),
    (re.compile(r"torch\.optim\.[A-Z]\w*\."), "torch.optim.Optimizer."),
    (re.compile(r"torch\.cuda\.amp\.GradScaler\."), "torch.amp.GradScaler."),
    (re.compile(r"torch\.distributions\.[A-Z]\w*\."), "torch.distributions.Distribution."),
)
"""Classes whose members are those of another: an ``nn.Linear`` has the methods of ``nn.Module``."""
_PACKAGES = ("torch", "torch.nn", "torch.nn.functional", "torch.Tensor", "torch.optim", "torch.nn.init")
"""Where a bare name is looked for, in this order."""


def all_docs() -> dict[str, RuleDoc]:
    """The record of every rule and layer, by every qualified name that it answers to; packages end in ``.*``."""
    load_rules()
    docs = {name: doc for name, one in CLASSES.items() if (doc := _class_doc(name, one)) is not None}
    docs |= {name: RuleDoc(name, name, f"x.{name.rpartition('.')[2]}", Fidelity.EXACT) for name in ATTRIBUTES}
    docs |= {f"{_MODULE}.{name}": _refused(f"{_MODULE}.{name}", reason) for name, reason in _REFUSED.items()}
    docs |= DESCRIBED
    docs |= {name: one.doc() for one in REGISTRY for name in one.names()}
    docs |= {name: one.doc() for name, one in LAYERS.items()}
    return docs


def _class_doc(name: str, one: TorchClass) -> RuleDoc | None:
    """The record of a class that annotations, `isinstance` or bases name; None where there is nothing to say."""
    form = one.value or one.annotation
    return RuleDoc(name, name, form, Fidelity.EXACT, note=one.derived) if form is not None else None


def _refused(name: str, reason: str) -> RuleDoc:
    """The record of a method of modules that has no form in Flax."""
    return RuleDoc(name, name, None, Fidelity.MANUAL, reason=f"{reason}.", subject="module_methods")


def helper_docs() -> dict[str, HelperDoc]:
    """What there is to say of every helper, by name."""
    load_rules()
    return {name: _helper_doc(one) for name, one in helpers().items()}


def _helper_doc(helper: Helper) -> HelperDoc:
    node = ast.parse(helper.text).body[0]
    lines = helper.text.splitlines()
    why = STOCK.get(helper.name, "")
    if not isinstance(node, ast.FunctionDef | ast.ClassDef):
        comments = [line.lstrip("# ") for line in lines if line.startswith("#")]
        code = " ".join(line.strip() for line in lines if not line.startswith("#"))
        return HelperDoc(helper.name, code, " ".join(comments), why)
    about = (ast.get_docstring(node) or "").partition("\n\n")[0]
    return HelperDoc(helper.name, _signature(lines, node), " ".join(about.split()), why)


def _signature(lines: list[str], node: ast.FunctionDef | ast.ClassDef) -> str:
    """``name(parameters) -> result``; of a class that of its constructor."""
    function: ast.FunctionDef | ast.ClassDef = node
    if isinstance(node, ast.ClassDef):
        function = next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), node)
    head = " ".join(line.strip() for line in lines[function.lineno - 1 : function.body[0].lineno - 1])
    text = head.partition(" ")[2].rstrip(" :").replace("( ", "(").replace(", )", ")").replace(" )", ")")
    if function is node:
        return text
    text = re.sub(r"\(self(?:, )?", "(", text.removeprefix("__init__").removesuffix(" -> None"), count=1)
    return f"{node.name}{text}"


def explain(name: str, docs: Mapping[str, RuleDoc] | None = None) -> tuple[str, RuleDoc] | None:
    """The qualified name that ``name`` stands for and its record, or None if there is no rule for it.

    Understands ``torch.cat``, ``F.gelu``, ``nn.Linear``, ``Tensor.view``, and bare names such as ``cat``. ``docs`` are
    those of `all_docs`, if they are there already.
    """
    docs = docs if docs is not None else all_docs()
    return next(((spelling, docs[key]) for spelling, key in _lookups(name) if key in docs), None)


def _lookups(name: str) -> Iterator[tuple[str, str]]:
    """(qualified name, key in the docs), most specific first."""
    spellings = list(dict.fromkeys(canonical(spelling) for spelling in _spellings(name.strip().removesuffix("()"))))
    inherited = [(s, start.sub(base, s, count=1)) for s in spellings for start, base in _BASES if start.match(s)]
    known = [*((spelling, spelling) for spelling in spellings), *inherited]
    yield from known
    # An in-place spelling has the rule of the plain one.
    yield from ((spelling, key[:-1]) for spelling, key in known if key.endswith("_"))
    for spelling in spellings:
        package = spelling
        while "." in package:
            package = package.rpartition(".")[0]
            yield spelling, f"{package}.*"


def _spellings(name: str) -> Iterator[str]:
    yield name
    head, _, rest = name.partition(".")
    if rest and head in _PREFIXES:
        yield f"{_PREFIXES[head]}.{rest}"
    if head != "torch":
        yield from (f"{package}.{name}" for package in _PACKAGES)


def close_names(name: str, count: int = 5) -> list[str]:
    """Names with a rule that look like ``name``: alike as a whole first, then alike in the last part."""
    names = sorted(all_docs())
    lower = {known.lower(): known for known in names}
    whole = [lower[m] for s in _spellings(name) for m in difflib.get_close_matches(s.lower(), lower, count, 0.8)]
    last: dict[str, list[str]] = {}
    for known in names:
        last.setdefault(known.rpartition(".")[2].lower(), []).append(known)
    parts = difflib.get_close_matches(name.rpartition(".")[2].lower(), last, count, 0.7)
    return list(dict.fromkeys([*whole, *(known for part in parts for known in last[part])]))[:count]


def example(name: str, doc: RuleDoc) -> tuple[str, str] | None:
    """A call of ``name`` with its required arguments, and what it becomes; None where no sure example can be made."""
    if not doc.jax or name.endswith(".*"):
        return None
    signature = doc.signature.split(" | ")[0]
    is_layer = name in LAYERS
    program = _layer_program(signature) if is_layer else _call_program(name, signature)
    if program is None:
        return None
    translation = translate(program)
    before, after = _last_statement(program), _last_statement(translation.code)
    if translation.gaps or before is None or after is None or before == after:
        return None
    return before, after


def _layer_program(signature: str) -> str | None:
    bound = _required(signature)
    if bound is None:
        return None
    call, names = bound
    short = call.replace("torch.nn.", "nn.", 1)
    return (
        "import torch\nfrom torch import nn\n\n\nclass Example(nn.Module):\n"
        f"    def __init__(self, {', '.join(names)}):\n        super().__init__()\n        self.layer = {short}\n"
    )


def _call_program(name: str, signature: str) -> str | None:
    bound = _required(signature)
    if bound is None:
        return None
    call, names = bound
    if name.startswith("torch.Tensor."):
        _, _, arguments = call.partition("(")
        receiver = names[0] if names else "x"
        rest = arguments.removeprefix(receiver).removeprefix(", ") if names else ""
        call = f"x.{name.rpartition('.')[2]}" + (f"({rest}" if arguments else "")
        names = ["x", *(n for n in names if n != receiver)]
    call = call.replace("torch.nn.functional.", "F.", 1)
    parameters = ", ".join(f"{n}: torch.Tensor" if i == 0 or n in _TENSORS else n for i, n in enumerate(names))
    return f"import torch\nimport torch.nn.functional as F\n\n\ndef example({parameters}):\n    return {call}\n"


_TENSORS = frozenset(
    {"x", "input", "other", "target", "tensor", "tensor1", "tensor2", "mat1", "mat2", "weight", "index", "src"}
)


def _required(signature: str) -> tuple[str, list[str]] | None:
    """A call text with the required arguments, and the names it uses; None if the signature has ``**kwargs``."""
    parsed = parse_signature(signature)
    if parsed.parameters is None:
        return parsed.name, []
    if any(p.kind == "starstar" for p in parsed.parameters):
        return None
    names: list[str] = []
    arguments: list[str] = []
    for parameter in parsed.parameters:
        if parameter.kind == "star":
            arguments.append("2, 3")
        elif parameter.default is None:
            names.append(parameter.name)
            keyword = parameter.kind == "keyword"
            arguments.append(f"{parameter.name}={parameter.name}" if keyword else parameter.name)
    return f"{parsed.name}({', '.join(arguments)})", names


def readable(template: str) -> str:
    """A template as a reader sees it: ``jnp.concatenate({tensors}, axis={dim?})`` without its braces and marks."""
    return re.sub(r"\{(\w+)[^{}]*\}", r"\1", template)


def _last_statement(code: str) -> str | None:
    """The text of the last statement of the innermost function at the end of ``code``."""
    node: ast.stmt | None = ast.parse(code).body[-1]
    while isinstance(node, ast.ClassDef | ast.FunctionDef):
        node = node.body[-1] if node.body else None
    if node is None:
        return None
    first, *rest = (ast.get_source_segment(code, node) or "").split("\n")
    text = "\n".join([first, *(line.removeprefix(" " * node.col_offset) for line in rest)])
    return text.removeprefix("return ")


__all__ = ["FIDELITY_TEXT", "all_docs", "close_names", "example", "explain", "helper_docs", "readable"]
