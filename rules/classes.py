"""Classes of PyTorch where they are not called: in annotations, ``isinstance``, as bases; and what their values are."""

from __future__ import annotations

from dataclasses import replace

from t2j_lsp.translate.rule.facts import TENSOR, AnyModule, Object, Shape
from t2j_lsp.translate.rule.library import Trait, base_of, same_attribute, torch_class, trait

from ._arguments import LEGACY

# Tensors and modules --------------------------------------------------------------------------------------------

torch_class("torch.Tensor", annotation="jax.Array", fact=TENSOR)
for name in LEGACY:  # of their dtypes only that of masks is relied on
    said = "bool" if name == "BoolTensor" else None
    torch_class(f"torch.{name}", annotation="jax.Array", fact=replace(TENSOR, dtype=said))
torch_class("torch.nn.Parameter", annotation="nnx.Param", value="nnx.Param", fact=TENSOR)
torch_class("torch.nn.Module", annotation="nnx.Module", value="nnx.Module", fact=AnyModule())
for name, module in {"ModuleList": "nnx.List", "ModuleDict": "nnx.Dict", "Sequential": "nnx.Sequential"}.items():
    torch_class(f"torch.nn.{name}", annotation=module)
torch_class("torch.autograd.Function", value="Function")
trait(Trait.OWN_GRADIENT, "torch.autograd.Function")

DIMS = ("1d", "2d", "3d")
BATCH, INSTANCE = (tuple(f"torch.nn.{kind}Norm{dim}" for dim in DIMS) for kind in ("Batch", "Instance"))
CONVOLUTIONS = tuple(f"torch.nn.Conv{dim}" for dim in DIMS)
TRANSPOSED = tuple(f"torch.nn.ConvTranspose{dim}" for dim in DIMS)
base_of("torch.nn.modules.batchnorm._BatchNorm", BATCH, "nnx.BatchNorm")
base_of("torch.nn.modules.instancenorm._InstanceNorm", INSTANCE, "nnx.InstanceNorm")
base_of("torch.nn.modules.batchnorm._NormBase", [*BATCH, *INSTANCE], "nnx.BatchNorm", "nnx.InstanceNorm")
base_of("torch.nn.modules.conv._ConvNd", [*CONVOLUTIONS, *TRANSPOSED], "nnx.Conv", "nnx.ConvTranspose")
base_of("torch.nn.modules.conv._ConvTransposeNd", TRANSPOSED, "nnx.ConvTranspose")

# What goes with tensors -----------------------------------------------------------------------------------------

torch_class("torch.dtype", annotation="jnp.dtype", fact=Object("dtype"))
torch_class("torch.device", annotation="jax.Device", fact=Object("device"), makes="device")
torch_class("torch.Size", annotation="tuple[int, ...]", value="tuple", fact=Shape())
torch_class("torch.Generator", annotation="nnx.Rngs", fact=Object("generator"), makes="generator", called="generator")
trait(Trait.MEMBERS_HAVE_RULES, "torch.Generator")

# Training -------------------------------------------------------------------------------------------------------

torch_class(
    "torch.optim.Optimizer",
    annotation="nnx.Optimizer",
    fact=Object("optimizer"),
    derived="a custom optimizer; write it as an optax.GradientTransformation",
    called="optimizer",
)
for name in ("LRScheduler", "_LRScheduler"):
    torch_class(
        f"torch.optim.lr_scheduler.{name}",
        annotation="",
        fact=Object("scheduler"),
        derived="a custom schedule; write it as a function of the step for optax",
        called="scheduler" if name == "LRScheduler" else None,
    )
for name in ("torch.amp.GradScaler", "torch.cuda.amp.GradScaler", "torch.GradScaler"):
    of_methods = "scaler" if name == "torch.amp.GradScaler" else None
    torch_class(name, annotation="", fact=Object("scaler"), makes="scaler", called=of_methods)
LOADER = "torch.utils.data.DataLoader"
torch_class(LOADER, fact=Object("loader", LOADER), makes="loader")
torch_class("torch.utils.data.Dataset", fact=Object("dataset"))
for name in ("TensorDataset", "ConcatDataset", "ChainDataset", "StackDataset", "Subset"):
    torch_class(f"torch.utils.data.{name}", makes="dataset")
for name in ("MNIST", "FashionMNIST", "KMNIST", "EMNIST", "QMNIST"):
    torch_class(f"torchvision.datasets.{name}", makes="image dataset")
    for held in ("data", "targets", "train_data", "train_labels", "test_data", "test_labels"):
        same_attribute(f"torchvision.datasets.{name}.{held}")
