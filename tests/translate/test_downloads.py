"""Weights that ``torch.hub`` downloads are read by a helper; models of other repositories are PyTorch's."""

from __future__ import annotations

import pytest

from t2j_lsp import convert

HEAD = "import torch\nfrom torch.hub import load_state_dict_from_url\n\n"


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        ("load_state_dict_from_url(url)", "load_state_dict_from_url(url)"),
        (
            "torch.hub.load_state_dict_from_url(url, 'weights', map_location='cpu', progress=False, check_hash=True)",
            "load_state_dict_from_url(url, model_dir='weights', check_hash=True)",
        ),
        ("torch.hub.download_url_to_file(url, to)", "download_url_to_file(url, to)"),
        ("torch.hub.download_url_to_file(url, to, progress=False)", "download_url_to_file(url, to)"),
        ("torch.hub.download_url_to_file(url, to, '0a')", "download_url_to_file(url, to, hash_prefix='0a')"),
        ("torch.hub.get_dir()", "get_dir()"),
    ],
)
def test_files_are_downloaded(call: str, wanted: str) -> None:
    result = convert(f"{HEAD}\ndef f(url, to):\n    return {call}\n")
    assert not result.gaps and f"    return {wanted}\n" in result.code


@pytest.mark.parametrize("call", ["torch.hub.load('a/b', 'net')", "torch.hub.set_dir('x')", "torch.hub.help('a', 'b')"])
def test_the_rest_is_a_gap(call: str) -> None:
    assert convert(f"{HEAD}\nnet = {call}\n").gaps
