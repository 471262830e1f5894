"""What methods of optimizers, schedulers, scalers and averages become: planners of train steps write them."""

from __future__ import annotations

from t2j_lsp.translate.rule.record import CLOSE, EXACT, MANUAL, describe

from .training import SCALER

# Optimizers -----------------------------------------------------------------------------------------------------

OPTIMIZER = "torch.optim.Optimizer"
PART = "A part of the train step: the loop becomes a function under nnx.jit that takes gradients and updates."
NO_HOOKS = "No hooks run in a compiled step: call the function in front of the step or behind it."
describe(f"{OPTIMIZER}.step", "optimizer.update(model, grads)", note=PART)
describe(f"{OPTIMIZER}.zero_grad", "(removed)", note="Gradients are values in JAX: each step has its own.")
SAVED = "The state is optax's: an optimizer of PyTorch can't load it, and its states can't be loaded here."
describe(f"{OPTIMIZER}.state_dict", "nnx.to_pure_dict(nnx.state(optimizer))", fidelity=CLOSE, note=SAVED)
describe(f"{OPTIMIZER}.load_state_dict", "nnx.update(optimizer, state)", fidelity=CLOSE, note=SAVED)
describe(
    f"{OPTIMIZER}.param_groups",
    "set_hyperparameter(optimizer, name, value)",
    fidelity=CLOSE,
    note="Of rates and other options that change while the program runs; nnx.Optimizer has no groups to be read.",
)
describe(
    f"{OPTIMIZER}.add_param_group",
    None,
    fidelity=MANUAL,
    note="nnx.Optimizer is made with all that it updates: make it anew, or give it the part from the start by wrt=.",
)
for name in (
    *("load_state_dict_post_hook", "load_state_dict_pre_hook", "state_dict_post_hook", "state_dict_pre_hook"),
    *("step_post_hook", "step_pre_hook"),
):
    describe(f"{OPTIMIZER}.register_{name}", None, fidelity=MANUAL, note=NO_HOOKS)
describe(f"{OPTIMIZER}.profile_hook_step", None, fidelity=MANUAL, note=NO_HOOKS)

# Schedulers -----------------------------------------------------------------------------------------------------

SCHEDULER = "torch.optim.lr_scheduler.LRScheduler"
STEPS = "Where each update steps the schedule, it is an argument of the optimizer's: optax.adam(schedule)."
describe(f"{SCHEDULER}.step", "scheduler.step()", note=STEPS)
describe(f"{SCHEDULER}.get_last_lr", "[schedule(step)]", note=STEPS)
describe(
    f"{SCHEDULER}.get_lr", "def get_lr(self)", note="Of a scheduler of the file's own, whose base is a helper then."
)
for name in ("state_dict", "load_state_dict"):
    describe(f"{SCHEDULER}.{name}", "scheduler.last_epoch", note="Its count is all of its state.")

# What switches gradients on -------------------------------------------------------------------------------------

describe("torch.enable_grad", "(removed)", note="JAX takes gradients only where they are asked for.")

# Gradient scaling -----------------------------------------------------------------------------------------------

METHODS_OF_SCALERS = """
    get_backoff_factor get_growth_factor get_growth_interval get_scale is_enabled load_state_dict scale
    set_backoff_factor set_growth_factor set_growth_interval state_dict step unscale_ update
"""
for name in METHODS_OF_SCALERS.split():
    converts = name in ("scale", "step", "unscale_", "update")
    form = "(removed)" if converts else None
    describe(f"torch.amp.GradScaler.{name}", form, fidelity=EXACT if converts else MANUAL, note=SCALER)
