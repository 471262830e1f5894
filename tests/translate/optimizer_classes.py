"""Classes of optimizers as people write them, for tests: each the text of one class."""

from __future__ import annotations

LION = '''\
class Lion(Optimizer):
    """The sign of an interpolated momentum."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        if not 0.0 <= lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 <= betas[0] < 1.0:
            raise ValueError(f"Invalid beta: {betas[0]}")
        defaults = dict(lr=lr, betas=betas, weight_decay=weight_decay)
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                # decoupled weight decay
                p.data.mul_(1 - group["lr"] * group["weight_decay"])
                grad = p.grad
                state = self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p)
                exp_avg = state["exp_avg"]
                beta1, beta2 = group["betas"]
                update = exp_avg * beta1 + grad * (1 - beta1)
                p.add_(update.sign_(), alpha=-group["lr"])
                exp_avg.mul_(beta2).add_(grad, alpha=1 - beta2)
        return loss
'''

MOMENTUM = """\
class Momentum(Optimizer):
    def __init__(self, params, lr=required, momentum=0, dampening=0, weight_decay=0, nesterov=False):
        if lr is not required and lr < 0.0:
            raise ValueError("Invalid learning rate: {}".format(lr))
        defaults = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
                    "nesterov": nesterov}
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super(Momentum, self).__init__(params, defaults)

    def __setstate__(self, state):
        super(Momentum, self).__setstate__(state)
        for group in self.param_groups:
            group.setdefault("nesterov", False)

    def step(self, closure=None):
        loss = None
        if closure is not None:
            loss = closure()
        for group in self.param_groups:
            weight_decay = group["weight_decay"]
            momentum = group["momentum"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                d_p = p.grad.data
                if weight_decay != 0:
                    d_p.add_(p.data, alpha=weight_decay)
                if momentum != 0:
                    param_state = self.state[p]
                    if "momentum_buffer" not in param_state:
                        buf = param_state["momentum_buffer"] = torch.clone(d_p).detach()
                    else:
                        buf = param_state["momentum_buffer"]
                        buf.mul_(momentum).add_(d_p, alpha=1 - group["dampening"])
                    d_p = d_p.add(buf, alpha=momentum) if group["nesterov"] else buf
                p.data.add_(d_p, alpha=-group["lr"])
        return loss
"""

ADAM = """\
class MyAdam(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False):
        defaults = dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad)
        super().__init__(params, defaults)

    def step(self, closure=None):
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    grad = p.grad.data
                    if grad.is_sparse:
                        raise RuntimeError("no sparse gradients")
                    amsgrad = group["amsgrad"]
                    state = self.state[p]
                    if not state:
                        state["step"] = 0
                        state["exp_avg"] = torch.zeros_like(p.data)
                        state["exp_avg_sq"] = torch.zeros_like(p.data)
                        if amsgrad:
                            state["max_exp_avg_sq"] = torch.zeros_like(p.data)
                    m, v = state["exp_avg"], state["exp_avg_sq"]
                    if amsgrad:
                        largest = state["max_exp_avg_sq"]
                    beta1, beta2 = group["betas"]
                    state["step"] += 1
                    t = state["step"]
                    if group["weight_decay"] != 0:
                        grad = grad.add(p.data, alpha=group["weight_decay"])
                    m.mul_(beta1).add_(grad, alpha=1 - beta1)
                    v.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
                    if amsgrad:
                        torch.max(largest, v, out=largest)
                        denom = largest.sqrt().add_(group["eps"])
                    else:
                        denom = v.sqrt().add_(group["eps"])
                    step_size = group["lr"] * math.sqrt(1 - beta2 ** t) / (1 - beta1 ** t)
                    p.data.addcdiv_(m, denom, value=-step_size)
        return loss
"""

RADAM = """\
class Rectified(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, degenerated_to_sgd=True):
        self.degenerated_to_sgd = degenerated_to_sgd
        defaults = dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
        super().__init__(params, defaults)

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad.data.float()
                p_data_fp32 = p.data.float()
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p_data_fp32)
                    state["exp_avg_sq"] = torch.zeros_like(p_data_fp32)
                else:
                    state["exp_avg"] = state["exp_avg"].type_as(p_data_fp32)
                    state["exp_avg_sq"] = state["exp_avg_sq"].type_as(p_data_fp32)
                exp_avg, exp_avg_sq = state["exp_avg"], state["exp_avg_sq"]
                beta1, beta2 = group["betas"]
                exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
                exp_avg.mul_(beta1).add_(grad, alpha=1 - beta1)
                state["step"] += 1
                beta2_t = beta2 ** state["step"]
                n_max = 2 / (1 - beta2) - 1
                n = n_max - 2 * state["step"] * beta2_t / (1 - beta2_t)
                if n >= 5:
                    step_size = math.sqrt((1 - beta2_t) * (n - 4) / (n_max - 4) * (n - 2) / n * n_max / (n_max - 2))
                    step_size = step_size / (1 - beta1 ** state["step"])
                elif self.degenerated_to_sgd:
                    step_size = 1.0 / (1 - beta1 ** state["step"])
                else:
                    step_size = -1
                if n >= 5:
                    if group["weight_decay"] != 0:
                        p_data_fp32.add_(p_data_fp32, alpha=-group["weight_decay"] * group["lr"])
                    denom = exp_avg_sq.sqrt().add_(group["eps"])
                    p_data_fp32.addcdiv_(exp_avg, denom, value=-step_size * group["lr"])
                    p.data.copy_(p_data_fp32)
                elif step_size > 0:
                    p_data_fp32.add_(exp_avg, alpha=-step_size * group["lr"])
                    p.data.copy_(p_data_fp32)
        return None
"""

LAMB = """\
class Lamb(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0, clamp=10.0, adam=False):
        defaults = dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
        self.clamp = clamp
        self.adam = adam
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            if "step" in group:
                group["step"] += 1
            else:
                group["step"] = 1
            bias_correction = 1 - beta1 ** group["step"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad
                state = self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p)
                    state["exp_avg_sq"] = torch.zeros_like(p)
                exp_avg, exp_avg_sq = state["exp_avg"], state["exp_avg_sq"]
                exp_avg.mul_(beta1).add_(grad, alpha=1 - beta1)
                exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
                weight_norm = p.data.pow(2).sum().sqrt().clamp(0, self.clamp)
                adam_step = (exp_avg / bias_correction) / exp_avg_sq.sqrt().add(group["eps"])
                if group["weight_decay"] != 0:
                    adam_step.add_(p.data, alpha=group["weight_decay"])
                adam_norm = adam_step.pow(2).sum().sqrt()
                if weight_norm == 0 or adam_norm == 0:
                    trust_ratio = 1
                else:
                    trust_ratio = weight_norm / adam_norm
                state["weight_norm"] = weight_norm
                if self.adam:
                    trust_ratio = 1
                p.data.add_(adam_step, alpha=-group["lr"] * trust_ratio)
"""

COUNTED = '''\
class Counted(Optimizer):
    """Nesterov with a warm-up and a count of its own."""

    def __init__(self, params, lr=0.1, warmup=5, rho=0.9):
        self.t = 0
        self.warmup = warmup
        super().__init__(params, dict(lr=lr, rho=rho))

    @torch.no_grad()
    def step(self):
        self.t += 1
        scale = min(1.0, self.t / self.warmup)
        for group in self.param_groups:
            lr = group["lr"] * scale
            for p in group["params"]:
                g = p.grad
                if g is None:
                    continue
                state = self.state[p]
                if "previous" not in state:
                    state["previous"] = p.clone()
                old = state["previous"]
                new = p - lr * g
                state["previous"] = new
                p.copy_(new + group["rho"] * (new - old))
'''

BUFFERED = '''\
class Buffered(Optimizer):
    """Keeps what is the same for all parameters, and writes into tensors inside of expressions."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), eps=1e-8):
        if isinstance(params, (list, tuple)) and len(params) > 0 and isinstance(params[0], dict):
            for param in params:
                if "betas" in param and param["betas"][0] != betas[0]:
                    param["buffer"] = [[None, None, None] for _ in range(10)]
        defaults = dict(lr=lr, betas=betas, eps=eps, buffer=[[None, None, None] for _ in range(10)])
        super().__init__(params, defaults)

    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad.data
                assert not grad.is_sparse, "no sparse gradients"
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["largest"] = 2 / (1 - beta2) - 1
                    state["exp_avg"] = torch.zeros_like(p.data)
                    state["exp_avg_sq"] = torch.zeros_like(p.data)
                exp_avg, exp_avg_sq = state["exp_avg"], state["exp_avg_sq"]
                exp_avg = exp_avg.mul_(beta1).add_(grad, alpha=1 - beta1)
                exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
                state["step"] += 1
                buffered = group["buffer"][int(state["step"] % 10)]
                if state["step"] == buffered[0]:
                    length, step_size = buffered[1], buffered[2]
                else:
                    buffered[0] = state["step"]
                    beta2_t = beta2 ** state["step"]
                    length = state["largest"] - 2 * state["step"] * beta2_t / (1 - beta2_t)
                    buffered[1] = length
                    step_size = math.sqrt(1 - beta2_t) if length > 4 else 1 / (1 - beta1 ** state["step"])
                    buffered[2] = step_size
                state["share"] = max(length, 0) / state["largest"]
                denom = exp_avg_sq.add_(group["eps"]).sqrt()
                if length > 4:
                    p.data.addcdiv_(exp_avg, denom, value=-step_size * group["lr"] * (1 + state["share"]))
                else:
                    p.data.add_(exp_avg, alpha=-step_size * group["lr"])
'''

MADE_BEFORE = '''\
class MadeBefore(Optimizer):
    """Makes states in its constructor, and steps of its own for vectors."""

    def __init__(self, params, lr=0.01, momentum=0.9, least=0.0):
        super().__init__(params, {"lr": lr, "momentum": momentum})
        self.least = least
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                state["count"] = 0
                state["sum"] = torch.full_like(parameter, 0.1)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                g = p.grad
                if g is None:
                    continue
                if g.abs().max() < self.least:
                    continue
                state = self.state[p]
                if g.dim() < 2:
                    p.add_(g, alpha=-group["lr"])
                    continue
                state["count"] += 1
                state["sum"].mul_(group["momentum"]).addcmul_(g, g)
                p.addcdiv_(g, state["sum"].sqrt(), value=-group["lr"] / state["count"])
'''

BY_AXES = '''\
class ByAxes(Optimizer):
    """Keeps more of matrices than of vectors, and the same under two conditions."""

    def __init__(self, params, lr=0.01, beta=0.9):
        super().__init__(params, dict(lr=lr, beta=beta))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                g = p.grad
                state = self.state[p]
                if g.dim() != 2:
                    if "buf" not in state:
                        state["buf"] = torch.zeros_like(g)
                    state["buf"].mul_(group["beta"]).add_(g, alpha=1 - group["beta"])
                    p.add_(state["buf"], alpha=-group["lr"])
                    continue
                if "buf" not in state:
                    state["buf"] = torch.zeros_like(g)
                    state["var"] = torch.zeros_like(g)
                buf, var = state["buf"], state["var"]
                var.mul_(group["beta"]).addcmul_(buf - g, buf - g, value=0.1)
                buf.lerp_(g, 0.1)
                p.addcdiv_(buf, var.sqrt() + 1e-3, value=-group["lr"])
'''

FUNCTIONAL = '''\
class Functional(Optimizer):
    """Collects lists for a function, as PyTorch's own do."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *,
                 maximize=False, foreach=None):
        defaults = dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize,
                        foreach=foreach)
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            params_with_grad, grads, exp_avgs, exp_avg_sqs = [], [], [], []
            max_exp_avg_sqs = []
            state_steps = []
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                params_with_grad.append(p)
                grads.append(p.grad)
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = torch.tensor(0.0)
                    state["exp_avg"] = torch.zeros_like(p, memory_format=torch.preserve_format)
                    state["exp_avg_sq"] = torch.zeros_like(p, memory_format=torch.preserve_format)
                    if group["amsgrad"]:
                        state["max_exp_avg_sq"] = torch.zeros_like(p, memory_format=torch.preserve_format)
                exp_avgs.append(state["exp_avg"])
                exp_avg_sqs.append(state["exp_avg_sq"])
                if group["amsgrad"]:
                    max_exp_avg_sqs.append(state["max_exp_avg_sq"])
                state_steps.append(state["step"])
            functional(
                params_with_grad, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, amsgrad=group["amsgrad"],
                beta1=beta1, beta2=beta2, lr=group["lr"], weight_decay=group["weight_decay"], eps=group["eps"],
                maximize=group["maximize"], foreach=group["foreach"],
            )
        return loss


def functional(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, foreach=None, *, amsgrad, beta1,
               beta2, lr, weight_decay, eps, maximize):
    if not all(isinstance(t, torch.Tensor) for t in state_steps):
        raise RuntimeError("state_steps are singleton tensors")
    if foreach is None:
        foreach = False
    if foreach and not torch.jit.is_scripting():
        func = _multi_tensor
    else:
        func = _single_tensor
    func(
        params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, amsgrad=amsgrad, beta1=beta1, beta2=beta2,
        lr=lr, weight_decay=weight_decay, eps=eps, maximize=maximize,
    )


def _single_tensor(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, *, amsgrad, beta1, beta2, lr,
                   weight_decay, eps, maximize):
    for i, param in enumerate(params):
        grad = grads[i] if not maximize else -grads[i]
        exp_avg = exp_avgs[i]
        exp_avg_sq = exp_avg_sqs[i]
        step_t = state_steps[i]
        if torch.is_complex(param):
            grad = torch.view_as_real(grad)
            exp_avg = torch.view_as_real(exp_avg)
            param = torch.view_as_real(param)
        # update step
        step_t += 1
        param.mul_(1 - lr * weight_decay)
        exp_avg.mul_(beta1).add_(grad, alpha=1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        step = step_t.item()
        bias_correction1 = 1 - beta1**step
        bias_correction2_sqrt = math.sqrt(1 - beta2**step)
        if amsgrad:
            torch.maximum(max_exp_avg_sqs[i], exp_avg_sq, out=max_exp_avg_sqs[i])
            denom = (max_exp_avg_sqs[i].sqrt() / bias_correction2_sqrt).add_(eps)
        else:
            denom = (exp_avg_sq.sqrt() / bias_correction2_sqrt).add_(eps)
        param.addcdiv_(exp_avg, denom, value=-lr / bias_correction1)


def _multi_tensor(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, *, amsgrad, beta1, beta2, lr,
                  weight_decay, eps, maximize):
    torch._foreach_add_(state_steps, 1)
    torch._foreach_mul_(params, 1 - lr * weight_decay)
    torch._foreach_lerp_(exp_avgs, grads, 1 - beta1)
'''

ALL = {
    "Lion": LION,
    "Momentum": MOMENTUM,
    "MyAdam": ADAM,
    "Rectified": RADAM,
    "Lamb": LAMB,
    "Counted": COUNTED,
    "Buffered": BUFFERED,
    "Functional": FUNCTIONAL,
    "MadeBefore": MADE_BEFORE,
    "ByAxes": BY_AXES,
}

PROGRAM = """\
import math

import torch
from torch import nn
from torch.optim.optimizer import Optimizer, required


{optimizer}

model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
x, y = torch.linspace(-1, 1, 24).reshape(8, 3), torch.linspace(0, 1, 8).reshape(8, 1)
losses = []

# train
optimizer = {call}
for epoch in range(12):
    loss = ((model(x) - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
"""


def program(call: str, optimizer: str = "") -> str:
    """A program that trains with a class, which stands in it."""
    return PROGRAM.format(optimizer=optimizer or ALL[call.partition("(")[0]], call=call)
