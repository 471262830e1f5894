"""Unit tests of PyTorch code become unit tests of its conversion: fixtures, generators, gradients, state dicts."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

NET = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, features=8, hidden=16, classes=3, p=0.0):
        super().__init__()
        self.fc1 = nn.Linear(features, hidden)
        self.bn = nn.BatchNorm1d(hidden)
        self.drop = nn.Dropout(p)
        self.fc2 = nn.Linear(hidden, classes)

    def forward(self, x):
        if x.dim() != 2:
            raise ValueError("x must be 2-d")
        return self.fc2(self.drop(F.relu(self.bn(self.fc1(x)))))


def normalize(x: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    return x / x.norm(dim=-1, keepdim=True).clamp(min=eps)
"""


def resolve(level: int, module: str) -> str | None:
    return NET if module == "net" else None


def body(source: str) -> str:
    """What stands behind the imports of a converted test file."""
    result = translate(textwrap.dedent(source), Options(helpers="import", resolve=resolve))
    assert not result.gaps, result.gaps
    return result.code[result.code.index("\n\n") :].strip()


def expect(source: str, wanted: str) -> None:
    assert body(source) == textwrap.dedent(wanted).strip()


def test_a_test_that_draws_asks_for_a_fixture() -> None:
    expect(
        """
        import pytest
        import torch
        from net import normalize

        @pytest.fixture
        def x():
            return torch.randn(3, 4)

        def test_it(x):
            assert normalize(x).shape == torch.rand(3, 4).shape
        """,
        """
        @pytest.fixture
        def rngs():
            return nnx.Rngs(0)


        @pytest.fixture
        def x(rngs):
            return rngs.normal((3, 4))

        def test_it(x, rngs):
            assert normalize(x).shape == rngs.uniform((3, 4)).shape
        """,
    )


def test_the_fixture_is_as_wide_as_the_widest_that_asks_and_has_the_seed_of_the_file() -> None:
    code = body(
        """
        import pytest
        import torch

        @pytest.fixture(autouse=True)
        def seed():
            torch.manual_seed(7)

        @pytest.fixture(scope="module")
        def x():
            yield torch.randn(3, 4)

        def test_it(x):
            assert x.size(1) == 4
        """
    )
    assert '@pytest.fixture(scope="module")\ndef rngs():\n    return nnx.Rngs(7)\n' in code
    assert "assert x.shape[1] == 4" in code  # what a fixture gives is known


def test_a_test_case_makes_its_generator_itself() -> None:
    code = body(
        """
        import unittest
        import torch
        from net import Net

        class TestNet(unittest.TestCase):
            def setUp(self):
                self.net = Net()

            def test_shape(self):
                self.assertEqual(self.net(torch.rand(4, 8)).shape, torch.Size([4, 3]))

            def test_none(self):
                self.assertIsInstance(self.net, Net)
        """
    )
    assert "def setUp(self):\n        rngs = self.rngs = nnx.Rngs(0)\n        self.net = Net(rngs=rngs)" in code
    assert "def test_shape(self):\n        rngs = self.rngs\n" in code
    assert "def test_none(self):\n        self.assertIsInstance" in code


def test_functions_named_test_in_a_program_are_no_tests() -> None:
    result = translate("import torch\ndef test_shapes(n):\n    return torch.randn(n)\n", Options(helpers="import"))
    assert "def test_shapes(n, *, rngs: nnx.Rngs):" in result.code


def test_the_gradient_of_an_input() -> None:
    expect(
        """
        import torch
        from net import normalize

        def test_it():
            x = torch.linspace(-1, 1, 12, requires_grad=True)
            loss = normalize(x).sum()
            loss.backward()
            assert x.grad.shape == x.shape
        """,
        """
        def test_it():
            x = jnp.linspace(-1, 1, 12)

            def loss_fn(x):
                loss = normalize(x).sum()
                return loss

            x_grad = jax.grad(loss_fn)(x)
            assert x_grad.shape == x.shape
        """,
    )


def test_gradients_of_parameters_with_what_the_loss_is_made_from() -> None:
    expect(
        """
        import torch
        from net import Net

        def test_it():
            torch.manual_seed(0)
            net = Net()
            out = net(torch.ones(4, 8))
            assert out.shape == (4, 3)
            loss = out.pow(2).mean()
            loss.backward()
            assert loss > 0
            for name, p in net.named_parameters():
                assert p.grad is not None, name
            assert all(torch.isfinite(p.grad).all() for p in net.parameters())
            assert net.fc1.weight.grad.shape == net.fc1.weight.shape
        """,
        """
        def test_it():
            rngs = nnx.Rngs(0)
            net = Net(rngs=rngs)

            def loss_fn(net):
                out = net(jnp.ones((4, 8)))
                loss = (out**2).mean()
                return loss, out

            (loss, out), grads = nnx.value_and_grad(loss_fn, has_aux=True)(net)
            assert out.shape == (4, 3)
            assert loss > 0
            for path, p in nnx.to_flat_state(grads):
                name = torch_name(net, path)
                assert p is not None, name
            assert all(jnp.isfinite(p).all() for p in jax.tree.leaves(grads))
            assert grads.fc1.kernel.T.shape == net.fc1.kernel.T.shape
        """,
    )


def test_two_losses_of_different_inputs() -> None:
    code = body(
        """
        import torch
        from net import normalize

        def test_it():
            x = torch.ones(3, requires_grad=True)
            normalize(x).sum().backward()
            z = x.detach().clone().requires_grad_()
            (z / z.norm()).sum().backward()
            assert torch.allclose(x.grad, z.grad)
        """
    )
    assert "    x_grad = jax.grad(loss_fn)(x)\n    z = jax.lax.stop_gradient(x)\n" in code
    assert "    z_grad = jax.grad(loss_fn2)(z)\n    assert jnp.allclose(x_grad, z_grad)" in code


def test_gradients_of_a_part_of_a_module() -> None:
    code = body(
        """
        import torch
        from net import Net

        def test_it():
            net = Net()
            net(torch.ones(4, 8)).sum().backward()
            assert all(p.grad is not None for p in net.fc1.parameters())
        """
    )
    assert "assert all(p is not None for p in jax.tree.leaves(grads.fc1))" in code


@pytest.mark.parametrize(
    "lines",
    [
        "loss.backward()\nloss.backward()",  # gradients add up
        "assert x.grad is None\nloss.backward()",
        "net.eval()\nloss.backward()\nassert x.grad is not None",  # between the forward and the backward pass
        "loss.backward()\nassert loss.grad is None",  # the loss's own
    ],
)
def test_a_gradient_that_is_not_surely_understood_stays(lines: str) -> None:
    source = (
        "import torch\nfrom net import Net\n\ndef test_it():\n    net = Net()\n"
        "    x = torch.ones(4, 8, requires_grad=True)\n    loss = net(x).sum()\n"
        + textwrap.indent(lines, "    ")
        + "\n    assert x is not None\n"
    )
    result = translate(source, Options(helpers="import", resolve=resolve))
    assert result.gaps and "loss.backward()" in result.code


def test_state_dicts_have_torchs_names() -> None:
    code = body(
        """
        import torch
        from net import Net

        def test_it():
            a, b = Net(), Net()
            b.load_state_dict(a.state_dict())
            assert "fc1.weight" in a.state_dict()
        """
    )
    assert "load_torch_state(b, torch_state(a))" in code
    assert 'assert "fc1.weight" in torch_state(a)' in code


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("net = Net().eval()", "net = Net(rngs=rngs)\nnet.eval()"),
        ("y = net.eval()(x)", "net.eval()\ny = net(x)"),
        ("return Net().train()", "model = Net(rngs=rngs)\nmodel.train()\nreturn model"),
        ("net.train(mode)", "net.train() if mode else net.eval()"),
    ],
)
def test_a_mode_is_set_on_a_line_of_its_own(source: str, wanted: str) -> None:
    """Flax's ``train`` and ``eval`` give None."""
    text = f"from net import Net\nimport torch\n\ndef f(x, mode, net: Net):\n    {source}\n"
    result = translate(text, Options(helpers="import", resolve=resolve))
    assert textwrap.indent(wanted, "    ") in result.code and not result.gaps


def test_a_mode_that_is_set_somewhere_inside_is_a_gap() -> None:
    text = "from net import Net\nimport torch\n\ndef f(nets):\n    return [Net().eval() for _ in nets]\n"
    assert translate(text, Options(resolve=resolve)).gaps


def test_a_dtype_is_equal_and_not_the_same() -> None:
    text = (
        "import torch\n\ndef f(x: torch.Tensor):\n    return x.dtype is torch.float32 or x.dtype is not torch.int64\n"
    )
    assert "return x.dtype == jnp.float32 or x.dtype != jnp.int32" in translate(text).code


def test_a_class_of_a_module_of_the_project_gets_its_generator() -> None:
    text = "import torch\nimport net as models\n\ndef f():\n    return models.Net(4)\n"
    assert "models.Net(4, rngs=rngs)" in translate(text, Options(resolve=resolve)).code


TESTS = """
import pytest
import torch
from torch.testing import assert_close

from net import Net, normalize


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net().eval()


@pytest.mark.parametrize("shape", [(2, 3), (4, 5)])
def test_normalize(shape):
    assert_close(normalize(torch.randn(*shape)).norm(dim=-1), torch.ones(shape[0]))


def test_close_means_close():
    with pytest.raises(AssertionError):
        assert_close(torch.ones(3), torch.ones(3) + 1e-4)
    with pytest.raises(AssertionError):
        assert_close(torch.ones(3), torch.ones(3, 1))
    with pytest.raises(AssertionError):
        assert_close(torch.ones(3), torch.ones(3, dtype=torch.float16))
    assert_close([torch.ones(3)], [torch.ones(3) + 1e-6])
    assert_close(torch.ones(3), torch.ones(3) + 1e-3, rtol=0.0, atol=1e-2)


def test_raises(net):
    with pytest.raises(ValueError, match="2-d"):
        net(torch.randn(2, 3, 8))


def test_gradients(net):
    net.train()
    x = torch.randn(4, 8, requires_grad=True)
    net(x).pow(2).sum().backward()
    assert x.grad.shape == x.shape and x.grad.abs().sum() > 0
    for name, p in net.named_parameters():
        assert torch.isfinite(p.grad).all(), name


def test_state(net):
    other = Net().eval()
    x = torch.rand(4, 8)
    assert not torch.equal(net(x), other(x))
    other.load_state_dict(net.state_dict())
    assert_close(net(x), other(x))
    assert net.state_dict()["fc1.weight"].shape == (16, 8)
"""


def test_both_programs_pass(tmp_path: Path) -> None:
    """The same tests, on PyTorch and, translated, on the conversion."""
    before, after = tmp_path / "torch", tmp_path / "jax"
    for folder, convert in ((before, False), (after, True)):
        folder.mkdir()
        for name, text in (("net", NET), ("test_net", TESTS)):
            result = translate(text, Options(resolve=resolve))
            assert not result.gaps
            (folder / f"{name}.py").write_text(result.code if convert else text)
    assert "torch." not in (after / "test_net.py").read_text().replace("torch.testing", "").replace("`torch.", "")
    counts = [_passed(folder) for folder in (before, after)]
    assert counts == ["6 passed", "6 passed"]


def _passed(folder: Path) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", str(folder)]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=500)
    return run.stdout.strip().splitlines()[-1].partition(" in ")[0] if run.returncode == 0 else run.stdout
