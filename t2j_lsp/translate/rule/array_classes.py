"""Objects that JAX can take apart: modules, named tuples, and dataclasses of arrays, which are registered with it.

A compiled function takes and gives no other objects: `jax.jit` raises a TypeError on them.
"""

from __future__ import annotations

import ast

from .definitions import ClassInfo, is_plain_object
from .facts import Fact, ListOf, Qual, Scalar, Tensor, Tuple, is_tensor
from .join import holds
from .tensors import is_array_tree

GIVES_OBJECT = (
    "a step would give {}, an object that JAX can't take apart: give its arrays, in a tuple or in a dataclass of arrays"
)
_NAMED = frozenset({"typing.NamedTuple", "typing_extensions.NamedTuple", "collections.namedtuple"})
_APART = ("ClassVar", "InitVar")
_CALLED = frozenset({"__init__", "__new__", "__post_init__"})


def is_named_tuple(info: ClassInfo) -> bool:
    """Whether a class derives from ``typing.NamedTuple``."""
    return any(isinstance(base, Qual) and base.name in _NAMED for base in info.bases)


def is_array_class(info: ClassInfo) -> bool:
    """Whether it is a dataclass whose fields are all arrays or trees of such, so that an object of it is one, too.

    What its constructor does besides would be done again whenever JAX puts an object together: such a class isn't.
    """
    chain = info.ancestry()
    if not all(one.is_dataclass and not _CALLED & one.methods.keys() for one in chain):
        return False
    if any(isinstance(base, Qual) for one in chain for base in one.bases) or any(map(_sets_apart, chain)):
        return False
    fields = [fact for one in chain for fact in one.fields.values()]
    return any(holds(fact, is_tensor) for fact in fields) and all(map(_is_data, fields))


def has_opaque(fact: Fact) -> bool:
    """Whether a value is, or holds, an object of a class of the file that JAX can't take apart."""
    return holds(fact, _is_opaque)


def is_data(fact: Fact) -> bool:
    """Whether it is an object of a class of the file that JAX takes apart, and no module."""
    return is_plain_object(fact) and (is_named_tuple(fact.cls.info) or is_array_class(fact.cls.info))


def _is_opaque(fact: Fact) -> bool:
    return is_plain_object(fact) and not is_data(fact)


def _is_data(fact: Fact) -> bool:
    if is_plain_object(fact):
        return is_array_class(fact.cls.info)
    if isinstance(fact, Tensor | Tuple | ListOf):
        return is_array_tree(fact)
    return isinstance(fact, Scalar) and fact.kind == "float"


def _sets_apart(info: ClassInfo) -> bool:
    """Whether a field is the class's own, or handed to the constructor alone, or not at all."""
    nodes = [node for node in info.node.body if isinstance(node, ast.AnnAssign)]
    settings = [one.arg for node in nodes if isinstance(node.value, ast.Call) for one in node.value.keywords]
    return "init" in settings or any(name in ast.unparse(node.annotation) for node in nodes for name in _APART)
