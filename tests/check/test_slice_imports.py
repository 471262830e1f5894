"""Slices follow imports into other files of the program, for the names that are needed of them."""

from __future__ import annotations

import sys
from pathlib import Path

from .sliced import cut, value, write


def test_imports_are_narrowed_and_neighbours_sliced_too(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pkg/__init__.py": "raise RuntimeError('a library that must not load')",
            "pkg/models/__init__.py": "from .net import *\nimport not_installed",
            "pkg/models/net.py": """
                from __future__ import annotations
                import not_installed
                from ..ops import double as twice, broken
                from .. import config
                from pkg.extra.deep import deep
                def net() -> not_installed.Thing:
                    from ..late import late
                    return twice(config.WIDTH) + deep() + late()
                """,
            "pkg/ops.py": "import not_installed\ndef double(x): return 2 * x\nbroken = not_installed.x\n",
            "pkg/config.py": "WIDTH = 4\nOTHER = 1 / 0\n",
            "pkg/extra/deep.py": "def deep(): return 100\n",
            "pkg/late.py": "def late(): return 1000\n",
        },
    )
    part = cut(tmp_path, "pkg/models/net.py", "net")
    assert value(part) == 1108
    assert not [name for name in sys.modules if name == "pkg" or name.startswith("pkg.")]


def test_a_module_that_its_package_imports_itself(tmp_path: Path) -> None:
    """``from pkg import functional``, where the package says ``from . import functional``."""
    write(
        tmp_path,
        {
            "pkg/__init__.py": "from . import functional, not_there\nfrom pkg import deep as own",
            "pkg/functional.py": "def double(x): return 2 * x\nbroken = 1 / 0\n",
            "pkg/deep/__init__.py": "def one(): return 1\n",
            "pkg/transforms.py": "from pkg import functional as F, own\ndef f(): return F.double(4) + own.one()\n",
        },
    )
    assert value(cut(tmp_path, "pkg/transforms.py", "f")) == 9


def test_a_star_import_becomes_the_names_needed(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a.py": "from b import *\nfrom math import *\ndef f(): return one + floor(2.5)\n",
            "b.py": "from c import *\n",
        },
    )
    write(tmp_path, {"c.py": "one = 1\ntwo = 1 / 0\n"})
    assert value(cut(tmp_path, "a.py", "f")) == 3


def test_of_conditional_imports_only_the_needed_names_are_followed(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "pkg/__init__.py": "",
            "pkg/lib/__init__.py": """
                import sys
                from typing import TYPE_CHECKING
                from .lazy import Lazy
                names = {}
                names["ops"] = ["double"]
                if TYPE_CHECKING:
                    from .broken import other
                    from .ops import double, third
                else:
                    sys.modules[__name__] = Lazy(__name__, names)
                if names:
                    from .broken import other as more
                    from .ops import third
                """,
            "pkg/lib/lazy.py": """
                import importlib
                from types import ModuleType
                class Lazy(ModuleType):
                    def __init__(self, name, names):
                        super().__init__(name)
                        self.__path__ = []
                        self.names = {n: file for file, found in names.items() for n in found}
                    def __getattr__(self, name):
                        if name not in self.names:
                            raise AttributeError(name)
                        return getattr(importlib.import_module(f"{self.__name__}.{self.names[name]}"), name)
                """,
            "pkg/lib/ops.py": "def double(x): return 2 * x\ndef third(x): return 1 / 0\n",
            "pkg/lib/broken.py": "raise RuntimeError('not needed')\nother = 1\n",
            "pkg/net.py": "from .lib import double\ndef net(): return double(4)\n",
        },
    )
    part = cut(tmp_path, "pkg/net.py", "net")
    assert value(part) == 8
    assert "pkg.lib.broken" not in {m.name for m in part.modules}


def test_what_a_try_imports_may_fail(tmp_path: Path) -> None:
    text = "if True:\n    try:\n        import not_installed\n        there = True\n"
    text += "    except ImportError:\n        there = False\ndef f(): return there\n"
    write(tmp_path, {"a.py": text})
    assert value(cut(tmp_path, "a.py", "f")) is False
