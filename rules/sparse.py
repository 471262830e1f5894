"""Sparse matrices in coordinates, ``torch.sparse_coo_tensor``: `jax.experimental.sparse.BCOO`, for products.

What is computed with them besides products is refused: JAX's functions take no BCOO.
"""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import INT, TENSOR, Fact, Object, Scalar, Shape, is_tensor
from t2j_lsp.translate.rule.library import Trait, same_attribute, torch_class, trait
from t2j_lsp.translate.rule.record import Call, Piece, Refusal, Row, refuse, rule

COO = "torch.sparse.FloatTensor"
"""The type that PyTorch says a sparse matrix is, which has its methods."""
SPARSE = Object("sparse", COO)
torch_class(COO, fact=SPARSE, called="sparse")
trait(Trait.MEMBERS_HAVE_RULES, COO)
trait(Trait.ALONE, COO)
ELSE = "JAX keeps sparse arrays in jax.experimental.sparse, with another interface."


def matrix(call: Call) -> Piece | Refusal:
    """A matrix of its coordinates, one column for each value, and the values."""
    if not call.given("size"):
        return call.refuse("BCOO needs the shape, which PyTorch takes from the largest coordinates here: name it")
    if call.given("requires_grad") and call.literal("requires_grad") is not False:
        return call.refuse("there is no gradient with respect to a BCOO that is made here: differentiate its values")
    values, places = (
        f"{{{name}{end}}}" if is_tensor(call[name].fact) else f"jnp.asarray({{{name}}})"
        for name, end in (("values", ""), ("indices", ":atom"))
    )
    values += ".astype({dtype})" if call.given("dtype") else ""
    return call.emit(f"BCOO(({values}, {places}.T), shape={{size:shape}})")


TEMPLATE = "BCOO((values, indices.T), shape=size)"
rule(
    "torch.sparse_coo_tensor(indices, values, size=None, *, dtype=None, device=None, requires_grad=False,"
    " check_invariants=None, is_coalesced=None)",
    jax=TEMPLATE,
    ignore=["device", "check_invariants", "is_coalesced"],
    result=lambda call: SPARSE,
)(matrix)
rule(
    f"{COO}(indices, values, size=None, *, device=None)",
    jax=TEMPLATE,
    ignore=["device"],
    result=lambda call: SPARSE,
)(matrix)
for name in ("DoubleTensor", "LongTensor", "IntTensor"):
    refuse(f"torch.sparse.{name}", ELSE)
for name in ("sparse_csr_tensor", "sparse_compressed_tensor", "sparse_csc_tensor"):
    refuse(f"torch.{name}", ELSE)
refuse("torch.Tensor.to_sparse", ELSE)


def product(call: Call) -> Fact:
    """Of two sparse matrices a sparse one."""
    return SPARSE if call["mat2"].fact == SPARSE == call["input"].fact else TENSOR


Row("torch.sparse.mm(input, mat2)", "{input} @ {mat2}", result=product)
for name in ("torch.mm", "torch.matmul", "torch.spmm", "torch.sparse.mm"):
    trait(Trait.TAKES_ANY_OBJECT, name)
for name, other in {"mm": "mat2", "matmul": "other"}.items():
    Row(f"{COO}.{name}(self, {other})", f"{{self}} @ {{{other}}}", result=lambda call: TENSOR)
Row(f"{COO}.to_dense(self)", "{self:atom}.todense()")
Row(f"{COO}.coalesce(self)", "{self:atom}.sum_duplicates()", result=lambda call: SPARSE)
Row(f"{COO}.t(self)", "{self:atom}.T", result=lambda call: SPARSE)
Row(f"{COO}._nnz(self)", "{self:atom}.nse", result="int")
for prefix in ("", "_"):
    Row(f"{COO}.{prefix}indices(self)", "{self:atom}.indices.T", result="int tensor")
    Row(f"{COO}.{prefix}values(self)", "{self:atom}.data")
for signature in ("cuda(self, device=None, non_blocking=False)", "cpu(self)"):
    Row(f"{COO}.{signature}", "{self}", ignore=["device", "non_blocking"], result=lambda call: SPARSE)
for name, result in {"shape": "shape", "dtype": "dtype", "ndim": "int"}.items():
    same_attribute(f"{COO}.{name}", result)


@rule(f"{COO}.size(self, dim=None)", jax="x.shape", result=lambda call: INT if call.given("dim") else Shape())
def size(call: Call) -> Piece:
    return call.emit("{self:atom}.shape[{dim}]" if call.given("dim") else "{self:atom}.shape")


@rule(f"{COO}.to(self, device, dtype=None, non_blocking=False, copy=False)", jax="x", result=lambda call: SPARSE)
def to(call: Call) -> Piece | Refusal:
    fact = call["device"].fact
    if call.given("dtype") or not (isinstance(fact, Object | Scalar) and fact.kind in ("device", "str")):
        return call.refuse("a BCOO keeps its dtype: give its values another one")
    return call.emit("{self}")
