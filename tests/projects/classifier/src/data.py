import numpy as np
import torch
from torch.utils.data import Dataset, DataLoader, random_split


class Blobs(Dataset):
    def __init__(self, n=80, classes=4, seed=0):
        rs = np.random.RandomState(seed)
        self.y = rs.randint(0, classes, size=n)
        protos = rs.randn(classes, 3, 8, 8)
        self.x = (protos[self.y] + 0.5 * rs.randn(n, 3, 8, 8)).astype(np.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i]), int(self.y[i])


def get_loaders(batch_size):
    ds = Blobs()
    n = int(0.8 * len(ds))
    tr, va = random_split(ds, [n, len(ds) - n], generator=torch.Generator().manual_seed(0))
    return (DataLoader(tr, batch_size=batch_size, shuffle=True, drop_last=True),
            DataLoader(va, batch_size=batch_size, shuffle=False))
