"""Whole training scripts in the shapes their users write: converted, run beside PyTorch, read; and what stays whole.

Each file of ``scripts`` has its own shape: functions with the model and the optimizer as parameters or read from the
module level, a trainer class, everything at the module level; loaders, batches by index, generators; one optimizer or
two; gradients that add up, are clipped, or are scaled; learning rates by scheduler or by hand; phases in one loop.
"""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from t2j_lsp.contract import Options, Translation
from t2j_lsp.translate import translate

from .training_sides import trained

SCRIPTS = Path(__file__).with_name("scripts")

COMPARED = {
    "accumulate": (("model",), ("losses", "norms", "rates")),
    "autoencoder": (("model",), ("history", "rates")),
    "best_weights": (("policy", "target"), ("losses", "scores", "distances")),
    "char_rnn": (("model",), ("losses",)),
    "dcgan": (("netG", "netD"), ("G_losses", "D_losses", "values")),
    "distill": (("student", "teacher"), ("losses",)),
    "early_stopping": (("model",), ("losses", "scores")),
    "finetune": (("model",), ("losses",)),
    "functions": (("model",), ("losses", "scores")),
    "gan": (("generator", "discriminator"), ("g_losses", "d_losses")),
    "gpt": (("model",), ("losses", "rates")),
    "mnist": (("model",), ("losses", "scores")),
    "polynomial": (("model",), ("losses", "values")),
    "regression": (("model",), ("losses", "values")),
    "trainer": (("model",), ("trainer.losses", "trainer.accuracies")),
    "trainer_given": (("m",), ("losses", "scores")),
    "transfer": (("model_ft",), ("history",)),
    "vae": (("model",), ("losses",)),
}
"""The modules and the lists of numbers of each script that both sides must agree on."""


@functools.cache
def source(name: str) -> str:
    return (SCRIPTS / f"{name}.py").read_text(encoding="utf-8")


@functools.cache
def converted(name: str) -> Translation:
    return translate(source(name), Options(helpers="import"))


def steps(code: str) -> list[ast.FunctionDef]:
    """The compiled functions of converted code."""
    functions = [n for n in ast.parse(code).body if isinstance(n, ast.FunctionDef)]
    marked = [n for n in functions if any("jit" in ast.unparse(d) for d in n.decorator_list)]
    bound = set(re.findall(r"jit_partial\((\w+), |bound_jit\(\s*(\w+), ", code))
    return [*marked, *(n for n in functions if any(n.name in names for names in bound))]


def test_every_script_is_compared() -> None:
    assert sorted(COMPARED) == sorted(path.stem for path in SCRIPTS.glob("*.py"))


@pytest.mark.filterwarnings("ignore::FutureWarning")  # torch.cuda.amp, which is still what people write
@pytest.mark.parametrize("name", COMPARED)
def test_a_script_trains_as_in_pytorch(name: str) -> None:
    modules, lists = COMPARED[name]
    trained(source(name), modules, lists)


# --- what the conversions look like ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMPARED)
def test_only_arithmetic_is_compiled(name: str) -> None:
    """Prints, numbers taken out of arrays, modes and loaders stay in Python; each loop has its compiled steps."""
    code = converted(name).code
    assert steps(code)
    for step in steps(code):
        text = ast.unparse(step)
        for word in (".item()", "print(", ".train()", ".eval()", "losses.append", "scheduler"):
            assert word not in text, text
    for word in (".backward()", "zero_grad(", ".to(device)", "no_grad", "detach()", "optimizer.step()"):
        assert word not in code


@pytest.mark.parametrize("name", COMPARED)
def test_a_converted_script_converts_to_itself(name: str) -> None:
    code = converted(name).code
    assert translate(code, Options(helpers="import")).code == code


def between(name: str, start: str, end: str) -> str:
    code = converted(name).code
    return code[code.index(start) :].partition(end)[0].rstrip() + "\n"


def test_the_step_of_a_function_with_its_loop() -> None:
    assert between("mnist", "def train_step", "        if batch_idx") == (
        """\
def train_step(model, optimizer, data, target):
    loss, grads = nnx.value_and_grad(lambda model: nll_loss(model(data), target))(model)
    optimizer.update(model, grads)
    return loss


def train(args, model, device, train_loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = np.asarray(data), np.asarray(target)
        loss = bound_jit(train_step, model, optimizer)(data, target)
"""
    )


def test_an_optimizer_that_is_too_long_has_a_name_for_its_transformation() -> None:
    source = """from torch import nn
import torch

model = nn.Linear(3, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.05, betas=(0.8, 0.95), weight_decay=0.1)
short = torch.optim.SGD(model.parameters(), lr=0.1)
"""
    code = translate(source).code
    assert "tx = optax.adamw(0.05, b1=0.8, b2=0.95, weight_decay=0.1)\n" in code
    assert "optimizer = nnx.Optimizer(model, tx, wrt=nnx.Param)\n" in code
    assert "short = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)\n" in code
    one_line = source.replace("betas=(0.8, 0.95), ", "")
    assert "nnx.Optimizer(model, optax.adamw(0.05, weight_decay=0.1), wrt=nnx.Param)\n" in translate(one_line).code


def test_what_only_annotations_would_import_is_left_out_of_a_scheduler() -> None:
    code = translate((SCRIPTS / "mnist.py").read_text(encoding="utf-8")).code
    assert "def __init__(self, optimizer, schedule):\n" in code
    assert "typing" not in code and "collections.abc" not in code


def test_two_optimizers_make_two_steps() -> None:
    assert between("gan", "    (g_loss, gen_imgs), grads", "for epoch") == (
        """\
    (g_loss, gen_imgs), grads = nnx.value_and_grad(loss_fn, has_aux=True)(generator, discriminator)
    optimizer_G.update(generator, grads)
    return g_loss, gen_imgs


generator_step = nnx.jit_partial(generator_step, generator, discriminator, optimizer_G, graph=False)


def discriminator_step(discriminator, optimizer_D, imgs, valid, gen_imgs, fake):
    def loss_fn(discriminator):
        # Measure discriminator's ability to classify real from generated samples
        real_loss = adversarial_loss(discriminator(imgs), valid)
        fake_loss = adversarial_loss(discriminator(jax.lax.stop_gradient(gen_imgs)), fake)
        return (real_loss + fake_loss) / 2

    d_loss, grads = nnx.value_and_grad(loss_fn)(discriminator)
    optimizer_D.update(discriminator, grads)
    return d_loss


discriminator_step = nnx.jit_partial(discriminator_step, discriminator, optimizer_D, graph=False)
"""
    )


def test_gradients_that_add_up_are_a_variable_of_the_loop() -> None:
    assert between("accumulate", "for epoch", "\f") == (
        """\
for epoch in range(2):
    model.train()
    grads = zeros = bound_jit(zero_step, model)()
    for step, (inputs, targets) in enumerate(loader):
        inputs, targets = np.asarray(inputs), np.asarray(targets)
        loss, grads = bound_jit(accumulate_gradients, model)(grads, inputs, targets)
        losses.append(loss.item() * ACCUMULATION_STEPS)

        if (step + 1) % ACCUMULATION_STEPS == 0:
            norm = grad_norm(grads)
            grads = clip_grad_norm(grads, MAX_NORM)
            norms.append(norm.item())
            bound_jit(apply_step, model, optimizer)(grads)
            grads = zeros
            rates.append(float(scheduler(optimizer.step.item())))
"""
    )


def test_phases_share_their_loss() -> None:
    assert between("transfer", "def loss_fn", "def train_model") == (
        """\
def loss_fn(model, inputs, labels, criterion):
    outputs = model(inputs)
    return criterion(outputs, labels), outputs


@nnx.jit(static_argnames="criterion")
def train_step(model, optimizer, inputs, labels, criterion):
    (loss, outputs), grads = nnx.value_and_grad(loss_fn, has_aux=True)(model, inputs, labels, criterion)
    optimizer.update(model, grads)
    return loss, outputs


eval_step = nnx.jit(loss_fn, static_argnames="criterion")
"""
    )


def test_a_part_of_a_model_is_clipped_and_updated_alone() -> None:
    assert between("finetune", "    loss, grads", "\f") == (
        """\
    loss, grads = nnx.value_and_grad(lambda model: criterion(model(x), y))(model)
    grads = grads.head
    # optax.clip_by_global_norm scales by max_norm / norm, PyTorch by max_norm / (norm + 1e-6)
    scale = jnp.minimum(0.1 / (optax.tree.norm(grads) + 1e-6), 1.0)
    grads = jax.tree.map(lambda g: g * scale.astype(g.dtype), grads)
    optimizer.update(model.head, grads)
    return loss


for epoch in range(3):
    epoch_loss = 0.0
    for x, y in batches(4):
        loss = train_step(model, optimizer, x, y)
        epoch_loss += loss.item()
    losses.append(epoch_loss)
"""
    )


def test_comments_go_with_what_they_are_about() -> None:
    """All about zeroing is gone, paragraph by paragraph; the others stand at their code."""
    assert between("polynomial", "for t in", "    if t % 2") == (
        """\
for t in range(10):
    # Backward pass: compute gradient of the loss with respect to model
    # parameters
    # Calling the step function on an Optimizer makes an update to its
    # parameters
    loss = train_step(xx, y)
"""
    )


def test_a_string_of_several_lines_moves_as_it_is() -> None:
    source = """\
import torch
import torch.nn.functional as F


def train(model: torch.nn.Module, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        # the prediction
        out = named(model(x), \'\'\'first
  second
    third\'\'\')
        loss = F.mse_loss(out, y)  # the mean
        assert out.shape == y.shape, f\'\'\'{out.shape} is
not
      {y.shape}\'\'\'
        loss.backward()
        optimizer.step()
"""
    code = translate(source).code
    assert "        # the prediction\n        out = named(model(x), '''first\n  second\n    third''')\n" in code
    assert "  # the mean\n" in code
    assert "        assert out.shape == y.shape, f'''{out.shape} is\nnot\n      {y.shape}'''\n" in code


def test_nothing_is_detached_that_no_gradient_reaches() -> None:
    assert "stop_gradient" not in converted("distill").code
    assert "stop_gradient" not in converted("transfer").code
    assert "stop_gradient" not in converted("char_rnn").code  # nothing differentiated calls the function that detaches


def test_assignments_that_only_moved_something_go() -> None:
    assert "model = model\n" not in converted("gpt").code
    assert "x, y = x, y" not in converted("gpt").code


FLAT = """\
import torch
from torch import nn

net = nn.Linear(3, 2)
x = torch.ones(2, 3)
losses = []
# train
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

# the loss
loss = net(x).sum()  # a sum

optimizer.zero_grad()
loss.backward()
# go
optimizer.step()
losses.append(loss.item())
loss = (net(x) ** 2).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
losses.append(loss.item())
"""


def test_steps_at_the_module_level_stand_in_front_of_what_calls_them() -> None:
    code = trained(FLAT, modules=("net",)).translation.code
    assert code.index("import optax") < code.index("def net_step(") < code.index("def update_net(") < code.index("# go")
    assert (
        "    return loss\n\n\n@nnx.jit(graph=False)\ndef update_net(" in code and "    return loss\n\n\n# go\n" in code
    )
