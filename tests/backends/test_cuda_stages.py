"""Few long rows as several launches: valid kernels, and the reference's words."""

from __future__ import annotations

import numpy as np
import pytest
from cuda_forms import product, reduction, same_all
from lower_graphs import Builder

from tlir.backends.cuda import stages
from tlir.backends.cuda.stages import SEGMENTS, staged
from tlir.ir.graph import Body
from tlir.ir.ops import Accumulate
from tlir.ir.types import NAMED, TensorType
from tlir.kernel import cutting
from tlir.kernel.cutting import Stages
from tlir.kernel.ir import Launch
from tlir.kernel.verify import verify
from tlir.passes.lower import lower


def stages_of(body: Body) -> Stages:
    (step,) = lower(body).steps
    assert isinstance(step, Launch)
    return staged(step.kernel)


def sizes(body: Body) -> list[int]:
    """The extents of the arrays between the stages, which have to be valid kernels."""
    found = stages_of(body)
    for stage in found.stages:
        # whether a temporary array is filled by several stages is not seen in one of them
        assert {fault.rule for fault in verify(stage.kernel).faults} <= {"KV13"}
        buffers = [buffer for buffer in stage.kernel.buffers if buffer.role != "local"]
        assert len(stage.arguments) == len(buffers)
    return [size for _, size in found.temporaries]


BLOCKED, PAIRWISE = Accumulate(order="blocked", block=64), Accumulate(order="pairwise")


def test_what_is_cut() -> None:
    assert sizes(reduction("int32", (2, 100000), (1,))) == [2 * SEGMENTS]
    assert sizes(reduction("float32", (10**8,), (0,), "maximum")) == [SEGMENTS]
    assert sizes(reduction("float32", (10**8,), (0,), "add", BLOCKED)) == [1562500]
    assert sizes(reduction("float32", (3, 10**6), (1,), "add", PAIRWISE)) == [3 * -(-(10**6) // 256)]


@pytest.mark.parametrize(
    "body",
    [
        reduction("float32", (10**8,), (0,)),  # an order of all elements
        reduction("float32", (4096, 100000), (1,), "maximum"),  # enough rows
        reduction("int32", (100, 1000), (1,)),
        reduction("float32", (100, 1000), (1,), "add", PAIRWISE),
        reduction("float32", (0, 10**6), (1,), "maximum"),
    ],
)
def test_what_is_not_cut(body: Body) -> None:
    if any(isinstance(step, Launch) for step in lower(body).steps):
        assert sizes(body) == []


def scaled(reducer: str, count: int, order: Accumulate | None = None) -> Body:
    """The sum of differences from a value that is computed first, and a result made of it."""
    builder, of = Builder(np.random.default_rng(0)), NAMED["float32"]
    type, one = TensorType((count,), of), TensorType((), of)
    x, y = builder.input(type), builder.input(one)
    twice = builder.add("add", (y, y), one)
    wide = builder.add("broadcast_in_dim", (twice,), type, broadcast_dimensions=())
    attrs = {"reducer": reducer, "dimensions": (0,)} | ({} if order is None else {"accumulate": order})
    total = builder.add("reduce", (builder.add("subtract", (x, wide), type),), one, **attrs)
    return builder.body([builder.add("multiply", (total, twice), one)])


def test_words() -> None:
    bodies = [
        reduction("int32", (2, 70001), (1,)),
        reduction("uint8", (1 << 15,), (0,), "xor"),
        reduction("int64", (40000,), (0,), "multiply"),
        reduction("float32", (70001,), (0,), "maximum"),
        reduction("float16", (3, 33000), (1,), "minimum"),
        reduction("float32", (3, 20000), (1,), "add", BLOCKED),
        reduction("bfloat16", (17000,), (0,), "add", BLOCKED),
        reduction("float128", (17000,), (0,), "add", Accumulate(order="blocked", block=10)),
        reduction("float32", (66000,), (0,), "add", PAIRWISE),
        reduction("float64", (65536,), (0,), "multiply", PAIRWISE),
        scaled("maximum", 40000),
        scaled("add", 20000, BLOCKED),
        scaled("add", 66000, PAIRWISE),
        product(((5, 16400), (16400, 6)), accumulate=Accumulate(order="blocked", block=16, fma=True)),
    ]
    for body, made in zip(bodies, same_all(bodies), strict=True):
        assert len(made) == len(stages_of(body).stages) >= 2


def test_random_reductions_in_many_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every loop that can be cut is, however short."""
    for name, size in (("LONG", 4), ("SEGMENTS", 3)):
        monkeypatch.setattr(stages, name, size)
    monkeypatch.setattr(cutting, "LEAST_EXTENT", 2)
    bodies = []
    for seed in range(40):
        random = np.random.default_rng(seed)
        shape = tuple(int(size) for size in random.integers(1, (4, 40, 30)))
        axes = tuple(int(axis) for axis in random.permutation(3)[: 1 + seed % 3])
        order = (None, PAIRWISE, Accumulate(order="blocked", block=1 + seed % 8))[int(random.integers(3))]
        reducer = "add" if order else ("add", "maximum", "multiply", "minimum")[int(random.integers(4))]
        dtype = ("float32", "float64", "int32", "bfloat16", "uint8")[int(random.integers(5))]
        bodies.append(reduction(dtype, shape, axes, reducer, order))
    assert sum(len(sizes(body)) for body in bodies) > 10
    same_all(bodies)
