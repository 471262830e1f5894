"""Files of trained weights, which are downloaded once, into the folder that PyTorch keeps them in.

Source: https://docs.pytorch.org/docs/stable/hub.html
"""

import hashlib
import os
import re
import shutil
import tempfile
from typing import Any
from urllib.parse import urlparse
from urllib.request import urlopen

from .checkpoints import load_pickle

# The hash in the name of a file: of resnet18-f37072fd.pth, "f37072fd".
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")


def get_dir() -> str:
    """The folder of what is downloaded: `$TORCH_HOME/hub`, which is `~/.cache/torch/hub` where nothing is said."""
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "torch")
    return os.path.join(os.path.expanduser(os.environ.get("TORCH_HOME", cache)), "hub")


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None) -> None:
    """Downloads a file, which is there once it is whole.

    Raises RuntimeError where its SHA256 doesn't begin with `hash_prefix`.
    """
    folder = os.path.dirname(os.path.abspath(os.path.expanduser(dst)))
    with urlopen(url) as answer, tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        shutil.copyfileobj(answer, file)
    try:
        with open(file.name, "rb") as whole:
            digest = hashlib.sha256(whole.read()).hexdigest()
        if not digest.startswith(hash_prefix or ""):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest}")')
        shutil.move(file.name, os.path.expanduser(dst))
    finally:
        if os.path.exists(file.name):
            os.remove(file.name)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """Reads the file of a URL, which is downloaded if it isn't there; tensors become numpy's arrays."""
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        in_name = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, in_name.group(1) if in_name is not None else None)
    state = load_pickle(path, weights_only)
    if isinstance(state, int):
        raise ValueError(f"{path} was written before PyTorch 1.6: load it there once, and save it again")
    return state
