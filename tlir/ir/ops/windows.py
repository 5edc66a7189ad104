"""Operations over windows: running totals, pooling, and convolutions, in an order that the node declares."""

from __future__ import annotations

from collections.abc import Sequence

from tlir.ir.ops.attributes import MAX_INDEX, Accumulation, Boolean, Choice, Integer, Integers
from tlir.ir.ops.base import Attribute, Call, Operation, Violation, require_axes, require_kind, same_dtypes
from tlir.ir.ops.reduction import REDUCER_KINDS, check_accumulator, check_reducer_order
from tlir.ir.types import TensorType

CUMULATIVE_KINDS = REDUCER_KINDS | {"logaddexp": ("float",)}
"""The reducers of running totals, and the kinds of dtypes that each takes."""


def _cumulative(call: Call) -> tuple[TensorType, ...]:
    operand = call.operands[0]
    require_axes("C1", (call.attrs["dimension"],), operand.rank, "dimension")
    require_kind("C2", operand.dtype, CUMULATIVE_KINDS[call.attrs["reducer"]])
    check_accumulator("C3", call, operand.dtype)
    accumulate = call.attrs.get("accumulate")
    if call.attrs["reducer"] != "logaddexp":
        check_reducer_order("C4", call)
    elif accumulate is not None and accumulate.fma:
        raise Violation("C4", "there are no products to fuse")
    if accumulate is not None and accumulate.order != "sequential":
        raise Violation("C4", f"a running total has an order of its own, not {accumulate.order_text}")
    return (operand,)


def dilated(size: int, dilation: int) -> int:
    """The size of an axis with dilation - 1 holes between neighbours."""
    return 0 if size == 0 else (size - 1) * dilation + 1


def window_positions(size: int, window: int, stride: int) -> int:
    """How many windows fit into an axis."""
    return 0 if window > size else (size - window) // stride + 1


def _window_shape(shape: Sequence[int], windows: Sequence[int], attrs: dict[str, Sequence[int]]) -> tuple[int, ...]:
    """The positions along each axis of windows over a dilated and padded operand; none where padding cuts all away."""
    sizes = []
    for axis, size in enumerate(shape):
        padded = max(0, attrs["low"][axis] + dilated(size, attrs["base"][axis]) + attrs["high"][axis])
        sizes.append(window_positions(padded, dilated(windows[axis], attrs["window"][axis]), attrs["strides"][axis]))
    return tuple(sizes)


_WINDOW_NAMES = (
    "window_dimensions",
    "window_strides",
    "base_dilations",
    "window_dilations",
    "padding_low",
    "padding_high",
)


def _window_attrs(rule: str, call: Call, names: Sequence[str], rank: int) -> None:
    for name in names:
        if len(call.attrs[name]) != rank:
            raise Violation(rule, f"{name} has {len(call.attrs[name])} entries for {rank} axes")


def _reduce_window(call: Call) -> tuple[TensorType, ...]:
    operand, attrs = call.operands[0], call.attrs
    _window_attrs("C1", call, _WINDOW_NAMES, operand.rank)
    require_kind("C2", operand.dtype, REDUCER_KINDS[attrs["reducer"]])
    check_accumulator("C3", call, operand.dtype)
    check_reducer_order("C4", call)
    parts = {
        "low": attrs["padding_low"],
        "high": attrs["padding_high"],
        "base": attrs["base_dilations"],
        "window": attrs["window_dilations"],
        "strides": attrs["window_strides"],
    }
    return (TensorType(_window_shape(operand.shape, attrs["window_dimensions"], parts), operand.dtype),)


def _select_and_scatter(call: Call) -> tuple[TensorType, ...]:
    operand, source = call.operands
    names = ("window_dimensions", "window_strides", "padding_low", "padding_high")
    _window_attrs("C1", call, names, operand.rank)
    require_kind("C2", same_dtypes("C2", call.operands), ("int", "uint", "float"))
    ones = (1,) * operand.rank
    parts = {
        "low": call.attrs["padding_low"],
        "high": call.attrs["padding_high"],
        "base": ones,
        "window": ones,
        "strides": call.attrs["window_strides"],
    }
    expected = _window_shape(operand.shape, call.attrs["window_dimensions"], parts)
    if source.shape != expected:
        raise Violation("C3", f"the source is {list(source.shape)} for windows at {list(expected)}")
    return (operand,)


def _convolution(call: Call) -> tuple[TensorType, ...]:
    lhs, rhs = call.operands
    attrs = call.attrs
    spatial = lhs.rank - 2
    for name in ("lhs_dimensions", "rhs_dimensions", "output_dimensions"):
        if sorted(attrs[name]) != list(range(lhs.rank)) or lhs.rank != rhs.rank or spatial < 0:
            raise Violation("C1", f"{name} {list(attrs[name])} is not a permutation of {lhs.rank} axes")
    names = ("window_strides", "padding_low", "padding_high", "lhs_dilation", "rhs_dilation", "window_reversal")
    _window_attrs("C2", call, names, spatial)
    batch, features, *space = (lhs.shape[axis] for axis in attrs["lhs_dimensions"])
    outputs, inputs, *window = (rhs.shape[axis] for axis in attrs["rhs_dimensions"])
    groups, batch_groups = attrs.get("feature_group_count", 1), attrs.get("batch_group_count", 1)
    if groups > 1 and batch_groups > 1:
        raise Violation("C3", "feature groups and batch groups exclude each other")
    if features != inputs * groups or outputs % groups:
        raise Violation(
            "C3", f"{features} features in {groups} groups do not meet {inputs} inputs and {outputs} outputs"
        )
    if batch % batch_groups or outputs % batch_groups:
        raise Violation("C3", f"batch {batch} and {outputs} outputs do not divide into {batch_groups} groups")
    dtype = same_dtypes("C4", call.operands)
    require_kind("C4", dtype, ("int", "uint", "float", "complex"))
    if call.result.dtype.kind != dtype.kind:
        raise Violation("C5", f"a convolution of {dtype.name} does not give {call.result.dtype.name}")
    check_accumulator("C6", call, dtype)
    parts = {
        "low": attrs["padding_low"],
        "high": attrs["padding_high"],
        "base": attrs["lhs_dilation"],
        "window": attrs["rhs_dilation"],
        "strides": attrs["window_strides"],
    }
    positions = _window_shape(space, window, parts)
    logical = (batch // batch_groups, outputs, *positions)
    shape = [0] * lhs.rank
    for axis, size in zip(attrs["output_dimensions"], logical, strict=True):
        shape[axis] = size
    return (TensorType(tuple(shape), call.result.dtype),)


_PADDING = Integers(-MAX_INDEX)
_ORDER = Attribute(
    Accumulation(), "The accumulator's dtype and the order; by default sequential in the result's dtype.", False
)
_WINDOW = {
    "window_dimensions": Attribute(Integers(), "The size of a window along each axis."),
    "window_strides": Attribute(Integers(1), "The distance from one window to the next."),
    "padding_low": Attribute(_PADDING, "Padding before each axis."),
    "padding_high": Attribute(_PADDING, "Padding after each axis."),
}

OPERATIONS = (
    Operation(
        "cumulative",
        "windows",
        ("operand",),
        "Along dimension, element i is the elements 0 … i combined one by one from the first (with `reverse` from the "
        "last down to i), as `reduce` combines them in sequential order from the identity, in the accumulator's "
        "dtype, each total converted to the result's dtype. With `logaddexp` each total is log_add_exp of the "
        "one before and the element, and the first one is the first element (every NaN being the canonical one).",
        "as `reduce`",
        _cumulative,
        {
            "C1": "dimension is an axis of the operand.",
            "C2": "The reducer takes the operand's dtype.",
            "C3": "The accumulator's dtype is of the operand's kind.",
            "C4": "accumulate is given only for add, multiply and logaddexp, without fma, and sequential.",
        },
        {
            "reducer": Attribute(Choice(tuple(CUMULATIVE_KINDS)), "The operation that combines."),
            "dimension": Attribute(Integer(0, 63), "The axis along which is accumulated."),
            "reverse": Attribute(Boolean(), "Whether the last element comes first.", False, False),
            "accumulate": _ORDER,
        },
    ),
    Operation(
        "reduce_window",
        "windows",
        ("operand",),
        "Windows of window_dimensions at every window_strides-th place of the operand, whose neighbours are first "
        "parted by base_dilations - 1 holes and whose ends are then padded (a negative padding cuts off); the "
        "elements of a window are window_dilations apart. Each window is combined as `reduce` does; holes and padding "
        "hold the identity and take part in the order.",
        "as `reduce`",
        _reduce_window,
        {
            "C1": "Every attribute of the window has one entry per axis.",
            "C2": "The reducer takes the operand's dtype.",
            "C3": "The accumulator's dtype is of the operand's kind.",
            "C4": "accumulate is given only for add and multiply, without fma.",
        },
        {"reducer": Attribute(Choice(tuple(REDUCER_KINDS)), "The operation that combines.")}
        | _WINDOW
        | {
            "base_dilations": Attribute(Integers(1), "The distance between neighbours of the operand."),
            "window_dilations": Attribute(Integers(1), "The distance between the elements of a window."),
            "accumulate": _ORDER,
        },
    ),
    Operation(
        "select_and_scatter",
        "windows",
        ("operand", "source"),
        "For each window of the padded operand (as reduce_window has it, padding never selected), the place of its "
        "first greatest (`GE`) or least (`LE`) element in row-major order, NaN winning both; a result of zeros in the "
        "operand's shape, to which the source's element of each window is added at that place, one window after the "
        "other in row-major order.",
        "an integer or floating-point type",
        _select_and_scatter,
        {
            "C1": "Every attribute of the window has one entry per axis.",
            "C2": "Operand and source have the same integer or floating-point dtype.",
            "C3": "The source has one element per window.",
        },
        {"select": Attribute(Choice(("GE", "LE")), "Whether the greatest or the least is selected.")} | _WINDOW,
    ),
    Operation(
        "convolution",
        "windows",
        ("lhs", "rhs"),
        "The sum of products of a window of lhs with the kernel rhs, at every place. lhs_dimensions names the axes of "
        "lhs that are batch, feature and space; rhs_dimensions those of rhs that are output feature, input feature "
        "and space; output_dimensions those of the result that are batch, feature and space. lhs is dilated by "
        "lhs_dilation and padded with zeros, the kernel dilated by rhs_dilation and reversed along the axes of "
        "window_reversal. With feature groups, each run of outputs sees its run of features; with batch groups, each "
        "run of outputs sees its run of the batch. For each output the products run over the input features of the "
        "group, then the window row-major (as if contracted over the axes [feature, space…] in this order), those "
        "with padding and holes included as products with +0, accumulated as `dot_general` does.",
        "an integer, floating-point or complex type",
        _convolution,
        {
            "C1": "Both operands have rank 2 or more, and each *_dimensions is a permutation of that many axes.",
            "C2": "Every attribute of the window has one entry per spatial axis.",
            "C3": "Features, outputs and batch divide into the groups, and only one kind of group is used.",
            "C4": "Both operands have the same dtype, an integer, floating-point or complex type.",
            "C5": "The result's dtype is of the operands' kind.",
            "C6": "The accumulator's dtype is of the operands' kind, fma is for floats, and pairwise has no fma.",
        },
        {
            "lhs_dimensions": Attribute(Integers(0, 63, unique=True), "Axes of lhs: batch, feature, space."),
            "rhs_dimensions": Attribute(
                Integers(0, 63, unique=True), "Axes of rhs: output feature, input feature, space."
            ),
            "output_dimensions": Attribute(Integers(0, 63, unique=True), "Axes of the result: batch, feature, space."),
            "window_strides": Attribute(Integers(1), "The distance from one window to the next."),
            "padding_low": Attribute(_PADDING, "Padding before each spatial axis of lhs."),
            "padding_high": Attribute(_PADDING, "Padding after each spatial axis of lhs."),
            "lhs_dilation": Attribute(Integers(1), "The distance between neighbours of lhs."),
            "rhs_dilation": Attribute(Integers(1), "The distance between neighbours of the kernel."),
            "window_reversal": Attribute(Integers(0, 1), "1 for each spatial axis along which the kernel is reversed."),
            "feature_group_count": Attribute(Integer(1), "Groups of features.", False, 1),
            "batch_group_count": Attribute(Integer(1), "Groups of the batch.", False, 1),
            "accumulate": _ORDER,
        },
    ),
)
