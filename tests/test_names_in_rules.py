"""What is known of torch's names stands in ``rules/``: the translator names only what its own algorithms are about."""

from __future__ import annotations

import ast
import builtins
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from t2j_lsp.plugins import load_rules
from t2j_lsp.translate.rule.record import REGISTRY

from .borders import parsed

ENGINE = Path(__file__).resolve().parents[1] / "t2j_lsp" / "translate"
QUALIFIED = re.compile(r"(torch|torchvision|einops)(\.\w+)+")
CONTAINER = "facts of its children, and the layout of its call, are followed one by one"
TRAINING = "a word of the protocol of train steps: finding and notes are reported under it"
PACKAGE = "a package: what is read from it is looked at, not what it is"
KNOWN = {
    "torch.Tensor": "the type that everything else is about",
    "torch.nn.Module": "the base class that makes a class a module",
    "torch.nn.Sequential": CONTAINER,
    "torch.nn.ModuleList": CONTAINER,
    "torch.nn.ModuleDict": CONTAINER,
    "torch.nn.ParameterList": CONTAINER,
    "torch.nn.ParameterDict": CONTAINER,
    "torch.nn.Linear": "weight tying, and tables that a Linear's parameter replaces: its kernel is transposed",
    "torch.nn.Embedding": "weight tying: its table is a Linear's kernel",
    "torch.nn.functional": "a namespace that is asked for: whether PyTorch is there at all",
    "torch.Tensor.backward": TRAINING,
    "torch.Tensor.requires_grad": "a condition that filters parameters: always true of nnx.Param",
    "torch.autocast": TRAINING,
    "torch.amp.GradScaler": TRAINING,
    "torch.optim.Optimizer": TRAINING,
    "torch.optim.Optimizer.param_groups": TRAINING,
    "torch.device": "notes on names that hold a device are reported under it, and old spellings lead to it",
    "torch.nn": PACKAGE,
    "torch.cuda": PACKAGE,
    "torch.utils": PACKAGE,
    "torch.utils.data": PACKAGE,
    "torch.func": "a package, to which its old name leads",
    "torch.testing": PACKAGE,
    "torch.testing._internal.common_utils.TestCase": "a base class that makes a class a unit test",
    "einops.layers.torch": PACKAGE,
    "torchvision.utils": PACKAGE,
    "torch.nn.utils.clip_grad": PACKAGE,
    "torch.optim._functional": PACKAGE,
    "einops.reduce": "the one einops operation whose values have another dtype",
}
OF_MODULE = "methods of nn.Module: the class itself is the engine's"
OF_TENSORS = "attributes of every tensor, as facts: there is one class of tensors, and it is the engine's"
FLAGS = "words of the protocol of train steps: what says of a tensor whether it is trained"
METHOD_TABLES = {
    ("rule/definitions.py", "_DATA"): "the words of annotations that name no class of the file",
    ("training/program/named_modules.py", "_SAME"): OF_MODULE,
    ("expressions/module_methods.py", "DROPPED_METHODS"): OF_MODULE,
    ("expressions/module_refusals.py", "REFUSED"): OF_MODULE,
    ("output/outcomes.py", "MODULE_METHODS"): OF_MODULE,
    (
        "expressions/walk_order.py",
        "_SHARED",
    ): "what all parameters of a module have in common",
    ("expressions/walk_order.py", "_OF_NUMPY"): "functions of NumPy",
    ("inference/attributes.py", "VIEWS_OF_TENSOR"): OF_TENSORS,
    ("inference/attributes.py", "AttributeFacts"): OF_TENSORS,
    ("expressions/in_place.py", "InPlace"): OF_TENSORS,
    ("expressions/copying.py", "Copier"): "attributes of JAX's arrays",
    ("source/folding/own_gradients.py", "_OF_ONE"): "functions of jax.numpy",
    ("source/folding/own_gradients.py", "_OF_MORE"): "methods of JAX's arrays",
    ("inference/numpy_attributes.py", "_values"): "attributes of NumPy's arrays",
    ("inference/numpy_memory.py", "_WRITING"): "methods of NumPy's arrays",
    ("inference/calls.py", "_DRAWN_BY"): "functions of numpy.random",
    ("inference/host_random.py", "_NO_DRAWS"): "functions of random and numpy.random",
    ("rule/traced_schedules.py", "_Traced"): "functions of math",
    ("inference/defaults.py", "_NUMBERS"): "names of constants, of whatever library",
    ("statements/masks.py", "Masks"): "names of constants, of whatever library",
    ("inference/einops_calls.py", "einops_value"): "the operations of einops that have a pattern",
    ("rule/definitions.py", "_HARMLESS"): "decorators after which a function is called as it was, of whatever library",
    ("rule/names.py", "_telling"): "three methods that tell of PyTorch by what they are given, which no word can say",
    ("inference/subscripts.py", "_of_training"): FLAGS,
    ("inference/written_parameters.py", "sets_flag"): FLAGS,
    ("training/program/cut_values.py", "keeps_values"): FLAGS,
    ("rewrites/tensor_classes.py", "_TensorClass"): FLAGS,
    ("training/steps/jittable.py", "Jittable"): FLAGS,
    ("training/steps/unit_test_losses.py", "_MODES"): FLAGS,
    ("training/program/gradient_forms.py", "CHANGES"): "operators, and the methods that they are",
    ("inference/module_methods.py", "ModuleMethodFacts"): OF_MODULE,
    ("source/folding/absent.py", "HELD_BY"): "names in Flax's code, which a test compares with it",
    ("source/folding/absent.py", "_OTHER_WORDS"): "names in Flax's code",
    ("source/folding/classes.py", "_FLAX_WORDS"): "names in Flax's code, which a test compares with it",
    ("rule/binding.py", "_RESULTS"): "the words of a record's result=",
    ("expressions/library_objects.py", "_WIDE"): "dtypes, by their short names",
    ("rule/record.py", "IGNORED"): "names of arguments",
    ("statements/stores.py", "_AT"): "methods of jax.Array.at",
    ("training/gate.py", "TRAINING"): "attributes that only training code has: words of its protocol",
    ("training/steps/jittable.py", "HOST_METHODS"): "what takes a value out of a train step: a word of its protocol",
}


def trees() -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(ENGINE.rglob("*.py")):
        yield file.relative_to(ENGINE).as_posix(), parsed(file)


def strings(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield from inner.value.split() if "\n" in inner.value else (inner.value,)


@functools.cache
def qualified() -> set[str]:
    return {text for _, tree in trees() for text in strings(tree) if QUALIFIED.fullmatch(text)}


@functools.cache
def words_of_torch() -> frozenset[str]:
    """What the rules' names end in, also in place, without names that Python has as well."""
    load_rules()
    names = {name for one in REGISTRY for name in one.names() if name.startswith("torch.")}
    words = {name.rpartition(".")[2] for name in names} - set(dir(builtins))
    return frozenset(words | {f"{name.rpartition('.')[2]}_" for name in names if name.startswith("torch.Tensor.")})


@functools.cache
def method_tables() -> set[tuple[str, str]]:
    """Tables of three or more of these words, at the top of a module or in a function, by what they are or stand in.

    Sentences are no tables.
    """
    by_name = set()
    for file, tree in trees():
        for node in tree.body:
            match node:
                case (
                    ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value)
                ):
                    words = {word for text in strings(value) if not text.endswith(".") for word in text.split()}
                    tables = [words]
                    name = ast.unparse(target)
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    tables = list(map(listed, ast.walk(node)))
                case _:
                    continue
            if any(len(words & words_of_torch()) > 2 for words in tables):
                by_name.add((file, name))
    return by_name


def listed(node: ast.AST) -> set[str]:
    """The strings that a tuple, list, set or dict lists, or a pattern's alternatives."""
    match node:
        case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items) | ast.Dict(keys=items):
            return {n.value for n in items if isinstance(n, ast.Constant) and isinstance(n.value, str)}
        case ast.MatchOr(patterns=patterns):
            values = [p.value for p in patterns if isinstance(p, ast.MatchValue)]
            return {v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str)}
    return set()


def test_the_translator_names_no_torch_name_that_a_rule_could_state() -> None:
    unknown = qualified() - KNOWN.keys()
    assert not unknown, f"state {sorted(unknown)} in rules/: a field of the row or layer, torch_class() or trait()"


def test_the_translator_has_no_table_of_methods_that_a_rule_could_state() -> None:
    unknown = method_tables() - METHOD_TABLES.keys()
    assert not unknown, f"state {sorted(unknown)} in rules/methods.py"


@pytest.mark.parametrize(
    "text",
    [
        "x in ('unsqueeze', 'squeeze_', 'cat')",
        "{'chunk': 1, 'split': 2, 'view': 3}",
        "match x:\n case 'relu' | 'gelu' | 'tanh': y",
    ],
)
def test_a_table_inside_of_a_function_is_seen(text: str) -> None:
    assert any(len(listed(node) & words_of_torch()) == 3 for node in ast.walk(ast.parse(text)))


@pytest.mark.parametrize(("table", "present"), [(KNOWN, qualified), (METHOD_TABLES, method_tables)])
def test_what_is_listed_is_there(table: dict[object, str], present: object) -> None:
    assert callable(present)
    assert table.keys() <= present()


BEFORE_RULES = """
import importlib
import pkgutil
from collections.abc import Set

from t2j_lsp.translate.rule import library


class Filling(Set):
    def __contains__(self, name):
        raise AssertionError("asked before the rules fill it")

    def __iter__(self):
        raise AssertionError("copied before the rules fill it")

    __len__, _from_iterable = __iter__, frozenset


library._NAMES.update({one: Filling() for one in library.Trait})
import t2j_lsp.translate

for module in pkgutil.walk_packages(t2j_lsp.translate.__path__, "t2j_lsp.translate."):
    importlib.import_module(module.name)
"""


def test_no_module_copies_names_that_the_rules_fill_later() -> None:
    """``names_with(...) | {...}`` at a file's top level would be empty but for its own names."""
    done = subprocess.run([sys.executable, "-c", BEFORE_RULES], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_such_a_copy_is_found() -> None:
    copying = BEFORE_RULES + "library.names_with(library.Trait.SEED) | {'seed'}\n"
    done = subprocess.run([sys.executable, "-c", copying], capture_output=True, text=True, timeout=60)
    assert "copied before the rules fill it" in done.stderr
