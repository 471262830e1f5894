"""``t2j eval`` on own programs, with a scripted model and a scripted judge: that its machinery measures.

    python -m benchmarks.evaluation [--prompts NAME,...] [--rounds N] [--keep FOLDER]

The folder holds the programs of the fixed bugs that the rules leave a gap in, each with its fixed conversion as the
reference. The model is a local server. Of each program it knows a right answer and one with a mistake of the study's
kinds: it is right at once, or once the check has told it what was wrong, or once the prompt shows a fixed bug of that
root cause from another program, or never. It always claims to be right. The judge answers by a hash of what it is
shown. No figure says anything of any real model or judge.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from t2j_lsp import convert
from t2j_lsp.cli import main as t2j
from t2j_lsp.fixes.record import Example
from t2j_lsp.retrieval import dataset

from .scripted_endpoint import serve

JAX, OPTAX = "import jax", "import optax"


@dataclass(frozen=True)
class Known:
    """What the model knows of a program: its answers, and what stands for the ``right`` part of them by mistake."""

    mends: Literal["at once", "when told", "when shown", "never"]
    cause: str = ""
    right: str = ""
    wrong: str = ""
    answers: Mapping[str, str] = field(default_factory=dict)
    """By a piece of the PyTorch statement; of a program that has none, its fixed conversion."""
    head: tuple[str, ...] = ()


LOOP = """\
for _ in range(steps):
    loss, grad = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
    w = w - lr * grad
    losses.append(lax.stop_gradient(loss))
"""
CLASSES = """\
for _ in range(steps):
    def loss_fn(w):
        logits = x @ w.T
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), logits

    (loss, logits), grad = jax.value_and_grad(loss_fn, has_aux=True)(w)
    w = w - lr * grad
    losses.append(lax.stop_gradient(loss))
    accuracies.append(jnp.mean(jnp.argmax(logits, axis=1) == y, dtype=x.dtype))
"""
ADAMW = """\
for _ in range(steps):
    def loss_fn(params):
        logits = x @ params[0].T + params[1]
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

    loss, grads = jax.value_and_grad(loss_fn)((w, b))
    updates, state = optimizer.update(grads, state, (w, b))
    w, b = optax.apply_updates((w, b), updates)
    losses.append(lax.stop_gradient(loss))
"""
MOMENTUM = """\
for _ in range(steps):
    def loss_fn(params):
        return jnp.mean((jax.nn.sigmoid(x @ params[0].T + params[1]) - y) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)((w, b))
    updates, state = optimizer.update(grads, state)
    w, b = optax.apply_updates((w, b), updates)
    history.append(lax.stop_gradient(loss))
"""
KNOWN = {
    "logistic_step": Known("at once"),
    "clip_and_step": Known("when told", "", "scale = jnp.minimum(1.0, limit / (norm + 1e-6))", "scale = limit / norm"),
    "gradient_penalty": Known(
        "when told", "", ").sum())(x)", "))(x)",
        {"autograd.grad": "grad = jax.grad(lambda x: (jnp.tanh(x @ w) @ v).sum())(x)"},
    ),
    "softmax_regression": Known("when told", "", ", has_aux=True", "", {"for _": CLASSES}, (JAX, OPTAX)),
    "linear_regression": Known("when shown", "sum-for-mean", "jnp.mean((x", "jnp.sum((x", {"for _": LOOP}, (JAX,)),
    "sgd_momentum": Known(
        "when shown", "grad-of-wrong-argument", "))(w)", "))(x.T)",
        {"autograd.grad": "grad = jax.grad(lambda w: jnp.mean(jnp.square(jnp.tanh(x @ w) - y)))(w)"}, (JAX,),
    ),
    "optax_adamw": Known(
        "when shown", "optimizer-state-dropped", "updates, state = optimizer", "updates, _ = optimizer",
        {"torch.optim": "optimizer = optax.adamw(0.05, weight_decay=0.1)\nstate = optimizer.init((w, b))",
         "for _": ADAMW}, (JAX, OPTAX),
    ),
    "optax_momentum_loop": Known(
        "when shown", "optimizer-state-dropped", "updates, state = optimizer", "updates, _ = optimizer",
        {"torch.optim": "optimizer = optax.sgd(0.1, momentum=0.8)\nstate = optimizer.init((w, b))",
         "for _": MOMENTUM}, (JAX, OPTAX),
    ),
    "gaussian_policy": Known("never", answers={
        ".std()": "advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)"}),
    "linear_decay_sgd": Known("never", answers={"torch.optim": "optimizer = None", "for _": "pass"}),
    "per_example_gradients": Known("never", answers={
        "autograd.grad": "grad = jax.grad(lambda xi: (jnp.tanh(xi @ w) - yi) ** 2)(xi)"}, head=(JAX,)),
}  # fmt: skip
"""Of each program, what the model knows. Around the gaps of the last three, the rules leave more than that."""
SPAN = re.compile(r"^### SPAN (\d+) \(.*?(?=^### SPAN|^Answer with)", re.MULTILINE | re.DOTALL)
"""A span as a prompt shows it."""


def programs() -> dict[str, Example]:
    """The programs that have gaps and are known, by name."""
    examples = {example.program: example for example in dataset()}
    return {name: examples[name] for name in KNOWN if convert(examples[name].input_code).gaps}


def answer(example: Example, known: Known, text: str) -> str:
    """The model's answer to a prompt."""
    shown = re.findall(r'"Example_id": "([^"]+)/([^"/]+)"', text)
    right = {
        "at once": True,
        "when told": " failed: different" in text,
        "when shown": any(cause == known.cause and name != example.program for name, cause in shown),
        "never": False,
    }[known.mends]
    head, answers = known.head, known.answers
    if not answers:
        top, _, rest = example.fix_output.partition("\n\n\n")
        head, answers = tuple(top.splitlines()), {"def ": rest}
    parts = ["### HEAD\n```python\n" + "\n".join(head) + "\n```"] if head else []
    for span in SPAN.finditer(text):
        code = next((code for piece, code in answers.items() if piece in span[0]), "...")
        said = code if right else code.replace(known.right, known.wrong)
        parts.append(f"### SPAN {span[1]}\n```python\n{said}\n```")
    return "\n\n".join([*parts, "CLAIM: equivalent"]) + "\n"


def judged(text: str) -> str:
    """The judge's answer: by a hash, and now and then none."""
    number = hashlib.sha256(text.encode()).digest()[0]
    if number % 16 == 0:
        return "Both have their merits."
    if "Translation B" in text:
        return f"BETTER: {('A', 'A', 'B', 'TIE')[number % 4]}"
    return f"SCORE: {number % 5}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", default="standard,retrieved,all")
    parser.add_argument("--rounds", default="3")
    parser.add_argument("--keep", help="a new folder for the programs, the record and the report")
    arguments = parser.parse_args()
    chosen = programs()

    def script(request: dict[str, Any]) -> str:
        text = "\n".join(message["content"] for message in request["messages"])
        if request["model"] == "scripted-judge":
            return judged(text)
        name = next(name for name, example in chosen.items() if example.input_code.rstrip("\n") in text)
        return answer(chosen[name], KNOWN[name], text)

    with tempfile.TemporaryDirectory(prefix="t2j-evaluation-") as scratch, serve(script) as served:
        home = Path(arguments.keep or scratch)
        folder = home / "programs"
        folder.mkdir(parents=True)
        for name, example in chosen.items():
            (folder / f"{name}.py").write_text(example.input_code)
            (folder / f"{name}_jax.py").write_text(example.fix_output)
        return t2j([
            "eval", str(folder), "--model", "scripted", "--base-url", served.url, "--judge", "scripted-judge",
            "--prompts", arguments.prompts, "--rounds", arguments.rounds, "--record", str(home / "record"),
            "--json", str(home / "report.json"), "--markdown", str(home / "report.md"),
            "--dialogues", str(home / "dialogues.jsonl"),
        ])  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
