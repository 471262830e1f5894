"""Initial values and frozen parameters: rows 117, 118, 158, 159."""

from . import Trap

_LINEAR = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 5)
    def forward(self, x):
        return self.fc(x)
"""
_JAX_LINEAR = """
def uniform(key, shape, dtype=jnp.float32, out_sharding=None):
    return jax.random.uniform(key, shape, dtype, -1, 1) / math.sqrt(6)
class Net(nnx.Module):
    def __init__(self, *, rngs):
        self.fc = nnx.Linear(6, 5, INITS rngs=rngs)
    def __call__(self, x):
        return self.fc(x)
"""
_EMBED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(6, 5)
    def forward(self, x):
        return self.emb(x)
"""
_JAX_EMBED = """
class Net(nnx.Module):
    def __init__(self, *, rngs):
        self.emb = nnx.Embed(6, 5, INITS rngs=rngs)
    def __call__(self, x):
        return self.emb(x)
"""
_FROZEN = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(5), requires_grad=False)
        self.shift = nn.Parameter(torch.zeros(5))
        self.register_buffer("mask", torch.tensor([1.0, 0.0, 1.0, 1.0, 0.5]))
    def forward(self, x):
        return x * self.scale * self.mask + self.shift
"""
_JAX_FROZEN = """
class Fixed(nnx.Variable):
    pass
class Net(nnx.Module):
    def __init__(self, *, rngs=None):
        self.scale = SCALE(jnp.ones(5))
        self.shift = nnx.Param(jnp.zeros(5))
        self.mask = MASK(jnp.array([1.0, 0.0, 1.0, 1.0, 0.5]))
    def __call__(self, x):
        return x * self.scale[...] * self.mask[...] + self.shift[...]
"""


def _frozen(scale: str, mask: str, shift: str = "nnx.Param") -> str:
    return (
        _JAX_FROZEN.replace("SCALE", scale).replace("MASK", mask).replace("nnx.Param(jnp.zeros", f"{shift}(jnp.zeros")
    )


TRAPS = [
    Trap(
        117,
        "x=f32[4, 6]",
        _LINEAR,
        _JAX_LINEAR.replace("INITS", "kernel_init=uniform, bias_init=uniform,"),
        _JAX_LINEAR.replace("INITS", "bias_init=uniform,"),
    ),
    Trap(
        117,
        "x=f32[4, 6]",
        _LINEAR,
        _JAX_LINEAR.replace("INITS", "kernel_init=uniform, bias_init=uniform,"),
        _JAX_LINEAR.replace("INITS", "kernel_init=uniform,"),
    ),
    Trap(
        118,
        "x=i64[4] < 6",
        _EMBED,
        _JAX_EMBED.replace("INITS", "embedding_init=nnx.initializers.normal(1.0),"),
        _JAX_EMBED.replace("INITS", ""),
    ),
    Trap(158, "x=f32[4, 5]", _FROZEN, _frozen("Fixed", "Fixed"), _frozen("nnx.Param", "Fixed")),
    Trap(158, "x=f32[4, 5]", _FROZEN, _frozen("Fixed", "Fixed"), _frozen("Fixed", "Fixed", "Fixed")),
]
