"""What methods of tensors and modules say of their receiver, beside what they become."""

from __future__ import annotations

from t2j_lsp.translate.rule.library import Trait, names_with, trait

# What tells a tensor or a module whose type isn't known ----------------------------------------------------------

TENSOR_ONLY = """
    acos acosh add_ addbmm addcdiv addcmul addmm addmv addr amax amin aminmax arccos arccosh arcsin arcsinh
    arctan arctan2 arctanh argwhere as_strided as_strided_ as_strided_scatter as_subclass asin asinh atan atan2
    atanh baddbmm bernoulli_ bfloat16 bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor bmm broadcast_to cauchy_ ccol_indices cdouble ceil_ cfloat chalf char
    cholesky cholesky_inverse cholesky_solve chunk clamp clamp_ clamp_max clamp_min coalesce col_indices
    conj_physical const_data_ptr contiguous copy_ copysign cos cosh count_nonzero crow_indices cuda data_ptr
    deg2rad dense_dim dequantize detach diag_embed diagflat diagonal_scatter digamma dim_order div_ dsplit
    element_size erf erfc erfinv exp exp2 exp_ expand expand_as expm1 exponential_ fill_ fill_diagonal_ fix
    fliplr flipud float_power floor_ floor_divide fmax fmin fmod frexp gather geometric_ geqrf get_device half
    hardshrink heaviside histc hsplit hypot i0 igamma igammac index_add index_add_ index_copy index_copy_
    index_fill index_put index_reduce index_select int_repr is_coalesced is_complex is_conj is_contiguous
    is_floating_point is_inference is_neg is_nonzero is_pinned is_same_size is_set_to is_shared is_signed
    isneginf isposinf isreal istft kthvalue ldexp lerp lgamma log10 log1p log2 log_normal_ log_softmax logaddexp
    logaddexp2 logcumsumexp logdet logical_and logical_not logical_or logical_xor logit logsumexp long lu_solve
    map2_ masked_fill masked_fill_ masked_scatter masked_select matmul matrix_exp matrix_power mm movedim msort
    mul_ multinomial mvlgamma nan_to_num nanmean nanmedian nanquantile nansum narrow narrow_copy ndimension neg_
    nelement new_empty new_empty_strided new_full new_ones new_tensor new_zeros nextafter nonzero_static normal_
    numel orgqr ormqr permute pin_memory pinverse polygamma pow_ prelu q_per_channel_axis q_per_channel_scales
    q_per_channel_zero_points q_scale q_zero_point qscheme rad2deg random_ reciprocal record_stream
    register_hook register_post_accumulate_grad_hook relu relu_ renorm repeat_interleave requires_grad_
    reshape_as resize_ resize_as_ resolve_conj resolve_neg retain_grad rot90 round_ row_indices rsqrt rsqrt_
    scatter scatter_ scatter_add scatter_add_ scatter_reduce select_scatter set_ sgn share_memory_ sigmoid
    sigmoid_ signbit sin sinc sinh slice_inverse slice_scatter slogdet smm softmax sparse_dim sparse_mask
    sparse_resize_ sparse_resize_and_clear_ split_with_sizes sqrt sqrt_ square squeeze_ sspaddmm storage_offset
    storage_type sub_ sum_to_size swapdims t_ take_along_dim tan tanh tanh_ tensor_split to_dense to_mkldnn
    to_padded_tensor to_sparse to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr topk
    transpose_ triangular_solve tril triu true_divide trunc_ type_as unbind unflatten unfold uniform_
    unique_consecutive unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze unsqueeze_ untyped_storage
    var_mean view_as vsplit xlogy zero_
"""
trait(Trait.TENSOR_ONLY, *TENSOR_ONLY.split())
BARE = """
    bool byte ceil clone cpu det diag dim double float floor frac int isfinite isinf isnan log neg negative numpy
    positive short sign t trunc
"""
trait(Trait.TENSOR_ONLY_BARE, *BARE.split())
ATTRIBUTES = "grad_fn is_cpu is_cuda is_leaf is_mkldnn is_nested is_quantized is_sparse is_sparse_csr mH requires_grad"
trait(Trait.TENSOR_ATTRIBUTE, *ATTRIBUTES.split())
TORCH_ONLY = """
    add_ backward clamp_ clamp_max clamp_min copy_ detach_ div_ expand_as fill_ index_add_ index_copy_ index_select
    log_softmax logsumexp masked_fill masked_fill_ masked_scatter masked_select mul_ new_full new_ones new_zeros
    permute pin_memory repeat_interleave requires_grad_ reshape_as scatter_ scatter_add scatter_add_ sigmoid softmax
    squeeze_ sub_ topk type_as unsqueeze unsqueeze_ view_as zero_ zero_grad
"""
trait(Trait.TORCH_ONLY, *TORCH_ONLY.split())
trait(Trait.TORCH_ONLY_BARE, "cpu", "cuda", "double", "float", "half", "long")
OPERATORS = """
    abs absolute add div divide eq ge greater greater_equal gt le less less_equal lt mul multiply ne not_equal pow
    sub subtract
"""
trait(Trait.OPERATOR_METHOD, *OPERATORS.split())
AMBIGUOUS = """
    adjoint allclose angle bernoulli corrcoef cov cross cummax cummin diag diff dist equal flip gcd ger histogram
    inner inverse isclose kron lcm maximum median minimum mode moveaxis mv norm outer qr quantile remainder roll
    select stft stride svd tile type unique vdot where
"""
trait(Trait.AMBIGUOUS, *AMBIGUOUS.split())

# Methods that arrays have too. What isn't listed means the same there, as tests/rules/test_shared_methods.py shows.
trait(Trait.OTHER_ON_ARRAYS, "clip", "median", "nonzero", "repeat", "size", "sort", "std", "var", "view")
trait(Trait.OTHER_WITH_ONE, "flatten", "max", "min", "norm", "split", "squeeze")
trait(Trait.OTHER_WITH_TWO, "all", "any", "argmax", "argmin", "argsort", "mean", "prod", "sum")
trait(Trait.REDUCTION, "all", "any", "argmax", "argmin", "mean", "prod", "std", "sum", "var")
trait(Trait.HARMLESS, "clip", "squeeze")

MODULE_ONLY = """
    parameters named_parameters buffers named_buffers modules named_modules named_children children
"""
trait(Trait.MODULE_ONLY, *MODULE_ONLY.split())
trait(Trait.DESCRIBES, "default_cfg", "feature_info", "output_fmt", "pretrained_cfg")
trait(Trait.NO_TENSOR, "train", "eval", "state_dict", "load_state_dict", *MODULE_ONLY.split())
HOOKS = "register_forward_hook register_forward_pre_hook register_full_backward_hook register_full_backward_pre_hook"
trait(Trait.MODULE_HOOK, "register_backward_hook", *HOOKS.split())
trait(Trait.VALUE, "item", "tolist", "numpy")
OF_NUMPY = "exp log log2 log10 log1p expm1 sqrt sin cos tan tanh arctan cbrt deg2rad"
trait(Trait.NUMBER, *(f"{library}.{name}" for library in ("math", "numpy") for name in ("pi", "e", "inf", "nan")))
trait(Trait.OF_A_NUMBER, *(f"numpy.{name}" for name in OF_NUMPY.split()))
trait(Trait.SAME_IN_JAX, "item", "tolist", "any", "all", "astype", "dot", "round", "conj", "copy", "ravel")

trait(Trait.SORTS_PARAMETERS, "items", "keys", "values", "dim", "numel", "size", "startswith", "endswith")
trait(Trait.FIRST_FIELD, "values", "eigenvalues", "Q", "sign", "mantissa", "solution")
trait(Trait.SECOND_FIELD, "indices", "eigenvectors", "R", "S", "logabsdet", "exponent")
trait(Trait.THIRD_FIELD, "Vh", "V")

# Shared storage -------------------------------------------------------------------------------------------------

trait(Trait.WRITABLE_VIEW, "view", "reshape", "transpose", "permute", "t", "squeeze", "unsqueeze", "narrow", "select")
trait(Trait.WRITABLE_VIEW, "expand", "detach", "flatten", "diagonal", "unbind", "chunk", "split")
trait(Trait.VIEW, *names_with(Trait.WRITABLE_VIEW))
trait(Trait.PIECES, "chunk", "split", "unbind", "tensor_split", "split_with_sizes", "hsplit", "vsplit", "dsplit")
trait(Trait.VIEW, "tensor_split", "split_with_sizes", "hsplit", "vsplit", "dsplit", "moveaxis", "ravel", "swapdims")
trait(Trait.ABOUT, "shape", "ndim", "dtype", "device", "requires_grad", "stride", "is_cuda")
trait(Trait.COUNTS, "dim", "ndimension", "nelement", "numel", "size")
trait(Trait.ABOUT, *names_with(Trait.COUNTS))
trait(
    Trait.VIEW,
    "as_strided",
    "imag",
    "real",
    "view_as",
    "expand_as",
    "contiguous",
    "swapaxes",
    "movedim",
    "unflatten",
    "data",
    "T",
    "mT",
    "to",
)

# Constants ------------------------------------------------------------------------------------------------------

trait(Trait.CONSTANT, "torch.arange", "torch.eye", "torch.full", "torch.ones", "torch.zeros")
JOINED = "cat logical_and logical_not logical_or logical_xor ones_like stack tril triu zeros_like"
trait(Trait.CONSTANT_OF, *(f"torch.{name}" for name in JOINED.split()))
METHODS = "bool eq float int logical_not long ne repeat reshape t tril triu unsqueeze view"
trait(Trait.CONSTANT_OF, *METHODS.split())

# In place -------------------------------------------------------------------------------------------------------

ELEMENTWISE = """
    abs_ add_ bernoulli_ cauchy_ ceil_ clamp_ clamp_max_ clamp_min_ div_ exp_ exponential_ fill_ floor_ geometric_
    log_normal_ mul_ neg_ normal_ pow_ random_ relu_ round_ sigmoid_ sign_ sqrt_ sub_ tanh_ uniform_ zero_
"""
trait(Trait.ELEMENTWISE_IN_PLACE, *ELEMENTWISE.split())
NUMBERS = "cauchy_ exponential_ fill_ geometric_ log_normal_ normal_ random_ uniform_ zero_"
trait(Trait.GIVEN_NUMBERS, *NUMBERS.split())
trait(Trait.OF_PAIRS, "copy_", "lerp_", "lerp", "mul", "add", "sub", "div")
trait(Trait.OF_PAIRS, "torch.lerp", "torch.mul", "torch.add", "torch.sub")
SHAPE_OR_FLAG = """
    as_strided_ detach_ requires_grad_ resize_ set_ share_memory_ squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_
"""
trait(Trait.NO_VALUES, *SHAPE_OR_FLAG.split())
trait(Trait.BOOLEAN_IN_PLACE, "eq_", "ne_", "lt_", "le_", "gt_", "ge_", "greater_", "less_")
trait(Trait.OF_PARAMETER, "grad", "is_leaf", "register_hook", "requires_grad", "requires_grad_", "retain_grad")
NEW = "clone mean sum norm sqrt abs neg mul add sub div square exp log"
trait(Trait.NEW_TENSOR, *NEW.split())
trait(Trait.MAKES_TENSOR, "new_empty", "new_full", "new_ones", "new_tensor", "new_zeros")
ALIKE = "abs clone contiguous detach exp float log relu sigmoid sqrt square tanh"
trait(Trait.ELEMENTWISE_METHOD, *ALIKE.split())

EACH = """
    mul add sub div multiply subtract divide true_divide addcmul addcdiv lerp sqrt rsqrt sign sgn abs absolute neg
    negative exp exp2 expm1 log log2 log10 log1p pow square reciprocal clamp clamp_min clamp_max clip maximum
    minimum fmax fmin where tanh sigmoid relu sin cos tan atan atan2 hypot floor ceil round trunc eq ne lt le gt ge
    greater less greater_equal less_equal logical_and logical_or logical_not logical_xor isnan isfinite isinf
    nan_to_num masked_fill copy fill zero float double half bfloat16 bool int long to type type_as clone detach
    contiguous item cpu conj erf tensor as_tensor zeros_like ones_like full_like empty_like is_complex is_floating_point
"""
trait(Trait.OF_ELEMENTS, *EACH.split())
trait(Trait.OF_ALL_ELEMENTS, "norm", "mean", "sum", "std", "var", "max", "min", "amax", "amin", "median", "all", "any")
trait(Trait.OF_ALL_ELEMENTS, "vector_norm", "_foreach_norm")
trait(Trait.LIKE, "zeros_like", "ones_like", "full_like", "empty_like")

# Axes -----------------------------------------------------------------------------------------------------------

trait(Trait.JOINS_AXIS, "cat", "concat", "concatenate")
trait(Trait.JOINS, "torch.cat", "torch.concat", "torch.concatenate", "torch.hstack", "torch.stack")
trait(Trait.PARTS_AXIS, "chunk", "split")
trait(Trait.REDUCES_AXES, "mean", "sum", "amax", "amin", "std", "logsumexp")
trait(Trait.ALONG_AXIS, "softmax", "log_softmax")
trait(Trait.OF_BOTH, "clip")
trait(Trait.SIZES, "shape", "size")
trait(Trait.LIKE_OTHER, "expand_as")
trait(Trait.FLATTENS, "flatten", "view", "reshape")
trait(Trait.SHAPED, "view", "reshape")

# What PyTorch's modules keep under names of their own

PRIVATE = """
    _modules _parameters _buffers _non_persistent_buffers_set _forward_hooks _forward_pre_hooks _backward_hooks
    _backward_pre_hooks _state_dict_hooks _state_dict_pre_hooks _load_state_dict_pre_hooks _load_state_dict_post_hooks
"""
trait(Trait.PRIVATE, *PRIVATE.split())
trait(Trait.CHILDREN_BY_NAME, "_modules")

# What has to do with the gradients that a backward pass leaves behind

for name in ("grad", "retain_grad", "register_hook", "register_post_accumulate_grad_hook"):
    trait(Trait.READS_GRADIENT, f"torch.Tensor.{name}")
for name in ("zero_grad", "register_full_backward_hook", "register_backward_hook"):
    trait(Trait.READS_GRADIENT, f"torch.nn.Module.{name}")
trait(Trait.READS_GRADIENT, "torch.autograd", "torch.optim")
