"""``torch.hub``: files of trained weights, which helpers download and read. Its models are PyTorch's."""

from __future__ import annotations

from t2j_lsp.translate.rule.record import CLOSE, Call, Piece, Row, refuse, rule

LEGACY = "Files that were written before PyTorch 1.6 are not read. Tensors become numpy's arrays."


@rule(
    "torch.hub.load_state_dict_from_url(url, model_dir=None, map_location=None, progress=True, check_hash=False, "
    "file_name=None, weights_only=False)",
    jax="load_state_dict_from_url(url)",
    ignore=["map_location", "progress"],
    fidelity=CLOSE,
    note=LEGACY,
    result="unknown",
)
def load_state_dict_from_url(call: Call) -> Piece:
    """What isn't said is left to the helper, whose defaults are PyTorch's."""
    names = ("model_dir", "check_hash", "file_name", "weights_only")
    given = [f"{name}={{{name}}}" for name in names if call.given(name)]
    return call.emit(f"load_state_dict_from_url({', '.join(['{url}', *given])})")


Row(
    "torch.hub.download_url_to_file(url, dst, hash_prefix=None, progress=True)",
    "download_url_to_file({url}, {dst}, hash_prefix={hash_prefix?})",
    ignore=["progress"],
    result="none",
)
Row("torch.hub.get_dir()", "get_dir()", result="str")
refuse("torch.hub.*", "torch.hub loads PyTorch models.")
