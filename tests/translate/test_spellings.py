"""One meaning, spelled in two ways, becomes the same code."""

from __future__ import annotations

import pytest

from t2j_lsp.translate import translate

HEAD = "import torch\nimport torch.nn as nn\n"
NET = """

class Net(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        {init}

    def forward(self, x):
        return x
"""
CLIPPED = """
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in [(torch.ones(4, 3), torch.ones(4, 2))]:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_({})
    optimizer.step()
"""


def net(*lines: str) -> str:
    return HEAD + NET.format(init="\n        ".join(lines))


SPELLINGS = {
    "modules of a list by name": (
        net("self.a = nn.ModuleList([nn.Linear(2, 3)])"),
        net("self.a = nn.ModuleList(modules=[nn.Linear(2, 3)])"),
    ),
    "parameters of a list by name": (
        net("self.a = nn.ParameterList([nn.Parameter(torch.ones(2))])"),
        net("self.a = nn.ParameterList(values=[nn.Parameter(torch.ones(2))])"),
    ),
    "parameters of a dict by name": (
        net("self.a = nn.ParameterDict({'b': nn.Parameter(torch.ones(2))})"),
        net("self.a = nn.ParameterDict(parameters={'b': nn.Parameter(torch.ones(2))})"),
    ),
    "a default that the helper has no parameter for": (
        net("self.a = nn.ConvTranspose2d(2, 3, 2)"),
        net("self.a = nn.ConvTranspose2d(2, 3, 2, padding_mode='zeros')"),
    ),
    "no bias by place": (
        net("self.e = nn.Embedding(n, m)", "self.a = nn.Linear(m, n, bias=False)", "self.a.weight = self.e.weight"),
        net("self.e = nn.Embedding(n, m)", "self.a = nn.Linear(m, n, False)", "self.a.weight = self.e.weight"),
    ),
    "a table in a dict by name": (
        net(
            "self.t = nn.ModuleDict(dict(e=nn.Embedding(n, m)))",
            "self.a = nn.Linear(m, n, bias=False)",
            "self.a.weight = self.t.e.weight",
        ),
        net(
            "self.t = nn.ModuleDict(modules=dict(e=nn.Embedding(n, m)))",
            "self.a = nn.Linear(m, n, bias=False)",
            "self.a.weight = self.t.e.weight",
        ),
    ),
    "clipped parameters by name": (
        HEAD + CLIPPED.format("model.parameters(), 1.0"),
        HEAD + CLIPPED.format("parameters=model.parameters(), max_norm=1.0"),
    ),
    "a seed by name": (
        HEAD + "\ntorch.manual_seed(3)\nprint(torch.randn(2))\n",
        HEAD + "\ntorch.manual_seed(seed=3)\nprint(torch.randn(2))\n",
    ),
    "settings in a dict": (
        net("self.a = nn.Linear(n, m, bias=False)"),
        net("self.a = nn.Linear(n, m, **dict(bias=False))"),
    ),
    "settings in a dict display": (
        HEAD + "\n\ndef f(x: torch.Tensor):\n    return torch.cat([x, x], dim=1)\n",
        HEAD + "\n\ndef f(x: torch.Tensor):\n    return torch.cat([x, x], **{'dim': 1})\n",
    ),
    "layers by getattr": (
        net("self.a = nn.Linear(2, n)", "kind = nn.LayerNorm", "self.b = kind(n)"),
        net("self.a = getattr(nn, 'Linear')(2, n)", "kind = getattr(nn, 'LayerNorm')", "self.b = kind(n)"),
    ),
    "layers by their bare names": (
        net("self.a = nn.Linear(2, 3)"),
        net("self.a = nn.Linear(2, 3)")
        .replace("import torch.nn as nn", "from torch.nn import *")
        .replace("nn.Module", "Module")
        .replace("nn.Linear", "Linear"),
    ),
}


def plain(code: str) -> str:
    """Without the names of arguments that Flax takes by place or by name, and without line breaks."""
    for name in ("modules=", "max_norm="):
        code = code.replace(name, "")
    return "".join(code.split())


@pytest.mark.parametrize("name", SPELLINGS)
def test_two_spellings_become_the_same(name: str) -> None:
    first, second = (translate(source) for source in SPELLINGS[name])
    assert first.gaps == second.gaps == ()
    assert plain(first.code) == plain(second.code)


def test_several_sizes_are_numbers_without_annotations() -> None:
    result = translate(net("self.w = nn.Parameter(torch.Tensor(n, m))", "self.b = nn.Parameter(torch.Tensor(m))"))
    assert result.gaps == ()
    assert "jnp.empty((m,))" in result.code or "jnp.empty(m)" in result.code


def test_a_walk_over_parameters_has_the_name_that_flax_has_here() -> None:
    source = net(
        "self.c = nn.Linear(n, m)",
        "for nnx, p in self.named_parameters():",
        '    if nnx.endswith("bias"):',
        "        torch.nn.init.zeros_(p)",
    )
    result = translate(source)
    assert result.gaps == ()
    assert "nnx_.to_flat_state(nnx_.state(self, nnx_.Param))" in result.code


def test_a_value_that_is_named_in_passing_keeps_its_brackets() -> None:
    result = translate(f"{HEAD}\n\ndef f(x: torch.Tensor):\n    r = (y := torch.tanh(x)).clone()\n    return r + y\n")
    assert result.gaps == ()
    assert "r = (y := jnp.tanh(x))\n" in result.code


def test_a_comment_in_an_empty_call_ends_before_the_bracket() -> None:
    result = translate(net("self.a = nn.Sequential(", "    # filled below", ")", "self.a.append(nn.Linear(n, m))"))
    assert result.gaps == ()
    assert "# filled below\n" in result.code


def test_what_is_named_in_an_argument_is_named_before_it_is_read() -> None:
    source = f"{HEAD}\n\ndef f(x: torch.Tensor):\n    return (d := x.pow(2)).masked_fill(d == 1, 0.0)\n"
    result = translate(source)
    assert result.gaps == ()
    assert result.code.index("(d :=") < result.code.index("d == 1")


def test_settings_in_a_dict_that_the_helper_has_not_are_said() -> None:
    result = translate(net("self.a = nn.MultiheadAttention(4, 2, **dict(kdim=4, device='cpu'))"))
    assert [gap.code for gap in result.gaps] == ["arguments"]


def test_a_list_that_is_spread_shows_what_is_in_a_sequential() -> None:
    result = translate(net("self.a = nn.Sequential(*[nn.Linear(n, m), nn.Tanh()])", "print(self.a[0].weight.shape)"))
    assert result.gaps == ()
    assert "self.a[0].kernel.T.shape" in result.code


def test_what_is_asked_of_a_multiple_tells_of_a_parameter() -> None:
    result = translate(net("self.a = nn.Linear(n, m)").replace("return x", "return (0.5 * x).exp()"))
    assert result.gaps == ()
    assert "jnp.exp(0.5 * x)" in result.code


@pytest.mark.parametrize("module", ["torch.sparse.torch", "torch.nn.functional.torch"])
def test_pytorch_itself_under_the_name_of_a_module_that_imports_it(module: str) -> None:
    assert "x = jnp.eye(3)" in translate(f"import torch\nx = {module}.eye(3)\n").code
