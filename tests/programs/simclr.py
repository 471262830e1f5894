import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def info_nce_loss(features, batch_size, n_views=2, temperature=0.5):
    labels = torch.cat([torch.arange(batch_size) for i in range(n_views)], dim=0)
    labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()

    features = F.normalize(features, dim=1)
    similarity_matrix = torch.matmul(features, features.T)

    # discard the main diagonal from both: labels and similarities matrix
    mask = torch.eye(labels.shape[0], dtype=torch.bool)
    labels = labels[~mask].view(labels.shape[0], -1)
    similarity_matrix = similarity_matrix[~mask].view(similarity_matrix.shape[0], -1)

    # select and combine multiple positives
    positives = similarity_matrix[labels.bool()].view(labels.shape[0], -1)
    # select only the negatives
    negatives = similarity_matrix[~labels.bool()].view(similarity_matrix.shape[0], -1)

    logits = torch.cat([positives, negatives], dim=1)
    labels = torch.zeros(logits.shape[0], dtype=torch.long)

    logits = logits / temperature
    return logits, labels


class ResNetSimCLR(nn.Module):
    def __init__(self, out_dim):
        super(ResNetSimCLR, self).__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
            nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(16, out_dim))
        dim_mlp = self.backbone[-1].in_features
        # add mlp projection head
        self.backbone[-1] = nn.Sequential(nn.Linear(dim_mlp, dim_mlp), nn.ReLU(), self.backbone[-1])

    def forward(self, x):
        return self.backbone(x)


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        maxk = max(topk)
        batch_size = target.size(0)
        _, pred = output.topk(maxk, 1, True, True)
        pred = pred.t()
        correct = pred.eq(target.view(1, -1).expand_as(pred))
        res = []
        for k in topk:
            correct_k = correct[:k].reshape(-1).float().sum(0, keepdim=True)
            res.append(correct_k.mul_(100.0 / batch_size))
        return res


class SimCLR(object):
    def __init__(self, *args, **kwargs):
        self.model = kwargs['model']
        self.optimizer = kwargs['optimizer']
        self.scheduler = kwargs['scheduler']
        self.criterion = torch.nn.CrossEntropyLoss()

    def train(self, train_loader, epochs):
        n_iter = 0
        for epoch_counter in range(epochs):
            for images, _ in train_loader:
                images = torch.cat([images, images.flip(-1)], dim=0)
                features = self.model(images)
                logits, labels = info_nce_loss(features, images.shape[0] // 2)
                loss = self.criterion(logits, labels)

                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()

                if n_iter % 2 == 0:
                    top1, top5 = accuracy(logits, labels, topk=(1, 5))
                    print(n_iter, 'loss', loss.item(), 'acc/top1', top1[0].item(), 'acc/top5', top5[0].item(),
                          'learning_rate', self.scheduler.get_last_lr()[0])
                n_iter += 1
            # warmup for the first epoch
            if epoch_counter >= 1:
                self.scheduler.step()
        print("Training has finished.", n_iter)


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(24, 3, 12, 12), torch.zeros(24))
    loader = DataLoader(data, batch_size=8, shuffle=True, drop_last=True)
    model = ResNetSimCLR(out_dim=8)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=len(loader), eta_min=0, last_epoch=-1)
    simclr = SimCLR(model=model, optimizer=optimizer, scheduler=scheduler)
    simclr.train(loader, 4)


if __name__ == "__main__":
    main()
