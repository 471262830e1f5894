"""What a worker may read: its interpreter and packages, the system's libraries, and folders that are named to it."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2j_lsp.check.program.project import is_too_wide

_SYSTEM = (
    "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/nix/store", "/gnu/store", "/etc/ld.so.cache",
    "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/alternatives", "/etc/localtime",
    "/etc/timezone", "/etc/os-release", "/etc/nsswitch.conf", "/etc/ssl/openssl.cnf", "/etc/pki/tls/openssl.cnf",
    "/etc/crypto-policies",
)  # fmt: skip
"""The system's programs and libraries, and what its loader and its C library read to find them."""
_KERNEL = (
    "/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/kernel/mm", "/proc/cpuinfo", "/proc/meminfo",
    "/proc/stat", "/proc/vmstat", "/proc/loadavg", "/proc/uptime", "/proc/version", "/proc/filesystems", "/proc/sys",
)  # fmt: skip
"""What libraries ask to size their thread pools and memory."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
"""Devices that every process may have."""
_GPU = ("/sys", "/proc/driver", "/proc/devices", "/proc/modules", "/run/opengl-driver", "/run/nvidia-persistenced")
_GPU_DEVICES = ("/dev/nvidia*", "/dev/dri", "/dev/kfd", "/dev/dxg")
_NAMED = ("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "ROCM_PATH")


@dataclass(frozen=True)
class Folders:
    """Paths, as they are named. ``devices`` are read and written."""

    readable: tuple[str, ...]
    writable: tuple[str, ...]
    devices: tuple[str, ...]
    home: str
    """The user's home directory. It is never readable as a whole."""
    gpu: bool = False


def folders_of(named: Iterable[str], writable: Iterable[str], home: str, gpu: bool) -> Folders:
    """What a worker that runs in this interpreter sees, beside the folders that are ``named``."""
    needed = [path for path in (*_interpreter(), *_libraries()) if not is_too_wide(path, home)]
    devices = [*DEVICES, *(path for pattern in _GPU_DEVICES if gpu for path in glob.glob(pattern))]
    readable = [*_SYSTEM, *glob.glob("/etc/python3*"), *_KERNEL, *(_GPU if gpu else ()), *needed, *named]
    return Folders(
        tuple(dict.fromkeys(path for path in readable if os.path.lexists(path))),
        tuple(writable),
        tuple(path for path in devices if os.path.exists(path)),
        home,
        gpu,
    )


def _interpreter() -> list[str]:
    """Where this interpreter, its packages, those installed in place, and t2j's own lie."""
    prefixes = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, sys.executable]
    own = str(Path(__file__).resolve().parents[3])
    paths = [*prefixes, *sys.path, *_installed_in_place(), own]
    return [path for path in paths if os.path.isabs(path) and os.path.exists(path)]


def _installed_in_place() -> list[str]:
    """Folders of editable installs that are not on ``sys.path``: their import hooks map names to them."""
    hooks = [module for name, module in list(sys.modules.items()) if "editable" in name.lower()]
    places: list[str] = []
    for one in (*hooks, *sys.meta_path, *map(type, sys.meta_path)):
        for name in ("MAPPING", "NAMESPACES", "_redirections", "known_source_files", "_top_level_modules"):
            places += _paths(getattr(one, name, None))
    return [path if os.path.isdir(path) else os.path.dirname(path) for path in places]


def _paths(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value] if os.path.isabs(value) else []
    if isinstance(value, dict):
        value = list(value.values())
    return [path for item in value for path in _paths(item)] if isinstance(value, list | tuple | set) else []


def _libraries() -> list[str]:
    """Folders of shared libraries that the environment or the loader's configuration names."""
    paths = [path for name in _NAMED for path in os.environ.get(name, "").split(os.pathsep) if os.path.isabs(path)]
    for file in glob.glob("/etc/ld.so.conf.d/*.conf"):
        try:
            paths += [line.strip() for line in Path(file).read_text().splitlines() if line.startswith("/")]
        except (OSError, UnicodeDecodeError):
            continue
    return [path for path in paths if os.path.isdir(path)]
