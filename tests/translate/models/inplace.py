"""In-place arithmetic, slice assignment and the many spellings of shapes."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Scribbler(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.proj = nn.Linear(dim, dim)
        self.alpha = nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        out = x.clone()
        out[:, 0] = 0
        out[:, 1:3] *= 2
        out[:, -1] += self.alpha
        out[..., 0] = out[..., 1] + 1
        out[out > 1.5] = 1.5
        mask = torch.zeros(x.size(0), x.size(1), dtype=torch.bool)
        mask[:, ::2] = True
        out = out.masked_fill(mask.unsqueeze(-1), 0.25)
        out.add_(1).mul_(self.alpha)
        out += self.proj(x)
        buf = torch.empty_like(out)
        for t in range(out.shape[1]):
            buf[:, t] = out[:, t] * t
        buf.clamp_(min=-4.0, max=4.0)
        rows = torch.arange(x.size(0))
        buf[rows, 0, rows % self.dim] = 3.0
        return buf


class Shapes(nn.Module):
    def __init__(self, heads=2):
        super().__init__()
        self.heads = heads

    def forward(self, x):
        b, t, c = x.size()
        n = x.size(-1)
        size = x.shape[:-1] + (self.heads, n // self.heads)
        y = x.view(*size)
        y = y.permute(0, 2, 1, 3).contiguous()
        y = y.view(b * self.heads, t, -1)
        y = y.reshape((b, self.heads) + y.shape[1:])
        y = y.transpose(1, 2).flatten(2)
        z = y.unsqueeze(1).expand(-1, 3, -1, -1).reshape(b, 3 * t, c)
        first, second = torch.split(z, [t, 2 * t], dim=1)
        parts = second.chunk(2, dim=1)
        w = torch.stack(parts, dim=0).sum(0) + first.repeat(1, 1, 1)
        w = w.unfold(1, 2, 1).mean(-1)
        assert w.dim() == 3 and w.size() == torch.Size([b, t - 1, c])
        v = w.t() if w.dim() == 2 else w.mT
        u = torch.roll(v, shifts=1, dims=-1).flip(-1).narrow(1, 0, c - 1)
        return u.squeeze(), x.numel() // x.nelement(), torch.tensor(x.shape).prod()


class Masks(nn.Module):
    """Masks, comparisons, where, sort, topk, gather."""

    def forward(self, scores, lengths):
        b, t = scores.shape
        idx = torch.arange(t, device=scores.device)[None, :]
        valid = idx < lengths[:, None]
        scores = torch.where(valid, scores, torch.full_like(scores, -1e4))
        probs = scores.softmax(-1)
        probs = probs * valid.to(probs.dtype)
        probs = probs / probs.sum(-1, keepdim=True).clamp_min(1e-6)
        values, order = probs.sort(dim=-1, descending=True)
        top, where_top = probs.topk(2, dim=-1)
        picked = scores.gather(1, where_top)
        cumulative = values.cumsum(dim=-1)
        keep = ~(cumulative > 0.9)
        causal = torch.triu(torch.ones(t, t, dtype=torch.bool), diagonal=1)
        attn = (scores[:, :, None] * scores[:, None, :]).masked_fill(causal, float("-inf")).softmax(dim=-1)
        loss = F.kl_div(probs.clamp(min=1e-5).log(), values.detach(), reduction="batchmean")
        return picked, keep.float().double(), order, attn.sum(1), loss, top.max() - top.min()


def clip_boxes(boxes, size):
    boxes_x = boxes[..., 0::2]
    boxes_y = boxes[..., 1::2]
    height, width = size
    boxes_x = boxes_x.clamp(min=0, max=width)
    boxes_y = boxes_y.clamp(min=0, max=height)
    clipped = torch.stack((boxes_x, boxes_y), dim=boxes.dim())
    return clipped.reshape(boxes.shape)


class Boxes(nn.Module):
    def forward(self, deltas, boxes):
        widths = boxes[:, 2] - boxes[:, 0]
        heights = boxes[:, 3] - boxes[:, 1]
        ctr_x = boxes[:, 0] + 0.5 * widths
        ctr_y = boxes[:, 1] + 0.5 * heights
        dx, dy, dw, dh = deltas.unbind(dim=1)
        dw = torch.clamp(dw, max=2.0)
        dh = torch.clamp(dh, max=2.0)
        pred_boxes = torch.zeros_like(deltas)
        pred_boxes[:, 0] = ctr_x + dx * widths - 0.5 * torch.exp(dw) * widths
        pred_boxes[:, 1] = ctr_y + dy * heights - 0.5 * torch.exp(dh) * heights
        pred_boxes[:, 2] = ctr_x + dx * widths + 0.5 * torch.exp(dw) * widths
        pred_boxes[:, 3] = ctr_y + dy * heights + 0.5 * torch.exp(dh) * heights
        pred_boxes = clip_boxes(pred_boxes, (7.0, 9.0))
        area = (pred_boxes[:, 2] - pred_boxes[:, 0]) * (pred_boxes[:, 3] - pred_boxes[:, 1])
        lt = torch.max(pred_boxes[:, None, :2], boxes[None, :, :2])
        rb = torch.min(pred_boxes[:, None, 2:], boxes[None, :, 2:])
        wh = (rb - lt).clamp(min=0)
        inter = wh[:, :, 0] * wh[:, :, 1]
        union = area[:, None] + area[None, :] - inter
        return pred_boxes, inter / union.clamp_min(0.5)
