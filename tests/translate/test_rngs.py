"""rngs reach every place that builds modules or draws numbers, and no other."""

from __future__ import annotations

import pytest

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate
from t2j_lsp.translate.expressions.rngs import TAKEN

from .convert import body, expect_same, run


def test_functions_that_build_modules_take_and_pass_rngs() -> None:
    code = body("""
    def block(n: int):
        return nn.Linear(n, n)

    def net(n: int, **kwargs):
        return nn.Sequential(block(n), block(n))
    """)
    assert "def block(n: int, *, rngs: nnx.Rngs):" in code
    assert "def net(n: int, *, rngs: nnx.Rngs, **kwargs):" in code
    assert "nnx.Sequential(block(n, rngs=rngs), block(n, rngs=rngs))" in code


def test_classes_in_a_function_make_objects_of_each_other() -> None:
    code = body("""
    def build(n):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.parts = nn.ModuleList(Block(n, n) for _ in range(2))
                self.leaf = Leaf(n)

        class Leaf(nn.Module):
            def __init__(self, a):
                super().__init__()
                self.lin = nn.Linear(a, 1)

        class Block(Leaf):
            def __init__(self, a, b):
                super().__init__(a)
                self.other = nn.Linear(a, b)

        return Net()
    """)
    assert "nnx.List(Block(n, n, rngs=rngs) for _ in range(2))" in code
    assert "self.leaf = Leaf(n, rngs=rngs)" in code
    assert "super().__init__(a, rngs=rngs)" in code


def test_a_script_makes_its_rngs_from_the_seed() -> None:
    code = body("torch.manual_seed(7)\nx = torch.randn(2, 3)\n")
    assert code.splitlines()[0] == "rngs = nnx.Rngs(7)"


def test_a_script_without_a_seed_makes_rngs_once() -> None:
    code = body('if __name__ == "__main__":\n    for _ in range(3):\n        x = torch.randn(2)\n')
    assert code.count("nnx.Rngs(0)") == 1
    assert code.index("nnx.Rngs(0)") < code.index("for _")


def test_a_seed_that_nothing_uses_goes() -> None:
    assert "Rngs" not in body("torch.manual_seed(0)\nx = torch.zeros(2)\n")


def test_a_method_used_only_while_building_takes_rngs() -> None:
    code = body("""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = self._make(3)

        def _make(self, n):
            return nn.Linear(n, n)

        def forward(self, x):
            return self.a(x)
    """)
    assert "self.a = self._make(3, rngs=rngs)" in code
    assert "def _make(self, n, *, rngs: nnx.Rngs):" in code
    assert "self.rngs" not in code


def test_drawing_in_forward_keeps_rngs_in_the_module() -> None:
    code = body("""
    def noise(x: Tensor):
        return x + torch.randn_like(x)

    class Net(nn.Module):
        def forward(self, x):
            return noise(x)
    """)
    assert "self.rngs = rngs.fork()" in code
    assert "return noise(x, rngs=self.rngs)" in code


def test_an_override_takes_rngs_when_its_base_does() -> None:
    code = body("""
    class A(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = self.make()

        def make(self):
            return nn.Linear(2, 2)

    class B(A):
        def make(self):
            return None
    """)
    assert code.count("def make(self, *, rngs: nnx.Rngs):") == 2


def test_functions_without_randomness_stay() -> None:
    expect_same("def scale(n: int, factor: float = 2.0):\n    return int(n * factor)\n")


def test_a_seed_on_a_condition_leaves_the_rngs_that_were_given() -> None:
    code = body("""
    def draw(seed=None):
        if seed is not None:
            torch.manual_seed(seed)
        return torch.randn(3)

    draw()
    """)
    assert "def draw(seed=None, *, rngs: nnx.Rngs):" in code
    assert "        rngs = nnx.Rngs(seed)\n    return rngs.normal((3,))" in code
    assert "rngs = nnx.Rngs(0)\ndraw(rngs=rngs)" in code


def test_what_is_drawn_before_the_seed_takes_the_rngs_that_were_given() -> None:
    code = body("""
    def draw():
        a = torch.randn(2)
        torch.manual_seed(0)
        return a + torch.randn(2)
    """)
    assert "def draw(*, rngs: nnx.Rngs):\n    a = rngs.normal((2,))\n    rngs = nnx.Rngs(0)" in code


def test_a_seed_in_both_branches_is_a_seed() -> None:
    code = body("""
    def draw(a):
        if a:
            torch.manual_seed(1)
        else:
            torch.manual_seed(2)
        return torch.randn(2)
    """)
    assert "def draw(a):" in code


def test_a_seed_of_a_script_on_a_condition_is_not_taken_back() -> None:
    code = body("import sys\nif len(sys.argv) > 1:\n    torch.manual_seed(3)\nx = torch.randn(3)\n")
    assert code.index("rngs = nnx.Rngs(0)") < code.index("rngs = nnx.Rngs(3)") < code.index("rngs.normal")


def test_methods_without_an_instance_take_rngs() -> None:
    code = body("""
    class Net(nn.Module):
        @staticmethod
        def noise(x):
            return x + torch.randn(3)

        @classmethod
        def build(cls, n):
            return cls()

        def forward(self, x):
            return self.noise(x)

    net = Net.build(3)
    """)
    assert "def noise(x, *, rngs: nnx.Rngs):\n        return x + rngs.normal((3,))" in code
    assert "return self.noise(x, rngs=self.rngs)" in code
    assert "return cls(rngs=rngs)" in code
    assert "net = Net.build(3, rngs=rngs)" in code


def test_what_a_class_makes_at_its_own_level_has_the_rngs_around_it() -> None:
    code = body("class Box:\n    x = torch.randn(3)\n")
    assert "rngs = nnx.Rngs(0)\n\n\nclass Box:\n    x = rngs.normal((3,))" in code
    code = body("""
    def build():
        class Box:
            x = torch.randn(3)
        return Box
    """)
    assert "def build(*, rngs: nnx.Rngs):" in code
    assert "nnx.Rngs(0)" not in code


def test_functions_of_a_constructors_own_take_its_rngs() -> None:
    """Found in timm: the method is called while the module is built, and passes a function that draws."""
    code = body("""
    def init(module):
        nn.init.normal_(module.weight)

    def each(function, module):
        function(module)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(3, 3)
            self.init_weights()

        def init_weights(self):
            each(init, self.a)

        def forward(self, x):
            return self.a(x)
    """)
    assert "self.init_weights(rngs=rngs)" in code
    assert (
        "def init_weights(self, *, rngs: nnx.Rngs):\n        each(functools.partial(init, rngs=rngs), self.a)" in code
    )


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    rngs = [1, 2]\n    return torch.randn(3), rngs\n",
        "def f(rngs):\n    return torch.randn(rngs)\n",
        "rngs = 3\ndef f():\n    return torch.randn(rngs)\n",
        "rngs = 3\nx = torch.randn(rngs)\n",
        "class A(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.rngs = 3\n"
        "    def forward(self, x):\n        return x + torch.randn(self.rngs)\n",
    ],
)
def test_a_name_rngs_of_the_user_is_reported(source: str) -> None:
    assert {gap.reason for gap in run(source).gaps} == {TAKEN}


def test_a_name_rngs_elsewhere_is_nobodys_concern() -> None:
    assert not run("def f(rngs):\n    return rngs\n\n\ndef g():\n    return torch.randn(3)\n").gaps


def test_the_dtype_of_draws_is_imported_where_64_bits_are_on() -> None:
    source = "import torch\n\n\ndef noise(count):\n    return torch.randn(count, 4)\n"
    result = translate(source, Options(x64=True))
    assert result.gaps == () and "import jax.numpy as jnp\n" in result.code


MANY = "first_size, second_size, third_size, fourth_size"


@pytest.mark.parametrize(
    ("parameters", "written"),
    [
        (MANY, f"def __init__(self, {MANY}, *, rngs):"),
        ("size", "def __init__(self, size, *, rngs: nnx.Rngs):"),
        (f"{MANY}, fifth", f"def __init__(\n        self, {MANY}, fifth, *, rngs: nnx.Rngs\n    ):"),
        (f"{MANY}, size: int", "        *,\n        rngs: nnx.Rngs,\n    ):"),
    ],
    ids=["it would break the line", "it fits", "the line breaks anyway", "the file has annotations"],
)
def test_rngs_has_no_annotation_where_that_alone_would_break_a_signature(parameters: str, written: str) -> None:
    source = "from torch import nn\n\n\nclass Net(nn.Module):\n"
    source += f"    def __init__(self, {parameters}):\n        super().__init__()\n        self.fc = nn.Linear(2, 3)\n"
    assert written in translate(source, Options()).code


@pytest.mark.parametrize("before", ["", "    y = self(x)\n        "], ids=["alone", "behind_a_pass"])
@pytest.mark.parametrize("value", ["Inner(3)", "Inner(3), 2", "[Inner(n) for n in (3, 4)]"])
def test_a_class_in_a_method_is_known_however_often_the_method_is_read(before: str, value: str) -> None:
    text = f"""
    class Outer(nn.Module):
        def forward(self, x):
            return x * 2

        def build(self, x):
            class Inner(nn.Module):
                def __init__(self, n):
                    super().__init__()
                    self.fc = nn.Linear(n, n)

                def forward(self, x):
                    return self.fc(x)

        {before}    return {value}
    """
    code = body(text)
    assert value.replace("(3)", "(3, rngs=self.rngs)").replace("Inner(n)", "Inner(n, rngs=self.rngs)") in code
