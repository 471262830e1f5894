"""A class that defines ``__call__`` itself keeps ``forward`` as a method, and so do the classes made of it."""

from __future__ import annotations

from .convert import body
from .test_regressions import equal

HEAD = "import torch\nfrom abc import ABC, abstractmethod\nfrom torch import nn\n\n\n"
BASE = (
    "class Base(nn.Module, ABC):\n"
    "    @abstractmethod\n    def forward(self, x: torch.Tensor) -> torch.Tensor:\n        pass\n\n"
    "    def __call__(self, x, *args, **kwargs):\n        return super().__call__(x, *args, **kwargs) * 2\n\n\n"
)
LEAF = (
    "class Leaf(Base):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(4, 3)\n\n"
    "    def forward(self, x):\n        return torch.relu(self.fc(x))\n\n\n"
)
OWN = (
    "class Own(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(4, 3)\n\n"
    "    def __call__(self, x):\n        return self.forward(x) + 1\n\n"
    "    def forward(self, x):\n        return torch.tanh(self.fc(x))\n\n\n"
)
USER = (
    "class A(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.leaf, self.own = Leaf(), Own()\n\n"
    "    def forward(self, x):\n"
    "        return self.leaf.forward(x) + self.leaf(x) + self.own.forward(x) + self.own(x)\n"
)


def test_what_calls_them_and_what_they_call_agree() -> None:
    equal(HEAD + BASE + LEAF + OWN + USER, "own_call", 2, 4)


def test_the_call_of_pytorch_s_module_is_forward() -> None:
    code = body(HEAD + BASE + LEAF)
    assert "return self.forward(x, *args, **kwargs) * 2" in code
    assert code.count("def forward(self") == 2


def test_a_base_without_a_call_of_its_own_is_called() -> None:
    source = (
        HEAD + LEAF.replace("Base", "nn.Module") + "class B(Leaf):\n"
        "    def __call__(self, x):\n        return super().__call__(x) + 1\n"
    )
    code = body(source)
    assert "return super().__call__(x) + 1" in code and "def forward" not in code
