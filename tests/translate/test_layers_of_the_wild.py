"""Modules, layers and tensors in forms that were met in packages which nobody here wrote, and that once failed."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

from .test_forms_of_the_wild import HEAD
from .test_regressions import equal


@pytest.mark.parametrize("made", ["nn.LSTM(3, 4)", "make()"])
def test_where_the_parameters_of_a_recurrent_layer_lie_is_nothing_to_jax(made: str) -> None:
    text = (
        f"class A(nn.Module):\n    def __init__(self, make):\n        super().__init__()\n        self.rnn = {made}\n\n"
    )
    done = convert(HEAD + text + "    def forward(self, x):\n        self.rnn.flatten_parameters()\n        return x\n")
    assert not done.gaps and "flatten_parameters" not in done.code


@pytest.mark.parametrize(
    ("layer", "call"), [("Bilinear(3, 3, 4)", "reset_parameters()"), ("LSTM(3, 4)", "check_input(x, None)")]
)
def test_methods_of_layers_that_flax_s_have_not_are_gaps(layer: str, call: str) -> None:
    text = f"def f(x: torch.Tensor):\n    fc = nn.{layer}\n"
    assert [gap.code for gap in convert(HEAD + text + f"    fc.{call}\n    return fc(x)\n").gaps] == ["refused"]


RESETS = "def reset(net: nn.Module):\n    for m in net.children():\n        "


@pytest.mark.parametrize(
    "body",
    [
        'getattr(m, "reset_parameters", lambda: None)()',
        'if hasattr(m, "reset_running_stats"):\n            m.reset_running_stats()',
    ],
)
def test_layers_that_are_reset_are_gaps_if_more_than_the_method_is_asked_for(body: str) -> None:
    """Flax's layers have none: a condition on it would leave all of them as they are, in silence."""
    done = convert(HEAD + RESETS + body + "\n")
    assert done.gaps and {gap.name for gap in done.gaps} <= {
        "torch.nn.Module.reset_parameters",
        "torch.nn.Module.reset_running_stats",
    }


@pytest.mark.parametrize("question", ["", 'if hasattr(m, "reset_parameters"):\n            '])
def test_layers_that_are_reset_draw_their_values_anew(question: str) -> None:
    done = convert(HEAD + RESETS + question + "m.reset_parameters()\n")
    assert (
        not done.gaps and "reset_parameters(m, rngs)" in done.code and "def reset(net: nnx.Module, *, rngs" in done.code
    )
    assert ("has_reset_parameters(m)" in done.code) == bool(question)


def test_a_method_of_the_file_may_have_the_name_of_a_layer_s() -> None:
    own = "class A(nn.Module):\n    def reset_parameters(self):\n        self.n = 0\n\n\n"
    assert not convert(HEAD + own + "def f(a: A, b):\n    a.reset_parameters()\n    b.reset_parameters()\n").gaps


@pytest.mark.parametrize(("given", "gaps"), [("size_average=False", 1), ("reduction='sum'", 0)])
def test_losses_that_are_passed_have_no_old_switches(given: str, gaps: int) -> None:
    text = f"def f(crit, x: torch.Tensor):\n    return crit({given})(x, x)\n\n\nf(nn.L1Loss, torch.ones(3))\n"
    assert len(convert(HEAD + text).gaps) == gaps


@pytest.mark.parametrize("name", ["train", "eval"])
def test_a_mode_that_a_module_switches_itself_is_a_gap(name: str) -> None:
    text = (
        f"class A(nn.Module):\n    def {name}(self, mode=True):\n        super().{name}()\n        self.norm.eval()\n"
    )
    done = convert(HEAD + text + "\n    def forward(self, x):\n        return torch.exp(x)\n")
    assert [gap.name for gap in done.gaps] == [f"torch.nn.Module.{name}"] and "jnp.exp(x)" in done.code


def test_a_variable_that_one_branch_makes_and_another_is_given_is_assigned_in_both() -> None:
    text = (
        "class A(nn.Module):\n    def __init__(self, given=None):\n        super().__init__()\n"
        "        if given is None:\n            self.scale = nn.Parameter(torch.ones(3))\n"
        "        else:\n            self.scale = torch.exp(given)\n\n"
        "    def forward(self, x):\n        return x * self.scale\n"
    )
    code = convert(HEAD + text).code
    assert "self.scale = jnp.exp(given)" in code
    before = text.replace("        if given", "        self.scale = nn.Parameter(torch.ones(3))\n        if given")
    assert "self.scale.set_value(jnp.exp(given))" in convert(HEAD + before).code


def test_an_activation_in_a_class_body_is_no_method() -> None:
    text = "class A(nn.Module):\n    act = nn.SiLU()\n    norm = nn.LayerNorm\n\n"
    code = convert(HEAD + text + "    def forward(self, x):\n        return self.act(x)\n").code
    assert "act = staticmethod(nnx.silu)" in code and "staticmethod(LayerNorm)" not in code


GIVEN = (
    "class Conv(nn.Module):\n    default = nn.SiLU()\n\n    def __init__(self, act=True):\n        super().__init__()\n"
    "        self.act = self.default if act is True else act if isinstance(act, nn.Module) else nn.Identity()\n\n"
    "    def forward(self, x):\n        return self.act(x)\n\n\n"
    "class A(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.parts = nn.ModuleList([Conv(), Conv(nn.ReLU()), Conv(nn.LeakyReLU(0.3)), Conv(False)])\n\n"
    "    def forward(self, x):\n        return sum(p(x) * (i + 1) for i, p in enumerate(self.parts))\n"
)


def test_an_activation_that_is_given_counts_as_a_module() -> None:
    equal(HEAD + GIVEN, "given_activations", 3, 5)


def test_a_mask_in_the_shape_of_another_array_is_a_mask() -> None:
    text = "def f(x, v):\n    m = (v == 0).expand_as(x)\n    x = x.clamp(min=0)\n    x[m] = 1\n    return x\n"
    assert "x = set_where(x, m, 1)" in convert(HEAD + text).code


@pytest.mark.parametrize(
    ("items", "cut"),
    [
        ("[score(h) for h in hs]", True),
        ("[x.sum() for _ in range(2)]", True),
        ("[ord(w) for w in hs]", False),
        ("[float(h) for h in hs]", False),
    ],
)
def test_a_tensor_made_of_tensors_carries_no_gradient(items: str, cut: bool) -> None:
    code = convert(HEAD + f"def f(x: torch.Tensor, hs, score):\n    return torch.tensor({items})\n").code
    array = f"jnp.array({items})"
    assert f"return jax.lax.stop_gradient({array})" in code if cut else f"return {array}" in code


@pytest.mark.parametrize("kept", ["torch.FloatTensor", "torch.cuda.FloatTensor if cuda else torch.FloatTensor"])
def test_an_old_tensor_type_that_has_a_name_is_what_it_names(kept: str) -> None:
    text = f"import torch\ncuda = torch.cuda.is_available()\nTensor = {kept}\n\n\n"
    text += "def f(x: torch.Tensor):\n    return x.type(Tensor) + Tensor([1, 2])\n"
    done = convert(text)
    assert not done.gaps
    assert "return x.astype(jnp.float32) + jnp.array([1, 2], dtype=jnp.float32)" in done.code


def test_old_tensor_types_of_two_kinds_are_left() -> None:
    text = "import torch\nlong = True\nTensor = torch.LongTensor if long else torch.FloatTensor\n\n\n"
    assert convert(text + "def f(x: torch.Tensor):\n    return x.type(Tensor)\n").gaps


def test_filters_of_parameters_know_what_they_pick() -> None:
    """``lambda p`` is given a parameter; all of them count as trained, where the file freezes none."""
    text = "def f(net: nn.Module):\n    return sum(p.numel() for p in filter(lambda p: {}, net.parameters()))\n"
    done = convert(HEAD + text.format("p.requires_grad"))
    assert "for p in jax.tree.leaves(nnx.state(net, nnx.Param)))" in done.code and not done.gaps
    assert "lambda p: p.ndim > 1," in convert(HEAD + text.format("p.requires_grad and p.dim() > 1")).code


OLD_ITEMS = """import torch
import torch.nn.functional as F

net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def train(x, y):
    optimizer.zero_grad()
    loss = 0
    for i in range(3):
        loss += F.mse_loss(net(x[i]), y[i])
    loss.backward()
    optimizer.step()
    return {}
"""


@pytest.mark.parametrize("read", ["loss.data[0] / 3", "F.mse_loss(x, y).data[0]"])
def test_numbers_read_as_before_0_4_are_items(read: str) -> None:
    """Tensors of one number had an axis then; a tensor without axes has no item 0, in JAX neither."""
    done = convert(OLD_ITEMS.format(read))
    assert not done.gaps
    assert done.code == convert(OLD_ITEMS.format(read.replace(".data[0]", ".item()"))).code


def test_an_item_of_a_tensor_with_axes_is_its_item() -> None:
    done = convert("import torch\n\n\ndef f(n: int):\n    x = torch.zeros(n)\n    return x.data[0]\n")
    assert "return jax.lax.stop_gradient(x)[0]" in done.code and not done.gaps


def test_a_train_that_takes_nothing_is_a_method_of_its_own() -> None:
    """PyTorch sets no mode by it: ``eval()`` would fail there."""
    text = "class A(nn.Module):\n    def train(self):\n        return torch.exp(self.x)\n"
    done = convert(HEAD + text)
    assert "return jnp.exp(self.x)" in done.code and not done.gaps
    assert len(convert(HEAD + text.replace("self)", "self, *mode)", 1)).gaps) == 1


def test_what_type_as_is_asked_of_is_chosen_from_a_tensor() -> None:
    text = "def accuracy(output, labels):\n    return output.max(1)[1].type_as(labels).eq(labels)\n"
    done = convert(HEAD + text)
    assert "output.argmax(axis=1).astype(labels.dtype) == labels" in done.code and not done.gaps


def test_transposed_arrays_of_other_libraries_are_theirs() -> None:
    """``*`` of SciPy's matrices multiplies them."""
    text = "import scipy.sparse as sp\n\nadj = sp.eye(3)\nadj = adj + adj.T.multiply(adj.T > adj)\nx = torch.ones(2)\n"
    assert "adj.T.multiply(adj.T > adj)" in convert(HEAD + text).code


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("table", "Buffer"),
        ("table, padding_idx=0", "Buffer"),
        ("table, freeze=False", "nnx.Param"),
        ("table, freeze=False, padding_idx=0", None),
        ("table, max_norm=1.0", None),
    ],
)
def test_tables_that_are_given_are_trained_where_they_are_not_frozen(given: str, kind: str | None) -> None:
    """A frozen one is a buffer, which no optimizer of `nnx.Param` has; rows that pad are those without gradients."""
    init = f"        super().__init__()\n        self.emb = nn.Embedding.from_pretrained({given})\n"
    done = convert(f"{HEAD}class A(nn.Module):\n    def __init__(self, table):\n{init}")
    if kind is None:
        assert len(done.gaps) == 1
    else:
        assert "self.emb = PretrainedEmbed(table)\n" in done.code and not done.gaps
        assert f"self.embedding = {kind}(" in done.code


SAMPLED = """import torch
from helpers import read


def sample(decoder, x: torch.Tensor, text):
    out, hidden = decoder({given}, None)
    return torch.multinomial(out.data.view(-1).exp(), 1)
"""


def test_the_data_of_what_a_model_gives_is_the_array() -> None:
    """`decoder` is a parameter: it was left as `out.data`, which JAX arrays don't have."""
    done = convert(SAMPLED.format(given="x"))
    assert "jax.lax.stop_gradient(out).reshape(-1)" in done.code and not done.gaps


def test_the_data_of_what_something_gives_for_something_unknown_is_said() -> None:
    assert [
        "JAX says 'jax.lax.stop_gradient" in gap.reason for gap in convert(SAMPLED.format(given="read(text)")).gaps
    ] == [True]


def test_the_data_of_a_data_set_stays() -> None:
    done = convert(SAMPLED.format(given="x").replace("out, hidden = decoder(x, None)", "out = read(text)"))
    assert "out.data.reshape(-1)" in done.code


@pytest.mark.parametrize(
    ("used", "becomes"),
    [
        ('print(f"on {device.type}")', 'print(f"on {device.platform}")'),
        ("print('device', device.type)", "print('device', device.platform)"),
        ("print('on {}'.format(device.type))", "print('on {}'.format(device.platform))"),
        ("open(device.type)", "open(kind_of_device(device))"),
        ("{'cuda': 1}[device.type]", "{'cuda': 1}[kind_of_device(device)]"),
    ],
)
def test_the_kind_of_a_device_has_the_word_of_pytorch_where_it_is_computed_with(used: str, becomes: str) -> None:
    """CUDA devices are 'gpu' in JAX, which a reader understands and a dict doesn't."""
    made = "import torch\n\ndevice = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n"
    done = convert(made + used + "\n")
    assert not done.gaps and f"\n{becomes}\n" in done.code


def test_values_that_go_on_behind_a_backslash_get_no_brackets() -> None:
    text = "def f(a, b):\n    return torch.exp(a), \\\n        torch.sin(b)\n"
    assert "    return jnp.exp(a), \\\n        jnp.sin(b)" in convert(HEAD + text).code
