"""What methods of tensors and modules say of their receiver, beside what they become."""

from __future__ import annotations

from t2j_lsp.translate.rule.library import Trait, names_with, trait

# What tells a tensor or a module whose type isn't known ----------------------------------------------------------

TENSOR_ONLY = """
    add_ addmm amax amin baddbmm bernoulli_ bfloat16 bmm broadcast_to ceil_ chunk clamp clamp_ clamp_max clamp_min
    contiguous copy_ cuda detach div_ erf exp_ expand expand_as expm1 fill_ floor_ gather half index_add index_add_
    index_copy_ index_fill index_select is_contiguous is_floating_point kthvalue lerp log1p log_softmax logical_and
    logical_not logical_or logsumexp long masked_fill masked_fill_ masked_scatter masked_select matmul mm movedim
    mul_ nan_to_num narrow neg_ new_empty new_full new_ones new_tensor new_zeros normal_ numel permute pow_ random_
    relu relu_ repeat_interleave requires_grad_ reshape_as round_ rsqrt scatter scatter_ scatter_add scatter_add_
    sigmoid sigmoid_ softmax sqrt_ squeeze_ sub_ swapdims t_ take_along_dim tanh tanh_ topk transpose_ tril triu
    trunc_ type_as unbind unflatten unfold uniform_ unsqueeze unsqueeze_ var_mean view_as zero_
"""
trait(Trait.TENSOR_ONLY, *TENSOR_ONLY.split())
trait(Trait.MODULE_ONLY, "parameters", "named_parameters", "buffers", "named_buffers")
trait(Trait.MODULE_ONLY, "named_modules", "named_children", "children")
trait(Trait.SAME_IN_JAX, "item", "tolist", "any", "all", "astype", "dot", "round", "conj", "copy", "ravel")

# Shared storage -------------------------------------------------------------------------------------------------

trait(Trait.WRITABLE_VIEW, "view", "reshape", "transpose", "permute", "t", "squeeze", "unsqueeze", "narrow", "select")
trait(Trait.WRITABLE_VIEW, "expand", "detach", "flatten", "diagonal", "unbind", "chunk", "split")
trait(Trait.VIEW, *names_with(Trait.WRITABLE_VIEW))
trait(Trait.VIEW, "view_as", "expand_as", "contiguous", "swapaxes", "movedim", "unflatten", "data", "T", "mT", "to")

# In place -------------------------------------------------------------------------------------------------------

ELEMENTWISE = """
    abs_ add_ bernoulli_ cauchy_ ceil_ clamp_ clamp_max_ clamp_min_ div_ exp_ exponential_ fill_ floor_ geometric_
    log_normal_ mul_ neg_ normal_ pow_ random_ relu_ round_ sigmoid_ sign_ sqrt_ sub_ tanh_ uniform_ zero_
"""
trait(Trait.ELEMENTWISE_IN_PLACE, *ELEMENTWISE.split())
trait(Trait.BOOLEAN_IN_PLACE, "eq_", "ne_", "lt_", "le_", "gt_", "ge_", "greater_", "less_")
trait(Trait.ELEMENTWISE_METHOD, "relu", "sigmoid", "tanh")
