"""By hand, images are channels-last from the data on, and the running variance is Flax's biased one. The conversion
keeps PyTorch's axes at each module's border, and the unbiased variance, which costs a class `BatchNorm`.
"""

import jax
from flax import nnx


class Block(nnx.Module):
    def __init__(self, inputs, outputs, stride=1, *, rngs: nnx.Rngs):
        self.conv1 = nnx.Conv(inputs, outputs, (3, 3), strides=stride, padding=1, use_bias=False, rngs=rngs)
        self.bn1 = nnx.BatchNorm(outputs, momentum=0.9, rngs=rngs)
        self.conv2 = nnx.Conv(outputs, outputs, (3, 3), padding=1, use_bias=False, rngs=rngs)
        self.bn2 = nnx.BatchNorm(outputs, momentum=0.9, rngs=rngs)
        self.shortcut = nnx.Conv(inputs, outputs, (1, 1), strides=stride, rngs=rngs)

    def __call__(self, x):
        out = jax.nn.relu(self.bn1(self.conv1(x)))
        return jax.nn.relu(self.bn2(self.conv2(out)) + self.shortcut(x))


class ResNet(nnx.Module):
    def __init__(self, classes=10, *, rngs: nnx.Rngs):
        self.stem = nnx.Conv(3, 8, (3, 3), padding=1, rngs=rngs)
        self.block1 = Block(8, 8, rngs=rngs)
        self.block2 = Block(8, 16, stride=2, rngs=rngs)
        self.head = nnx.Linear(16, classes, rngs=rngs)

    def __call__(self, images):
        x = self.block2(self.block1(self.stem(images)))
        return self.head(x.mean(axis=(1, 2)))
