"""What parameters of constructors usually mean, by their names: values to try where a program gives none."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from typing import Any

from t2j_lsp.check.inputs import Code
from t2j_lsp.symbols import positional_parameters

from .scopes import ModuleScope

_CHANNELS = (6, 10, 24, 40)
_VALUES: tuple[tuple[str, Any], ...] = (
    (r"(num_|n_)?(heads?|nheads?)|heads_num|num_attention_heads", 3),
    (r"(dim|d|size_per|head)_?(head|dim_head)|head_(dim|size)|d_k|d_v", 8),
    (r"(num_|n_)?(layers?|blocks?|stages?)|depth|repeats?|num_repeats", 2),
    (r"kernel(_size)?|ks|k|ksize|window(_size)?|filter_size", 3),
    (r"strides?|s|downsample_factor|scale_factor|upscale_factor|reduction(_ratio)?|squeeze_factor|r", 2),
    (r"padding|pad|p_size", 1),
    (r"dilation|groups|num_groups|cardinality|base_width|(atrous|dilation)_?rate", 1),
    (r"(\w+_)?(dropout|drop|drop_?path|drop_?rate|drop_prob|dropout_rate|p|prob|rate)(_prob|_rate|_p)?", 0.1),
    (r"momentum", 0.1),
    (r"spatial_(n_?)?dims?|n_?dims?", 2),
    (r"eps|epsilon", 1e-5),
    (r"alpha|beta|gamma|temperature|temp|tau|scale|slope|lam(bda)?_?|sigma|std|smoothing", 0.7),
    (r"(vocab|vocabulary|dict)(_size)?|num_(embeddings|tokens|items|users|words)|n_?tokens?|n_vocab|v", 50),
    (r"max_(seq_?)?(len|length|positions?)|(seq|context|sequence)_?(len|length)|block_size"
     r"|max_position_embeddings", 16),
    (r"(image|img|input|in)_(size|resolution|res)|resolution|image_height|image_width|crop_size", 32),
    (r"patch(_size)?|p1|p2", 8),
    (r"(num_|n_|max_)?frames?", 8),
    (r"feat_size|fmap_size|spatial_size|shift_size", 4),
    (r"(num|n)_?(class(es)?|outputs?|labels|actions|categories)|nclass|classes|n_out|out(put)?s?", 10),
    (r"(mlp|ff|ffn|feedforward|inner|intermediate|expansion)_?(dim|size|hidden|hidden_dim|features|channels)?"
     r"|dim_feedforward|d_ff|hidden_features|d_inner", 40),
    (r"(mlp|expand|expansion|widen)_?(ratio|factor|mult)|mult|expansion|growth", 2),
    (r"(in|input|inp|c_in|n_in|src)_?(channels?|chans?|chs?|features?|dim|dims|planes|c|size|depth|filters)?|cin|inplanes|nin|dim_in|in_shape"
     r"|num_input_features|channels_in|n_channels|latent_dim|z_dim|nz|cond_dim|ctx_dim|context_dim", 6),
    (r"(out|output|oup|c_out|n_out|tgt)_?(channels?|chans?|chs?|features?|dim|dims|planes|c|depth|filters)|cout|outplanes|nout|oup|dim_out"
     r"|channels_out", 10),
    (r"growth_rate|bn_size", 4),
    (r"dim|d|d_?model|(embed|emb|embedding|hidden|model|base|feature|state|key|query|value|proj)_?(dims?|size|channels?)"
     r"|n_?embd|channels?|ch|c|features?|n_features|num_features|planes|width|filters|hidden|n_?hidden|nhid|ninp|emsize"
     r"|num_channels|normalized_shape|num_hiddens|embed|emb|size", 24),
    (r"bias|affine|causal|batch_first|bidirectional|norm_first", True),
)  # fmt: skip
_BY_TYPE = {"int": 6, "float": 0.5, "bool": False}
_BY_ITEM = {"int": 6, "float": 0.5}
HYPERPARAMETERS = {
    **dict.fromkeys(("lr", "learning_rate", "base_lr", "max_lr", "peak_lr"), "0.1"),
    **dict.fromkeys(("min_lr", "eta_min", "lr_min"), "0.01"),
    **dict.fromkeys(("wd", "weight_decay"), "0.01"),
    **dict.fromkeys(("gamma", "lr_gamma", "decay", "lr_decay", "factor"), "0.5"),
    **dict.fromkeys(("epochs", "n_epochs", "num_epochs", "max_epochs", "t_max", "T_max"), "7"),
    **dict.fromkeys(("max_steps", "total_steps", "num_steps", "n_steps", "max_iters", "iterations"), "7"),
    **dict.fromkeys(("step_size", "lr_step_size", "warmup", "warmup_steps", "warmup_epochs", "warmup_iters"), "2"),
    "momentum": "0.9", "beta1": "0.9", "beta2": "0.99", "betas": "(0.9, 0.99)", "eps": "1e-6", "nesterov": "True",
    "dampening": "0.0", "label_smoothing": "0.1", "device": '"cpu"',
}  # fmt: skip
"""Expressions for what a training function is told by whoever calls it, by the names of its parameters."""

_OBJECTS = {"device": "torch.device('cpu')", "dtype": "torch.float32"}
_LAYERS: tuple[tuple[str, str], ...] = (
    (r"(\w+_)?norm(_layer|_cls|_class|_func)?", "nn.BatchNorm2d"),
    (r"(\w+_)?act(ivation)?(_layer|_cls|_class|_func|_fn)?|nonlinearity", "nn.ReLU"),
    (r"(\w+_)?conv(_layer|_cls)?", "nn.Conv2d"),
)


def value_for(name: str, annotation: ast.expr | None, scope: ModuleScope, equal: int | None = None) -> Any:
    """A value for a required constructor parameter; None if nothing is known of it.

    With ``equal``, all numbers of channels and features are that one, as residual connections want them.
    """
    kind = ast.unparse(annotation).strip("'\"") if annotation is not None else ""
    lowered = name.lower().lstrip("_")
    if re.search(r"Callable|[Tt]ype\b|Module", kind) or kind == "":
        for pattern, layer in _LAYERS:
            if re.fullmatch(pattern, lowered) and (kind or lowered.endswith(("layer", "cls"))):
                return Code(f"{layer}()" if re.fullmatch(r"(Optional\[)?(torch\.)?(nn\.)?Module\]?", kind) else layer)
    if lowered in _OBJECTS and kind in ("", "torch.device", "torch.dtype", "device"):
        return Code(_OBJECTS[lowered])
    if kind in ("Tensor", "torch.Tensor"):
        return Code(f"torch.linspace(-0.75, 1.5, {equal or 6})")
    if (text := re.search(r"\bLiteral\[\s*(['\"])(.*?)\1", kind)) is not None:
        return text[2]
    made = _class_value(kind, scope, equal)
    if made is not None:
        return made
    item = re.search(r"\b(tuple|list|sequence)\[(int|float)", kind.lower())
    several = re.match(r"(\w+\.)?(tuple|Tuple|list|List|Sequence)\[(int|float)", kind)
    words = lowered.split("_")
    tails = ["_".join(words[i:]) for i in range(len(words))]
    heads = ["_".join(words[:i]) for i in range(len(words) - 1, 0, -1)]
    value = _by_name(*tails)  # ``proj_kernel`` is a kernel
    if value is None and kind == "" and lowered.endswith("s"):
        value = _by_name(lowered.removesuffix("s"))
        several = re.match("", "") if value is not None else several
    value = _by_name(*heads) if value is None else value  # ``dim_key`` is a dim
    if value is None and item:
        value = _BY_ITEM[item[2]]
    if value is None:
        return _BY_TYPE.get(kind, 6 if kind == "" else None)
    if equal is not None:
        value = equal if value in _CHANNELS else 4 if "head" in lowered and equal % value else value
    if kind == "float":
        return float(value)
    if not several:
        return value
    values = [value] * max(2, kind.count("int"))
    return tuple(values) if "uple[" in kind else values


def layer_for(name: str) -> str | None:
    """The class of a layer that a constructor's parameter of this name may be."""
    return next((layer for pattern, layer in _LAYERS if re.fullmatch(pattern, name.lower())), None)


def number_for(name: str) -> Any:
    """What a parameter of a function is by its name, where that means a number; None where it doesn't."""
    words = name.split("_")
    return _by_name(*("_".join(words[i:]) for i in range(len(words))))


def _by_name(*names: str) -> Any:
    """The value of the first name that means something; of parts of names, not those of one or two letters."""
    for name in names:
        for pattern, value in _VALUES:
            if (name == names[0] or len(name) > 2) and re.fullmatch(pattern, name):
                return value
    return None


def _class_value(kind: str, scope: ModuleScope, equal: int | None) -> Code | None:
    """A class of the file as a parameter's type: an instance with all defaults, or for ``type[X]`` the class.

    What the constructor asks for is given by its names.
    """
    for word in re.findall(r"\w+", kind):
        definitions = [scope.body[i] for i in scope.bindings.get(word, ())]
        for node in definitions:
            if isinstance(node, ast.ClassDef):
                asked = re.search(r"[Tt]ype\[|Callable", kind) is None
                return Code(f"{word}({_given(node, scope, equal)})" if asked else word)
    return None


def spread(name: str, init: ast.FunctionDef, scope: ModuleScope, equal: int | None) -> Code | None:
    """A dict of what a class of the file asks for beside what it is given, where ``Class(..., **name)`` makes one."""
    for call in (n for n in ast.walk(init) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)):
        if any(k.arg is None and isinstance(k.value, ast.Name) and k.value.id == name for k in call.keywords):
            assert isinstance(call.func, ast.Name)
            for node in (scope.body[i] for i in scope.bindings.get(call.func.id, ())):
                if isinstance(node, ast.ClassDef):
                    by_place = [asked for asked, _ in _asked(node)][: len(call.args)]
                    return Code(f"dict({_given(node, scope, equal, {*by_place, *(k.arg for k in call.keywords)})})")
    return None


def _given(node: ast.ClassDef, scope: ModuleScope, equal: int | None, known: Collection[str | None] = ()) -> str:
    """The arguments that a class of the file asks for, but those ``known``; none where something of it isn't."""
    given: list[str] = []
    for name, annotation in _asked(node):
        if name in known:
            continue
        inner = ast.unparse(annotation).strip("'\"") if annotation is not None else ""
        value = None if node.name in inner else value_for(name, annotation, scope, equal)
        if value is None:
            return ""
        given.append(f"{name}={value}" if isinstance(value, Code) else f"{name}={value!r}")
    return ", ".join(given)


def _asked(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr | None]]:
    """What the constructor of a class requires: its own, or the one of a dataclass without bases."""
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            arguments = statement.args
            parameters = positional_parameters(statement)
            required = parameters[1 : len(parameters) - len(arguments.defaults)]
            required += [p for p, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is None]
            yield from ((p.arg, p.annotation) for p in required)
            return
    if any("dataclass" in ast.unparse(d) for d in node.decorator_list):
        for statement in node.body:
            match statement:
                case ast.AnnAssign(ast.Name(name), annotation, None) if "ClassVar" not in ast.unparse(annotation):
                    yield name, annotation
