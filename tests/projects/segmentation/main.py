import random

import numpy as np
import torch
from torch.utils.data import DataLoader

from seg.config import Config
from seg.data import Circles
from seg.losses import ComboLoss
from seg.trainer import Trainer
from seg.unet import UNet


def seed_everything(seed: int):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed(seed)
    torch.backends.cudnn.deterministic = True


if __name__ == "__main__":
    cfg = Config()
    seed_everything(cfg.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    train_dl = DataLoader(Circles(16, seed=1), batch_size=cfg.batch_size, shuffle=True)
    val_dl = DataLoader(Circles(8, seed=2), batch_size=cfg.batch_size)
    trainer = Trainer(UNet(base=cfg.channels), ComboLoss(0.3), cfg, device)
    hist = trainer.fit(train_dl, val_dl)
    print(hist["val"][-1])
    trainer.model.eval()
    with torch.no_grad():
        x = torch.stack([val_dl.dataset[i]["image"] for i in range(2)]).to(device)
        print(torch.sigmoid(trainer.model(x)).mean().item())
