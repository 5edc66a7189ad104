"""The cpu device gives the reference's words: random graphs, rows, sums of products, threads, and a thread whose
control register another library has changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from control_register import left_by, needs_register
from hypothesis import given, settings
from hypothesis import strategies as st
from lower_graphs import Builder, random_graph, random_tensor

from tlir.backends.cpu import device
from tlir.backends.cpu.compiled import compile_kernel
from tlir.backends.cpu.tile import suits
from tlir.backends.reference import evaluate
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType
from tlir.kernel.ir import Launch
from tlir.kernel.patterns import as_contraction
from tlir.passes.lower import lower


def same(body: Body, inputs: list[Tensor]) -> device.Executable:
    executable, references = device.Executable(body), evaluate(body, inputs)
    for _ in range(2):  # the first run is not like the others
        for expected, result in zip(references, executable.run(inputs), strict=True):
            assert expected.same_words(result)
    return executable


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_random_graphs(seed: int, steps: int) -> None:
    same(*random_graph(seed, steps))


def normalized(rows: int, columns: int, dtype: str, axis: int) -> Body:
    """Sums, squares, roots and quotients along an axis, as layer normalization has them, and a maximum."""
    d = NAMED[dtype]
    builder = Builder(np.random.default_rng(0))
    whole, kept = TensorType((rows, columns), d), TensorType((rows if axis else columns,), d)
    x, gain = builder.input(whole), builder.input(TensorType((columns,), d))

    def spread(value: Any, dimension: int = 1 - axis) -> Any:
        return builder.add("broadcast_in_dim", (value,), whole, broadcast_dimensions=(dimension,))

    total = builder.add("reduce", (x,), kept, reducer="add", dimensions=(axis,))
    centred = builder.add("subtract", (x, spread(total)), whole)
    square = builder.add("multiply", (centred, centred), whole)
    variance = builder.add("reduce", (square,), kept, reducer="add", dimensions=(axis,))
    root = builder.add("sqrt", (variance,), kept)
    scaled = builder.add("multiply", (builder.add("divide", (centred, spread(root)), whole), spread(gain, 1)), whole)
    greatest = builder.add("reduce", (scaled,), kept, reducer="maximum", dimensions=(axis,))
    return builder.body([scaled, greatest])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "float8_e4m3fn"])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (17, 33), (40, 5), (33, 1)])
def test_rows_and_columns(rows: int, columns: int, dtype: str, axis: int) -> None:
    random = np.random.default_rng(rows)
    types = (TensorType((rows, columns), NAMED[dtype]), TensorType((columns,), NAMED[dtype]))
    executable = same(normalized(rows, columns, dtype, axis), [random_tensor(random, type) for type in types])
    assert executable.statistics.reference == []


def product(rows: int, terms: int, columns: int, dtype: str, accumulate: Accumulate, flipped: bool = False) -> Body:
    d = NAMED[dtype]
    builder = Builder(np.random.default_rng(0))
    right = (columns, terms) if flipped else (terms, columns)
    x, y = builder.input(TensorType((rows, terms), d)), builder.input(TensorType(right, d))
    result = builder.add(
        "dot_general",
        (x, y),
        TensorType((rows, columns), d),
        lhs_contracting_dimensions=(1,),
        rhs_contracting_dimensions=(int(flipped),),
        lhs_batching_dimensions=(),
        rhs_batching_dimensions=(),
        accumulate=accumulate,
    )
    return builder.body([builder.add("negate", (result,), TensorType((rows, columns), d))])


@pytest.mark.parametrize(
    ("dtype", "accumulate"),
    [
        ("float32", Accumulate()),
        ("float32", Accumulate(fma=True)),
        ("float32", Accumulate(order="blocked", block=7)),
        ("float32", Accumulate(order="blocked", block=64, fma=True)),
        ("float64", Accumulate()),
        ("float64", Accumulate(order="blocked", block=100)),
        ("bfloat16", Accumulate(NAMED["float32"])),
        ("float16", Accumulate(NAMED["float32"], fma=True)),
    ],
)
@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize(("rows", "terms", "columns"), [(13, 5, 33), (25, 300, 70), (4, 64, 16)])
def test_products_in_register_tiles(
    rows: int, terms: int, columns: int, dtype: str, accumulate: Accumulate, flipped: bool
) -> None:
    body = product(rows, terms, columns, dtype, accumulate, flipped)
    (step,) = lower(body).steps
    assert isinstance(step, Launch)
    contraction = as_contraction(step.kernel)
    assert contraction is not None
    assert suits(contraction)
    random = np.random.default_rng(terms)
    same(body, [random_tensor(random, type) for type in body.input_types])


def test_words_do_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    body = normalized(300, 200, "float32", 1)
    random = np.random.default_rng(5)
    inputs = [random_tensor(random, type) for type in body.input_types]
    results = []
    for count in ("1", "2", "3", "7"):
        monkeypatch.setenv("TLIR_THREADS", count)
        results.append(device.Executable(body).run(inputs))
    for other in results[1:]:
        assert all(a.same_words(b) for a, b in zip(results[0], other, strict=True))


@needs_register
def test_a_thread_that_flushes_subnormal_numbers_still_gives_the_words_and_keeps_its_register() -> None:
    builder = Builder(np.random.default_rng(0))
    type = TensorType((64,), NAMED["float32"])
    x = builder.input(type)
    body = builder.body([builder.add("multiply", (x, builder.add("multiply", (x, x), type)), type)])
    (step,) = lower(body).steps
    assert isinstance(step, Launch)
    compiled = compile_kernel(step.kernel)
    assert not isinstance(compiled, str)
    values = np.full(64, np.float32(2.0**-46))
    result = np.empty(64, np.float32)
    flushing_and_toward_zero = 0x1F80 | 0x8040 | 0x6000
    arrays = [values.view(np.uint32), result.view(np.uint32)]
    after = left_by(lambda: device.execute(compiled, arrays, 1), flushing_and_toward_zero)
    assert after & 0xFFC0 == flushing_and_toward_zero & 0xFFC0
    assert result.tolist() == [2.0**-138] * 64


def convolution(columns: tuple[int, int], padding: tuple[int, int], strides: tuple[int, int], groups: int) -> Body:
    d = NAMED["float32"]
    builder = Builder(np.random.default_rng(0))
    images, kernels = TensorType((2, 4, *columns), d), TensorType((6, 4 // groups, 3, 3), d)
    out = tuple((n + sum(padding) - 3) // s + 1 for n, s in zip(columns, strides, strict=True))
    result = builder.add(
        "convolution",
        (builder.input(images), builder.input(kernels)),
        TensorType((2, 6, *out), d),
        window_strides=strides,
        padding_low=(padding[0],) * 2,
        padding_high=(padding[1],) * 2,
        lhs_dilation=(1, 1),
        rhs_dilation=(1, 1),
        window_reversal=(0, 0),
        feature_group_count=groups,
        lhs_dimensions=(0, 1, 2, 3),
        rhs_dimensions=(0, 1, 2, 3),
        output_dimensions=(0, 1, 2, 3),
    )
    return builder.body([result])


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    ("columns", "padding", "strides"), [((8, 16), (1, 1), (1, 1)), ((7, 9), (0, 2), (1, 1)), ((17, 18), (1, 1), (2, 2))]
)
def test_convolutions_in_register_tiles(
    columns: tuple[int, int], padding: tuple[int, int], strides: tuple[int, int], groups: int
) -> None:
    body = convolution(columns, padding, strides, groups)
    random = np.random.default_rng(3)
    executable = same(body, [random_tensor(random, type) for type in body.input_types])
    assert executable.statistics.reference == []


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("op", ["exponential", "tanh", "log", "sine", "erf", "logistic", "power"])
def test_elementary_functions_in_kernels(op: str, dtype: str) -> None:
    type = TensorType((3, 50), NAMED[dtype])
    builder = Builder(np.random.default_rng(0))
    operands = tuple(builder.input(type) for _ in range(2 if op == "power" else 1))
    product = builder.add("multiply", (builder.add(op, operands, type), operands[0]), type)
    body = builder.body([product])
    random = np.random.default_rng(len(op))
    executable = same(body, [random_tensor(random, type) for _ in operands])
    assert executable.statistics.reference == []


def test_a_loop_around_a_product_runs_its_body_compiled() -> None:
    """Power iteration: the values of a fallback's operands are kept until it has run, and its region has kernels."""
    d, n = NAMED["float32"], 80
    matrix, vector = TensorType((n, n), d), TensorType((n,), d)
    inner = Builder(np.random.default_rng(0))
    m, v = inner.input(matrix), inner.input(vector)
    product = inner.add(
        "dot_general",
        (m, v),
        vector,
        lhs_contracting_dimensions=(1,),
        rhs_contracting_dimensions=(0,),
        lhs_batching_dimensions=(),
        rhs_batching_dimensions=(),
    )
    step = inner.body([product])
    outer = Builder(np.random.default_rng(0))
    x, y = outer.input(matrix), outer.input(vector)
    start = outer.add("negate", (y,), vector)
    turned = outer.add("multiply", (x, x), matrix)
    body = outer.body([start])
    node = Node(
        len(body.nodes),
        "scan",
        (turned, start),
        {"num_consts": 1, "num_carry": 1, "length": 5},
        (vector,),
        regions=(step,),
    )
    last = Node(node.id + 1, "negate", (Ref(node.id),), {}, (vector,))
    whole = Body((*body.nodes, node, last), body.input_ids, (Ref(last.id),))
    random = np.random.default_rng(1)
    inputs = [Tensor.from_numpy(random.standard_normal(type.shape).astype(np.float32)) for type in (matrix, vector)]
    same(whole, inputs)
