"""What methods of modules become: the engine writes them where it knows the module; docs and `t2j explain` say it.

Methods without a form have their reasons beside the engine's code for them: ``expressions/module_refusals.py``.
"""

from __future__ import annotations

from t2j_lsp.translate.rule.record import CLOSE, MANUAL, describe

OF_MODULE = "torch.nn.Module"
ORDER = "Flax walks in alphabetical order: where PyTorch's, that of assignment, matters, it is a gap or a helper."
HOOK = "The hook runs where the module runs in Python: one that a compiled or differentiated pass would meet is a gap."

describe(OF_MODULE, "nnx.Module", note="forward becomes __call__, and constructors take rngs, from which layers draw.")

# Walks ----------------------------------------------------------------------------------------------------------

describe(f"{OF_MODULE}.parameters", "jax.tree.leaves(nnx.state(model, nnx.Param))", note=ORDER)
describe(f"{OF_MODULE}.named_parameters", "nnx.to_flat_state(nnx.state(model, nnx.Param))", note=ORDER)
describe(f"{OF_MODULE}.buffers", "jax.tree.leaves(nnx.state(model, (Buffer, nnx.BatchStat)))", note=ORDER)
describe(f"{OF_MODULE}.modules", "(m for _, m in nnx.iter_modules(model))", note=ORDER)
describe(f"{OF_MODULE}.named_modules", "nnx.iter_modules(model)", note=ORDER)
describe(f"{OF_MODULE}.children", "nnx.iter_module_children(model)", note=ORDER)
describe(f"{OF_MODULE}.named_children", "named_children(model)", note=ORDER)
describe(f"{OF_MODULE}.get_submodule", "get_submodule(model, target)", note="By PyTorch's name of the part.")
describe(f"{OF_MODULE}.apply", "for _, module in nnx.iter_modules(model): fn(module)", note=ORDER)

# Parts and state ------------------------------------------------------------------------------------------------

describe(f"{OF_MODULE}.register_buffer", "self.name = Buffer(tensor)")
describe(f"{OF_MODULE}.register_parameter", "self.name = nnx.Param(param)")
for name in ("add_module", "register_module"):
    describe(f"{OF_MODULE}.{name}", "self.name = module", note="For modules of the file's own classes.")
describe(f"{OF_MODULE}.state_dict", "StateDict(model)", note="PyTorch's names, layouts and order, as plain arrays.")
describe(
    f"{OF_MODULE}.load_state_dict",
    "load_state_dict(model, state_dict)",
    note="Takes PyTorch's names and layouts, and answers with the names that are missing or unexpected.",
)
describe(
    f"{OF_MODULE}.reset_parameters",
    "reset_parameters(layer, rngs)",
    note="PyTorch's initial values of a layer are drawn anew. Of PReLU, Bilinear and EmbeddingBag it is a gap.",
)
describe(f"{OF_MODULE}.forward", "model(*args)", note="The method itself is __call__.")
describe(
    f"{OF_MODULE}.training", "not self.deterministic", note="In layers that ask for it; train() and eval() set it."
)

# Modes, devices and dtypes --------------------------------------------------------------------------------------

for name in ("train", "eval"):
    describe(f"{OF_MODULE}.{name}", f"model.{name}()")
DEVICE = "JAX computes on its default device; jax.device_put moves arrays."
for name in ("cpu", "cuda", "ipu", "mtia", "xpu", "share_memory"):
    describe(f"{OF_MODULE}.{name}", "(removed)", note=DEVICE)
describe(f"{OF_MODULE}.to", "(removed)", note=f"{DEVICE} To another dtype than float32 it is a gap.")
describe(f"{OF_MODULE}.float", "(removed)", note="Parameters are float32.")
describe(f"{OF_MODULE}.compile", "(removed)", note="Train steps are compiled by nnx.jit.")
describe(
    f"{OF_MODULE}.requires_grad_",
    "set_trainable(model, requires_grad)",
    fidelity=CLOSE,
    note="What is never trained is left out where gradients are taken (nnx.DiffState) and of the optimizer (wrt=); "
    "what is frozen now and trained later has flags, for which optimizers ask when they are made. Else it is a gap.",
)
describe(
    f"{OF_MODULE}.zero_grad",
    "(removed)",
    note="Gradients are values in JAX. It goes with a training loop that converts, and is a gap elsewhere.",
)

# Containers -----------------------------------------------------------------------------------------------------

OF_LISTS, OF_DICTS = "append extend insert pop", "clear items keys pop update values"
for name in ("torch.nn.ModuleList", "torch.nn.Sequential", "torch.nn.ParameterList"):
    for method in OF_LISTS.split():
        describe(f"{name}.{method}", f"modules.{method}()", note="As a list's.")
for name in ("torch.nn.ModuleDict", "torch.nn.ParameterDict"):
    for method in OF_DICTS.split():
        describe(f"{name}.{method}", f"modules.{method}()", note="As a dict's, in the order in which it was filled.")
for method in ("copy", "fromkeys", "get", "popitem", "setdefault"):
    describe(f"torch.nn.ParameterDict.{method}", f"parameters.{method}()", note="As a dict's.")

# Hooks ----------------------------------------------------------------------------------------------------------

describe(f"{OF_MODULE}.register_forward_hook", "forward_hook(model, hook)", fidelity=CLOSE, note=HOOK)
describe(f"{OF_MODULE}.register_forward_pre_hook", "forward_pre_hook(model, hook)", fidelity=CLOSE, note=HOOK)
for name in ("T_destination", "call_super_init", "dump_patches"):
    describe(
        f"{OF_MODULE}.{name}", None, fidelity=MANUAL, note="A setting of PyTorch's own class, which Flax's has not."
    )
