import torch
import torch.nn.functional as F

from .utils.meter import AverageMeter, accuracy


def train_one_epoch(model, loader, criterion, optimizer, scheduler, device, epoch, clip=1.0):
    model.train()
    losses, top1 = AverageMeter(), AverageMeter()
    for step, (images, target) in enumerate(loader):
        images, target = images.to(device, non_blocking=True), target.to(device, non_blocking=True)
        output = model(images)
        loss = criterion(output, target)
        acc1, = accuracy(output, target, topk=(1,))
        losses.update(loss.item(), images.size(0))
        top1.update(acc1.item(), images.size(0))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        scheduler.step()
    print(f"epoch {epoch} train loss {losses.avg:.4f} acc {top1.avg:.2f} lr {scheduler.get_last_lr()[0]:.5f}")
    return losses.avg


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    correct = total = 0
    loss = 0.0
    for images, target in loader:
        images, target = images.to(device), target.to(device)
        logits = model(images)
        loss += F.cross_entropy(logits, target, reduction="sum").item()
        correct += (logits.argmax(1) == target).sum().item()
        total += target.numel()
    print(f"  val loss {loss / total:.4f} acc {100 * correct / total:.2f}")
    return correct / total
