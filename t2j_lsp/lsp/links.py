"""Where to read more: pages of PyTorch and JAX, and this project's own pages on rules and findings."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ..contract import editor_code

if TYPE_CHECKING:
    from .server import Server

_TORCH = "https://docs.pytorch.org/docs/stable/generated/"
_JAX = "https://docs.jax.dev/en/latest/_autosummary/"
_MODULES = {"jnp": "jax.numpy", "lax": "jax.lax", "jax": "jax"}


def torch_page(name: str) -> str | None:
    """PyTorch's page of a qualified name."""
    if not re.fullmatch(r"torch(?:\.\w+)+", name) or name.endswith("__"):
        return None
    return f"{_TORCH}{name}.html"


def jax_page(form: str | None) -> str | None:
    """JAX's page of the function that a JAX text calls first."""
    match = re.match(r"(jnp|lax|jax)((?:\.\w+)+)\(", form or "")
    if match is None:
        return None
    return f"{_JAX}{_MODULES[match[1]]}{match[2]}.html"


@cache
def docs_folder() -> Path | None:
    """The project's pages on disk, in a checkout."""
    folder = Path(__file__).resolve().parents[2] / "docs"
    return folder if (folder / "findings.md").is_file() else None


def page(server: Server, file: str, anchor: str = "") -> str | None:
    """A page of this project: under the ``docsUrl`` setting, or on disk."""
    base = server.settings_for(None).docs_url
    fragment = f"#{anchor}" if anchor else ""
    if base:
        return f"{base.rstrip('/')}/{file}{fragment}"
    folder = docs_folder()
    return f"{(folder / file).as_uri()}{fragment}" if folder is not None else None


def finding_page(server: Server, code: str) -> str | None:
    """The page that explains a diagnostic's code."""
    return page(server, "findings.md", editor_code(code))


def rule_page(server: Server, doc: tuple[str, str | None, str, str | None, str] | None) -> str | None:
    """The page that lists a rule."""
    return page(server, f"rules/{doc[4]}.md") if doc is not None and doc[4] else None
