"""What a layer rule is: how a ``torch.nn`` class becomes a Flax NNX layer.

A layer has up to three forms. The **direct** form is what an expert writes where the constructor is called in plain
sight: ``nnx.Linear(3, 4, ..., rngs=rngs)``. The **helper** form is a class with torch's constructor signature, for
places where the class travels as a value (``norm_layer=nn.BatchNorm2d``) and for layers that no standard nnx layer
matches.
The **channels_last** form is the standard nnx layer that wants its channels on the last axis; the layout pass uses it
where it can move the axes at the call. The **channels_first** form has the same arguments and takes PyTorch's axes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from t2j_lsp.contract import Fidelity, RuleDoc

from .definitions import Instance, layer_names
from .facts import TENSOR, Fact
from .pieces import Piece, compile_template
from .record import EXACT, Call, Refusal, RuleError, Signature, _subject, parse_signature

Build = Callable[[Call], "Piece | Refusal | None"]


@dataclass(frozen=True)
class Border:
    """A layer of an ``nn.Sequential`` at which channels-last values end, begin or go on, of any rank."""

    takes_last: bool
    gives_last: bool
    form: Callable[[int], Build]
    """What it is there, by the number of spatial axes."""


@dataclass(frozen=True)
class LayerRule:
    """How one ``torch.nn`` class converts."""

    signature: Signature
    helper: str
    """Name of the helper class with torch's signature."""
    direct: Build | None
    channels_last: Build | None
    channels_first: Build | None
    short: Build | None
    """The direct or the channels-last form by a function that knows PyTorch's initial values."""
    base: str
    """The class for ``isinstance`` and annotations: ``nnx.Conv``, or the helper."""
    attributes: Mapping[str, str]
    """torch attribute to nnx attribute: ``{"weight": "kernel"}``."""
    switches: Mapping[str, str]
    """Flags of the nnx layer that say whether it has a parameter: ``{"bias": "use_bias"}``."""
    held: frozenset[str]
    """Settings that the nnx layer has under PyTorch's name, and as PyTorch's are."""
    unheld: frozenset[str]
    """Settings that not even the helper has, or has otherwise."""
    settable: Mapping[str, str]
    """Settings that the nnx layer reads at each call, with its names of them: ``{"stride": "strides"}``."""
    result: Fact
    random: bool
    """Whether its helper takes ``rngs`` because it has parameters or draws."""
    function: bool
    """Whether the direct form is a plain function (``nnx.relu``), which ``isinstance`` can't see."""
    fidelity: Fidelity
    note: str | None
    jax: str
    subject: str = "layers"
    on_linear: Build | None = None
    """The direct form of a table that a Linear's parameter replaces at once: with the Linear's initial values."""
    spatial: int = 0
    """How many spatial axes its channels-last form has."""
    flax: str | None = None
    """The Flax class that its channels-last form is, and its helper derives from: ``nnx.Conv``."""
    elementwise: bool = False
    """Whether it treats all axes alike."""
    elementwise_without: str = ""
    """The argument without which it does."""
    border: Border | None = None
    last_helper: str | None = None
    """The helper that makes the channels-last layer by PyTorch's arguments, where no other form is exact."""
    ignore: frozenset[str] = frozenset()
    """Arguments that change no value, and go: how gradients are stored."""

    @property
    def name(self) -> str:
        return self.signature.name

    def positional(self, node: ast.Call, name: str) -> list[ast.expr]:
        """The argument that a call of the constructor gives by position to a parameter, if it gives it so."""
        names = [parameter.name for parameter in self.signature.parameters or ()]
        return node.args[(at := names.index(name)) : at + 1] if name in names else []

    def treats_axes_alike(self, node: ast.Call | None) -> bool:
        """Whether the layer that a call of the constructor makes, or one that isn't known, treats all axes alike."""
        if self.elementwise or not self.elementwise_without or node is None:
            return self.elementwise
        given = {self.elementwise_without, None} & {k.arg for k in node.keywords}
        return not given and not self.positional(node, self.elementwise_without)

    def doc(self) -> RuleDoc:
        return RuleDoc(
            name=self.name,
            signature=self.signature.text,
            jax=self.jax,
            fidelity=self.fidelity,
            note=self.note,
            subject=self.subject,
            helpers=(self.helper,),
        )


LAYERS: dict[str, LayerRule] = {}


def flax_names(owner: Fact, attribute: str) -> set[str]:
    """What Flax calls an attribute of a layer that ``owner`` may be; empty where it is not a layer's.

    A class of the file that derives from a layer may have attributes of its own; one that the layer renames stays the
    layer's, as in PyTorch.
    """
    names = {LAYERS[name].attributes.get(attribute, attribute) for name in layer_names(owner) if name in LAYERS}
    own = isinstance(owner, Instance) and attribute in owner.cls.info.attributes
    return set() if own and names == {attribute} else names


_OF_FLAX = frozenset({"dtype", "epsilon", "param_dtype", "precision", "use_bias"})
"""Attributes of Flax's layers that PyTorch's don't have."""
OWN_MEANING = "Flax's layer keeps something of its own under this name, and would use this: call it otherwise"


def means_something_else(owner: Fact, attribute: str) -> bool:
    """Whether Flax's layer has an attribute that a class which derives from PyTorch's is free to give.

    A convolution's ``mask`` is multiplied with its kernel, a norm's ``scale`` is its weight.
    """
    if not isinstance(owner, Instance):
        return False
    for name in layer_names(owner) & LAYERS.keys():
        renamed = {new for old, new in LAYERS[name].attributes.items() if new != old} - LAYERS[name].attributes.keys()
        if attribute in renamed | _OF_FLAX or attribute == "mask" and (LAYERS[name].flax or "").startswith("nnx.Conv"):
            return True
    return False


def layer(
    torch: str,
    direct: str | Build | None = None,
    *,
    helper: str | None = None,
    channels_last: str | Build | None = None,
    channels_first: str | Build | None = None,
    short: str | Build | None = None,
    base: str | None = None,
    attributes: Mapping[str, str] | None = None,
    switches: Mapping[str, str] | None = None,
    held: Collection[str] = (),
    unheld: Collection[str] = (),
    settable: Mapping[str, str] | None = None,
    result: Fact = TENSOR,
    random: bool = True,
    function: bool = False,
    fidelity: Fidelity = EXACT,
    note: str | None = None,
    jax: str | None = None,
    on_linear: str | Build | None = None,
    spatial: int = 0,
    flax: str | None = None,
    elementwise: bool = False,
    elementwise_without: str = "",
    border: Border | None = None,
    last_helper: str | None = None,
    ignore: Iterable[str] = (),
) -> LayerRule:
    """Register a layer. Its forms are templates or functions of the bound call.

    A function answers None where its form isn't exact for this call; the helper form is taken then.
    """
    signature = parse_signature(torch)
    if signature.name in LAYERS:
        raise RuleError(f"{signature.name} is registered twice")
    name = helper or signature.name.rpartition(".")[2]
    shown = jax or (direct if isinstance(direct, str) else f"{name}(...)")
    made = LayerRule(
        signature=signature,
        helper=name,
        direct=_build(direct),
        channels_last=_build(channels_last),
        channels_first=_build(channels_first),
        short=_build(short),
        base=base or name,
        attributes=attributes or {},
        switches=switches or {},
        held=frozenset(held),
        unheld=frozenset(unheld),
        settable=settable or {},
        result=result,
        random=random,
        function=function,
        fidelity=fidelity,
        note=note,
        jax=shown,
        subject=_subject(),
        on_linear=_build(on_linear),
        spatial=spatial,
        flax=flax,
        elementwise=elementwise,
        elementwise_without=elementwise_without,
        border=border,
        last_helper=last_helper,
        ignore=frozenset(ignore),
    )
    LAYERS[signature.name] = made
    return made


def _build(form: str | Build | None) -> Build | None:
    if form is None or not isinstance(form, str):
        return form
    mentioned = {hole.name for hole in compile_template(form).holes}

    def build(call: Call) -> Piece | None:
        for name in call.arguments:
            if call.given(name) and name not in mentioned | {"inplace", "device"}:
                return None
        extra = {"rngs": call.site.rngs()} if "rngs" in mentioned else {}
        return call.emit(form, **extra)

    return build
