"""Facts about conversions, bits, constants and counting, by their words."""

from __future__ import annotations

from conformance import Case, Value, value


def convert(name: str, source: str, target: str, pairs: list[tuple[int, int]], **attrs: str) -> Case:
    operand, result = zip(*pairs, strict=True)
    return Case(name, "convert", (value(source, *operand),), value(target, *result), attrs)


def reduced(name: str, exponent_bits: int, mantissa_bits: int, dtype: str, pairs: dict[int, int]) -> Case:
    attrs = {"exponent_bits": exponent_bits, "mantissa_bits": mantissa_bits}
    return Case(name, "reduce_precision", (value(dtype, *pairs),), value(dtype, *pairs.values()), attrs)


INT_FROM_FLOAT32 = {  # 300, -1, 2.9, -2.9, 3e9, 1e20, -inf, NaN
    "words": (0x43960000, 0xBF800000, 0x4039999A, 0xC039999A, 0x4F32D05E, 0x60AD78EC, 0xFF800000, 0x7FC00000),
    ("int8", "saturate"): (0x7F, 0xFF, 2, 0xFE, 0x7F, 0x7F, 0x80, 0),
    ("uint8", "saturate"): (0xFF, 0, 2, 0, 0xFF, 0xFF, 0, 0),
    ("int32", "saturate"): (300, 0xFFFFFFFF, 2, 0xFFFFFFFE, 0x7FFFFFFF, 0x7FFFFFFF, 0x80000000, 0),
    ("uint32", "saturate"): (300, 0, 2, 0, 0xB2D05E00, 0xFFFFFFFF, 0, 0),
    ("int8", "indefinite"): (300 & 0xFF, 0xFF, 2, 0xFE, 0, 0, 0, 0),
    ("int4", "indefinite"): (300 & 0xF, 0xF, 2, 0xE, 0, 0, 0, 0),
    ("uint16", "indefinite"): (300, 0xFFFF, 2, 0xFFFE, 0, 0, 0, 0),
    ("int32", "indefinite"): (300, 0xFFFFFFFF, 2, 0xFFFFFFFE, *(0x80000000,) * 4),
    ("uint32", "indefinite"): (300, 0x80000000, 2, 0x80000000, 0xB2D05E00, *(0x80000000,) * 3),
    ("int64", "indefinite"): (300, 2**64 - 1, 2, 2**64 - 2, 0xB2D05E00, *(2**63,) * 3),
}

CASES = [
    # 16777217 = 2^24 + 1 is a tie in float32
    convert("2^24 + 1 to float32", "float64", "float32", [(0x4170000010000000, 0x4B800000)]),
    convert("2^24 back to float64", "float32", "float64", [(0x4B800000, 0x4170000000000000)]),
    # 1 + 2^-8 + 2^-31: through float32 it would become a tie, and round to even
    convert("float64 to bfloat16 at once", "float64", "bfloat16", [(0x3FF0100000200000, 0x3F81)]),
    convert("NaN becomes canonical", "float64", "float32", [(0xFFF8000000000123, 0x7FC00000)]),
    convert("equal dtypes keep every word", "float32", "float32", [(0xFFC12345, 0xFFC12345), (0x7F800001, 0x7F800001)]),
    convert("overflow to infinity", "float32", "float16", [(0x477FF000, 0x7C00), (0x477FEFFF, 0x7BFF)]),
    convert("overflow to NaN", "float32", "float8_e4m3fn", [(0x43E80001, 0x7F), (0x43E00000, 0x7E)]),
    convert("overflow to the largest", "float32", "float4_e2m1fn", [(0x7F800000, 0x7), (0xC2C80000, 0xF)]),
    convert("-0 where there is none", "float32", "float8_e4m3fnuz", [(0x80000000, 0), (0x7FC00000, 0x80)]),
    convert("2^64 - 1 rounds once", "uint64", "float32", [(2**64 - 1, 0x5F800000)]),
    convert("-2^63", "int64", "float64", [(2**63, 0xC3E0000000000000)]),
    # 2^63 + 2^10 is a tie of float64; 2^63 + 2^10 + 1 is above it
    convert(
        "uint64 ties", "uint64", "float64", [(2**63 + 1024, 0x43E0000000000000), (2**63 + 1025, 0x43E0000000000001)]
    ),
    convert("sign extension", "int8", "int64", [(0xFF, 2**64 - 1), (0x7F, 0x7F)]),
    convert("zero extension", "uint8", "int64", [(0xFF, 0xFF)]),
    convert("low bits", "int64", "int4", [(2**64 - 1, 0xF), (0x123, 0x3)]),
    convert("int4 to int8", "int4", "int8", [(0x8, 0xF8), (0x7, 7)]),
    convert("bool to others", "bool", "float16", [(1, 0x3C00), (0, 0)]),
    convert("to bool", "float32", "bool", [(0x80000000, 0), (1, 1), (0x7FC00000, 1), (0, 0)]),
    convert("uint64 to bool", "uint64", "bool", [(1 << 63, 1), (0, 0)]),
    Case(
        "complex to bool",
        "convert",
        (value("complex64", 0, 0, 0, 0x3F800000, 0x80000000, 0x80000000, 0, 0x7FC00000),),
        value("bool", 0, 1, 0, 1),
    ),
    Case("real to complex", "convert", (value("float64", 1 << 63),), value("complex64", 0x80000000, 0)),
    Case("complex to real", "convert", (value("complex64", 0x40200000, 0x7FC00000),), value("int8", 2)),
    Case(
        "complex to complex",
        "convert",
        (value("complex128", 0x3FF0000000000000, 1 << 63),),
        value("complex64", 0x3F800000, 0x80000000),
    ),
    *(
        convert(
            f"float32 to {target}, {rule}",
            "float32",
            target,
            list(zip(INT_FROM_FLOAT32["words"], words, strict=True)),
            out_of_range=rule,
        )
        for (target, rule), words in ((key, words) for key, words in INT_FROM_FLOAT32.items() if key != "words")
    ),
    Case("bits of a float", "bitcast_convert", (value("float32", 0xFFC12345),), value("int32", 0xFFC12345)),
    Case(
        "to parts, least significant first",
        "bitcast_convert",
        (value("uint32", 0x87654321),),
        Value("uint8[1,4]", (0x21, 0x43, 0x65, 0x87)),
    ),
    Case("to int4 parts", "bitcast_convert", (value("int16", 0x4321),), Value("int4[1,4]", (1, 2, 3, 4))),
    Case("from int4 parts", "bitcast_convert", (Value("int4[1,2]", (0xF, 0x8)),), value("uint8", 0x8F)),
    Case("from int2 parts", "bitcast_convert", (Value("int2[4]", (1, 2, 3, 0)),), Value("int8[]", (0x39,))),
    Case("float4 to bits", "bitcast_convert", (value("float4_e2m1fn", 0xA),), value("uint4", 0xA)),
    Case(
        "float128 to halves",
        "bitcast_convert",
        (value("float128", (0x3FFF << 112) | 5),),
        Value("uint64[1,2]", (5, 0x3FFF << 48)),
    ),
    # iota: 0, 1, 2, 3, … wraps in int2; in bfloat16 257 is not a number
    Case("iota wraps", "iota", (), value("int2", 0, 1, 2, 3, 0, 1), {"iota_dimension": 0}),
    Case("iota of floats", "iota", (), Value("float32[2,2]", (0, 0, 0x3F800000, 0x3F800000)), {"iota_dimension": 0}),
    Case("iota of complex", "iota", (), Value("complex64[1,2]", (0, 0, 0x3F800000, 0)), {"iota_dimension": 1}),
    Case(
        "iota saturates in float4", "iota", (), value("float4_e2m1fn", 0, 2, 4, 5, 6, 6, 7, 7, 7), {"iota_dimension": 0}
    ),
    # float32 to float16's range: 65519 rounds to 65504, 65520 overflows; 2^-14 stays, below it becomes zero
    reduced(
        "to float16",
        5,
        10,
        "float32",
        {
            0x477FEFFF: 0x477FE000,
            0x477FF000: 0x7F800000,
            0x38800000: 0x38800000,
            0xB87FE000: 0x80000000,
            0x3F801000: 0x3F800000,
            0x3F803000: 0x3F804000,
            0xFFC12345: 0x7FC00000,
            0xFF800000: 0xFF800000,
            0x80000000: 0x80000000,
        },
    ),
    # just below 2^-14 rounds up to it, and stays
    reduced("rounding comes first", 5, 10, "float32", {0x387FFFFF: 0x38800000}),
    reduced("to bfloat16", 8, 7, "float32", {0x3F808000: 0x3F800000, 0x3F818000: 0x3F820000, 0x7F7FFFFF: 0x7F800000}),
    reduced("more bits than there are", 11, 52, "float32", {0x3F800001: 0x3F800001, 1: 1, 0x7F7FFFFF: 0x7F7FFFFF}),
    # 1.5 and 3 are ties, and go to 2, whose word is even
    reduced(
        "no mantissa bits", 8, 0, "float32", {0x3FC00000: 0x40000000, 0x3FBFFFFF: 0x3F800000, 0x40400000: 0x40000000}
    ),
    # without infinities an overflow is what the format has for one
    reduced("in float8_e4m3fn", 3, 3, "float8_e4m3fn", {0x7E: 0x7F, 0x38: 0x38, 0x01: 0}),
    reduced("in binary128", 11, 52, "float128", {(0x3FFF << 112) | 1: 0x3FFF << 112, 0x7000 << 112: 0x7FFF << 112}),
]
