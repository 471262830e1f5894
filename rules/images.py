"""``torchvision.utils``: batches of images as pictures. The rest of torchvision reads and prepares data, and stays.

So does what reads files: in the data pipeline it is PyTorch's, and anywhere else its tensors are said.
"""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.rule.library import Trait, trait
from t2j_lsp.translate.rule.record import Row, refuse

trait(Trait.TAKES_SEQUENCES, "torchvision.transforms.Normalize", "torchvision.transforms.v2.Normalize")
UTILS = "torchvision.utils"
GRID = "nrow=8, padding=2, normalize=False, value_range=None, scale_each=False, pad_value=0.0"
OPTIONS = ", ".join(f"{part.split('=')[0]}={{{part.split('=')[0]}?}}" for part in GRID.split(", "))

Row(f"{UTILS}.make_grid(tensor, {GRID})", f"make_grid({{tensor}}, {OPTIONS})", result=lambda call: Tensor(3, "float"))
Row(
    f"{UTILS}.save_image(tensor, fp, format=None, *, {GRID})",
    f"save_image({{tensor}}, {{fp}}, format={{format?}}, {OPTIONS})",
    result="none",
)
for drawn in ("bounding_boxes", "segmentation_masks", "keypoints"):
    refuse(f"{UTILS}.draw_{drawn}", "It draws on PyTorch's tensors: draw on a NumPy array with Pillow or Matplotlib.")
refuse(f"{UTILS}.flow_to_image", "It takes PyTorch's tensors, and no JAX arrays.")
for read in (
    "torchvision.io.read_image",
    "torchvision.io.decode_image",
    "torchvision.io.read_video",
    "torchaudio.load",
):
    refuse(read, "It gives PyTorch's tensors: make arrays of them where they are read, by jnp.asarray.")
