# Siamese / triplet embedding learning with online hard negatives, kNN evaluation
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import lr_scheduler
from itertools import combinations


class EmbeddingNet(nn.Module):
    def __init__(self):
        super(EmbeddingNet, self).__init__()
        self.convnet = nn.Sequential(nn.Conv2d(1, 8, 3), nn.PReLU(), nn.MaxPool2d(2, stride=2),
                                     nn.Conv2d(8, 8, 2), nn.PReLU(), nn.MaxPool2d(2, stride=2))
        self.fc = nn.Sequential(nn.Linear(8 * 2 * 2, 16), nn.PReLU(), nn.Linear(16, 2))

    def forward(self, x):
        output = self.convnet(x)
        output = output.view(output.size()[0], -1)
        output = self.fc(output)
        return output

    def get_embedding(self, x):
        return self.forward(x)


class EmbeddingNetL2(EmbeddingNet):
    def __init__(self):
        super(EmbeddingNetL2, self).__init__()

    def forward(self, x):
        output = super(EmbeddingNetL2, self).forward(x)
        output = output / output.pow(2).sum(1, keepdim=True).sqrt()
        return output


class TripletNet(nn.Module):
    def __init__(self, embedding_net):
        super(TripletNet, self).__init__()
        self.embedding_net = embedding_net

    def forward(self, x1, x2, x3):
        return self.embedding_net(x1), self.embedding_net(x2), self.embedding_net(x3)

    def get_embedding(self, x):
        return self.embedding_net(x)


class TripletLoss(nn.Module):
    def __init__(self, margin):
        super(TripletLoss, self).__init__()
        self.margin = margin

    def forward(self, anchor, positive, negative, size_average=True):
        distance_positive = (anchor - positive).pow(2).sum(1)
        distance_negative = (anchor - negative).pow(2).sum(1)
        losses = F.relu(distance_positive - distance_negative + self.margin)
        return losses.mean() if size_average else losses.sum()


def make_images(n, rng):
    labels = np.arange(n) % 3
    images = rng.normal(0, 0.3, (n, 1, 12, 12))
    for i, c in enumerate(labels):
        images[i, 0, 3 * c:3 * c + 4] += 1.0
    return torch.tensor(images).float(), torch.from_numpy(labels)


def triplets(labels):
    out = []
    for c in set(labels.tolist()):
        same = np.where(labels.numpy() == c)[0]
        other = np.where(labels.numpy() != c)[0]
        for a, p in list(combinations(same, 2))[:4]:
            out.append([a, p, other[(a + p) % len(other)]])
    return torch.LongTensor(np.array(out))


torch.manual_seed(0)
rng = np.random.default_rng(0)
images, labels = make_images(18, rng)
index = triplets(labels)
model = TripletNet(EmbeddingNetL2())
loss_fn = TripletLoss(1.)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scheduler = lr_scheduler.StepLR(optimizer, 2, gamma=0.1, last_epoch=-1)


def train_epoch(train_loader, model, loss_fn, optimizer, log_interval):
    model.train()
    losses = []
    total_loss = 0
    for batch_idx, data in enumerate(train_loader):
        if not type(data) in (tuple, list):
            data = (data,)
        optimizer.zero_grad()
        outputs = model(*data)
        if type(outputs) not in (tuple, list):
            outputs = (outputs,)
        loss_outputs = loss_fn(*outputs)
        loss = loss_outputs[0] if type(loss_outputs) in (tuple, list) else loss_outputs
        losses.append(loss.item())
        total_loss += loss.item()
        loss.backward()
        optimizer.step()
        if batch_idx % log_interval == 0:
            print('Train: [{}]\tLoss: {:.6f}'.format(batch_idx, np.mean(losses)))
            losses = []
    total_loss /= (batch_idx + 1)
    return total_loss


for epoch in range(3):
    batches = [(images[i[:, 0]], images[i[:, 1]], images[i[:, 2]]) for i in index.split(6)]
    total = train_epoch(batches, model, loss_fn, optimizer, 1)
    scheduler.step()
    print('epoch', epoch, total)

model.eval()
with torch.no_grad():
    emb = model.get_embedding(images)
    dist = torch.cdist(emb, emb) + 1e3 * torch.eye(len(emb))
    nearest = dist.argmin(dim=1)
    print('1-NN accuracy', (labels[nearest] == labels).float().mean().item())
