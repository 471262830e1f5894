"""The target ``jax``: modules as pairs of functions of a dict of parameters, and what is not made into functions."""

from __future__ import annotations

import textwrap
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from t2j_lsp.api import convert
from t2j_lsp.contract import Translation
from t2j_lsp.weights import load_torch_state

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


def converted(source: str) -> Translation:
    return convert(HEAD + textwrap.dedent(source), target="jax", helpers="import")


def functions(source: str) -> str:
    """What a text becomes, without its imports; nothing of it stays."""
    result = converted(source)
    assert not result.gaps, result.gaps
    assert convert(result.code, target="jax", helpers="import").code == result.code
    lines = result.code.splitlines()
    last = max(i for i, line in enumerate(lines) if line.startswith(("import ", "from ")))
    return "\n".join(lines[last + 1 :]).strip()


def module(init: str, forward: str, parameters: str = "") -> str:
    """A class with these lines in its two methods."""
    init, forward = (textwrap.indent(textwrap.dedent(one).strip(), " " * 8) for one in (init, forward))
    return (
        f"class Net(nn.Module):\n    def __init__(self{parameters}):\n        super().__init__()\n{init}\n\n"
        f"    def forward(self, x):\n{forward}\n"
    )


def test_a_module_is_two_functions() -> None:
    source = """
    class MLP(nn.Module):
        \"\"\"Two layers.\"\"\"

        def __init__(self, width: int, hidden: int = 8, p=0.1):
            super().__init__()
            self.fc1 = nn.Linear(width, hidden)  # in
            # out
            self.fc2 = nn.Linear(hidden, 3, bias=False)
            self.drop = nn.Dropout(p)

        def forward(self, x):
            # hidden
            h = self.drop(F.relu(self.fc1(x)))  # activations
            return self.fc2(h)
    """
    assert (
        functions(source)
        == textwrap.dedent(
            '''
        def init_mlp(key, width: int, hidden: int = 8, p=0.1):
            keys = iter(jax.random.split(key, 2))
            params = {}
            params["fc1"] = init_dense(next(keys), width, hidden)  # in
            # out
            params["fc2"] = init_dense(next(keys), hidden, 3, bias=False)
            return params


        def mlp(params, x, *, p=0.1, key=None, train=False):
            """Two layers."""
            # hidden
            h = drop(key, jax.nn.relu(dense(params["fc1"], x)), p, train=train)  # activations
            return dense(params["fc2"], h)
        '''
        ).strip()
    )


def test_buffers_are_a_state_that_is_given_back() -> None:
    source = module(
        "self.conv = nn.Conv1d(3, 4, 3, stride=stride)\nself.norm = nn.BatchNorm1d(4)\n"
        "self.scale = nn.Parameter(torch.ones(4, 1))\nself.register_buffer('shift', torch.zeros(4, 1))",
        "y = self.conv(x)\nreturn F.relu(self.norm(y)) * self.scale + self.shift",
        ", stride=2",
    )
    assert (
        functions(source)
        == textwrap.dedent(
            """
        def init_net(key, stride=2):
            params, state = {}, {}
            params["conv"] = init_conv(key, 3, 4, 3, rank=1)
            params["norm"], state["norm"] = init_norm(4), init_running_stats(4)
            params["scale"] = jnp.ones((4, 1))
            state["shift"] = jnp.zeros((4, 1))
            return params, state


        def net(params, state, x, *, stride=2, train=False):
            state = jax.tree.map(lambda leaf: leaf, state)
            y = convolve(params["conv"], x, stride=stride)
            norm, state["norm"] = batchnorm(params["norm"], state["norm"], y, train=train)
            return jax.nn.relu(norm) * params["scale"] + state["shift"], state
        """
        ).strip()
    )


def test_modules_of_the_file_hand_their_settings_on() -> None:
    source = """
    class Head(nn.Module):
        def __init__(self, dim, heads):
            super().__init__()
            self.heads = heads
            self.head_dim = dim // heads
            self.scale = self.head_dim ** -0.5
            self.q = nn.Linear(dim, dim)

        def forward(self, x):
            return self.q(x).view(x.shape[0], self.heads, self.head_dim) * self.scale


    class Net(nn.Module):
        def __init__(self, dim=12, depth=2):
            super().__init__()
            width = 2 * dim
            self.heads = nn.ModuleList([Head(width, 3) for _ in range(depth)])
            self.last = Head(width, heads=4)

        def forward(self, x):
            for head in self.heads:
                x = x + head(x).flatten(1)
            return self.last(x) + len(self.heads)
    """
    code = functions(source)
    assert code.endswith(
        textwrap.dedent(
            """
            def init_net(key, dim=12, depth=2):
                keys = key_stream(key)
                params = {}
                width = 2 * dim
                params["heads"] = [init_head(next(keys), width, 3) for _ in range(depth)]
                params["last"] = init_head(next(keys), width, heads=4)
                return params


            def net(params, x, *, dim=12):
                for head_params in params["heads"]:
                    x = x + jax.lax.collapse(head(head_params, x, dim=2 * dim, heads=3), 1)
                return head(params["last"], x, dim=2 * dim, heads=4) + len(params["heads"])
            """
        ).strip()
    )
    assert "    head_dim = dim // heads\n    scale = head_dim**-0.5\n" in code.replace("head_dim ** -", "head_dim**-")


def test_what_may_be_missing_is_asked_of_the_parameters() -> None:
    source = module(
        """
        if deep:
            self.down = nn.Linear(4, 4)
        else:
            self.down = None
        self.act = nn.GELU() if deep else nn.Identity()
        """,
        """
        y = x
        if self.down is not None:
            y = self.down(x)
        return self.act(y)
        """,
        ", deep=True",
    )
    assert (
        functions(source)
        == textwrap.dedent(
            """
        def init_net(key, deep=True):
            params = {}
            if deep:
                params["down"] = init_dense(key, 4, 4)
            return params


        def net(params, x, *, deep=True):
            y = x
            if "down" in params:
                y = dense(params["down"], x)
            return (jax.nn.gelu(y, approximate=False) if deep else y)
        """
        ).strip()
    )


def test_each_draw_has_a_key_of_its_own() -> None:
    source = module(
        "self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))\nself.drop = nn.Dropout(0.2)",
        """
        for layer in self.layers:
            x = self.drop(layer(x))
        return self.drop(x) + F.dropout(x, 0.1, self.training)
        """,
    )
    assert functions(source).partition("def net")[2] == textwrap.dedent(
        """\
        (params, x, *, key=None, train=False):
            for layer_params in params["layers"]:
                key, subkey = split_key(key)
                x = drop(subkey, dense(layer_params, x), 0.2, train=train)
            key, subkey1, subkey2 = split_key(key, 3)
            return drop(subkey1, x, 0.2, train=train) + drop(subkey2, x, 0.1, train=train)"""
    )


def test_methods_are_functions_of_the_same_parameters() -> None:
    source = module(
        "self.fc = nn.Linear(6, 6)\nself.heads = heads\nself.drop = nn.Dropout(p)",
        "h = self.encode(x, scale=3.0)\nreturn self._head(h)",
        ", heads=2, p=0.1",
    )
    source += (
        "\n    def _head(self, h):\n        return self.fc(h)\n"
        "\n    def encode(self, x, scale=2.0):\n"
        "        return self._head(self.drop(x)) * self.heads * scale\n"
    )
    assert functions(source).partition("return params\n\n\n")[2] == textwrap.dedent(
        """\
        def net(params, x, *, heads=2, p=0.1, key=None, train=False):
            h = net_encode(params, x, scale=3.0, heads=heads, p=p, key=key, train=train)
            return net_head(params, h)


        def net_head(params, h):
            return dense(params["fc"], h)


        def net_encode(params, x, scale=2.0, *, heads=2, p=0.1, key=None, train=False):
            return net_head(params, drop(key, x, p, train=train)) * heads * scale"""
    )


def test_several_attributes_of_one_assignment() -> None:
    source = "def pair(t):\n    return t if isinstance(t, tuple) else (t, t)\n\n\n" + module(
        "self.scale, self.depth = scale, scale * 2\nself.size = height, width = pair(size)\n"
        "self.fc = nn.Linear(height, width)\nself.out = nn.Linear(self.depth, 1)",
        "x = self.out(self.fc(x)) * self.scale + self.size[0]\nreturn x",
        ", size, scale=3",
    )
    code = functions(source)
    assert "    depth = scale * 2\n    height, width = pair(size)\n" in code
    assert "    size = pair(size)\n" not in code and "* scale + (pair(size))[0]" in code, code


def test_a_layer_that_does_nothing_leaves_no_line() -> None:
    code = functions(module("self.id = nn.Identity()", "x = self.id(x)\nreturn F.relu(x)"))
    assert code.endswith("def net(params, x):\n    return jax.nn.relu(x)")


def test_names_of_functions() -> None:
    for name, wanted in (("ViT", "vit"), ("FeedForward", "feed_forward"), ("ResNetBlock", "res_net_block")):
        code = functions(module("self.fc = nn.Linear(3, 4)", "return self.fc(x)").replace("Net", name))
        assert f"def init_{wanted}(key):" in code and f"def {wanted}(params, x):" in code


def test_plain_functions_are_those_of_the_other_target() -> None:
    source = HEAD + "def f(x, y):\n    return torch.cat([x.view(-1), F.relu(y)], dim=0)\n"
    assert convert(source, target="jax").code == convert(source).code


def test_settings_that_are_variables_of_the_constructor_are_what_these_are() -> None:
    source = module(
        "pad = (1, 2)\nwide = 2 * n\nself.conv = nn.Conv2d(3, 3, 3, padding=pad, dilation=wide)\n"
        "self.act = lambda x: F.relu(x)\nself.half = wide // 4",
        "return self.act(self.conv(x)) + self.half",
        ", n=1",
    )
    assert functions(source).partition("def net")[2] == textwrap.dedent(
        """\
        (params, x, *, n=1):
            act = lambda x: jax.nn.relu(x)
            half = (2 * n) // 4
            return act(convolve(params["conv"], x, padding=(1, 2), dilation=2 * n)) + half"""
    )


def test_two_calls_in_one_statement_have_variables_of_their_own() -> None:
    source = module("self.norm = nn.BatchNorm1d(3)", "return self.norm(x) + self.norm(2 * x)")
    assert functions(source).partition("leaf, state)\n")[2].splitlines() == [
        '    norm, state["norm"] = batchnorm(params["norm"], state["norm"], x, train=train)',
        '    norm_, state["norm"] = batchnorm(params["norm"], state["norm"], 2 * x, train=train)',
        "    return norm + norm_, state",
    ]


def test_what_is_known_at_one_place_alone_decides_nothing_at_another() -> None:
    source = module(
        "self.fc = nn.Linear(4, 4)",
        "x = x.reshape(2, 4)\ny = self.fc(x)\nx = x.reshape(1, 2, 4)\nz = self.fc(x)\nreturn y.T, z.mT, z.sum(-1)",
    )
    assert "x = x.reshape(1, 2, 4)" in functions(source)


def test_the_functions_run() -> None:
    source = module("self.fc = nn.Linear(3, 4)\nself.drop = nn.Dropout(0.5)", "return self.drop(self.fc(x))")
    space: dict[str, object] = {}
    exec(convert(HEAD + source, target="jax").code, space)
    import jax

    params = space["init_net"](jax.random.key(0))  # type: ignore[operator]
    x = jnp.ones((2, 3))
    assert space["net"](params, x).shape == (2, 4)  # type: ignore[operator]
    with pytest.raises(ValueError, match="needs a key"):
        space["net"](params, x, train=True)  # type: ignore[operator]
    dropped = space["net"](params, x, key=jax.random.key(1), train=True)  # type: ignore[operator]
    assert (dropped == 0).any()


TRAINED = """
class Net(nn.Module):
    def __init__(self, width, rate=0.5):
        super().__init__()
        self.fc = nn.Linear(3, width)
        self.norm = nn.BatchNorm1d(width)
        self.drop = nn.Dropout(rate)
        self.out = nn.Linear(width, 2)

    def forward(self, x):
        return self.out(self.drop(torch.relu(self.norm(self.fc(x)))))


def train(steps):
    model = Net(4, rate=0.0).to("cpu")
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = torch.linspace(-1, 1, 15).reshape(5, 3) ** 3
    y = torch.tensor([0, 1, 1, 0, 1])
    losses = []
    for epoch in range(steps):
        model.train()
        optimizer.zero_grad()
        out = model(x)
        loss = criterion(out, y)
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            losses.append((loss.item(), model(x).sum().item()))
    return losses
"""


def test_a_plain_training_loop_is_a_step_of_the_parameters() -> None:
    """Losses, and outputs in evaluation between the steps, are PyTorch's from the same initial values."""
    result = convert(HEAD + TRAINED, target="jax")
    assert not result.gaps and "torch" not in result.code.partition("# PyTorch behaviour")[0]
    assert "def train_step(params, opt_state, " in result.code and "@jax.jit(" in result.code
    torch_side: dict[str, Any] = {}
    exec(HEAD + TRAINED, torch_side)
    torch.manual_seed(0)
    initial = torch_side["Net"](4).state_dict()
    torch.manual_seed(0)
    wanted = torch_side["train"](4)
    jax_side: dict[str, Any] = {}
    exec(result.code, jax_side)
    init = jax_side["init_net"]
    jax_side["init_net"] = lambda *given, **options: load_torch_state(init(*given, **options), initial)
    assert np.allclose(jax_side["train"](4), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "line",
    ["print(list(model.parameters()))", "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)", "show(model)"],
)
def test_a_scope_with_more_than_the_plain_loop_stays(line: str) -> None:
    """Nothing of it is written anew."""
    source = TRAINED.replace("    losses = []", f"    {line}\n    losses = []")
    result = converted(source)
    assert result.gaps and source.partition("def train")[2].strip() in result.code


def test_the_mode_is_that_of_the_last_switch() -> None:
    source = module("self.drop = nn.Dropout(0.5)", "return self.drop(x)")
    use = "x = torch.ones(3)\nmodel = Net()\n{}\nfor _ in range(2):\n    y = model(x)\n    {}\n"
    assert "train=True" not in converted(source + use.format("model.eval()", "print(y)")).code.partition("model = ")[2]
    assert "y = net(params, x, key=step_key, train=True)" in converted(source + use.format("pass", "print(y)")).code
    assert "model = Net()" in converted(source + use.format("pass", "model.eval()")).code, "by turns"
