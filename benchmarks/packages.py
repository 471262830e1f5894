"""PyTorch packages of the package index, whose sources benchmarks read. None of them is installed or run."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

SUBJECTS = {
    "vision": (
        "torchvision", "timm", "vit-pytorch", "segmentation-models-pytorch", "ultralytics", "segment-anything",
        "lightly",
    ),
    "audio": ("torchaudio", "speechbrain", "openunmix", "asteroid"),
    "language": ("transformers", "x-transformers", "sentence-transformers", "fairseq2", "performer-pytorch"),
    "vision and language": ("open-clip-torch",),
    "graphs": ("torch-geometric", "dgl", "schnetpack", "torchmd-net"),
    "reinforcement learning": ("torchrl", "tianshou", "stable-baselines3"),
    "diffusion": ("diffusers", "denoising-diffusion-pytorch"),
    "time series": ("pytorch-forecasting", "darts", "neuralforecast"),
    "tables": ("pytorch-tabnet",),
    "science": ("deepxde", "neuraloperator", "torchdiffeq", "torchphysics", "e3nn"),
    "probability": ("gpytorch", "botorch", "pyro-ppl"),
    "metrics": ("torchmetrics", "pytorch-msssim", "lpips", "pytorch-metric-learning"),
    "augmentation": ("kornia", "torchio"),
    "medicine": ("monai",),
    "explanations and privacy": ("captum", "opacus", "pytorch-ood"),
    "training frameworks": ("pytorch-lightning", "skorch", "accelerate", "pytorch-ignite"),
}  # fmt: skip
"""The packages, by subject; chosen by subject and by name, before any of them was read."""
FORMATS = (".whl", ".zip", ".tar.gz")


def fetched(name: str, folder: Path) -> Path:
    """The sources of a package below ``folder``, downloaded once. Raises OSError, saying why, where that can't be.

    They lie in a folder named ``site-packages``, one for each package, as they would where it is installed alone.
    """
    sources = folder / name / "site-packages"
    if sources.is_dir():
        return sources
    archives = folder / name / "archive"
    archives.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(archives), name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    complete = [path for path in archives.iterdir() if path.name.endswith(FORMATS)]
    if done.returncode or not complete:
        raise OSError(f"{name} could not be downloaded: {done.stderr.strip().splitlines()[-1:] or 'no sources'}")
    sources.mkdir()
    unpack(complete[0], sources)
    return sources


def unpack(archive: Path, folder: Path) -> None:
    """Write the Python files of an archive below a folder; of a source archive, what stands below its one folder."""
    if archive.name.endswith(".tar.gz"):
        with tarfile.open(archive) as tar:
            for member in tar.getmembers():
                inside = PurePosixPath(*PurePosixPath(member.name).parts[1:])
                stream = tar.extractfile(member) if member.isfile() and inside.suffix == ".py" else None
                if stream is not None:
                    _write(folder, inside, stream.read())
        return
    with zipfile.ZipFile(archive) as packed:
        for name in packed.namelist():
            if name.endswith(".py"):
                _write(folder, PurePosixPath(name), packed.read(name))


def _write(folder: Path, inside: PurePosixPath, data: bytes) -> None:
    if inside.is_absolute() or ".." in inside.parts:
        return
    path = folder / inside
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
