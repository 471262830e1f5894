"""Scripts that call ``loss.backward()`` and never look at a gradient."""

from __future__ import annotations

import pytest

from .convert import run

SCRIPT = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 1)

    def forward(self, x):
        return self.fc(x).sum()


if __name__ == "__main__":
    model = Net()
    loss = model(torch.ones(2, 3))
    {line}
    print(loss, model(torch.zeros(2, 3)))
"""


def test_gradients_that_nothing_reads_are_not_computed_and_that_is_said() -> None:
    result = run(SCRIPT.format(line="loss.backward()"))
    assert not result.gaps and "backward" not in result.code
    assert [(n.name, n.span.line) for n in result.notes if "nothing reads" in n.reason] == [
        ("torch.Tensor.backward", 18)
    ]
    assert "    loss = model(jnp.ones((2, 3)))\n    print(loss, model(jnp.zeros((2, 3))))" in result.code


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ("", "loss.backward(); print(model.fc.weight.grad)"),
        ("", "loss.backward(); torch.optim.SGD(model.parameters(), 0.1).step()"),
        ("from elsewhere import update\n", "loss.backward(); update(model)"),
        ("from elsewhere import Trainer\ntrainer = Trainer()\n", "loss.backward(); trainer.step()"),
        ("", "model.fc.weight.register_hook(print); loss.backward()"),
        ("def check(loss):\n    loss.backward()\nchecks = [check]\n", "loss.backward(); checks[0](loss)"),
        ("", "for _ in range(3): loss.backward()"),
    ],
)
def test_gradients_that_something_may_read_stay(before: str, line: str) -> None:
    result = run(before + SCRIPT.format(line=line))
    assert result.gaps and "loss.backward()" in result.code
