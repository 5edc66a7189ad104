"""Enclosures of narrow formats in float32: what an execution may keep or round lies inside, and little else does."""

from __future__ import annotations

import bounds_graphs
import ml_dtypes
import numpy as np
import pytest

from tlir.compare.bounds import POLICIES, Enclosure, enclose, resolve, single
from tlir.compare.bounds import intervals as iv
from tlir.compare.bounds.enclosure import Narrow
from tlir.compare.executions import execute
from tlir.floatlib.format import FORMATS
from tlir.ir.graph import Node
from tlir.ir.tensor import Tensor

TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float8_e5m2": ml_dtypes.float8_e5m2}


def numbers(name: str, rng: np.random.Generator) -> np.ndarray:
    """Numbers of float32: any, those of the format, and those in the middle of two of its numbers, and their
    neighbours."""
    fmt = FORMATS[name]
    top = min(2.0**90, iv.limits(fmt).top / 2)
    low = max(-90, fmt.emin - 4)
    size = np.ldexp(rng.uniform(1, 2, 4000), rng.integers(low, int(np.log2(top)), 4000))
    own = np.abs(size.astype(TYPES[name]).astype(np.float64))
    middle = own + iv.ulp(fmt, own) / 2
    found = np.concatenate([size, own, middle, [0.0]]).astype(np.float32)
    found = np.concatenate([found, np.nextafter(found, np.float32(np.inf)), np.nextafter(found, np.float32(0))])
    found = found[(found == 0) | (found >= 2.0**-100)]
    return np.asarray(np.concatenate([found, -found]))


@pytest.mark.parametrize("name", sorted(TYPES))
def test_ends_are_outside_of_every_rounding_of_what_they_stand_for(name: str) -> None:
    fmt, rng = FORMATS[name], np.random.default_rng(len(name))
    s = numbers(name, rng)
    unit = iv.ulp(FORMATS["float32"], s.astype(np.float64)) * (s != 0)
    low = single.outward(fmt, s, np.abs(s), True, 0.0).astype(np.float64)
    high = single.outward(fmt, s, np.abs(s), False, 0.0).astype(np.float64)
    for part in (-0.25, -0.249, 0.0, 0.25, 0.5, -0.5):
        exact = s + part * unit
        exact = np.where(exact.astype(np.float32) == s, exact, s)  # an exact result that is rounded to s
        kept = exact.astype(np.float32).astype(np.float64)
        for result in (exact, kept, iv.nearest(fmt, exact), iv.nearest(fmt, kept)):
            assert (low <= result).all()
            assert (result <= high).all()
    # little further than what a number three units away is rounded to
    slack = 3 * unit + iv.limits(fmt).step / 2
    least, most = s - slack, s + slack
    assert (low >= np.minimum(least, least.astype(TYPES[name]).astype(np.float64))).all()
    assert (high <= np.maximum(most, most.astype(TYPES[name]).astype(np.float64))).all()


@pytest.mark.parametrize("name", sorted(TYPES))
def test_rounding_in_float32_is_to_nearest_even(name: str) -> None:
    found = numbers(name, np.random.default_rng(7))
    found = np.concatenate([found, np.float32([2.0**-149, -(2.0**-140), 2.0**-126])])
    rounded = iv.nearest_single(FORMATS[name], found)
    assert rounded is not None
    assert np.array_equal(rounded, found.astype(TYPES[name]).astype(np.float32))
    assert iv.nearest_single(FORMATS[name], np.float32([np.inf])) is None
    assert iv.nearest_single(FORMATS[name], np.float32([np.nan])) is None


@pytest.mark.parametrize("seed", range(80))
def test_executions_stay_inside(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single, "MANY", 0)
    monkeypatch.setattr(bounds_graphs, "FORMATS", ("float16", "bfloat16"))
    rng = np.random.default_rng(seed)
    graph, inputs = bounds_graphs.random_graph(rng, int(rng.integers(2, 12)))
    freedoms = resolve(str(rng.choice(["frontend", "loose", *POLICIES])), graph.producer)
    kept: dict[int, tuple[Enclosure, ...]] = {}
    enclose(graph.body, inputs, freedoms, lambda node, made: kept.__setitem__(node.id, made))

    def check(node: Node, tensors: tuple[Tensor, ...]) -> None:
        for tensor, enclosure in zip(tensors, kept[node.id], strict=True):
            assert enclosure.contains(tensor).all(), str(node)

    for number in range(6):
        execute(graph.body, inputs, freedoms, np.random.default_rng((seed, number)), check)


def test_arithmetic_of_many_elements_goes_this_way() -> None:
    build = bounds_graphs.Builder()
    type = bounds_graphs.TensorType((64, 128), bounds_graphs.NAMED["bfloat16"])
    x, y = build.input(type), build.input(type)
    for op in ("add", "multiply", "divide", "subtract"):
        x = build.like(op, x, y)
    graph = build.graph(x)
    rng = np.random.default_rng(0)
    given = [Tensor.from_numpy(rng.uniform(1, 2, (64, 128)).astype(ml_dtypes.bfloat16)) for _ in range(2)]
    kept: dict[int, Enclosure] = {}
    enclose(graph.body, given, resolve("frontend"), lambda node, made: kept.__setitem__(node.id, made[0]))
    assert [isinstance(kept[node.id], Narrow) for node in graph.nodes] == [False, False, True, True, True, True]
