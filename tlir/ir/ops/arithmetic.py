"""Arithmetic: operations that round once, and integer arithmetic that wraps."""

from __future__ import annotations

from tlir.ir.ops.attributes import Integer
from tlir.ir.ops.base import Attribute, Call, Operation, TypeRule, Violation, elementwise, elementwise_constraints
from tlir.ir.types import BOOL, DType, TensorType

NUMBERS = ("int", "uint", "float", "complex")
_NUMBER_WORDS = "an integer, floating-point or complex type"


def _absolute(dtype: DType) -> DType:
    return dtype.component


def _operation(
    name: str, operands: str, meaning: str, kinds: tuple[str, ...], words: str, rule: TypeRule | None = None
) -> Operation:
    names = tuple(operands.split())
    constraints = elementwise_constraints(len(names), words)
    return Operation(name, "arithmetic", names, meaning, words, rule or elementwise(*kinds), constraints)


def _integer_power(call: Call) -> tuple[TensorType, ...]:
    types = elementwise(*NUMBERS)(call)
    if call.operands[0].dtype.is_integer and call.attrs["exponent"] < 0:
        raise Violation("C4", "an integer has no negative power", "convert the operand to a floating-point type first")
    return types


_REAL = ("int", "uint", "float")
_ORDERED = ("bool", "int", "uint", "float")
_FLOAT = ("float",)
_FLOAT_WORDS = "a floating-point type"

OPERATIONS = (
    _operation(
        "add",
        "lhs rhs",
        "The sum. Integers wrap modulo 2^bits. Floats: the exact sum rounded once to nearest even; an exact zero from "
        "operands of opposite signs is +0; inf + -inf is NaN. Complex: real and imaginary parts are added separately.",
        NUMBERS,
        _NUMBER_WORDS,
    ),
    _operation(
        "subtract",
        "lhs rhs",
        "The difference. Integers wrap modulo 2^bits. Floats: the exact difference rounded once to nearest even; x - "
        "x is +0 for finite x; inf - inf is NaN. Complex: the parts are subtracted separately.",
        NUMBERS,
        _NUMBER_WORDS,
    ),
    _operation(
        "multiply",
        "lhs rhs",
        "The product. Integers wrap modulo 2^bits. Floats: the exact product rounded once to nearest even; 0 times "
        "infinity is NaN. Complex: (a + bi)(c + di) has real part a*c - b*d and imaginary part a*d + b*c, each "
        "product and each sum rounded by itself in the component's format.",
        NUMBERS,
        _NUMBER_WORDS,
    ),
    _operation(
        "divide",
        "lhs rhs",
        "The quotient. Integers: truncated toward zero; x / 0 has all bits set (-1, or the largest unsigned value); "
        "the least signed value divided by -1 is itself. Floats: the exact quotient rounded once to nearest even; x / "
        "0 is an infinity with the sign of the quotient for x not zero, 0 / 0 and inf / inf are NaN. Complex: where "
        "all parts are finite and the divisor is not zero, each part of the exact quotient rounded once; otherwise, "
        "for a divisor c + di, ((a*c + b*d) / (c*c + d*d), (b*c - a*d) / (c*c + d*d)) in real arithmetic with one "
        "rounding per step.",
        NUMBERS,
        _NUMBER_WORDS,
    ),
    _operation(
        "remainder",
        "lhs rhs",
        "The remainder of the division truncated toward zero; it has the sign of lhs. Integers: x rem 0 is x; the "
        "least signed value rem -1 is 0. Floats: lhs - n*rhs exactly, n the quotient truncated; a zero result has the "
        "sign of lhs; x rem inf is x for finite x; x rem 0 and inf rem y are NaN.",
        _REAL,
        "an integer or floating-point type",
    ),
    _operation(
        "maximum",
        "lhs rhs",
        "The greater operand (IEEE 754-2019 maximum). Floats: the canonical NaN if either is NaN; -0 is less than 0. "
        "bool: or.",
        _ORDERED,
        "bool, an integer or a floating-point type",
    ),
    _operation(
        "minimum",
        "lhs rhs",
        "The lesser operand (IEEE 754-2019 minimum). Floats: the canonical NaN if either is NaN; -0 is less than 0. "
        "bool: and.",
        _ORDERED,
        "bool, an integer or a floating-point type",
    ),
    _operation(
        "fma",
        "lhs rhs addend",
        "lhs * rhs + addend, exact and then rounded once to nearest even. An exact zero is +0 unless both product and "
        "addend are -0. 0 times infinity is NaN whatever the addend is.",
        _FLOAT,
        _FLOAT_WORDS,
    ),
    _operation(
        "negate",
        "operand",
        "The opposite. Signed integers: two's complement, the least value stays; unsigned: 2^bits - x modulo 2^bits. "
        "Floats: the sign bit is inverted and every other bit kept, so -(0) is -0 and a NaN keeps its payload. In "
        "formats without negative zero, 0 and NaN are kept. Complex: both parts.",
        NUMBERS,
        _NUMBER_WORDS,
    ),
    _operation(
        "abs",
        "operand",
        "The magnitude. Signed integers: the least value stays. Floats: the sign bit is cleared and every other bit "
        "kept. Complex a + bi: sqrt(a*a + b*b) exact and rounded once, of the component's type; infinite if either "
        "part is infinite, even where the other is NaN.",
        NUMBERS,
        _NUMBER_WORDS,
        elementwise(*NUMBERS, result=_absolute),
    ),
    _operation(
        "sign",
        "operand",
        "-1, 0 or 1 with the sign of the operand. Floats: a zero keeps its sign, NaN gives the canonical NaN. "
        "Complex: x / |x| exact, each part rounded once; 0 for 0; the canonical NaN in both parts where a part is NaN "
        "or infinite.",
        NUMBERS,
        _NUMBER_WORDS,
    ),
    _operation(
        "copysign",
        "lhs rhs",
        "lhs with the sign bit of rhs; every other bit of lhs is kept, those of a NaN too.",
        _FLOAT,
        _FLOAT_WORDS,
    ),
    _operation(
        "floor",
        "operand",
        "The greatest integral value not above the operand. A zero result has the operand's sign; infinities are "
        "kept; NaN gives the canonical NaN.",
        _FLOAT,
        _FLOAT_WORDS,
    ),
    _operation(
        "ceil",
        "operand",
        "The least integral value not below the operand. A zero result has the operand's sign (so -0.5 gives -0); "
        "infinities are kept; NaN gives the canonical NaN.",
        _FLOAT,
        _FLOAT_WORDS,
    ),
    _operation(
        "trunc",
        "operand",
        "The integral value next to the operand toward zero. A zero result has the operand's sign; infinities are "
        "kept; NaN gives the canonical NaN.",
        _FLOAT,
        _FLOAT_WORDS,
    ),
    _operation(
        "round_nearest_even",
        "operand",
        "The nearest integral value, ties to the even one. A zero result has the operand's sign; infinities are kept; "
        "NaN gives the canonical NaN.",
        _FLOAT,
        _FLOAT_WORDS,
    ),
    _operation(
        "round_nearest_afz",
        "operand",
        "The nearest integral value, ties away from zero. A zero result has the operand's sign; infinities are kept; "
        "NaN gives the canonical NaN.",
        _FLOAT,
        _FLOAT_WORDS,
    ),
    _operation(
        "sqrt",
        "operand",
        "The square root, rounded once to nearest even; sqrt(-0) is -0; below zero NaN. Complex: the principal root, "
        "each part of the exact root rounded once.",
        ("float", "complex"),
        "a floating-point or complex type",
    ),
    _operation(
        "next_after",
        "lhs rhs",
        "The value next to lhs in the direction of rhs; rhs where they are equal (so zeros of different sign give "
        "rhs); the canonical NaN if either is NaN. From a zero: the smallest subnormal with the sign of the direction.",
        _FLOAT,
        _FLOAT_WORDS,
    ),
    _operation(
        "is_finite",
        "operand",
        "True of every value but infinities and NaN.",
        _FLOAT,
        _FLOAT_WORDS,
        elementwise("float", result=lambda _: BOOL),
    ),
    Operation(
        "integer_pow",
        "arithmetic",
        ("operand",),
        "The operand to a constant integer power by repeated squaring, every product rounded by itself as `multiply` "
        "rounds. For exponent n > 0: from the lowest bit of n upward, keep p = x, x^2, x^4, … (p := p * p between "
        "bits) and an accumulator that is p at the first set bit and accumulator := accumulator * p at each later "
        "one. n = 0 gives 1. n < 0: 1 divided by the power for |n|, as `divide` rounds. Integers take n >= 0 only.",
        _NUMBER_WORDS,
        _integer_power,
        elementwise_constraints(1, _NUMBER_WORDS)
        | {"C4": "The exponent is not negative where the operand is an integer."},
        {"exponent": Attribute(Integer(-(2**31), 2**31 - 1), "The power.")},
    ),
)
