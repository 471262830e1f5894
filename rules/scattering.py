"""Writing by index: ``scatter``, ``index_add``, ``masked_fill``, ... as ``x.at[...]`` updates.

These records give the new array; the in-place spellings (``scatter_``, ``index_add_``) rebind their target to it.
"""

from __future__ import annotations

from t2j_lsp.translate.rule.facts import Scalar, Tensor
from t2j_lsp.translate.rule.record import Call, Piece, Refusal, Row, rule

from ._arguments import axis_index, has_float, integer, part_texts, parts, rank_of
from ._facts import is_bool, is_float, is_integer

# Along an axis: x[i][index[i][j]] = src[i][j] ---------------------------------------------------------------------

REDUCE = {"add": "add", "multiply": "multiply"}
SCATTER_REDUCE = {"sum": "add", "prod": "multiply", "amax": "max", "amin": "min"}


@rule(
    "torch.scatter(input, dim, index, src)",
    "torch.scatter(input, dim, index, src, *, reduce)",
    "torch.scatter(input, dim, index, value)",
    "torch.scatter(input, dim, index, value, *, reduce)",
    jax="x.at[along_axis(index, dim)].set(src)",
    method=True,
    result="same",
)
def scatter(call: Call) -> Piece | Refusal:
    name = "src" if "src" in call.arguments else "value"
    source, fact = f"{{{name}}}", call["input"].fact
    if "reduce" in call.arguments and has_float(call[name]) and not is_float(fact):
        # PyTorch rounds the number to the input's dtype before it adds or multiplies
        source = f"int({source})" if is_integer(fact) else f"jnp.asarray({source}, {{input}}.dtype)"
    method = REDUCE.get(str(call["reduce"].literal)) if "reduce" in call.arguments else "set"
    if method is None:
        return call.refuse("The reduce of scatter must be 'add' or 'multiply' in plain sight.")
    _note_products(call, method)
    return call.emit(f"{{input}}.at[along_axis({{index}}, {{dim}})].{_of_dtype(call, method)}({source})")


def _of_dtype(call: Call, method: str) -> str:
    """The method of ``x.at[...]`` for the input's dtype: JAX neither adds nor multiplies bools."""
    return {"add": "max", "multiply": "min"}.get(method, method) if is_bool(call["input"].fact) else method


def _note_products(call: Call, method: str | None) -> None:
    if method == "multiply":
        call.note("JAX has no gradient of x.at[...].multiply() where indices may repeat.")


@rule(
    "torch.scatter_add(input, dim, index, src)",
    jax="x.at[along_axis(index, dim)].add(src)",
    method=True,
    result="same",
)
def scatter_add(call: Call) -> Piece:
    return call.emit(f"{{input}}.at[along_axis({{index}}, {{dim}})].{_of_dtype(call, 'add')}({{src}})")


@rule(
    "torch.scatter_reduce(input, dim, index, src, reduce, *, include_self=True)",
    jax="x.at[along_axis(index, dim)].max(src)",
    method=True,
    result="same",
)
def scatter_reduce(call: Call) -> Piece | Refusal:
    return _reduced(call, "along_axis({index}, {dim})", "{src}")


def _reduced(call: Call, places: str, source: str) -> Piece | Refusal:
    """Into ``places``; a mean, and a reduction without what stood there, need to know which were written to."""
    method = SCATTER_REDUCE.get(str(call["reduce"].literal))
    if method is None and call["reduce"].literal != "mean":
        return call.refuse("The reduce must be 'sum', 'prod', 'mean', 'amax' or 'amin' in plain sight.")
    products = method == "multiply" and not is_integer(call["input"].fact) and not is_bool(call["input"].fact)
    if method is None or products or call.given("include_self"):
        places = places if places.startswith("along_axis") else f"jnp.s_[{places}]"
        if is_bool(call["input"].fact):
            source, of = f"{source}.astype(jnp.int8)", {"sum": "amax", "prod": "amin"}.get(str(call["reduce"].literal))
            reduced = (
                f"reduce_at({{input}}.astype(jnp.int8), {places}, {source}, {{of}}, include_self={{include_self?}})"
            )
            return call.emit(f"{reduced}.astype(bool)", of=repr(of) if of else call["reduce"].text)
        return call.emit(f"reduce_at({{input}}, {places}, {source}, {{reduce}}, include_self={{include_self?}})")
    return call.emit(f"{{input}}.at[{places}].{_of_dtype(call, method)}({source})")


# Whole slices: x[:, index[j]] = source[:, j] ----------------------------------------------------------------------


def _at(call: Call, method: str, value: str, **extra: str) -> Piece | Refusal:
    dim = integer(call["dim"])
    if dim is None or not -3 <= dim <= 3:
        return call.refuse("The dim isn't a number: write x.at[..., index].set(source) for the axis that is meant.")
    return call.emit(f"{{input}}.at[{axis_index(dim, '{index}')}].{_of_dtype(call, method)}({value})", **extra)


@rule(
    "torch.index_add(input, dim, index, source, *, alpha=1)",
    jax="x.at[:, index].add(source)",
    method=True,
    result="same",
)
def index_add(call: Call) -> Piece | Refusal:
    scaled = "{alpha} & {source}" if is_bool(call["input"].fact) else "{alpha} * {source}"
    return _at(call, "add", scaled if call.given("alpha") else "{source}")


@rule("torch.index_copy(input, dim, index, source)", jax="x.at[:, index].set(source)", method=True, result="same")
def index_copy(call: Call) -> Piece | Refusal:
    return _at(call, "set", "{source}")


@rule("torch.index_fill(input, dim, index, value)", jax="x.at[:, index].set(value)", method=True, result="same")
def index_fill(call: Call) -> Piece | Refusal:
    return _at(call, "set", "{value}")


@rule(
    "torch.index_put(input, indices, values, accumulate=False)",
    jax="x.at[indices].set(values)",
    method=True,
    result="same",
)
def index_put(call: Call) -> Piece | Refusal:
    if call["accumulate"].literal not in (True, False):
        return call.refuse("accumulate must be True or False in plain sight.")
    method = _of_dtype(call, "add" if call["accumulate"].literal else "set")
    if parts(call["indices"]) is None:
        return call.emit(f"{{input}}.at[tuple({{indices}})].{method}({{values}})")
    return call.emit(f"{{input}}.at[{{at}}].{method}({{values}})", at=", ".join(part_texts(call["indices"])))


@rule("torch.select_scatter(input, src, dim, index)", jax="x.at[:, index].set(src)", method=True, result="same")
def select_scatter(call: Call) -> Piece | Refusal:
    return _at(call, "set", "{src}")


@rule(
    "torch.slice_scatter(input, src, dim=0, start=None, end=None, step=1)",
    jax="x.at[:, start:end].set(src)",
    method=True,
    result="same",
)
def slice_scatter(call: Call) -> Piece | Refusal:
    bounds = ":".join(call[n].text if call.given(n) else "" for n in ("start", "end"))
    bounds += f":{call['step'].text}" if call.given("step") else ""
    return _at(call, "set", "{src}", index=bounds)


@rule(
    "torch.put(input, index, source, accumulate=False)",
    jax="x.ravel().at[index].set(source).reshape(x.shape)",
    method=True,
)
def put(call: Call) -> Piece | Refusal:
    if call["accumulate"].literal not in (True, False):
        return call.refuse("accumulate must be True or False in plain sight.")
    method = _of_dtype(call, "add" if call["accumulate"].literal else "set")
    source = "{source}.reshape(())" if rank_of(call["index"]) == 0 else "{source}"
    return call.emit(f"{{input}}.ravel().at[{{index}}].{method}({source}).reshape({{input}}.shape)")


@rule(
    "torch.index_reduce(input, dim, index, source, reduce, *, include_self=True)",
    jax="x.at[:, index].max(source)",
    method=True,
    result="same",
)
def index_reduce(call: Call) -> Piece | Refusal:
    dim = integer(call["dim"])
    if dim is None or not -3 <= dim <= 3:
        return call.refuse("The dim isn't a number: write x.at[..., index].max(source) for the axis that is meant.")
    return _reduced(call, axis_index(dim, "{index}"), "{source}")


Row(
    "torch.diagonal_scatter(input, src, offset=0, dim1=0, dim2=1)",
    "diagonal_scatter({input}, {src}, offset={offset?}, dim1={dim1?}, dim2={dim2?})",
    method=True,
    result="same",
)

# By condition ---------------------------------------------------------------------------------------------------


@rule("torch.masked_fill(input, mask, value)", jax="jnp.where(mask, value, x)", method=True, result="same")
def masked_fill(call: Call) -> Piece:
    """The result has the dtype of the input, whatever the value is."""
    fact, value = call["input"].fact, call["value"]
    if isinstance(value.fact, Tensor):
        return call.emit("jnp.where({mask}, {value}.astype({input}.dtype), {input})")
    kind = value.fact.kind if isinstance(value.fact, Scalar) else None
    fits = ("bool",) if is_bool(fact) else ("int",) if is_integer(fact) else ("float",)
    if not is_float(fact) and kind not in fits:
        return call.emit("jnp.where({mask}, {value}, {input}).astype({input}.dtype)")
    return call.emit("jnp.where({mask}, {value}, {input})")


Row(
    "torch.masked_scatter(input, mask, source)", "masked_scatter({input}, {mask}, {source})", method=True, result="same"
)
