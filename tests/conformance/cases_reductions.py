"""Facts about reductions and contractions, by their words: identities, signed zeros, NaN, orders, empty axes."""

from __future__ import annotations

from typing import Any

from conformance import Case, Value, value

from tlir.ir.ops import Accumulate
from tlir.ir.types import parse_dtype

ONE, NAN, INF, NEG = 0x3F800000, 0x7FC00000, 0x7F800000, 0x80000000
BIG, TINY = 0x4B800000, ONE  # 2^24 and 1: their sum is a tie, and rounds to 2^24


def reduce(
    name: str, reducer: str, dtype: str, words: list[int], expected: int, order: Accumulate | None = None
) -> Case:
    attrs: dict[str, Any] = {"reducer": reducer, "dimensions": (0,)}
    if order is not None:
        attrs["accumulate"] = order
    return Case(name, "reduce", (value(dtype, *words),), Value(f"{dtype}[]", (expected,)), attrs)


def index(name: str, op: str, dtype: str, words: list[int], expected: int, result: str = "int32") -> Case:
    return Case(name, op, (value(dtype, *words),), Value(f"{result}[]", (expected,)), {"dimension": 0})


def dot(name: str, dtype: str, lhs: list[int], rhs: list[int], expected: int, result: str = "", **order: Any) -> Case:
    attrs: dict[str, Any] = {
        "lhs_batching_dimensions": (),
        "rhs_batching_dimensions": (),
        "lhs_contracting_dimensions": (0,),
        "rhs_contracting_dimensions": (0,),
    }
    if order:
        attrs["accumulate"] = Accumulate(**order)
    return Case(
        name, "dot_general", (value(dtype, *lhs), value(dtype, *rhs)), Value(f"{result or dtype}[]", (expected,)), attrs
    )


CASES = [
    reduce("an empty sum", "add", "float32", [], 0),
    reduce("an empty pairwise sum", "add", "float32", [], 0, Accumulate(order="pairwise")),
    reduce("an empty product", "multiply", "float32", [], ONE),
    reduce("an empty maximum", "maximum", "float32", [], INF | NEG),
    reduce("an empty minimum", "minimum", "float8_e4m3fn", [], 0x7E),
    reduce("an empty maximum of integers", "maximum", "int4", [], 0x8),
    reduce("an empty minimum of integers", "minimum", "int4", [], 0x7),
    reduce("an empty maximum of unsigned", "maximum", "uint8", [], 0),
    reduce("an empty maximum of bool", "maximum", "bool", [], 0),
    reduce("an empty minimum of bool", "minimum", "bool", [], 1),
    reduce("an empty and", "and", "int4", [], 0xF),
    reduce("an empty and of bool", "and", "bool", [], 1),
    reduce("an empty xor", "xor", "uint8", [], 0),
    reduce("a sum of -0 starts from 0", "add", "float32", [NEG], 0),
    reduce("a pairwise sum of -0, too", "add", "float32", [NEG, NEG], 0, Accumulate(order="pairwise")),
    reduce("a sum with NaN is canonical", "add", "float32", [0xFFC12345, ONE], NAN),
    reduce("a maximum of one NaN is canonical", "maximum", "float32", [0xFFC12345], NAN),
    reduce("a maximum of zeros", "maximum", "float32", [NEG, 0], 0),
    reduce("a minimum of zeros", "minimum", "float32", [0, NEG], NEG),
    # 2^24 + 1 + 1: one by one both ones are lost, in pairs they are not
    reduce("one by one", "add", "float32", [BIG, TINY, TINY], BIG),
    reduce("neighbours", "add", "float32", [TINY, TINY, BIG], BIG + 1, Accumulate(order="pairwise")),
    reduce("an odd last one is passed on", "add", "float32", [BIG, TINY, TINY], BIG, Accumulate(order="pairwise")),
    reduce("blocks", "add", "float32", [BIG, TINY, TINY, TINY], BIG + 1, Accumulate(order="blocked", block=2)),
    reduce("a wider accumulator", "add", "float32", [BIG, TINY, TINY], BIG + 1, Accumulate(parse_dtype("float64"))),
    # 2048 + 1 in float16
    reduce("float16 sums round in float16", "add", "float16", [0x6800, 0x3C00, 0x3C00], 0x6800),
    reduce("or in float32", "add", "float16", [0x6800, 0x3C00, 0x3C00], 0x6801, Accumulate(parse_dtype("float32"))),
    reduce("integers wrap", "add", "int8", [0x7F, 1], 0x80),
    reduce("int4 products wrap", "multiply", "int4", [3, 7], 21 % 16),
    reduce("maximum of signed", "maximum", "int4", [0x8, 0xF, 0x1], 0x1),
    reduce("exclusive or", "xor", "uint8", [1, 3, 8], 10),
    index("argmax: the first of several", "argmax", "float32", [ONE, 0x40000000, 0x40000000], 1),
    index("argmax: the first NaN", "argmax", "float32", [INF, NAN, 0xFFC00001], 1),
    index("argmin: the first NaN, too", "argmin", "float32", [INF | NEG, ONE, NAN, NAN], 2),
    index("zeros are equal", "argmax", "float32", [NEG, 0], 0),
    index("zeros are equal, again", "argmin", "float32", [0, NEG], 0),
    index("argmin of signed", "argmin", "int8", [0, 0x7F, 0x80], 2),
    index("argmax of bool", "argmax", "bool", [0, 1, 1], 1, "uint8"),
    index("the index wraps", "argmax", "uint8", [0, 0, 0, 0, 0, 9], 1, "int2"),
    dot("an empty sum of products", "float32", [], [], 0),
    dot("products round before they are added", "float32", [0x3F800800, ONE], [0x3F800800, 0xBF801000], 0),
    dot("unless they are fused", "float32", [ONE, 0x3F800800], [0xBF801000, 0x3F800800], 0x33800000, fma=True),
    dot("a dot of -0 starts from 0", "float32", [NEG], [ONE], 0),
    dot("int8 products in int32", "int8", [0x80, 0x80], [0x80, 0x7F], 128, "int32"),
    dot("and in int8 they wrap", "int8", [0x80, 0x80], [0x80, 0x7F], 128),
    dot("bool", "bool", [1, 0, 1], [0, 1, 1], 1),
    dot("0 times infinity", "float32", [0, ONE], [INF, ONE], NAN),
]
