"""Operations that move words, against loops over indices: random ranks and sizes, axes of size 0 and 1 among them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from conformance import evaluate, tensor, words_of
from hypothesis import given, settings
from hypothesis import strategies as st

from tlir.ir.tensor import Tensor
from tlir.ir.types import TensorType, parse_dtype

Index = tuple[int, ...]
Element = tuple[int, ...]

# the words of an element: one, two of a complex number; of 8, of 64, of 128 bits
DTYPES = ("uint8", "int4", "float64", "complex64", "float128", "complex<float128>", "bool")

shapes = st.lists(st.integers(0, 4), max_size=5).map(tuple)
dtypes = st.sampled_from(DTYPES)


def indices(shape: Sequence[int]) -> Iterator[Index]:
    return itertools.product(*map(range, shape))


def numbered(dtype: str, shape: Sequence[int]) -> Tensor:
    """A tensor whose words all differ, as far as the dtype has so many."""
    type = TensorType(tuple(shape), parse_dtype(dtype))
    count = type.size * type.dtype.components
    step = 1 if type.dtype.bits <= 8 else (1 << (type.dtype.bits - 9)) + 1
    return tensor(type, [(k * step) % (1 << type.dtype.bits) for k in range(count)])


def elements(given_tensor: Tensor) -> dict[Index, Element]:
    words, per = words_of(given_tensor), given_tensor.dtype.components
    grouped = [tuple(words[k : k + per]) for k in range(0, len(words), per)]
    return dict(zip(indices(given_tensor.shape), grouped, strict=True))


def moved(shape: Sequence[int], source: Callable[[Index], Element]) -> list[int]:
    return [word for index in indices(shape) for word in source(index)]


def check(
    op: str, operands: list[Tensor], shape: Sequence[int], attrs: Any, source: Callable[[Index], Element]
) -> None:
    result = evaluate(op, operands, TensorType(tuple(shape), operands[0].dtype), attrs)
    assert words_of(result) == moved(shape, source)


@given(dtypes, st.data())
@settings(max_examples=80, deadline=None)
def test_broadcast_in_dim(dtype: str, data: st.DataObject) -> None:
    shape = data.draw(shapes)
    axes = tuple(data.draw(st.permutations(range(len(shape))))[: data.draw(st.integers(0, len(shape)))])
    operand_shape = [data.draw(st.sampled_from([1, shape[axis]])) for axis in axes]
    operand = numbered(dtype, operand_shape)
    values = elements(operand)

    def source(index: Index) -> Element:
        return values[tuple(0 if size == 1 else index[axis] for size, axis in zip(operand_shape, axes, strict=True))]

    check("broadcast_in_dim", [operand], shape, {"broadcast_dimensions": axes}, source)


@given(dtypes, shapes, st.data())
@settings(max_examples=60, deadline=None)
def test_transpose(dtype: str, shape: Index, data: st.DataObject) -> None:
    permutation = tuple(data.draw(st.permutations(range(len(shape)))))
    operand = numbered(dtype, shape)
    values = elements(operand)

    def source(index: Index) -> Element:
        place = dict(zip(permutation, index, strict=True))
        return values[tuple(place[axis] for axis in range(len(shape)))]

    check("transpose", [operand], [shape[axis] for axis in permutation], {"permutation": permutation}, source)


@given(dtypes, shapes, st.data())
@settings(max_examples=60, deadline=None)
def test_reverse(dtype: str, shape: Index, data: st.DataObject) -> None:
    axes = tuple(axis for axis in range(len(shape)) if data.draw(st.booleans()))
    operand = numbered(dtype, shape)
    values = elements(operand)

    def source(index: Index) -> Element:
        return values[tuple(shape[d] - 1 - k if d in axes else k for d, k in enumerate(index))]

    check("reverse", [operand], shape, {"dimensions": axes}, source)


@given(dtypes, shapes, st.data())
@settings(max_examples=60, deadline=None)
def test_slice(dtype: str, shape: Index, data: st.DataObject) -> None:
    limits = tuple(data.draw(st.integers(0, size)) for size in shape)
    starts = tuple(data.draw(st.integers(0, limit)) for limit in limits)
    strides = tuple(data.draw(st.integers(1, 5)) for _ in shape)
    operand = numbered(dtype, shape)
    values = elements(operand)
    picked = [range(a, b, step) for a, b, step in zip(starts, limits, strides, strict=True)]
    attrs = {"start_indices": starts, "limit_indices": limits, "strides": strides}

    def source(index: Index) -> Element:
        return values[tuple(places[k] for places, k in zip(picked, index, strict=True))]

    check("slice", [operand], [len(places) for places in picked], attrs, source)


@given(dtypes, st.lists(st.integers(0, 3), max_size=3), st.data())
@settings(max_examples=120, deadline=None)
def test_pad(dtype: str, shape: list[int], data: st.DataObject) -> None:
    interior = tuple(data.draw(st.integers(0, 3)) for _ in shape)
    spread = [size + max(size - 1, 0) * inner for size, inner in zip(shape, interior, strict=True)]
    low = tuple(data.draw(st.integers(-3, 3)) for _ in shape)
    # a size of the result that is not negative
    high = tuple(data.draw(st.integers(max(-4, -(size + a)), 3 + abs(a))) for size, a in zip(spread, low, strict=True))
    operand, value = numbered(dtype, shape), numbered(dtype, (1, 2))
    scalar = Tensor(TensorType((), value.dtype), value.words[0, 1])
    values, (padding,) = elements(operand), elements(scalar).values()
    attrs = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": interior}

    def source(index: Index) -> Element:
        place = []
        for k, before, inner, size in zip(index, low, interior, shape, strict=True):
            position, rest = divmod(k - before, inner + 1)
            if rest or not 0 <= position < size:
                return padding
            place.append(position)
        return values[tuple(place)]

    padded = [size + a + b for size, a, b in zip(spread, low, high, strict=True)]
    check("pad", [operand, scalar], padded, attrs, source)


@given(dtypes, st.lists(st.integers(0, 3), min_size=1, max_size=4), st.data())
@settings(max_examples=60, deadline=None)
def test_concatenate(dtype: str, shape: list[int], data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    sizes = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    operands = [numbered(dtype, [*shape[:axis], size, *shape[axis + 1 :]]) for size in sizes]
    # each element with the number of its operand and its place along the axis there
    places = [(number, k) for number, size in enumerate(sizes) for k in range(size)]

    def source(index: Index) -> Element:
        number, k = places[index[axis]]
        return elements(operands[number])[(*index[:axis], k, *index[axis + 1 :])]

    check("concatenate", operands, [*shape[:axis], sum(sizes), *shape[axis + 1 :]], {"dimension": axis}, source)


@given(dtypes, st.permutations([2, 3, 1, 4]), st.sampled_from([(24,), (4, 6), (1, 2, 1, 12), (3, 8, 1), (2, 2, 2, 3)]))
@settings(max_examples=20, deadline=None)
def test_reshape(dtype: str, before: list[int], after: Index) -> None:
    operand = numbered(dtype, before)
    in_order = list(elements(operand).values())
    order = dict(zip(indices(after), in_order, strict=True))
    check("reshape", [operand], after, {}, lambda index: order[index])


@given(dtypes, shapes, st.data())
@settings(max_examples=40, deadline=None)
def test_select(dtype: str, shape: Index, data: st.DataObject) -> None:
    on_true, both = numbered(dtype, shape), numbered(dtype, (2, *shape))
    on_false = Tensor(on_true.type, both.words[1])
    pred = tensor(TensorType(shape, parse_dtype("bool")), [data.draw(st.integers(0, 1)) for _ in indices(shape)])
    values = elements(on_true), elements(on_false)
    chosen = elements(pred)
    result = evaluate("select", [pred, on_true, on_false], on_true.type)
    assert words_of(result) == moved(shape, lambda index: values[0 if chosen[index] == (1,) else 1][index])


@pytest.mark.parametrize("dtype", ["int2", "uint8", "int64", "float16", "float32", "bfloat16", "float128", "complex64"])
@given(shapes.filter(len), st.data())
@settings(max_examples=15, deadline=None)
def test_iota_counts_along_one_axis(dtype: str, shape: Index, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    type = TensorType(shape, parse_dtype(dtype))
    result = evaluate("iota", [], type, {"iota_dimension": axis})
    small = {"float16": 0x3C00, "bfloat16": 0x3F80, "float32": 0x3F800000, "float128": 0x3FFF << 112}
    fields = {"float16": 10, "bfloat16": 7, "float32": 23, "float128": 112}
    component = {"complex64": "float32"}.get(dtype, dtype)

    def word(k: int) -> int:
        if component not in small:
            return k % (1 << type.dtype.bits)
        fraction, one = fields[component], small[component]
        # 0, 1, 2, 3 as 1, 2 * 1, 2 * 1.5
        return [0, one, one + (1 << fraction), one + (1 << fraction) + (1 << (fraction - 1))][k]

    expected = [(word(index[axis]), 0)[: type.dtype.components] for index in indices(shape)]
    assert list(elements(result).values()) == expected


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("uint8", "int4"),
        ("int8", "int2"),
        ("uint4", "uint2"),
        ("uint32", "uint8"),
        ("float32", "int16"),
        ("float64", "float4_e2m1fn"),
        ("float128", "float32"),
        ("float256", "float128"),
        ("float6_e2m3fn", "int2"),
        ("float16", "float8_e5m2"),
    ],
)
@given(shapes)
@settings(max_examples=10, deadline=None)
def test_bitcast_to_parts_and_back(wide: str, narrow: str, shape: Index) -> None:
    operand = numbered(wide, shape)
    bits = parse_dtype(narrow).bits
    parts = parse_dtype(wide).bits // bits
    split = TensorType((*shape, parts), parse_dtype(narrow))
    result = evaluate("bitcast_convert", [operand], split)
    assert words_of(result) == [(word >> (bits * k)) % (1 << bits) for word in words_of(operand) for k in range(parts)]
    assert evaluate("bitcast_convert", [result], operand.type).same_words(operand)
