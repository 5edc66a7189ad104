"""Graphs in which every operation occurs in every dtype that it takes: what the devices are compared on.

The words to expect are the reference's, which the cases and the tests of the reference hold against other sources. Many
independent nodes make one graph, so that a device compiles them together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from lower_graphs import STEPS, TABLE, Builder, random_tensor
from matrices import EMPTY, LARGER, ONE_OF_EACH, SMALL, SOLVERS, Item, matrices

from tlir.floatlib.format import Format
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.ops import OPERATIONS, elementary, special
from tlir.ir.ops.base import Call, Violation
from tlir.ir.tensor import Tensor
from tlir.ir.types import BOOL, NAMED, DType, TensorType, complex_of
from tlir.kernel.verify import ELEMENTWISE
from tlir.passes.lower import REASONS
from tlir.passes.lower.costs import PROCESSOR

_SIGNLESS_ZERO = Format(4, 3, bias=9, infinities=False, nans="negative_zero", signed_zero=False)
DTYPES: list[DType] = [
    *TABLE.values(),
    DType("float8_signless_zero", "float", 8, _SIGNLESS_ZERO),
    complex_of(NAMED["float128"]),
]
"""Every named dtype, and formats that an artifact declares itself."""

FUNCTIONS = {operation.name for family in (elementary, special) for operation in family.OPERATIONS}
ORDERS = {"zeta": ("tanh", "cosh"), "polygamma": ("sign", "abs")}
"""Functions that are refused for some orders, and what makes orders of any words that are not."""
MODERATE = ("igamma_grad_a", "random_gamma_grad")
"""Functions that are refused for operands from 2**12 on; inverse hyperbolic sines are below."""
FUNCTION_DTYPES = ("float32", "float64", "bfloat16")
"""The formats in which elementary functions are tried; the others' code is bfloat16's, with other bounds."""

ATTRIBUTES: dict[str, list[dict[str, Any]]] = {
    "integer_pow": [{"exponent": exponent} for exponent in (-2, 0, 1, 5)],
    "reduce_precision": [{"exponent_bits": 4, "mantissa_bits": 2}, {"exponent_bits": 30, "mantissa_bits": 1}],
    "compare": [
        *({"comparison_direction": direction} for direction in ("EQ", "NE", "LT", "LE", "GT", "GE")),
        *({"comparison_direction": direction, "compare_type": "TOTALORDER"} for direction in ("EQ", "LT", "GE")),
    ],
}
SHAPE = (4, 33)
AT_ONCE = 14
"""Dtypes whose rows are sorted in one graph."""
LARGEST = 4000
"""Elements of the largest result that is compared."""


@dataclass(frozen=True)
class Program:
    """A graph, the words of its inputs, and the nodes that are compared."""

    name: str
    body: Body
    inputs: list[Tensor]


def programs() -> Iterator[Program]:
    """All of them, each small enough to be compiled in a few seconds."""
    for dtype in DTYPES:
        yield elementwise(dtype)
    for name in FUNCTION_DTYPES:
        yield functions(NAMED[name])
    yield complex_functions("complex64")
    yield complex_functions("complex128")
    yield quotients("complex64")
    yield quotients("complex128")
    for name in ("float32", "int8", "uint2", "bool", "complex64", "float80"):
        yield structured(TABLE[name])
    yield control()
    yield factorizations("float32", [*SMALL, *EMPTY])
    yield factorizations("float64", LARGER)
    yield factorizations("complex64", ONE_OF_EACH)
    yield factorizations("float8_e4m3fn", ONE_OF_EACH)
    yield factorizations("float128", SOLVERS)
    for first in range(0, len(DTYPES), AT_ONCE):
        yield ordered(DTYPES[first : first + AT_ONCE])
    for names in (("float32", "float64"), ("float16", "bfloat16"), ("float8_e4m3fn", "float128")):
        yield transforms([NAMED[name] for name in names])


def _program(name: str, builder: Builder, nodes: list[Ref], seed: int) -> Program:
    body = builder.body(nodes)
    random = np.random.default_rng(seed)
    return Program(name, body, [random_tensor(random, type) for type in body.input_types])


def elementwise(dtype: DType) -> Program:
    """Every elementwise operation that takes the dtype, and conversions to others."""
    builder = Builder(np.random.default_rng(0))
    type, truth = TensorType(SHAPE, dtype), TensorType(SHAPE, BOOL)
    operands = [builder.input(type) for _ in range(3)]
    nodes = [builder.add("select", (builder.input(truth), *operands[:2]), type)]
    for op in sorted(ELEMENTWISE - REASONS.keys() - {"select", "convert", "bitcast_convert"}):
        inexact = dtype.is_complex and op in {*FUNCTIONS, "abs", "divide", "sqrt", "sign"}
        if (op in FUNCTIONS and dtype.is_float) or inexact:
            continue  # see ``functions``: where one is not decided, the GPU leaves all that is computed with it
        for attrs, count in product(ATTRIBUTES.get(op, [{}]), (1, 2, 3)):
            given = tuple(operands[:count])
            result = _result(op, [type] * count, attrs, dtype)
            if dtype.is_complex and attrs.get("exponent", 0) < 0:
                continue
            if result is not None:
                nodes.append(builder.add(op, given, result, **attrs))
    for name in ("bool", "int4", "uint8", "int64", "float8_e4m3fn", "float32", "float64", "float128", "complex64"):
        target = TensorType(SHAPE, NAMED[name])
        nodes.append(builder.add("convert", operands[:1], target))
        if (dtype.is_float or dtype.is_complex) and target.dtype.is_integer:
            nodes.append(builder.add("convert", operands[:1], target, out_of_range="indefinite"))
    if not dtype.is_bool and not dtype.is_complex:
        same = [d for d in DTYPES if d.bits == dtype.bits and d != dtype and not d.is_bool and not d.is_complex]
        nodes += [builder.add("bitcast_convert", operands[:1], TensorType(SHAPE, d)) for d in same[:2]]
    return _program(dtype.name, builder, nodes, len(nodes))


def accepted(builder: Builder, op: str, operands: list[Ref], type: TensorType) -> list[Ref]:
    """Operands that a function does not refuse, whatever these are."""
    first, *others = operands
    for before in ORDERS.get(op, ()):
        first = builder.add(before, (first,), type)
    given = [first, *others]
    return [builder.add("asinh", (operand,), type) for operand in given] if op in MODERATE else given


def functions(dtype: DType) -> Program:
    """Every elementary function that has a kernel, at words of every kind."""
    builder = Builder(np.random.default_rng(0))
    type = TensorType(SHAPE, dtype)
    operands = [builder.input(type) for _ in range(3)]
    nodes = []
    for op in sorted(FUNCTIONS - REASONS.keys()):
        given = accepted(builder, op, operands[: len(OPERATIONS[op].operands)], type)
        nodes.append(builder.add(op, given, type))
    return _program(f"functions of {dtype.name}", builder, nodes, 7)


def complex_functions(name: str) -> Program:
    """Every function of complex numbers, at words of every kind."""
    builder = Builder(np.random.default_rng(0))
    type = TensorType(SHAPE, NAMED[name])
    operands = [builder.input(type) for _ in range(2)]
    nodes = []
    for op in sorted(FUNCTIONS - REASONS.keys() | {"sqrt", "sign"}):
        count = len(OPERATIONS[op].operands)
        if _result(op, [type] * count, {}, type.dtype) == type:
            nodes.append(builder.add(op, operands[:count], type))
    return _program(f"functions of {name}", builder, nodes, 7)


def quotients(name: str) -> Program:
    """Quotients and absolute values of complex numbers, of ordinary ones."""
    type = TensorType(SHAPE, NAMED[name])
    builder = Builder(np.random.default_rng(0))
    x, y = builder.input(type), builder.input(type)
    nodes = [builder.add("divide", (x, y), type), builder.add("integer_pow", (x,), type, exponent=-3)]
    nodes.append(builder.add("abs", (x,), TensorType(SHAPE, type.dtype.component)))
    random = np.random.default_rng(0)
    parts = [random.standard_normal((*SHAPE, 2)).view(np.complex128)[..., 0] for _ in range(2)]
    return Program(f"quotients of {name}", builder.body(nodes), [Tensor.from_numpy(p.astype(name)) for p in parts])


def structured(dtype: DType) -> Program:
    """Operations that move, combine and accumulate elements, each a few times with random attributes."""
    builder = Builder(np.random.default_rng(dtype.bits))
    nodes = []
    for step in dict.fromkeys(STEPS):
        for shape in ((3, 4, 5), (2, 33), (1, 0, 3)):
            result = step(builder, builder.input(TensorType(shape, dtype)))
            if builder.type(result).size <= LARGEST:
                nodes.append(result)
    return _program(f"structured {dtype.name}", builder, nodes, dtype.bits)


def ordered(dtypes: list[DType]) -> Program:
    """Rows sorted, and the greatest elements: rows that are sorted in registers, and rows that are merged, of one key
    and of two; few and many of the greatest, of short and of long rows."""
    builder = Builder(np.random.default_rng(0))
    nodes = []

    def node(op: str, inputs: tuple[Ref, ...], types: tuple[TensorType, ...], **attrs: Any) -> None:
        builder.nodes.append(Node(len(builder.nodes), op, inputs, attrs, types))
        nodes.extend(Ref(len(builder.nodes) - 1, k) for k in range(len(types)))

    for number, dtype in enumerate(dtypes):
        whole = number % 3 == 0
        long, short = TensorType((3, 19 if whole else 11), dtype), TensorType((5, 2), dtype)
        where = TensorType(long.shape, NAMED["int16"])
        x = builder.input(long)
        node("sort", (x, builder.input(where)), (long, where), dimension=1, descending=number % 2 == 1)
        other = builder.input(short), builder.input(short)
        node("sort", (*other, builder.input(short)), (short,) * 3, dimension=0, num_keys=2, descending=number % 2 == 0)
        if whole and not dtype.is_complex:
            for count in (3, 19):
                types = TensorType((3, count), dtype), TensorType((3, count), NAMED["uint8"])
                node("top_k", (x,), types, dimension=1, k=count)
    for size, count in ((2048, 4), (1003, 1)):
        row = TensorType((size,), dtypes[0])
        types = TensorType((count,), dtypes[0]), TensorType((count,), NAMED["int32"])
        node("top_k", (builder.input(row),), types, dimension=0, k=count)
    return _program(f"ordered {dtypes[0].name}", builder, nodes, 11)


def transforms(dtypes: list[DType]) -> Program:
    """Fourier transforms of every kind, of one axis and of two: lengths of one iteration, of several kernels, and with
    a factor whose sum is a loop."""
    builder = Builder(np.random.default_rng(0))
    nodes = []
    for part in dtypes:
        whole, few = complex_of(part), part.name not in PROCESSOR
        kinds, several = ("FFT", "IRFFT") if few else ("FFT", "IFFT", "RFFT", "IRFFT"), ((1,), (6,), (3, 4), (34,))
        for kind, lengths in product(kinds, ((6,), (11,)) if few else several):
            half = (*lengths[:-1], lengths[-1] // 2 + 1)
            given = TensorType((2, *(half if kind == "IRFFT" else lengths)), part if kind == "RFFT" else whole)
            result = TensorType((2, *(half if kind == "RFFT" else lengths)), part if kind == "IRFFT" else whole)
            nodes.append(builder.add("fft", (builder.input(given),), result, fft_type=kind, fft_length=lengths))
    return _program(f"transforms {dtypes[0].name}", builder, nodes, 13)


def control() -> Program:
    """A branch, a scan and a loop that counts, over vectors."""
    type, count = TensorType((40,), NAMED["float32"]), TensorType((), NAMED["int32"])
    builder = Builder(np.random.default_rng(0))
    index, x, y = builder.input(count), builder.input(type), builder.input(type)

    def region(*ops: str) -> Body:
        inner = Builder(np.random.default_rng(0))
        a, b = inner.input(type), inner.input(type)
        for op in ops:
            a = inner.add(op, (a, b), type)
        return inner.body([a])

    def node(op: str, inputs: tuple[Ref, ...], types: tuple[TensorType, ...], regions: list[Body], **attrs: Any) -> Ref:
        builder.nodes.append(Node(len(builder.nodes), op, inputs, attrs, types, regions=tuple(regions)))
        return Ref(len(builder.nodes) - 1)

    chosen = node("case", (index, x, y), (type,), [region("add"), region("multiply", "maximum"), region("divide")])
    stepped = node("scan", (y, x), (type,), [region("subtract", "multiply")], length=5, num_consts=1, num_carry=1)
    one, limit = (builder.add("constant", (), count, value=Tensor.from_numpy(np.array(n, np.int32))) for n in (1, 4))
    start = builder.add("constant", (), count, value=Tensor.from_numpy(np.array(0, np.int32)))
    test, step = Builder(np.random.default_rng(0)), Builder(np.random.default_rng(0))
    counter, _ = test.input(count), test.input(type)
    known = test.add("constant", (), count, value=builder.nodes[limit.node].attrs["value"])
    condition = test.body([test.add("compare", (counter, known), TensorType((), BOOL), comparison_direction="LT")])
    counter, total = step.input(count), step.input(type)
    known = step.add("constant", (), count, value=builder.nodes[one.node].attrs["value"])
    after = step.add("add", (counter, known), count), step.add("multiply", (total, total), type)
    counted = node("while", (start, x), (count, type), [condition, step.body(after)])
    return _program("control", builder, [chosen, stepped, counted, Ref(counted.node, 1)], 3)


def factorizations(name: str, items: list[Item]) -> Program:
    """Factorizations and solvers of matrices."""
    body, inputs = matrices(TABLE[name], items, 5)
    return Program(f"functions of matrices of {name}", body, inputs)


def _result(op: str, operands: list[TensorType], attrs: dict[str, Any], dtype: DType) -> TensorType | None:
    """The type of the operation's result, if it takes these operands."""
    operation = OPERATIONS[op]
    if not operation.arity(len(operands)):
        return None
    try:
        (result,) = operation.rule(Call(tuple(operands), attrs, (TensorType(SHAPE, dtype),)))
    except Violation:
        return None
    return result
