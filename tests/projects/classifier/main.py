import argparse
import copy
import random

import numpy as np
import torch
import torch.nn as nn

from src.data import get_loaders
from src.engine import evaluate, train_one_epoch
from src.models import build_model
from src.models.layers import count_parameters


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default="conv")
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--bs", type=int, default=16)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--wd", type=float, default=1e-2)
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


def set_seed(s):
    random.seed(s)
    np.random.seed(s)
    torch.manual_seed(s)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(s)


def main():
    args = get_args()
    set_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_loader, val_loader = get_loaders(args.bs)
    model = build_model(args.model, num_classes=4).to(device)
    print("params:", count_parameters(model))
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.wd)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=args.lr * 3, total_steps=args.epochs * len(train_loader))
    best, best_state = 0.0, None
    for epoch in range(args.epochs):
        train_one_epoch(model, train_loader, criterion, optimizer, scheduler, device, epoch)
        acc = evaluate(model, val_loader, device)
        if acc > best:
            best = acc
            best_state = copy.deepcopy(model.state_dict())
    model.load_state_dict(best_state)
    evaluate(model, val_loader, device)


if __name__ == "__main__":
    main()
