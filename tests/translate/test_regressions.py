"""Mistakes met in code that was not written for t2j (vit_pytorch, transformers, timm), each as the shortest source."""

from __future__ import annotations

import textwrap

import jax
import numpy as np
import pytest

from t2j_lsp.contract import Options, Severity
from t2j_lsp.translate import translate

from .convert import body, run
from .side_by_side import compare, randomized, sides


def method(source: str, parameters: str = "x") -> str:
    """The converted body of a module's forward method."""
    inner = textwrap.indent(textwrap.dedent(source), " " * 8)
    text = f"class A(nn.Module):\n    def forward(self, {parameters}):\n{inner}"
    return textwrap.dedent(body(text).partition("def __call__")[2].partition("\n")[2])


def equal(source: str, name: str, *shape: int) -> None:
    """``A()`` and its conversion agree in outputs, gradients and state on random input of ``shape``."""
    both = sides(source, name)
    assert both.gaps() == []
    x = np.random.default_rng(5).normal(size=shape)
    with jax.enable_x64(True):
        compare(randomized(both.torch.A()), both.jax.A(rngs=both.jax.nnx.Rngs(0)), [x])


EINOPS = """
import torch
from torch import nn
from einops import rearrange, pack, unpack
from einops.layers.torch import Rearrange, Reduce

class A(nn.Module):
    def __init__(self, p=2):
        super().__init__()
        self.embed = nn.Sequential(
            Rearrange('b c (h p1) (w p2) -> b (h w) (p1 p2 c)', p1 = p, p2 = p), nn.Linear(12, 18))
        self.pool = nn.Sequential(Reduce('b n d -> b d', 'mean'), nn.Linear(6, 4))

    def forward(self, x):
        qkv = self.embed(x).chunk(3, dim = -1)
        q, k, v = map(lambda t: rearrange(t, 'b n (h d) -> b h n d', h = 2), qkv)
        attn = (q @ k.transpose(-1, -2)).softmax(dim = -1)
        out, shape = pack([rearrange(attn @ v, 'b h n d -> b n (h d)')], 'b * d')
        (out,) = unpack(out, shape, 'b * d')
        return self.pool(out)
"""


def test_einops_layers_become_partials_and_its_functions_give_tensors() -> None:
    equal(EINOPS, "einops_layers", 2, 3, 4, 6)
    assert "einops.layers" not in run(EINOPS).code


PARAMETER_LIST = """
import torch
from torch import nn
from einops import repeat
from einops.layers.torch import Rearrange

class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.ParameterList([])
        self.tokens.append(nn.Parameter(torch.randn(2, 3)))
        lengths = dict(h = 2)
        self.split = Rearrange('b n (h d) -> b h n d', **lengths)

    def forward(self, x):
        for tokens in self.tokens:
            x = torch.cat((x, repeat(tokens, 'n d -> b n (two d)', b = x.shape[0], two = 2)), dim = 1)
        return self.split(x).clone()
"""


def test_einops_takes_the_array_of_a_parameter() -> None:
    equal(PARAMETER_LIST, "parameter_list", 2, 4, 6)


def test_einops_takes_the_array_of_what_a_mixin_reads() -> None:
    mixin = "class A:\n    def forward(self, n):\n        return repeat(self.token, 'd -> n d', n=n)"
    assert "repeat(jnp.asarray(self.token), 'd -> n d', n=n)" in run(f"from einops import repeat\n{mixin}").code


def test_einops_layers_without_a_jax_form_are_gaps() -> None:
    gaps = run("from einops.layers.torch import EinMix\nmix = EinMix('b d -> b e', weight_shape='d e', d=2, e=3)").gaps
    assert [gap.name for gap in gaps] == ["einops.layers.torch.EinMix"]


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("a, b = map(lambda t: t.transpose(1, 2), x.chunk(2))", "a, b = map(lambda t: t.swapaxes(1, 2), chunk(x, 2))"),
        ("for part in self.parts(x):\n    y = part.size(1)", "for part in self.parts(x):\n    y = part.shape[1]"),
        ("y = self.parts(x)\nz = y.view(-1, 3)", "y = self.parts(x)\nz = y.reshape(-1, 3)"),
        ("y = self.parts(x)\nz = y.mean(dim=1)", "y = self.parts(x)\nz = y.mean(axis=1)"),
        ("y = self.parts(x)\nz = y.clone()", "y = self.parts(x)\nz = jnp.copy(y)"),
        ("y = self.parts(x)\nz = y.to(x.dtype)", "y = self.parts(x)\nz = y.astype(x.dtype)"),
    ],
)
def test_methods_on_unknown_values_are_tensors_where_their_arguments_say_so(source: str, wanted: str) -> None:
    assert method(source) == wanted


def test_other_libraries_keep_their_methods() -> None:
    kept = "    df = pd.read_csv(path)\n    return df.max(axis=0), df.std(), path.split('/')"
    source = f"import pandas as pd\n\ndef f(path):\n{kept}\n"
    assert body(source).endswith(kept)
    assert run(source).gaps == ()


def test_arrays_of_other_libraries_keep_their_methods_in_modules() -> None:
    source = "y = np.linspace(0, 1, 4).reshape(2, 2)\nz = y.max(1), y.transpose(1, 0)"
    assert method(f"import numpy as np\n{source}") == f"import numpy as np\n{source}"


def test_an_ambiguous_method_of_an_unknown_parameter_is_a_gap() -> None:
    assert [gap.name for gap in run("def f(x):\n    return x.max(1)\n").gaps] == ["torch.Tensor.max"]


def test_operands_of_a_product_are_tensors() -> None:
    code = body("def f(q, k):\n    return torch.matmul(q, k.transpose(-1, -2))\n")
    assert code.endswith("return q @ k.swapaxes(-1, -2)")


EXISTS = """
import torch
from torch import nn

def exists(x):
    return x is not None

class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 4, bias=False), nn.Linear(4, 2)
        self.apply(self._init)

    def _init(self, m):
        if isinstance(m, nn.Linear) and exists(m.bias):
            nn.init.constant_(m.bias, 0.5)

    def forward(self, x):
        return self.b(self.a(x))
"""


def test_a_bias_that_may_be_none_is_asked_for_without_reading_it() -> None:
    equal(EXISTS, "exists", 2, 3)
    assert "exists(m.bias)" in run(EXISTS).code


def test_attributes_of_layers_have_flax_names() -> None:
    source = """
        class A(nn.Module):
            def __init__(self, d: int):
                super().__init__()
                self.drop, self.norm = nn.Dropout(0.1), nn.LayerNorm(d)

            def forward(self, x):
                return F.layer_norm(x, x.shape[-1:], eps=self.norm.eps), self.drop.p
    """
    assert "self.norm.epsilon" in body(source)
    assert body(source).endswith("self.drop.rate")


def test_a_function_that_draws_goes_with_its_rngs_where_it_is_a_value() -> None:
    source = """
        def attend(module, x, p=0.0):
            return F.dropout(x, p=p, training=module.training)

        class A(nn.Module):
            def forward(self, x, table):
                f = table.get("kind", attend)
                return f(self, x)
    """
    code = body(source)
    assert 'f = table.get("kind", functools.partial(attend, rngs=self.rngs))' in code
    assert "deterministic=not is_training(module)" in code


EXPAND = """
import torch
from torch import nn

class A(nn.Module):
    def forward(self, x):
        return x.unsqueeze(-1).expand((-1,) * x.dim() + (4,)) * x[0]
"""


def test_expand_keeps_sizes_of_minus_one_in_computed_sizes() -> None:
    equal(EXPAND, "expand", 3, 4)


FACTORY = """
import torch
from torch import nn

class Block(nn.Module):
    fused: torch.jit.Final[bool]

    def __init__(self, dim, layer=nn.Linear, device=None, dtype=None):
        dd = {'device': device, 'dtype': dtype}
        super().__init__()
        self.fused = True
        self.scale = nn.Parameter(torch.ones(dim, **dd))
        self.a = nn.Linear(
            dim,
            dim,
            bias=False,
            **dd,
        )
        self.b = layer(dim, dim, **dd)

    def forward(self, x):
        return self.b(self.a(x)) * self.scale

class A(nn.Module):
    def __init__(self, device=None, dtype=None):
        super().__init__()
        kwargs = dict(device=device, dtype=dtype)
        self.block = Block(4, **kwargs)

    def forward(self, x):
        return self.block(x)
"""


def test_factory_keywords_go() -> None:
    equal(FACTORY, "factory", 2, 4)
    code = run(FACTORY).code
    assert "dd" not in code and "kwargs" not in code.replace("**kwargs", "") and "fused: bool" in code


def test_what_has_parameters_is_a_module() -> None:
    gaps = run("def freeze(m):\n    for p in m.parameters():\n        p.requires_grad = False\n").gaps
    assert [gap.name for gap in gaps] == ["Tensor.requires_grad"]


LOSSES = """
import torch
from torch import nn
from torch.nn.modules.loss import _Loss, _WeightedLoss

class Dice(_Loss):
    def __init__(self, smooth=0.1):
        super(Dice, self).__init__()
        self.smooth = smooth

    def forward(self, x):
        loss = 1 - (2 * x + self.smooth) / (x.square() + self.smooth)
        return loss.mean() if self.reduction == "mean" else loss

class A(_WeightedLoss):
    def __init__(self, weight=None, reduction="none"):
        super().__init__(weight if weight is not None else torch.linspace(1.0, 2.0, 4), reduction=reduction)
        self.dice = Dice()

    def forward(self, x):
        return self.dice(x * self.weight) if self.reduction == "none" else x
"""


def test_losses_derive_from_what_pytorchs_own_derive_from() -> None:
    equal(LOSSES, "own_losses", 3, 4)


SWITCHES = """
import torch
from torch import nn
from torch.nn.modules.loss import _WeightedLoss

class Old(_WeightedLoss):
    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(weight, size_average, reduce, reduction)

    def forward(self, x):
        return x.mean() if self.reduction == "mean" else x

class Ignoring(nn.CrossEntropyLoss):
    def __init__(self, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
        super().__init__(weight, size_average, ignore_index, reduce, reduction)

class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.old = Old(None, None, None, "none")
        self.loss = Ignoring(torch.linspace(1.0, 2.0, 4), ignore_index=2)

    def forward(self, x):
        return self.old(x) + self.loss(x, torch.tensor([0, 2, 1]))
"""


def test_what_a_base_takes_by_position_is_given_as_it_takes_it() -> None:
    equal(SWITCHES, "own_losses_with_switches", 3, 4)
    notes = [f for f in translate(SWITCHES, Options()).findings if "size_average" in f.reason]
    assert [f.severity for f in notes] == [Severity.NOTE, Severity.NOTE]


def test_what_a_base_does_not_take_and_may_be_given_is_a_gap() -> None:
    given = SWITCHES.replace("size_average=None", "size_average=True")
    assert {f.code for f in translate(given, Options()).gaps} == {"arguments"}


OLD_SWITCHES = """
import torch
from torch import nn

class Robust(nn.CrossEntropyLoss):
    def forward(self, input, target):
        return super().forward(input, target.long())

class TopK(Robust):
    def __init__(self, weight=None, k=2):
        super(TopK, self).__init__(weight, False, -1, reduce=False)
        self.k = k

    def forward(self, input, target):
        return super().forward(input, target).topk(self.k)[0].mean()

class Sum(nn.MSELoss):
    def __init__(self):
        super().__init__(size_average=False)

class Scale(nn.Linear):
    pass

class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = TopK(), Robust(None, False), Robust(reduce=False)
        self.sum = Sum()
        self.scale = Scale(4, 4, True, device=None)

    def forward(self, x):
        x = self.scale(x)
        y = torch.tensor([0., 2, 1])
        return self.first(x, y) + self.second(x, y) + self.third(x, y).max() + self.sum(x, x * 2)
"""


@pytest.mark.filterwarnings("ignore:size_average and reduce args")
def test_what_once_said_a_reduction_says_it_to_classes_that_derive_from_losses() -> None:
    equal(OLD_SWITCHES, "old_switches_of_own_losses", 3, 4)
    assert not translate(OLD_SWITCHES, Options()).findings


def test_partials_in_attributes_and_parameters_that_may_be_trained() -> None:
    equal(
        """
from functools import partial
import torch
from torch import nn
import torch.nn.functional as F

class A(nn.Module):
    def __init__(self, fixed=False):
        super().__init__()
        self.act = partial(F.softmax, dim=-1)
        self.clip = partial(torch.clamp, min=-0.5, max=1.0)
        self.w = nn.Parameter(torch.ones(4), requires_grad=not fixed)
        self.v = nn.Parameter(torch.ones(4))

    def forward(self, x):
        k, v = map(partial(torch.cat, dim=-2), ((x, x * 2), (x * 3, x)))
        return self.act(k) * self.w + self.clip(v) * self.v
""",
        "partials",
        3,
        4,
    )
