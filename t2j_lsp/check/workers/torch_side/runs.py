"""A torch program that is run with given arguments: calls, gradients, buffers, steps of training."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from t2j_lsp.check.inputs import RAISING, Arguments, map_values
from t2j_lsp.check.messages import Observations, Tape
from t2j_lsp.check.process.budget import TimeBudget
from t2j_lsp.check.program.digest import compact, digest
from t2j_lsp.check.protocol import Namespace, RawArray, leaves, plain
from t2j_lsp.check.requests import TorchRequest
from t2j_lsp.check.workers.serve import raised

from . import device as torch_device
from .adam import Adam
from .attributes import KeptAttributes
from .build import randomise, realise, to_array, to_tensor
from .random import recording

REST = 30
"""Calls in evaluation mode that take as long as all that is not left out: training here, and both modes in JAX."""


def set_state(model: nn.Module, state: dict[str, Any] | None, rng: np.random.Generator, wide: bool) -> None:
    """Loads ``state``, or makes one."""
    if state is None:
        randomise(model, rng)
    else:
        given = {name: to_tensor(array, wide) for name, array in state.items()}
        if renames_state(model):
            with torch.no_grad():
                for name, tensor in registered(model).items():
                    tensor.copy_(given[name])
            return
        own = model.state_dict()  # with the versions that some modules ask for
        own.update(given)
        model.load_state_dict(own)


def _put_back(model: nn.Module, name: str, buffer: torch.Tensor) -> None:
    """Gives a module the tensor again that was its buffer, where a call gave it another, of whatever shape."""
    holder, _, own = name.rpartition(".")
    buffers = model.get_submodule(holder)._buffers
    if own in buffers:
        buffers[own] = buffer


def renames_state(model: nn.Module) -> bool:
    """Whether a module has a ``state_dict`` of its own: its names need not be those of its attributes."""
    return any(type(m).state_dict is not nn.Module.state_dict for m in model.modules())


def registered(model: nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and persistent buffers by the names of the attributes that hold them."""
    tensors: dict[str, torch.Tensor] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        persistent = {n: b for n, b in module._buffers.items() if n not in module._non_persistent_buffers_set}
        for own, tensor in [*module._parameters.items(), *persistent.items()]:
            if tensor is not None:
                tensors[f"{name}.{own}" if name else own] = tensor
    return tensors


def state_of(model: Any) -> dict[str, Any]:
    """The state dict as arrays."""
    if not isinstance(model, nn.Module):
        return {}
    state = registered(model) if renames_state(model) else model.state_dict()
    return {k: compact(to_array(v)) for k, v in state.items() if isinstance(v, torch.Tensor)}


def differentiable(value: Any) -> bool:
    """Whether gradients with respect to a value exist."""
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def holds_host_values(output: Any) -> bool:
    """Whether numbers of Python's or NumPy's are among an output's: whoever made them waited for their values."""
    on_host: list[Any] = []

    def leaf(value: Any) -> Any:
        if isinstance(value, float | np.ndarray | np.generic) or type(value) is int:
            on_host.append(value)
        return to_array(value) if isinstance(value, torch.Tensor) else None

    plain(output, leaf)
    return bool(on_host)


@dataclass(frozen=True)
class Saved:
    """A module's state: parameters and buffers by name, and what its attributes hold."""

    tensors: dict[str, torch.Tensor]
    attributes: KeptAttributes
    buffers: dict[str, torch.Tensor]
    """The buffers themselves, which a call may replace."""


class Runs:
    """Calls of one model, each with fresh copies of the inputs and the same random draws."""

    def __init__(self, model: Any, namespace: Namespace, request: TorchRequest, rng: np.random.Generator) -> None:
        self.model = model
        self.namespace = namespace
        self.inputs = request.inputs
        self.budget = TimeBudget(request.seconds)
        self.wide: bool = request.wide
        self.seed: int = request.seed
        self.rng = rng
        self.cotangents: dict[str, Any] = dict(request.cotangents or {})
        self.tapes: dict[str, Tape] = {}
        self.uncontrolled: dict[str, bool] = {}
        self.varies = False
        self.fixed: set[int] = set()
        """Places of inputs that are called without gradients."""
        self.undifferentiable: set[int] = set()
        self.refilled: set[str] = set()
        """Inputs that the last call wrote to without gradients: theirs are then of the new values, not of the given."""
        self.on_host = False
        """Whether outputs hold Python numbers or NumPy arrays."""
        self.one_call = 0.0
        """Seconds of a call in evaluation mode."""

    def elements(self) -> int:
        """The number of elements of the largest input."""
        arrays = (item for _, item in leaves((self.inputs.args, self.inputs.kwargs)))
        return max((int(np.prod(a.shape)) for a in arrays if isinstance(a, np.ndarray | RawArray)), default=0)

    def call(self, mode: str, leaf_gradients: bool = False, seed: int = 0) -> tuple[Any, dict[str, torch.Tensor]]:
        """The output, and the float inputs as leaves of the graph, by their place among the arguments."""
        roots: dict[str, torch.Tensor] = {}
        given: dict[str, torch.Tensor] = {}
        counter = iter(range(100_000))

        def fresh(item: Any) -> Any:
            index = next(counter)
            if not differentiable(item) or not leaf_gradients or index in self.fixed:
                return item
            roots[f"input {index}"] = root = item.requires_grad_()
            # A leaf of the graph must not be written to in place; the program may do that.
            given[f"input {index}"] = clone = root.clone()
            return clone

        args = realise(self.inputs.args, self.namespace, self.wide)
        kwargs = realise(self.inputs.kwargs, self.namespace, self.wide)
        args, kwargs = map_values((args, kwargs), fresh)
        if isinstance(self.model, nn.Module):
            self.model.train(mode == "train")
        with recording(self.seed + seed) as tape:
            before = {name: clone.grad_fn for name, clone in given.items()}
            versions = _versions((args, kwargs)) if not isinstance(self.model, nn.Module) else []
            output = self.model(*args, **kwargs)
        if output is None:
            output = _filled(versions)
        self.tapes.setdefault(mode, tape.entries)
        returned = {id(item) for _, item in leaves(output)}
        written = {
            n for n, clone in given.items() if clone._version or id(clone) in returned and not _keeps(clone, roots[n])
        }
        self.refilled = {n for n in written if given[n].grad_fn is before[n]}
        return output, roots

    def differentiated(self, mode: str) -> tuple[Any, dict[str, torch.Tensor]]:
        """A call with gradients for every float input that admits them: a loss's class weights don't."""
        saved = self.save()
        try:
            return self.call(mode, leaf_gradients=True)
        except RuntimeError:
            count = len(leaves((self.inputs.args, self.inputs.kwargs)))
            for index in range(count):
                self.fixed = set(range(count)) - {index}
                self.restore(saved)
                try:
                    self.call(mode, leaf_gradients=True)
                except RuntimeError:
                    self.undifferentiable.add(index)
        self.fixed = self.undifferentiable
        self.restore(saved)
        return self.call(mode, leaf_gradients=True)

    def forward(self) -> Observations:
        """The outputs of two calls in evaluation mode, and the buffers afterwards; the state is put back."""
        self.check_control("eval")
        saved = self.save()
        values: Observations = {}
        start = time.monotonic()
        for again in ("", " again"):
            output = self.call("eval")[0]
            self.on_host |= holds_host_values(output)
            values[f"eval output{again}"] = plain(output, to_array)
        self.one_call = (time.monotonic() - start) / 2
        values |= self.buffers("buffer after eval")
        self.restore(saved)
        return values

    def others(self, variants: dict[str, Arguments]) -> Observations:
        """Outputs in evaluation mode for other inputs, by the name of the observation.

        Those that fail are left out, but where the user said that they would.
        """
        values: Observations = {}
        first, saved = self.inputs, self.save()
        for name, inputs in variants.items():
            if self.tapes["eval"] and not name.startswith(RAISING):
                continue  # Another shape would need other random numbers.
            if not name.startswith(RAISING) and not self.budget.affords(name, REST * self.one_call):
                continue
            self.inputs = inputs
            try:
                values[name] = plain(self.call("eval")[0], to_array)
            except Exception as error:  # noqa: BLE001 - the program may not take them
                if name.startswith(RAISING):
                    values[name] = raised(error, self.namespace["__file__"])
            self.restore(saved)
        self.inputs = first
        return values

    def check_control(self, mode: str) -> None:
        """Finds out whether the tape holds all randomness: the same tape must give the same output."""
        saved = self.save()
        outputs = []
        seeded = False
        for torch_seed, seed in ((1, 0), (2, 0), (2, 1)):
            if seed and not self.tapes[mode]:
                break
            torch_device.seed(torch_seed)
            outputs.append(plain(self.call(mode, seed=seed)[0], to_array))
            seeded |= torch.initial_seed() != torch_seed
            self.restore(saved)
        self.uncontrolled[mode] = not self.same(outputs[0], outputs[1])
        if self.tapes[mode] and not seeded:  # by itself it draws the same in every call
            self.varies |= not self.same(outputs[1], outputs[2])

    def same(self, one: Any, other: Any) -> bool:
        """Whether two outputs are equal. Some sums of a card's have no fixed order; what a draw changes is larger."""
        slack = (1e-10 if self.wide else 1e-4) if torch_device.on_card() else 0.0
        left, right = ([leaf for _, leaf in leaves(tree)] for tree in (one, other))
        return _same(left, right, slack)

    def save(self) -> Saved | None:
        """The state, with buffers that ``state_dict`` leaves out, and other attributes."""
        if not isinstance(self.model, nn.Module):
            return None
        buffers = dict(self.model.named_buffers())
        tensors = copy.deepcopy({**buffers, **dict(self.model.named_parameters())})
        return Saved(tensors, KeptAttributes(self.model), buffers)

    def restore(self, saved: Saved | None) -> None:
        """Puts a state back that was saved."""
        if saved is None:
            return
        for name, buffer in saved.buffers.items():
            _put_back(self.model, name, buffer)
        with torch.no_grad():
            for name, tensor in [*self.model.named_parameters(), *self.model.named_buffers()]:
                if name in saved.tensors and saved.tensors[name].shape == tensor.shape:
                    tensor.copy_(saved.tensors[name])
        saved.attributes.restore()

    def buffers(self, prefix: str) -> Observations:
        """The buffers now."""
        if not isinstance(self.model, nn.Module):
            return {}
        return {f"{prefix}: {name}": to_array(b) for name, b in self.model.named_buffers(remove_duplicate=False)}

    def loss(self, output: Any, squared: bool = False) -> torch.Tensor | None:
        """The output's inner product with fixed random cotangents; None if it holds no floats.

        Of a complex output, the real part counts once and the imaginary part half. With ``squared`` it is the mean
        squared distance from them: a loss that has a minimum, and whose gradient changes with the output.
        """
        tensors: list[torch.Tensor] = []

        def leaf(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                tensors.append(value)
                marks.append(np.zeros(0))
                return marks[-1]
            return None

        marks: list[Any] = []
        output_tensors = leaves(plain(output, leaf))
        places = set(map(id, marks))  # there may be arrays of NumPy's in the output, too
        paths = [path for path, item in output_tensors if id(item) in places]
        total: torch.Tensor | None = None
        for path, tensor in zip(paths, tensors, strict=False):
            if not differentiable(tensor):
                continue
            if path not in self.cotangents:
                self.cotangents[path] = self.rng.standard_normal(tuple(tensor.shape)).astype(np.float32)
                # What is no number has no gradient: torch's relu hands one on there, and JAX's doesn't.
                self.cotangents[path][torch.isnan(tensor.detach()).cpu().numpy()] = 0
            value = tensor.real + 0.5 * tensor.imag if tensor.is_complex() else tensor
            wanted = to_tensor(self.cotangents[path], self.wide).to(value)
            term = ((value - wanted) ** 2).mean() if squared else (wanted * value).sum()
            total = term if total is None else total + term
        return total

    def function_gradients(self) -> Observations:
        """Gradients of a function's inputs."""
        output, roots = self.differentiated("eval")
        gradients = self._backward(self.loss(output), list(roots.values()))
        named = zip(roots, gradients, strict=True)
        return {f"gradient of {n}": to_array(g) for n, g in named if n not in self.refilled}

    def _backward(self, loss: torch.Tensor | None, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        """Gradients of ``tensors``: zero where none reaches them, where a tensor's ``grad`` stays None."""
        for tensor in tensors:
            tensor.grad = None
        if loss is not None and loss.requires_grad:
            torch.autograd.backward([loss])
        return [t.grad if t.grad is not None else torch.zeros_like(t) for t in tensors]

    def steps(self, count: int) -> Observations:
        """Training steps: outputs and gradients of the first, the course of all, parameters at the end."""
        named = dict(self.model.named_parameters(remove_duplicate=False))
        trained = [p for p in self.model.parameters() if p.requires_grad]
        optimizer = Adam(trained) if count else None
        values: Observations = {}
        for step in range(1, max(count, 1) + 1):
            output, roots = self.differentiated("train")
            loss = self.loss(output)
            every = self._backward(loss, [*named.values(), *roots.values()])
            gradients = dict(zip(named, every, strict=False))
            if step == 1:
                values["train output"] = plain(output, to_array)
                values |= {f"gradient of parameter: {n}": digest(to_array(g)) for n, g in gradients.items()}
                inputs = zip(roots, every[len(named) :], strict=True)
                values |= {f"gradient of {n}": to_array(g) for n, g in inputs}
                values |= self.buffers("buffer after train")
            if count:
                values[f"step {step}: loss"] = np.asarray(0.0 if loss is None else loss.item())
                distinct = {id(named[n]): g for n, g in gradients.items()}.values()
                squares = sum(float((g.abs().double() ** 2).sum()) for g in distinct)
                values[f"step {step}: gradient norm"] = np.asarray(squares**0.5)
            if optimizer is not None:
                optimizer.step()
        if count:
            values |= {f"after {count} steps: parameter {n}": digest(to_array(p)) for n, p in named.items()}
            values |= self.buffers(f"after {count} steps: buffer")
        return values


def _versions(values: Any) -> list[tuple[torch.Tensor, int, torch.Tensor]]:
    """The tensors among arguments, how often each was written to, and what they hold."""
    versions: list[tuple[torch.Tensor, int, torch.Tensor]] = []

    def note(item: Any) -> Any:
        if isinstance(item, torch.Tensor):
            versions.append((item, item._version, item.detach().clone()))
        return item

    map_values(values, note)
    return versions


def _filled(versions: list[tuple[torch.Tensor, int, torch.Tensor]]) -> torch.Tensor | None:
    """What a function that returns nothing gives: the one tensor that it wrote into. In JAX it returns it.

    What is written through ``x.data`` isn't counted by ``x``.
    """
    written = [now for now, version, held in versions if now._version != version or not _keeps(now, held)]
    return written[0] if len(written) == 1 else None


def _keeps(now: torch.Tensor, held: torch.Tensor) -> bool:
    """Whether a tensor still holds what it held."""
    values = now.detach()
    return values.shape == held.shape and bool(((values == held) | (held != held)).all())


def _same(left: list[Any], right: list[Any], slack: float = 0.0) -> bool:
    """Whether two lists of leaves are equal; floats may differ by ``slack`` of an array's largest magnitude."""
    if len(left) != len(right):
        return False
    for a, b in zip(left, right, strict=True):
        a, b = getattr(a, "bits", a), getattr(b, "bits", b)
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            if a.shape != b.shape:
                return False
            if slack and a.dtype.kind in "fc":
                scale = float(np.abs(a[np.isfinite(a)]).max(initial=0.0))
                if not np.allclose(a, b, rtol=0.0, atol=slack * scale, equal_nan=True):
                    return False
            elif not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"):
                return False
        elif type(a) is not type(b) or (isinstance(a, float | int | str) and a != b):
            return False
    return True
