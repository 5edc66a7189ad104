"""Comparison, selection, and operations on bits."""

from __future__ import annotations

from tlir.ir.ops.attributes import Choice
from tlir.ir.ops.base import (
    Attribute,
    Call,
    Operation,
    Violation,
    elementwise,
    elementwise_constraints,
    require_kind,
    same_dtypes,
    same_shapes,
)
from tlir.ir.types import BOOL, TensorType

_ANY = ("bool", "int", "uint", "float", "complex")


def _compare(call: Call) -> tuple[TensorType, ...]:
    shape = same_shapes("C1", call)
    dtype = same_dtypes("C2", call.operands)
    direction = call.attrs["comparison_direction"]
    if dtype.is_complex and direction not in ("EQ", "NE"):
        raise Violation("C3", f"complex numbers have no order, so {direction} does not apply")
    if call.attrs.get("compare_type") == "TOTALORDER" and not dtype.is_float:
        raise Violation("C4", f"TOTALORDER applies to floats, not to {dtype.name}")
    return (TensorType(shape, BOOL),)


def _select(call: Call) -> tuple[TensorType, ...]:
    require_kind("C3", call.operands[0].dtype, ("bool",), "pred")
    shape = same_shapes("C1", call)
    return (TensorType(shape, same_dtypes("C2", call.operands[1:], 1)),)


def _bitwise(name: str, operands: str, meaning: str, boolean: bool) -> Operation:
    names = tuple(operands.split())
    kinds = ("bool", "int", "uint") if boolean else ("int", "uint")
    words = "bool or an integer type" if boolean else "an integer type"
    return Operation(
        name, "logic", names, meaning, words, elementwise(*kinds), elementwise_constraints(len(names), words)
    )


OPERATIONS = (
    Operation(
        "compare",
        "logic",
        ("lhs", "rhs"),
        "The comparison lhs direction rhs. Floats: 0 equals -0; with NaN only NE is true. With compare_type "
        "TOTALORDER floats are ordered by IEEE 754 totalOrder: -NaN < -inf < … < -0 < 0 < … < inf < NaN, NaNs by "
        "payload. bool: false < true. Complex: equal if both parts are.",
        "any type",
        _compare,
        {
            "C1": "Both operands have the same shape.",
            "C2": "Both operands have the same dtype.",
            "C3": "The direction is EQ or NE where the operands are complex.",
            "C4": "compare_type is TOTALORDER only where the operands are floats.",
        },
        {
            "comparison_direction": Attribute(Choice(("EQ", "NE", "GE", "GT", "LE", "LT")), "The comparison."),
            "compare_type": Attribute(Choice(("DEFAULT", "TOTALORDER")), "The order of floats.", False, "DEFAULT"),
        },
    ),
    Operation(
        "select",
        "logic",
        ("pred", "on_true", "on_false"),
        "on_true where pred is true, on_false elsewhere; the words are moved unchanged.",
        "pred bool, the others any type",
        _select,
        {
            "C1": "All operands have the same shape.",
            "C2": "on_true and on_false have the same dtype.",
            "C3": "pred is bool.",
        },
    ),
    Operation(
        "clamp",
        "logic",
        ("min", "operand", "max"),
        "minimum(maximum(operand, min), max), with the meaning that these have: the canonical NaN where any operand "
        "is NaN, and max where min exceeds it.",
        "an integer or floating-point type",
        elementwise("int", "uint", "float"),
        elementwise_constraints(3, "an integer or floating-point type"),
    ),
    _bitwise("and", "lhs rhs", "Bitwise and; logical for bool.", True),
    _bitwise("or", "lhs rhs", "Bitwise or; logical for bool.", True),
    _bitwise("xor", "lhs rhs", "Bitwise exclusive or; logical for bool.", True),
    _bitwise("not", "operand", "Every bit inverted; logical for bool.", True),
    _bitwise(
        "shift_left",
        "lhs rhs",
        "lhs shifted left by rhs bits, zeros entering. A shift that is negative, or the width or more, gives 0.",
        False,
    ),
    _bitwise(
        "shift_right_logical",
        "lhs rhs",
        "The bits of lhs shifted right by rhs, zeros entering. A shift that is negative, or the width or more, gives "
        "0.",
        False,
    ),
    _bitwise(
        "shift_right_arithmetic",
        "lhs rhs",
        "The bits of lhs shifted right by rhs, copies of the top bit entering (also for unsigned types). A shift that "
        "is negative, or the width or more, gives a word of copies of the top bit.",
        False,
    ),
    _bitwise("popcnt", "operand", "The number of bits that are set.", False),
    _bitwise(
        "count_leading_zeros", "operand", "The number of zero bits above the highest set bit; the width for 0.", False
    ),
)
