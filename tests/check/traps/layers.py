"""Normalisation, convolution, pooling, resizing: rows 61 to 87."""

from . import Trap

NORM = """
class BatchNorm2d(nnx.BatchNorm):
    def __call__(self, x):
        axes = AXES
        shape = [1] * x.ndim
        shape[CHANNEL] = -1
        if not self.use_running_average:
            count = x.size // x.shape[CHANNEL]
            mean = x.mean(axes)
            var = x.var(axes)
            self.mean[...] = MOMENTUM * self.mean[...] + (1 - MOMENTUM) * mean
            self.var[...] = MOMENTUM * self.var[...] + (1 - MOMENTUM) * var * UNBIASED
        else:
            mean, var = self.mean[...], self.var[...]
        y = (x - mean.reshape(shape)) / jnp.sqrt(var.reshape(shape) + 1e-5)
        return y * self.scale[...].reshape(shape) + self.bias[...].reshape(shape)

class Net(nnx.Module):
    def __init__(self, *, rngs):
        self.bn = BatchNorm2d(3, rngs=rngs)

    def __call__(self, x):
        return self.bn(x)
"""


def _norm(
    axes: str = "(0, 2, 3)", channel: str = "1", momentum: str = "0.9", unbiased: str = "count / (count - 1)"
) -> str:
    text = NORM.replace("AXES", axes).replace("CHANNEL", channel)
    return text.replace("MOMENTUM", momentum).replace("UNBIASED", unbiased)


def _layer(torch: str, shape: str) -> str:
    return f"""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = {torch}
            def forward(self, x):
                return self.layer(x)
        """


def _nnx(layer: str, call: str = "self.layer(x)") -> str:
    return f"""
        class Net(nnx.Module):
            def __init__(self, *, rngs):
                self.layer = {layer}
            def __call__(self, x):
                return {call}
        """


_BN = (
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.bn = nn.BatchNorm2d(3)\n"
)
_BN += "    def forward(self, x):\n        return self.bn(x)"
_LAST = "jnp.moveaxis(self.layer(jnp.moveaxis(x, 1, -1)), -1, 1)"

TRAPS = [
    Trap(61, "x=f32[2, 3, 4, 5]", _BN, _norm(), _norm(momentum="0.99")),
    Trap(62, "x=f32[2, 3, 4, 5]", _BN, _norm(), _norm(unbiased="1")),
    Trap(63, "x=f32[2, 3, 4, 3]", _BN, _norm(), _norm(axes="(0, 1, 2)", channel="-1")),
    Trap(
        64,
        "x=f32[3, 5]",
        _layer("nn.Dropout(0.4)", ""),
        _nnx("nnx.Dropout(0.4, rngs=rngs)"),
        _nnx("nnx.Dropout(0.4, rngs=rngs)", "self.layer(x, deterministic=False)"),
    ),
    Trap(
        64,
        "x=f32[3, 5]",
        _layer("nn.Dropout(0.4)", ""),
        _nnx("nnx.Dropout(0.4, rngs=rngs)"),
        _nnx("nnx.Dropout(0.6, rngs=rngs)"),
    ),
    Trap(
        65,
        "x=f32[3, 5]",
        _layer("nn.LayerNorm(5)", ""),
        _nnx("nnx.LayerNorm(5, epsilon=1e-5, use_fast_variance=False, rngs=rngs)"),
        _nnx("nnx.LayerNorm(5, use_fast_variance=False, rngs=rngs)"),
    ),
    Trap(
        66,
        "x=f32[2, 6, 5]",
        _layer("nn.GroupNorm(2, 6)", ""),
        _nnx("nnx.GroupNorm(6, num_groups=2, epsilon=1e-5, use_fast_variance=False, rngs=rngs)", _LAST),
        _nnx("nnx.GroupNorm(6, num_groups=3, epsilon=1e-5, use_fast_variance=False, rngs=rngs)", _LAST),
    ),
    Trap(
        67,
        "x=f32[3, 5]",
        _layer("nn.RMSNorm(5)", ""),
        _nnx("nnx.RMSNorm(5, epsilon=1e-6, rngs=rngs)").replace("1e-6", "float(jnp.finfo(jnp.zeros(()).dtype).eps)"),
        _nnx("nnx.RMSNorm(5, epsilon=1e-6, rngs=rngs)"),
    ),
    Trap(
        68,
        "x=1000 <= f32[3, 64] < 1001",
        _layer("nn.LayerNorm(64)", ""),
        _nnx("nnx.LayerNorm(64, epsilon=1e-5, use_fast_variance=False, rngs=rngs)"),
        _nnx("nnx.LayerNorm(64, epsilon=1e-5, rngs=rngs)"),
    ),
    Trap(
        69,
        "x=f32[2, 6, 5]",
        "return F.local_response_norm(x, 3, alpha=0.5)",
        """
        p = jnp.pad(x * x, ((0, 0), (1, 1), (0, 0)))
        s = p[:, :-2] + p[:, 1:-1] + p[:, 2:]
        return x / (1 + 0.5 / 3 * s) ** 0.75
        """,
        """
        p = jnp.pad(x * x, ((0, 0), (1, 1), (0, 0)))
        s = p[:, :-2] + p[:, 1:-1] + p[:, 2:]
        return x / (1 + 0.5 * s) ** 0.75
        """,
    ),
    Trap(
        72,
        "x=f32[2, 3, 7, 9]",
        _layer("nn.Conv2d(3, 4, 3)", ""),
        _nnx("nnx.Conv(3, 4, (3, 3), padding='VALID', rngs=rngs)", _LAST),
        _nnx("nnx.Conv(3, 4, (3, 3), rngs=rngs)", _LAST),
    ),
    Trap(
        73,
        "x=f32[2, 3, 8, 10]",
        _layer("nn.Conv2d(3, 4, 3, stride=2, padding=1)", ""),
        _nnx("nnx.Conv(3, 4, (3, 3), strides=2, padding=1, rngs=rngs)", _LAST),
        _nnx("nnx.Conv(3, 4, (3, 3), strides=2, padding='SAME', rngs=rngs)", _LAST),
    ),
    Trap(
        75,
        "x=f32[2, 3, 5]",
        _layer("nn.ConvTranspose1d(3, 4, 3, stride=2, padding=1)", ""),
        _nnx("nnx.ConvTranspose(3, 4, (3,), strides=2, padding=((1, 1),), transpose_kernel=True, rngs=rngs)", _LAST),
        _nnx("nnx.ConvTranspose(3, 4, (3,), strides=2, padding='SAME', transpose_kernel=True, rngs=rngs)", _LAST)
        .replace("return ", "return 0 + ")
        .replace("-1, 1)", "-1, 1)[..., :9]"),
    ),
    Trap(
        77,
        "x=f32[2, 3, 4, 5]",
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(3, 2, 1)
                self.fc = nn.Linear(40, 3)
            def forward(self, x):
                return self.fc(self.conv(x).flatten(1))
        """,
        """
        class Net(nnx.Module):
            def __init__(self, *, rngs):
                self.conv = nnx.Conv(3, 2, (1, 1), rngs=rngs)
                self.fc = nnx.Linear(40, 3, rngs=rngs)
            def __call__(self, x):
                x = jnp.moveaxis(self.conv(jnp.moveaxis(x, 1, -1)), -1, 1)
                return self.fc(x.reshape(x.shape[0], -1))
        """,
        """
        class Net(nnx.Module):
            def __init__(self, *, rngs):
                self.conv = nnx.Conv(3, 2, (1, 1), rngs=rngs)
                self.fc = nnx.Linear(40, 3, rngs=rngs)
            def __call__(self, x):
                x = self.conv(jnp.moveaxis(x, 1, -1))
                return self.fc(x.reshape(x.shape[0], -1))
        """,
    ),
    Trap(
        78,
        "x=f32[2, 3, 8]",
        "return F.max_pool1d(x, 2)",
        "return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2), (1, 1, 2), 'VALID')",
        "return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2), (1, 1, 1), 'VALID')",
    ),
    Trap(
        79,
        "x=f32[2, 3, 8]",
        "return F.max_pool1d(x, 3, padding=1)",
        "return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3), (1, 1, 3), ((0, 0), (0, 0), (1, 1)))",
        """
        x = jnp.pad(x, ((0, 0), (0, 0), (1, 1)))
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3), (1, 1, 3), 'VALID')
        """,
    ),
    Trap(
        80,
        "x=f32[2, 3, 8]",
        "return F.avg_pool1d(x, 3, ceil_mode=True)",
        """
        pads = ((0, 0), (0, 0), (0, 1))
        s = lax.reduce_window(x, 0.0, lax.add, (1, 1, 3), (1, 1, 3), pads)
        return s / lax.reduce_window(jnp.ones_like(x), 0.0, lax.add, (1, 1, 3), (1, 1, 3), pads)
        """,
        """
        pads = ((0, 0), (0, 0), (0, 1))
        return lax.reduce_window(x, 0.0, lax.add, (1, 1, 3), (1, 1, 3), pads) / 3
        """,
    ),
    Trap(
        81,
        "x=f32[2, 3, 7]",
        "return F.avg_pool1d(x, 3, padding=1)",
        "return lax.reduce_window(x, 0.0, lax.add, (1, 1, 3), (1, 1, 3), ((0, 0), (0, 0), (1, 1))) / 3",
        """
        pads = ((0, 0), (0, 0), (1, 1))
        s = lax.reduce_window(x, 0.0, lax.add, (1, 1, 3), (1, 1, 3), pads)
        return s / lax.reduce_window(jnp.ones_like(x), 0.0, lax.add, (1, 1, 3), (1, 1, 3), pads)
        """,
    ),
    Trap(
        82,
        "x=f32[2, 3, 7]",
        "return F.adaptive_avg_pool1d(x, 3)",
        "return jnp.stack([x[..., i * 7 // 3 : -(-(i + 1) * 7 // 3)].mean(-1) for i in range(3)], -1)",
        "return jnp.stack([x[..., i * 7 // 3 : (i + 1) * 7 // 3].mean(-1) for i in range(3)], -1)",
    ),
    Trap(
        83,
        "x=f32[2, 3, 5]",
        "return F.interpolate(x, size=3)",
        "return x[..., jnp.arange(3) * 5 // 3]",
        "return jax.image.resize(x, (2, 3, 3), 'nearest')",
    ),
    Trap(
        84,
        "x=f32[2, 3, 8]",
        "return F.interpolate(x, size=4, mode='linear')",
        "return jax.image.resize(x, (2, 3, 4), 'linear', antialias=False)",
        "return jax.image.resize(x, (2, 3, 4), 'linear')",
    ),
    Trap(
        86,
        "x=f32[2, 3, 4]",
        "return F.interpolate(x, size=7, mode='linear', align_corners=True)",
        """
        p = jnp.arange(7) * 3 / 6
        i = jnp.clip(jnp.floor(p).astype(int), 0, 2)
        return x[..., i] * (1 - (p - i)) + x[..., i + 1] * (p - i)
        """,
        "return jax.image.resize(x, (2, 3, 7), 'linear', antialias=False)",
    ),
    Trap(
        87,
        "x=f32[2, 8, 3, 5]",
        "return F.pixel_shuffle(x, 2)",
        "return x.reshape(2, 2, 2, 2, 3, 5).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 6, 10)",
        "return x.reshape(2, 2, 2, 2, 3, 5).transpose(0, 3, 4, 1, 5, 2).reshape(2, 2, 6, 10)",
    ),
]
