"""Classes of optimizers whose step computes something of all gradients before it walks over the parameters."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .optimizer_classes import program
from .training_sides import trained

CLIPPED = '''\
class Clipped(Optimizer):
    """Momentum of gradients whose norm of all is at most one."""

    def __init__(self, params, lr=0.05, momentum=0.9, max_norm=0.1, average=True):
        self.least = 1e-3
        super().__init__(params, dict(lr=lr, momentum=momentum, max_norm=max_norm, average=average))

    @torch.no_grad()
    def _scale(self):
        max_norm = self.defaults["max_norm"]
        if max_norm is None:
            return None
        grads = []
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad
                if grad.is_sparse:
                    raise RuntimeError("no sparse gradients")
                grads.append(grad)
        if not grads:
            return None
        if hasattr(torch, "_foreach_norm"):
            norms = torch._foreach_norm(grads)
        else:
            norms = [torch.linalg.vector_norm(grad) for grad in grads]
        total = torch.linalg.vector_norm(torch.stack(norms))
        return (total / max_norm).clamp_(min=self.least)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        scale = self._scale()
        for group in self.param_groups:
            average = 1 if group["average"] else 0
            kept = 1 - group["momentum"] if average else 1.0
            if "step" not in group:
                group["step"] = torch.tensor(0.0)
            group["step"].add_(1)
            if not any(p.grad is not None for p in group["params"]):
                continue
            correction = 1 - group["momentum"] ** group["step"].item()
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad
                if scale is not None:
                    grad = grad / scale
                state = self.state[p]
                if len(state) == 0:
                    state["buffer"] = torch.zeros_like(p)
                buffer = state["buffer"]
                buffer.mul_(group["momentum"]).add_(grad, alpha=kept)
                p.add_(buffer, alpha=-group["lr"] / correction)
        return loss
'''


@pytest.mark.parametrize(
    "call",
    [
        "Clipped(model.parameters())",
        "Clipped(model.parameters(), max_norm=None)",
        "Clipped(model.parameters(), lr=0.01, max_norm=5.0, average=False)",
    ],
)
def test_it_makes_the_steps_of_pytorch(call: str) -> None:
    code = trained(program(call, CLIPPED)).translation.code
    assert "def update_parameter(p: jax.Array, grad: jax.Array, state: dict[str, jax.Array], scale):" in code
    assert "return for_each_parameter_given(init_state, update_parameter, of_all_gradients)" in code


LISTED = "norms = [torch.linalg.vector_norm(grad) for grad in grads]"
SAME = {
    "a loop under the condition": (
        '                if p.grad is None:\n                    continue\n                grad = p.grad\n'
        '                if grad.is_sparse:\n                    raise RuntimeError("no sparse gradients")\n'
        "                grads.append(grad)\n",
        "                if p.grad is not None:\n                    grads.append(p.grad)\n",
    ),
    "norms of tensors": (LISTED, "norms = [grad.norm(2) for grad in grads]"),
    "sums of squares": (
        "total = torch.linalg.vector_norm(torch.stack(norms))",
        "total = torch.sqrt(sum(grad.pow(2).sum() for grad in grads))",
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", SAME)
def test_the_norm_is_written_in_ways(form: str) -> None:
    old, new = SAME[form]
    assert old in CLIPPED
    trained(program("Clipped(model.parameters())", CLIPPED.replace(old, new)))


LATER = "        scale = 2\n        for group in self.param_groups:\n            average"
RETURN = "        return (total"
REFUSED = {
    "axes of a gradient": (LISTED, "norms = [grad.norm(dim=0).max() for grad in grads]"),
    "some elements": (LISTED, "norms = [grad[0].norm() for grad in grads]"),
    "some parameters": ("grads.append(grad)", "if grad.ndim > 1:\n                    grads.append(grad)"),
    "another thing that it keeps": ("return (total", "self.total = total\n        return (total"),
    "another value later": ("        for group in self.param_groups:\n            average", LATER),
    "gradients that it writes": ("        total = ", "        for g in grads:\n            g.abs_()\n        total = "),
    "gradients that it changes": ("        total = ", "        for g in grads:\n            g *= 2\n        total = "),
    "rows of a gradient": (LISTED, "norms = [max(row.norm() for row in grad) for grad in grads]"),
    "sums of rows": (LISTED, "norms = [sum(grad).norm() for grad in grads]"),
    "the first learning rate": ("(total / max_norm)", "(self.defaults['lr'] * total / max_norm)"),
    "an order": (RETURN, f"        for g in grads:\n            total = 0.5 * total + g.norm()\n{RETURN}"),
    "a condition on it": (RETURN, f"        if total > 1:\n            return total\n{RETURN}"),
    "a choice by it": (RETURN, f"        total = total if total > 1 else 1.0\n{RETURN}"),
    "a number of it": (RETURN, f"        total = total * grads[0].norm().item()\n{RETURN}"),
    "the largest of it": (LISTED, "norms = [torch.tensor(max(grad.norm() for grad in grads))]"),
    "a counter that a call begins": ("torch.tensor(0.0)\n", "int(self.least)\n"),
    "a second call": ("        scale = self._scale()", "        scale = self._scale()\n        print(self._scale())"),
}  # fmt: skip


@pytest.mark.parametrize("form", REFUSED)
def test_what_is_more_than_that_is_a_gap(form: str) -> None:
    old, new = REFUSED[form]
    assert old in CLIPPED
    done = convert(program("Clipped(model.parameters())", CLIPPED.replace(old, new)))
    assert any("custom optimizer" in gap.reason for gap in done.gaps), done.code
    assert "for_each_parameter" not in done.code


GROUPS = "[{'params': model[0].parameters(), 'lr': 1e-3}, {'params': model[2].parameters()}], lr=1e-2"


def test_groups_have_their_gradients_apart_in_optax_so_that_their_norm_is_unknown() -> None:
    done = convert(program(f"Clipped({GROUPS})", CLIPPED))
    assert any("of the gradients of all groups" in gap.reason for gap in done.gaps)
