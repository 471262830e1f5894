"""Forward hooks: what they keep, change and print; where JAX would run them while it traces, the reason is told."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
import torch

from t2j_lsp.weights import load_torch_state

from .convert import HEAD, body, run
from .side_by_side import randomized, sides

NET = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, padding=1)
        self.act = nn.ReLU()

    def forward(self, x):
        return self.act(self.conv(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 2, 3)
        self.blocks = nn.Sequential(Block(), Block())
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(2, 4)

    def forward(self, x):
        return self.fc(self.pool(self.blocks(self.stem(x))).flatten(1))


"""
PROBES = {
    "a hook that a function makes for a name": """
        def probe(model, x):
            kept = {}

            def keep(name):
                def hook(module, inputs, output):
                    kept[name] = output.detach()
                return hook

            for name, module in model.named_modules():
                module.register_forward_hook(keep(name))
            model(x)
            return [kept[name] for name in sorted(kept)]
    """,
    "a list of handles, of layers that are found by their class": """
        def probe(model, x):
            seen = []
            handles = []
            for module in model.modules():
                if isinstance(module, (nn.ReLU, nn.Linear)):
                    handles.append(module.register_forward_hook(lambda m, i, o: seen.append((i[0], o))))
            model(x)
            for handle in handles:
                handle.remove()
            model(x)
            assert len(seen) == 3
            return [v for pair in sorted(seen, key=lambda pair: pair[1].sum().item()) for v in pair]
    """,
    "methods of an object": """
        class Extractor:
            def __init__(self, model):
                self.model = model
                self.outputs = []
                self.handle = model.blocks[-1].conv.register_forward_hook(self.save)

            def save(self, module, inputs, output):
                self.outputs.append(output.mean(dim=(2, 3)))

            def __call__(self, x):
                self.outputs = []
                self.model(x)
                return self.outputs


        def probe(model, x):
            extract = Extractor(model)
            first = extract(x)
            extract.handle.remove()
            return first + extract(x)
    """,
    "what a hook gives takes the output's place, what one before gives the inputs'": """
        def probe(model, x):
            double = model.stem.register_forward_pre_hook(lambda module, inputs: inputs[0] * 2)
            with model.register_forward_hook(lambda module, inputs, output: output - 1):
                model.blocks.register_forward_pre_hook(lambda module, inputs: (inputs[0] + 1,))
                first = model(x)
            second = model(x)
            double.remove()
            return [first, second, model(x)]
    """,
    "two hooks of one layer, the first removed": """
        def probe(model, x):
            kept = []
            one = model.fc.register_forward_hook(lambda module, inputs, output: kept.append(output))
            model.fc.register_forward_hook(lambda module, inputs, output: kept.append(inputs[0]))
            model(x)
            one.remove()
            model(x + 1)
            return kept
    """,
    "on layers of some classes, what they and their outputs measure": """
        def probe(model, x):
            seen = []

            def conv_hook(m, inputs, output):
                out, per_group, *kernel = m.weight.shape
                seen.append(torch.tensor([out, per_group, *kernel, *output.shape]))

            def linear_hook(m, inputs, output):
                seen.append(m.weight + output.mean())

            hooks = []
            for m in model.modules():
                if isinstance(m, nn.Conv2d):
                    hooks.append(m.register_forward_hook(conv_hook))
                elif isinstance(m, nn.Linear):
                    hooks.append(m.register_forward_hook(linear_hook))
            model(x)
            for hook in hooks:
                hook.remove()
            model(x)
            return seen
    """,
}


@pytest.mark.jax
@pytest.mark.parametrize("probe", PROBES.values(), ids=PROBES)
def test_a_hook_keeps_and_changes_what_pytorchs_does(probe: str) -> None:
    both = sides(HEAD + NET + textwrap.dedent(probe), "hooked")
    assert not both.gaps()
    model = randomized(both.torch.Net()).eval()
    x = np.random.default_rng(1).normal(size=(2, 3, 6, 7))
    converted = both.jax.Net(rngs=both.jax.nnx.Rngs(0))
    load_torch_state(converted, {k: v.numpy() for k, v in model.state_dict().items()})
    converted.eval()
    with torch.no_grad():
        wanted = both.torch.probe(model, torch.as_tensor(x))
    value = both.jax.probe(converted, both.jax.jnp.asarray(x))
    assert len(value) == len(wanted)
    for one, other in zip(value, wanted, strict=True):
        assert one.shape == tuple(other.shape)
        assert np.allclose(one, other.numpy(), rtol=1e-5, atol=1e-6)


TRAINING = """
model = nn.Linear(3, 1)
kept = {}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(x):
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()


def keep(module, inputs, output):
    kept["out"] = output.detach()


"""
ORDERS = {
    "the loop is over": ("for _ in range(3):\n    train(x)\nmodel.register_forward_hook(keep)\nmodel(x)\n", True),
    "it is over in a function that is called once": (
        "def main():\n    for _ in range(3):\n        train(x)\n    model.register_forward_hook(keep)\nmain()\n",
        True,
    ),
    "the hook is taken away before": (
        "handle = model.register_forward_hook(keep)\nmodel(x)\nhandle.remove()\ntrain(x)\n",
        True,
    ),
    "that function is called again": (
        "def main():\n    train(x)\n    model.register_forward_hook(keep)\nfor _ in range(2):\n    main()\n",
        False,
    ),
    "it is still there": ("model.register_forward_hook(keep)\ntrain(x)\n", False),
    "it is taken away behind a step": (
        "handle = model.register_forward_hook(keep)\ntrain(x)\nhandle.remove()\n",
        False,
    ),
    "the loop goes on": ("for _ in range(3):\n    train(x)\n    model.register_forward_hook(keep)\n", False),
    "nobody is seen to call it": ("def show(x):\n    model.register_forward_hook(keep)\n    model(x)\n", False),
}


@pytest.mark.parametrize(("order", "converts"), ORDERS.values(), ids=ORDERS)
def test_a_hook_is_there_only_while_nothing_is_traced(order: str, converts: bool) -> None:
    gaps = [gap.reason for gap in run(f"{TRAINING}x = torch.ones(4, 3)\n{order}").gaps]
    assert gaps == [] if converts else any("tracers" in reason for reason in gaps)


def test_what_the_method_is_called_with_beyond_the_hook_is_told() -> None:
    for more in ("with_kwargs=True", "prepend=True", "always_call=True"):
        gaps = run(f"def f(model: nn.Linear, hook):\n    model.register_forward_hook(hook, {more})\n").gaps
        assert [gap.name for gap in gaps] == ["torch.nn.Module.register_forward_hook"]


@pytest.mark.parametrize("owner", ["model", "dict(model.named_modules())[name]", "parts[name].head"])
def test_a_hook_on_whatever_is_a_modules(owner: str) -> None:
    code = body(
        f"def f(model, name, parts, hook):\n    layer = {owner}\n    return layer.register_forward_hook(hook)\n"
    )
    assert "return forward_hook(layer, hook)" in code
    gaps = run(f"def f(model, name, parts, hook):\n    return {owner}.register_full_backward_hook(hook)\n").gaps
    assert "torch.nn.Module.register_full_backward_hook" in [gap.name for gap in gaps]


def test_a_method_of_that_name_of_the_files_own_class_is_its_own() -> None:
    source = """
        class Registry:
            def register_forward_hook(self, hook):
                return hook


        def f(hook):
            return Registry().register_forward_hook(hook)
    """
    assert "return Registry().register_forward_hook(hook)" in body(source)
