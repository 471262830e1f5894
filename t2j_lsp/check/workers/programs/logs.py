"""What a program logs to TensorBoard. The writers of both packages are stood in for, so neither has to be installed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np

from t2j_lsp.check.messages import Logged

from .recorder import OutputRecorder

WRITERS = ("torch.utils.tensorboard", "tensorboardX")
_MAX_NUMBERS = 100_000
"""Numbers kept under one name."""


class Log:
    """The values that a program logs, by their names. ``arrays`` says what a framework's own value holds."""

    def __init__(self, recorder: OutputRecorder, arrays: Callable[[Any], Any]) -> None:
        self.recorder = recorder
        self.arrays = arrays
        self.writers = 0
        self.logged: dict[str, Logged] = {}

    def add(self, writer: int, tag: str, value: Any, step: Any, ordered: bool = True) -> None:
        """Notes a value. Of one that is not ``ordered`` only the distribution counts."""
        array = np.asarray(self.array(value), np.float64).ravel()
        name = tag if writer == 1 else f"{tag} of writer {writer}"
        one = self.logged.setdefault(name, Logged(*self.recorder.place()))
        one.steps.append(None if step is None else float(self.array(step).reshape(())))
        one.sizes.append(array.size)
        if len(one.values) + array.size <= _MAX_NUMBERS:
            one.values += (array if ordered else np.sort(array)).tolist()

    def array(self, value: Any) -> np.ndarray[Any, Any]:
        """The array that the libraries take a value for. Raises what they do for what they don't take."""
        if isinstance(value, np.ndarray) or np.isscalar(value):
            return np.asarray(value)
        array = np.asarray(value) if isinstance(value, list) else self.arrays(value)
        if array is None:
            raise NotImplementedError(f"Got {type(value)}, but expected numpy array or torch tensor.")
        return np.asarray(array)


@contextmanager
def logging_here(log: Log) -> Iterator[None]:
    """In this context, the writers of TensorBoard's files note what they are given, and write none."""
    with ExitStack() as stack:
        for name in WRITERS:
            module = ModuleType(name)
            module.__dict__["SummaryWriter"] = _writer(log, "logdir" if name == WRITERS[1] else "log_dir")
            for one in (name, f"{name}.writer"):
                stack.callback(_put_back, one, sys.modules.get(one))
                sys.modules[one] = module
            parent, _, last = name.rpartition(".")
            if parent in sys.modules:
                stack.enter_context(mock.patch.object(sys.modules[parent], last, module, create=True))
        yield


def _put_back(name: str, module: ModuleType | None) -> None:
    """Makes a name mean the module again that it meant, or none."""
    if module is None:
        sys.modules.pop(name, None)
    else:
        sys.modules[name] = module


def _writer(log: Log, folder: str) -> type:
    """The class of a writer whose folder has this name as a parameter and attribute."""

    class SummaryWriter:
        def __init__(self, log_dir: str | None = None, comment: str = "", *_: Any, **options: Any) -> None:
            log.writers += 1
            self._number = log.writers
            log_dir = options.get("logdir", log_dir)
            setattr(self, folder, f"runs/{comment}" if log_dir is None else str(log_dir))

        def __enter__(self) -> SummaryWriter:
            return self

        def __exit__(self, *_: Any) -> None:
            pass

        def __getattr__(self, name: str) -> Callable[..., None]:
            """Charts, meshes and the rest, of which nothing is compared."""
            if not name.startswith("add_"):
                raise AttributeError(f"'SummaryWriter' object has no attribute {name!r}")
            return lambda *_, **__: None

        def get_logdir(self) -> Any:
            return getattr(self, folder)

        def flush(self) -> None:
            pass

        def close(self) -> None:
            pass

        def add_scalar(self, tag: str, scalar_value: Any, global_step: Any = None, *_: Any, **__: Any) -> None:
            value = log.array(scalar_value)
            log.add(self._number, tag, value.reshape(()), global_step)

        def add_scalars(
            self, main_tag: str, tag_scalar_dict: Mapping[str, Any], global_step: Any = None, *_: Any, **__: Any
        ) -> None:
            for tag, value in tag_scalar_dict.items():
                self.add_scalar(f"{main_tag}/{tag}", value, global_step)

        def add_histogram(self, tag: str, values: Any, global_step: Any = None, *_: Any, **__: Any) -> None:
            log.add(self._number, tag, values, global_step, ordered=False)

        def add_image(self, tag: str, img_tensor: Any, global_step: Any = None, *_: Any, **__: Any) -> None:
            log.add(self._number, tag, img_tensor, global_step)

        add_images = add_image

        def add_text(self, tag: str, text_string: str, global_step: Any = None, *_: Any, **__: Any) -> None:
            log.recorder.add(f"{tag}: {text_string}\n")

        def add_figure(self, tag: str, figure: Any, global_step: Any = None, *_: Any, **__: Any) -> None:
            log.add(self._number, tag, [], global_step)

        def add_hparams(self, hparam_dict: Any, metric_dict: Mapping[str, Any], *_: Any, **__: Any) -> None:
            for tag, value in metric_dict.items():
                self.add_scalar(tag, value)

    return SummaryWriter
