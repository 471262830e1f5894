import time
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Block(nn.Module):
    def __init__(self, dim, mult=2):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, dim * mult), nn.GELU(), nn.Linear(dim * mult, dim))

    def forward(self, x):
        return x + self.ff(self.norm(x))


class Mixer(nn.Module):
    def __init__(self, dim=16, depth=3, n_out=4, use_checkpoint=True):
        super().__init__()
        self.blocks = nn.ModuleList([Block(dim) for _ in range(depth)])
        self.head = nn.Linear(dim, n_out)
        self.use_checkpoint = use_checkpoint

    def forward(self, x):
        for blk in self.blocks:
            if self.use_checkpoint and self.training:
                x = checkpoint(blk, x, use_reentrant=False)
            else:
                x = blk(x)
        return self.head(x)


def count_parameters(model):
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def main():
    torch.manual_seed(0)
    model = Mixer().to(device)
    if torch.cuda.device_count() > 1:
        model = nn.DataParallel(model)
    print("parameters:", count_parameters(model))
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=1e-2, total_steps=12)
    x = torch.randn(64, 16, device=device)
    y = (x[:, 0] > 0).long() + 2 * (x[:, 1] > 0).long()
    t0 = time.time()
    model.train()
    for step in range(12):
        idx = torch.randint(0, 64, (16,), device=device)
        loss = F.cross_entropy(model(x[idx]), y[idx], label_smoothing=0.1)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        sched.step()
        if step % 4 == 3:
            print(f"step {step} loss {loss.item():.4f} lr {sched.get_last_lr()[0]:.2e}")
    if device.type == "cuda":
        torch.cuda.synchronize()
    print(f"{time.time() - t0:.1f}s")
    model.eval()
    with torch.no_grad():
        print("accuracy", (model(x).argmax(-1) == y).float().mean().item())


if __name__ == "__main__":
    main()
