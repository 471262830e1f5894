"""Classes of optimizers of the program's own are functions that make transformations of optax, with the same steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2j_lsp import convert
from t2j_lsp.files.sources import neighbours

from .optimizer_classes import ALL, LION, program
from .training_sides import TOLERANCE, trained


@pytest.mark.parametrize(
    "call",
    [
        "Lion(model.parameters(), lr=1e-2, weight_decay=0.1)",
        "Lion(model.parameters())",
        "Lion(lr=1e-2, params=model.parameters(), betas=(0.5, 0.7))",
        "Momentum(model.parameters(), 0.05)",
        "Momentum(model.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01, nesterov=True)",
        "Momentum(model.parameters(), lr=0.05, momentum=0.9, dampening=0.3)",
        "MyAdam(model.parameters(), lr=0.01)",
        "MyAdam(model.parameters(), lr=0.01, weight_decay=0.1, amsgrad=True)",
        "Rectified(model.parameters(), lr=0.01, weight_decay=0.1)",
        "Rectified(model.parameters(), lr=0.01, degenerated_to_sgd=False)",
        "Lamb(model.parameters(), lr=0.01, weight_decay=0.1)",
        "Lamb(model.parameters(), lr=0.01, clamp=0.5, adam=True)",
        "Buffered(model.parameters(), lr=0.01)",
        "Functional(model.parameters(), lr=0.01)",
        "Functional(model.parameters(), lr=0.01, amsgrad=True, maximize=False)",
        "ByAxes(model.parameters())",
        "MadeBefore(model.parameters())",
        "MadeBefore(model.parameters(), lr=0.1, least=0.1)",
        "Counted(model.parameters())",
        "Counted(model.parameters(), rho=0.5, warmup=20)",
    ],
)
def test_it_makes_the_steps_of_pytorch(call: str) -> None:
    trained(program(call), tolerance=1e-5 if call.startswith("Rectified") else TOLERANCE)  # of .float()


def test_it_is_written_as_an_expert_would() -> None:
    code = convert(program("Lion(model.parameters(), lr=1e-2, weight_decay=0.1)")).code
    assert LION_IN_JAX in code
    assert "nnx.Optimizer(model, Lion(learning_rate=1e-2, weight_decay=0.1), wrt=nnx.Param)" in code


LION_IN_JAX = '''\
def Lion(learning_rate=0.0001, betas=(0.9, 0.99), weight_decay=0.0):
    """The sign of an interpolated momentum."""
    if isinstance(learning_rate, float | int) and (not 0.0 <= learning_rate):
        raise ValueError(f"Invalid learning rate: {learning_rate}")
    if not 0.0 <= betas[0] < 1.0:
        raise ValueError(f"Invalid beta: {betas[0]}")
    beta1, beta2 = betas

    def init_state(p: jax.Array):
        return {"exp_avg": jnp.zeros_like(p)}

    def update_parameter(p: jax.Array, grad: jax.Array, state: dict[str, jax.Array]):
        exp_avg = state["exp_avg"]
        # decoupled weight decay
        p = p * (1 - learning_rate * weight_decay)
        update = exp_avg * beta1 + grad * (1 - beta1)
        update = jnp.sign(update)
        p = p - learning_rate * update
        exp_avg = exp_avg * beta2
        exp_avg = exp_avg + (1 - beta2) * grad
        return p, {"exp_avg": exp_avg}

    return for_each_parameter(init_state, update_parameter)
'''


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        pytest.param("update.sign_()", "update.view(-1).view_as(p)", "axes of a parameter", id="axes"),
        pytest.param("update.sign_()", "update / update.norm(dim=0)", "axes of a parameter", id="a reduced axis"),
        pytest.param("update.sign_()", "normalised(update)", "normalised() a tensor", id="a function that isn't read"),
        pytest.param("update.sign_()", "torch.randn_like(update)", "torch.randn_like", id="random numbers"),
        pytest.param("update.sign_()", "update * self.scale", "self.scale", id="an attribute that is nowhere made"),
        pytest.param(
            "        return loss\n",
            "        for p in self.param_groups[0]['params']:\n            p.mul_(2)\n",
            "beside the walk",
            id="a second walk",
        ),
        pytest.param(
            "beta1, beta2 = group",
            "group['lr'] = 1.0\n                beta1, beta2 = group",
            "group['lr']",
            id="an option that it changes",
        ),
        pytest.param(
            "exp_avg.mul_(beta2)",
            "if beta1 > 0.5:\n                    exp_avg = exp_avg * 2\n                exp_avg.mul_(beta2)",
            "and then another value",
            id="a state that is left behind",
        ),
        pytest.param(
            "p.add_(update.sign_()",
            "p = p * 2\n                p.add_(update.sign_()",
            "the parameter and then another value",
            id="a parameter that is left behind",
        ),
        pytest.param(
            '                if len(state) == 0:\n                    state["exp_avg"] = torch.zeros_like(p)\n',
            "                wide = p.numel() > 3\n                if wide:\n                    if len(state) == 0:\n"
            '                        state["exp_avg"] = torch.zeros_like(p)\n',
            "by the value of wide",
            id="a state that some parameters have",
        ),
        pytest.param("torch.zeros_like(p)\n", "p.data\n", "shares the memory", id="a state that is the parameter"),
        pytest.param(
            "        return loss\n",
            "        if closure is not None:\n            loss = closure()\n        return loss\n",
            "its closure",
            id="a closure that is evaluated again",
        ),
        pytest.param(
            "                beta1, beta2 = group",
            "                print(grad.norm())\n                beta1, beta2 = group",
            "a statement of its step",
            id="what it prints",
        ),
        pytest.param(
            "super().__init__(params, defaults)",
            "super().__init__(params, defaults)\n        self.groups = params",
            "keeps",
            id="parameters that it keeps",
        ),
        pytest.param(
            "    @torch.no_grad()\n",
            "    def zero_grad(self):\n        self.state.clear()\n\n    @torch.no_grad()\n",
            "its method zero_grad",
            id="another method",
        ),
    ],
)
def test_what_it_does_beyond_one_parameter_is_a_gap_that_says_so(old: str, new: str, reason: str) -> None:
    source = program("Lion(model.parameters())")
    assert old in source
    done = convert(source.replace(old, new))
    assert any("custom optimizer" in gap.reason and reason in gap.reason for gap in done.gaps), done.gaps
    assert "for_each_parameter" not in done.code


GROUPS = (
    "[{'params': model[0].parameters(), 'lr': 1e-3}, {'params': model[2].parameters(), 'weight_decay': 0.3}], lr=1e-2"
)
SCHEDULED = "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 4, gamma=0.5)\nfor epoch"
STEPPED = "    optimizer.step()\n    scheduler.step()\n"
SET = "    optimizer.step()\n    for group in optimizer.param_groups:\n        group['lr'] = 0.05 * 0.9 ** epoch\n"


@pytest.mark.parametrize(
    ("call", "edits", "emitted"),
    [
        pytest.param(f"Lion({GROUPS})", {}, "Lion(learning_rate=1e-2, weight_decay=0.3)", id="groups"),
        pytest.param(
            "MyAdam(model.parameters(), weight_decay=0.1)",
            {"for epoch": SCHEDULED, "    optimizer.step()\n": STEPPED},
            "lambda learning_rate: MyAdam(learning_rate=learning_rate, weight_decay=0.1)",
            id="a schedule",
        ),
        pytest.param(
            f"Lion({GROUPS})",
            {"for epoch": SCHEDULED, "    optimizer.step()\n": STEPPED},
            "lambda learning_rate: Lion(learning_rate=learning_rate)",
            id="groups with a schedule",
        ),
        pytest.param(
            "Lamb(model.parameters(), lr=0.05, weight_decay=0.1)",
            {"    optimizer.step()\n": SET},
            'set_hyperparameter(optimizer, "learning_rate", 0.05 * 0.9**epoch)',
            id="a rate that the loop sets",
        ),
        pytest.param(
            "Momentum(model.parameters(), lr=0.05, momentum=0.9, weight_decay=0.1)",
            {"optimizer = ": "model[0].requires_grad_(False)\noptimizer = "},
            "optax.set_to_zero()",
            id="a frozen part",
        ),
        pytest.param(
            "Lion(model.parameters())",
            {"    optimizer.step()\n": "    nn.utils.clip_grad_norm_(model.parameters(), 0.1)\n    optimizer.step()\n"},
            "Lion()",
            id="clipping",
        ),
    ],
)
def test_it_is_used_as_those_of_pytorch(call: str, edits: dict[str, str], emitted: str) -> None:
    source = program(call)
    for old, new in edits.items():
        first, mark, rest = source.partition("# train\n")
        source = first + mark + rest.replace(old, new, 1)
    code = trained(source).translation.code
    assert "".join(emitted.split()) in "".join(code.split())


def test_calls_in_other_files_are_those_of_the_function(tmp_path: Path) -> None:
    (tmp_path / "lion.py").write_text(program("Lion()").partition("\nmodel = ")[0])
    for imported, call in (("from lion import Lion", "Lion"), ("import lion", "lion.Lion")):
        use = program("Lion()", optimizer=imported).replace("Lion()", f"{call}(model.parameters(), lr=0.1)")
        (tmp_path / "train.py").write_text(use)
        done = convert(use, resolve=neighbours(tmp_path / "train.py"))
        assert not done.gaps
        assert f"nnx.Optimizer(model, {call}(learning_rate=0.1), wrt=nnx.Param)" in done.code


@pytest.mark.parametrize(
    "use",
    [
        pytest.param("print(optimizer.state[model[0].weight]['exp_avg'])\n", id="its state"),
        pytest.param("torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, 9)\n", id="a cycle of its betas"),
        pytest.param("kinds = [Lion]\n", id="a value"),
    ],
)
def test_what_the_function_has_not_is_a_gap(use: str) -> None:
    assert convert(program("Lion(model.parameters())") + use).gaps


def test_functions_that_take_the_lists_of_a_step_go_where_nothing_else_calls_them() -> None:
    call = "Functional(model.parameters())"
    assert "def functional" not in convert(program(call)).code
    assert "def functional" in convert(program(call) + "print(functional)\n").code
    assert "def functional" not in convert(program(call).partition("\nmodel = ")[0]).code


def test_a_file_that_imports_a_class_of_one_without_torch_converts(tmp_path: Path) -> None:
    momentum = "from torch.optim.optimizer import Optimizer\n\n\n" + ALL["Counted"].replace(
        "    @torch.no_grad()\n", ""
    )
    (tmp_path / "counted.py").write_text(momentum)
    use = program("Counted(model.parameters())", optimizer="from counted import Counted")
    (tmp_path / "train.py").write_text(use)
    assert not convert(momentum).gaps
    assert not convert(use, resolve=neighbours(tmp_path / "train.py")).gaps


def test_the_ends_of_its_lines_change_nothing() -> None:
    """Documentation over several paragraphs stands at the margin for as long as its empty lines are empty."""
    said = '"""The sign of an interpolated momentum.\n\n    Args:\n        lr: the rate\n\n    """'
    text = "import torch\nfrom torch.optim import Optimizer\n\n\n" + LION.replace(
        '"""The sign of an interpolated momentum."""', said
    )
    assert "        lr: the rate" in text
    other = convert(text.replace("\n", "\r\n"))
    assert other.code.replace("\r\n", "\n") == convert(text).code
    assert not other.gaps
