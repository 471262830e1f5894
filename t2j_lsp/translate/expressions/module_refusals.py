"""Methods of PyTorch's modules and layers that have no sure form in Flax, and what to do instead."""

from __future__ import annotations

_ORDER = "Flax keeps the parts of a module in alphabetical order; name them one by one"
CAST = "cast the parameters with jax.tree.map over nnx.state(model)"
STAYS = "torch.float64 is float32 here: convert with x64 to keep 64 bits."
_HOOKS = "NNX modules carry no hooks; override __call__ instead"
ASSIGN = "assign= has no counterpart: arrays take the dtypes that the module has"
_PATHS = "use nnx.to_flat_state(nnx.state(model, nnx.Param)), whose paths are tuples"
_TORCH_METHODS = (
    *("apply", "extra_repr", "get_buffer", "get_extra_state", "set_extra_state", "set_submodule", "to_empty", "type"),
    *("add_module", "register_module", "register_full_backward_pre_hook", "register_load_state_dict_post_hook"),
    *("register_load_state_dict_pre_hook", "register_state_dict_post_hook", "register_state_dict_pre_hook"),
)
_OF_LAYERS = (
    *("check_input", "check_hidden_size", "check_forward_args", "check_forward_input", "check_forward_hidden"),
    *("get_expected_hidden_size", "permute_hidden", "merge_masks"),
)
REFUSED = {
    **dict.fromkeys(_TORCH_METHODS, "nnx.Module has no such method"),
    **dict.fromkeys(("children", "named_children"), _ORDER),
    **dict.fromkeys(("half", "double", "bfloat16"), CAST),
    "state_dict": "only the whole state under the module's own names has one",
    "load_state_dict": ASSIGN,
    "zero_grad": "JAX gradients are values, not state: there is nothing to zero",
    **dict.fromkeys(("register_full_backward_hook", "register_backward_hook"), _HOOKS),
    **dict.fromkeys(("named_parameters", "named_buffers", "get_parameter", "get_submodule"), _PATHS),
}
"""Methods without a sure form, and what to do instead."""
REFUSED_OF_LAYERS = {
    **dict.fromkeys(("reset_parameters", "reset_running_stats"), "Flax draws values as a layer is made: make it anew"),
    "_fill_padding_idx_with_zero": "set the row to zero: self.embedding[...] = self.embedding.at[i].set(0)",
    **dict.fromkeys(_OF_LAYERS, "the layer that stands for it has none"),
}
"""The same of methods that layers have and other modules have not."""
