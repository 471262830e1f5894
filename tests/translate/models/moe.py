"""Mixture of experts: noisy top-k gating, a dense and a sparse way to combine the experts."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Expert(nn.Module):
    """A two-layer perceptron; each expert is one."""

    def __init__(self, n_embed, dropout=0.0):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_embed, 4 * n_embed),
            nn.ReLU(),
            nn.Linear(4 * n_embed, n_embed),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        return self.net(x)


class NoisyTopkRouter(nn.Module):
    def __init__(self, n_embed, num_experts, top_k):
        super().__init__()
        self.top_k = top_k
        self.topkroute_linear = nn.Linear(n_embed, num_experts)
        self.noise_linear = nn.Linear(n_embed, num_experts)

    def forward(self, mh_output):
        logits = self.topkroute_linear(mh_output)
        if self.training:
            noise_logits = self.noise_linear(mh_output)
            noise = torch.randn_like(logits) * F.softplus(noise_logits)
            logits = logits + noise

        top_k_logits, indices = logits.topk(self.top_k, dim=-1)
        zeros = torch.full_like(logits, float("-inf"))
        sparse_logits = zeros.scatter(-1, indices, top_k_logits)
        router_output = F.softmax(sparse_logits, dim=-1)
        return router_output, indices


class DenseMoE(nn.Module):
    """Every expert sees every token; the gate weighs them."""

    def __init__(self, n_embed, num_experts, top_k):
        super().__init__()
        self.router = NoisyTopkRouter(n_embed, num_experts, top_k)
        self.experts = nn.ModuleList([Expert(n_embed) for _ in range(num_experts)])

    def forward(self, x):
        gates, indices = self.router(x)
        out = torch.stack([expert(x) for expert in self.experts], dim=-2)  # (b, t, experts, c)
        y = torch.einsum("bte,btec->btc", gates, out)

        # load balancing as in Switch Transformers
        num_experts = len(self.experts)
        assigned = F.one_hot(indices[..., 0], num_classes=num_experts).float().mean(dim=(0, 1))
        probs = gates.mean(dim=(0, 1))
        aux_loss = num_experts * torch.sum(assigned * probs)
        return y, aux_loss


class SparseMoE(nn.Module):
    """Only tokens that choose an expert are sent to it."""

    def __init__(self, n_embed, num_experts, top_k):
        super(SparseMoE, self).__init__()
        self.router = NoisyTopkRouter(n_embed, num_experts, top_k)
        self.experts = nn.ModuleList([Expert(n_embed) for _ in range(num_experts)])
        self.top_k = top_k

    def forward(self, x):
        gating_output, indices = self.router(x)
        final_output = torch.zeros_like(x)

        # reshape inputs for batch processing
        flat_x = x.view(-1, x.size(-1))
        flat_gating_output = gating_output.view(-1, gating_output.size(-1))

        # process each expert in parallel
        for i, expert in enumerate(self.experts):
            expert_mask = (indices == i).any(dim=-1)
            flat_mask = expert_mask.view(-1)
            weights = flat_gating_output[:, i].unsqueeze(1) * flat_mask.unsqueeze(1)
            final_output = final_output + (expert(flat_x) * weights).view_as(x)

        return final_output


class GumbelRouter(nn.Module):
    """Parameters by hand: experts in one stacked weight, index_select and bmm."""

    def __init__(self, dim, hidden, num_experts):
        super().__init__()
        self.w1 = nn.Parameter(torch.empty(num_experts, dim, hidden))
        self.w2 = nn.Parameter(torch.empty(num_experts, hidden, dim))
        self.gate = nn.Linear(dim, num_experts, bias=False)
        self.reset_parameters()

    def reset_parameters(self):
        std = self.w1.shape[1] ** -0.5
        nn.init.uniform_(self.w1, -std, std)
        nn.init.normal_(self.w2, std=std)

    def forward(self, x):
        probs = self.gate(x).softmax(-1)
        weight, choice = probs.max(dim=-1)
        w1 = torch.index_select(self.w1, 0, choice)
        w2 = self.w2[choice]
        h = F.gelu(torch.bmm(x.unsqueeze(1), w1))
        return torch.bmm(h, w2).squeeze(1) * weight[:, None]
