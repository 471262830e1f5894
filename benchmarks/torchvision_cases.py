"""The torchvision models that the benchmark converts: the smallest configuration of each that has every kind of block.

``make`` is PyTorch code that is evaluated in the model's own file; ``p`` in it is the rate of every dropout and of
stochastic depth. ``divisor`` narrows the channel counts that are written into the file (``narrowed``).
"""

from __future__ import annotations

from dataclasses import dataclass

from .torchvision_sources import PACKAGE, narrowed

BUILD = "t2j_benchmark_model"


MODEL = "CheckedModel"
_WRAPPED = '''

# t2j: args=(0.1,), x=f32{shape}
class {model}(nn.Module):
    """One configuration of the file's model."""

    def __init__(self, p: float):
        super().__init__()
        self.net = {build}(p)

    def forward(self, x: torch.Tensor):
        return self.net(x)
'''


@dataclass(frozen=True)
class Case:
    """One model of a family, its input's shape (N, C, H, W), and how to make it."""

    family: str
    variant: str
    make: str
    shape: tuple[int, ...]
    divisor: int = 1

    @property
    def file(self) -> str:
        """The file's path below the folder that holds the package."""
        return f"{PACKAGE}/models/{self.family}.py"

    @property
    def label(self) -> str:
        return f"{self.family} {self.variant}".rstrip()

    def text(self, original: str) -> str:
        """The model's file with a function ``t2j_benchmark_model(p)`` at its end, which is converted as the rest is."""
        return f"{narrowed(original, self.divisor)}\n\ndef {BUILD}(p: float) -> nn.Module:\n    return {self.make}\n"

    def with_model(self, original: str) -> str:
        """The same with the model as a class at the end, whose arguments and input a comment gives to the check."""
        return self.text(original) + _WRAPPED.format(shape=list(self.shape), model=MODEL, build=BUILD)


CASES: tuple[Case, ...] = (
    # Adaptive pooling meets 3 x 2 features here, and 10 x 9 in VGG.
    Case("alexnet", "", "AlexNet(num_classes=3, dropout=p)", (2, 3, 127, 95), divisor=32),
    Case(
        "vgg",
        "",
        'VGG(make_layers([6, "M", 8, 8, "M", 16]), num_classes=3, dropout=p)',
        (2, 3, 40, 36),
        divisor=32,
    ),
    Case(
        "vgg",
        "batch norm",
        'VGG(make_layers([6, "M", 16], batch_norm=True), num_classes=3, dropout=p)',
        (2, 3, 20, 18),
        divisor=32,
    ),
    Case("resnet", "BasicBlock", "ResNet(BasicBlock, [2, 1, 1, 1], num_classes=3)", (2, 3, 64, 48), divisor=8),
    Case(
        "resnet",
        "Bottleneck",
        "ResNet(Bottleneck, [2, 1, 1, 2], num_classes=3, zero_init_residual=True, groups=2, width_per_group=64, "
        "replace_stride_with_dilation=[False, False, True])",
        (2, 3, 48, 64),
        divisor=8,
    ),
    Case("squeezenet", "1_0", 'SqueezeNet("1_0", num_classes=3, dropout=p)', (2, 3, 49, 41), divisor=8),
    Case("squeezenet", "1_1", 'SqueezeNet("1_1", num_classes=3, dropout=p)', (2, 3, 49, 41), divisor=4),
    Case(
        "densenet",
        "",
        "DenseNet(growth_rate=4, block_config=(2, 2, 1), num_init_features=6, bn_size=2, drop_rate=p, num_classes=3)",
        (2, 3, 64, 48),
    ),
    Case(
        "googlenet",
        "",
        "GoogLeNet(num_classes=3, transform_input=True, init_weights=True, dropout=p, dropout_aux=p)",
        (2, 3, 64, 96),
        divisor=8,
    ),
    # 299 is the smallest input that leaves the auxiliary classifier its 5 x 5 features.
    Case(
        "inception",
        "",
        "Inception3(num_classes=3, transform_input=True, init_weights=True, dropout=p)",
        (2, 3, 299, 299),
        divisor=16,
    ),
    Case(
        "mobilenetv2",
        "",
        "MobileNetV2(num_classes=3, width_mult=0.5, inverted_residual_setting=[[1, 16, 1, 1], [6, 24, 2, 2]], "
        "dropout=p)",
        (2, 3, 32, 24),
    ),
    Case(
        "mobilenetv3",
        "",
        "MobileNetV3([InvertedResidualConfig(8, 3, 16, 8, True, 'RE', 1, 1, 1.0), "
        "InvertedResidualConfig(8, 5, 24, 16, True, 'HS', 2, 1, 1.0), "
        "InvertedResidualConfig(16, 3, 32, 16, False, 'HS', 1, 2, 1.0)], last_channel=20, num_classes=3, dropout=p)",
        (2, 3, 32, 24),
    ),
    Case("shufflenetv2", "", "ShuffleNetV2([2, 1, 2], [8, 12, 16, 24, 32], num_classes=3)", (2, 3, 64, 48)),
    Case("mnasnet", "", "MNASNet(0.25, num_classes=3, dropout=p)", (2, 3, 64, 48)),
    Case(
        "efficientnet",
        "",
        "EfficientNet([MBConvConfig(1, 3, 1, 8, 8, 1), MBConvConfig(6, 5, 2, 8, 16, 2), "
        "FusedMBConvConfig(1, 3, 1, 16, 16, 2), FusedMBConvConfig(4, 3, 2, 16, 24, 1)], "
        "dropout=p, stochastic_depth_prob=p, num_classes=3, last_channel=32)",
        (2, 3, 32, 24),
    ),
    Case(
        "regnet",
        "y",
        "RegNet(BlockParams.from_init_params(depth=4, w_0=16, w_a=16.0, w_m=2.0, group_width=8, se_ratio=0.25), "
        "num_classes=3, stem_width=8)",
        (2, 3, 48, 32),
    ),
    Case(
        "regnet",
        "x",
        "RegNet(BlockParams(depths=[1, 2], widths=[8, 12], group_widths=[4, 4], bottleneck_multipliers=[1.0, 1.0], "
        "strides=[2, 2]), num_classes=3, stem_width=8, norm_layer=partial(nn.BatchNorm2d, eps=1e-05, momentum=0.1))",
        (2, 3, 32, 24),
    ),
    Case(
        "convnext",
        "",
        "ConvNeXt([CNBlockConfig(8, 12, 2), CNBlockConfig(12, None, 1)], stochastic_depth_prob=p, num_classes=3)",
        (2, 3, 32, 40),
    ),
    Case(
        "vision_transformer",
        "",
        "VisionTransformer(image_size=12, patch_size=4, num_layers=2, num_heads=2, hidden_dim=12, mlp_dim=20, "
        "dropout=p, attention_dropout=p, num_classes=3, representation_size=7)",
        (2, 3, 12, 12),
    ),
    Case(
        "vision_transformer",
        "conv stem",
        "VisionTransformer(image_size=12, patch_size=4, num_layers=1, num_heads=3, hidden_dim=12, mlp_dim=20, "
        "dropout=p, num_classes=3, conv_stem_configs=[ConvStemConfig(4, 3, 2), ConvStemConfig(8, 3, 2)])",
        (2, 3, 12, 12),
    ),
    # 7 x 10 patches: windows of 3 x 2 need padding, and so does merging.
    Case(
        "swin_transformer",
        "v1",
        "SwinTransformer([2, 2], embed_dim=8, depths=[2, 2], num_heads=[2, 4], window_size=[3, 2], dropout=p, "
        "attention_dropout=p, stochastic_depth_prob=p, num_classes=3)",
        (2, 3, 14, 20),
    ),
    Case(
        "swin_transformer",
        "v2",
        "SwinTransformer([2, 2], embed_dim=8, depths=[2, 2], num_heads=[2, 4], window_size=[3, 2], dropout=p, "
        "attention_dropout=p, stochastic_depth_prob=p, num_classes=3, block=SwinTransformerBlockV2, "
        "downsample_layer=PatchMergingV2)",
        (2, 3, 14, 20),
    ),
    Case(
        "maxvit",
        "",
        "MaxVit(input_size=(32, 32), stem_channels=8, partition_size=2, block_channels=[8, 16], block_layers=[1, 2], "
        "head_dim=4, stochastic_depth_prob=p, mlp_dropout=p, attention_dropout=p, num_classes=3)",
        (2, 3, 32, 32),
    ),
)

FAMILIES: tuple[str, ...] = tuple(dict.fromkeys(case.family for case in CASES))
