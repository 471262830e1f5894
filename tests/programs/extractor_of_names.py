import torch
from torch import nn

class FeatureExtractor:
    def __init__(self, model, layers):
        self.model = model
        self.features = {name: None for name in layers}
        self.handles = []
        for name in layers:
            layer = dict(model.named_modules())[name]
            self.handles.append(layer.register_forward_hook(self.save(name)))

    def save(self, name):
        def fn(module, inputs, output):
            self.features[name] = output
        return fn

    def __call__(self, x):
        self.model(x)
        return self.features

    def close(self):
        for h in self.handles:
            h.remove()

torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 5, 3), nn.Flatten(), nn.Linear(5 * 16, 2))
net.eval()
ext = FeatureExtractor(net, ['0', '2'])
x = torch.randn(2, 3, 8, 8)
for k, v in ext(x).items():
    print(k, tuple(v.shape), v.mean().item())
ext.close()
