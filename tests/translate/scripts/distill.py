"""A student learns from a frozen teacher; a function for one epoch, called from a main function."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Waves(Dataset):
    def __init__(self, count):
        self.x = torch.linspace(-3, 3, count * 5).sin().reshape(count, 5)
        self.y = torch.arange(count) % 3

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


def mlp(hidden):
    return nn.Sequential(nn.Linear(5, hidden), nn.Tanh(), nn.Linear(hidden, 3))


def distillation_loss(student_logits, teacher_logits, labels, temperature, alpha):
    soft = F.kl_div(
        F.log_softmax(student_logits / temperature, dim=1),
        F.softmax(teacher_logits / temperature, dim=1),
        reduction="batchmean",
    ) * (temperature ** 2)
    hard = F.cross_entropy(student_logits, labels, label_smoothing=0.1)
    return alpha * soft + (1 - alpha) * hard


def train_one_epoch(student, teacher, loader, optimizer, scheduler, device, args):
    student.train()
    total, correct, running = 0, 0, 0.0
    for inputs, labels in loader:
        inputs, labels = inputs.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        with torch.no_grad():
            teacher_logits = teacher(inputs)
        optimizer.zero_grad(set_to_none=True)
        logits = student(inputs)
        loss = distillation_loss(logits, teacher_logits, labels, args.temperature, args.alpha)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(student.parameters(), max_norm=1.0)
        optimizer.step()
        scheduler.step()
        running += loss.item() * labels.size(0)
        total += labels.size(0)
        correct += (logits.argmax(1) == labels).sum().item()
    return running / total, correct / total


parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--temperature", type=float, default=2.0)
parser.add_argument("--alpha", type=float, default=0.7)
losses = []
teacher = mlp(7)
student = mlp(4)
# train


def main():
    args = parser.parse_args([])
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(Waves(9), batch_size=3)
    teacher.to(device).eval()
    for p in teacher.parameters():
        p.requires_grad = False
    student.to(device)
    optimizer = torch.optim.RMSprop(student.parameters(), lr=0.01, momentum=0.5)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs * len(loader))
    for epoch in range(args.epochs):
        loss, accuracy = train_one_epoch(student, teacher, loader, optimizer, scheduler, device, args)
        losses.extend([loss, accuracy])
        print(f"epoch {epoch}: loss {loss:.4f}, accuracy {accuracy:.3f}")


main()
