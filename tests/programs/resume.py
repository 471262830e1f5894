import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F


class MLP(nn.Module):
    def __init__(self, d_in, d_hidden, d_out):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(d_in, d_hidden), nn.ReLU(), nn.Linear(d_hidden, d_out))

    def forward(self, x):
        return self.layers(x)


def save_checkpoint(path, epoch, model, optimizer, scheduler, loss):
    torch.save({
        "epoch": epoch,
        "model_state_dict": model.state_dict(),
        "optimizer_state_dict": optimizer.state_dict(),
        "scheduler_state_dict": scheduler.state_dict(),
        "loss": loss,
    }, path)


def load_checkpoint(path, model, optimizer, scheduler):
    checkpoint = torch.load(path, map_location="cpu")
    model.load_state_dict(checkpoint["model_state_dict"])
    optimizer.load_state_dict(checkpoint["optimizer_state_dict"])
    scheduler.load_state_dict(checkpoint["scheduler_state_dict"])
    return checkpoint["epoch"] + 1, checkpoint["loss"]


def build():
    model = MLP(5, 16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    return model, optimizer, scheduler


def train(model, optimizer, scheduler, x, y, start, epochs, ckpt):
    for epoch in range(start, epochs):
        for i in range(0, len(x), 16):
            xb, yb = x[i:i + 16], y[i:i + 16]
            optimizer.zero_grad()
            loss = F.mse_loss(model(xb), yb)
            loss.backward()
            optimizer.step()
        scheduler.step()
        print("epoch %d loss %.5f lr %g" % (epoch, loss.item(), optimizer.param_groups[0]["lr"]))
        save_checkpoint(ckpt, epoch, model, optimizer, scheduler, loss.item())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--ckpt", default="checkpoint.pt")
    args = parser.parse_args()
    torch.manual_seed(42)
    x = torch.randn(64, 5)
    y = x.sum(1, keepdim=True)

    model, optimizer, scheduler = build()
    train(model, optimizer, scheduler, x, y, 0, args.epochs // 2, args.ckpt)

    model, optimizer, scheduler = build()
    start = 0
    if os.path.isfile(args.ckpt):
        start, loss = load_checkpoint(args.ckpt, model, optimizer, scheduler)
        print("resumed at epoch", start, "loss", round(loss, 4))
    train(model, optimizer, scheduler, x, y, start, args.epochs, args.ckpt)


if __name__ == "__main__":
    main()
