"""Classes of optimizers that hand their tensors to functions, as those of PyTorch and of libraries do."""

from __future__ import annotations

SGD = '''\
from torch.optim.optimizer import _default_to_fused_or_foreach


class LikeSGD(Optimizer):
    """Collects in a method, and keeps momentum that the first step makes."""

    def __init__(self, params, lr=0.1, momentum=0.0, dampening=0.0, nesterov=False, *, caution=False, maximize=False,
                 foreach=None, differentiable=False):
        defaults = dict(lr=lr, momentum=momentum, dampening=dampening, nesterov=nesterov, caution=caution,
                        maximize=maximize, foreach=foreach, differentiable=differentiable)
        super().__init__(params, defaults)

    def _init_group(self, group, params_with_grad, grads, momentum_buffer_list):
        has_sparse_grad = False
        has_complex = False
        for p in group["params"]:
            if p.grad is not None:
                has_complex |= torch.is_complex(p)
                params_with_grad.append(p)
                grads.append(p.grad)
                if p.grad.is_sparse:
                    has_sparse_grad = True
                state = self.state[p]
                if "momentum_buffer" not in state:
                    momentum_buffer_list.append(None)
                else:
                    momentum_buffer_list.append(state["momentum_buffer"])
        return has_sparse_grad, has_complex

    def restart(self):
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["momentum_buffer"] = None

    @torch.no_grad()
    def step(self, closure=None):
        if hasattr(self, "_accelerator_graph_capture_health_check"):
            self._accelerator_graph_capture_health_check()
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            params_with_grad = []
            grads = []
            momentum_buffer_list = []
            has_sparse_grad, has_complex = self._init_group(group, params_with_grad, grads, momentum_buffer_list)
            like_sgd(params_with_grad, grads, momentum_buffer_list, has_sparse_grad=has_sparse_grad, lr=group["lr"],
                     momentum=group["momentum"], dampening=group["dampening"], nesterov=group["nesterov"],
                     caution=group["caution"], maximize=group["maximize"], foreach=group["foreach"],
                     grad_scale=getattr(self, "grad_scale", None))
            for p, momentum_buffer in zip(params_with_grad, momentum_buffer_list):
                state = self.state[p]
                state["momentum_buffer"] = momentum_buffer
        return loss


def like_sgd(params, grads, momentum_buffer_list, has_sparse_grad=None, foreach=None, grad_scale=None, *, lr, momentum,
             dampening, nesterov, caution, maximize):
    if foreach is None:
        _, foreach = _default_to_fused_or_foreach(params, differentiable=False, use_fused=False)
    if foreach and not torch.jit.is_scripting():
        func = _multi_tensor_sgd
    else:
        func = _single_tensor_sgd
    func(params, grads, momentum_buffer_list, lr=lr, momentum=momentum, dampening=dampening, nesterov=nesterov,
         caution=caution, maximize=maximize, has_sparse_grad=has_sparse_grad, grad_scale=grad_scale)


def _single_tensor_sgd(params, grads, momentum_buffer_list, *, lr, momentum, dampening, nesterov, caution, maximize,
                       has_sparse_grad, grad_scale):
    assert grad_scale is None
    for i, param in enumerate(params):
        grad = grads[i] if not maximize else -grads[i]
        if momentum != 0:
            buf = momentum_buffer_list[i]
            if buf is None:
                buf = torch.clone(grad).detach()
                momentum_buffer_list[i] = buf
            else:
                buf.mul_(momentum).add_(grad, alpha=1 - dampening)
            if caution:
                if nesterov:
                    buf = grad.add(buf, alpha=momentum)
                mask = (buf * grad > 0).to(grad.dtype)
                mask.div_(mask.mean().clamp_(min=1e-3))
                grad = buf * mask
            else:
                if nesterov:
                    grad = grad.add(buf, alpha=momentum)
                else:
                    grad = buf
        param.add_(grad, alpha=-lr)


def _multi_tensor_sgd(params, grads, momentum_buffer_list, *, lr, momentum, dampening, nesterov, caution, maximize,
                      has_sparse_grad, grad_scale):
    if len(params) == 0:
        return
    torch._foreach_add_(params, grads, alpha=-lr)
'''

SKIPS = '''\
class Skips(Optimizer):
    """Only looks at the first gradient; a function that writes and one that gives a number back are of the file."""

    def __init__(self, params, lr=0.05, betas=(0.9, 0.99), eps=1e-6, clip_exp=0.3, caution=False, lookahead=False):
        if isinstance(lr, torch.Tensor):
            raise ValueError("a tensor")
        defaults = dict(lr=lr, betas=betas, eps=eps, clip_exp=clip_exp, caution=caution, lookahead=lookahead)
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            params, grads, exp_avgs, exp_avg_sqs, steps = [], [], [], [], []
            first_steps = []
            ahead = []
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                params.append(p)
                grads.append(p.grad)
                state = self.state[p]
                first_steps.append(len(state) == 0)
                if len(state) == 0:
                    state["step"] = torch.tensor(0.0)
                    state["exp_avg"] = torch.zeros_like(p)
                    state["exp_avg_sq"] = torch.zeros_like(p)
                exp_avgs.append(state["exp_avg"])
                exp_avg_sqs.append(state["exp_avg_sq"])
                steps.append(state["step"])
                if group["lookahead"]:
                    rate = group["lr"] / (1 + state["step"])
                    ahead.append((rate, rate * 2))
            if not params:
                continue
            _single_tensor_skips(params, grads, exp_avgs, exp_avg_sqs, steps, first_steps, ahead if group["lookahead"]
                                 else None, lr=group["lr"], beta1=beta1, beta2=beta2, eps=group["eps"],
                                 clip_exp=group["clip_exp"], caution=group["caution"])
        return None


def _value(x):
    if torch.jit.is_scripting():
        return x
    return x.item() if isinstance(x, torch.Tensor) else x


def _add_scaled_(param, update, scale):
    if torch.is_tensor(scale):
        param.add_(update * scale)
    else:
        param.add_(update, alpha=scale)


def _single_tensor_skips(params, grads, exp_avgs, exp_avg_sqs, steps, first_steps, ahead, *, lr, beta1, beta2, eps,
                         clip_exp, caution):
    def careful(value, grad):
        mask = (value * grad > 0).to(grad.dtype)
        mask.div_(mask.mean().clamp_(min=1e-3))
        return value * mask

    for i, param in enumerate(params):
        grad = grads[i]
        exp_avg = exp_avgs[i]
        steps[i].add_(1)
        step = _value(steps[i])
        if first_steps[i] if first_steps is not None else step == 1:
            exp_avg_sqs[i].addcmul_(grad, grad.conj())
            continue
        normed = grad.div(torch.clamp(exp_avg_sqs[i].sqrt(), eps))
        if clip_exp is not None:
            clip_val = (step - 1) ** clip_exp
            normed.clamp_(-clip_val, clip_val)
        exp_avg.lerp_(normed, 1 - beta1)
        if caution:
            exp_avg = careful(exp_avg, grad)
        if ahead is None:
            _add_scaled_(param, exp_avg, -lr)
        else:
            slow, fast = ahead[i]
            _add_scaled_(param, exp_avg, -slow)
            param.sub_(exp_avg.sign(), alpha=fast)
        exp_avg_sqs[i].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
'''

DIFFERENCES = '''\
class Differences(Optimizer):
    """Keeps the gradient of before; one function takes all by name, and gives some of its variables other values."""

    def __init__(self, params, lr=0.02, beta=0.9, decay=0.01, slow=True, betas_1d=None):
        self.top = lr * 2
        super().__init__(params, dict(lr=lr, beta=beta, decay=decay, slow=slow, betas_1d=betas_1d or (beta, 0.8)))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            if "step" in group:
                group["step"] += 1
            else:
                group["step"] = 1
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad
                state = self.state[p]
                if len(state) <= 1:
                    state["mean"] = torch.zeros_like(p)
                    state["square"] = torch.zeros_like(p)
                    if group["slow"]:
                        state["start"] = torch.clone(p).detach()
                if "old" not in state or group["step"] == 1:
                    state["old"] = -p.grad.clone()
                mean, old = state["mean"], state["old"]
                old.add_(grad)
                _differences(p, grad, mean, old, group["lr"], group["beta"], group["betas_1d"],
                             wide=grad.ndim >= 2, step=group["step"])
                if grad.is_sparse:
                    grad = grad.coalesce()
                if not group["slow"]:
                    start = p.sub(grad, alpha=0.01)
                else:
                    start = state["start"]
                p.lerp_(start, group["decay"] * group["lr"] / self.top)
                state["old"].copy_(grad).neg_()


def _differences(p, grad, mean, change, lr, beta, betas_1d, wide, step):
    if wide:
        c = grad + change * (beta / (1 - beta))
        c = c / torch.norm(c).clamp_(min=1.0)
        mean.mul_(beta).add_(c, alpha=1 - beta)
        mean = mean * (mean * grad > 0).to(grad.dtype)
        p.add_(mean.sign(), alpha=-lr / step)
    else:
        one, two = betas_1d
        mean.mul_(one).add_(grad, alpha=two)
        p.add_(mean, alpha=-lr)
    return mean, change
'''

ALL = {"LikeSGD": SGD, "Skips": SKIPS, "Differences": DIFFERENCES}
