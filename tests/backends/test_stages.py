"""Kernels of few iterations in stages: ordered sums, extrema and integer sums of vectors and of a few rows give the
reference's words, whatever meets at the ends of blocks, runs and lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import numpy as np
import pytest
from lower_graphs import Builder, random_tensor

from tlir.backends.cpu import stages
from tlir.backends.cpu.compiled import Compiled, CompiledStages, compile_kernel
from tlir.backends.cpu.device import Executable
from tlir.backends.reference import evaluate
from tlir.floatlib.soft import objects
from tlir.ir.graph import Body, Ref
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType
from tlir.kernel import cutting
from tlir.kernel.ir import Launch, Loop
from tlir.kernel.verify import verify
from tlir.passes.lower import lower

SEQUENTIAL, PAIRWISE = Accumulate(), Accumulate(order="pairwise")


def blocked(block: int, dtype: str | None = None) -> Accumulate:
    return Accumulate(None if dtype is None else NAMED[dtype], order="blocked", block=block)


def every(main: Callable[..., bool], *sides: Iterable[Any]) -> list[Any]:
    """All combinations as parameters, those that are not among the main ones for exhaustive runs."""
    other = pytest.mark.exhaustive
    return [pytest.param(*case, marks=() if main(*case) else other) for case in product(*sides)]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stages for small kernels too."""
    monkeypatch.setattr(stages, "LEAST_WORK", 1)
    monkeypatch.setattr(stages, "LEAST_SPREAD", 1)


def reduced(builder: Builder, x: Ref, shape: tuple[int, ...], axes: tuple[int, ...], reducer: str, **attrs: Any) -> Ref:
    return builder.add(
        "reduce", (x,), TensorType(shape, builder.type(x).dtype), reducer=reducer, dimensions=axes, **attrs
    )


def same(body: Body, inputs: list[Tensor]) -> int:
    """Runs a body on both devices; how many of its launches run in stages."""
    executable = Executable(body)
    for expected, result in zip(evaluate(body, inputs), executable.run(inputs), strict=True):
        assert expected.same_words(result)
    assert executable.statistics.reference == []
    steps = [(number, step) for number, step in enumerate(executable.program.steps) if isinstance(step, Launch)]
    for _, step in steps:
        for stage in [] if (found := stages.staged(step.kernel)) is None else found.stages:
            # whether a temporary array is filled by several stages is not seen in one of them
            assert {fault.rule for fault in verify(stage.kernel).faults} <= {"KV13"}
    return sum(isinstance(executable.call(*step).compiled, CompiledStages) for step in steps)  # type: ignore[union-attr]


def vector_sum(count: int, dtype: str, reducer: str, accumulate: Accumulate | None) -> tuple[Body, list[Tensor]]:
    builder = Builder(np.random.default_rng(count))
    x = builder.input(TensorType((count,), NAMED[dtype]))
    attrs = {} if accumulate is None else {"accumulate": accumulate}
    body = builder.body([reduced(builder, x, (), (0,), reducer, **attrs)])
    return body, [random_tensor(builder.random, builder.type(x))]


@pytest.mark.parametrize(
    ("dtype", "order", "count"),
    every(
        # the ends of blocks are the same in every format
        lambda dtype, order, count: dtype == "float32" or (count == 5000 and order in (blocked(7), PAIRWISE)),
        ["float32", "float64", "float16", "bfloat16", "float8_e5m2"],
        [blocked(16), blocked(7), blocked(100), PAIRWISE],
        [0, 1, 257, 16 * 64 - 1, 16 * 64, 16 * 64 + 1, 5000, 256 * 33 + 19],
    ),
    ids=str,
)
@pytest.mark.usefixtures("small")
def test_sums_of_vectors(dtype: str, order: Accumulate, count: int) -> None:
    staged = same(*vector_sum(count, dtype, "add", order))
    assert staged == (count >= 5000) or count < 5000


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.usefixtures("small")
def test_sums_in_a_wider_format(dtype: str) -> None:
    assert same(*vector_sum(3000, dtype, "add", blocked(32, "float32"))) == 1


@pytest.mark.parametrize(
    ("dtype", "count"),
    every(
        lambda dtype, count: dtype == "int32" or count in (63, 3 * 64 * 64 + 77),
        ["float32", "float64", "bfloat16", "int8", "int32", "uint64", "bool"],
        [1, 63, 64 * 64 - 1, 64 * 64, 64 * 64 + 1, 3 * 64 * 64 + 77],
    ),
)
@pytest.mark.usefixtures("small")
def test_reductions_whose_order_does_not_matter(dtype: str, count: int) -> None:
    reducers = {
        "float32": ("maximum", "minimum", "multiply"),
        "float64": ("maximum",),
        "bfloat16": ("minimum",),
        "int8": ("add", "multiply", "maximum", "xor"),
        "int32": ("add", "multiply", "minimum", "and", "or", "xor"),
        "uint64": ("add", "maximum"),
        "bool": ("and", "or", "xor", "maximum"),
    }
    for reducer in reducers[dtype]:
        staged = same(*vector_sum(count, dtype, reducer, None))
        ordered = (dtype, reducer) in (("float32", "multiply"), ("bool", "xor"))
        assert staged == int(count >= 64 * 64 and not ordered)


@pytest.mark.parametrize(
    ("reducer", "order"),
    [("add", blocked(32)), ("add", PAIRWISE), ("maximum", None), ("minimum", None)],
    ids=str,
)
@pytest.mark.usefixtures("small")
def test_zeros_of_both_signs_and_nan(reducer: str, order: Accumulate | None) -> None:
    attrs = {} if order is None else {"accumulate": order}
    special = np.array([0x80000000, 0, 0x7FC00001, 0xFF800000, 0x7F800000, 0xFFFFFFFF, 0x80000001], np.uint32)
    for chosen in ([0], [0, 1], [0, 6], [3, 0], [4, 3], [0, 2], [5, 0]):
        words = np.full(9000, 0x80000000, np.uint32)
        words[[17, 8999]] = special[chosen][[0, -1]]
        builder = Builder(np.random.default_rng(0))
        x = builder.input(type := TensorType((9000,), NAMED["float32"]))
        body = builder.body([reduced(builder, x, (), (0,), reducer, **attrs)])
        assert same(body, [Tensor(type, words)]) == 1


@pytest.mark.parametrize(
    ("order", "rows", "columns"),
    [
        *((blocked(48), rows, columns) for rows, columns in [(1, 5000), (3, 1000), (5, 777), (63, 100)]),
        *((PAIRWISE, 1, 5000), (PAIRWISE, 5, 777), (SEQUENTIAL, 3, 1000), (SEQUENTIAL, 63, 100)),
    ],
    ids=str,
)
@pytest.mark.usefixtures("small")
def test_sums_of_what_is_computed_of_views(order: Accumulate, rows: int, columns: int) -> None:
    """Products, powers of e and converted numbers, of an array read backwards, across and in steps."""
    random = np.random.default_rng(rows)
    builder = Builder(random)
    f32, kept = NAMED["float32"], TensorType((rows, columns), NAMED["float32"])
    x = builder.input(TensorType((columns, rows), f32))
    y = builder.input(TensorType((rows, 2 * columns), NAMED["float16"]))
    across = builder.add("transpose", (x,), kept, permutation=(1, 0))
    backwards = builder.add("reverse", (across,), kept, dimensions=(1,))
    half = TensorType((rows, columns), NAMED["float16"])
    bounds = {"start_indices": (0, 1), "limit_indices": (rows, 2 * columns), "strides": (1, 2)}
    every_second = builder.add("convert", (builder.add("slice", (y,), half, **bounds),), kept)
    values = [
        builder.add("multiply", (backwards, every_second), kept),
        builder.add("exponential", (across,), kept),
        every_second,
    ]
    body = builder.body([reduced(builder, v, (rows,), (1,), "add", accumulate=order) for v in values])
    same(body, [random_tensor(random, type) for type in body.input_types])


@pytest.mark.parametrize(
    ("order", "rows"),
    every(
        lambda order, rows: order == blocked(32) or rows == (1 if order == PAIRWISE else 6),
        [SEQUENTIAL, blocked(32), PAIRWISE],
        [1, 2, 6],
    ),
    ids=str,
)
@pytest.mark.usefixtures("small")
def test_rows_that_are_kept_are_shared_by_the_stages(order: Accumulate, rows: int) -> None:
    """A softmax and a normalization of a few rows: totals and kept rows pass from stage to stage."""
    random, columns = np.random.default_rng(rows), 1537
    builder = Builder(random)
    full, row = TensorType((rows, columns), NAMED["float32"]), TensorType((rows,), NAMED["float32"])
    x = builder.input(full)

    def spread(value: Ref) -> Ref:
        return builder.add("broadcast_in_dim", (value,), full, broadcast_dimensions=(0,))

    most = spread(reduced(builder, x, (rows,), (1,), "maximum"))
    powers = builder.add("exponential", (builder.add("subtract", (x, most), full),), full)
    total = spread(reduced(builder, powers, (rows,), (1,), "add", accumulate=order))
    softmax = builder.add("divide", (powers, total), full)
    centred = builder.add("subtract", (x, spread(reduced(builder, x, (rows,), (1,), "add", accumulate=order))), full)
    square = builder.add("multiply", (centred, centred), full)
    root = builder.add("sqrt", (reduced(builder, square, (rows,), (1,), "add", accumulate=order),), row)
    body = builder.body([softmax, builder.add("divide", (centred, spread(root)), full)])
    x_words = Tensor.from_numpy(random.standard_normal((rows, columns)).astype(np.float32))
    assert same(body, [x_words]) >= 1


def test_stages_do_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    body, inputs = vector_sum(300_007, "float32", "add", blocked(10))
    (expected,) = evaluate(body, inputs)
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("TLIR_THREADS", threads)
        (result,) = Executable(body).run(inputs)
        assert result.same_words(expected)


def test_small_sums_are_one_launch() -> None:
    assert same(*vector_sum(1000, "float32", "add", blocked(64))) == 0


@pytest.mark.usefixtures("small")
def test_a_running_total_stays_one_loop() -> None:
    builder = Builder(np.random.default_rng(0))
    x = builder.input(type := TensorType((4000,), NAMED["float32"]))
    body = builder.body([builder.add("cumulative", (x,), type, reducer="add", dimension=0)])
    assert all(stages.staged(step.kernel) is None for step in lower(body).steps if isinstance(step, Launch))
    same(body, [random_tensor(builder.random, type)])


def rows_of(rows: int, columns: int, dtype: str, order: Accumulate) -> tuple[Body, list[Tensor]]:
    """A softmax, and a normalization with gains, of rows."""
    random = np.random.default_rng(columns)
    builder = Builder(random)
    d = NAMED[dtype]
    full, row = TensorType((rows, columns), d), TensorType((rows,), d)
    x, gain = builder.input(full), builder.input(TensorType((columns,), d))

    def spread(value: Ref, axis: int = 0) -> Ref:
        return builder.add("broadcast_in_dim", (value,), full, broadcast_dimensions=(axis,))

    most = spread(reduced(builder, x, (rows,), (1,), "maximum"))
    powers = builder.add("exponential", (builder.add("subtract", (x, most), full),), full)
    total = spread(reduced(builder, powers, (rows,), (1,), "add", accumulate=order))
    softmax = builder.add("divide", (powers, total), full)
    least = reduced(builder, softmax, (rows,), (1,), "minimum")
    centred = builder.add("subtract", (x, spread(reduced(builder, x, (rows,), (1,), "add", accumulate=order))), full)
    square = builder.add("multiply", (centred, centred), full)
    root = builder.add("sqrt", (reduced(builder, square, (rows,), (1,), "add", accumulate=order),), row)
    scaled = builder.add("multiply", (builder.add("divide", (centred, spread(root)), full), spread(gain, 1)), full)
    body = builder.body([softmax, least, scaled])
    return body, [random_tensor(random, type) for type in body.input_types]


@pytest.mark.parametrize(
    ("order", "shape"),
    every(
        lambda order, shape: order == blocked(16) or shape == ((70, 511) if order == PAIRWISE else (65, 513)),
        [blocked(16), blocked(5), PAIRWISE],
        [(1, 256), (70, 511), (3, 512), (65, 513), (64, 16)],
    ),
    ids=str,
)
def test_rows_one_by_one(order: Accumulate, shape: tuple[int, int]) -> None:
    same(*rows_of(*shape, "float32", order))


@pytest.mark.parametrize(
    ("case", "order"),
    every(
        lambda case, order: order == (blocked(16) if case[0] in ("float64", "bfloat16") else blocked(5)),
        [("float64", (3, 257)), ("float16", (2, 300)), ("bfloat16", (66, 256)), ("float8_e5m2", (2, 80))],
        [blocked(16), blocked(5), PAIRWISE],
    ),
    ids=str,
)
def test_rows_one_by_one_in_other_formats(case: tuple[str, tuple[int, int]], order: Accumulate) -> None:
    dtype, shape = case
    same(*rows_of(*shape, dtype, order))


def test_what_is_computed_row_by_row() -> None:
    """Blocks enough in a row: lanes go along it. Otherwise, or in sequential order, they are rows."""
    found = {}
    for name, order in (("many", blocked(32)), ("few", blocked(512)), ("one", SEQUENTIAL), ("tree", PAIRWISE)):
        body, _ = rows_of(100, 1024, "float32", order)
        kernels = [step.kernel for step in lower(body).steps if isinstance(step, Launch)]
        # the rest of the reductions of the softmax's own results
        found[name] = [stages.by_rows(kernel) is not None for kernel in kernels]
    assert all(found["many"][:2]), found
    assert not any(found["few"] + found["one"] + found["tree"]), found


@pytest.mark.parametrize(
    ("dtype", "shape"),
    every(
        lambda dtype, shape: dtype in ("int32", "float32") or shape == (66, 300),
        ["int8", "int32", "uint64", "bool", "float32"],
        [(5, 63), (70, 64), (9, 65), (66, 300)],
    ),
    ids=str,
)
def test_extrema_and_integer_sums_of_rows(dtype: str, shape: tuple[int, int]) -> None:
    rows, columns = shape
    reducers = ("maximum", "minimum") if dtype == "float32" else ("and", "or", "xor")
    reducers += ("add", "multiply") if dtype[:3] in ("int", "uin") else ()
    random = np.random.default_rng(columns)
    builder = Builder(random)
    x = builder.input(TensorType((rows, columns), NAMED[dtype]))
    body = builder.body([reduced(builder, x, (rows,), (1,), reducer) for reducer in reducers])
    same(body, [random_tensor(random, type) for type in body.input_types])


@pytest.mark.parametrize("op", ["tanh", "exponential"])
def test_elementary_functions_have_no_more_lanes_than_the_mask_has_bits(op: str) -> None:
    builder = Builder(np.random.default_rng(0))
    x = builder.input(type := TensorType((9001,), NAMED["float32"]))
    body = builder.body([builder.add(op, (x,), type)])
    (step,) = lower(body).steps
    assert isinstance(step, Launch)
    compiled = compile_kernel(step.kernel)
    assert isinstance(compiled, Compiled)
    assert compiled.plan.block <= 64
    same(body, [random_tensor(builder.random, type)])


@pytest.mark.parametrize(
    ("dtype", "size"),
    every(
        lambda dtype, size: dtype == "float32" or size == (7, 7 * 37 + 3),
        ["float32", "float64", "bfloat16", "float16", "float8_e5m2", "float128"],
        [(7, 7 * 32), (7, 7 * 37 + 3), (16, 16 * 48 - 1), (50, 50 * 33 + 49)],
    ),
    ids=str,
)
def test_blocks_are_summed_in_lanes_on_one_thread(
    monkeypatch: pytest.MonkeyPatch, dtype: str, size: tuple[int, int]
) -> None:
    """Of what is read, of products and of powers of e, in formats without instructions of products alone; the blocks'
    results are added in order as they come."""
    block, count = size
    monkeypatch.setenv("TLIR_THREADS", "1")
    monkeypatch.setattr(stages, "LEAST_WORK", 1)
    monkeypatch.setattr(stages, "LARGEST_ROW", 0)
    # the name of kept code does not say that
    monkeypatch.setattr(objects, "kept", lambda key: None)
    monkeypatch.setattr(objects, "keep", lambda key, data: None)
    builder = Builder(np.random.default_rng(count))
    line = TensorType((count,), NAMED[dtype])
    x, y = builder.input(line), builder.input(line)
    values = [builder.add("multiply", (x, builder.add("reverse", (y,), line, dimensions=(0,))), line)]
    if dtype in ("float32", "float64"):
        values += [x, builder.add("exponential", (y,), line)]
    body = builder.body([reduced(builder, value, (), (0,), "add", accumulate=blocked(block)) for value in values])
    kernels = [step.kernel for step in lower(body).steps if isinstance(step, Launch)]
    loops = [s for kernel in kernels for s in kernel.body.statements if isinstance(s, Loop)]
    assert any(cutting.abreast(loop) is not None for loop in loops)
    random = builder.random
    inputs = [random_tensor(random, line) for _ in range(2)]
    if dtype == "float32":
        inputs[0] = Tensor(line, np.where(random.random(count) < 0.9, 0x80000000, inputs[0].words).astype(np.uint32))
    assert same(body, inputs) == 0


@pytest.mark.parametrize(
    ("dtype", "count"),
    every(
        lambda dtype, count: dtype == "float32" or count == 16 * 70 - 1,
        ["float32", "float64", "bfloat16", "float128", "float8_e5m2"],
        [1023, 1024, 1025, 16 * 70 - 1, 16 * 70],
    ),
)
def test_sums_in_order(dtype: str, count: int) -> None:
    """What is written out several steps at a time, and the rest."""
    assert same(*vector_sum(count, dtype, "add", SEQUENTIAL)) == 0
    if dtype == "float32":
        body, inputs = vector_sum(count, dtype, "add", SEQUENTIAL)
        for word in (0x80000000, 0xFFC00001):
            inputs[0].words[:] = 0x80000000
            inputs[0].words[-1] = word
            same(body, inputs)
