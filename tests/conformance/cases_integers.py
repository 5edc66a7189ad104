"""Facts about integers, by their words; the exhaustive tests are in ``tests/reference/test_integers.py``."""

from __future__ import annotations

from conformance import Case, value


def binary(name: str, op: str, dtype: str, rows: list[tuple[int, int, int]]) -> Case:
    lhs, rhs, result = zip(*rows, strict=True)
    return Case(name, op, (value(dtype, *lhs), value(dtype, *rhs)), value(dtype, *result))


CASES = [
    binary(
        "-128 / -1 and x / 0", "divide", "int8", [(0x80, 0xFF, 0x80), (0x80, 0, 0xFF), (5, 0, 0xFF), (0xF9, 2, 0xFD)]
    ),
    binary("unsigned x / 0", "divide", "uint8", [(5, 0, 0xFF), (200, 7, 28)]),
    binary("least / -1 in int64", "divide", "int64", [(1 << 63, 2**64 - 1, 1 << 63), (2**64 - 7, 2, 2**64 - 3)]),
    binary("remainder", "remainder", "int8", [(0x80, 0xFF, 0), (0x85, 0, 0x85), (0xF9, 2, 0xFF), (7, 0xFE, 1)]),
    binary("remainder in int64", "remainder", "int64", [(1 << 63, 2**64 - 1, 0), (2**62 + 1, 2, 1)]),
    binary("large products wrap", "multiply", "uint64", [(2**63 + 1, 3, 2**63 + 3), (2**64 - 1, 2**64 - 1, 1)]),
    binary(
        "large quotients are exact", "divide", "uint64", [(2**64 - 1, 3, 0x5555555555555555), (2**63 + 1, 1, 2**63 + 1)]
    ),
    binary(
        "negative powers",
        "power",
        "int8",
        [(1, 0xFF, 1), (0xFF, 0xFF, 0xFF), (0xFF, 0xFE, 1), (0, 0xFF, 0), (2, 0xFF, 0)],
    ),
    binary("powers wrap", "power", "uint8", [(3, 5, 243), (3, 6, 729 % 256), (0, 0, 1), (2, 8, 0)]),
    binary("shift left", "shift_left", "int32", [(1, 31, 1 << 31), (1, 32, 0), (1, 2**32 - 1, 0), (3, 31, 1 << 31)]),
    binary(
        "logical shift", "shift_right_logical", "int32", [(1 << 31, 31, 1), (1 << 31, 32, 0), (1 << 31, 2**32 - 1, 0)]
    ),
    binary(
        "arithmetic shift",
        "shift_right_arithmetic",
        "int32",
        [(1 << 31, 31, 2**32 - 1), (1 << 31, 32, 2**32 - 1), (1 << 30, 99, 0), (1 << 31, 2**32 - 1, 2**32 - 1)],
    ),
    binary(
        "arithmetic shift of unsigned",
        "shift_right_arithmetic",
        "uint8",
        [(0x80, 3, 0xF0), (0x40, 3, 8), (0x80, 8, 0xFF)],
    ),
    Case("negate", "negate", (value("int8", 0x80, 1),), value("int8", 0x80, 0xFF)),
    Case("abs", "abs", (value("int8", 0x80, 0xFF),), value("int8", 0x80, 1)),
    Case("sign of integers", "sign", (value("int4", 0x8, 0, 0x7),), value("int4", 0xF, 0, 1)),
    Case("popcnt", "popcnt", (value("uint64", 2**64 - 1, 1),), value("uint64", 64, 1)),
    Case("leading zeros", "count_leading_zeros", (value("uint16", 0, 1, 0x8000),), value("uint16", 16, 15, 0)),
    Case("not", "not", (value("bool", 0, 1),), value("bool", 1, 0)),
    Case("not of int4", "not", (value("int4", 0x5),), value("int4", 0xA)),
    Case("integer power", "integer_pow", (value("int8", 3, 0x80),), value("int8", 3**5 % 256, 0), {"exponent": 5}),
]
