"""Conversions of ``rules/environment.py`` and ``rules/compilation.py``: what a program asks of its surroundings."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax
import pytest

from t2j_lsp.contract import Options
from t2j_lsp.translate import translate

from .conversion import HEADER, agrees, converted, left_alone, refused

ROWS = [
    ("torch.pi, torch.inf, torch.e", "jnp.pi, jnp.inf, jnp.e", ""),
    ("x[torch.newaxis].shape", "x[None].shape", "x"),
    ("torch.backends.mps.is_available()", "False", ""),
    ("torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark", "True, False", ""),
    ("torch.cuda.is_available()", 'jax.default_backend() == "gpu"', ""),
    ("torch.accelerator.is_available()", 'jax.default_backend() != "cpu"', ""),
    ("torch.nn.modules.utils._pair(3), torch.is_autocast_enabled()", "per_axis(3, 2), False", ""),
    ("torch.jit.annotate(float, 2.0)", "2.0", ""),
    ("torch.compiler.is_exporting(), torch.compiler.is_compiling()", "False, False", ""),
    ("torch.compiler.disable(torch.sin, reason='slow')(x)", "jnp.sin(x)", "x"),
    ("torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False)", "jnp.sin(x)", "x"),
    ("torch._assert(x.dim() == 3, 'three axes'); x", "assert x.ndim == 3, 'three axes'; x", "x"),
    (
        "torch._assert(x.dim() == 3,\n        'three '\n        'axes'); x",
        "assert x.ndim == 3, ('three '         'axes'); x",
        "x",
    ),
]


@pytest.mark.parametrize(("torch", "jax", "inputs"), ROWS, ids=[row[0] for row in ROWS])
def test_questions_get_the_answer_they_get_on_a_cpu(torch: str, jax: str, inputs: str) -> None:
    agrees(torch, jax, inputs)


GONE = [
    "torch.cuda.empty_cache()",
    "torch.cuda.synchronize()",
    "torch.set_default_device('cuda' if torch.cuda.is_available() else 'cpu')",
    "torch.set_num_threads(4)",
    "torch.use_deterministic_algorithms(True)",
    "torch.set_float32_matmul_precision('high')",
    "torch.cuda.manual_seed_all(3)",
    "torch.autograd.set_detect_anomaly(True)",
    "torch.backends.cuda.enable_flash_sdp(True)",
    "torch.backends.cudnn.enabled = True",
    "torch.fx.wrap('len')",
    "torch.compiler.reset()",
    "torch.compiler.cudagraph_mark_step_begin()",
    "torch.compiler.set_stance('force_eager')",
]


@pytest.mark.parametrize("statement", GONE)
def test_settings_of_pytorch_go(statement: str) -> None:
    code = translate(f"{HEADER}\n{statement}\nx = torch.zeros(3)\n", Options()).code
    assert code.rstrip().endswith("x = jnp.zeros(3)")
    assert "torch." not in code


def test_a_device_that_nothing_reads_any_more_goes() -> None:
    source = (
        "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n"
        "x = torch.zeros(3, device=device).to(device)\n"
    )
    code = translate(f"{HEADER}\n{source}", Options()).code
    assert code.rstrip().endswith("x = jnp.zeros(3)")
    assert "device" not in code


def test_a_compiled_model_is_the_model_and_that_is_noted() -> None:
    for call in ("torch.compile(nn.ReLU())", "torch.compile(nn.ReLU(), **options)"):
        text, translation = converted(f"m = {call}; m(x)", "x")
        assert "torch.compile" not in text and not translation.gaps
    assert any("nnx.jit" in note.reason for note in translation.notes)


DEVICES = {
    "cuda": ("torch.cuda.is_available()", "torch.device('cuda')"),
    "accelerator": ("torch.accelerator.is_available()", "torch.accelerator.current_accelerator()"),
}


@pytest.mark.parametrize("name", DEVICES)
def test_a_choice_of_device_that_nothing_reads_any_more_goes(name: str) -> None:
    asked, device = DEVICES[name]
    source = (
        f"def f(x, use):\n    if use:\n        device = {device}\n    elif {asked}:\n        device = {device}\n"
        "    else:\n        device = torch.device('cpu')\n    return x.sin().to(device)\n"
    )
    assert translate(f"{HEADER}\n{source}", Options()).code.endswith("def f(x, use):\n    return jnp.sin(x)\n")
    kept = translate(f"{HEADER}\n{source.replace('if use:', 'if use.pop():', 1)}", Options()).code
    assert "    if use.pop():\n        pass\n" in kept


def test_a_choice_that_is_one_device_is_made_once() -> None:
    choice = "if use:\n    device = torch.device('cuda')\nelif not use:\n    device = torch.device('mps')\n"
    source = f"use = torch.cuda.is_available()\n{choice}else:\n    device = torch.device('cpu')\nprint(device)\n"
    done = translate(f"{HEADER}\n{source}", Options())
    assert 'jax.default_backend() == "gpu"\ndevice = jax.devices()[0]\nprint(device)\n' in done.code
    for other in (source.replace("if use:", "if use():"), source.replace("else:", "else:  # slow")):
        assert translate(f"{HEADER}\n{other}", Options()).code.count("jax.devices()[0]") == 3


def test_a_device_that_a_function_does_not_read_goes_whatever_others_do() -> None:
    forward = "    def forward(self, x):\n        device = x.device\n        return x.sin().to(device)\n"
    net = f"class Net(nn.Module):\n{forward}"
    text = f"import torch.nn as nn\n\n\n{net}\n\ndevice = torch.device('cuda')\nprint(device)\n"
    code = translate(f"{HEADER}\n{text}", Options()).code
    assert "def __call__(self, x):\n        return jnp.sin(x)" in code and "device = jax.devices()[0]\nprint" in code


def test_the_kind_of_an_accelerator_is_the_device() -> None:
    """As PyTorch's quickstart asks for it."""
    source = "torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else 'cpu'"
    done = translate(f"{HEADER}\ndevice = {source}\nprint(f'Using {{device}}', torch.ones(1).to(device))\n", Options())
    assert "device = jax.devices()[0]\n" in done.code and not done.gaps


REFUSED = [
    ("torch.accelerator.current_device_idx()", "JAX names devices by objects", ""),
    ("torch.__version__ > '2'", "PyTorch's version", ""),
    ("torch.backends.cudnn.version()", "a cuDNN of its own", ""),
    ("torch.cuda.memory_summary()", "no CUDA interface", ""),
    ("torch.distributed.new_group()", "sharding", ""),
    ("torch.distributions.VonMises(x, x)", "numpyro", "x"),
    ("torch.jit.trace(f, x)", "jax.jit", "x"),
    ("torch.autograd.grad(x.sum(), x)", "jax.grad", "x"),
    ("torch.is_grad_enabled()", "gradient switch", ""),
    ("torch.fx.symbolic_trace(f)", "jaxpr", ""),
    ("torch.Generator('cpu')", "nnx.Rngs(seed)", ""),
    ("torch.amp.custom_fwd(f)", "no autocast", ""),
    ("torch.compiler.list_backends()", "jax.jit", ""),
]


@pytest.mark.parametrize(
    "decorator",
    [
        "torch.compiler.disable",
        "torch.compiler.disable()",
        "torch.compiler.allow_in_graph",
        'torch.amp.custom_fwd(device_type="cuda")',
        "torch.cuda.amp.custom_bwd",
        "torch.cuda.amp.autocast()",
    ],
)
def test_marks_for_pytorchs_compiler_and_autocast_go(decorator: str) -> None:
    done = translate(f"{HEADER}\n\n@{decorator}\ndef f(x):\n    return torch.sin(x)\n", Options())
    assert not done.gaps and "@" not in done.code and "torch." not in done.code


def test_autocast_is_not_there_and_that_is_noted() -> None:
    text, translation = converted("torch.amp.is_autocast_available('cuda')", "")
    assert text == "False" and [note.reason for note in translation.notes] == ["JAX has no autocast."]


def test_a_module_as_an_annotation_becomes_object() -> None:
    """Found in timm: ``def __init__(self, input_fmt: F = 'NCHW')``, where F is torch.nn.functional."""
    source = "import torch.nn.functional as F\n\n\ndef f(x, fmt: F = 'NCHW'):\n    return F.relu(x)\n"
    done = translate(source, Options())
    assert not done.gaps and "fmt: object = 'NCHW'" in done.code
    assert any("as an annotation says nothing" in note.reason for note in done.notes)


@pytest.mark.parametrize(("torch", "reason", "inputs"), REFUSED)
def test_what_jax_does_otherwise_stays_with_its_reason(torch: str, reason: str, inputs: str) -> None:
    _, translation = converted(torch, inputs)
    assert [gap.reason for gap in translation.gaps if reason in gap.reason] != []


ALONE = [
    "import os\n\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'",
    "def f(device):\n    return device.type",
    "import math\n\ntau = 2 * math.pi",
    "import platform\n\nversion = platform.__name__",
    "def compile(text):\n    return text\n\n\nmade = compile('x')",
    "class Cuda:\n    def synchronize(self):\n        return None\n\n\nCuda().synchronize()",
]


@pytest.mark.parametrize("source", ALONE)
def test_surroundings_of_other_libraries_stay(source: str) -> None:
    left_alone(source)


def test_a_refused_value_stays_in_the_text() -> None:
    refused("torch.cuda.memory_summary()", "no CUDA interface")


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ('x.device.type == "cuda"', 'jax.devices()[0].platform == "gpu"'),
        ('x.device.type in ("cuda", "cpu", "mps")', 'jax.devices()[0].platform in ("gpu", "cpu")'),
        ('x.device.type not in ["cuda", "mps"]', 'jax.devices()[0].platform != "gpu"'),
        ('x.device.type == "mps"', "False"),
        ('x.device.type != "meta"', "True"),
        ('hasattr(torch, "xpu") and torch.xpu.is_available()', "False"),
        ('hasattr(torch.backends, "mps") and torch.backends.mps.is_available()', "False"),
        ("torch.is_autocast_enabled(x.device.type)", "False"),
        ("'silu' in dir(torch.nn.functional)", "True"),
        ("'relu' not in dir(torch)", "False"),
    ],
)
def test_questions_about_devices(question: str, answer: str) -> None:
    result = translate(f"import torch\n\n\ndef f(x: torch.Tensor):\n    return {question}\n")
    assert not result.gaps and result.code.endswith(f"    return {answer}\n"), result.code


def test_what_is_for_other_devices_goes() -> None:
    body = "    if x.device.type != 'mps':\n        x = x * 2\n"
    body += "    if torch.is_autocast_enabled('cuda'):\n        x = x * 3\n"
    result = translate(f"import torch\n\n\ndef f(x: torch.Tensor):\n{body}    return x\n")
    assert result.code == "import jax\n\n\ndef f(x: jax.Array):\n    x = x * 2\n    return x\n"


def test_the_kind_of_a_device_is_named_as_in_pytorch() -> None:
    body = "    kind = x.device.type\n    return kind, x.device.type == 'tpu2'\n"
    result = translate(f"import torch\n\n\ndef f(x: torch.Tensor):\n{body}")
    names: dict[str, Any] = {}
    exec(compile(result.code, "<converted>", "exec"), names)
    assert not result.gaps and names["f"](jax.numpy.ones(2)) == ("cpu", False)
    assert names["kind_of_device"](SimpleNamespace(platform="gpu")) == "cuda"


def test_questions_about_autocast_are_answered() -> None:
    asked = "    if torch.is_autocast_enabled():\n        x = x.to(torch.get_autocast_gpu_dtype())\n"
    kinds = "    return x.to(torch.get_autocast_dtype('cpu')), x.to(torch.get_autocast_dtype(x.device.type))\n"
    result = translate(f"import torch\n\n\ndef f(x: torch.Tensor):\n{asked}{kinds}")
    names: dict[str, Any] = {}
    exec(compile(result.code, "<converted>", "exec"), names)
    assert not result.gaps and "is_autocast" not in result.code
    assert [y.dtype for y in names["f"](jax.numpy.ones(2))] == [jax.numpy.bfloat16] * 2


def test_torchscripts_list_is_pythons() -> None:
    source = "import torch\nfrom torch.jit.annotations import List\n\n\ndef f(xs: List[torch.Tensor]):\n    return xs\n"
    result = translate(source)
    assert not result.gaps and result.code == "import jax\n\n\ndef f(xs: list[jax.Array]):\n    return xs\n"


@pytest.mark.parametrize(
    ("torch", "jax"),
    [
        ("torch.cuda.get_device_name()", "jax.local_devices()[0].device_kind"),
        ("torch.cuda.get_device_name(1)", "jax.local_devices()[1].device_kind"),
        ("torch.cuda.get_device_name(torch.device('cuda'))", "jax.devices()[0].device_kind"),
        ("torch.cuda.memory_allocated()", '(jax.local_devices()[0].memory_stats() or {}).get("bytes_in_use", 0)'),
        (
            "torch.cuda.max_memory_allocated(1)",
            '(jax.local_devices()[1].memory_stats() or {}).get("peak_bytes_in_use", 0)',
        ),
    ],
)
def test_a_device_says_of_which_kind_it_is(torch: str, jax: str) -> None:
    assert converted(torch)[0] == jax
