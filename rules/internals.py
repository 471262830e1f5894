"""Public names of PyTorch that are parts of its own machinery: what stands for them, or why nothing does.

Kernels of single backends, TorchScript's types, quantisation, storages, sparse formats, symbolic sizes.
"""

from __future__ import annotations

from t2j_lsp.translate.rule.record import CLOSE, Call, Piece, Refusal, Row, refuse, rule

from ._arguments import spread


def words(text: str) -> list[str]:
    """The names in a text."""
    return text.split()


# Sizes under torch.export are plain numbers under jax.jit ---------------------------------------------------------

Row("torch.sym_int(a)", "int({a})", result="int")
Row("torch.sym_float(a)", "float({a})", result="float")
Row("torch.sym_max(a, b)", "max({a}, {b})", result="unknown")
Row("torch.sym_min(a, b)", "min({a}, {b})", result="unknown")
Row("torch.sym_not(a)", "not {a}", result="bool")
Row("torch.sym_ite(b, t, f)", "{t} if {b} else {f}", result="unknown")
SYMBOLIC = "Sizes are numbers while JAX traces: compute with them as with any others."
for name in words("sym_sum sym_sqrt sym_fresh_size sym_constrain_range sym_constrain_range_for_size"):
    refuse(f"torch.{name}", SYMBOLIC)
for name in words("SymInt SymFloat SymBool"):
    refuse(f"torch.{name}", SYMBOLIC)

# Tools of PyTorch's developers ------------------------------------------------------------------------------------

for name in words(
    "ThroughputBenchmark cmake_prefix_path generate_methods_for_privateuse1_backend get_cpp_backtrace "
    "rename_privateuse1_backend set_module swap_tensors"
):
    refuse(
        f"torch.utils.{name}", "A tool for building PyTorch, or for changing its own objects: JAX has no use for it."
    )

# Trees of values --------------------------------------------------------------------------------------------------

PYTREE = "torch.utils._pytree"
LEAF = "is_leaf=lambda leaf: leaf is None"  # None is a value to PyTorch, and no leaf at all to JAX
OWN_LEAVES = "jax.tree takes None for no leaf: write is_leaf so that it says True of None as well."
DICTS = "JAX walks dicts in the order of their sorted keys, PyTorch in that in which they were filled."


@rule(f"{PYTREE}.tree_map(func, tree, *rests, is_leaf=None)", jax="jax.tree.map(func, tree, *rests)", result="unknown")
def tree_map(call: Call) -> Piece | Refusal:
    """Every leaf, None among them."""
    if call.given("is_leaf"):
        return call.refuse(OWN_LEAVES)
    rests = spread(call["rests"])
    return call.emit(f"jax.tree.map({{func}}, {{tree}}, {'{rests}, ' if rests else ''}{LEAF})", rests=rests)


for form in ("flatten", "leaves"):

    def walk(call: Call, form: str = form) -> Piece | Refusal:
        """The leaves, None among them."""
        return call.refuse(OWN_LEAVES) if call.given("is_leaf") else call.emit(f"jax.tree.{form}({{tree}}, {LEAF})")

    rule(
        f"{PYTREE}.tree_{form}(tree, is_leaf=None)",
        jax=f"jax.tree.{form}(tree)",
        result="unknown",
        fidelity=CLOSE,
        note=DICTS,
    )(walk)
Row(f"{PYTREE}.tree_unflatten(leaves, treespec)", "jax.tree.unflatten({treespec}, {leaves})", result="unknown")

# Functions of which nn.functional has the documented form ---------------------------------------------------------

WRAPPED = """
    alpha_dropout batch_norm bilinear binary_cross_entropy_with_logits cosine_embedding_loss ctc_loss embedding_bag
    feature_alpha_dropout hinge_embedding_loss instance_norm kl_div margin_ranking_loss poisson_nll_loss
    triplet_margin_loss
"""
for name in WRAPPED.split():
    refuse(f"torch.{name}", f"The inner function of F.{name}: write that.")
for name in words("alpha_dropout_ feature_alpha_dropout_ feature_dropout feature_dropout_"):
    refuse(f"torch.{name}", "An inner function of PyTorch: write x = F.dropout2d(x) or F.alpha_dropout(x).")
INNER = {
    "affine_grid_generator": "F.affine_grid",
    "binomial": "torch.distributions.Binomial",
    "conv_tbc": "F.conv1d of (N, C, L)",
    "convolution": "F.conv2d",
    "embedding_renorm_": "F.embedding of a renormalised table",
    "frobenius_norm": "torch.linalg.matrix_norm",
    "max_pool1d_with_indices": "F.max_pool1d(x, k, return_indices=True)",
    "native_norm": "torch.linalg.vector_norm",
    "norm_except_dim": "torch.linalg.vector_norm over the other axes",
    "nuclear_norm": "torch.linalg.matrix_norm(x, 'nuc')",
    "select_copy": "torch.select",
    "slice_copy": "x[start:end]",
    "slice_inverse": "x.at[start:end].set(y)",
    "view_as_complex_copy": "torch.view_as_complex",
    "view_as_real_copy": "torch.view_as_real",
    "segment_reduce": "torch.scatter_reduce, or jax.ops.segment_sum",
}
for name, instead in INNER.items():
    refuse(f"torch.{name}", f"An inner function of PyTorch: write {instead}.")
refuse("torch.Tensor.slice_inverse", "An inner function of PyTorch: write x.at[start:end].set(y).")
for name in words("gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell"):
    layer = f"nn.{name.partition('_')[0].upper()}"
    refuse(f"torch.{name}", f"The inner function of {layer}: use the layer, which converts with its weights.")
for name in words("elemt gather_stats gather_stats_with_counts stats update_stats backward_elemt backward_reduce"):
    refuse(f"torch.batch_norm_{name}", "A part of nn.SyncBatchNorm: batch norm's axis_name does that in JAX.")

KERNEL = "A kernel of one backend: XLA chooses its own. Call the function of torch.nn.functional."
for prefix, names in {
    "cudnn": """
        affine_grid_generator batch_norm convolution convolution_add_relu convolution_relu convolution_transpose
        grid_sampler is_acceptable
    """,
    "miopen": """
        batch_norm convolution convolution_add_relu convolution_relu convolution_transpose ctc_loss
        depthwise_convolution rnn
    """,
    "mkldnn": "adaptive_avg_pool2d convolution linear_backward_weights max_pool2d max_pool3d rnn_layer",
    "fbgemm": """
        linear_fp16_weight linear_fp16_weight_fp32_activation linear_int8_weight linear_int8_weight_fp32_activation
        linear_quantize_weight pack_gemm_matrix_fp16 pack_quantized_matrix
    """,
}.items():
    for name in names.split():
        refuse(f"torch.{prefix}_{name}", KERNEL)
for name in words("grouped_mm scaled_mm scaled_grouped_mm ScalingType SwizzleType"):
    refuse(
        f"torch.nn.functional.{name}",
        "A matrix product of 8-bit floats, or of groups: jax.lax.ragged_dot, or jnp.matmul.",
    )
for name in words("""
    BroadcastingList1 BroadcastingList2 BroadcastingList3 GRID_SAMPLE_INTERPOLATION_MODES GRID_SAMPLE_PADDING_MODES
    assert_int_or_pair boolean_dispatch handle_torch_function has_torch_function has_torch_function_unary
    has_torch_function_variadic reproducibility_notes sparse_support_notes tf32_notes
"""):
    refuse(f"torch.nn.functional.{name}", "A name that torch.nn.functional itself uses.")

# Removed, or of no meaning for arrays -----------------------------------------------------------------------------

for name, instead in {
    "eig": "torch.linalg.eig",
    "lstsq": "torch.linalg.lstsq",
    "matrix_rank": "torch.linalg.matrix_rank",
    "solve": "torch.linalg.solve",
    "symeig": "torch.linalg.eigh",
}.items():
    aliases = [] if name == "matrix_rank" else [f"torch.Tensor.{name}"]
    refuse(f"torch.{name}", f"Removed from PyTorch: use {instead}, which converts.", aliases=aliases)
for name in words("is_conj is_neg is_inference is_distributed"):
    refuse(
        f"torch.{name}",
        "Tensors that are conjugated, negated or read-only when they are used: JAX arrays are never so.",
        aliases=[f"torch.Tensor.{name}"],
    )
Row("torch.is_same_size(input, other)", "{input}.shape == {other}.shape", method=True, result="bool")
Row("torch.is_nonzero(input)", "bool({input} != 0)", method=True, result="bool")
refuse("torch.typename", "The name of a class of PyTorch: type(x).__name__ is that of JAX's.")
refuse("torch.get_device", "A JAX array has x.device; code under jit can't ask for it.")
for name in words("from_dlpack to_dlpack"):
    refuse(f"torch.{name}", "JAX has jax.dlpack.from_dlpack(x), which takes the array itself.")
refuse("torch.from_file", "Memory-mapped files are np.memmap's; jnp.asarray takes them.")
refuse("torch.default_generator", "JAX has no generator of the process: make an nnx.Rngs(seed) and pass it on.")
refuse("torch.thread_safe_generator", "JAX has no generator of the process: make an nnx.Rngs(seed) and pass it on.")
for name in words("fork wait Future"):
    refuse(f"torch.{name}", "Work that runs beside: JAX dispatches asynchronously anyway, and XLA orders it.")

TENSOR = {
    "apply_": "A Python function of every element: write it with jax.numpy, or jnp.vectorize.",
    "map_": "A Python function of every pair of elements: write it with jax.numpy, or jnp.vectorize.",
    "map2_": "A Python function of every triple of elements: write it with jax.numpy, or jnp.vectorize.",
    "as_subclass": "JAX arrays have no subclasses.",
    "chalf": "JAX has no complex numbers of half precision: x.astype(jnp.complex64).",
    "const_data_ptr": "JAX arrays have no address that code may use.",
    "dim_order": "JAX arrays have no strides.",
    "grad_dtype": "A gradient has the dtype of what it is of.",
    "index": "A first-class dimension of PyTorch: use jax.vmap, or einops.",
    "is_set_to": "JAX arrays share no storage.",
    "is_shared": "JAX arrays aren't shared between processes.",
    "module_load": "What load_state_dict calls: use t2j_lsp.load_torch_state.",
    "name": "A name in PyTorch's graphs.",
    "reinforce": "Removed from PyTorch: write the loss with log_prob.",
    "resize": "JAX arrays don't change their size: write x.reshape(size), or jnp.pad.",
    "resize_as": "JAX arrays don't change their size: write x.reshape(other.shape), or jnp.pad.",
    "storage_type": "JAX arrays have no storage.",
    "to_mkldnn": "A layout of one backend: XLA chooses its own.",
    "to_padded_tensor": "JAX has no nested tensors: keep a padded array and a mask.",
    "volatile": "Removed from PyTorch: use jax.lax.stop_gradient.",
}
for name, reason in TENSOR.items():
    refuse(f"torch.Tensor.{name}", reason)
for name in words("ipu is_ipu is_maia is_mtia is_vulkan is_xpu mtia xpu"):
    refuse(f"torch.Tensor.{name}", "A device of PyTorch's that JAX has not: jax.device_put moves arrays.")

# Sparse, quantised ------------------------------------------------------------------------------------------------

SPARSE = "Sparse arrays are in jax.experimental.sparse (BCOO, BCSR), under other names."
for name in words("""
    ccol_indices_copy col_indices_copy crow_indices_copy dsmm hsmm hspmm indices_copy resize_as_sparse_
    row_indices_copy saddmm smm sparse_bsc sparse_bsc_tensor sparse_bsr sparse_bsr_tensor sparse_coo sparse_csc
    sparse_csr sspaddmm values_copy jagged
"""):
    refuse(f"torch.{name}", SPARSE)
for name in words("""
    ccol_indices coalesce col_indices crow_indices dense_dim indices is_coalesced resize_as_sparse_ row_indices smm
    sparse_dim sparse_mask sparse_resize_ sparse_resize_and_clear_ sspaddmm to_dense to_sparse_bsc to_sparse_bsr
    to_sparse_coo to_sparse_csc to_sparse_csr values
"""):
    refuse(f"torch.Tensor.{name}", SPARSE)
QUANTISED = "JAX has no quantised arrays: see the qwix package for quantised training."
for name in words("""
    choose_qparams_optimized empty_quantized fake_quantize_per_channel_affine fake_quantize_per_tensor_affine
    fused_moving_avg_obs_fake_quant per_channel_affine per_channel_affine_float_qparams per_channel_symmetric
    per_tensor_affine per_tensor_symmetric quantize_per_channel quantize_per_tensor_dynamic quantized_batch_norm
    quantized_gru quantized_gru_cell quantized_lstm quantized_lstm_cell quantized_max_pool1d quantized_max_pool2d
    quantized_max_pool3d quantized_rnn_relu_cell quantized_rnn_tanh_cell
"""):
    refuse(f"torch.{name}", QUANTISED)
for name in words("""
    dequantize int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qscheme
"""):
    refuse(f"torch.{name}", QUANTISED, aliases=[f"torch.Tensor.{name}"])
for name in words("""
    bit bits16 bits1x8 bits2x4 bits4x2 bits8 float4_e2m1fn_x2 float8_e8m0fnu int1 int2 int3 int5 int6 int7 uint1 uint2
    uint3 uint5 uint6 uint7
"""):
    refuse(f"torch.{name}", "A dtype for packing, which JAX has not; jnp.int4, jnp.uint4 and float8 types exist.")
for name in words("int4 uint4"):
    refuse(f"torch.{name}", "PyTorch has only the name of this dtype; jnp.int4 and jnp.uint4 compute.")

# Settings ---------------------------------------------------------------------------------------------------------

AUTOCAST = "JAX has no autocast: give layers dtype=jnp.bfloat16, or cast where it is meant."
for name in words("""
    autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache get_autocast_ipu_dtype
    get_autocast_xla_dtype is_autocast_cache_enabled is_autocast_ipu_enabled is_autocast_xla_enabled
    set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled
    set_autocast_gpu_dtype set_autocast_ipu_dtype set_autocast_ipu_enabled set_autocast_xla_dtype
    set_autocast_xla_enabled
"""):
    refuse(f"torch.{name}", AUTOCAST)
for name in words("""
    compiled_with_cxx11_abi get_deterministic_debug_mode get_device_module get_file_path get_float32_matmul_precision
    has_lapack has_mkl has_openmp has_spectral init_num_threads is_anomaly_check_nan_enabled is_anomaly_enabled
    is_deterministic_algorithms_warn_only_enabled is_vulkan_available is_warn_always_enabled
    prepare_multiprocessing_environment profiler_allow_cudagraph_cupti_lazy_reinit_cuda12 set_anomaly_enabled
    set_deterministic_debug_mode set_warn_always classproperty
"""):
    refuse(f"torch.{name}", "A setting or a question of PyTorch's own runtime; jax.config has JAX's.")
for name in words("layout legacy_contiguous_format memory_format"):
    refuse(f"torch.{name}", "JAX arrays have no memory formats: XLA lays them out.")

# Types ------------------------------------------------------------------------------------------------------------

SCRIPT = "A part of TorchScript's compiler; JAX's programs are jax.make_jaxpr's."
for name in words("""
    AggregationType AliasDb AnyType Argument ArgumentSpec AwaitType Block BoolType BufferDict CallStack Capsule
    ClassType Code CompilationUnit CompleteArgumentSpec ComplexType ConcreteModuleType ConcreteModuleTypeBuilder
    DeepCopyMemoTable DeserializationStorageContext DeviceObjType DictType DisableTorchFunction
    DisableTorchFunctionSubclass DispatchKey DispatchKeySet EnumType ErrorReport ExcludeDispatchKeyGuard ExecutionPlan
    FileCheck FloatType FunctionSchema FutureType Gradient Graph GraphExecutorState IODescriptor InferredType IntType
    InterfaceType JITException ListType LiteScriptModule LockingLogger LoggerBase ModuleDict Node NoneType NoopLogger
    NumberType OperatorInfo OptionalType ParameterDict PyObjectType PyTorchFileReader PyTorchFileWriter RRefType
    ScriptClass ScriptClassFunction ScriptDict ScriptDictIterator ScriptDictKeyIterator ScriptFunction ScriptList
    ScriptListIterator ScriptMethod ScriptModule ScriptModuleSerializer ScriptObject ScriptObjectProperty
    SerializationStorageContext StaticModule StreamObjType StringType SymBoolType SymIntType Tag TensorType
    TracingState TupleType Type UnionType Use Value import_ir_module import_ir_module_from_buffer
    merge_type_from_type_comment parse_ir parse_schema parse_type_comment unify_type_list AVG SUM
"""):
    refuse(f"torch.{name}", SCRIPT)
for name in words("""
    BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage ComplexFloatStorage DoubleStorage
    FloatStorage HalfStorage IntStorage LongStorage QInt32Storage QInt8Storage QUInt2x4Storage QUInt4x2Storage
    QUInt8Storage ShortStorage Storage StorageBase TypedStorage UntypedStorage is_storage
"""):
    refuse(f"torch.{name}", "JAX arrays have no storages: keep the array.")
for name in words("BenchmarkConfig BenchmarkExecutionStats ThroughputBenchmark"):
    refuse(f"torch.{name}", "PyTorch's own timing: time a function with jax.block_until_ready, or jax.profiler.")
for name in words("Event Stream"):
    refuse(f"torch.{name}", "JAX has no streams: XLA orders the work itself.")
for name in words("AcceleratorError FatalError OutOfMemoryError"):
    refuse(f"torch.{name}", "JAX raises jax.errors.JaxRuntimeError, whatever failed on the device.")
refuse("torch.linalg.LinAlgError", "jax.numpy raises nothing there: test the result with jnp.isfinite.")
for name in words("PRIVATE_OPS USE_GLOBAL_DEPS USE_RTLD_GLOBAL_WITH_LIBTORCH"):
    refuse(f"torch.{name}", "A constant of PyTorch's own start.")

# Of subpackages ---------------------------------------------------------------------------------------------------

refuse("torch.linalg.common_notes", "Text for PyTorch's documentation.")
for name in words("common_args factory_common_args"):
    refuse(f"torch.fft.{name}", "Text for PyTorch's documentation.")
refuse("torch.optim.swap_in_optimizer_params_and_state", "An optimizer's state in Flax: nnx.state and nnx.update.")
for rank in (2, 3):
    refuse(f"torch.nn.utils.convert_conv{rank}d_weight_memory_format", "JAX arrays have no memory formats.")

# Packages that are PyTorch's own ----------------------------------------------------------------------------------

for name, reason in {
    "torch.ops": "An operator of compiled code: write what it computes in JAX, or bind the code by jax.ffi.",
    "torch._C": "PyTorch's compiled core: whatever asks or sets it has nothing to do in JAX.",
    "torch.serialization": "How PyTorch reads its own files, which t2j_lsp.load_torch_state reads, too.",
    "torch._dynamo": "PyTorch's compiler: jax.jit traces instead, and has no such settings.",
    "torch.cpu": "PyTorch's questions to the processor: XLA compiles for the one it finds.",
}.items():
    refuse(f"{name}.*", reason)
for name in words("_default_to_fused_or_foreach _get_capturable_supported_devices"):
    refuse(f"torch.optim.optimizer.{name}", "How PyTorch runs an optimizer's operations: XLA fuses them by itself.")
