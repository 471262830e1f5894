"""Whole library functions that JAX has otherwise or not at all: rows 42, 85, 112, 121, 147."""

from . import Trap

_BICUBIC = """
def f(x):
    n, m = x.shape[-1], 2 * x.shape[-1]
    at = (np.arange(m) + 0.5) / 2 - 0.5
    low = np.floor(at).astype(int)
    w = np.zeros((m, n))
    for k in range(-1, 3):
        d = np.abs(at - (low + k))
        a = COEFFICIENT
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        np.add.at(w, (np.arange(m), np.clip(low + k, 0, n - 1)), np.where(d <= 1, near, far))
    return x @ w.T.astype(x.dtype)
"""

_ENCODER = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
    @torch.no_grad()
    def forward(self, x, lengths):
        pad = torch.arange(x.shape[1]) >= lengths[:, None]
        return self.encoder(x, src_key_padding_mask=pad)
"""
_JAX_ENCODER = """
class Attention(nnx.Module):
    def __init__(self, *, rngs):
        self.in_proj_weight = nnx.Param(jnp.zeros((18, 6)))
        self.in_proj_bias = nnx.Param(jnp.zeros(18))
        self.out_proj = nnx.Linear(6, 6, rngs=rngs)
    def __call__(self, x, keep):
        b, t, _ = x.shape
        qkv = x @ self.in_proj_weight[...].T + self.in_proj_bias[...]
        q, k, v = (a.reshape(b, t, 2, 3).swapaxes(1, 2) for a in jnp.split(qkv, 3, axis=-1))
        scores = jnp.where(keep[:, None, None, :], q @ k.swapaxes(2, 3) / math.sqrt(3), -jnp.inf)
        y = jax.nn.softmax(scores, axis=-1) @ v
        return self.out_proj(y.swapaxes(1, 2).reshape(b, t, 6))
def norm(rngs):
    return nnx.LayerNorm(6, epsilon=1e-5, use_fast_variance=False, rngs=rngs)
class Layer(nnx.Module):
    def __init__(self, *, rngs):
        self.self_attn = Attention(rngs=rngs)
        self.linear1 = nnx.Linear(6, 8, rngs=rngs)
        self.linear2 = nnx.Linear(8, 6, rngs=rngs)
        self.norm1 = norm(rngs)
        self.norm2 = norm(rngs)
    def __call__(self, x, keep):
        x = self.norm1(x + self.self_attn(x, keep))
        return self.norm2(x + self.linear2(jax.nn.relu(self.linear1(x))))
class Encoder(nnx.Module):
    def __init__(self, *, rngs):
        self.layers = nnx.List([Layer(rngs=rngs)])
    def __call__(self, x, keep):
        for layer in self.layers:
            x = layer(x, keep)
        return x
class Net(nnx.Module):
    def __init__(self, *, rngs):
        self.encoder = Encoder(rngs=rngs)
    def __call__(self, x, lengths):
        keep = jnp.arange(x.shape[1]) < lengths[:, None]
        x = lax.stop_gradient(self.encoder(lax.stop_gradient(x), keep))
        RESULT
"""

_NOISE = """
class Net(nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x) - 2 * torch.randn_like(x)
"""
_JAX_NOISE = """
class Net(nnx.Module):
    def __init__(self, *, rngs):
        self.rngs = rngs
    def __call__(self, x):
        KEYS
        return x + jax.random.normal(first, FIRST) - 2 * jax.random.normal(second, x.shape)
"""


def _noise(keys: str, first: str = "x.shape") -> str:
    return _JAX_NOISE.replace("KEYS", keys).replace("FIRST", first)


_RADAM = """
p, m, v = lax.stop_gradient(w), 0.0, 0.0
for t in range(1, 9):
    g = 2 * (p - 1) * lax.stop_gradient(x)
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    longest = 2 / (1 - 0.999) - 1
    rho = longest - 2 * t * 0.999**t / (1 - 0.999**t)
    step = m / (1 - 0.9**t)
    if rho > 5:
        rectify = math.sqrt((rho - 4) * (rho - 2) * longest / ((longest - 4) * (longest - 2) * rho))
        step = step * rectify * math.sqrt(1 - 0.999**t) / (jnp.sqrt(v) + 1e-3)
    p = p - 0.1 * step
return p
"""

# Row 112: without gradients, torch's fast path zeroes padded positions. It is off in a check, since training does not.
TRAPS = [
    Trap(
        42,
        "x=f32[3, 4]",
        "i = torch.ones_like(x).tril().nonzero()\nreturn i, x[i[:, 0], i[:, 1]]",
        "i = jnp.argwhere(np.tril(np.ones(x.shape)), size=6)\nreturn i, x[i[:, 0], i[:, 1]]",
        "i = jnp.nonzero(np.tril(np.ones(x.shape)), size=6)\nreturn i, x[i]",
    ),
    Trap(
        85,
        "x=f32[2, 3, 4, 5]",
        "return F.interpolate(x, scale_factor=(1.0, 2.0), mode='bicubic')",
        _BICUBIC.replace("COEFFICIENT", "-0.75"),
        "return jax.image.resize(x, (*x.shape[:3], 10), 'cubic')",
    ),
    Trap(
        85,
        "x=f32[2, 3, 4, 5]",
        "return F.interpolate(x, scale_factor=(1.0, 2.0), mode='bicubic')",
        _BICUBIC.replace("COEFFICIENT", "-0.75"),
        _BICUBIC.replace("COEFFICIENT", "-0.5"),
    ),
    Trap(
        112,
        "x=f32[3, 5, 6], lengths=2 <= i64[3] < 5",
        _ENCODER,
        _JAX_ENCODER.replace("RESULT", "return x"),
        _JAX_ENCODER.replace("RESULT", "return jnp.where(keep[:, :, None], x, 0.0)"),
    ),
    Trap(
        121,
        "x=f32[4, 5]",
        _NOISE,
        _noise("first, second = self.rngs.params(), self.rngs.params()"),
        _noise("first = second = self.rngs.params()"),
    ),
    Trap(
        121,
        "x=f32[4, 5]",
        _NOISE,
        _noise("first, second = jax.random.split(self.rngs.params())"),
        _noise("first, second = jax.random.split(self.rngs.params())", "x.shape[1:]"),
    ),
    Trap(
        147,
        "w=f32[5], x=0.5 <= f32[5] < 2",
        """
        p = w.detach().clone().requires_grad_()
        optimizer = torch.optim.RAdam([p], lr=0.1, eps=1e-3)
        for _ in range(8):
            optimizer.zero_grad()
            ((p - 1) ** 2 * x).sum().backward()
            optimizer.step()
        return p.detach()
        """,
        _RADAM,
        """
        p = lax.stop_gradient(w)
        optimizer = optax.radam(0.1, eps=1e-3)
        state = optimizer.init(p)
        for _ in range(8):
            updates, state = optimizer.update(2 * (p - 1) * lax.stop_gradient(x), state, p)
            p = p + updates
        return p
        """,
    ),
]
