import torch
import torch.nn as nn
import torch.nn.functional as F


class Expert(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        return self.net(x)


class MoE(nn.Module):
    """Top-k gated mixture of experts with a load balancing loss."""

    def __init__(self, d_model, d_ff, num_experts=4, k=2):
        super().__init__()
        self.k = k
        self.num_experts = num_experts
        self.gate = nn.Linear(d_model, num_experts, bias=False)
        self.experts = nn.ModuleList([Expert(d_model, d_ff) for _ in range(num_experts)])

    def forward(self, x):
        logits = self.gate(x)
        weights, idx = torch.topk(logits, self.k, dim=-1)
        weights = F.softmax(weights, dim=-1)
        out = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            mask = (idx == e)
            gate = (weights * mask).sum(-1, keepdim=True)
            out = out + gate * expert(x)
        probs = F.softmax(logits, dim=-1)
        density = F.one_hot(idx[:, 0], self.num_experts).float().mean(0)
        aux = self.num_experts * (density * probs.mean(0)).sum()
        return out, aux


class Net(nn.Module):
    def __init__(self, d_in, d_model, d_out):
        super().__init__()
        self.inp = nn.Linear(d_in, d_model)
        self.moe = MoE(d_model, 4 * d_model)
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, d_out)

    def forward(self, x):
        h = self.inp(x)
        y, aux = self.moe(h)
        return self.head(self.norm(h + y)), aux


def train(steps: int = 20, aux_weight: float = 0.01):
    torch.manual_seed(0)
    x = torch.randn(128, 6)
    y = torch.stack([x[:, 0] * x[:, 1], x[:, 2].abs()], dim=-1)
    model = Net(6, 16, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=steps)
    history = {"loss": [], "aux": []}
    for step in range(steps):
        idx = torch.randperm(x.shape[0])[:32]
        pred, aux = model(x[idx])
        mse = F.mse_loss(pred, y[idx])
        loss = mse + aux_weight * aux
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        history["loss"].append(mse.item())
        history["aux"].append(aux.item())
        if (step + 1) % 5 == 0:
            print(f"step {step + 1}: mse={mse:.4f} aux={aux:.4f}")
    return model, history


if __name__ == "__main__":
    model, history = train()
    print("final", history["loss"][-1])
