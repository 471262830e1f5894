"""``torch.distributed`` and data-parallel modules: one process that drives all devices of its host.

PyTorch starts a process for each device, each with its part of the data. In JAX one program splits each batch over the
devices; what processes tell each other goes.
"""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.facts import AnyModule, ListOf, Tuple
from t2j_lsp.translate.rule.library import Trait, trait
from t2j_lsp.translate.rule.record import CLOSE, Call, Piece, Refusal, Row, drop, refuse, rule

D = "torch.distributed."
SPLIT = "The one process of JAX splits each batch over all its devices; PyTorch splits it over processes or threads."
ONE_PROCESS = "JAX drives all devices of a host from one process, so that there is nobody to wait for or to send to."

trait(
    Trait.COPIED_CLASS,
    *("torch.nn.DataParallel", "torch.nn.parallel.DataParallel", "torch.nn.parallel.DistributedDataParallel"),
)
Row(
    "torch.nn.DataParallel(module, device_ids=None, output_device=None, dim=0)",
    "DataParallel({module})",
    fidelity=CLOSE,
    note=SPLIT,
    ignore=["device_ids", "output_device"],
    aliases=["torch.nn.parallel.DataParallel"],
    result=lambda call: AnyModule(wrapped=call["module"].fact),
)


@rule(
    "torch.nn.parallel.data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None)",
    jax="module(inputs)",
    fidelity=CLOSE,
    note="The module is called as it is: shard the batch (jax.device_put with a NamedSharding) to use all devices.",
    ignore=["device_ids", "output_device", "dim"],
)
def data_parallel(call: Call) -> Piece | Refusal:
    inputs = call["inputs"]
    several = isinstance(inputs.fact, Tuple | ListOf) or isinstance(inputs.node, ast.Tuple)
    if several or call.given("module_kwargs"):
        return call.refuse("call the module itself, with the batch sharded over the devices")
    return call.emit("{module}({inputs})")


@rule(
    "torch.nn.parallel.DistributedDataParallel(module, device_ids=None, output_device=None, dim=0, "
    "broadcast_buffers=None, init_sync=True, process_group=None, bucket_cap_mb=None, find_unused_parameters=False, "
    "check_reduction=False, gradient_as_bucket_view=False, static_graph=False, delay_all_reduce_named_params=None, "
    "param_to_hook_all_reduce=None, mixed_precision=None, device_mesh=None, skip_all_reduce_unused_params=False, "
    "bucket_cap_mb_list=None, batched_grad_copy=False, forward_sync_buffers=None, **options)",
    jax="DataParallel(module)",
    fidelity=CLOSE,
    note=SPLIT,
    ignore=[
        "device_ids",
        "output_device",
        "broadcast_buffers",
        "init_sync",
        "bucket_cap_mb",
        "find_unused_parameters",
        "check_reduction",
        "gradient_as_bucket_view",
        "static_graph",
    ],
    result=lambda call: AnyModule(wrapped=call["module"].fact),
)
def distributed_data_parallel(call: Call) -> Piece:
    if call.given("options"):
        call.note("What its dict of options says of gradients and processes goes, too.")
    return call.emit("DataParallel({module})")


Row(
    f"{D}init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None, "
    "group_name='', pg_options=None, device_id=None, _ranks=None)",
    "check_single_process({world_size?})",
    fidelity=CLOSE,
    note=ONE_PROCESS,
    ignore=["backend", "init_method", "timeout", "rank", "group_name", "device_id"],
    result="none",
)
Row(f"{D}is_available()", "True", result="bool")
Row(f"{D}get_rank(group=None)", "jax.process_index()", result="int")
Row(f"{D}get_world_size(group=None)", "jax.process_count()", result="int")
for name in ("destroy_process_group", "barrier", "all_reduce", "broadcast", "reduce", "monitored_barrier"):
    drop(f"{D}{name}", ONE_PROCESS)
refuse(f"{D}*", "JAX distributes arrays by sharding: see jax.sharding and jax.distributed.")
