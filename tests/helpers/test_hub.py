"""Files of trained weights are downloaded once, into PyTorch's folder, and read without PyTorch."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import torch

from t2j_lsp.rules.helpers.hub import HASH_REGEX, download_url_to_file, get_dir, load_state_dict_from_url


@pytest.fixture
def url(tmp_path: Path) -> str:
    torch.save({"w": torch.arange(3.0)}, tmp_path / "made.pth")
    digest = hashlib.sha256((tmp_path / "made.pth").read_bytes()).hexdigest()
    return (tmp_path / "made.pth").rename(tmp_path / f"net-{digest[:8]}.pth").as_uri()


@pytest.mark.parametrize("home", [{"TORCH_HOME": "~/weights"}, {"XDG_CACHE_HOME": "/cache"}, {}])
def test_the_folder_is_pytorchs(home: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TORCH_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in home.items():
        monkeypatch.setenv(name, value)
    assert get_dir() == torch.hub.get_dir()


def test_both_read_the_same_values_of_one_file(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    state = load_state_dict_from_url(url, check_hash=True)
    kept = tmp_path / "hub" / "checkpoints" / url.rpartition("/")[2]
    assert state["w"].tolist() == [0, 1, 2] and kept.is_file()
    assert torch.hub.load_state_dict_from_url(url)["w"].tolist() == [0, 1, 2]
    (tmp_path / kept.name).unlink()
    assert load_state_dict_from_url(url, weights_only=True)["w"].tolist() == [0, 1, 2]  # it is there
    assert HASH_REGEX.pattern == torch.hub.HASH_REGEX.pattern


def test_a_file_with_another_hash_is_not_kept(url: str, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="invalid hash value"):
        download_url_to_file(url, str(tmp_path / "there.pth"), "0000")
    assert not (tmp_path / "there.pth").exists() and len(list(tmp_path.iterdir())) == 1


def test_a_file_of_old_pytorch_is_an_error(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(2)}, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    with pytest.raises(ValueError, match=r"before PyTorch 1\.6"):
        load_state_dict_from_url((tmp_path / "old.pth").as_uri(), model_dir=str(tmp_path / "kept"))
