"""``torch.utils.tensorboard``: the same writer from tensorboardX, which takes JAX arrays and needs no PyTorch."""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import Object
from t2j_lsp.translate.rule.library import Trait, torch_class, trait
from t2j_lsp.translate.rule.record import CLOSE, Row, refuse

WRITER = "torch.utils.tensorboard.SummaryWriter"
INNER = "torch.utils.tensorboard.writer.SummaryWriter"
ARRAYS = (
    *("scalar", "scalars", "histogram", "image", "images", "image_with_boxes", "video", "audio", "embedding"),
    *("pr_curve", "mesh"),
)
"""What is logged from arrays."""

Row(
    f"{WRITER}(log_dir=None, comment='', purge_step=None, max_queue=10, flush_secs=120, filename_suffix='')",
    "SummaryWriter({log_dir?}, comment={comment?}, purge_step={purge_step?}, max_queue={max_queue?}, "
    "flush_secs={flush_secs?}, filename_suffix={filename_suffix?})",
    aliases=[INNER],
    fidelity=CLOSE,
    note="The writer is that of the package tensorboardX, which writes the same files and takes JAX arrays.",
    result=lambda call: Object("writer"),
)
torch_class(WRITER, annotation="SummaryWriter", fact=Object("writer"), called="writer")
torch_class(INNER, annotation="SummaryWriter", fact=Object("writer"))
trait(Trait.KEPT_METHODS, WRITER)
trait(Trait.TAKES_ARRAYS, *(f"add_{what}" for what in ARRAYS))

# Where tensorboardX has other methods -----------------------------------------------------------------------------

Row(
    f"{WRITER}.add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, "
    "double_precision=False)",
    "{self}.add_scalar({tag}, {scalar_value}, global_step={global_step?}, walltime={walltime?})",
    ignore=["new_style", "double_precision"],
    result="none",
)
Row(
    f"{WRITER}.add_hparams(self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, "
    "global_step=None)",
    "{self}.add_hparams({hparam_dict}, {metric_dict}, name={run_name?}, global_step={global_step?})",
    result="none",
)
Row(f"{WRITER}.get_logdir(self)", "{self}.logdir", result="str")
Row(f"{WRITER}.log_dir", "{self}.logdir", result="str")
refuse(
    f"{WRITER}.add_graph",
    "The graph is traced by TorchScript: look at jax.make_jaxpr, nnx.tabulate or a trace of jax.profiler instead.",
)
refuse(
    f"{WRITER}.add_onnx_graph",
    "The writer of tensorboardX reads ONNX files with the package onnx: see whether its graph is of use.",
)
refuse(f"{WRITER}.add_tensor", "The writer of tensorboardX has no such method: log it with add_histogram or add_text.")
