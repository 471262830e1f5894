"""Copies, devices and the way out of JAX: ``clone``, ``detach``, ``numpy``, ``item``, ``copy_``, ...

JAX arrays can't be changed, so a copy is the array itself.
"""

from __future__ import annotations

import ast

from t2j_lsp.translate.rule.facts import BOOL, FLOAT, INT, UNKNOWN, Fact, Object, Tensor, is_tensor
from t2j_lsp.translate.rule.library import Trait, trait
from t2j_lsp.translate.rule.record import Argument, Call, Piece, Refusal, Row, refuse, rule
from t2j_lsp.translate.rule.tensors import behind_data, same_rank

from ._arguments import array_text, flag_of, is_written_as_float, without_stop_gradient
from ._facts import is_bool, is_float, is_integer

# Copies ---------------------------------------------------------------------------------------------------------


@rule(
    "torch.clone(input, *, memory_format=torch.preserve_format)",
    jax="x",
    method=True,
    aliases=["torch.alias_copy"],
    result="same",
)
def clone(call: Call) -> Piece:
    """A parameter is read; of an object that only looks like a tensor a copy is made."""
    fact = call["input"].fact
    if isinstance(fact, Tensor) and fact.sure:
        return call.emit("{array}", array=call["input"]) if not fact.variable else _array(call, "input", "{array}")
    return call.emit("jnp.copy({input})")


def _array(call: Call, name: str, template: str) -> Piece:
    return call.emit(template, array=array_text(call[name]))


@rule("torch.detach(input)", jax="jax.lax.stop_gradient(x)", method=True, result="same")
def detach(call: Call) -> Piece:
    """What has no gradient already is told so once."""
    if without_stop_gradient(call["input"]).text != call["input"].piece.text:
        return call["input"].piece
    return _array(call, "input", "jax.lax.stop_gradient({array})")


@rule("torch.detach_copy(input)", jax="jax.lax.stop_gradient(x)", result="same")
def detach_copy(call: Call) -> Piece:
    return _array(call, "input", "jax.lax.stop_gradient({array})")


trait(Trait.SAME_VALUES, "clone", "contiguous", "cpu", "cuda", "detach")
trait(Trait.COPIES, "clone")
trait(Trait.MOVES, "cpu", "cuda", "to")
trait(Trait.TO_DEVICE, "cuda", "to")
trait(Trait.SAME_TENSOR, "contiguous", "cpu", "cuda", "double", "float", "requires_grad_", "to", "type")

# New values -----------------------------------------------------------------------------------------------------


def _is_place(call: Call) -> bool:
    """Whether the new value is written into a parameter or a slice, which broadcast it themselves."""
    if not call.site.statement:
        return False
    node = call["self"].node
    if isinstance(node, ast.Subscript):
        return is_tensor(call.site.fact(node.value))
    return node is not None and call.site.parameter(node) is not None


def _may_lack_axes(call: Call) -> bool:
    """Whether a kernel in Flax's layout is given what may have fewer axes, which PyTorch adds in front of its own."""
    node = behind_data(call["self"].node)
    parameter = call.site.parameter(node) if isinstance(node, ast.Attribute) else None
    return parameter is not None and parameter[1] and not same_rank(call["self"].fact, call["src"].fact)


@rule("torch.Tensor.copy_(self, src, non_blocking=False)", jax="x.at[...].set(src)", result="same")
def copy_(call: Call) -> Piece:
    if not _is_place(call):
        return call.emit("{self}.at[...].set({src})")
    if not _may_lack_axes(call):
        return call.emit("{src}")
    kernel = without_stop_gradient(call["self"]).text.removesuffix("[...]")
    return call.emit("jnp.broadcast_to({src}, {kernel}.shape)", kernel=kernel)


@rule("torch.Tensor.fill_(self, value)", jax="jnp.full_like(x, value)", result="same")
def fill_(call: Call) -> Piece:
    if _is_place(call):
        return call.emit("{value}")
    if (made := _made(call)) is None:
        return call.emit("jnp.full_like({self}, {value})")
    shape, dtype = made
    said = f", dtype={dtype}" if dtype else "" if is_written_as_float(call["value"]) else ", dtype=float"
    return call.emit(f"jnp.full({{shape}}, {{value}}{said})", shape=Piece(shape))


@rule("torch.Tensor.zero_(self)", jax="jnp.zeros_like(x)", result="same")
def zero_(call: Call) -> Piece:
    if _is_place(call):
        return call.emit("0")
    if (made := _made(call)) is None:
        return call.emit("jnp.zeros_like({self})")
    shape, dtype = made
    return call.emit(f"jnp.zeros({{shape}}{f', dtype={dtype}' if dtype else ''})", shape=Piece(shape))


def _made(call: Call) -> tuple[str, str] | None:
    """The shape and the dtype of an array that is made to be filled: ``torch.empty(2, 3).fill_(1)``."""
    try:
        made = ast.parse(call["self"].piece.text, mode="eval").body
    except SyntaxError:
        return None
    match made:
        case ast.Call(func=ast.Attribute(ast.Name("jnp"), "empty" | "zeros" | "ones"), args=[shape], keywords=[]):
            return ast.unparse(shape), ""
        case ast.Call(
            func=ast.Attribute(ast.Name("jnp"), "empty" | "zeros" | "ones"),
            args=[shape],
            keywords=[ast.keyword("dtype", dtype)],
        ):
            return ast.unparse(shape), ast.unparse(dtype)
    return None


@rule("torch.Tensor.fill_diagonal_(self, fill_value, wrap=False)", jax="jnp.fill_diagonal(x, value, inplace=False)")
def fill_diagonal_(call: Call) -> Piece:
    return call.emit("jnp.fill_diagonal({self}, {fill_value}, wrap={wrap?}, inplace=False)")


# Devices --------------------------------------------------------------------------------------------------------

Row("torch.Tensor.cpu(self, memory_format=torch.preserve_format)", "{self}", result="same")
Row(
    "torch.Tensor.cuda(self, device=None, non_blocking=False, memory_format=torch.preserve_format)",
    "{self}",
    result="same",
)
Row("torch.Tensor.pin_memory(self)", "{self}", result="same")
refuse("torch.Tensor.share_memory_", "JAX arrays aren't shared between processes; each process holds its own.")
refuse("torch.Tensor.is_pinned", "JAX has no pinned tensors.")
refuse("torch.Tensor.record_stream", "JAX has no streams: XLA orders the work itself.")
refuse("torch.Tensor.get_device", "A JAX array has x.device; code under jit can't ask for it.")

# Out of JAX -----------------------------------------------------------------------------------------------------


trait(Trait.TO_NUMPY, "numpy")
trait(Trait.TAKES_OUT, "item", "numpy", "tolist")
trait(Trait.STOPS_GRADIENT, "item", "numpy", "tolist", "detach", "data", "sample", "argmax", "argsort")


def _leaving(call: Call, template: str) -> Piece:
    """What reads the values of an array, of which no gradient is traced."""
    plain = without_stop_gradient(call["self"])
    if call.site.traced and not is_integer(call["self"].fact):
        template = template.replace("{array}", "jax.lax.stop_gradient({array})")
        return call.emit(template, array=plain.text)
    return call.emit(template, array=plain)


@rule(
    "torch.Tensor.numpy(self, *, force=False)",
    jax="np.asarray(x)",
    ignore=["force"],
    result=lambda call: Object("array", "numpy.asarray"),
)
def numpy(call: Call) -> Piece:
    return _leaving(call, "np.array({array})" if call.site.copies else "np.asarray({array})")


def _number(call: Call) -> Fact:
    fact = call["self"].fact
    if is_integer(fact):
        return BOOL if is_bool(fact) else INT
    return FLOAT if is_float(fact) else UNKNOWN


@rule("torch.Tensor.item(self)", jax="x.item()", result=_number)
def item(call: Call) -> Piece:
    return _leaving(call, "{array}.item()")


@rule("torch.Tensor.tolist(self)", jax="x.tolist()", result="unknown")
def tolist(call: Call) -> Piece:
    return _leaving(call, "{array}.tolist()")


trait(Trait.ASKS_FOR_TENSOR, "torch.is_tensor")
Row("torch.is_tensor(obj)", "isinstance({obj}, jax.Array)", result="bool")

# Autograd -------------------------------------------------------------------------------------------------------

FREEZE = (
    "Freeze parameters where the gradient is taken: nnx.grad(..., argnums=nnx.DiffState(0, filter)) and "
    "nnx.Optimizer(..., wrt=filter)."
)


def is_part(tensor: Argument) -> bool:
    """Whether it is ``buffer[:n]``: of a parameter, PyTorch would refuse to change the flag."""
    return isinstance(tensor.node, ast.Subscript) and is_tensor(tensor.fact)


@rule("torch.Tensor.requires_grad_(self, requires_grad=True)", jax="x", result="same")
def requires_grad_(call: Call) -> Piece | Refusal:
    """``new.weight.requires_grad_(old.weight.requires_grad)`` hands a flag of the variable on."""
    target = call.site.parameter(call["self"].node) if isinstance(call["self"].node, ast.Attribute) else None
    other = flag_of(call["requires_grad"], call)
    if target is not None and other is not None and call.site.statement:
        flag = f'trainable={other}.get_metadata("trainable", True)'
        return call.emit(f"{{target}}.set_metadata({flag})", target=Piece(target[0]))
    if call["requires_grad"].literal is not True and not is_part(call["self"]):
        return call.refuse(FREEZE)
    return call.emit("{self}")


for name in ("register_hook", "register_post_accumulate_grad_hook", "retain_grad"):
    refuse(f"torch.Tensor.{name}", "JAX arrays carry no hooks; use jax.custom_vjp on the function instead.")
