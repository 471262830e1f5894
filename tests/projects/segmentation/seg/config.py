from dataclasses import dataclass


@dataclass
class Config:
    epochs: int = 2
    batch_size: int = 4
    lr: float = 0.01
    weight_decay: float = 1e-4
    channels: int = 4
    patience: int = 2
    seed: int = 1
    ckpt: str = "best.pt"
