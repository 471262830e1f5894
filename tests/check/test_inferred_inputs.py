"""Classes that nobody called yet: constructor arguments from names, inputs from layers and from torch's own errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2j_lsp.check.file_check import FileCheck
from t2j_lsp.check.messages import Prepared
from t2j_lsp.check.process.pool import Pool
from t2j_lsp.check.program.objects import find_objects
from t2j_lsp.check.program.slice import Slicer
from t2j_lsp.check.session import CheckSettings
from t2j_lsp.contract import VerdictKind

from .conftest import TORCH, Check

CLASSES = {
    "an image of the size that a linear layer behind a flattening wants": """
class Digits(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(1, 4, 3), nn.Linear(4 * 5 * 5, 3)
    def forward(self, x): return self.fc(torch.flatten(F.max_pool2d(self.conv(x), 2), 1))
""",
    "what a loop of the script passes": """
class Recurrent(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.embed, self.lstm = nn.Embedding(9, size), nn.LSTM(size, 6, batch_first=True)
    def forward(self, x, state): return self.lstm(self.embed(x), state)

model = Recurrent(4)
ids = torch.arange(40).reshape(2, 20) % 9
for start in range(0, 20, 5):
    raise RuntimeError("a check runs no loop of the script")
    state = (torch.zeros(1, 2, 6), torch.zeros(1, 2, 6))
    chunk = ids[:, start:start + 5]
    output, state = model(chunk, state)
""",
    "a residual connection with as many channels out as in": """
class Block(nn.Module):
    def __init__(self, inplanes, planes):
        super().__init__()
        self.conv = nn.Conv2d(inplanes, planes * 4, 1)
    def forward(self, x): return self.conv(x) + x
""",
    "groups that are built in": """
class Block(nn.Module):
    def __init__(self, in_chs, out_chs):
        super().__init__()
        self.norm = nn.GroupNorm(32, in_chs)
        self.conv = nn.Conv2d(in_chs, out_chs, 3)
    def forward(self, x): return self.conv(self.norm(x))
""",
    "more groups than its name suggests": """
class Split(nn.Module):
    def __init__(self, in_channels, out_channels, scale=8):
        super().__init__()
        self.scale = scale
        self.conv = nn.Conv1d(in_channels // scale, out_channels // scale, 3, padding=1)
    def forward(self, x): return torch.cat([self.conv(part) for part in torch.chunk(x, self.scale, 1)], 1)
""",
    "a class of torch with another forward": """
class Norm2d(nn.LayerNorm):
    def forward(self, x): return F.layer_norm(x.permute(0, 2, 3, 1), self.normalized_shape, self.weight, self.bias)
""",
    "a layer that is None by default and called all the same": """
class Stage(nn.Module):
    def __init__(self, dim, norm_layer=None):
        super().__init__()
        self.conv = nn.Conv2d(dim, dim, 1)
        self.norm = norm_layer(dim)
    def forward(self, x): return self.norm(self.conv(x))
""",
    "numbers of blocks that must be a tuple": """
class Stages(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        assert isinstance(depth, tuple), "depth needs to be tuple if integers for each stage"
        self.blocks = nn.ModuleList([nn.Linear(dim, dim) for n in depth for _ in range(n)])
    def forward(self, x):
        for block in self.blocks: x = block(x)
        return x
""",
    "widths that must be a list of 3": """
class Widths(nn.Module):
    def __init__(self, dims, depth):
        super().__init__()
        assert len(dims) == 3, "dims must be a list of 3"
        self.layers = nn.Sequential(nn.Linear(dims[0], dims[1]), nn.Linear(dims[1], dims[2]))
    def forward(self, x): return self.layers(x)
""",
    "patches that einops cuts": """
from einops.layers.torch import Rearrange

class Patches(nn.Module):
    def __init__(self, *, image_size, patch_size, dim):
        super().__init__()
        count = (image_size // patch_size) ** 2
        self.cut = nn.Sequential(
            Rearrange("b c (h p1) (w p2) -> b (h w) (p1 p2 c)", p1=patch_size, p2=patch_size),
            nn.Linear(3 * patch_size ** 2, dim),
        )
        self.position = nn.Parameter(torch.randn(1, count, dim))
    def forward(self, img): return self.cut(img) + self.position
""",
    "two inputs that are concatenated": """
class Cell(nn.Module):
    def __init__(self, hidden_size, input_size):
        super().__init__()
        self.gate = nn.Conv2d(hidden_size + input_size, hidden_size, 3, padding=1)
    def forward(self, h, x): return h * torch.sigmoid(self.gate(torch.cat([h, x], 1)))
""",
    "names of several words": """
class Attention(nn.Module):
    def __init__(self, dim_in, dim_out, dim_key, proj_kernel, cross_attn_heads, kernel_sizes):
        super().__init__()
        self.proj = nn.Conv2d(dim_in, dim_key * cross_attn_heads, proj_kernel)
        self.out = nn.ModuleList([nn.Conv2d(dim_key * cross_attn_heads, dim_out, k) for k in kernel_sizes])
    def forward(self, x): return [layer(self.proj(x)) for layer in self.out]
""",
    "a module around another": """
class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn
    def forward(self, x): return self.fn(self.norm(x))
""",
    "settings that only their names tell of": """
class Inner(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg, self.fc = cfg, nn.Linear(cfg.width, cfg.width // cfg.n_heads, bias=cfg.bias)
        self.act = {"gelu": F.gelu}[cfg.hidden_act]
    def forward(self, x): return self.act(self.fc(x)) * self.cfg.scale

class Outer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.inner = Inner(cfg)
        if cfg.weird_way: raise ValueError("what is only tested is off")
    def forward(self, x): return self.inner(x)
""",
    "a batch of sequences whose axes are exchanged in front of a convolution": """
class Convolution(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv1d(channels, 2 * channels, 1)
    def forward(self, x): return F.glu(self.conv(x.transpose(1, 2)), dim=1)
""",
    "a class of an activation, which the constructor makes one of, and settings that are spread": """
class Block(nn.Module):
    def __init__(self, dim, activation, params):
        super().__init__()
        self.fc, self.act, self.more = nn.Linear(dim, dim), activation(), dict(**params)
    def forward(self, x): return self.act(self.fc(x))
""",
    "settings that are spread over a class of the file": """
class Part(nn.Module):
    def __init__(self, dim, depth, mlp_dim):
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(dim, mlp_dim) for _ in range(depth)])
    def forward(self, x): return sum(part(x) for part in self.parts)

class Whole(nn.Module):
    def __init__(self, dim, enc_params):
        super().__init__()
        self.part = Part(dim=dim, **enc_params)
    def forward(self, x): return self.part(x)
""",
    "experts, each with a matrix of its own": """
class Experts(nn.Module):
    def __init__(self, num_experts, model_dim):
        super().__init__()
        self.w = nn.Parameter(torch.ones(num_experts, model_dim, 7))
    def forward(self, x): return torch.bmm(x, self.w)
""",
    "feature maps by their names, and as many rates as the constructor unpacks": """
class Pooling(nn.Module):
    def __init__(self, in_channels, atrous_rates):
        super().__init__()
        a, b, c = atrous_rates
        self.low = nn.Conv2d(4, 4, 3, padding=a * b, dilation=c)
        self.out = nn.Conv2d(in_channels, 4, 3, padding=a)
    def forward(self, feature):
        out = self.out(feature["out"])
        return F.interpolate(out, size=feature["low"].shape[2:]) + self.low(feature["low"])
""",
    "a device, which no number is": """
class Placed(nn.Module):
    def __init__(self, units, device):
        super().__init__()
        self.fc, self.device = nn.Linear(units, 3), device
    def forward(self, x): return self.fc(x.to(self.device))
""",
    "a tensor that the constructor is given": """
class Penalty(nn.Module):
    def __init__(self, init_point: torch.Tensor):
        super().__init__()
        self.register_buffer("init_point", init_point)
    def forward(self, X): return torch.linalg.norm(X - self.init_point, ord=1, dim=-1)
""",
    "an image whose rows are laid behind each other": """
class Merging(nn.Module):
    def __init__(self, input_resolution, dim):
        super().__init__()
        self.input_resolution, self.fc = input_resolution, nn.Linear(4 * dim, 2 * dim)
    def forward(self, x):
        H, W = self.input_resolution
        B, L, C = x.shape
        assert L == H * W, "input feature has wrong size"
        x = x.view(B, H, W, C)
        parts = [x[:, i::2, j::2] for i in (0, 1) for j in (0, 1)]
        return self.fc(torch.cat(parts, -1).view(B, -1, 4 * C))
""",
    "nodes and a matrix of their edges": """
class Graph(nn.Module):
    def __init__(self, nfeat, nheads):
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(nfeat, 4) for _ in range(nheads)])
    def forward(self, x, adj):
        parts = [part(x) for part in self.parts]
        return torch.cat([torch.mm(torch.where(adj > 0, h @ h.T, adj), h) for h in parts], 1)
""",
    "features that two inputs of a matrix in front have together": """
class Sage(nn.Module):
    def __init__(self, in_feats):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(5, 2 * in_feats))
    def forward(self, own, others): return self.weight.mm(torch.cat([own, others], 1).t()).t()
""",
    "features that a position is put behind": """
class Encoded(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.LayerNorm(7)
    def forward(self, x):
        assert x.dim() == 4, "wrong axes"
        return self.fc(torch.cat([x, x[..., :1].sin(), x[..., :1].cos(), x[..., :1], x[..., :1]], -1))
""",
    "feature maps of several sizes": """
class Pyramid(nn.Module):
    def __init__(self, block_channels):
        super().__init__()
        self.top, self.lateral = nn.Conv2d(block_channels[-1], 6, 1), nn.Conv2d(block_channels[0], 6, 1)
    def forward(self, feats):
        outs = [self.top(feats[-1])]
        for i in range(len(feats) - 1): outs.append(self.lateral(feats[i]))
        return tuple(outs)
""",
    "an image's rows behind each other, of a size kept under another name": """
class Tokens(nn.Module):
    def __init__(self, dim, input_resolution):
        super().__init__()
        self.area = input_resolution
        self.fc = nn.Parameter(torch.ones(dim))
    def forward(self, x):
        h, w = self.area
        assert x.shape[1] == h * w, "other tokens"
        return x.view(x.shape[0], h, w, -1) * self.fc
""",
    "no layer of torch's inside": """
class Scale(nn.Module):
    def __init__(self, num_features):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(num_features))
    def forward(self, x): return x * self.weight.view(1, -1, 1, 1)
""",
}


def prepared(text: str, pool: Pool, path: Path) -> Prepared:
    path.write_text(TORCH + text)
    slicer = Slicer(path)
    check = FileCheck(pool, slicer, slicer, CheckSettings(), lambda: False)
    return check.inputs_for(find_objects(slicer, None)[-1])


@pytest.mark.parametrize("what", CLASSES)
def test_inputs_are_found_with_no_help(what: str, pool: Pool, tmp_path: Path) -> None:
    ready = prepared(CLASSES[what], pool, tmp_path / "model.py")
    assert ready.problems is None
    assert str(ready.inputs)


SETTINGS = """from dataclasses import dataclass

@dataclass
class Config:
    width: int = 5
    outputs: int = 3
    dropout: float = 0.0

@dataclass
class Other:
    width: int
    outputs: int

class Head(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(torch.ones((config.width, config.outputs)))
    def forward(self, x): return x @ self.weight * self.config.width
"""


def test_a_class_of_the_file_that_has_all_that_is_read_is_the_settings(pool: Pool, tmp_path: Path) -> None:
    ready = prepared(SETTINGS, pool, tmp_path / "model.py")
    assert ready.problems is None and ready.shown.startswith("Head(config=Config())"), ready.shown


def test_settings_tell_right_from_wrong(check: Check) -> None:
    jax = SETTINGS.replace("nn.Module", "nnx.Module").replace("        super().__init__()\n", "")
    jax = jax.replace("config):", "config, *, rngs=None):").replace("def forward", "def __call__")
    jax = jax.replace("self.weight *", "self.weight[...] *").replace("nn.Parameter(torch", "nnx.Param(jnp")
    assert check(SETTINGS, jax, "Head").verdict is VerdictKind.EQUIVALENT
    assert check(SETTINGS, jax.replace("* self.config.width", "* 4"), "Head").verdict is VerdictKind.DIFFERENT


ASKING = {
    "settings that are asked by a method": (
        "def __init__(self, cfg):\n        super().__init__()\n        self.encoder = nn.Linear(cfg.get('width'), 3)"
    ),
    "what another module is asked for": (
        "def __init__(self, encoder):\n        super().__init__()\n        self.encoder = encoder.layers[0]"
    ),
    "a choice of names": (
        "def __init__(self, mode: str):\n        super().__init__()\n        self.f = {'a': torch.exp}[mode]"
    ),
}


@pytest.mark.parametrize("what", ASKING)
def test_what_cant_be_inferred_is_not_made_up(what: str, pool: Pool, tmp_path: Path) -> None:
    text = f"class Net(nn.Module):\n    {ASKING[what]}\n    def forward(self, x): return self.encoder(x)\n"
    assert prepared(text, pool, tmp_path / "model.py").problems is not None


def test_what_is_called_is_a_function(pool: Pool, tmp_path: Path) -> None:
    ready = prepared("def f(x: torch.Tensor, func):\n    return func(x) - x\n", pool, tmp_path / "model.py")
    assert "torch.tanh" in ready.shown


def test_what_only_numpy_works_on_is_given_no_tensor(pool: Pool, tmp_path: Path) -> None:
    text = "def model(thetas: torch.Tensor, t):\n    waves = np.array([np.cos(i * t) for i in range(3)])\n"
    text += "    return thetas.mm(torch.tensor(waves).float())\n"
    assert prepared(text, pool, tmp_path / "model.py").problems


def test_bags_are_in_order(pool: Pool, tmp_path: Path) -> None:
    """Where they are not, torch computes something all the same, and not the same each time."""
    bags = """
class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.EmbeddingBag(20, 8)
    def forward(self, ids, offsets): return self.embed(ids, offsets)
"""
    assert "[0 2 5]" in prepared(bags, pool, tmp_path / "model.py").shown
    stated = bags.replace("class", "# t2j: ids=0 <= i64[8] < 3, offsets=torch.tensor([0, 4, 2])\nclass")
    assert "must not decrease" in str(prepared(stated, pool, tmp_path / "stated.py").problems)


def test_tensors_among_the_constructors_arguments_are_the_same_on_both_sides(check: Check) -> None:
    torch = "class Masked(nn.Module):\n    def __init__(self, mask):\n        super().__init__()\n"
    torch += "        self.register_buffer('mask', mask)\n    def forward(self, x): return x * self.mask\n"
    torch += "net = Masked(torch.tensor([1.0, 0.5, 0.1]))\nout = net(torch.randn(4, 3))\n"
    jax = "class Masked(nnx.Module):\n    def __init__(self, mask, *, rngs=None):\n"
    jax += "        self.mask = Fixed(mask)\n    def __call__(self, x): return x * self.mask[...]\n"
    jax = "class Fixed(nnx.Variable):\n    pass\n\n" + jax
    assert check(torch, jax).verdict is VerdictKind.EQUIVALENT
    assert check(torch, jax.replace("x * self", "x + self")).verdict is VerdictKind.DIFFERENT


def test_a_dict_of_tensors_is_given_the_keys_that_the_program_asks_it_for(check: Check) -> None:
    head = "from typing import Dict\n"
    text = "def f(a: Dict[str, {array}]):\n    a['sum'] = a['left'] {sign} 2 * a['right']\n    return a\n"
    torch = head + "import torch\n" + text.format(array="torch.Tensor", sign="+")
    jax = head + "import jax\n" + text
    assert check(torch, jax.format(array="jax.Array", sign="+"), "f").verdict is VerdictKind.EQUIVALENT
    assert check(torch, jax.format(array="jax.Array", sign="-"), "f").verdict is VerdictKind.DIFFERENT


def test_the_edges_of_a_graph_name_its_nodes(check: Check) -> None:
    text = "def f(x, edge_index, edge_weight):\n    sent = x[edge_index[0]] * edge_weight[:, None]\n    return {}\n"
    torch = text.format("torch.zeros_like(x).index_add(0, edge_index[1], sent)").replace("f(x", "f(x: torch.Tensor")
    jax = text.format("jnp.zeros_like(x).at[edge_index[1]].{}(sent)")
    assert check(torch, jax.format("add"), "f").verdict is VerdictKind.EQUIVALENT
    assert check(torch, jax.format("set"), "f").verdict is VerdictKind.DIFFERENT


def test_sequences_of_an_encoder_are_packed_whole(pool: Pool, tmp_path: Path) -> None:
    encoder = """
class Encoder(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.conv = nn.Conv1d(dim, dim, 3, padding=1)
        self.lstm = nn.LSTM(dim, 4, batch_first=True)
    def forward(self, x, input_lengths):
        x = nn.utils.rnn.pack_padded_sequence(self.conv(x).mT, input_lengths, batch_first=True)
        return nn.utils.rnn.pad_packed_sequence(self.lstm(x)[0], batch_first=True)[0]
"""
    assert "[23 21" in prepared(encoder, pool, tmp_path / "model.py").shown
