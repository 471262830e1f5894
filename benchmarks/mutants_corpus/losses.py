"""Losses and metrics."""

import torch
import torch.nn.functional as F


# t2j: logits=f32[5, 4], target=i64[5] < 4
def label_smoothing(logits: torch.Tensor, target: torch.Tensor):
    logp = F.log_softmax(logits, dim=-1)
    nll = -logp.gather(1, target.unsqueeze(1)).squeeze(1)
    smooth = -logp.mean(dim=-1)
    return (0.9 * nll + 0.1 * smooth).mean()


# t2j: logits=f32[6, 3], target=i64[6] < 3
def focal_loss(logits: torch.Tensor, target: torch.Tensor):
    ce = F.cross_entropy(logits, target, reduction="none")
    pt = torch.exp(-ce)
    return ((1 - pt) ** 2 * ce).mean()


# t2j: logits=f32[2, 1, 4, 5], target=0 <= f32[2, 1, 4, 5] < 1
def dice_loss(logits: torch.Tensor, target: torch.Tensor):
    p = torch.sigmoid(logits).flatten(1)
    t = target.flatten(1)
    overlap = 2 * (p * t).sum(dim=1) + 1.0
    total = p.sum(dim=1) + t.sum(dim=1) + 1.0
    return 1 - (overlap / total).mean()


# t2j: a=f32[5, 6], b=f32[5, 6]
def info_nce(a: torch.Tensor, b: torch.Tensor):
    a = F.normalize(a, dim=1)
    b = F.normalize(b, dim=1)
    logits = a @ b.t() / 0.2
    labels = torch.arange(a.size(0))
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2


# t2j: anchor=f32[5, 4], positive=f32[5, 4], negative=f32[5, 4]
def triplet(anchor: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor):
    near = (anchor - positive).pow(2).sum(dim=1)
    far = (anchor - negative).pow(2).sum(dim=1)
    return F.relu(near - far + 0.5).mean()


# t2j: mu=f32[4, 3], logvar=f32[4, 3]
def kl_to_normal(mu: torch.Tensor, logvar: torch.Tensor):
    return -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1).mean()


# t2j: pred=f32[4, 5], target=f32[4, 5]
def huber(pred: torch.Tensor, target: torch.Tensor):
    error = (pred - target).abs()
    quadratic = torch.clamp(error, max=0.7)
    linear = error - quadratic
    return (0.5 * quadratic**2 + 0.7 * linear).mean()


# t2j: logits=f32[4, 6], target=f32[4, 6]
def distillation(logits: torch.Tensor, target: torch.Tensor):
    p = F.log_softmax(logits / 3.0, dim=1)
    q = F.softmax(target.detach() / 3.0, dim=1)
    return F.kl_div(p, q, reduction="batchmean") * 9.0


# t2j: logits=f32[7, 4], target=i64[7] < 4
def masked_cross_entropy(logits: torch.Tensor, target: torch.Tensor):
    keep = target != 0
    loss = F.cross_entropy(logits, target, reduction="none")
    return (loss * keep).sum() / keep.sum().clamp(min=1)


# t2j: ratio=0.5 <= f32[6] < 1.5, advantage=f32[6]
def ppo_loss(ratio: torch.Tensor, advantage: torch.Tensor):
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-3)
    clipped = torch.clamp(ratio, 0.8, 1.2) * advantage
    return -torch.min(ratio * advantage, clipped).mean()


# t2j: reward=f32[6], value=f32[7]
def advantages(reward: torch.Tensor, value: torch.Tensor):
    delta = reward + 0.9 * value[1:] - value[:-1]
    out = []
    running = torch.zeros(())
    for t in range(5, -1, -1):
        running = delta[t] + 0.9 * 0.8 * running
        out.append(running)
    return torch.stack(out).flip(0)


# t2j: z1=f32[6, 3], z2=f32[6, 3]
def barlow_twins(z1: torch.Tensor, z2: torch.Tensor):
    n, d = z1.shape
    z1 = (z1 - z1.mean(0)) / z1.std(0)
    z2 = (z2 - z2.mean(0)) / z2.std(0)
    c = z1.t() @ z2 / n
    on = (torch.diagonal(c) - 1).pow(2).sum()
    off = c.pow(2).sum() - torch.diagonal(c).pow(2).sum()
    return on + 0.005 * off


# t2j: pred=f32[5, 4], target=i64[5] < 4
def top2_accuracy(pred: torch.Tensor, target: torch.Tensor):
    top = pred.topk(2, dim=1).indices
    hit = (top == target[:, None]).any(dim=1)
    return hit.float().mean()


# t2j: a=0 <= f32[4, 4] < 1, b=0 <= f32[3, 4] < 1
def box_iou(a: torch.Tensor, b: torch.Tensor):
    a = torch.cat([a[:, :2], a[:, :2] + a[:, 2:]], dim=1)
    b = torch.cat([b[:, :2], b[:, :2] + b[:, 2:]], dim=1)
    area_a = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
    area_b = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    lt = torch.max(a[:, None, :2], b[None, :, :2])
    rb = torch.min(a[:, None, 2:], b[None, :, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[..., 0] * wh[..., 1]
    return inter / (area_a[:, None] + area_b[None, :] - inter)


# t2j: pred=f32[2, 3, 6, 5]
def total_variation(pred: torch.Tensor):
    dh = (pred[:, :, 1:, :] - pred[:, :, :-1, :]).abs().mean()
    dw = (pred[:, :, :, 1:] - pred[:, :, :, :-1]).abs().mean()
    return dh + 2 * dw


# t2j: real=f32[5, 1], fake=f32[5, 1]
def hinge_gan(real: torch.Tensor, fake: torch.Tensor):
    d_loss = F.relu(1.0 - real).mean() + F.relu(1.0 + fake).mean()
    g_loss = -fake.mean()
    return d_loss, g_loss
