"""The text of a hover: code of the conversion, what to know about it, links; as Markdown or as plain text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from t2j_lsp.contract import FIDELITY_TEXT, HelperDoc, Outcome, Rewrite

MAX_LINES, TAIL = 30, 6
"""Lines of code shown in a block, and how many of these are its last ones where lines between are left out."""
MAX_WIDTH = 1200
"""Characters of code shown in a block."""
MAX_HELPERS = 2
AS_A_RULE = "As a rule, not read from this file's conversion:"

STATES = {
    "converted": "the statement became",
    "kept": "stays as it is",
    "removed": "goes: the conversion has no counterpart of it",
    "left": "manual: still PyTorch, left as it is and marked",
}
MEANS_THE_SAME = ("torch.optim.", "torch.nn.Module.", "torch.Tensor.")
"""Names of what may stand in JAX code as it stands in PyTorch's."""
ZERO_GRAD = "torch.optim.Optimizer.zero_grad"
ABOUT = {
    ZERO_GRAD: "Gradients are what nnx.value_and_grad returns: there is nothing to clear.",
    "torch.Tensor.backward": "nnx.value_and_grad computes the loss and its gradients from a function of the model.",
    "torch.optim.Optimizer.step": "The optimizer's update takes the model and the gradients.",
    "torch.optim.lr_scheduler.LRScheduler.step": "The learning rate is a value in the optimizer's state.",
    "torch.nn.Module.train": "NNX modules have the same method: dropout draws, and batch norms use the batch.",
    "torch.nn.Module.eval": "NNX modules have the same method: dropout rests, and batch norms use running statistics.",
    "torch.nn.Module.apply": "nnx.iter_modules goes through the module and all below it.",
    "torch.nn.Module.__init__": "An NNX module needs no call of its base's constructor.",
    "torch.no_grad": "JAX takes gradients only of what nnx.value_and_grad is called on.",
    "torch.inference_mode": "JAX takes gradients only of what nnx.value_and_grad is called on.",
    "torch.jit.script": "JAX compiles what stands under nnx.jit or jax.jit.",
    "torch.manual_seed": "Random numbers come from an nnx.Rngs that is passed on, and not from a global state.",
    "indexing": "Indices of arrays that are out of range are clipped in JAX, and raise no error.",
    "assignment to elements": "JAX arrays never change: the name gets a new array.",
    "operator that writes in place": "JAX arrays never change: the name gets a new one, and others keep the old.",
}
ALIASES = {"torch.inference_mode": "torch.no_grad", "torch.autograd.no_grad": "torch.no_grad"}
SCHEDULERS = ("LRScheduler", "ReduceLROnPlateau")
_CONV = re.compile(r"torch\.nn\.Conv[123]d")


@dataclass
class Hover:
    """What a hover says, in order."""

    title: str
    summary: str
    code: list[str] = field(default_factory=list)
    """Blocks of code of the output, or of a rule where ``rule`` is set."""
    rule: bool = False
    about: list[str] = field(default_factory=list)
    helpers: list[HelperDoc] = field(default_factory=list)
    links: dict[str, str | None] = field(default_factory=dict)
    offer: tuple[str, str | None] | None = None
    """A line about fixed bugs that are like the place, and the link behind it."""

    def markdown(self) -> str:
        parts = [f"**{escape(self.title)}** · {escape(self.summary)}"]
        parts += [AS_A_RULE] if self.rule and self.code else []
        # One block: editors draw two as one text, with no line between them.
        parts += [fenced("\n\n".join(map(folded, self.code)))] if self.code else []
        parts += [escape(reason) for reason in self.about]
        for helper in self.helpers:
            lead = f"{inline(helper.signature)} is a helper that the conversion brings along."
            parts.append(" ".join(filter(None, (lead, escape(helper.about), escape(helper.why)))))
        if self.offer is not None:
            line, link = self.offer
            parts.append(f"[{line}]({link})" if link else escape(line))
        links = [f"[{text}]({page})" for text, page in self.links.items() if page]
        return "\n\n".join([*parts, " · ".join(links)] if links else parts)

    def plain(self) -> str:
        parts = [f"{self.title} ({self.summary})"]
        parts += [AS_A_RULE] if self.rule and self.code else []
        parts += [*map(folded, self.code), *self.about]
        for helper in self.helpers:
            lead = f"{helper.signature} is a helper that the conversion brings along."
            parts.append(" ".join(filter(None, (lead, helper.about, helper.why))).replace("`", ""))
        parts += [self.offer[0]] if self.offer is not None else []
        return "\n\n".join([*parts, *(f"{text}: {page}" for text, page in self.links.items() if page)])


def of_rewrite(one: Rewrite, before: str, fidelity: str, reasons: Iterable[str]) -> Hover:
    """The hover of an expression that the output has in its JAX form."""
    assert one.jax is not None
    meaning = next((text for kind, text in FIDELITY_TEXT.items() if kind == fidelity), "")
    moved = one.channels_last or ("moveaxis" in one.jax and "moveaxis" not in before)
    return Hover(one.name, f"{fidelity}: {meaning}", [one.jax], about=[*reasons, *axes(one.name, one.jax, moved)])


def of_outcome(one: Outcome, reasons: Iterable[str]) -> Hover:
    """The hover of a place whose statement tells what became of it."""
    summary = STATES[one.state]
    torch = one.name.startswith("torch.") and not one.name.startswith(MEANS_THE_SAME)
    if one.step:
        summary = "part of a training step, which became one compiled function"
    elif one.state == "kept" and torch:
        summary = "still PyTorch, stays as it is"
    known = ABOUT.get(ALIASES.get(one.name, one.name))
    if one.name == ZERO_GRAD and one.state == "converted" and not one.step:
        known = "Gradients that several backward passes add to are values, in a variable of the loop."
    about = [known] if known and one.state != "left" else []
    about += [one.reason] if one.reason else []
    code = [] if one.state == "left" else [text for text in (one.code, one.step) if text]
    moved = "moveaxis" in one.code
    hover = Hover(one.name, summary, code, about=[*about, *reasons, *axes(one.name, one.code, moved)])
    if one.state == "removed" and one.code:
        hover.summary = "goes; what stands there now"
    return hover


def axes(name: str, code: str, moved: bool) -> list[str]:
    """What to know where axes move between PyTorch and JAX."""
    texts = []
    if moved:
        texts.append(
            "Axes: inside of this module channels are last, (N, H, W, C); at its border they are where PyTorch"
            " has them, (N, C, H, W)."
        )
    if _CONV.fullmatch(name) and re.search(r"(nnx\.Conv|Conv[123]d)\(", code):
        texts.append("Axes of the kernel: (*spatial, in, out); PyTorch's weight is (out, in, *spatial).")
    if name == "torch.nn.Linear" and "nnx.Linear(" in code:
        texts.append("Axes of the kernel: (in, out); PyTorch's weight is (out, in).")
    return texts


def used_helpers(
    name: str, codes: Iterable[str], written: dict[str, str], docs: dict[str, HelperDoc]
) -> list[HelperDoc]:
    """The helpers that the code of a name uses, the first ones; ``written`` has their names in the conversion."""
    words = (word for code in codes for word in re.findall(r"(?<![\w.])[A-Za-z_]\w*", code))
    names = [written[word] for word in dict.fromkeys(words) if word in written]
    schedulers = [helper for helper in SCHEDULERS if helper in written.values()]
    if name.startswith("torch.optim.lr_scheduler.LRScheduler.") and len(schedulers) == 1:
        names += schedulers  # what the method belongs to
    return [docs[name] for name in dict.fromkeys(names) if name in docs][:MAX_HELPERS]


def folded(code: str) -> str:
    """Code with lines left out of its middle where there are too many."""
    lines = code.split("\n")
    if len(lines) > MAX_LINES:
        lines = [*lines[: MAX_LINES - TAIL], f"# ... {len(lines) - MAX_LINES} lines", *lines[-TAIL:]]
    text = "\n".join(lines)
    if len(text) <= MAX_WIDTH:
        return text
    short = text[:MAX_WIDTH]
    return f"{short.rpartition(chr(10))[0] or short}\n# ..."


def command_link(command: str, arguments: Sequence[Any]) -> str:
    """The address of a command with its arguments, as VS Code reads it."""
    return f"command:{command}?{quote(json.dumps(arguments), safe='')}"


def fenced(code: str) -> str:
    """A Markdown code block that the code can't end."""
    longest = max((len(run) for run in re.findall(r"`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}python\n{code}\n{fence}"


def inline(code: str) -> str:
    """Code within a line of Markdown, which the code can't end."""
    longest = max((len(run) for run in re.findall(r"`+", code)), default=0)
    mark = "`" * (longest + 1)
    return f"{mark}{code}{mark}" if longest == 0 else f"{mark} {code} {mark}"


def escape(text: str) -> str:
    """Text with nothing left in it that Markdown or HTML would read."""
    return re.sub(r"([\\`*_\[\]<>#|~])", r"\\\1", text)
