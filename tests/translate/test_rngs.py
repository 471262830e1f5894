"""rngs reach every place that builds modules or draws numbers, and no other."""

from __future__ import annotations

from .convert import body, expect_same


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
