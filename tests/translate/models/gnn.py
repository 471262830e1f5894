"""Graph layers without a graph library: scatter by edge lists."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Parameter


def scatter_mean(src: Tensor, index: Tensor, dim_size: int) -> Tensor:
    out = src.new_zeros(dim_size, src.size(-1))
    out = out.index_add(0, index, src)
    count = torch.zeros(dim_size, dtype=src.dtype, device=src.device)
    count.scatter_add_(0, index, torch.ones_like(index, dtype=src.dtype))
    return out / count.clamp(min=1).unsqueeze(-1)


class GCNConv(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, bias: bool = True):
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.weight = Parameter(torch.Tensor(in_channels, out_channels))
        if bias:
            self.bias = Parameter(torch.Tensor(out_channels))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = math.sqrt(6.0 / (self.weight.size(0) + self.weight.size(1)))
        self.weight.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        num_nodes = x.size(0)
        row, col = edge_index[0], edge_index[1]
        deg = torch.zeros(num_nodes, dtype=x.dtype).scatter_add(0, col, torch.ones(col.size(0), dtype=x.dtype))
        deg_inv_sqrt = deg.pow(-0.5)
        deg_inv_sqrt = deg_inv_sqrt.masked_fill(deg_inv_sqrt == float("inf"), 0.0)
        norm = deg_inv_sqrt[row] * deg_inv_sqrt[col]

        x = x @ self.weight
        messages = norm.view(-1, 1) * x[row]
        out = torch.zeros_like(x)
        out.index_add_(0, col, messages)
        if self.bias is not None:
            out = out + self.bias
        return out


class GATLayer(nn.Module):
    def __init__(self, in_features, out_features, heads=2, negative_slope=0.2):
        super().__init__()
        self.heads = heads
        self.out_features = out_features
        self.negative_slope = negative_slope
        self.lin = nn.Linear(in_features, heads * out_features, bias=False)
        self.att_src = nn.Parameter(torch.empty(1, heads, out_features))
        self.att_dst = nn.Parameter(torch.empty(1, heads, out_features))
        nn.init.xavier_uniform_(self.att_src, gain=1.414)
        nn.init.xavier_uniform_(self.att_dst, gain=1.414)

    def forward(self, x, edge_index):
        N = x.size(0)
        src, dst = edge_index
        h = self.lin(x).view(N, self.heads, self.out_features)
        alpha = (h * self.att_src).sum(-1)[src] + (h * self.att_dst).sum(dim=-1)[dst]
        alpha = F.leaky_relu(alpha, self.negative_slope)

        # softmax over the edges that meet in a node
        index = dst.unsqueeze(-1).expand_as(alpha)
        largest = torch.full((N, self.heads), -1e9, dtype=x.dtype).scatter_reduce(0, index, alpha, reduce="amax")
        alpha = (alpha - largest[dst]).exp()
        total = torch.zeros((N, self.heads), dtype=x.dtype).scatter_add_(0, index, alpha)
        alpha = alpha / (total[dst] + 1e-16)

        out = x.new_zeros((N, self.heads, self.out_features))
        out.index_add_(0, dst, h[src] * alpha.unsqueeze(-1))
        return out.flatten(1)


class GraphNet(nn.Module):
    def __init__(self, in_dim, hidden, out_dim):
        super().__init__()
        self.conv1 = GCNConv(in_dim, hidden)
        self.conv2 = GATLayer(hidden, hidden)
        self.norms = nn.ModuleList([nn.LayerNorm(hidden), nn.LayerNorm(2 * hidden)])
        self.readout = nn.Linear(2 * hidden, out_dim)

    def forward(self, x, edge_index, batch, num_graphs):
        x = F.elu(self.norms[0](self.conv1(x, edge_index)))
        x = F.elu(self.norms[1](self.conv2(x, edge_index)))
        x = scatter_mean(x, batch, num_graphs)
        return self.readout(x)
