# %% [code]
import os
import gc
import time
import random
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader


class CFG:
    seed = 42
    n_fold = 3
    trn_fold = [0, 1]
    epochs = 2
    batch_size = 10
    lr = 1e-2
    min_lr = 1e-4
    weight_decay = 1e-6
    gradient_accumulation_steps = 2
    max_grad_norm = 1000
    print_freq = 2


def seed_everything(seed=42):
    random.seed(seed)
    os.environ['PYTHONHASHSEED'] = str(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed(seed)
    torch.backends.cudnn.deterministic = True


seed_everything(CFG.seed)
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')

# %% [code]
rng = np.random.RandomState(0)
X = rng.randn(60, 6).astype(np.float32)
y = (X[:, 0] * 2 - X[:, 1] + 0.3 * rng.randn(60) > 0).astype(np.float32)
folds = np.arange(60) % CFG.n_fold


# %% [code]
class TrainDataset(Dataset):
    def __init__(self, features, targets):
        self.features = features
        self.targets = targets

    def __len__(self):
        return len(self.features)

    def __getitem__(self, idx):
        return {
            'x': torch.tensor(self.features[idx, :], dtype=torch.float),
            'y': torch.tensor(self.targets[idx], dtype=torch.float),
        }


class Model(nn.Module):
    def __init__(self, num_features, hidden_size=16):
        super().__init__()
        self.batch_norm1 = nn.BatchNorm1d(num_features)
        self.dropout1 = nn.Dropout(0.1)
        self.dense1 = nn.Linear(num_features, hidden_size)
        self.batch_norm2 = nn.BatchNorm1d(hidden_size)
        self.dropout2 = nn.Dropout(0.2)
        self.dense2 = nn.Linear(hidden_size, 1)

    def forward(self, x):
        x = self.batch_norm1(x)
        x = self.dropout1(x)
        x = nn.functional.leaky_relu(self.dense1(x))
        x = self.batch_norm2(x)
        x = self.dropout2(x)
        x = self.dense2(x)
        return x.squeeze(1)


class AverageMeter(object):
    """Computes and stores the average and current value"""
    def __init__(self):
        self.reset()

    def reset(self):
        self.val = 0
        self.avg = 0
        self.sum = 0
        self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def train_fn(train_loader, model, criterion, optimizer, epoch, scheduler, device):
    losses = AverageMeter()
    model.train()
    for step, data in enumerate(train_loader):
        inputs = data['x'].to(device)
        labels = data['y'].to(device)
        batch_size = labels.size(0)
        y_preds = model(inputs)
        loss = criterion(y_preds, labels)
        losses.update(loss.item(), batch_size)
        if CFG.gradient_accumulation_steps > 1:
            loss = loss / CFG.gradient_accumulation_steps
        loss.backward()
        grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), CFG.max_grad_norm)
        if (step + 1) % CFG.gradient_accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
        if step % CFG.print_freq == 0 or step == (len(train_loader) - 1):
            print('Epoch: [{0}][{1}/{2}] Loss: {loss.val:.4f}({loss.avg:.4f}) Grad: {grad_norm:.4f}'.format(
                epoch + 1, step, len(train_loader), loss=losses, grad_norm=grad_norm))
    scheduler.step()
    return losses.avg


def valid_fn(valid_loader, model, criterion, device):
    losses = AverageMeter()
    model.eval()
    preds = []
    for step, data in enumerate(valid_loader):
        inputs = data['x'].to(device)
        labels = data['y'].to(device)
        with torch.no_grad():
            y_preds = model(inputs)
        loss = criterion(y_preds, labels)
        losses.update(loss.item(), labels.size(0))
        preds.append(y_preds.sigmoid().to('cpu').numpy())
    predictions = np.concatenate(preds)
    return losses.avg, predictions


def train_loop(fold):
    print(f"========== fold: {fold} training ==========")
    trn_idx = np.where(folds != fold)[0]
    val_idx = np.where(folds == fold)[0]
    train_loader = DataLoader(TrainDataset(X[trn_idx], y[trn_idx]), batch_size=CFG.batch_size, shuffle=True, drop_last=True)
    valid_loader = DataLoader(TrainDataset(X[val_idx], y[val_idx]), batch_size=CFG.batch_size, shuffle=False)
    model = Model(X.shape[1])
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=CFG.lr, weight_decay=CFG.weight_decay)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=CFG.epochs, eta_min=CFG.min_lr)
    criterion = nn.BCEWithLogitsLoss()
    best_score = 0
    best_preds = None
    for epoch in range(CFG.epochs):
        avg_loss = train_fn(train_loader, model, criterion, optimizer, epoch, scheduler, device)
        avg_val_loss, preds = valid_fn(valid_loader, model, criterion, device)
        score = ((preds > 0.5) == (y[val_idx] > 0.5)).mean()
        print(f'Epoch {epoch+1} - avg_train_loss: {avg_loss:.4f}  avg_val_loss: {avg_val_loss:.4f}  Score: {score:.4f}')
        if score > best_score:
            best_score = score
            torch.save({'model': model.state_dict(), 'preds': preds}, f'fold{fold}_best.pth')
    check_point = torch.load(f'fold{fold}_best.pth', weights_only=False)
    model.load_state_dict(check_point['model'])
    best_preds = check_point['preds']
    del model, optimizer
    gc.collect()
    return val_idx, best_preds


# %% [code]
oof = np.zeros(len(X))
for fold in range(CFG.n_fold):
    if fold in CFG.trn_fold:
        val_idx, p = train_loop(fold)
        oof[val_idx] = p
print('CV', oof.mean())
