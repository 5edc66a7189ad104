"""Inputs, constants, and conversions between dtypes."""

from __future__ import annotations

from tlir.ir.ops.attributes import Choice, Integer, TensorData
from tlir.ir.ops.base import Attribute, Call, Operation, Violation, require_axes, require_kind
from tlir.ir.types import TensorType


def _input(call: Call) -> tuple[TensorType, ...]:
    return (call.result,)


def _constant(call: Call) -> tuple[TensorType, ...]:
    return (call.attrs["value"].type,)


def _iota(call: Call) -> tuple[TensorType, ...]:
    require_kind("C1", call.result.dtype, ("int", "uint", "float", "complex"), "the result")
    require_axes("C2", (call.attrs["iota_dimension"],), call.result.rank, "iota_dimension")
    return (call.result,)


def _convert(call: Call) -> tuple[TensorType, ...]:
    return (TensorType(call.operands[0].shape, call.result.dtype),)


def _bitcast_convert(call: Call) -> tuple[TensorType, ...]:
    operand, result = call.operands[0], call.result
    for what, type in (("the operand", operand), ("the result", result)):
        require_kind("C1", type.dtype, ("int", "uint", "float"), what)
    source, target = operand.dtype.bits, result.dtype.bits
    if source == target:
        return (TensorType(operand.shape, result.dtype),)
    wide, narrow = max(source, target), min(source, target)
    if wide % narrow:
        raise Violation("C2", f"{source} bits do not divide into words of {target} bits")
    if source > target:
        return (TensorType((*operand.shape, source // target), result.dtype),)
    if not operand.shape or operand.shape[-1] != target // source:
        raise Violation("C3", f"the last axis must have size {target // source} to make {result.dtype.name}")
    return (TensorType(operand.shape[:-1], result.dtype),)


def _reduce_precision(call: Call) -> tuple[TensorType, ...]:
    require_kind("C1", call.operands[0].dtype, ("float",))
    return call.operands


OPERATIONS = (
    Operation(
        "input",
        "data",
        (),
        "A value given from outside: an argument of the function, or of the region. Its type is the declared one.",
        "any type",
        _input,
        {},
    ),
    Operation(
        "constant",
        "data",
        (),
        "The tensor whose words are given.",
        "any type",
        _constant,
        {},
        {"value": Attribute(TensorData(), "The type and the words.")},
    ),
    Operation(
        "iota",
        "data",
        (),
        "Along iota_dimension the values 0, 1, 2, …, the same along every other axis. Integers wrap modulo 2^bits; "
        "floats are rounded once to nearest even, as `convert` from an integer does.",
        "an integer, floating-point or complex type",
        _iota,
        {
            "C1": "The result's dtype is an integer, floating-point or complex type.",
            "C2": "iota_dimension is an axis of the result.",
        },
        {"iota_dimension": Attribute(Integer(0, 63), "The axis along which the values count.")},
    ),
    Operation(
        "convert",
        "data",
        ("operand",),
        "The value in the declared dtype. Float to float: rounded once to nearest even, overflow as the target format "
        "has it (infinity; NaN in a format without infinities; the largest value in a format with neither), NaN to "
        "the canonical NaN. Integer to float: the exact integer rounded once. Float to integer: truncated toward "
        "zero; out of range as the attribute says: `saturate` gives the nearest value of the type, NaN 0; "
        "`indefinite` gives, for types of 32 and 64 bits, the least signed value's bits out of range and for NaN, and "
        "for narrower types the low bits of that conversion to int32. Integer to integer: the low bits, after sign or "
        "zero extension. bool to any: 0 or 1. Any to bool: whether the value is not zero (NaN is true). Real to "
        "complex: with imaginary part +0. Complex to real: the real part converted. Equal dtypes or formats: the "
        "words unchanged.",
        "any type",
        _convert,
        {},
        {
            "out_of_range": Attribute(
                Choice(("saturate", "indefinite")),
                "What a float beyond an integer type's range gives.",
                False,
                "saturate",
            )
        },
    ),
    Operation(
        "bitcast_convert",
        "data",
        ("operand",),
        "The same bits read as another dtype. To a narrower dtype, a new last axis counts the parts of each word from "
        "its least significant end; to a wider dtype, the last axis is taken as these parts.",
        "an integer or floating-point type",
        _bitcast_convert,
        {
            "C1": "Both dtypes are integer or floating-point types.",
            "C2": "The wider word is a whole number of the narrower ones.",
            "C3": "To a wider dtype, the operand's last axis has as many elements as narrower words make the wider "
            "one.",
        },
    ),
    Operation(
        "reduce_precision",
        "data",
        ("operand",),
        "The operand rounded to nearest even to a significand of mantissa_bits fraction bits (kept where the format "
        "has no more; that of a subnormal as its word has it). Where exponent_bits is less than the format has, it is "
        "then brought into the exponent range of an IEEE format of exponent_bits bits: values beyond its largest "
        "finite value's binade become infinite, values below its smallest normal value become zeros of the same sign. "
        "NaN gives the canonical NaN.",
        "a floating-point type",
        _reduce_precision,
        {"C1": "The operand is a floating-point type."},
        {
            "exponent_bits": Attribute(Integer(1, 30), "Bits of the exponent range."),
            "mantissa_bits": Attribute(Integer(0, 4096), "Fraction bits that are kept."),
        },
    ),
)
