"""Where to read more: pages of PyTorch and JAX, and this project's own pages on rules and findings."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from t2j_lsp.contract import editor_code

from .session import Session

_TORCH = "https://docs.pytorch.org/docs/stable/generated/"
_JAX = "https://docs.jax.dev/en/latest/_autosummary/"
_FLAX = "https://flax.readthedocs.io/en/latest/api_reference/flax.nnx/"
_OPTAX = "https://optax.readthedocs.io/en/latest/api/"
_MODULES = {"jnp": "jax.numpy", "lax": "jax.lax", "jax": "jax"}
_METHODS = ("torch.nn.Module", "torch.optim.lr_scheduler.LRScheduler", "torch.amp.GradScaler")
"""Classes whose methods have no page of their own."""
_TOPICS = {
    "indexing": "tensors.html",
    "assignment to elements": "tensors.html",
    "operator that writes in place": "notes/autograd.html#in-place-operations-with-autograd",
}
"""PyTorch's pages of what has no qualified name."""
JAX_ARRAYS = "https://docs.jax.dev/en/latest/notebooks/Common_Gotchas_in_JAX.html"
"""On arrays that never change, and indices that are out of range."""
_FLAX_PAGES = {
    "nn/linear": "Conv ConvTranspose Embed Linear LinearGeneral Einsum",
    "nn/normalization": "BatchNorm LayerNorm RMSNorm GroupNorm InstanceNorm SpectralNorm WeightNorm",
    "nn/stochastic": "Dropout",
    "nn/attention": "MultiHeadAttention",
    "nn/recurrent": "RNN",
    "nn/pooling": "max_pool avg_pool",
    "nn/activations": "relu gelu tanh softmax soft_sign silu sigmoid selu log_softmax log_sigmoid hard_swish"
    " hard_sigmoid",
    "helpers": "Sequential List Dict",
    "transforms": "jit grad value_and_grad remat eval_shape",
    "variables": "Param BatchStat Variable",
    "rnglib": "Rngs RngStream",
    "graph": "split merge state clone iter_graph",
    "module": "Module iter_modules iter_children",
}
_OPTAX_PAGES = {
    "optimizers": "sgd adam adamw adamax adadelta adafactor adagrad amsgrad nadam radam rmsprop rprop lbfgs",
    "optimizer_schedules": "inject_hyperparams constant_schedule cosine_decay_schedule exponential_decay join_schedules"
    " linear_schedule piecewise_constant_schedule polynomial_schedule",
    "transformations": "trace ema scale scale_by_learning_rate scale_by_rms scale_by_stddev add_decayed_weights"
    " clip_by_global_norm set_to_zero GradientTransformation",
    "losses": "sigmoid_binary_cross_entropy huber_loss ctc_loss",
    "combining_optimizers": "chain",
}
_FLAX_NAMES = {name: page for page, names in _FLAX_PAGES.items() for name in names.split()}
_OPTAX_NAMES = {name: page for page, names in _OPTAX_PAGES.items() for name in names.split()}
_LIBRARY_NAME = re.compile(r"(?<![\w.])(jnp|lax|jax|nnx|optax)((?:\.[A-Za-z_]\w*)+)(\()?")
_AT = re.compile(r"\w\.at\[")
_MINOR = frozenset(
    (
        *("jnp.moveaxis", "jnp.asarray", "jax.tree_util.Partial", "nnx.jit", "nnx.Rngs", "nnx.Module"),
        "optax.inject_hyperparams",
    )
)
"""What is linked where the code has nothing more telling."""
_RELATED = {
    "torch.nn.Module.train": "nnx.Module",
    "torch.nn.Module.eval": "nnx.Module",
    "torch.nn.Module.__init__": "nnx.Module",
    "torch.no_grad": "nnx.value_and_grad",
    "torch.inference_mode": "nnx.value_and_grad",
    "torch.jit.script": "nnx.jit",
    "torch.manual_seed": "nnx.Rngs",
    "torch.optim.lr_scheduler.LRScheduler.step": "optax.constant_schedule",
}
"""What to read about where the code names nothing."""


def torch_page(name: str) -> str | None:
    """PyTorch's page of a qualified name, or of a topic."""
    if name in _TOPICS:
        return f"{_TORCH.removesuffix('generated/')}{_TOPICS[name]}"
    if not re.fullmatch(r"torch(?:\.\w+)+", name) or name.endswith("__"):
        return None
    owner = next((c for c in _METHODS if name.startswith(f"{c}.")), None)
    return f"{_TORCH}{owner}.html#{name}" if owner is not None else f"{_TORCH}{name}.html"


def library_pages(name: str, code: str) -> dict[str, str]:
    """The pages of what the JAX code of a name uses, by library: JAX, Flax, optax; of each the first telling one."""
    pages: dict[str, str] = {}
    if name in _TOPICS:
        pages["JAX"] = JAX_ARRAYS
    if _AT.search(code):
        pages["JAX"] = f"{_JAX}jax.Array.at.html"
    telling = {m.group().rstrip("("): m for m in _LIBRARY_NAME.finditer(code)}
    for minor in (False, True):
        for text, match in telling.items():
            library, address = _page(match[1], match[2], bool(match[3]))
            if (text in _MINOR) is minor and address is not None:
                pages.setdefault(library, address)
        if pages:
            return pages
    related = _RELATED.get(name)
    return library_pages("", related) if related is not None else {}


def _page(root: str, rest: str, called: bool) -> tuple[str, str | None]:
    """The library of a dotted name and the name's page, where it is known to have one."""
    if root == "nnx":
        if rest.startswith(".initializers."):
            return "Flax", f"{_FLAX}nn/initializers.html#flax.nnx{rest}"
        if rest == ".Optimizer":
            return "Flax", f"{_FLAX}training/optimizer.html#flax.nnx.optimizer.Optimizer"
        page = _FLAX_NAMES.get(rest[1:])
        return "Flax", f"{_FLAX}{page}.html#flax.nnx{rest}" if page else None
    if root == "optax":
        page = _OPTAX_NAMES.get(rest[1:])
        module = "optax.schedules" if page == "optimizer_schedules" else "optax"
        return "optax", f"{_OPTAX}{page}.html#{module}{rest}" if page else None
    return "JAX", f"{_JAX}{_MODULES[root]}{rest}.html" if called else None


@cache
def docs_folder() -> Path | None:
    """The project's pages on disk, in a checkout."""
    folder = Path(__file__).resolve().parents[2] / "docs"
    return folder if (folder / "findings.md").is_file() else None


def page(session: Session, file: str, anchor: str = "") -> str | None:
    """A page of this project: under the ``docsUrl`` setting, or on disk."""
    base = session.settings_for(None).docs_url
    fragment = f"#{anchor}" if anchor else ""
    if base:
        return f"{base.rstrip('/')}/{file}{fragment}"
    folder = docs_folder()
    return f"{(folder / file).as_uri()}{fragment}" if folder is not None else None


def finding_page(session: Session, code: str) -> str | None:
    """The page that explains a diagnostic's code."""
    return page(session, "findings.md", editor_code(code))


def rule_page(session: Session, doc: tuple[str, str | None, str, str | None, str] | None) -> str | None:
    """The page that lists a rule."""
    return page(session, f"rules/{doc[4]}.md") if doc is not None and doc[4] else None
