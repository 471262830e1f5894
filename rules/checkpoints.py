"""``torch.save`` and ``torch.load``: helpers that pickle arrays as numpy's, and read PyTorch's own files too."""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.definitions import is_module
from t2j_lsp.translate.rule.library import Trait, trait
from t2j_lsp.translate.rule.record import CLOSE, Call, Piece, Refusal, Row, rule

FILES = "The file holds numpy's arrays: load_pickle reads it, as it reads PyTorch's files; torch.load can't read it."
WHOLE = "A pickled module holds its class: save its state_dict(), and load that into a module made anew."
STATE = "The file holds the module's state dict, and not its class: load_state_dict() loads it into a module made anew."
trait(Trait.READS_FILES, "torch.load")
trait(Trait.WRITES_FILES, "torch.save")


@rule(
    "torch.save(obj, f, pickle_module=None, pickle_protocol=2, _use_new_zipfile_serialization=True, "
    "_disable_byteorder_record=False)",
    jax="save_pickle(obj, f)",
    ignore=["pickle_module", "pickle_protocol", "_use_new_zipfile_serialization", "_disable_byteorder_record"],
    fidelity=CLOSE,
    note=FILES,
    result="none",
)
def save(call: Call) -> Piece | Refusal:
    """A whole module becomes its state dict; where a file is read as a module, the reading is a gap."""
    if is_module(call["obj"].fact):
        call.note(STATE)
        return call.emit("save_pickle(torch_arrays({obj}), {f})")
    node = call["obj"].node
    inside = ast.walk(node) if node is not None else ()
    held = [n for n in inside if isinstance(n, ast.Dict | ast.List | ast.Tuple)]
    parts = [part for one in held for part in (one.values if isinstance(one, ast.Dict) else one.elts)]
    if any(is_module(call.site.fact(part)) for part in parts):
        return call.refuse(WHOLE)
    return call.emit("save_pickle({obj}, {f})")


@rule(
    "torch.load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None)",
    jax="load_pickle(f)",
    ignore=["map_location", "pickle_module", "mmap"],
    result="unknown",
)
def load(call: Call) -> Piece | Refusal:
    """Tensors of PyTorch's files become numpy's arrays. What the program has just written is no such file.

    Nor is what has a state for one of its optimizers: that of PyTorch's fits none of optax.
    """
    only = call["weights_only"]
    if call.site.rereads or call.site.resumes and only.literal is False:
        return call.emit("read_pickle({f})")
    if call.site.resumes and only.literal in (None, True):
        return call.emit("read_plain_pickle({f})")
    if only.literal in (None, True):
        return call.emit("load_pickle({f})")
    return call.emit("load_pickle({f}, weights_only={weights_only})")


Row(
    "torch.serialization.safe_globals(safe_globals)",
    "safe_globals({safe_globals})",
    fidelity=CLOSE,
    note="It is about what this file's helpers read: convert with --helpers module where another file reads.",
    result="unknown",
)
