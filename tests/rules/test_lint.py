"""Lints the whole table of rules against the installed torch, jax, flax and optax."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest

from t2j_lsp.plugins import load_rules
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.record import REGISTRY, Rule, Signature, parse_signature

from .driving import drive
from .emitted_names import optional_defaults, problems
from .torch_signatures import _value, disagreement, find

load_rules()
RULES = sorted(REGISTRY, key=lambda one: one.name)

# Signatures that can't be compared --------------------------------------------------------------------------------

NOT_STATED = {
    "torch.Size": "a tuple, made as one",
    "torch.Tensor.where": "torch names the tensor itself only in the schema of the function",
    "torch.device": "its page has two forms of which the schema states one: device(device), device(type, index)",
    "torch.get_autocast_cpu_dtype": "a C function without a page, which takes nothing",
    "torch.get_autocast_gpu_dtype": "as torch.get_autocast_cpu_dtype",
    "torch.finfo": "a C class; its page says finfo(type)",
    "torch.iinfo": "a C class; its page says iinfo(type)",
    "torch.nn.Parameter": "built by __new__ of a metaclass; its page says Parameter(data=None, requires_grad=True)",
    "torch.nn.Buffer": "built by __new__ of a metaclass; its page says Buffer(data=None, *, persistent=True)",
    "torch.onnx.operators.shape_as_tensor": "a function of the module that torch.onnx.operators takes the place of",
    "torch.Tensor": "old constructors take sizes, or a sequence, or an array, whatever they are called",
    "torch.Tensor.new": "as torch.Tensor",
    "torch.sparse.FloatTensor": "as torch.Tensor; PyTorch's warning names (indices, values, shape, *, device=)",
    "torch.autograd.Variable": "an old constructor without a signature; it took (data, requires_grad=False)",
    "torch.sparse.FloatTensor.size": "as torch.Tensor.size, whose two forms only the page of Tensor states",
    "torch.sum": "one record for sum(input) and sum(input, dim, keepdim)",
    "torch.mean": "one record for mean(input) and mean(input, dim, keepdim)",
    "torch.prod": "one record for prod(input) and prod(input, dim, keepdim)",
    "torch.save": "the default of pickle_module is a module",
    "torch.compile": "takes a dict of options by **: none of them changes a value",
    "torch.hamming_window": "one record for the four overloads with fewer arguments",
    "torch.utils.checkpoint.checkpoint": "its newest form may be called without a function, as a decorator",
}
NOT_STATED |= {
    f"torch.{name}Tensor": "as torch.Tensor"
    for name in ("Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool")
}


OLDER = {
    text
    for name, terms in {
        "add": ("alpha, other",),
        "sub": ("alpha, other",),
        "addcmul": ("value, tensor1, tensor2",),
        "addcdiv": ("value, tensor1, tensor2",),
        "addmm": ("beta, alpha, mat1, mat2", "beta, mat1, mat2, *, alpha=1"),
        "addmv": ("beta, alpha, mat, vec", "beta, mat, vec, *, alpha=1"),
        "addbmm": ("beta, alpha, batch1, batch2", "beta, batch1, batch2, *, alpha=1"),
        "baddbmm": ("beta, alpha, batch1, batch2", "beta, batch1, batch2, *, alpha=1"),
        "addr": ("beta, alpha, vec1, vec2", "beta, vec1, vec2, *, alpha=1"),
    }.items()
    for text in (f"torch.{name}(input, {term})" for term in terms)
}
"""Forms that PyTorch warns of and takes, with the factor in front: its schemas and pages are without them."""


def signatures() -> list[Signature]:
    stated = [s for one in RULES for s in one.signatures] + [one.signature for one in LAYERS.values()]
    named = [s for s in stated if s.parameters is not None and s.name.startswith("torch.")]
    return [s for s in named if not s.name.startswith(NOT_IMPORTABLE)]


LEFT_OUT = {
    "torch.spmm": {"out_dtype"},
    "torch.sparse.FloatTensor.to_dense": {"masked_grad"},
    "torch.nn.Hardtanh": {"min_value", "max_value"},
    "torch.distributed.init_process_group": {"enable_reconfigure"},
    "torch.optim.LBFGS": {"maximize"},
}
"""Parameters that only the newest PyTorch has, or that it deprecates: a call that gives them is left alone."""
SINCE = {
    "torch.utils.checkpoint.checkpoint": (2, 14),
    "torch.distributed.init_process_group": (2, 14),
    "torch.optim.LBFGS": (2, 14),
}
"""From which PyTorch on a row of `NOT_STATED` or of `LEFT_OUT` is needed."""


def differs(signature: Signature) -> str | None:
    return disagreement(signature, LEFT_OUT.get(signature.name, ()))


def test_every_signature_is_the_one_that_torch_states() -> None:
    stated = [s for s in signatures() if s.name not in NOT_STATED and s.text not in OLDER]
    wrong = {s.text: why for s in stated if (why := differs(s)) is not None}
    assert wrong == {}


def test_exceptions_to_the_signature_check_are_needed() -> None:
    stated = signatures()
    release = tuple(map(int, version("torch").split(".")[:2]))
    later = {name for name, since in SINCE.items() if release < since}
    needed = {s.name for s in stated if s.name in NOT_STATED and differs(s) is not None}
    assert needed == set(NOT_STATED) - later
    assert {s.text for s in stated if s.text in OLDER and differs(s) is not None} == OLDER
    assert {s.name for s in stated if s.name in LEFT_OUT and disagreement(s) is not None} == set(LEFT_OUT) - later


@pytest.mark.parametrize(
    "text",
    [
        "torch.cat(dim, tensors=0)",
        "torch.cat(tensors, dim=1)",
        "torch.cat(tensors, axes=0)",
        "torch.roll(input, shifts)",
        "torch.flatten(input, start_dim=1, end_dim=-1)",
        "torch.gather(input, index, dim)",
    ],
)
def test_a_signature_that_is_not_torchs_is_found(text: str) -> None:
    assert disagreement(parse_signature(text)) is not None


# Names ------------------------------------------------------------------------------------------------------------

NOT_IMPORTABLE = ("torch.utils.tensorboard.",)
"""Packages of torch that need others than torch."""


def _exists(name: str) -> bool:
    try:
        find(name.removesuffix(".*"))
    except AttributeError:
        return False
    return True


def test_every_name_that_has_a_rule_exists_in_torch() -> None:
    names = {name for one in RULES for name in one.names()} | set(LAYERS)
    absent = [n for n in names if n.startswith("torch.") and not n.startswith(NOT_IMPORTABLE) and not _exists(n)]
    assert [n for n in absent if n not in SHADOWED] == []


SHADOWED = {
    "torch.distributions.Transform.domain": "only annotated in the class",
    "torch.distributions.Transform.codomain": "only annotated in the class",
    "torch.func.make_functional": "of functorch, which is read as torch.func; it is gone from torch itself",
    "torch.func.make_functional_with_buffers": "the same",
    "torch.func.combine_state_for_ensemble": "the same",
}
"""Names of torch that only instances have, or that only other builds or older packages have, with the reason."""


# Emitted code -----------------------------------------------------------------------------------------------------


def test_no_rule_raises_whatever_the_call() -> None:
    assert drive().raised == {}


def test_every_rule_emits_something_for_some_call() -> None:
    emitting = {one.rule.name for one in drive().emitted.values()}
    silent = {one.name for one in RULES if one.emit is not None} - emitting
    assert silent == REFUSING


REFUSING = {"torch.no_grad", "torch.inference_mode", "torch.manual_seed"}
REFUSING |= {"torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_"}
REFUSING |= {f"torch.autograd.functional.{name}" for name in ("jvp", "hvp", "vhp")}
REFUSING |= {"torch.nn.utils.spectral_norm", "torch.nn.utils.vector_to_parameters"}
REFUSING |= {"torch.optim.Optimizer"}
REFUSING |= {"torch.nn.utils.weight_norm", "torch.nn.utils.parametrizations.weight_norm", "torch.Tensor.requires_grad"}
"""Rules for what the engine converts where it stands, or only of tensors and layers for sure: no made-up calls."""


def test_emitted_names_and_keywords_exist() -> None:
    wrong: dict[str, str] = {}
    for one in drive().emitted.values():
        for problem in problems(one.text):
            wrong.setdefault(f"{one.rule.name}: {problem}", one.text)
    assert wrong == {}


@pytest.mark.parametrize(
    "text",
    [
        "jnp.concatenated(x)",
        "jnp.sum(x, dim=0)",
        "x.permute(0, 1)",
        "x.sum(keepdim=True)",
        "x.at[0].put(1)",
        "rngs.randn(3)",
        "jnp.zeros((2,), 'f', 0, 1, 2)",
        "split(x, 2, dim=0)",
    ],
)
def test_an_emitted_name_that_does_not_exist_is_found(text: str) -> None:
    assert list(problems(text)) != []


SAME_MEANING = {
    ("argmax(keepdims)", "False", "None"),
    ("argmin(keepdims)", "False", "None"),
    ("jnp.linalg.eigh(UPLO)", "'L'", "None"),
    ("jnp.histogram(density)", "False", "None"),
    ("jnp.trapezoid(dx)", "None", "1.0"),
    ("jnp.cross(axis)", "-1", "None"),
    ("affine_grid(align_corners)", "None", "False"),
    ("grid_sample(align_corners)", "None", "False"),
    ("pad(value)", "0", "None"),
}
"""(function, torch's default, JAX's default) that are written differently and mean one thing."""


def test_arguments_that_are_dropped_at_torchs_default_have_that_default_in_jax() -> None:
    wrong: set[tuple[str, str, str]] = set()
    for signature, template in drive().templates:
        for hole, keyword, default in optional_defaults(template):
            parameter = signature.by_name.get(hole)
            if parameter is None or parameter.default is None or _value(parameter.default) == default:
                continue
            function = re.sub(r"^_\d+_\.|^jnp\.(?=arg)", "", keyword)
            if (function, parameter.default, repr(default)) not in SAME_MEANING:
                wrong.add((template, f"{hole}={parameter.default}", f"{keyword} is {default!r}"))
    assert wrong == set()


# Words ------------------------------------------------------------------------------------------------------------


def is_sentence(text: str) -> bool:
    """One paragraph that begins like a sentence or with code, has three words or more and ends with a full stop."""
    start = re.match(r"[A-Z]|[a-z_]+[.(]|jnp|jax|nnx|optax", text)
    return start is not None and text.endswith(".") and len(text.split()) >= 3 and "\n" not in text and "  " not in text


def test_every_note_and_reason_of_a_record_is_a_sentence() -> None:
    said = {(one.name, text) for one in RULES for text in (one.note, one.reason) if text is not None}
    said |= {(name, one.note) for name, one in LAYERS.items() if one.note is not None} | drive().notes
    assert sorted((name, text) for name, text in said if not is_sentence(text)) == []


def test_every_refusal_of_a_call_is_one_line_of_words() -> None:
    """It follows ``# TODO(t2j): `` in the output, so it may also begin in lower case."""
    unfit = [(n, t) for n, t in drive().refusals if "\n" in t or "  " in t or t != t.strip() or len(t.split()) < 3]
    assert sorted(unfit) == []


def test_what_is_refused_or_dropped_says_why() -> None:
    def says_why(one: Rule) -> bool:
        return bool(one.reason or one.note)

    assert [one.name for one in RULES if one.emit is None and not says_why(one)] == []


def test_no_rule_and_no_sample_is_unfinished() -> None:
    """``t2j rule new`` marks what is to be filled in."""
    files = [*RULE_FILES.glob("*.py"), *(Path(__file__).parent / f"{name}_samples.py" for name in ("more", "layer"))]
    assert [file.name for file in files if "TODO" in file.read_text(encoding="utf-8")] == []


RULE_FILES = Path(__file__).resolve().parents[2] / "rules"
