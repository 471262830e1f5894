"""Convolutions and pooling as functions: ``F.conv2d``, ``F.max_pool2d``, ``F.adaptive_avg_pool2d``, ``F.unfold``, ...

Axes stay PyTorch's, (N, C, *spatial), and so do the layouts of weights.
"""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import Tensor
from t2j_lsp.translate.rule.library import numbered_by
from t2j_lsp.translate.rule.record import Call, Piece, Row, refuse, rule

from ._facts import first, same
from ._windows import pools_all

numbered_by("kernel_size", "stride", "padding", "dilation", "groups", "output_padding")
numbered_by("upscale_factor", "downscale_factor")

F = "torch.nn.functional"

for rank in (1, 2, 3):
    Row(
        f"{F}.conv{rank}d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1)",
        "conv_nd({input}, {weight}, bias={bias?}, stride={stride?}, padding={padding?}, dilation={dilation?},"
        " groups={groups?})",
        aliases=[f"torch.conv{rank}d"],
        result=lambda call: Tensor(_rank(call), "float"),
    )
    Row(
        f"{F}.conv_transpose{rank}d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1,"
        " dilation=1)",
        "conv_transpose_nd({input}, {weight}, bias={bias?}, stride={stride?}, padding={padding?},"
        " output_padding={output_padding?}, groups={groups?}, dilation={dilation?})",
        aliases=[f"torch.conv_transpose{rank}d"],
        result=lambda call: Tensor(_rank(call), "float"),
    )
refuse(f"{F}.conv_tbc", "Rarely used layout (time, batch, channels): transpose and use F.conv1d.")


def _rank(call: Call) -> int | None:
    fact = first(call).fact
    return fact.rank if isinstance(fact, Tensor) else None


# Pooling --------------------------------------------------------------------------------------------------------


WINDOW = "{input}, {kernel_size}, stride={stride?}, padding={padding?}"
for rank in (1, 2, 3):
    Row(
        f"{F}.max_pool{rank}d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,"
        " return_indices=False)",
        f"max_pool{rank}d({WINDOW}, dilation={{dilation?}}, ceil_mode={{ceil_mode?}},"
        " return_indices={return_indices?})",
        result=lambda call: Tensor(_rank(call)) if call.literal("return_indices") is False else Tensor(),
    )
    Row(
        f"torch.max_pool{rank}d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False)",
        f"max_pool{rank}d({WINDOW}, dilation={{dilation?}}, ceil_mode={{ceil_mode?}})",
        result=same,
    )
    divisor = ("", "") if rank == 1 else (", divisor_override=None", ", divisor_override={divisor_override?}")
    settings = f"ceil_mode={{ceil_mode?}}, count_include_pad={{count_include_pad?}}{divisor[1]}"

    def avg_pool(call: Call, rank: int = rank, settings: str = settings) -> Piece:
        """One window of everything is a mean."""
        if pools_all(call, rank):
            axes = "-1" if rank == 1 else str(tuple(range(-rank, 0)))
            return call.emit(f"jnp.mean({{input}}, axis={axes}, keepdims=True)")
        return call.emit(f"avg_pool{rank}d({WINDOW}, {settings})")

    rule(
        f"{F}.avg_pool{rank}d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True"
        f"{divisor[0]})",
        jax=f"avg_pool{rank}d(x, kernel_size)",
        aliases=["torch.avg_pool1d"] if rank == 1 else [f"torch._C._nn.avg_pool{rank}d"],
        result=same,
    )(avg_pool)
    Row(
        f"{F}.lp_pool{rank}d(input, norm_type, kernel_size, stride=None, ceil_mode=False)",
        f"lp_pool{rank}d({{input}}, {{norm_type}}, {{kernel_size}}, stride={{stride?}}, ceil_mode={{ceil_mode?}})",
        result=same,
    )
    Row(
        f"{F}.max_unpool{rank}d(input, indices, kernel_size, stride=None, padding=0, output_size=None)",
        f"max_unpool{rank}d({{input}}, {{indices}}, {{kernel_size}}, stride={{stride?}}, padding={{padding?}},"
        " output_size={output_size?})",
        result=same,
    )
    Row(
        f"{F}.adaptive_max_pool{rank}d(input, output_size, return_indices=False)",
        f"adaptive_max_pool{rank}d({{input}}, {{output_size}}, return_indices={{return_indices?}})",
        result=lambda call: Tensor(_rank(call)) if call.literal("return_indices") is False else Tensor(),
    )
    Row(
        f"{F}.max_pool{rank}d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,"
        " return_indices=False)",
        f"max_pool{rank}d({WINDOW}, dilation={{dilation?}}, ceil_mode={{ceil_mode?}}, return_indices=True)",
        ignore=["return_indices"],
        result="tensors",
    )
    Row(
        f"{F}.adaptive_max_pool{rank}d_with_indices(input, output_size, return_indices=False)",
        f"adaptive_max_pool{rank}d({{input}}, {{output_size}}, return_indices=True)",
        ignore=["return_indices"],
        result="tensors",
    )
Row(
    "torch.adaptive_max_pool1d(input, output_size)",
    "adaptive_max_pool1d({input}, {output_size}, return_indices=True)",
    result="tensors",
)
for rank in (2, 3):
    for indices in ("", "_with_indices"):

        @rule(
            f"{F}.fractional_max_pool{rank}d{indices}(input, kernel_size, output_size=None, output_ratio=None,"
            " return_indices=False, _random_samples=None)",
            jax=f"fractional_max_pool({rank}, x, kernel_size, output_size, rngs=rngs)",
            random=True,
            result="tensors" if indices else "unknown",
            ignore=["return_indices"] if indices else (),
        )
        def fractional(call: Call, rank: int = rank, indices: str = indices) -> Piece:
            pair = "True" if indices else call["return_indices"].text if call.given("return_indices") else None
            return call.emit(
                f"fractional_max_pool({rank}, {{input}}, {{kernel_size}}, {{output_size}},"
                " output_ratio={output_ratio?}, return_indices={pair?}, samples={_random_samples?}, rngs={rngs})",
                pair=pair,
                rngs=call.site.rngs(),
            )


def _adaptive(rank: int) -> None:
    def emit(call: Call) -> Piece:
        """One value for each channel is a mean over the spatial axes."""
        if call.literal("output_size") in (1, (1,) * rank, [1] * rank):
            axes = "-1" if rank == 1 else str(tuple(range(-rank, 0)))
            return call.emit(f"jnp.mean({{input}}, axis={axes}, keepdims=True)")
        return call.emit(f"adaptive_avg_pool{rank}d({{input}}, {{output_size}})")

    rule(
        f"{F}.adaptive_avg_pool{rank}d(input, output_size)",
        jax=f"adaptive_avg_pool{rank}d(x, output_size)",
        aliases=["torch.adaptive_avg_pool1d"] if rank == 1 else [],
        result=same,
    )(emit)


for rank in (1, 2, 3):
    _adaptive(rank)

# Blocks ---------------------------------------------------------------------------------------------------------

BLOCKS = "{kernel_size}, dilation={dilation?}, padding={padding?}, stride={stride?}"
Row(
    f"{F}.unfold(input, kernel_size, dilation=1, padding=0, stride=1)",
    f"unfold({{input}}, {BLOCKS})",
    result=lambda call: Tensor(3),
)
Row(
    f"{F}.fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1)",
    f"fold({{input}}, {{output_size}}, {BLOCKS})",
    result=lambda call: Tensor(4),
)
