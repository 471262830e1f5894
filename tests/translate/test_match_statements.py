"""What stands in the cases of a ``match`` is read as what stands in the branches of an ``if``."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = "import sys\nimport torch\nfrom torch import nn\n\n\n"


def test_definitions_of_the_module_level_stand_in_cases() -> None:
    text = """\
match sys.platform:
    case "linux":
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(3, 4)

            def forward(self, x):
                return act(self.lin(x))

        def act(x):
            return torch.relu(x)

        device = torch.device("cuda")
    case _:
        device = torch.device("cpu")

net = Net()
print(net(torch.ones(2, 3).to(device)))
"""
    done = convert(HEAD + text)
    assert not done.gaps and "net = Net(rngs=rngs)" in done.code and "device" not in done.code


@pytest.mark.parametrize("inner", ["x[0] = 2", "x *= 2"])
def test_a_write_for_the_caller_is_told_where_it_stands(inner: str) -> None:
    text = f"def f(x: torch.Tensor, kind: str):\n    match kind:\n        case 'a':\n            {inner}\n"
    assert [(gap.code, gap.span.line) for gap in convert(HEAD + text).gaps] == [("in-place-shared", 9)]


def test_a_fresh_array_is_written_into_in_a_case() -> None:
    text = (
        "def f(n: int, kind: str):\n    match kind:\n        case 'a':\n            out = torch.ones(n)\n"
        "            out[0] = 2\n            return out\n"
    )
    done = convert(HEAD + text)
    assert not done.gaps and "out = out.at[0].set(2)" in done.code


def test_a_method_in_place_on_what_is_picked_in_a_case_converts() -> None:
    """Once a failure of t2j itself: the statement was in no list of those of the function."""
    text = (
        "def f(x: torch.Tensor, table: torch.Tensor, kind: str):\n    match kind:\n        case 'a':\n"
        "            table[0] = x\n            return x\n        case _:\n            return table * 2\n"
    )
    (gap,) = convert(HEAD + text).gaps
    assert "caller's 'table'" in gap.reason
