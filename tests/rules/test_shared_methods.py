"""Methods that arrays share with tensors: on a receiver of unknown type none does something else without a word."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

from .conversion import INPUTS

HEADER = "import torch\nfrom torch import nn\n\n\ndef first(items):\n    return items[0]\n\n\n"
IN_MODULE = """class Net(nn.Module):
    def forward(self, items, other):
        x = items[0]
        other = torch.relu(other)
        return {}
"""
IN_FUNCTION = """def f(items, other):
    x = items[0]
    other = torch.relu(other)
    return {}
"""
CONTEXTS = {
    "in a module": HEADER + IN_MODULE,
    "among tensors": HEADER + IN_FUNCTION,
    "beside numpy": "import numpy as np\n" + HEADER + IN_FUNCTION,
}

WRITTEN = """
    x.all() x.all(1) x.all(1,True) x.all(dim=1) x.any() x.any(1) x.any(1,True) x.any(1,keepdim=True) x.argmax()
    x.argmax(1) x.argmax(1,True) x.argmax(dim=-1) x.argmin() x.argmin(1) x.argmin(1,True) x.argsort() x.argsort(1)
    x.argsort(0,True) x.argsort(descending=True) x.clip(-1,1) x.clip(max=0.5) x.clip(min=-0.5) x.clone() x.conj()
    x.cumprod(1) x.cumprod(dim=1) x.cumsum(1) x.cumsum(dim=-1) x.diagonal() x.diagonal(1) x.diagonal(0,1,2)
    x.diagonal(dim1=1,dim2=2) x[0,0].dot(x[0,1]) x.flatten() x.flatten(1) x.flatten(0,1) x.flatten(start_dim=1)
    x[0,0,0].item() x.max() x.max(1) x.max(1,True) x.max(dim=1)[0] x.max(1)[1] x.max(other) x.mean() x.mean(1)
    x.mean(1,True) x.mean((0,1)) x.mean([0,2]) x.mean(dim=1,keepdim=True) x.min() x.min(1) x.min(other)
    x.min(-1,keepdim=True)[0] x.nonzero() x.nonzero(as_tuple=True) x.prod() x.prod(1) x.prod(1,True) x.ravel()
    x.repeat(2,1,1) x.repeat(1,2,1,1) x.repeat((1,2,2)) x.reshape(-1) x.reshape(4,-1) x.reshape((4,6))
    x.reshape([4,6]) x.round() x.round(decimals=1) x.size() x.size(1) x.size(dim=-1) x.sort() x.sort(1)
    x.sort(0,True) x.sort(descending=True) x.squeeze() x.squeeze(0) x.squeeze(dim=1) x.squeeze(-1) x[:1].squeeze(0)
    x.std() x.std(1) x.std(1,True) x.std(dim=1,unbiased=False) x.std(1,keepdim=True) x.sum() x.sum(1) x.sum(1,True)
    x.sum([0,1]) x.sum((0,2)) x.sum(dim=(0,1)) x.swapaxes(0,1) x.take(other.long().abs()) x.tolist() x[0].trace()
    x.transpose(0,1) x.transpose(1,2) x.transpose(dim0=0,dim1=2) x.var() x.var(1) x.var(unbiased=False)
    x.var(1,False) x.var(1,keepdim=True) x.view(-1) x.view(4,-1) x.view(4,6) x.view((4,6)) x[0].T x.mT x.real x.ndim
    x.shape x.itemsize x.nbytes
"""
FORMS = WRITTEN.split()
NEITHER = {
    "device": "what it gives is another object on either side",
    "dtype": "what it gives is another object on either side",
    "imag": "of real tensors it raises",
}


def shared() -> set[str]:
    """The public methods and attributes that tensors and arrays have."""
    return {name for name in dir(jnp.zeros((2, 2))) if not name.startswith("_") and hasattr(torch.Tensor, name)}


def test_every_method_that_arrays_share_with_tensors_is_tried() -> None:
    tried = {part.split("(")[0].split("[")[0].split(")")[0] for form in FORMS for part in form.split(".")}
    assert shared() <= tried | NEITHER.keys()


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("form", FORMS)
def test_a_shared_method_of_an_unknown_receiver_means_the_same_or_is_a_gap(form: str, context: str) -> None:
    text = CONTEXTS[context].format(form)
    translation = translate(text, Options(x64=True))
    if translation.gaps:
        assert context != "in a module", f"{form}: {translation.gaps[0].reason}"
        return
    x, other = INPUTS["x"], INPUTS["y"]
    wanted = _run(text, [torch.tensor(x)], torch.tensor(other))
    with jax.enable_x64(True):
        result = _run(translation.code, [jnp.array(x)], jnp.array(other))
    left, right = _leaves(wanted), _leaves(result)
    assert len(left) == len(right), f"{type(wanted)} and {type(result)} in {translation.code}"
    for a, b in zip(left, right, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, err_msg=translation.code)


def _run(text: str, *arguments: Any) -> Any:
    """What the function or the module of a program gives."""
    namespace: dict[str, Any] = {"__name__": "program"}
    exec(compile(text, "<program>", "exec"), namespace)
    return (namespace["f"] if "f" in namespace else _built(namespace["Net"]))(*arguments)


def _built(module: Any) -> Any:
    return module() if issubclass(module, torch.nn.Module) else module(rngs=None)


def _leaves(value: Any) -> list[Any]:
    """The arrays and numbers of a value in order."""
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in _leaves(item)]
    return [np.asarray(value)]
