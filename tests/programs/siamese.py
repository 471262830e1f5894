import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

np.random.seed(0)


class PairDataset(Dataset):
    def __init__(self, n=64):
        centers = np.random.randn(4, 1, 8, 8).astype('float32')
        self.labels = np.random.randint(0, 4, n)
        self.images = centers[self.labels] + 0.3 * np.random.randn(n, 1, 8, 8).astype('float32')

    def __getitem__(self, index):
        other = (index * 7 + 3) % len(self.images)
        same = self.labels[index] == self.labels[other]
        return self.images[index], self.images[other], torch.from_numpy(np.array([int(not same)], dtype=np.float32))

    def __len__(self):
        return len(self.images)


class SiameseNetwork(nn.Module):
    def __init__(self):
        super(SiameseNetwork, self).__init__()
        self.cnn1 = nn.Sequential(
            nn.ReflectionPad2d(1),
            nn.Conv2d(1, 4, kernel_size=3),
            nn.ReLU(inplace=True),
            nn.BatchNorm2d(4),

            nn.ReflectionPad2d(1),
            nn.Conv2d(4, 8, kernel_size=3, stride=2),
            nn.ReLU(inplace=True),
            nn.BatchNorm2d(8),
        )

        self.fc1 = nn.Sequential(
            nn.Linear(8 * 4 * 4, 32),
            nn.ReLU(inplace=True),
            nn.Linear(32, 5))

    def forward_once(self, x):
        output = self.cnn1(x)
        output = output.view(output.size()[0], -1)
        output = self.fc1(output)
        return output

    def forward(self, input1, input2):
        output1 = self.forward_once(input1)
        output2 = self.forward_once(input2)
        return output1, output2


class ContrastiveLoss(torch.nn.Module):
    """
    Contrastive loss function.
    Based on: http://yann.lecun.com/exdb/publis/pdf/hadsell-chopra-lecun-06.pdf
    """

    def __init__(self, margin=2.0):
        super(ContrastiveLoss, self).__init__()
        self.margin = margin

    def forward(self, output1, output2, label):
        euclidean_distance = F.pairwise_distance(output1, output2, keepdim=True)
        loss_contrastive = torch.mean((1 - label) * torch.pow(euclidean_distance, 2) +
                                      (label) * torch.pow(torch.clamp(self.margin - euclidean_distance, min=0.0), 2))
        return loss_contrastive


train_dataloader = DataLoader(PairDataset(), shuffle=True, num_workers=0, batch_size=16)
net = SiameseNetwork()
criterion = ContrastiveLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=0.0005)
counter = []
loss_history = []
iteration_number = 0

for epoch in range(0, 3):
    for i, data in enumerate(train_dataloader, 0):
        img0, img1, label = data
        optimizer.zero_grad()
        output1, output2 = net(img0, img1)
        loss_contrastive = criterion(output1, output2, label)
        loss_contrastive.backward()
        optimizer.step()
        if i % 2 == 0:
            print("Epoch number {}\n Current loss {}\n".format(epoch, loss_contrastive.item()))
            iteration_number += 2
            counter.append(iteration_number)
            loss_history.append(loss_contrastive.item())

net.eval()
dataiter = iter(train_dataloader)
x0, _, _ = next(dataiter)
for i in range(2):
    _, x1, label2 = next(dataiter)
    output1, output2 = net(x0, x1)
    euclidean_distance = F.pairwise_distance(output1, output2)
    print('Dissimilarity: {:.2f}'.format(euclidean_distance[0].item()))
