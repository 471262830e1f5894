"""Imports of modules that stand elsewhere."""

from __future__ import annotations

import pytest

from t2j_lsp.translate.source.moved_imports import moved_prefixes, with_moved_imports

MOVES = moved_prefixes((("tv.models", "tv_jax.models"), ("tv.ops", "tv_jax.ops")))

CASES = [
    ("from tv import models\nmodels.vgg()\n", "from tv_jax import models\nmodels.vgg()\n"),
    (
        "from tv import data, models  # both\nmodels.vgg()\n",
        "from tv import data\nfrom tv_jax import models  # both\nmodels.vgg()\n",
    ),
    (
        "def f():\n    from tv import models as m, data; m.vgg(data)\n",
        "def f():\n    from tv import data; from tv_jax import models as m; m.vgg(data)\n",
    ),
    (
        "from tv import (\n    data,  # one\n    models,\n    ops,\n)\nmodels.a(ops.b)\n",
        "from tv import (\n    data,  # one\n)\nfrom tv_jax import models, ops\nmodels.a(ops.b)\n",
    ),
    (
        "from tv import (data,  # one\n    models, ops)\nmodels.a(ops.b)\n",
        "from tv import (data,  # one\n)\nfrom tv_jax import models, ops\nmodels.a(ops.b)\n",
    ),
    (
        "from tv import (data,\n    models)\nmodels.a()\n",
        "from tv import (data)\nfrom tv_jax import models\nmodels.a()\n",
    ),
    ("from tv.models.resnet import ResNet, x as y\n", "from tv_jax.models.resnet import ResNet, x as y\n"),
    ("from tv.models import *\n", "from tv_jax.models import *\n"),
    ("import tv.models as models\nmodels.vgg()\n", "import tv_jax.models as models\nmodels.vgg()\n"),
    ("import tv\nnet = tv.models.vgg(1)\n", "import tv_jax.models\nnet = tv_jax.models.vgg(1)\n"),
    (
        "import tv\ndata = tv.data.get()\nnet = tv.models.vgg(tv.ops.x)\n",
        "import tv\nimport tv_jax.models\nimport tv_jax.ops\n"
        "data = tv.data.get()\nnet = tv_jax.models.vgg(tv_jax.ops.x)\n",
    ),
    ("import os, tv as t\nt.models.vgg(os)\n", "import os\nimport tv_jax.models\ntv_jax.models.vgg(os)\n"),
    ("import tv.models\ntv.models.vgg()\n", "import tv_jax.models\ntv_jax.models.vgg()\n"),
]


@pytest.mark.parametrize(("before", "after"), CASES)
def test_what_moved_is_imported_from_where_it_is(before: str, after: str) -> None:
    assert with_moved_imports(before, MOVES) == after


@pytest.mark.parametrize(
    "text",
    [
        "from tv import models\nnet = getattr(models, name)()\n",
        "from tv import models\nnet = models.__dict__[name]()\n",
        "import tv\nnet = tv.models.__dict__[name]()\n",
        "import tv\nspace = tv.models\n",
        "import tv\ndef f(tv):\n    return tv.models.vgg()\n",
        "from tv import data\nfrom tv.modelsafe import x\n",
        "from .tv import models\nmodels.vgg()\n",
        "import tv.data as models\nmodels.ops.x()\n",
        "this is no Python\n",
    ],
)
def test_what_is_not_known_to_mean_it_stays(text: str) -> None:
    assert with_moved_imports(text, MOVES) == text


def test_a_whole_package_moves() -> None:
    moves = moved_prefixes((("tv", "tv_jax"),))
    text = "import tv\nfrom tv import models\nmodels.vgg(tv.x)\n"
    assert with_moved_imports(text, moves) == "import tv_jax\nfrom tv_jax import models\nmodels.vgg(tv_jax.x)\n"
