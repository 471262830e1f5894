"""Factories that are given the name of a layer or its class: whichever it is, what they make has ``rngs``."""

from __future__ import annotations

import pytest

from .convert import body, run
from .test_regressions import equal

FACTORIES = """
import functools
from typing import Callable, Optional, Type, Union

import torch
from torch import nn

LayerType = Union[str, Callable, Type[nn.Module]]

class Swish(nn.Module):
    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def forward(self, x):
        return x * x.sigmoid()

class Gate(nn.Module):
    def forward(self, x):
        return x.sigmoid()

_ACT = dict(relu=nn.ReLU, swish=Swish, gate=Gate)
for a in (_ACT,):
    a.setdefault('silu', a.get('swish'))

def get_act(name: Optional[LayerType] = 'relu'):
    if name is None:
        return None
    if not isinstance(name, str):
        return name
    return _ACT[name.lower()]

def create_act(name: Optional[LayerType], inplace: Optional[bool] = None, **kwargs):
    layer = get_act(name)
    if layer is None:
        return None
    if inplace is None:
        return layer(**kwargs)
    return layer(inplace=inplace, **kwargs)

def get_norm(norm):
    options = {}
    if isinstance(norm, functools.partial):
        options.update(norm.keywords)
        norm = norm.func
    if isinstance(norm, str):
        layer = {'layernorm': nn.LayerNorm, 'batchnorm': nn.BatchNorm1d}[norm]
    else:
        layer = norm
    if options:
        layer = functools.partial(layer, **options)
    return layer

def create_attn(kind, **options):
    made = None
    if kind == 'gate':
        made = Gate
    elif kind == 'swish':
        made = functools.partial(Swish, inplace=True)
    elif kind:
        made = kind
    return made(**options) if made is not None else None

class A(nn.Module):
    def __init__(self, act=%s, norm=%s, attn=%s):
        super().__init__()
        self.fc = nn.Linear(6, 6)
        self.act = create_act(act)
        self.norm = get_norm(norm)(6)
        self.attn = create_attn(attn)

    def forward(self, x):
        x = self.norm(self.act(self.fc(x)))
        return x if self.attn is None else self.attn(x)
"""


@pytest.mark.parametrize(
    "given",
    [
        ("'silu'", "'layernorm'", "'gate'"),
        ("Swish", "functools.partial(nn.LayerNorm, eps=0.1)", "Gate"),
        ("nn.ReLU", "nn.BatchNorm1d", "'swish'"),
    ],
)
def test_a_name_or_a_class_makes_a_layer(given: tuple[str, str, str]) -> None:
    equal(FACTORIES % given, "factories", 4, 6)


def test_a_function_that_is_called_gets_no_rngs_for_what_else_it_may_be() -> None:
    code = body("""
    def act(x: Tensor, how='relu'):
        f = F.relu if how == 'relu' else how
        return f(x)
    """)
    assert "rngs" not in code


FACTORY = """
import torch
from torch import nn

class A(nn.Module):
    def __init__(self, options=None, device=None, dtype=None):
        dd = {'device': device, 'dtype': dtype}
        super().__init__()
        options = {**dd, **(options or {})}
        norm_options = {'eps': 1e-3, **dd}
        norm_options['elementwise_affine'] = False
        both = {
            'bias': True,
            **dd,
        }
        self.fc = nn.Linear(6, 6, **options)
        self.norm = nn.LayerNorm(6, **norm_options)
        self.mid = nn.Linear(6, 6, **both)
        self.out = nn.Linear(6, 6, **{**dd, 'bias': False})

    def forward(self, x):
        return self.out(self.mid(self.norm(self.fc(x))))
"""


def test_factory_keywords_go_from_dicts_that_calls_are_given() -> None:
    equal(FACTORY, "factory_dicts", 4, 6)
    code = run(FACTORY).code
    assert "dd" not in code
    assert "options = {**(options or {})}" in code and "norm_options = {'eps': 1e-3}" in code


def test_factory_keywords_stay_in_a_dict_that_something_else_reads() -> None:
    code = run(FACTORY.replace("        self.fc =", "        self.options = options\n        self.fc =")).code
    assert "{**dd, **(options or {})}" in code
