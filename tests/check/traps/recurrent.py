"""Recurrent layers, attention, embeddings, initial values, randomness: rows 101 to 123."""

from . import Trap

_LSTM = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(3, 4)
    def forward(self, x):
        return self.cell(x)
"""
_GRU = _LSTM.replace("LSTMCell", "GRUCell")
_JAX_CELL = """
class Cell(nnx.Module):
    def __init__(self, gates):
        self.weight_ih = nnx.Param(jnp.zeros((gates * 4, 3)))
        self.weight_hh = nnx.Param(jnp.zeros((gates * 4, 4)))
        self.bias_ih = nnx.Param(jnp.zeros(gates * 4))
        self.bias_hh = nnx.Param(jnp.zeros(gates * 4))
    def __call__(self, x):
        h = jnp.zeros((x.shape[0], 4), x.dtype)
        a = x @ self.weight_ih.T + self.bias_ih
        b = h @ self.weight_hh.T + self.bias_hh
        BODY

class Net(nnx.Module):
    def __init__(self, *, rngs=None):
        self.cell = Cell(GATES)
    def __call__(self, x):
        return self.cell(x)
"""


def _cell(gates: int, *body: str) -> str:
    return _JAX_CELL.replace("GATES", str(gates)).replace("BODY", "\n        ".join(body))


_EMBED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(6, 3, padding_idx=0)
    def forward(self, x):
        return self.emb(x)
"""
_JAX_EMBED = """
class Net(nnx.Module):
    def __init__(self, *, rngs):
        self.emb = nnx.Embed(6, 3, rngs=rngs)
    def __call__(self, x):
        table = self.emb.embedding[...]
        return TABLE[x]
"""
_TIED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(6, 3)
        self.head = nn.Linear(3, 6, bias=False)
        self.head.weight = self.emb.weight
    def forward(self, x):
        return self.head(self.emb(x))
"""
_DRAW = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(5))
    def forward(self, x):
        return x * self.scale + torch.randn_like(x)
"""
_JAX_DRAW = """
class Net(nnx.Module):
    def __init__(self, *, rngs):
        self.scale = nnx.Param(jnp.ones(5))
        self.rngs = rngs.fork()
    def __call__(self, x):
        KEY
        return x * self.scale + NOISE
"""


def _draw(key: str, noise: str) -> str:
    return _JAX_DRAW.replace("KEY", key).replace("NOISE", noise)


TRAPS = [
    Trap(
        101,
        "x=f32[2, 3]",
        _LSTM,
        _cell(
            4,
            "i, f, g, o = jnp.split(a + b, 4, -1)",
            "c = jax.nn.sigmoid(i) * jnp.tanh(g)",
            "return jax.nn.sigmoid(o) * jnp.tanh(c), c",
        ),
        _cell(
            4,
            "i, g, f, o = jnp.split(a + b, 4, -1)",
            "c = jax.nn.sigmoid(i) * jnp.tanh(g)",
            "return jax.nn.sigmoid(o) * jnp.tanh(c), c",
        ),
    ),
    Trap(
        102,
        "x=f32[2, 3]",
        _LSTM,
        _cell(
            4,
            "i, f, g, o = jnp.split(a + b, 4, -1)",
            "c = jax.nn.sigmoid(i) * jnp.tanh(g)",
            "return jax.nn.sigmoid(o) * jnp.tanh(c), c",
        ),
        _cell(
            4,
            "i, f, g, o = jnp.split(x @ self.weight_ih.T + b, 4, -1)",
            "c = jax.nn.sigmoid(i) * jnp.tanh(g)",
            "return jax.nn.sigmoid(o) * jnp.tanh(c), c",
        ),
    ),
    Trap(
        103,
        "x=f32[2, 3]",
        _GRU,
        _cell(
            3,
            "(ar, az, an), (br, bz, bn) = jnp.split(a, 3, -1), jnp.split(b, 3, -1)",
            "r, z = jax.nn.sigmoid(ar + br), jax.nn.sigmoid(az + bz)",
            "return (1 - z) * jnp.tanh(an + r * bn) + z * h",
        ),
        _cell(
            3,
            "(ar, az, an), (br, bz, bn) = jnp.split(a, 3, -1), jnp.split(b, 3, -1)",
            "r, z = jax.nn.sigmoid(ar + br), jax.nn.sigmoid(az + bz)",
            "return (1 - z) * jnp.tanh(an + (r * h) @ self.weight_hh[8:].T + self.bias_hh[8:]) + z * h",
        ),
    ),
    Trap(
        106,
        "q=f32[4, 2, 6], mask=bool[4, 4]",
        """
        def f(q, mask):
            mask = mask & ~torch.eye(4, dtype=torch.bool)
            w = torch.eye(6, dtype=q.dtype)
            z = torch.zeros(18, dtype=q.dtype)
            return F.multi_head_attention_forward(
                q, q, q, 6, 2, torch.cat([w, w, w]), z, None, None, False, 0.0, w, z[:6], attn_mask=mask
            )[0]
        """,
        """
        def f(q, mask):
            mask = mask & ~jnp.eye(4, dtype=bool)
            h = q.transpose(1, 0, 2).reshape(2, 4, 2, 3)
            out = jax.nn.dot_product_attention(h, h, h, mask=~mask[None, None])
            return out.reshape(2, 4, 6).transpose(1, 0, 2)
        """,
        """
        def f(q, mask):
            mask = mask & ~jnp.eye(4, dtype=bool)
            h = q.transpose(1, 0, 2).reshape(2, 4, 2, 3)
            out = jax.nn.dot_product_attention(h, h, h, mask=mask[None, None])
            return out.reshape(2, 4, 6).transpose(1, 0, 2)
        """,
    ),
    Trap(
        107,
        "q=f32[2, 3, 5, 4], mask=bool[5, 5]",
        "mask = mask | torch.eye(5, dtype=torch.bool)\nreturn F.scaled_dot_product_attention(q, q, q, mask)",
        """
        mask = mask | jnp.eye(5, dtype=bool)
        h = q.swapaxes(1, 2)
        return jax.nn.dot_product_attention(h, h, h, mask=mask[None, None]).swapaxes(1, 2)
        """,
        """
        mask = mask | jnp.eye(5, dtype=bool)
        h = q.swapaxes(1, 2)
        return jax.nn.dot_product_attention(h, h, h, mask=~mask[None, None]).swapaxes(1, 2)
        """,
    ),
    Trap(
        108,
        "q=f32[2, 3, 5, 4]",
        "return F.scaled_dot_product_attention(q, q, q)",
        "h = q.swapaxes(1, 2)\nreturn jax.nn.dot_product_attention(h, h, h).swapaxes(1, 2)",
        "return jax.nn.dot_product_attention(q, q, q)",
    ),
    Trap(
        109,
        "q=f32[2, 3, 5, 4]",
        "m = torch.ones(5, 5, dtype=torch.bool)\nm[2] = False\nreturn F.scaled_dot_product_attention(q, q, q, m)",
        """
        m = jnp.ones((5, 5), bool).at[2].set(False)
        h = q.swapaxes(1, 2)
        out = jax.nn.dot_product_attention(h, h, h, mask=m[None, None]).swapaxes(1, 2)
        return jnp.where(m.any(-1)[:, None], out, 0)
        """,
        """
        m = jnp.ones((5, 5), bool).at[2].set(False)
        h = q.swapaxes(1, 2)
        return jax.nn.dot_product_attention(h, h, h, mask=m[None, None]).swapaxes(1, 2)
        """,
    ),
    Trap(
        113,
        "x=i64[7] < 6",
        _EMBED,
        _JAX_EMBED.replace("TABLE", "table.at[0].set(lax.stop_gradient(table[0]))"),
        _JAX_EMBED.replace("TABLE", "table"),
    ),
    Trap(
        114,
        "x=i64[7] < 6, w=f32[6, 3]",
        "return F.embedding(x, w.detach().clone(), max_norm=1.0)",
        """
        w = lax.stop_gradient(w)
        n = jnp.linalg.norm(w, axis=1, keepdims=True)
        return jnp.where(n > 1, w / (n + 1e-7), w)[x]
        """,
        "return lax.stop_gradient(w)[x]",
    ),
    Trap(
        115,
        "x=i64[5] < 6, w=f32[6, 3]",
        "return F.embedding_bag(x, w, torch.tensor([0, 2]))",
        "return jax.ops.segment_sum(w[x], jnp.array([0, 0, 1, 1, 1]), 2) / jnp.array([[2], [3]])",
        "return jax.ops.segment_sum(w[x], jnp.array([0, 0, 1, 1, 1]), 2)",
    ),
    Trap(
        116,
        "x=i64[7] < 6",
        _TIED,
        """
        class Net(nnx.Module):
            def __init__(self, *, rngs):
                self.emb = nnx.Embed(6, 3, rngs=rngs)
                self.head = Head(self.emb.embedding)
            def __call__(self, x):
                return self.head(self.emb(x))
        class Head(nnx.Module):
            def __init__(self, weight):
                self.weight = weight
            def __call__(self, x):
                return x @ self.weight.T
        """,
        """
        class Net(nnx.Module):
            def __init__(self, *, rngs):
                self.emb = nnx.Embed(6, 3, rngs=rngs)
                self.head = nnx.Linear(3, 6, use_bias=False, rngs=rngs)
            def __call__(self, x):
                return self.head(self.emb(x))
        """,
    ),
    Trap(
        119,
        "x=f32[4, 5]",
        "return F.dropout(x, 0.4)",
        """
        def f(x, *, rngs):
            keep = jax.random.bernoulli(rngs.dropout(), 0.6, x.shape)
            return jnp.where(keep, x / 0.6, 0)
        """,
        "return x",
    ),
    Trap(
        120,
        "x=f32[4, 5, 3, 2]",
        "return F.dropout2d(x, 0.4)",
        """
        def f(x, *, rngs):
            keep = jax.random.bernoulli(rngs.dropout(), 0.6, (*x.shape[:2], 1, 1))
            return jnp.where(keep, x / 0.6, 0)
        """,
        """
        def f(x, *, rngs):
            keep = jax.random.bernoulli(rngs.dropout(), 0.6, x.shape)
            return jnp.where(keep, x / 0.6, 0)
        """,
    ),
    Trap(
        122,
        "x=f32[4, 5]",
        _DRAW,
        _draw("pass", "jax.random.normal(self.rngs.params(), x.shape)"),
        _draw("key = jax.random.key(0)", "jax.random.normal(key, x.shape)"),
    ),
    Trap(
        123,
        "x=f32[4, 5]",
        _DRAW.replace("torch.randn_like(x)", "float(np.random.rand())"),
        _draw("pass", "jax.random.uniform(self.rngs.params())"),
        _draw("pass", "np.random.rand()"),
    ),
]
