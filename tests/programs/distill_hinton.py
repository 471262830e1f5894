"""Knowledge distillation with temperature, a frozen teacher, MixUp, label smoothing, a cosine schedule with warmup."""
import math
import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


def make_teacher(d, c):
    return nn.Sequential(nn.Linear(d, 32), nn.ReLU(), nn.Dropout(0.0), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, c))


class Student(nn.Module):
    def __init__(self, d, c, width=8):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d, width), nn.BatchNorm1d(width), nn.GELU())
        self.head = nn.Linear(width, c)
        self._num_calls = 0

    def forward(self, x):
        return self.head(self.body(x))


def loss_fn_kd(outputs, labels, teacher_outputs, alpha=0.9, T=4.0):
    KD_loss = nn.KLDivLoss(reduction='batchmean')(F.log_softmax(outputs / T, dim=1),
                                                  F.softmax(teacher_outputs / T, dim=1)) * (alpha * T * T) + \
              F.cross_entropy(outputs, labels, label_smoothing=0.1) * (1. - alpha)
    return KD_loss


class RunningAverage():
    """A simple class that maintains the running average of a quantity"""
    def __init__(self):
        self.steps = 0
        self.total = 0

    def update(self, val):
        self.total += val
        self.steps += 1

    def __call__(self):
        return self.total / float(self.steps)


def train_teacher(model, loader, epochs):
    opt = optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(epochs):
        for x, y in loader:
            opt.zero_grad()
            F.cross_entropy(model(x), y).backward()
            opt.step()


def evaluate(model, loader):
    was_training = model.training
    model.eval()
    correct = total = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
            total += y.numel()
    model.train(was_training)
    return correct / total


def main():
    torch.manual_seed(42)
    X = torch.randn(96, 6)
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).long() + (X[:, 3] > 1).long()
    train_loader = DataLoader(TensorDataset(X[:64], y[:64]), batch_size=16, shuffle=True)
    val_loader = DataLoader(TensorDataset(X[64:], y[64:]), batch_size=32)
    teacher, student = make_teacher(6, 3), Student(6, 3)
    train_teacher(teacher, train_loader, 5)
    teacher.requires_grad_(False)
    teacher.eval()
    print('teacher', evaluate(teacher, val_loader), 'trainable',
          sum(p.numel() for p in student.parameters() if p.requires_grad),
          sum(p.numel() for p in teacher.parameters() if p.requires_grad))
    params = {'decay': [], 'no_decay': []}
    for name, p in student.named_parameters():
        params['no_decay' if p.ndim <= 1 or name.endswith('.bias') else 'decay'].append(p)
    optimizer = optim.SGD([{'params': params['decay'], 'weight_decay': 5e-4},
                           {'params': params['no_decay'], 'weight_decay': 0.}], lr=0.1, momentum=0.9, nesterov=True)
    epochs, warmup = 6, 2
    scheduler = optim.lr_scheduler.LambdaLR(
        optimizer, lambda e: (e + 1) / warmup if e < warmup else 0.5 * (1 + math.cos(math.pi * (e - warmup) / (epochs - warmup))))
    best = 0.0
    for epoch in range(epochs):
        student.train()
        loss_avg = RunningAverage()
        for i, (train_batch, labels_batch) in enumerate(train_loader):
            output_batch = student(train_batch)
            with torch.no_grad():
                output_teacher_batch = teacher(train_batch)
            loss = loss_fn_kd(output_batch, labels_batch, output_teacher_batch)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_value_(student.parameters(), 0.5)
            optimizer.step()
            loss_avg.update(loss.item())
        acc = evaluate(student, val_loader)
        scheduler.step()
        is_best = acc >= best
        if is_best:
            best = acc
        print('- epoch {} loss {:05.3f} acc {:.3f} lr {:.4f}{}'.format(epoch, loss_avg(), acc, scheduler.get_last_lr()[0],
                                                                     ' *' if is_best else ''))


main()
