"""One ill-typed node for every numbered constraint of every operation, and none forgotten."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pytest

from tlir.ir.graph import Body, Graph, Node, Ref
from tlir.ir.ops import OPERATIONS, Accumulate
from tlir.ir.types import TensorType, parse_dtype
from tlir.ir.verify import type_errors, verify_structure


@dataclass(frozen=True)
class IllTyped:
    """A node that breaks one constraint and would be well typed without that: types such as ``float32[2,3]``."""

    operands: str
    result: str
    attrs: dict[str, Any] = field(default_factory=dict)


def parse(text: str) -> TensorType:
    match = re.fullmatch(r"([a-z0-9_<>]+)\[([0-9,]*)\]", text)
    assert match is not None, text
    return TensorType(tuple(int(size) for size in match.group(2).split(",") if size), parse_dtype(match.group(1)))


def graph_of(op: str, node: IllTyped) -> Graph:
    types = [parse(text) for text in node.operands.split()]
    nodes = [Node(k, "input", (), {}, (type,)) for k, type in enumerate(types)]
    count = len(nodes)
    nodes.append(Node(count, op, tuple(Ref(k) for k in range(count)), node.attrs, (parse(node.result),)))
    return Graph(Body(tuple(nodes), tuple(range(count)), (Ref(count),)))


# ---- elementwise operations: C1 shapes, C2 dtypes, C3 the kinds they take -------------------------------------------

# per operation, a dtype that it takes and one that it does not
ELEMENTWISE: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("add", "subtract", "multiply", "divide", "negate", "abs", "sign", "integer_pow"), ("int32", "bool")
    ),
    **dict.fromkeys(("remainder", "clamp"), ("int8", "complex64")),
    **dict.fromkeys(("maximum", "minimum"), ("bool", "complex64")),
    **dict.fromkeys(("fma", "copysign", "next_after", "is_finite"), ("float32", "complex64")),
    **dict.fromkeys(("floor", "ceil", "trunc", "round_nearest_even", "round_nearest_afz"), ("float16", "int32")),
    **dict.fromkeys(
        ("sqrt", "rsqrt", "exponential", "exponential_minus_one", "log", "log_plus_one"), ("float32", "int32")
    ),
    **dict.fromkeys(("logistic", "tanh", "sine", "cosine", "tan", "asin", "acos", "atan"), ("complex64", "bool")),
    **dict.fromkeys(("sinh", "cosh", "asinh", "acosh", "atanh"), ("float64", "uint8")),
    **dict.fromkeys(("exp2", "log2", "log10", "cbrt", "erf", "erfc", "erf_inv"), ("float32", "complex64")),
    **dict.fromkeys(("lgamma", "digamma", "atan2", "hypot"), ("bfloat16", "int64")),
    "power": ("int32", "bool"),
    **dict.fromkeys(("and", "or", "xor", "not"), ("bool", "float32")),
    **dict.fromkeys(("shift_left", "shift_right_logical", "shift_right_arithmetic"), ("uint8", "bool")),
    **dict.fromkeys(("popcnt", "count_leading_zeros"), ("int16", "float32")),
    "complex": ("float32", "complex64"),
    **dict.fromkeys(("real", "imag", "conjugate"), ("complex64", "float32")),
}

RESULT_DTYPE = {
    "is_finite": lambda _: "bool",
    "complex": lambda _: "complex64",
    "real": lambda _: "float32",
    "imag": lambda _: "float32",
}

OTHER_DTYPE = {"int32": "int16", "float32": "float64", "complex64": "complex128", "bool": "int8"}


def elementwise_rows(op: str) -> dict[str, IllTyped]:
    taken, refused = ELEMENTWISE[op]
    count = len(OPERATIONS[op].operands)
    attrs = {"exponent": 2} if op == "integer_pow" else {}

    def node(first: str, others: str) -> IllTyped:
        dtype = RESULT_DTYPE.get(op, lambda given: given)(first.partition("[")[0])
        return IllTyped(" ".join([first] + [others] * (count - 1)), f"{dtype}[{first.partition('[')[2]}", attrs)

    rows = {"C3": node(f"{refused}[3]", f"{refused}[3]")}
    if count > 1:
        rows["C1"] = node(f"{taken}[3]", f"{taken}[1]")
        rows["C2"] = node(f"{taken}[3]", f"{OTHER_DTYPE.get(taken, 'float32')}[3]")
    return rows


# ---- all the others -------------------------------------------------------------------------------------------------


def dot(lhs: str, rhs: str, result: str, batch: Any = ((), ()), contract: Any = ((1,), (0,)), **order: Any) -> IllTyped:
    attrs: dict[str, Any] = {
        "lhs_batching_dimensions": batch[0],
        "rhs_batching_dimensions": batch[1],
        "lhs_contracting_dimensions": contract[0],
        "rhs_contracting_dimensions": contract[1],
    }
    if order:
        attrs["accumulate"] = Accumulate(**order)
    return IllTyped(f"{lhs} {rhs}", result, attrs)


def reduce(operand: str, result: str, reducer: str, axes: tuple[int, ...] = (0,), **order: Any) -> IllTyped:
    attrs: dict[str, Any] = {"reducer": reducer, "dimensions": axes}
    if order:
        attrs["accumulate"] = Accumulate(**order)
    return IllTyped(operand, result, attrs)


def pad(operands: str, result: str, low: Any = (1,), high: Any = (1,), interior: Any = (0,)) -> IllTyped:
    return IllTyped(
        operands, result, {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": interior}
    )


def part(start: Any, limit: Any, strides: Any, result: str) -> IllTyped:
    return IllTyped("float32[5]", result, {"start_indices": start, "limit_indices": limit, "strides": strides})


FLOAT64 = parse_dtype("float64")
INT32 = parse_dtype("int32")

ROWS: dict[str, dict[str, IllTyped]] = {
    "iota": {
        "C1": IllTyped("", "bool[3]", {"iota_dimension": 0}),
        "C2": IllTyped("", "int32[3]", {"iota_dimension": 1}),
    },
    "bitcast_convert": {
        "C1": IllTyped("bool[3]", "uint8[3]"),
        "C2": IllTyped("float6_e2m3fn[3]", "int4[3]"),
        "C3": IllTyped("uint8[3]", "uint32[]"),
    },
    "reduce_precision": {"C1": IllTyped("int32[3]", "int32[3]", {"exponent_bits": 5, "mantissa_bits": 10})},
    "integer_pow": {"C4": IllTyped("int32[3]", "int32[3]", {"exponent": -1})},
    "compare": {
        "C1": IllTyped("int32[3] int32[1]", "bool[3]", {"comparison_direction": "EQ"}),
        "C2": IllTyped("int32[3] int16[3]", "bool[3]", {"comparison_direction": "EQ"}),
        "C3": IllTyped("complex64[3] complex64[3]", "bool[3]", {"comparison_direction": "LT"}),
        "C4": IllTyped("int32[3] int32[3]", "bool[3]", {"comparison_direction": "EQ", "compare_type": "TOTALORDER"}),
    },
    "select": {
        "C1": IllTyped("bool[] float32[3] float32[3]", "float32[3]"),
        "C2": IllTyped("bool[3] float32[3] float64[3]", "float32[3]"),
        "C3": IllTyped("int8[3] float32[3] float32[3]", "float32[3]"),
    },
    "broadcast_in_dim": {
        "C1": IllTyped("float32[3]", "float32[2,3]", {"broadcast_dimensions": ()}),
        "C2": IllTyped("float32[3]", "float32[2,3]", {"broadcast_dimensions": (2,)}),
        "C3": IllTyped("float32[3]", "float32[2,4]", {"broadcast_dimensions": (1,)}),
    },
    "reshape": {"C1": IllTyped("float32[2,3]", "float32[7]")},
    "transpose": {"C1": IllTyped("float32[2,3]", "float32[2,3]", {"permutation": (0, 2)})},
    "concatenate": {
        "C1": IllTyped("float32[2,3] float32[2,4]", "float32[4,3]", {"dimension": 0}),
        "C2": IllTyped("float32[2,3] float64[2,3]", "float32[4,3]", {"dimension": 0}),
        "C3": IllTyped("float32[2,3] float32[2,3]", "float32[2,3]", {"dimension": 2}),
    },
    "slice": {
        "C1": part((0, 0), (5,), (1,), "float32[5]"),
        "C2": part((0,), (6,), (1,), "float32[6]"),
    },
    "pad": {
        "C1": pad("float32[3] float64[]", "float32[5]"),
        "C2": pad("float32[3] float32[]", "float32[5]", low=(1, 1)),
        "C3": pad("float32[3] float32[]", "float32[0]", low=(-4,), high=(0,)),
    },
    "reverse": {"C1": IllTyped("float32[3]", "float32[3]", {"dimensions": (1,)})},
    "reduce": {
        "C1": reduce("float32[3]", "float32[3]", "add", axes=(1,)),
        "C2": reduce("bool[3]", "bool[]", "add"),
        "C3": reduce("float32[3]", "float32[]", "add", dtype=INT32),
        "C4": reduce("float32[3]", "float32[]", "maximum", order="pairwise"),
    },
    **{
        op: {
            "C1": IllTyped("float32[3]", "int32[3]", {"dimension": 1}),
            "C2": IllTyped("complex64[3]", "int32[]", {"dimension": 0}),
            "C3": IllTyped("float32[3]", "float32[]", {"dimension": 0}),
            "C4": IllTyped("float32[0]", "int32[]", {"dimension": 0}),
        }
        for op in ("argmax", "argmin")
    },
    "dot_general": {
        "C1": dot("float32[2,3]", "float32[3,4]", "float32[2,4]", contract=((2,), (0,))),
        "C2": dot("float32[2,2]", "float32[2,2]", "float32[2]", batch=((1,), (1,)), contract=((1,), (0,))),
        "C3": dot("float32[2,3]", "float32[3,4]", "float32[2,4]", contract=((1,), ())),
        "C4": dot("float32[2,3]", "float32[5,4]", "float32[2,4]"),
        "C5": dot("float32[2,3]", "float64[3,4]", "float32[2,4]"),
        "C6": dot("int8[2,3]", "int8[3,4]", "float32[2,4]"),
        "C7": dot("float32[2,3]", "float32[3,4]", "float32[2,4]", order="pairwise", fma=True),
    },
}

# other ways to break a constraint that has several parts
MORE: list[tuple[str, str, IllTyped]] = [
    ("transpose", "C1", IllTyped("float32[2,3]", "float32[2,2]", {"permutation": (0, 0)})),
    ("transpose", "C1", IllTyped("float32[2,3]", "float32[2]", {"permutation": (0,)})),
    ("concatenate", "C1", IllTyped("float32[2,3] float32[2]", "float32[4,3]", {"dimension": 0})),
    ("slice", "C2", part((3,), (2,), (1,), "float32[0]")),
    ("pad", "C1", pad("float32[3] float32[1]", "float32[5]")),
    ("reduce", "C4", reduce("float32[3]", "float32[]", "add", fma=True)),
    ("dot_general", "C3", dot("float32[2,3]", "float32[2,3]", "float32[2]", batch=((0,), ()), contract=((1,), (1,)))),
    ("dot_general", "C4", dot("float32[2,3]", "float32[5,3]", "float32[2]", batch=((0,), (0,)), contract=((1,), (1,)))),
    ("dot_general", "C7", dot("float32[2,3]", "float32[3,4]", "float32[2,4]", dtype=INT32)),
    ("dot_general", "C7", dot("int32[2,3]", "int32[3,4]", "int32[2,4]", fma=True)),
    ("bitcast_convert", "C1", IllTyped("complex64[3]", "uint64[3]")),
    ("bitcast_convert", "C3", IllTyped("uint8[]", "uint32[]")),
    (
        "compare",
        "C4",
        IllTyped("bool[3] bool[3]", "bool[3]", {"comparison_direction": "LT", "compare_type": "TOTALORDER"}),
    ),
]


def table() -> dict[tuple[str, str], IllTyped]:
    rows = {(op, rule): node for op in ELEMENTWISE for rule, node in elementwise_rows(op).items()}
    return rows | {(op, rule): node for op, nodes in ROWS.items() for rule, node in nodes.items()}


TABLE = table()

FAMILIES = (
    "data",
    "arithmetic",
    "elementary",
    "logic",
    "complex_numbers",
    "shape",
    "reduction",
    "contraction",
)
"""The families whose constraints this table covers."""


@pytest.mark.parametrize(
    ("op", "rule", "node"),
    [*((op, rule, node) for (op, rule), node in TABLE.items()), *MORE],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_the_constraint_is_named(op: str, rule: str, node: IllTyped) -> None:
    graph = graph_of(op, node)
    verify_structure(graph)
    (error,) = type_errors(graph)
    assert error.code == "TL0302"
    assert error.message.endswith(f"(constraint {rule} of {op})")
    assert error.node == f"{len(node.operands.split())} {op}"


def test_every_constraint_has_an_ill_typed_node() -> None:
    declared = {
        (op, rule)
        for op, operation in OPERATIONS.items()
        if operation.family in FAMILIES
        for rule in operation.constraints
    }
    assert set(TABLE) == declared


@pytest.mark.parametrize("op", ELEMENTWISE)
def test_the_wrong_result_is_named(op: str) -> None:
    """Well-typed operands with a declared shape that is not theirs: TL0301, with the type to declare."""
    taken, _ = ELEMENTWISE[op]
    operands = " ".join([f"{taken}[3]"] * len(OPERATIONS[op].operands))
    dtype = RESULT_DTYPE.get(op, lambda given: given)(taken)
    if op == "abs" and taken == "complex64":
        dtype = "float32"
    attrs = {"exponent": 2} if op == "integer_pow" else {}
    assert type_errors(graph_of(op, IllTyped(operands, f"{dtype}[3]", attrs))) == []
    (error,) = type_errors(graph_of(op, IllTyped(operands, f"{dtype}[4]", attrs)))
    assert error.code == "TL0301"
    assert error.hint == f"declare {dtype}[3]"
