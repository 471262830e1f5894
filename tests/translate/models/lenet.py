"""LeNet-5 for 28x28 images, trained as in any first tutorial."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class LeNet(nn.Module):
    def __init__(self, num_classes=10):
        super(LeNet, self).__init__()
        self.conv1 = nn.Conv2d(1, 6, kernel_size=5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, num_classes)

    def forward(self, x):
        # halve the image: the window as a tuple
        x = F.max_pool2d(F.relu(self.conv1(x)), (2, 2))
        # and as one number
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = x.view(-1, self._features_per_image(x))
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        x = self.fc3(x)
        return F.log_softmax(x, dim=1)

    def _features_per_image(self, x):
        sizes = x.size()[1:]  # without the batch
        count = 1
        for s in sizes:
            count *= s
        return count
