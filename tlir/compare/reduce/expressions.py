"""Operations as expressions of a frontend: ``add(x, y)`` is ``lax.add(x, y)`` in JAX, ``torch.add(x, y)`` in PyTorch.

An expression computes what the operation's definition says, by the frontend's function of that meaning, so that a
program made of them shows what the frontend does. Where no function has the same meaning for a node's attributes there
is no expression.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tlir.errors import UnsupportedError
from tlir.ir.graph import Node
from tlir.ir.types import DType, TensorType

FRONTENDS = ("jax", "torch")

Write = Callable[[Node, Sequence[str], Sequence[TensorType]], str | None]


def expression(frontend: str, node: Node, operands: Sequence[str], types: Sequence[TensorType]) -> str:
    """The expression of a node for the names of its operands, which have these types. UnsupportedError TL0804 where the
    frontend is not one of ``FRONTENDS`` or has no function of the operation's meaning."""
    table = {"jax": _JAX, "torch": _TORCH}.get(frontend)
    write = table.get(node.op) if table is not None else None
    text = write(node, operands, types) if write is not None and len(node.types) == 1 else None
    if text is None or any(_dtype(frontend, type.dtype) is None for type in (*types, *node.types)):
        raise UnsupportedError("TL0804", f"{node.op} of {', '.join(map(str, types))} has no expression in {frontend}")
    return text


_TORCH_NAMES = {
    "bool", "int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16", "float32", "float64", "complex64",
    "complex128", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
}  # fmt: skip

_JAX_NAMES = _TORCH_NAMES | {"uint16", "uint32", "uint64"}


def _dtype(frontend: str, dtype: DType) -> str | None:
    """A dtype's name in a frontend's program, None where it has none."""
    if frontend == "jax":
        return f"jnp.{dtype.name}{'_' if dtype.is_bool else ''}" if dtype.name in _JAX_NAMES else None
    return f"torch.{dtype.name}" if dtype.name in _TORCH_NAMES else None


def loaded(frontend: str, name: str, dtype: DType) -> str:
    """The expression of an input whose array, as ``stored`` has it, is ``data[name]``."""
    array = f"data[{name!r}]"
    if frontend == "jax":
        return f"jnp.asarray({array})" if _native(dtype) else f"jnp.asarray({array}.view({_dtype(frontend, dtype)}))"
    if _native(dtype):
        return f"torch.from_numpy({array})"
    signed = "int16" if dtype.bits == 16 else "uint8"
    return f"torch.from_numpy({array}.view({signed!r})).view({_dtype(frontend, dtype)})"


def _native(dtype: DType) -> bool:
    """Whether NumPy itself has the dtype, so that an .npz file says which one it is."""
    return dtype.name not in ("bfloat16",) and not dtype.name.startswith("float8")


def _call(function: str, *more: str) -> Write:
    return lambda node, x, types: f"{function}({', '.join([*x, *more])})"


def _list(values: Any) -> str:
    return "(" + "".join(f"{int(v)}, " for v in values).rstrip(" ") + ")" if len(values) == 1 else str(tuple(values))


def _same(names: str, module: str) -> dict[str, Write]:
    """Pairs "operation=function", or one word where both have one name."""
    pairs = (pair.partition("=") for pair in names.split())
    return {op: _call(f"{module}.{function or op}") for op, _, function in pairs}


def _compare(module: str) -> Write:
    def write(node: Node, x: Sequence[str], types: Sequence[TensorType]) -> str | None:
        if node.attrs.get("compare_type", "") == "TOTALORDER":
            return None
        return f"{module}.{node.attrs['comparison_direction'].lower()}({x[0]}, {x[1]})"

    return write


def _slices(node: Node) -> str:
    parts = zip(*(node.attrs[name] for name in ("start_indices", "limit_indices", "strides")), strict=True)
    return ", ".join(f"{a}:{b}" + (f":{s}" if s != 1 else "") for a, b, s in parts) or "..."


# JAX: jax.lax has functions of the same meanings, most of them of the same names


def _jax_reduce(node: Node, x: Sequence[str], types: Sequence[TensorType]) -> str | None:
    names = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}
    reducer = names.get(node.attrs["reducer"], node.attrs["reducer"])
    if node.type.dtype != types[0].dtype:
        return None
    return f"lax.reduce_{reducer}({x[0]}, axes={_list(node.attrs['dimensions'])})"


def _jax_dot(node: Node, x: Sequence[str], types: Sequence[TensorType]) -> str:
    names = ("contracting_dimensions", "batching_dimensions")
    pairs = (f"({_list(node.attrs['lhs_' + name])}, {_list(node.attrs['rhs_' + name])})" for name in names)
    wide = "" if node.type.dtype == types[0].dtype else f", preferred_element_type=jnp.{node.type.dtype.name}"
    return f"lax.dot_general({x[0]}, {x[1]}, ({', '.join(pairs)}){wide})"


def _jax_convolution(node: Node, x: Sequence[str], types: Sequence[TensorType]) -> str | None:
    attrs = node.attrs
    if any(attrs["window_reversal"]) or node.type.dtype != types[0].dtype:
        return None
    padding = list(zip(attrs["padding_low"], attrs["padding_high"], strict=True))
    numbers = ", ".join(_list(attrs[f"{side}_dimensions"]) for side in ("lhs", "rhs", "output"))
    groups = "".join(
        f", {name}={attrs[name]}" for name in ("feature_group_count", "batch_group_count") if attrs.get(name, 1) != 1
    )
    return (
        f"lax.conv_general_dilated({x[0]}, {x[1]}, {_list(attrs['window_strides'])}, {padding}, "
        f"{_list(attrs['lhs_dilation'])}, {_list(attrs['rhs_dilation'])}, lax.ConvDimensionNumbers({numbers}){groups})"
    )


def _jax_cumulative(node: Node, x: Sequence[str], types: Sequence[TensorType]) -> str | None:
    names = {"add": "cumsum", "multiply": "cumprod", "maximum": "cummax", "minimum": "cummin"}
    name = names.get(node.attrs["reducer"])
    return name and f"lax.{name}({x[0]}, {node.attrs['dimension']}, reverse={bool(node.attrs.get('reverse', False))})"


def _jax_pad(node: Node, x: Sequence[str], types: Sequence[TensorType]) -> str:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    return f"lax.pad({x[0]}, {x[1]}, {list(zip(*(node.attrs[name] for name in names), strict=True))})"


def _jax_sort(node: Node, x: Sequence[str], types: Sequence[TensorType]) -> str | None:
    if len(x) != 1 or node.attrs.get("descending", False):
        return None
    return f"lax.sort({x[0]}, dimension={node.attrs['dimension']})"


def _jax_argument(function: str) -> Write:
    return lambda node, x, types: f"lax.{function}({x[0]}, {node.attrs['dimension']}, jnp.{node.type.dtype.name})"


def _jax_convert(node: Node, x: Sequence[str], types: Sequence[TensorType]) -> str | None:
    name = _dtype("jax", node.type.dtype)
    return name and f"lax.convert_element_type({x[0]}, {name})"


_JAX: dict[str, Write] = (
    _same(
        "add subtract=sub multiply=mul divide=div remainder=rem maximum=max minimum=min negate=neg abs sign floor ceil "
        "sqrt next_after=nextafter is_finite rsqrt exponential=exp exponential_minus_one=expm1 log log_plus_one=log1p "
        "logistic tanh sine=sin cosine=cos tan asin acos atan sinh cosh asinh acosh atanh exp2 cbrt erf erfc erf_inv "
        "lgamma digamma atan2 power=pow bessel_i0e bessel_i1e polygamma zeta igamma igammac random_gamma_grad select "
        "clamp and=bitwise_and or=bitwise_or xor=bitwise_xor not=bitwise_not shift_left shift_right_logical "
        "shift_right_arithmetic popcnt=population_count count_leading_zeros=clz complex real imag conjugate=conj "
        "regularized_incomplete_beta=betainc igamma_grad_a",
        "lax",
    )
    | _same("trunc copysign hypot log2 log10", "jnp")
    | {
        "round_nearest_even": _call("lax.round", "lax.RoundingMethod.TO_NEAREST_EVEN"),
        "round_nearest_afz": _call("lax.round", "lax.RoundingMethod.AWAY_FROM_ZERO"),
        "integer_pow": lambda node, x, types: f"lax.integer_pow({x[0]}, {node.attrs['exponent']})",
        "compare": _compare("lax"),
        "convert": _jax_convert,
        "bitcast_convert": lambda node, x, types: f"lax.bitcast_convert_type({x[0]}, jnp.{node.type.dtype.name})",
        "reduce_precision": lambda node, x, types: (
            f"lax.reduce_precision({x[0]}, {node.attrs['exponent_bits']}, {node.attrs['mantissa_bits']})"
        ),
        "broadcast_in_dim": lambda node, x, types: (
            f"lax.broadcast_in_dim({x[0]}, {_list(node.type.shape)}, {_list(node.attrs['broadcast_dimensions'])})"
        ),
        "reshape": lambda node, x, types: f"lax.reshape({x[0]}, {_list(node.type.shape)})",
        "transpose": lambda node, x, types: f"lax.transpose({x[0]}, {_list(node.attrs['permutation'])})",
        "concatenate": lambda node, x, types: f"lax.concatenate([{', '.join(x)}], {node.attrs['dimension']})",
        "slice": lambda node, x, types: f"{x[0]}[{_slices(node)}]",
        "pad": _jax_pad,
        "reverse": lambda node, x, types: f"lax.rev({x[0]}, {_list(node.attrs['dimensions'])})",
        "reduce": _jax_reduce,
        "argmax": _jax_argument("argmax"),
        "argmin": _jax_argument("argmin"),
        "cumulative": _jax_cumulative,
        "sort": _jax_sort,
        "dot_general": _jax_dot,
        "convolution": _jax_convolution,
        "dynamic_slice": lambda node, x, types: (
            f"lax.dynamic_slice({x[0]}, [{', '.join(x[1:])}], {_list(node.attrs['slice_sizes'])})"
        ),
    }
)


# PyTorch


def _torch_broadcast(node: Node, x: Sequence[str], types: Sequence[TensorType]) -> str:
    spread = [1] * len(node.type.shape)
    for size, to in zip(types[0].shape, node.attrs["broadcast_dimensions"], strict=True):
        spread[to] = size
    return f"{x[0]}.reshape({_list(spread)}).expand({_list(node.type.shape)})"


def _torch_reduce(node: Node, x: Sequence[str], types: Sequence[TensorType]) -> str | None:
    axes, reducer, dtype = node.attrs["dimensions"], node.attrs["reducer"], types[0].dtype
    if not axes:
        return None
    if dtype.is_bool:
        name = {"and": "all", "multiply": "all", "or": "any"}.get(reducer)
        return name and f"torch.{name}({x[0]}, dim={_list(axes)})"
    if reducer == "add":
        return f"torch.sum({x[0]}, dim={_list(axes)}, dtype={_dtype('torch', node.type.dtype)})"
    if node.type.dtype != dtype:
        return None
    if reducer == "multiply" and len(axes) == 1:
        return f"torch.prod({x[0]}, dim={axes[0]}, dtype={_dtype('torch', dtype)})"
    name = {"maximum": "amax", "minimum": "amin"}.get(reducer)
    return name and f"torch.{name}({x[0]}, dim={_list(axes)})"


def _torch_dot(node: Node, x: Sequence[str], types: Sequence[TensorType]) -> str | None:
    if node.type.dtype != types[0].dtype or types[0].dtype.is_bool:
        return None
    ranks = [len(type.shape) for type in types]
    names = ("lhs_batching_dimensions", "lhs_contracting_dimensions", "rhs_contracting_dimensions")
    if ranks == [2, 2] and [tuple(node.attrs[name]) for name in names] == [(), (1,), (0,)]:
        return f"torch.matmul({x[0]}, {x[1]})"
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    if sum(ranks) > 26:
        return None
    left, right = [next(letters) for _ in range(ranks[0])], [next(letters) for _ in range(ranks[1])]
    for name in ("batching_dimensions", "contracting_dimensions"):
        for a, b in zip(node.attrs[f"lhs_{name}"], node.attrs[f"rhs_{name}"], strict=True):
            right[b] = left[a]
    taken = {*node.attrs["lhs_batching_dimensions"], *node.attrs["lhs_contracting_dimensions"]}
    taken_right = {*node.attrs["rhs_batching_dimensions"], *node.attrs["rhs_contracting_dimensions"]}
    result = [left[d] for d in node.attrs["lhs_batching_dimensions"]]
    result += [left[d] for d in range(ranks[0]) if d not in taken]
    result += [right[d] for d in range(ranks[1]) if d not in taken_right]
    return f"torch.einsum({''.join(left) + ',' + ''.join(right) + '->' + ''.join(result)!r}, {x[0]}, {x[1]})"


def _torch_convolution(node: Node, x: Sequence[str], types: Sequence[TensorType]) -> str | None:
    attrs, rank = node.attrs, len(node.type.shape)
    plain = all(tuple(attrs[f"{side}_dimensions"]) == tuple(range(rank)) for side in ("lhs", "rhs", "output"))
    even = attrs["padding_low"] == attrs["padding_high"] and all(size >= 0 for size in attrs["padding_low"])
    if not (plain and even and 3 <= rank <= 5) or any(attrs["window_reversal"]) or set(attrs["lhs_dilation"]) != {1}:
        return None
    if attrs.get("batch_group_count", 1) != 1 or node.type.dtype != types[0].dtype:
        return None
    return (
        f"torch.nn.functional.conv{rank - 2}d({x[0]}, {x[1]}, stride={_list(attrs['window_strides'])}, "
        f"padding={_list(attrs['padding_low'])}, dilation={_list(attrs['rhs_dilation'])}, "
        f"groups={attrs.get('feature_group_count', 1)})"
    )


def _torch_cumulative(node: Node, x: Sequence[str], types: Sequence[TensorType]) -> str | None:
    name = {"add": "cumsum", "multiply": "cumprod"}.get(node.attrs["reducer"])
    if name is None or node.attrs.get("reverse", False):
        return None
    return f"torch.{name}({x[0]}, dim={node.attrs['dimension']}, dtype={_dtype('torch', node.type.dtype)})"


def _torch_argument(function: str) -> Write:
    def write(node: Node, x: Sequence[str], types: Sequence[TensorType]) -> str | None:
        return f"torch.{function}({x[0]}, dim={node.attrs['dimension']})" if node.type.dtype.name == "int64" else None

    return write


def _torch_sort(node: Node, x: Sequence[str], types: Sequence[TensorType]) -> str | None:
    if len(x) != 1:
        return None
    descending = bool(node.attrs.get("descending", False))
    return f"torch.sort({x[0]}, dim={node.attrs['dimension']}, descending={descending}, stable=True)[0]"


def _torch_divide(node: Node, x: Sequence[str], types: Sequence[TensorType]) -> str:
    rounding = ", rounding_mode='trunc'" if types[0].dtype.is_integer else ""
    return f"torch.div({x[0]}, {x[1]}{rounding})"


def _torch_slice(node: Node, x: Sequence[str], types: Sequence[TensorType]) -> str:
    return f"{x[0]}[{_slices(node)}]"


_TORCH: dict[str, Write] = (
    _same(
        "add subtract=sub multiply=mul remainder=fmod maximum minimum negate=neg abs sign=sgn floor ceil "
        "trunc round_nearest_even=round sqrt is_finite=isfinite copysign next_after=nextafter rsqrt exponential=exp "
        "exponential_minus_one=expm1 log log_plus_one=log1p logistic=sigmoid tanh sine=sin cosine=cos tan asin acos "
        "atan sinh cosh asinh acosh atanh exp2 log2 log10 erf erfc erf_inv=erfinv lgamma digamma atan2 hypot power=pow "
        "and=bitwise_and or=bitwise_or xor=bitwise_xor not=bitwise_not shift_left=bitwise_left_shift "
        "shift_right_arithmetic=bitwise_right_shift complex real imag conjugate=conj_physical select=where",
        "torch",
    )
    | _same(
        "bessel_i0=i0 bessel_i1=i1 bessel_i0e=i0e bessel_i1e=i1e bessel_j0 bessel_j1 bessel_y0 bessel_y1 erfcx ndtri "
        "log_ndtr zeta igamma=gammainc igammac=gammaincc",
        "torch.special",
    )
    | {
        "divide": _torch_divide,
        "integer_pow": lambda node, x, types: f"torch.pow({x[0]}, {node.attrs['exponent']})",
        "compare": _compare("torch"),
        "convert": lambda node, x, types: f"{x[0]}.to({_dtype('torch', node.type.dtype)})",
        "bitcast_convert": lambda node, x, types: f"{x[0]}.view({_dtype('torch', node.type.dtype)})",
        "clamp": lambda node, x, types: f"torch.clamp({x[1]}, {x[0]}, {x[2]})",
        "log_add_exp": _call("torch.logaddexp"),
        "broadcast_in_dim": _torch_broadcast,
        "reshape": lambda node, x, types: f"{x[0]}.reshape({_list(node.type.shape)})",
        "transpose": lambda node, x, types: f"{x[0]}.permute({_list(node.attrs['permutation'])})",
        "concatenate": lambda node, x, types: f"torch.cat([{', '.join(x)}], dim={node.attrs['dimension']})",
        "slice": _torch_slice,
        "reverse": lambda node, x, types: f"torch.flip({x[0]}, {_list(node.attrs['dimensions'])})",
        "reduce": _torch_reduce,
        "argmax": _torch_argument("argmax"),
        "argmin": _torch_argument("argmin"),
        "cumulative": _torch_cumulative,
        "sort": _torch_sort,
        "dot_general": _torch_dot,
        "convolution": _torch_convolution,
    }
)
