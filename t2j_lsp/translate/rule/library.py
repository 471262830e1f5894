"""What rule files state of names beyond calls: classes that stand for themselves, contexts, decorators, methods.

A file in ``rules/`` states it next to the rows of its subject; the translator asks here, and names none itself::

    torch_class("torch.device", annotation="jax.Device", fact=Object("device"), makes="device")
    trait(Trait.NO_GRADIENT, "torch.no_grad", "torch.inference_mode")
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from enum import Enum
from typing import TypeGuard

from .definitions import layer_names
from .facts import AnyModule, Fact, Layer, Object
from .signature import RuleError


@dataclass(frozen=True)
class TorchClass:
    """A class that is read as a value, and what is known of its instances."""

    annotation: str | None = None
    """What a type annotation becomes; empty where JAX has no one name for it, and signatures go without."""
    value: str | None = None
    """What the class object itself becomes (``isinstance(x, torch.Tensor)``, base classes)."""
    fact: Fact | None = None
    """What is known of a value that is annotated so."""
    makes: str | None = None
    """The kind of ``Object`` that a call of it makes."""
    derived: str | None = None
    """Why a class that derives from it is left alone."""
    called: str | None = None
    """The kind of ``Object`` whose methods are reported under this class's name."""


CLASSES: dict[str, TorchClass] = {}


def torch_class(
    name: str,
    *,
    annotation: str | None = None,
    value: str | None = None,
    fact: Fact | None = None,
    makes: str | None = None,
    derived: str | None = None,
    called: str | None = None,
) -> None:
    """State what a class becomes where it isn't called, and what its instances are."""
    if name in CLASSES:
        raise RuleError(f"{name} is stated twice")
    CLASSES[name] = TorchClass(annotation, value, fact, makes, derived, called)


@dataclass(frozen=True)
class Base:
    """A base of PyTorch's layers that only ``isinstance`` asks for."""

    layers: tuple[str, ...]
    """Those that derive from it."""
    becomes: tuple[str, ...]
    """The classes that these derive from in every form."""


BASES: dict[str, Base] = {}


def base_of(name: str, layers: Sequence[str], *becomes: str) -> None:
    """State which layers derive from a base of PyTorch's, and what they derive from in JAX."""
    BASES[name] = Base(tuple(layers), becomes)


FORWARDS: dict[str, tuple[str, ...]] = {}
"""What the ``forward`` of PyTorch's layers does, as its versions write it; the last statement calls a function."""


def own_forward(name: str, *texts: str) -> None:
    """State the body of a layer's ``forward`` in PyTorch, which subclasses copy to add something to it."""
    FORWARDS[name] = texts


def class_written(name: str) -> Object | None:
    """What an annotation of an earlier conversion says, which stands for one of PyTorch's: ``jnp.dtype``."""
    text = name.replace("jax.numpy.", "jnp.")
    stated = (known.fact for known in CLASSES.values() if known.annotation == text)
    return next((fact for fact in stated if isinstance(fact, Object) and fact.kind in ("dtype", "device")), None)


def class_of(kind: str) -> str | None:
    """The class under whose name the methods of a kind of ``Object`` are reported."""
    return next((name for name, known in CLASSES.items() if known.called == kind), None)


def _is_object_of(fact: Fact, trait: Trait) -> bool:
    """Whether a value is an object of a class of which a trait is stated."""
    return isinstance(fact, Object) and class_of(fact.kind) in names_with(trait)


def has_rules(fact: Fact) -> bool:
    """Whether a value is an object of a library's class whose methods and attributes have rules: a distribution."""
    return _is_object_of(fact, Trait.MEMBERS_HAVE_RULES)


def object_of(names: Iterable[str]) -> Object | None:
    """The object of a library that instances of a class are by the first of its names: its members have rules."""
    stated = (CLASSES[name].fact for name in names if name in CLASSES)
    return next((fact for fact in stated if isinstance(fact, Object) and has_rules(fact)), None)


def stands_alone(fact: Fact) -> TypeGuard[Object]:
    """Whether a value is an object that JAX's functions and operators take for no array: a sparse matrix."""
    return _is_object_of(fact, Trait.ALONE)


def keeps_methods(fact: Fact) -> bool:
    """Whether a value is an object of a class whose methods stay as they are called, but for those with a rule."""
    return _is_object_of(fact, Trait.KEPT_METHODS)


class Trait(Enum):
    """What a name is to the translator, besides what it becomes."""

    NO_GRADIENT = "a context or decorator in which nothing is differentiated"
    TRANSPARENT = "a context that changes nothing in JAX"
    GRADIENT_SWITCH = "a context that takes gradients if its argument says so"
    FORWARD = "a context around a forward pass that a train step does without"
    AUTOCAST = "a context of mixed precision"
    STUB = "a decorator of type stubs: the stub goes"
    DROPPED_DECORATOR = "a decorator that goes"
    NEW_TENSOR = "a method whose tensor shares its storage with no other"
    OF_LISTS = "one operation on every tensor of a list"
    NUMBER = "a number that a library has a name for"
    OF_A_NUMBER = "a function of numpy that gives a number for a number, and an array for an array"
    COPIED_CLASS = "a class whose copy is made of what the rule of its constructor says"
    TRACES = "a call whose function JAX traces"
    RECOMPUTES = "a call whose function is called once more where gradients are taken, and nothing of it is kept"
    COMPILES = "a decorator that goes with a word on nnx.jit"
    PLAIN_ANNOTATION = "a generic type that stands for its argument"
    FALSE = "a function that asks for something that JAX has not: False"
    READS_GRADIENT = "what reads gradients, or is called when there are some"
    READS_FILES = "a call that reads what was written into a file: tensors in dicts and lists, or whole modules"
    WRITES_FILES = "a call that writes its first argument into a file"
    VERSION = "the version of PyTorch, which is of today"
    DEVICE_TEST = "a function that asks for a device"
    SEED = "a call that seeds the generator, and becomes nnx.Rngs"
    DEVICE_SEED = "a call that seeds the generator of a device"
    KEPT_DRAW = "a part of PyTorch's data pipeline that draws random numbers"
    SHUFFLES = "a part of PyTorch's data pipeline that draws random numbers where it is asked to"
    STACKS_ROWS = "a loader, whose batches are stacks of its dataset's rows"
    ROWS = "a dataset of the rows of tensors"
    SOME_ROWS = "a call that gives datasets with some rows of another one"
    CLIPS_NORM = "a call that clips gradients by their norm"
    CLIPS_VALUE = "a call that clips gradients by value"
    BACKWARD_PASS = "a call that differentiates values as their own `backward()` does"
    INPUT_GRADIENT = "a call that differentiates values by the variables that they were computed from"
    OWN_GRADIENT = "a class whose subclasses are functions with a gradient of their own"
    MEMBERS_HAVE_RULES = "a base of classes that are no tensors or modules, and whose methods and attributes have rules"
    ALONE = "a class whose objects are no tensors: operators and functions that were not told so don't take them"
    TAKES_ANY_OBJECT = "a function that takes these objects as it takes tensors"
    KEPT_METHODS = "a class whose methods stay as they are called, but for those that have a rule"
    TAKES_ARRAYS = "a method of some object that takes arrays, and no Variables"
    EVALUATES_CLOSURE = "an optimizer that evaluates its closure several times for one step"
    BY_NAME = "a function of a module's arrays under PyTorch's names, in its layouts"
    PLAIN_STEPS = "an optimizer that without momentum or weight decay takes steps along the gradient only"
    DECAYS = "an optimizer that decays parameters unless it is told not to"
    LEARNS = "a layer that has parameters"
    TAKES_SCHEDULE = "an optimizer whose transformation in optax takes a schedule for its learning rate"
    TRACED_SCHEDULE = "a scheduler whose rate is a function of a count that JAX can trace"
    SCHEDULE_OF_FUNCTION = "a scheduler whose rate is a function of a count that it is given"
    DERIVED_SCHEDULE = "a class whose subclasses say what the learning rate is at each step"
    ONES = "a call that makes a tensor of ones"
    VARIABLE = "a call that is the tensor that it is given"
    FROM_NUMPY = "a call whose tensor has the memory of the array that it is given"
    OF_NUMPY = "a call that takes an array of NumPy, and nothing else"
    TO_NUMPY = "a tensor's method that gives an array of NumPy with its memory"
    TAKES_OUT = "a tensor's method that takes its values out of JAX"
    MAKES_PARAMETER = "what makes a parameter, which isn't trained if it is given requires_grad=False"
    MAKES_FROZEN = "what makes a layer whose parameters aren't trained unless it is given freeze=False"
    STOPS_GRADIENT = "a method or attribute through which no gradient flows"
    MAKES_TENSOR = "a tensor's method that makes another one of sizes or values that it is given"
    FROM_VALUES = "a call that makes a tensor of Python values"
    DEFAULT_TYPE = "a name of the type of tensors that PyTorch makes where nothing else is said"
    ASKS_FOR_TENSOR = "a function that asks whether a value is a tensor"
    DRAWN_ANEW = "a layer whose initial values a helper draws anew"
    RESETS = "a layer whose constructor calls its reset_parameters"
    PARAMETER = "a call that makes a parameter or buffer"
    SHARES_WEIGHT = "a function after which a layer's weight shares memory with what is trained of it"
    LINEAR = "a layer whose weight becomes a kernel of two axes, transposed"
    PADS = "a call that pads sequences to the longest of them"
    BAGS = "a layer that takes ids of bags in one row, with the offsets where each starts"
    LOSS = "a layer that is a loss although its name doesn't end so"
    LOSS_FUNCTION = "a function that is a loss"
    ELEMENTWISE = "a function that treats all axes alike"
    OF_ELEMENTS = "a function or method that is the same for each element of its tensors, whatever axes these have"
    OF_ALL_ELEMENTS = "a function or method that makes one number of all elements, where it is given no axes"
    LIKE = "a function that makes a tensor of another one's shape"
    ELEMENTWISE_METHOD = "a tensor's method that treats all axes alike"
    JOINS = "a call that makes one tensor of a list of them"
    STACKS = "a function that stacks a list of tensors along a new first axis"
    JOINS_AXIS = "a function that joins its tensors along the axis `dim`"
    REDUCES_AXES = "a function or method that reduces the axes `dim`, and then takes `keepdim`"
    ALONG_AXIS = "a function or method that works along the axis `dim`, and gives as many values"
    POOLS_TO_SIZE = "a layer or function that pools to the sizes `output_size`"
    SIZES = "a tensor's method or attribute that gives its sizes"
    PARTS_AXIS = "a function that gives several parts of its tensor along the axis `dim`"
    LIKE_OTHER = "a tensor's method that gives its values in the shape of another one"
    OF_BOTH = "a tensor's method that JAX's arrays have, too, and that another conversion would write anew"
    FLATTENS = "a function or method that joins axes, in their order"
    SHAPED = "such a method that is given sizes"
    ELEMENTWISE_IN_PLACE = "a method that writes the same into every element, and draws the same whatever the layout"
    GIVEN_NUMBERS = "such a method that takes numbers, and no tensor with axes"
    PRIVATE = "a dict that only PyTorch's modules keep"
    CHILDREN_BY_NAME = "that of the modules in a module's attributes"
    OF_PAIRS = "a function or method that computes each element of two tensors' elements at the same place"
    KEEPS_STATISTICS = "a function that in training writes into the running statistics that it is given"
    GIVES_ARGUMENT = "a method that gives the memory of a tensor that it is given"
    BOOLEAN_IN_PLACE = "a method that writes booleans into its tensor"
    MOVES = "a method that moves a tensor or a module to a device; `to` may cast it, too"
    TO_DEVICE = "such a method that takes it to where things are computed"
    NO_VALUES = "a method that changes the shape or a flag of its tensor in place, and none of its values"
    SAME_TENSOR = "a tensor's method that may give the tensor itself"
    VIEW = "a tensor's method or attribute whose value may share its storage"
    WRITABLE_VIEW = "a method whose value surely shares storage, so that a write through it changes its tensor"
    PIECES = "a method whose values share storage with its tensor, and none with each other"
    OF_PARAMETER = "a tensor's attribute or method that is about the parameter itself, and not about its value"
    COUNTS = "a tensor's method that gives whole numbers which its shape decides"
    ABOUT = "a tensor's attribute or method that tells of it, and nothing of its values"
    TENSOR_ONLY = "a method that tensors have and that arrays, data frames, strings, sets and dicts do not"
    TENSOR_ONLY_BARE = "such a method if it is called without arguments"
    TENSOR_ATTRIBUTE = "an attribute that tensors have and arrays, modules and settings do not"
    TORCH_ONLY = "a method that no other library's objects have, so that a file that calls it computes with torch"
    TORCH_ONLY_BARE = "such a method where it is called without arguments"
    OPERATOR_METHOD = "a method that means what an operator or abs does, of whatever has it"
    AMBIGUOUS = "a method that tensors and other objects have, and arrays do not"
    FIRST_FIELD = "what the first of several values that a function returns is called: `.values`"
    SECOND_FIELD = "what the second is called: `.indices`"
    THIRD_FIELD = "what the third is called"
    SORTS_PARAMETERS = "a method that programs ask parameters, their names and dicts of them, to put them into groups"
    TAKES_SEQUENCES = "a class of a package that makes tensors of the sequences it is given"
    NO_TENSOR = "a method that modules have and tensors have not"
    REDUCTION = "a method that takes an axis, and then whether to keep it"
    OTHER_ON_ARRAYS = "a method that arrays have too, and that does something else there"
    OTHER_WITH_ONE = "such a method if it is given an argument by place"
    OTHER_WITH_TWO = "such a method if it is given two arguments by place"
    HARMLESS = "such a method whose conversion does the same for arrays of other libraries"
    DESCRIBES = "an attribute by which models of libraries say what they are: texts and numbers"
    MODULE_ONLY = "a method without arguments that only modules have"
    MODULE_HOOK = "a method that only modules have, and that hands them a function to call"
    RELU = "a layer or function that sets what is negative to 0, so that it may be applied twice"
    SIZED_BY_VALUES = "a call whose result is as large as the values of an array say"
    SAME_SHAPE = "a layer whose value has the shape of what it is given first"
    SAME_VALUES = "a tensor's method that gives the same values"
    CONSTANT = "a function that makes a tensor of sizes alone, and that NumPy has by the name that JAX has for it"
    OF_SHAPE = "a function that takes a tensor's shape and dtype, and none of its values"
    CONSTANT_OF = "such a function or method of tensors, which makes a constant of constants"
    COPIES = "such a method whose result shares no storage with its tensor"
    VALUE = "a method whose result is no array, so that it fails while a program is traced"
    SAME_IN_JAX = "a method that JAX arrays have too, with the same meaning"


_NAMES: dict[Trait, set[str]] = {one: set() for one in Trait}


def trait(which: Trait, *names: str) -> None:
    """State that names have a trait: qualified names of functions and classes, plain names of methods."""
    stated = _NAMES[which]
    for name in names:
        if name in stated:
            raise RuleError(f"{name} is stated twice as {which.value}")
        stated.add(name)


def names_with(which: Trait) -> Set[str]:
    """The names that have a trait. It fills while the rules load, so it may be kept."""
    return _NAMES[which]


def is_loss(fact: Fact) -> bool:
    """Whether a module can only be a loss function of PyTorch's: it has no parameters and no state."""
    names = layer_names(fact) if isinstance(fact, Layer | AnyModule) else frozenset()
    losses = names_with(Trait.LOSS)
    return bool(names) and all(name.endswith("Loss") or name in losses for name in names)


PLATFORMS: dict[str, str] = {}
"""Types of devices, and what JAX calls the platform of such a device; empty where it has none."""


def platform(torch: str, jax: str) -> None:
    """State what JAX calls a type of devices."""
    if torch in PLATFORMS:
        raise RuleError(f"{torch} is stated twice")
    PLATFORMS[torch] = jax


SIZES: dict[str, set[str]] = {}
"""Parameters that say how large a result is, and whose they are by qualified names; with none, everybody's."""


def sized_by(*parameters: str, of: str | None = None) -> None:
    """State that arguments of these parameters, of one function or of all, make the shape of a result."""
    for parameter in parameters:
        SIZES.setdefault(parameter, set()).update({of} if of is not None else ())


WHOLE_NUMBERS: dict[str, set[str]] = {}
"""Parameters that take whole numbers which JAX must know when it compiles, and whose they are, as in `SIZES`."""


def numbered_by(*parameters: str, of: Iterable[str] = ()) -> None:
    """State that JAX must know arguments of these parameters, of some functions or of all, when it compiles."""
    for parameter in parameters:
        WHOLE_NUMBERS.setdefault(parameter, set()).update(of)


def is_size(parameter: str, function: str) -> bool:
    """Whether an argument of a function says how large its result is."""
    return parameter in SIZES and (not SIZES[parameter] or function in SIZES[parameter])


def is_whole_number(parameter: str, function: str) -> bool:
    """Whether an argument of a function is a whole number, no size, that JAX must know when it compiles."""
    return parameter in WHOLE_NUMBERS and (not WHOLE_NUMBERS[parameter] or function in WHOLE_NUMBERS[parameter])


ATTRIBUTES: dict[str, str] = {}
"""Attributes of objects of a library's classes that are the same in JAX, by qualified name, and what they are."""


def same_attribute(name: str, result: str = "tensor") -> None:
    """State that an attribute stays as it is, and what it is: a ``result`` as a rule's record has it."""
    if name in ATTRIBUTES:
        raise RuleError(f"{name} is stated twice")
    ATTRIBUTES[name] = result


def attribute_of(owner: Object, name: str) -> str | None:
    """What an attribute is that stays as it is; None for one that nobody stated."""
    attribute = ATTRIBUTES.get(f"{owner.name}.{name}")
    return attribute if attribute is not None else ATTRIBUTES.get(f"{class_of(owner.kind)}.{name}")


FURTHER_TENSORS: dict[str, int | None] = {}
"""Calls whose arguments behind the first, up to this position, can only be tensors; None where all are."""


def takes_tensors(name: str, end: int | None) -> None:
    """State that a call's arguments from the second up to position ``end`` can only be tensors."""
    FURTHER_TENSORS[name] = end
