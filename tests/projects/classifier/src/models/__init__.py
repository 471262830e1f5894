from .net import ConvNet
from .mlp import MLP

MODELS = {"conv": ConvNet, "mlp": MLP}


def build_model(name, **kw):
    if name not in MODELS:
        raise ValueError(f"unknown model {name}")
    return MODELS[name](**kw)
