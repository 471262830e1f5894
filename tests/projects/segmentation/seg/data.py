import numpy as np
import torch
from torch.utils.data import Dataset


class Circles(Dataset):
    def __init__(self, n, size=16, seed=0):
        rng = np.random.default_rng(seed)
        self.items = []
        yy, xx = np.mgrid[:size, :size]
        for _ in range(n):
            cx, cy, r = rng.uniform(4, 12), rng.uniform(4, 12), rng.uniform(2, 5)
            mask = ((xx - cx) ** 2 + (yy - cy) ** 2 < r * r).astype("float32")
            img = mask + rng.normal(0, 0.3, mask.shape).astype("float32")
            self.items.append((img[None], mask[None]))

    def __getitem__(self, idx):
        img, mask = self.items[idx]
        return {"image": torch.tensor(img), "mask": torch.tensor(mask)}

    def __len__(self):
        return len(self.items)
