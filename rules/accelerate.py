"""``accelerate.Accelerator``, through which scripts run PyTorch on several devices: without it, they say the same.

https://huggingface.co/docs/accelerate/package_reference/accelerator
"""

from __future__ import annotations

from t2j_lsp.translate.rule.go_betweens import GoBetween, go_between

_MAIN = "torch.distributed.get_rank() == 0"
_SAME = ("gather", "gather_for_metrics", "pad_across_processes", "reduce", "unwrap_model")

go_between(
    "accelerate.Accelerator",
    GoBetween(
        note="It runs PyTorch on several devices, and goes: one process of JAX drives all devices of its host, in the "
        "dtype of the arrays. Shard the batch (jax.device_put with a NamedSharding) to use them.",
        calls={
            **dict.fromkeys(_SAME, "{0}"),
            "autocast": 'torch.autocast("cuda")',
            "backward": "{0}.backward()",
            "clip_grad_norm_": "torch.nn.utils.clip_grad_norm_({all})",
            "clip_grad_value_": "torch.nn.utils.clip_grad_value_({all})",
            "get_state_dict": "{0}.state_dict()",
            "print": "print({all})",
            "save": "torch.save({all})",
        },
        values={
            "device": 'torch.device("cuda" if torch.cuda.is_available() else "cpu")',
            "is_local_main_process": _MAIN,
            "is_main_process": _MAIN,
            "num_processes": "torch.distributed.get_world_size()",
            "process_index": "torch.distributed.get_rank()",
        },
        handed_back="prepare",
        gone=frozenset({"end_training", "free_memory", "wait_for_everyone"}),
        absent=frozenset({"scaler"}),
        needed={
            "gradient_accumulation_steps": (1,),
            "gradient_accumulation_plugin": (None,),
            **dict.fromkeys(("deepspeed_plugin", "fsdp_plugin", "megatron_lm_plugin", "dynamo_backend"), (None,)),
        },
    ),
)
