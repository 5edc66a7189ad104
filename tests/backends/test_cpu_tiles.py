"""Sums of products by tiles: stretches, blocks and units of every size, every layout of the factors, on any number of
threads, always with the reference's words."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lower_graphs import Builder, random_tensor

from tlir.backends.cpu import device, tile
from tlir.backends.cpu.phases import Shape, phases, pieces_of
from tlir.backends.reference import evaluate
from tlir.floatlib.soft import objects
from tlir.ir.graph import Body
from tlir.ir.ops import Accumulate
from tlir.ir.types import NAMED, TensorType
from tlir.kernel.ir import Launch
from tlir.kernel.patterns import as_contraction
from tlir.passes.lower import lower

SMALL = {"TERMS_BYTES": 128, "UNIT_BYTES": 1 << 12, "SHARED_BYTES": 1 << 13, "RESULT_BYTES": 1 << 14, "UNITS": 2}
"""Sizes with which small products have several stretches, blocks and groups of units."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that is compiled with these sizes is kept for one test alone: its name does not say them."""
    for name, value in SMALL.items():
        monkeypatch.setattr(tile, name, value)
    code: dict[str, bytes] = {}
    monkeypatch.setattr(objects, "kept", code.get)
    monkeypatch.setattr(objects, "keep", code.__setitem__)


def check(body: Body, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference's words on one thread, and on two and three even where that does not pay."""
    launches = [step for step in lower(body).steps if isinstance(step, Launch)]
    contractions = [as_contraction(launch.kernel) for launch in launches]
    assert any(c is not None and tile.suits(c) for c in contractions)
    random = np.random.default_rng(1)
    inputs = [random_tensor(random, type) for type in body.input_types]
    expected = evaluate(body, inputs)
    for split_from, count in ((1 << 60, "1"), (0, "2"), (0, "3")):
        monkeypatch.setattr(device, "SPLIT_FROM", split_from)
        monkeypatch.setenv("TLIR_THREADS", count)
        executable = device.Executable(body)
        for _ in range(2):  # the first run is not like the others
            for a, b in zip(expected, executable.run(inputs), strict=True):
                assert a.same_words(b)


def product(
    left: tuple[int, ...],
    right: tuple[int, ...],
    terms: tuple[int, int],
    batch: int,
    accumulate: Accumulate,
    dtype: str,
) -> Body:
    """A dot_general with one contracted axis and ``batch`` leading batch axes, with a maximum behind it."""
    d = NAMED[dtype]
    builder = Builder(np.random.default_rng(0))
    x, y = builder.input(TensorType(left, d)), builder.input(TensorType(right, d))
    rows = tuple(n for k, n in enumerate(left) if k >= batch and k != terms[0])
    columns = tuple(n for k, n in enumerate(right) if k >= batch and k != terms[1])
    type = TensorType((*left[:batch], *rows, *columns), d)
    result = builder.add(
        "dot_general",
        (x, y),
        type,
        lhs_contracting_dimensions=(terms[0],),
        rhs_contracting_dimensions=(terms[1],),
        lhs_batching_dimensions=tuple(range(batch)),
        rhs_batching_dimensions=tuple(range(batch)),
        accumulate=accumulate,
    )
    return builder.body([builder.add("maximum", (result, builder.input(type)), type)])


ORDERS = [
    (Accumulate(), "float32"),
    (Accumulate(fma=True), "float64"),
    (Accumulate(order="blocked", block=8), "float64"),
    (Accumulate(order="blocked", block=23, fma=True), "float32"),
]


@pytest.mark.parametrize(("accumulate", "dtype"), ORDERS, ids=str)
@pytest.mark.parametrize(
    ("left", "right", "terms", "batch"),
    [
        ((40, 75), (75, 100), (1, 0), 0),
        ((75, 40), (100, 75), (0, 1), 0),
        ((131, 32), (32, 10), (1, 0), 0),
        ((13, 70), (70, 170), (1, 0), 0),
        ((3, 30, 17), (3, 40, 17), (2, 2), 1),
        ((2, 5, 31, 20), (2, 5, 20, 24), (3, 2), 2),
        ((6, 5, 37), (37, 4, 9), (2, 0), 0),
    ],
)
def test_layouts_and_orders(
    left: tuple[int, ...],
    right: tuple[int, ...],
    terms: tuple[int, int],
    batch: int,
    accumulate: Accumulate,
    dtype: str,
    small: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check(product(left, right, terms, batch, accumulate, dtype), monkeypatch)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_converted_factors(dtype: str, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for left, right, terms in (((40, 75), (75, 36), (1, 0)), ((75, 29), (50, 75), (0, 1))):
        check(product(left, right, terms, 0, Accumulate(NAMED["float32"]), dtype), monkeypatch)


@pytest.mark.parametrize(("channels", "strides"), [((5, 24), (1, 1)), ((32, 7), (2, 1))])
def test_windows(
    channels: tuple[int, int], strides: tuple[int, int], small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A convolution with padding: rows are channels, columns places of three images, terms places in a window."""
    d, (into, out) = NAMED["float32"], channels
    builder = Builder(np.random.default_rng(0))
    x, w = builder.input(TensorType((3, into, 11, 16), d)), builder.input(TensorType((out, into, 3, 3), d))
    height = (11 - 1) // strides[0] + 1
    body = builder.body(
        [
            builder.add(
                "convolution",
                (x, w),
                TensorType((3, out, height, 16), d),
                window_strides=strides,
                padding_low=(1, 1),
                padding_high=(1, 1),
                lhs_dilation=(1, 1),
                rhs_dilation=(1, 1),
                window_reversal=(0, 0),
                feature_group_count=1,
                lhs_dimensions=(0, 1, 2, 3),
                rhs_dimensions=(0, 1, 2, 3),
                output_dimensions=(0, 1, 2, 3),
            )
        ]
    )
    check(body, monkeypatch)


@given(
    st.integers(1, 3),
    st.integers(1, 40),
    st.integers(1, 9),
    st.integers(1, 40),
    st.integers(1, 9),
    st.lists(st.integers(1, 3), min_size=1, max_size=3),
    st.integers(1, 8),
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_phases_have_every_part_once(
    batches: int, extent: int, block: int, units: int, units_block: int, steps: list[int], pieces: int, packs: bool
) -> None:
    """For every batch, block, group and stretch all panels are packed if any are, and then all units multiplied, once;
    and the stretches of a place come in their order."""
    shape = Shape(batches, extent, min(block, extent), units, min(units_block, units), tuple(steps), 0, 0, packs)
    blocks, groups = -(-extent // shape.block), -(-units // shape.units_block)
    packed, multiplied, order = Counter[Any](), Counter[Any](), []
    for phase in phases(shape, pieces):
        assert len({(code, where) for code, where, _, _ in phase}) == 1
        code, where, _, _ = phase[0]
        place, step = divmod(where, steps[code // 2])
        order.append((place, code // 2, step, code % 2))
        for _, _, begin, end in phase:
            assert begin < end
            (multiplied if code % 2 else packed).update((place, code // 2, step, k) for k in range(begin, end))
    assert order == sorted(order)
    assert set(packed.values()) == ({1} if packs else set())
    assert set(multiplied.values()) == {1}
    expected_packed = expected_multiplied = 0
    for place in range(batches * blocks * groups):
        this, group = place // groups % blocks, place % groups
        expected_packed += sum(steps) * (min(shape.block * (this + 1), extent) - shape.block * this)
        expected_multiplied += sum(steps) * (min(shape.units_block * (group + 1), units) - shape.units_block * group)
    assert (len(packed), len(multiplied)) == (expected_packed if packs else 0, expected_multiplied)


@given(st.integers(0, 50), st.integers(1, 200), st.integers(1, 20), st.integers(1, 16))
def test_pieces_are_the_range_and_hold_whole_units(first: int, length: int, pieces: int, unit: int) -> None:
    made = pieces_of(first, first + length, pieces, unit)
    assert made[0][0] == first
    assert made[-1][1] == first + length
    assert all(a[1] == b[0] for a, b in pairwise(made))
    assert len(made) <= pieces
    assert all(end - begin >= min(unit, length) and (begin - first) % unit == 0 for begin, end in made)
