"""What a rule is: the record that states one equation between PyTorch and JAX.

Rules live in ``rules/<subject>.py`` and are found by a walk; registering a name twice raises. The torch text is the
signature, and the engine binds positional, keyword and default arguments by it::

    Row("torch.cat(tensors, dim=0)", "jnp.concatenate({tensors}, axis={dim?})")
    Row("torch.Tensor.mT", "{self}.mT")
    refuse("torch.Tensor.register_hook", "JAX arrays carry no hooks; use jax.custom_vjp on the function instead.")

    @rule("torch.Tensor.view(self, *shape)", jax="x.reshape(shape)")
    def view(call: Call) -> Piece | None: ...
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from t2j_lsp.contract import Fidelity, RuleDoc

from .call import NO_LITERAL, Argument, Call, CannotHoist, Refusal, Site, is_simple, renamed, shape_text
from .definitions import ClassInfo
from .facts import Fact, Object, OptimizerFunction, Qual
from .library import SIZES, WHOLE_NUMBERS, Trait, class_of, names_with, object_of
from .pieces import Piece, Template, compile_template
from .signature import Parameter, RuleError, Signature, parse_signature

EXACT, CLOSE, MANUAL = Fidelity.EXACT, Fidelity.CLOSE, Fidelity.MANUAL

IGNORED = frozenset({"device", "pin_memory", "layout", "non_blocking", "memory_format", "inplace", "generator"})
"""Arguments without a JAX counterpart that never change a value. ``generator`` is dropped with a note."""


Emit = Callable[[Call], "Piece | Refusal | None"]
ResultSpec = str | Callable[[Call], Fact]


@dataclass(frozen=True)
class Rule:
    """One registered equation. ``Row``, ``refuse`` and ``@rule`` make these."""

    signatures: tuple[Signature, ...]
    emit: Emit | None
    fidelity: Fidelity = EXACT
    note: str | None = None
    reason: str | None = None
    jax: str | None = None
    result: ResultSpec = "tensor"
    random: bool = False
    template: Template | None = None
    subject: str = ""
    aliases: tuple[str, ...] = ()
    method: bool = False
    ignore: frozenset[str] = frozenset()
    drop: bool = False
    example: str | None = None
    """A call to drive the rule with in tests, when the derived ones can't run; see tests/rules."""
    value: str | None = None
    """The function with torch's keywords that stands where the name is passed as a value."""

    @property
    def name(self) -> str:
        return self.signatures[0].name

    def names(self) -> Iterator[str]:
        """Every qualified name this rule answers to."""
        yield self.name
        yield from self.aliases
        if self.method:
            yield "torch.Tensor." + self.name.rpartition(".")[2]

    def doc(self) -> RuleDoc:
        return RuleDoc(
            name=self.name,
            signature=" | ".join(s.text for s in self.signatures),
            jax=self.jax,
            fidelity=self.fidelity,
            note=self.note,
            reason=self.reason,
            subject=self.subject,
        )


@dataclass
class Registry:
    """All rules by qualified name. A name registered twice raises."""

    rules: dict[str, Rule] = field(default_factory=dict)
    prefixes: dict[str, Rule] = field(default_factory=dict)
    """Refusals of whole packages: ``torch.distributed.*``."""

    def add(self, new: Rule) -> Rule:
        for name in new.names():
            table, key = (self.prefixes, name[:-2]) if name.endswith(".*") else (self.rules, name)
            if key in table:
                raise RuleError(f"{name} is registered twice")
            table[key] = new
        return new

    def get(self, name: str) -> Rule | None:
        rule = self.rules.get(name)
        while rule is None and "." in name:
            name = name.rpartition(".")[0]
            rule = self.prefixes.get(name)
        return rule

    def __iter__(self) -> Iterator[Rule]:
        seen: set[int] = set()
        for one in (*self.rules.values(), *self.prefixes.values()):
            if id(one) not in seen:
                seen.add(id(one))
                yield one


REGISTRY = Registry()


def rule_of(fact: Fact) -> Rule | None:
    """The rule of a library's function or class; of a class of optimizers of the user's own, with what that takes."""
    made = REGISTRY.get(fact.name) if isinstance(fact, Qual) else None
    if made is None or not isinstance(fact, OptimizerFunction):
        return made
    return replace(made, signatures=(parse_signature(fact.signature),))


def member_rule(owner: Object, name: str) -> Rule | None:
    """The rule of a method or attribute of an object, of its class or of the class whose kind it is."""
    rule = REGISTRY.rules.get(f"{owner.name}.{name}")
    return rule if rule is not None else REGISTRY.rules.get(f"{class_of(owner.kind)}.{name}")


def inherited_object(info: ClassInfo | None, name: str) -> Object | None:
    """The library's object from which a class of the file has a method: ``sample`` of ``class Mine(Normal)``."""
    owner = object_of(info.torch_bases) if info is not None else None
    return owner if owner is not None and member_rule(owner, name) is not None else None


def copied_class(names: Iterable[str]) -> Rule | None:
    """The constructor of the first class whose copy is made of what its rule says: of a distribution."""
    copied = names_with(Trait.COPIED_CLASS)
    return next((REGISTRY.rules[name] for name in names if name in copied), None)


def Row(
    torch: str,
    jax: str,
    *,
    method: bool = False,
    aliases: Sequence[str] = (),
    fidelity: Fidelity = EXACT,
    note: str | None = None,
    result: ResultSpec = "tensor",
    random: bool = False,
    ignore: Sequence[str] = (),
    example: str | None = None,
) -> Rule:
    """An equation that a template can say.

    ``method=True`` also answers ``x.name(...)``, with ``x`` as the first parameter. Arguments that the template does
    not mention may only be given at their default, or be in ``ignore`` or ``IGNORED``; else the call is left alone.
    ``result`` is the fact of the value: ``tensor``, ``same`` (rank and dtype of the first argument), ``scalar``
    (0-d tensor), ``bool tensor``, ``int tensor``, ``float tensor``, ``int``, ``float``, ``bool``, ``shape``, ``dtype``,
    ``device``, ``none``, ``tensors`` (a tuple or list of tensors), ``function`` or a function of the call.
    """
    signature = parse_signature(torch)
    template = compile_template(jax)
    known = set(signature.by_name) | {"rngs"} | ({"self"} if signature.parameters is None else set())
    unknown = {h.name for h in template.holes} - known
    if unknown:
        raise RuleError(f"{torch}: template names {sorted(unknown)}, the signature does not")
    if any(h.optional and signature.by_name[h.name].default is None for h in template.holes):
        raise RuleError(f"{torch}: an optional hole needs a default in the signature")
    uses_rngs = template.uses("rngs") > 0

    def emit(call: Call) -> Piece | Refusal | None:
        mentioned = {h.name for h in template.holes} | set(ignore) | IGNORED
        for name in call.arguments:
            if call.given(name) and name not in mentioned:
                return Refusal(f"no rule for the argument {name!r} of {signature.name}")
        return call.emit(jax, **({"rngs": call.site.rngs()} if uses_rngs else {}))

    return REGISTRY.add(
        Rule(
            signatures=(signature,),
            emit=emit,
            fidelity=fidelity,
            note=note,
            jax=jax,
            result=result,
            random=random or uses_rngs,
            template=template,
            aliases=tuple(aliases),
            method=method,
            ignore=frozenset(ignore),
            subject=_subject(),
            example=example,
        )
    )


def refuse(torch: str, reason: str, *, aliases: Sequence[str] = (), result: ResultSpec = "unknown") -> Rule:
    """A name without a sure JAX form: left alone, marked, reported with ``reason``. ``torch.x.*`` is a package."""
    return REGISTRY.add(
        Rule(
            signatures=(Signature(torch, torch, None),),
            emit=None,
            fidelity=MANUAL,
            reason=reason,
            aliases=tuple(aliases),
            result=result,
            subject=_subject(),
        )
    )


def drop(torch: str, note: str, *, aliases: Sequence[str] = ()) -> Rule:
    """A statement that JAX has no use for (``torch.cuda.empty_cache()``): it goes, and ``note`` says so once."""
    return REGISTRY.add(
        Rule(
            signatures=(Signature(torch, torch, None),),
            emit=None,
            fidelity=EXACT,
            note=note,
            jax="(removed)",
            result="none",
            aliases=tuple(aliases),
            subject=_subject(),
            drop=True,
        )
    )


def keep(torch: str, note: str, *, result: ResultSpec = "unknown") -> Rule:
    """A name that stays PyTorch's in the output (``torch.utils.data.DataLoader``), and what becomes of its values."""
    return REGISTRY.add(
        Rule(
            signatures=(Signature(torch, torch, None),),
            emit=None,
            fidelity=CLOSE,
            note=note,
            reason=note,
            jax="(stays)",
            result=result,
            subject=_subject(),
        )
    )


DESCRIBED: dict[str, RuleDoc] = {}
"""What the engine itself writes for names that no row states, as methods of modules: read by who asks, not applied."""


def describe(torch: str, jax: str | None, *, fidelity: Fidelity = EXACT, note: str | None = None) -> None:
    """Say what the engine makes of a name. Without a form, ``note`` is the reason."""
    if torch in DESCRIBED:
        raise RuleError(f"{torch} is described twice")
    reason = note if jax is None else None
    DESCRIBED[torch] = RuleDoc(torch, torch, jax, fidelity, None if reason else note, reason, _subject())


CHANNELS_LAST: dict[str, tuple[int, Emit]] = {}
"""Functions that have a stock form for a first argument held channels-last: how many spatial axes, and the form.

The form answers None where it isn't exact.
"""


def channels_last(torch: str, spatial: int, form: Emit) -> None:
    """Say what a function with a rule becomes where the layout pass holds its argument channels-last."""
    CHANNELS_LAST[torch] = (spatial, form)


STOCK: dict[str, str] = {}
"""Why the stock function of JAX, Flax or optax does not do where a helper stands, by the helper's name."""


def instead(why: str, *helpers: str) -> None:
    """Say why helpers stand where JAX, Flax or optax have something alike; hovers show it."""
    for helper in helpers:
        if helper in STOCK:
            raise RuleError(f"{helper} has a reason already")
        STOCK[helper] = why


def rule(
    *torch: str,
    jax: str,
    method: bool = False,
    aliases: Sequence[str] = (),
    fidelity: Fidelity = EXACT,
    note: str | None = None,
    result: ResultSpec = "tensor",
    random: bool = False,
    ignore: Sequence[str] = (),
    example: str | None = None,
    value: str | None = None,
) -> Callable[[Emit], Emit]:
    """Register a function for what a template can't say. ``jax`` is the form shown in hover and docs.

    Several signatures are overloads: the first that binds is taken. The function returns the JAX piece (usually
    ``call.emit(template)``), ``call.refuse(reason)``, or None for "not sure". A call that gives an argument which the
    function never looks at is left alone, unless the argument is in ``ignore``.
    """

    def register(emit: Emit) -> Emit:
        REGISTRY.add(
            Rule(
                signatures=tuple(map(parse_signature, torch)),
                emit=emit,
                fidelity=fidelity,
                note=note,
                jax=jax,
                result=result,
                random=random,
                aliases=tuple(aliases),
                method=method,
                ignore=frozenset(ignore),
                subject=_subject(),
                example=example,
                value=value,
            )
        )
        return emit

    return register


def _subject() -> str:
    """The rule file's own name, for the docs page: the module that called ``Row``, ``rule`` or ``refuse``."""
    import sys

    module: str = sys._getframe(2).f_globals.get("__name__", "")
    return module.rpartition(".")[2]


__all__ = [
    "CLOSE",
    "DESCRIBED",
    "EXACT",
    "IGNORED",
    "MANUAL",
    "NO_LITERAL",
    "REGISTRY",
    "STOCK",
    "Argument",
    "Call",
    "CannotHoist",
    "Emit",
    "Fidelity",
    "Parameter",
    "Piece",
    "Refusal",
    "Registry",
    "Row",
    "Rule",
    "RuleError",
    "Signature",
    "Site",
    "describe",
    "drop",
    "instead",
    "is_simple",
    "member_rule",
    "parse_signature",
    "refuse",
    "renamed",
    "rule",
    "rule_of",
    "shape_text",
]


_DATA = frozenset({"data", "ndarray", "obj"})
"""Parameters that take what a tensor is made of."""
_COMPUTED = ast.Name | ast.Subscript | ast.Call | ast.ListComp | ast.Attribute


def may_need_values(arguments: Mapping[str, Argument]) -> bool:
    """Whether a call has arguments that must not be values of arrays under jit: sizes, axes, what NumPy computes."""
    named = ((name[:3], one) for name, one in arguments.items())
    axes = any(name == "dim" and (one.items or isinstance(one.node, _COMPUTED)) for name, one in named)
    return axes or any(name in SIZES or name in WHOLE_NUMBERS or name in _DATA for name in arguments)
