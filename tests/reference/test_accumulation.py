"""Orders of accumulation: loops over scalars of the accumulator's own type, and exact fractions."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import exact
import ml_dtypes
import numpy as np
import pytest
from conformance import evaluate, evaluate_with_flags, tensor, words_of
from hypothesis import given, settings
from hypothesis import strategies as st

from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import TensorType, parse_dtype

ORDERS = [
    Accumulate(),
    Accumulate(order="pairwise"),
    Accumulate(order="blocked", block=1),
    Accumulate(order="blocked", block=3),
    Accumulate(order="blocked", block=64),
]


def accumulated(step: Callable[[Any, Any], Any], identity: Any, terms: Sequence[Any], order: Accumulate) -> Any:
    """What the meaning of ``reduce`` says, one step after the other."""
    if order.order == "sequential":
        total = identity
        for term in terms:
            total = step(total, term)
        return total
    if order.order == "blocked":
        runs = [terms[k : k + order.block] for k in range(0, len(terms), order.block)]
        return accumulated(
            step, identity, [accumulated(step, identity, run, Accumulate()) for run in runs], Accumulate()
        )
    level = list(terms)
    while len(level) > 1:
        paired = [step(level[k], level[k + 1]) for k in range(0, len(level) - 1, 2)]
        level = paired + ([level[-1]] if len(level) % 2 else [])
    return step(identity, level[0]) if level else identity


def vector(name: str, words: Sequence[int], *shape: int) -> Tensor:
    return tensor(TensorType(shape or (len(words),), parse_dtype(name)), words)


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.order_text)
@pytest.mark.parametrize("reducer", ["add", "multiply"])
@pytest.mark.parametrize("name", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (7, 3), (130, 2), (33, 100)])
def test_reduce_in_numpy_scalars(order: Accumulate, reducer: str, name: str, shape: tuple[int, int]) -> None:
    """float32 and float64, and float16 through float32, step by step as NumPy's scalars."""
    rng = np.random.default_rng(3)
    spread = rng.integers(-6, 7, shape) if reducer == "add" else rng.integers(-1, 2, shape)
    values = (rng.standard_normal(shape) * 2.0**spread).astype(name)
    scalar = np.dtype(name).type

    def step(x: Any, y: Any) -> Any:
        return scalar(x + y) if reducer == "add" else scalar(x * y)

    identity = scalar(reducer == "multiply")
    expected = [accumulated(step, identity, list(column), order) for column in values.T]
    attrs = {"reducer": reducer, "dimensions": (0,), "accumulate": order}
    result = evaluate("reduce", [Tensor.from_numpy(values)], TensorType(shape[1:], parse_dtype(name)), attrs)
    assert result.words.tolist() == np.array(expected, name).view(result.words.dtype).tolist()


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.order_text)
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "bfloat16", "float16", "tfloat32", "float128"])
def test_reduce_in_fractions(order: Accumulate, name: str) -> None:
    """The formats that NumPy has no scalars of, or that are rounded twice on the way."""
    fmt = parse_dtype(name).float_format
    rng = random.Random(name)
    one = fmt.bias << fmt.fraction_bits
    sign = exact.masks(fmt)[0]
    columns = [
        [
            one + rng.randrange(-1 << fmt.fraction_bits, 2 << fmt.fraction_bits) | sign * rng.getrandbits(1)
            for _ in range(21)
        ]
        for _ in range(4)
    ]
    expected = [accumulated(lambda x, y: exact.add(fmt, x, y), 0, column, order) for column in columns]
    operand = vector(name, [word for column in columns for word in column], 4, 21)
    attrs = {"reducer": "add", "dimensions": (1,), "accumulate": order}
    result = TensorType((4,), parse_dtype(name))
    assert words_of(evaluate("reduce", [operand], result, attrs)) == expected
    with_flags, _ = evaluate_with_flags("reduce", [operand], result, attrs)
    assert words_of(with_flags) == expected


@pytest.mark.parametrize("length", [*range(20), 63, 64, 65, 100])
def test_pairwise_trees_of_every_length(length: int) -> None:
    """Sums of reals of very different sizes, so that every other tree would round otherwise."""
    rng = np.random.default_rng(length)
    values = (rng.standard_normal((length, 2)) * 2.0 ** rng.integers(0, 20, (length, 2))).astype(np.float32)
    order = Accumulate(order="pairwise")
    expected = [accumulated(lambda x, y: np.float32(x + y), np.float32(0), list(column), order) for column in values.T]
    attrs = {"reducer": "add", "dimensions": (0,), "accumulate": order}
    result = evaluate("reduce", [Tensor.from_numpy(values)], TensorType((2,), parse_dtype("float32")), attrs)
    assert result.to_numpy().tolist() == expected


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("operation", ["add", "multiply"])
def test_accumulate_of_numpy_is_sequential(name: str, operation: str) -> None:
    """What short cuts rely on: entry by entry, ``ufunc.accumulate`` is one rounded step after the other."""
    native = np.dtype(getattr(ml_dtypes, name, name))
    fmt = parse_dtype(name).float_format
    rng = np.random.default_rng(4)
    ufunc = getattr(np, operation)
    for shape in ((5000,), (301, 17)):
        values = rng.standard_normal(shape) * (2.0 ** rng.integers(-3, 4, shape) if operation == "add" else 1.3)
        values = values.astype(native)
        chain = ufunc.accumulate(values, axis=0, dtype=native)
        words, results = (array.view(f"uint{fmt.width}") for array in (values, chain))
        previous, current = results[:-1].reshape(-1), words[1:].reshape(-1)
        wanted = results[1:].reshape(-1)
        function = exact.add if operation == "add" else exact.multiply
        chosen = rng.permutation(wanted.size)[:1500]
        got = [function(fmt, int(previous[k]), int(current[k])) for k in chosen]
        assert got == [
            exact.encode(fmt, exact.decode(fmt, int(wanted[k])), int(wanted[k] >> (fmt.width - 1))) for k in chosen
        ]


def test_long_sums_cross_blocks_of_terms() -> None:
    """More terms than are made at a time: one output, several, and a whole row of them."""
    rng = np.random.default_rng(6)
    for shape in ((200_000,), (40_000, 3), (1_000, 300)):
        values = rng.standard_normal(shape).astype(np.float32)
        total = np.zeros(shape[1:], np.float32)
        for row in values:
            total = total + row
        attrs = {"reducer": "add", "dimensions": (0,)}
        result = evaluate("reduce", [Tensor.from_numpy(values)], TensorType(shape[1:], parse_dtype("float32")), attrs)
        assert np.array_equal(result.to_numpy(), total)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.data())
@settings(max_examples=60, deadline=None)
def test_reduced_axes_are_taken_row_major(shape: list[int], data: st.DataObject) -> None:
    """Axes in increasing order, whatever the order in which they are listed."""
    axes = tuple(data.draw(st.permutations(range(len(shape))))[: data.draw(st.integers(0, len(shape)))])
    rng = np.random.default_rng(7)
    values = (rng.standard_normal(shape) * 2.0 ** rng.integers(0, 20, shape)).astype(np.float32)
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    expected = []
    for index in itertools.product(*(range(shape[axis]) for axis in kept)):
        total = np.float32(0)
        for place in itertools.product(*(range(shape[axis]) for axis in sorted(axes))):
            position = dict(zip(kept, index, strict=True)) | dict(zip(sorted(axes), place, strict=True))
            total = np.float32(total + values[tuple(position[axis] for axis in range(len(shape)))])
        expected.append(total)
    result = evaluate(
        "reduce",
        [Tensor.from_numpy(values)],
        TensorType(tuple(shape[axis] for axis in kept), parse_dtype("float32")),
        {"reducer": "add", "dimensions": axes},
    )
    assert result.to_numpy().reshape(-1).tolist() == expected


@pytest.mark.parametrize("reducer", ["maximum", "minimum"])
@pytest.mark.parametrize("name", ["float16", "float8_e4m3fn", "float128"])
def test_extrema(reducer: str, name: str) -> None:
    fmt = parse_dtype(name).float_format
    rng = random.Random(reducer + name)
    rows = [[rng.getrandbits(fmt.width) for _ in range(9)] for _ in range(40)]
    rows += [[0, fmt.sign_mask] * 3, [fmt.sign_mask] * 6]
    rows = [row[:6] for row in rows]

    def key(word: int) -> Any:
        number = exact.decode(fmt, word)
        return ({"-0": 0, "inf": float("inf"), "-inf": float("-inf")}.get(number, number), -(number == "-0"))  # type: ignore[call-overload]

    choose = max if reducer == "maximum" else min
    expected = [
        exact.canonical_nan(fmt) if any(exact.decode(fmt, word) == "nan" for word in row) else choose(row, key=key)
        for row in rows
    ]
    operand = vector(name, [word for row in rows for word in row], len(rows), 6)
    attrs = {"reducer": reducer, "dimensions": (1,)}
    assert words_of(evaluate("reduce", [operand], TensorType((len(rows),), parse_dtype(name)), attrs)) == expected


@pytest.mark.parametrize(
    ("name", "flip"), [("float16", False), ("float128", False), ("int4", True), ("uint64", False), ("bool", False)]
)
def test_arguments(name: str, flip: bool) -> None:
    """argmax and argmin with many ties, zeros of both signs and NaN, against a search from the front."""
    dtype = parse_dtype(name)
    rng = random.Random(name)
    if dtype.is_float:
        fmt = dtype.float_format
        one, nan = fmt.bias << fmt.fraction_bits, exact.canonical_nan(fmt)
        pool = [0, fmt.sign_mask, one, one | fmt.sign_mask, one + 1, fmt.inf, fmt.inf | fmt.sign_mask]
        pool = pool * 4 + [nan, nan + 1]
    else:
        pool = [rng.getrandbits(dtype.bits) for _ in range(5)]
    rows = [[rng.choice(pool) for _ in range(length)] for length in (5,) * 200]

    def key(word: int) -> Any:
        if dtype.is_float:
            number = exact.decode(dtype.float_format, word)
            return {"-0": 0, "inf": float("inf"), "-inf": float("-inf")}.get(number, number)  # type: ignore[call-overload]
        return word - (1 << dtype.bits) if flip and word >> (dtype.bits - 1) else word

    def first(row: list[int], choose: Any) -> int:
        values = [key(word) for word in row]
        return values.index("nan") if "nan" in values else values.index(choose(values))

    operand = vector(name, [word for row in rows for word in row], len(rows), 5)
    for op, choose in (("argmax", max), ("argmin", min)):
        result = evaluate(op, [operand], TensorType((len(rows),), parse_dtype("int64")), {"dimension": 1})
        assert words_of(result) == [first(row, choose) for row in rows]


# ---- contractions ---------------------------------------------------------------------------------------------------


def dot_attrs(order: Accumulate | None, batch: Any = ((), ()), contract: Any = ((1,), (0,))) -> dict[str, Any]:
    attrs: dict[str, Any] = {
        "lhs_batching_dimensions": batch[0],
        "rhs_batching_dimensions": batch[1],
        "lhs_contracting_dimensions": contract[0],
        "rhs_contracting_dimensions": contract[1],
    }
    return attrs | ({"accumulate": order} if order else {})


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.order_text)
@pytest.mark.parametrize("name", ["float32", "float64", "float16", "complex64"])
@pytest.mark.parametrize(("m", "k", "n"), [(2, 0, 3), (1, 9, 1), (3, 70, 4), (20, 5, 30)])
def test_dot_in_numpy_scalars(order: Accumulate, name: str, m: int, k: int, n: int) -> None:
    rng = np.random.default_rng(8)
    if name == "complex64":
        lhs, rhs = ((rng.standard_normal(s) + 1j * rng.standard_normal(s)).astype(name) for s in ((m, k), (k, n)))
    else:
        lhs, rhs = (rng.standard_normal(s).astype(name) for s in ((m, k), (k, n)))
    scalar = np.dtype(name).type

    def product(x: Any, y: Any) -> Any:
        if name != "complex64":
            return scalar(x * y)
        a, b, c, d = (np.float32(part) for part in (x.real, x.imag, y.real, y.imag))
        return scalar(complex(a * c - b * d, a * d + b * c))

    expected = [
        accumulated(lambda x, y: scalar(x + y), scalar(0), [product(lhs[i, p], rhs[p, j]) for p in range(k)], order)
        for i in range(m)
        for j in range(n)
    ]
    type = TensorType((m, n), parse_dtype(name))
    result = evaluate("dot_general", [Tensor.from_numpy(lhs), Tensor.from_numpy(rhs)], type, dot_attrs(order))
    words = np.array(expected, name).reshape(m, n)
    assert np.array_equal(result.to_numpy(), words)


@pytest.mark.parametrize(
    "order", [Accumulate(fma=True), Accumulate(fma=True, order="blocked", block=4)], ids=lambda o: o.order_text
)
@pytest.mark.parametrize("name", ["float8_e5m2", "float16", "bfloat16", "float32", "float64", "float128"])
def test_fused_dot_in_fractions(order: Accumulate, name: str) -> None:
    """Products and sums rounded once; among them sums that nearly cancel."""
    fmt = parse_dtype(name).float_format
    rng = random.Random(name)
    one, sign = fmt.bias << fmt.fraction_bits, exact.masks(fmt)[0]
    rows, k = 12, 11
    lhs = [
        [one + rng.randrange(2 << fmt.fraction_bits) | sign * rng.getrandbits(1) for _ in range(k)] for _ in range(rows)
    ]
    rhs = [one + rng.randrange(1 << fmt.fraction_bits) for _ in range(k)]
    for row in lhs[::2]:
        row[1] = row[0] ^ sign
    expected = []
    for row in lhs:
        runs = [range(s, min(s + (order.block or k), k)) for s in range(0, k, order.block or k)]
        totals = []
        for run in runs:
            total = 0
            for p in run:
                total = exact.fma(fmt, row[p], rhs[p], total)
            totals.append(total)
        total = totals[0]
        if order.order == "blocked":
            total = 0
            for part in totals:
                total = exact.add(fmt, total, part)
        expected.append(total)
    operands = [vector(name, [word for row in lhs for word in row], rows, k), vector(name, rhs)]
    type = TensorType((rows,), parse_dtype(name))
    assert words_of(evaluate("dot_general", operands, type, dot_attrs(order))) == expected
    flagged, _ = evaluate_with_flags("dot_general", operands, type, dot_attrs(order))
    assert words_of(flagged) == expected


def test_accumulators_of_another_dtype() -> None:
    """float16 elements, products and sums in float32, the total rounded to bfloat16."""
    rng = np.random.default_rng(9)
    lhs, rhs = rng.standard_normal((4, 40)).astype(np.float16), rng.standard_normal((40, 5)).astype(np.float16)
    total = np.zeros((4, 5), np.float32)
    for p in range(40):
        total = total + lhs[:, p : p + 1].astype(np.float32) * rhs[p].astype(np.float32)
    attrs = dot_attrs(Accumulate(parse_dtype("float32")))
    type = TensorType((4, 5), parse_dtype("bfloat16"))
    result = evaluate("dot_general", [Tensor.from_numpy(lhs), Tensor.from_numpy(rhs)], type, attrs)
    assert np.array_equal(result.words, total.astype(ml_dtypes.bfloat16).view(np.uint16))


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_axes_of_a_contraction(data: st.DataObject) -> None:
    """Batching, contracting and free axes in any places and orders, against loops; int32 sums show every element."""
    batch, contract, left, right = (data.draw(st.lists(st.integers(0, 3), max_size=2)) for _ in range(4))

    def side(free: list[int]) -> tuple[list[int], tuple[int, ...], tuple[int, ...], list[int]]:
        sizes = [*batch, *contract, *free]
        places = data.draw(st.permutations(range(len(sizes))))
        shape = [0] * len(sizes)
        for size, place in zip(sizes, places, strict=True):
            shape[place] = size
        b, c = len(batch), len(batch) + len(contract)
        # the free axes count in the order in which they stand
        return shape, tuple(places[:b]), tuple(places[b:c]), sorted(places[c:])

    lhs_shape, lhs_batch, lhs_contract, lhs_free = side(left)
    rhs_shape, rhs_batch, rhs_contract, rhs_free = side(right)
    rng = np.random.default_rng(10)
    lhs, rhs = rng.integers(-99, 99, lhs_shape, dtype=np.int32), rng.integers(-99, 99, rhs_shape, dtype=np.int32)
    shape = (*batch, *(lhs_shape[axis] for axis in lhs_free), *(rhs_shape[axis] for axis in rhs_free))
    expected = []
    for index in itertools.product(*map(range, shape)):
        b, rest = index[: len(batch)], index[len(batch) :]
        i, j = rest[: len(lhs_free)], rest[len(lhs_free) :]
        total = 0
        for p in itertools.product(*map(range, contract)):
            x = dict(zip((*lhs_batch, *lhs_contract, *lhs_free), (*b, *p, *i), strict=True))
            y = dict(zip((*rhs_batch, *rhs_contract, *rhs_free), (*b, *p, *j), strict=True))
            total += int(lhs[tuple(x[d] for d in range(lhs.ndim))]) * int(rhs[tuple(y[d] for d in range(rhs.ndim))])
        expected.append(total)
    attrs = dot_attrs(None, (lhs_batch, rhs_batch), (lhs_contract, rhs_contract))
    operands = [Tensor.from_numpy(np.asarray(lhs)), Tensor.from_numpy(np.asarray(rhs))]
    result = evaluate("dot_general", operands, TensorType(shape, parse_dtype("int32")), attrs)
    assert result.to_numpy().reshape(-1).tolist() == expected


def test_contracting_axes_are_taken_as_listed() -> None:
    """Row-major over (axis 2, axis 0), which rounds otherwise than (axis 0, axis 2)."""
    rng = np.random.default_rng(11)
    lhs = (rng.standard_normal((5, 2, 7)) * 2.0 ** rng.integers(0, 20, (5, 2, 7))).astype(np.float32)
    rhs = rng.standard_normal((7, 5)).astype(np.float32)
    expected = np.zeros(2, np.float32)
    for p, q in itertools.product(range(7), range(5)):
        expected = expected + lhs[q, :, p] * rhs[p, q]
    attrs = dot_attrs(None, contract=((2, 0), (0, 1)))
    type = TensorType((2,), parse_dtype("float32"))
    result = evaluate("dot_general", [Tensor.from_numpy(lhs), Tensor.from_numpy(rhs)], type, attrs)
    assert np.array_equal(result.to_numpy(), expected)


def test_nothing_to_compute_takes_no_time() -> None:
    """A reduced axis of 2^39 elements beside an axis of none: no output, and no loop over the axis."""
    huge = tensor(TensorType((1 << 39, 0), parse_dtype("float32")), [])
    for order in (None, Accumulate(order="pairwise"), Accumulate(order="blocked", block=2)):
        attrs = {"reducer": "add", "dimensions": (0,)} | ({"accumulate": order} if order else {})
        assert evaluate("reduce", [huge], TensorType((0,), huge.dtype), attrs).shape == (0,)
        type = TensorType((0, 0), huge.dtype)
        assert evaluate("dot_general", [huge, huge], type, dot_attrs(order, contract=((0,), (0,)))).shape == (0, 0)
    assert evaluate(
        "reduce", [huge], TensorType((0,), huge.dtype), {"reducer": "maximum", "dimensions": (0,)}
    ).shape == (0,)
    assert evaluate("argmax", [huge], TensorType((0,), parse_dtype("int32")), {"dimension": 0}).shape == (0,)
    assert evaluate("iota", [], huge.type, {"iota_dimension": 0}).shape == huge.shape
