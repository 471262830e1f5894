"""By hand, the whole network is channels-last, so that skips are joined on the last axis and pools are `nnx.max_pool`.
The conversion turns axes around each convolution, since a function of the file makes some of them.
"""

import jax.numpy as jnp
from flax import nnx


def double_conv(inputs, outputs, *, rngs: nnx.Rngs):
    return nnx.Sequential(
        nnx.Conv(inputs, outputs, (3, 3), padding=1, rngs=rngs),
        nnx.relu,
        nnx.Conv(outputs, outputs, (3, 3), padding=1, rngs=rngs),
        nnx.relu,
    )


class UNet(nnx.Module):
    def __init__(self, channels=3, classes=2, width=8, *, rngs: nnx.Rngs):
        self.down1 = double_conv(channels, width, rngs=rngs)
        self.down2 = double_conv(width, 2 * width, rngs=rngs)
        self.up = nnx.ConvTranspose(2 * width, width, (2, 2), strides=2, rngs=rngs)
        self.conv = double_conv(2 * width, width, rngs=rngs)
        self.head = nnx.Conv(width, classes, (1, 1), rngs=rngs)

    def __call__(self, images):
        skip = self.down1(images)
        x = self.down2(nnx.max_pool(skip, (2, 2), strides=(2, 2)))
        x = jnp.concatenate([skip, self.up(x)], axis=-1)
        return self.head(self.conv(x))
