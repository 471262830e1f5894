"""Every public name of PyTorch has a rule, or is refused with a reason: none is just unknown."""

from __future__ import annotations

import functools
import types

import pytest
import torch
import torch.nn.utils.prune
import torch.optim.swa_utils

from t2j_lsp.explain import all_docs, explain
from t2j_lsp.plugins import load_rules
from t2j_lsp.translate.rule.layer import LAYERS
from t2j_lsp.translate.rule.library import CLASSES, Trait, names_with
from t2j_lsp.translate.rule.names import canonical
from t2j_lsp.translate.rule.record import REGISTRY

load_rules()
NAMESPACES = [
    *("torch", "torch.Tensor", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils", "torch.linalg"),
    *("torch.fft", "torch.special", "torch.masked", "torch.signal.windows", "torch.optim", "torch.optim.lr_scheduler"),
    *("torch.distributions", "torch.func", "torch.autograd", "torch.amp"),
]
CONSTANTS = {"TYPE_CHECKING", "Tensor", "Optimizer", "EPOCH_DEPRECATION_WARNING", "annotations", "inf", "ref"}
"""What modules of PyTorch import or keep for themselves."""


def namespace(name: str) -> object:
    return functools.reduce(getattr, name.split(".")[1:], torch)


def public(name: str) -> list[str]:
    """Public names of a namespace that are PyTorch's own."""
    out = []
    for one in dir(namespace(name)):
        value = getattr(namespace(name), one, None)
        module = getattr(value, "__module__", None) or "torch"
        own = module.partition(".")[0] in ("torch", "torch_C") or name == "torch.Tensor"
        if own and one not in CONSTANTS and not one.startswith("_") and not isinstance(value, types.ModuleType):
            out.append(one)
    return out


def stated(name: str) -> bool:
    """Whether the rules have something to say of a name; what ends in _ is the name without it, in place."""
    if REGISTRY.get(name) is not None or name in LAYERS or name in CLASSES:
        return True
    if any(name in names_with(trait) for trait in Trait):
        return True
    owner, _, last = name.rpartition(".")
    if owner == "torch.Tensor" and last in names_with(Trait.SAME_IN_JAX):
        return True
    if canonical(name) != name:
        return stated(canonical(name))
    plain = last.removesuffix("_")
    return plain != last and any(REGISTRY.get(f"{one}.{plain}") is not None for one in (owner, "torch"))


@pytest.mark.parametrize("name", NAMESPACES)
def test_every_public_name_is_stated(name: str) -> None:
    assert [one for one in public(name) if not stated(f"{name}.{one}")] == []


def test_no_public_name_has_only_the_reason_of_its_whole_package() -> None:
    texts = {"common_args", "multi_dim_common"}  # parts of docstrings that torch.special keeps
    names = [f"{name}.{one}" for name in NAMESPACES for one in public(name) if one not in texts]
    shared = [name for name in names if (rule := REGISTRY.get(name)) is not None and rule.name.endswith(".*")]
    spelled_otherwise = {name for trait in Trait for name in names_with(trait)} | LAYERS.keys() | CLASSES.keys()
    assert [name for name in shared if name not in spelled_otherwise] == []


CLASSES_WITH_MEMBERS = [
    *("torch.nn.Module", "torch.nn.Linear", "torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"),
    *("torch.nn.ParameterList", "torch.nn.ParameterDict", "torch.nn.Parameter", "torch.optim.Optimizer"),
    *("torch.optim.Adam", "torch.optim.lr_scheduler.StepLR", "torch.amp.GradScaler", "torch.Generator"),
    *("torch.distributions.Distribution", "torch.distributions.Normal"),
]
SUBPACKAGES = [
    *("torch.optim.swa_utils", "torch.utils.data", "torch.nn.utils.prune", "torch.nn.utils.parametrize", "torch.cuda"),
    *("torch.cuda.amp", "torch.jit", "torch.utils"),
]
IMPORTED = {"LRScheduler", "Module", "PARAM_LIST", "OptimizerPostHook", "OptimizerPreHook"}
"""What these import: names of types."""
KEPT_BY_MODULES = {"in_features", "out_features"}
"""Attributes of layers, which are those of Flax's layers."""


@pytest.mark.parametrize("name", [*NAMESPACES, *SUBPACKAGES, *CLASSES_WITH_MEMBERS])
def test_every_public_name_and_member_is_explained(name: str) -> None:
    left = set(public(name)) - IMPORTED - KEPT_BY_MODULES
    docs = all_docs()
    assert [one for one in sorted(left) if explain(f"{name}.{one}", docs) is None] == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("torch.nn.Module.requires_grad_", "set_trainable(model, requires_grad)"),
        ("nn.Linear.add_module", "self.name = module"),
        ("torch.optim.AdamW.step", "optimizer.update(model, grads)"),
        ("torch.nn.Parameter.mul_", "{input} * {other}"),
    ],
)
def test_members_are_explained_by_those_of_their_base(name: str, said: str) -> None:
    explained = explain(name)
    assert explained is not None and explained[1].jax == said


@pytest.mark.parametrize(
    ("name", "said"),
    [("half", "cast the parameters"), ("reset_running_stats", "make it anew"), ("get_buffer", "no such")],
)
def test_a_method_without_a_form_is_explained_by_its_reason(name: str, said: str) -> None:
    explained = explain(f"torch.nn.Module.{name}")
    assert explained is not None and explained[1].jax is None and said in (explained[1].reason or "")


@pytest.mark.parametrize(
    ("layer", "argument"),
    [("LazyLinear", "in_features"), ("LazyConv2d", "in_channels"), ("LazyBatchNorm1d", "num_features")],
)
def test_a_lazy_layer_says_which_size_to_give(layer: str, argument: str) -> None:
    rule = REGISTRY.get(f"torch.nn.{layer}")
    assert rule is not None and rule.reason is not None and f"nn.{layer[4:]}({argument}, ...)" in rule.reason


def test_a_name_that_nobody_states_is_found() -> None:
    assert not stated("torch.Tensor.no_such_method") and len(public("torch")) > 900


ELSEWHERE = {
    *("torch._sym_sqrt", "torch.storage.TypedStorage", "torch.storage.UntypedStorage"),
    *("torch.random.thread_safe_generator", "torch.nn.functional._threshold"),
    *("torch.nn.functional._ScalingType", "torch.nn.functional._SwizzleType"),
    *("torch.nn.utils.clip_grad._get_total_norm", "torch.nn.utils.clip_grad._clip_grads_with_norm_"),
    *("torch.testing._comparison.assert_close", "torch.testing._comparison.assert_allclose"),
    *("torch.testing._creation.make_tensor", "torch.utils.throughput_benchmark.ThroughputBenchmark"),
    *("torch.utils.cpp_backtrace.get_cpp_backtrace",),
    *(f"torch.utils.backend_registration.{name}_privateuse1_backend" for name in ("rename", "generate_methods_for")),
}
"""Where PyTorch defines what nobody imports from there: private modules, and what is refused wherever it stands."""


def test_what_is_imported_from_the_module_that_defines_it_has_the_rule_of_its_public_name() -> None:
    unknown = set()
    for name in REGISTRY.rules:
        value: object = torch
        for part in name.split(".")[1:] if name.startswith("torch.") and ".Tensor." not in name else ("",):
            value = getattr(value, part, None)
        module, own = getattr(value, "__module__", None) or "", getattr(value, "__qualname__", ".")
        if module.startswith("torch") and not module.startswith("torch._") and "." not in own:
            defined = f"{module}.{own}"
            if REGISTRY.get(canonical(defined)) is None:
                unknown.add(defined)
    assert unknown <= ELSEWHERE
