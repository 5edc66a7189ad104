"""Facts about floats, by their words. float32: 3f800000 is 1, 7fc00000 the canonical NaN, 7f800000 infinity."""

from __future__ import annotations

from conformance import Case, value

ONE, TWO, HALF, NAN, INF = 0x3F800000, 0x40000000, 0x3F000000, 0x7FC00000, 0x7F800000
NEG = 0x80000000
PAYLOAD = 0xFFC12345
SIGNALING = 0x7F800001
SMALLEST, LARGEST = 0x00000001, 0x7F7FFFFF


def unary(name: str, op: str, dtype: str, pairs: dict[int, int]) -> Case:
    return Case(name, op, (value(dtype, *pairs),), value(dtype, *pairs.values()))


def binary(name: str, op: str, dtype: str, rows: list[tuple[int, int, int]]) -> Case:
    lhs, rhs, result = zip(*rows, strict=True)
    return Case(name, op, (value(dtype, *lhs), value(dtype, *rhs)), value(dtype, *result))


def comparison(name: str, direction: str, order: str, dtype: str, rows: list[tuple[int, int, int]]) -> Case:
    lhs, rhs, result = zip(*rows, strict=True)
    attrs = {"comparison_direction": direction, "compare_type": order}
    return Case(name, "compare", (value(dtype, *lhs), value(dtype, *rhs)), value("bool", *result), attrs)


CASES = [
    # the sign bit, and nothing else
    unary(
        "negate inverts the sign bit",
        "negate",
        "float32",
        {0: NEG, NEG: 0, ONE: ONE | NEG, PAYLOAD: 0x7FC12345, SIGNALING: SIGNALING | NEG, INF: INF | NEG},
    ),
    unary("abs clears the sign bit", "abs", "float32", {NEG: 0, ONE | NEG: ONE, PAYLOAD: 0x7FC12345}),
    binary("copysign moves the sign bit", "copysign", "float32", [(ONE, NEG, ONE | NEG), (PAYLOAD, 0, 0x7FC12345)]),
    unary("negate keeps the only zero and the NaN", "negate", "float8_e4m3fnuz", {0: 0, 0x80: 0x80, 0x01: 0x81}),
    unary(
        "sign",
        "sign",
        "float32",
        {0: 0, NEG: NEG, SMALLEST: ONE, LARGEST | NEG: ONE | NEG, INF: ONE, PAYLOAD: NAN},
    ),
    # roots
    unary(
        "sqrt of zeros, negatives and infinities",
        "sqrt",
        "float32",
        {NEG: NEG, 0: 0, ONE | NEG: NAN, 0x40800000: TWO, INF: INF, PAYLOAD: NAN, NEG | INF: NAN},
    ),
    unary("sqrt of 2 in float16", "sqrt", "float16", {0x4000: 0x3DA8}),
    # sums and zeros
    binary(
        "signs of exact zeros",
        "add",
        "float32",
        [(0, NEG, 0), (NEG, NEG, NEG), (ONE, ONE | NEG, 0), (INF, INF | NEG, NAN), (PAYLOAD, ONE, NAN)],
    ),
    binary("x - x is +0", "subtract", "float32", [(ONE, ONE, 0), (NEG, 0, NEG), (0, 0, 0), (INF, INF, NAN)]),
    # 2^24 + 1 is half way in float32, and stays; 2048 + 1 in float16, 256 + 1 in bfloat16
    binary("ties to even in float32", "add", "float32", [(0x4B800000, ONE, 0x4B800000), (0x4B800001, ONE, 0x4B800002)]),
    binary("float16 rounds in float16", "add", "float16", [(0x6800, 0x3C00, 0x6800), (0x6801, 0x3C00, 0x6802)]),
    binary("bfloat16 rounds in bfloat16", "add", "bfloat16", [(0x4380, 0x3F80, 0x4380), (0x4381, 0x3F80, 0x4382)]),
    binary("float16 overflows in float16", "multiply", "float16", [(0x7BFF, 0x4000, 0x7C00), (0x5C00, 0x5C00, 0x7C00)]),
    # the smallest subnormal halved is a tie with zero
    binary("half of the smallest subnormal", "multiply", "float32", [(SMALLEST, HALF, 0), (3, HALF, 2)]),
    binary("half of it in float64", "multiply", "float64", [(1, 0x3FE0000000000000, 0), (3, 0x3FE0000000000000, 2)]),
    binary("half of it in float16", "multiply", "float16", [(1, 0x3800, 0), (3, 0x3800, 2)]),
    binary(
        "subnormal operands are kept", "add", "float32", [(SMALLEST, SMALLEST, 2), (0x00800000, NEG | 1, 0x007FFFFF)]
    ),
    # quotients: 1/3, and 9/3 whose product with a rounded reciprocal is not exact for every numerator
    binary(
        "division is a division",
        "divide",
        "float32",
        [
            (ONE, 0x40400000, 0x3EAAAAAB),
            (0x41100000, 0x40400000, 0x40400000),
            (ONE, 0, INF),
            (ONE, NEG, INF | NEG),
            (0, 0, NAN),
            (INF, INF, NAN),
            (ONE, INF | NEG, NEG),
        ],
    ),
    # 5/7: 1/7 rounded times 5 is 0.71428573 (3f36db6e), the quotient 0.71428573 (3f36db6e); 7/25 differs: 3e8f5c29
    binary("7 / 25", "divide", "float32", [(0x40E00000, 0x41C80000, 0x3E8F5C29)]),
    binary(
        "remainder has the sign of lhs",
        "remainder",
        "float32",
        # 5.5 rem 2, -5.5 rem 2, -4 rem 2, 1 rem inf, 1 rem 0, inf rem 1
        [
            (0x40B00000, TWO, 0x3FC00000),
            (0xC0B00000, TWO, 0xBFC00000),
            (0xC0800000, TWO, NEG),
            (ONE, INF, ONE),
            (ONE, 0, NAN),
            (INF, ONE, NAN),
        ],
    ),
    binary("maximum", "maximum", "float32", [(NEG, 0, 0), (0, NEG, 0), (PAYLOAD, ONE, NAN), (ONE, TWO, TWO)]),
    binary("minimum", "minimum", "float32", [(NEG, 0, NEG), (0, NEG, NEG), (ONE, PAYLOAD, NAN), (ONE, TWO, ONE)]),
    # (1 + 2^-12)^2 - (1 + 2^-11) = 2^-24: lost when the product is rounded
    Case(
        "fma rounds once",
        "fma",
        (value("float32", 0x3F800800, 0), value("float32", 0x3F800800, INF), value("float32", 0xBF801000, NAN)),
        value("float32", 0x33800000, NAN),
    ),
    binary(
        "next_after",
        "next_after",
        "float32",
        [
            (ONE, TWO, 0x3F800001),
            (ONE, 0, 0x3F7FFFFF),
            (0, NEG, NEG),
            (0, ONE | NEG, NEG | 1),
            (NEG, ONE, 1),
            (1, 0, 0),
            (NEG | 1, 0, NEG),
            (LARGEST, INF, INF),
            (PAYLOAD, ONE, NAN),
        ],
    ),
    # -0.5, 0.5, 1.5, 2.5, -2.5, -inf
    unary(
        "floor", "floor", "float32", {0xBF000000: 0xBF800000, HALF: 0, NEG: NEG, 0xC0200000: 0xC0400000, PAYLOAD: NAN}
    ),
    unary("ceil", "ceil", "float32", {0xBF000000: NEG, HALF: ONE, NEG: NEG, 0x40200000: 0x40400000, PAYLOAD: NAN}),
    unary("trunc", "trunc", "float32", {0xBF000000: NEG, 0xC0200000: 0xC0000000, NEG | INF: NEG | INF}),
    unary(
        "round to even",
        "round_nearest_even",
        "float32",
        {HALF: 0, 0xBF000000: NEG, 0x3FC00000: TWO, 0x40200000: TWO, 0xC0200000: 0xC0000000},
    ),
    unary(
        "round away",
        "round_nearest_afz",
        "float32",
        {HALF: ONE, 0xBF000000: 0xBF800000, 0x40200000: 0x40400000, 0x3EFFFFFF: 0, PAYLOAD: NAN},
    ),
    Case("is_finite", "is_finite", (value("float32", 0, LARGEST, INF, NAN),), value("bool", 1, 1, 0, 0)),
    comparison("0 equals -0", "EQ", "DEFAULT", "float32", [(0, NEG, 1), (NAN, NAN, 0), (INF, INF, 1)]),
    comparison("NaN differs from itself", "NE", "DEFAULT", "float32", [(NAN, NAN, 1), (ONE, ONE, 0), (0, NEG, 0)]),
    comparison("less or equal", "LE", "DEFAULT", "float32", [(0, NEG, 1), (NAN, ONE, 0), (ONE | NEG, ONE, 1)]),
    comparison(
        "total order",
        "LT",
        "TOTALORDER",
        "float32",
        [
            (NEG, 0, 1),
            (0, NEG, 0),
            (PAYLOAD, INF | NEG, 1),
            (INF, SIGNALING, 1),
            (SIGNALING, NAN, 1),
            (NAN, 0x7FC00001, 1),
            (0xFFC00001, 0xFFC00000, 1),
            (NAN, NAN, 0),
        ],
    ),
    comparison("total order of equal words", "LE", "TOTALORDER", "float32", [(NAN, NAN, 1), (0, NEG, 0), (NEG, 0, 1)]),
    comparison("total order distinguishes zeros", "EQ", "TOTALORDER", "float32", [(0, NEG, 0), (NAN, NAN, 1)]),
    comparison(
        "total order, one NaN", "GT", "TOTALORDER", "float8_e5m2fnuz", [(0x80, 0x7F, 1), (0xFF, 0, 0), (0, 0x80, 0)]
    ),
    Case(
        "clamp",
        "clamp",
        # min, operand, max: below, above, NaN, and max where min exceeds it
        (
            value("float32", 0, 0, 0, TWO),
            value("float32", ONE | NEG, TWO, PAYLOAD, 0),
            value("float32", ONE, ONE, ONE, ONE),
        ),
        value("float32", 0, ONE, NAN, ONE),
    ),
    Case(
        "select moves words",
        "select",
        (value("bool", 1, 0), value("float32", SIGNALING, 0), value("float32", 0, PAYLOAD)),
        value("float32", SIGNALING, PAYLOAD),
    ),
    # x^3 by repeated squaring: p = x, x^2; (x) * (x^2)
    Case(
        "a power of zero is 1", "integer_pow", (value("float32", 0, NAN),), value("float32", ONE, ONE), {"exponent": 0}
    ),
    Case(
        "a first power", "integer_pow", (value("float32", NEG, PAYLOAD),), value("float32", NEG, NAN), {"exponent": 1}
    ),
    Case(
        "an inverse", "integer_pow", (value("float32", NEG, TWO),), value("float32", INF | NEG, HALF), {"exponent": -1}
    ),
    # the power overflows before it is inverted
    Case("an inverse power", "integer_pow", (value("float32", 0x5F800000),), value("float32", 0), {"exponent": -3}),
    # float8_e4m3fn has no infinity: an overflow is NaN; float4 has neither: the largest number
    binary("overflow without infinity", "add", "float8_e4m3fn", [(0x7E, 0x7E, 0x7F), (0xFE, 0xFE, 0x7F)]),
    binary("overflow without NaN", "add", "float4_e2m1fn", [(0x7, 0x7, 0x7), (0xF, 0xF, 0xF), (0x2, 0x2, 0x4)]),
    # binary128: 1 + 2^-113 is a tie, 1 + 2^-112 is not
    Case(
        "binary128",
        "add",
        (value("float128", 0x3FFF << 112, 0x3FFF << 112), value("float128", 0x3F8E << 112, 0x3F8F << 112)),
        value("float128", 0x3FFF << 112, (0x3FFF << 112) | 1),
    ),
]
