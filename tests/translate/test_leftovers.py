"""No use of PyTorch stays in the output in silence: it is converted, kept on purpose, or a gap."""

from __future__ import annotations

import pytest

from t2j_lsp.contract import Severity

from .convert import body, run

INNER = """
class {outer}:
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 4)

        def forward(self, x):
            return torch.relu(self.fc(x))

    def __init__(self):
        super().__init__()
        self.a = {name}()

    def forward(self, x):
        return self.a(x)
"""


@pytest.mark.parametrize("name", ["Net.Inner", "self.Inner"])
def test_class_in_a_class_is_converted_with_it(name: str) -> None:
    code = body(INNER.format(outer="Net(nn.Module)", name=name))
    assert "class Inner(nnx.Module):" in code
    assert f"self.a = {name}(rngs=rngs)" in code
    assert "torch." not in code and "nn.Linear(3, 4)" not in code.replace("nnx.", "")


def test_class_in_a_plain_class_is_converted() -> None:
    code = body("""
    class Family:
        class Net(nn.Module):
            def forward(self, x):
                return torch.relu(x)
    """)
    assert "class Net(nnx.Module):" in code and "jax.nn.relu(x)" in code


def test_function_of_torch_handed_over_where_no_rule_takes_it_is_a_gap() -> None:
    result = run("""
    from functools import partial

    def initializer(fill, count):
        def fill_all(weight):
            for index in range(count):
                fill(weight[index])
        return fill_all

    class Net(nn.Module):
        def reset(self):
            initializer(partial(nn.init.kaiming_uniform_, a=2.0), 3)(self.weight)
    """)
    gaps = [f for f in result.findings if f.severity is Severity.GAP]
    assert [(f.name, f.code) for f in gaps] == [("torch.nn.init.kaiming_uniform_", "function-value")]
    assert "# TODO(t2j): a partial of torch.nn.init.kaiming_uniform_ draws random numbers" in result.code


@pytest.mark.parametrize(
    "source",
    [
        # Data pipelines stay on purpose, with what feeds them.
        """
        from torch.utils.data import DataLoader, TensorDataset
        data = torch.linspace(-1, 1, 12).reshape(4, 3)
        for batch in DataLoader(TensorDataset(data), batch_size=2):
            print(batch)
        """,
        # The helper that is written is called as PyTorch's class is.
        """
        from torch.nn import Identity
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.last = Identity()
        """,
    ],
)
def test_what_stays_on_purpose_is_no_gap(source: str) -> None:
    assert [f for f in run(source).findings if f.severity is Severity.GAP] == []
