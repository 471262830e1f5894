"""`torch.optim.LBFGS`: its steps, its line search, and when it stops.

Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.LBFGS.html; Nocedal and Wright, Numerical
Optimization, algorithms 7.4 (the two loops) and 3.5 and 3.6 (the line search).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.flatten_util import ravel_pytree


class Trial(NamedTuple):
    """A point of a line search: how far it is, and the loss, its gradient, and its slope along the line."""

    distance: float
    loss: float
    grads: Any
    slope: float


class LBFGS:
    """`torch.optim.LBFGS` of a module's parameters: one `step` evaluates the loss and its gradient several times.

    optax.lbfgs updates once for each gradient, and its line searches are others.
    """

    def __init__(
        self,
        model: Any,
        learning_rate: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ):
        self.trained, self.learning_rate, self.max_iter = model, learning_rate, max_iter
        self.max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        self.tolerance_grad, self.tolerance_change = tolerance_grad, tolerance_change
        self.history_size, self.line_search_fn = history_size, line_search_fn
        self.history: list[Any] = []
        self.scale, self.distance = 1.0, 0.0
        self.grads = self.direction = jnp.zeros(0)

    def step(self, closure: Callable[[], tuple[jax.Array, Any]]) -> jax.Array:
        """Takes up to `max_iter` steps and gives the loss before them; `closure()` gives the loss and its gradients."""
        first, tree = closure()
        loss, grads, evaluations = float(first), ravel_pytree(tree)[0], 1
        if jnp.abs(grads).max() <= self.tolerance_grad:
            return first
        for iteration in range(1, self.max_iter + 1):
            self.turn(grads)
            before, slope = loss, float(grads @ self.direction)
            if slope > -self.tolerance_change:
                break
            params, unravel = ravel_pytree(nnx.state(self.trained, nnx.Param))
            if self.line_search_fn is not None:

                def evaluate(distance: float, params: jax.Array = params, unravel: Any = unravel) -> Trial:
                    nnx.update(self.trained, unravel(params + distance * self.direction))
                    loss, tree = closure()
                    grads = ravel_pytree(tree)[0]
                    return Trial(distance, float(loss), grads, float(grads @ self.direction))

                start = Trial(0.0, loss, grads, slope)
                size = float(jnp.abs(self.direction).max())
                limit = self.max_eval - evaluations
                end, evaluated = strong_wolfe(evaluate, start, self.distance, size, self.tolerance_change, limit)
                self.distance, loss, grads, _ = end
                evaluations += evaluated
            nnx.update(self.trained, unravel(params + self.distance * self.direction))
            if self.line_search_fn is None and iteration < self.max_iter:
                value, tree = closure()
                loss, grads = float(value), ravel_pytree(tree)[0]
                evaluations += 1
            if evaluations >= self.max_eval or jnp.abs(grads).max() <= self.tolerance_grad:
                break
            moved = self.distance * jnp.abs(self.direction).max()
            if moved <= self.tolerance_change or abs(loss - before) < self.tolerance_change:
                break
        return first

    def turn(self, grads: jax.Array) -> None:
        """Sets the direction, by these gradients and the steps so far, and how far to go first."""
        if self.direction.size == 0:
            total = float(jnp.abs(grads).sum())
            self.grads, self.direction = grads, -grads
            self.distance = min(1.0, 1 / total) * self.learning_rate
            return
        change, step = grads - self.grads, self.direction * self.distance
        curvature = float(change @ step)
        if curvature > 1e-10:
            self.history = [*self.history, (step, change, 1 / curvature)][-self.history_size :]
            self.scale = curvature / float(change @ change)
        direction, shares = -grads, []
        for step, change, rho in reversed(self.history):
            shares.append(rho * (step @ direction))
            direction -= shares[-1] * change
        direction *= self.scale
        for step, change, rho in self.history:
            direction += (shares.pop() - rho * (change @ direction)) * step
        self.grads, self.direction, self.distance = grads, direction, self.learning_rate


def strong_wolfe(
    evaluate: Callable[[float], Trial],
    start: Trial,
    distance: float,
    size: float,
    tolerance_change: float,
    limit: int,
) -> tuple[Trial, int]:
    """A point with the strong Wolfe conditions (c1 = 1e-4, c2 = 0.9), and how often the loss was evaluated for it.

    `size` is the largest element of the direction. After `limit` rounds the best end of the bracket is taken.
    """

    def too_high(trial: Trial) -> bool:
        return trial.loss > start.loss + 1e-4 * trial.distance * start.slope

    def is_flat(trial: Trial) -> bool:
        return abs(trial.slope) <= -0.9 * start.slope

    previous, trial = start, evaluate(distance)
    rounds = 0
    while rounds < limit:
        if too_high(trial) or rounds > 1 and trial.loss >= previous.loss:
            break
        if is_flat(trial):
            return trial, rounds + 1
        if trial.slope >= 0:
            break
        bounds = trial.distance + 0.01 * (trial.distance - previous.distance), trial.distance * 10
        previous, trial = trial, evaluate(cubic_minimum(previous, trial, bounds))
        rounds += 1
    else:
        previous = start
    low, high = (previous, trial) if previous.loss <= trial.loss else (trial, previous)
    first_is_low = low is previous
    evaluations, stalled = rounds + 1, False
    while rounds < limit and not abs(high.distance - low.distance) * size < tolerance_change:
        near, far = sorted((low.distance, high.distance))
        distance = cubic_minimum(low, high, (near, far))
        margin = 0.1 * (far - near)
        at_the_edge = min(far - distance, distance - near) < margin
        if at_the_edge and (stalled or distance >= far or distance <= near):
            distance = far - margin if abs(distance - far) < abs(distance - near) else near + margin
            at_the_edge = False
        stalled = at_the_edge
        trial = evaluate(distance)
        evaluations, rounds = evaluations + 1, rounds + 1
        if too_high(trial) or trial.loss >= low.loss:
            high = trial
            if not (low.loss <= high.loss if first_is_low else low.loss < high.loss):
                low, high, first_is_low = high, low, not first_is_low
            continue
        if is_flat(trial):
            return trial, evaluations
        if trial.slope * (high.distance - low.distance) >= 0:
            high = low
        low = trial
    return low, evaluations


def cubic_minimum(first: Trial, second: Trial, bounds: tuple[float, float]) -> float:
    """Where the cubic through two losses and slopes is least, inside of some bounds; their middle if it has no minimum.

    Source: Nocedal and Wright, equation 3.59.
    """
    if first.distance > second.distance:
        first, second = second, first
    with np.errstate(divide="ignore", invalid="ignore"):
        width = np.float64(second.distance - first.distance)
        mean = first.slope + second.slope - 3 * (second.loss - first.loss) / width
        square = mean**2 - first.slope * second.slope
        if not square >= 0:
            return sum(bounds) / 2
        root = np.sqrt(square)
        place = second.distance - width * ((second.slope + root - mean) / (second.slope - first.slope + 2 * root))
    return float(min(max(place, bounds[0]), bounds[1]))
