"""Planted faults are called bugs, and what a written program gives is not."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from bounds_graphs import Builder, layer_norm, softmax
from faulty_models import (
    FAULTS,
    JAX,
    TORCH,
    Model,
    attention,
    block,
    casts,
    gelu,
    long_sum,
    perceptron,
    with_fault,
)
from faulty_models import layer_norm as layer_norm_model

from tlir.backends import run
from tlir.compare.auto import compare_auto
from tlir.compare.bounds import resolve
from tlir.compare.executions import execute
from tlir.ir.graph import Graph, Sample
from tlir.ir.ops import Accumulate
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType

PRODUCERS = {"torch": TORCH, "jax": JAX}

CASES = [(model, fault, "float64") for model, fault in FAULTS]
CASES += [(model, fault, "float32") for model, fault in FAULTS if (model, fault) != (block, "tanh-gelu for erf-gelu")]
CASES += [(model, fault, "float16") for model, fault in FAULTS if model is not block]
CASES += [(model, fault, "bfloat16") for model, fault in FAULTS if model is not block]
CASES += [(long_sum, "sum in float16", "float32"), (casts, "double rounding", "float32")]


@pytest.mark.parametrize("frontend", PRODUCERS)
@pytest.mark.parametrize(
    ("model", "fault", "dtype"), CASES, ids=[f"{model.__name__}-{fault}-{dtype}" for model, fault, dtype in CASES]
)
def test_a_planted_fault_is_a_bug(model: Model, fault: str, dtype: str, frontend: str) -> None:
    report = compare_auto(with_fault(model, dtype, fault, PRODUCERS[frontend]))
    assert report.verdict == "bug"
    assert not report.ok


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("model", [perceptron, layer_norm_model, attention, gelu, block, casts])
def test_without_a_fault_a_permitted_execution_is_none(model: Model, dtype: str) -> None:
    graph = with_fault(model, dtype, "", JAX)
    inputs = graph.samples[0].inputs
    for seed in range(3):
        outputs = execute(graph.body, inputs, resolve("frontend", JAX), seed)
        report = compare_auto(replace(graph, samples=(Sample(inputs, tuple(outputs)),)))
        assert report.verdict in ("identical", "rounding", "reordering")
        assert report.ok


@pytest.mark.parametrize("bit", range(1, 14))
def test_a_flipped_bit_of_an_average_weight_is_a_bug_down_to_the_thirteenth(bit: int) -> None:
    assert compare_auto(with_fault(perceptron, "float32", f"flip {bit}", TORCH)).verdict == "bug"
    if bit <= 12:
        assert compare_auto(with_fault(perceptron, "float32", f"flip {bit}", JAX)).verdict == "bug"


# ---- programs from public reports of numerical faults, with the value that the written program gives ----------------


def evaluated(build: Builder, *outputs, inputs: tuple[np.ndarray, ...] = ()) -> list[np.ndarray]:
    graph = build.graph(*outputs)
    return [tensor.to_numpy() for tensor in run(graph, [Tensor.from_numpy(array) for array in inputs])]


def vector(build: Builder, dtype: str, size: int):
    return build.input(TensorType((size,), NAMED[dtype]))


def recorded(graph: Graph, inputs: tuple[np.ndarray, ...], outputs: tuple[np.ndarray, ...]) -> Graph:
    """The graph with what a frontend is said to have given."""
    sample = Sample(tuple(map(Tensor.from_numpy, inputs)), tuple(map(Tensor.from_numpy, outputs)))
    return replace(graph, samples=(sample,))


def test_a_cast_to_bfloat16_and_back_is_not_the_identity() -> None:
    build = Builder()
    x = vector(build, "float32", 64)
    graph = build.graph(build.convert(build.convert(x, "bfloat16"), "float32"), producer=JAX)
    data = np.random.default_rng(0).normal(size=64).astype(np.float32)
    (right,) = run(graph, [Tensor.from_numpy(data)])
    np.testing.assert_array_equal(right.to_numpy(), data.astype(ml_dtypes.bfloat16).astype(np.float32))
    assert not np.array_equal(right.to_numpy(), data)
    # no policy permits to leave the cast out
    for policy in ("strict", "reorder", "frontend", "loose"):
        assert compare_auto(recorded(graph, (data,), (data,)), policy=policy).verdict == "bug"


def test_bfloat16_compensation_rounds_every_operation() -> None:
    build = Builder()
    x, y = vector(build, "bfloat16", 1), vector(build, "bfloat16", 1)
    total = build.like("add", x, y)
    left = build.like("subtract", y, build.like("subtract", total, x))
    a, b = np.array([256.0], ml_dtypes.bfloat16), np.array([0.75], ml_dtypes.bfloat16)
    graph = build.graph(left, producer=JAX)
    (right,) = run(graph, [Tensor.from_numpy(a), Tensor.from_numpy(b)])
    # 256.75 rounds to 256, so that all of y is left over
    assert float(right.to_numpy()[0]) == 0.75
    kept = recorded(graph, (a, b), (np.array([0.0], ml_dtypes.bfloat16),))
    assert compare_auto(kept, policy="strict").verdict == "bug"
    assert compare_auto(kept, policy="reorder").verdict == "bug"
    # with the intermediate sum kept in float32 nothing is left
    assert compare_auto(kept, policy="frontend").verdict == "reordering"


def test_overflow_is_not_simplified_away() -> None:
    build = Builder()
    x, y = vector(build, "float32", 1), vector(build, "float32", 1)
    log = build.like("log", build.like("exponential", x))
    root = build.like("sqrt", build.like("multiply", y, y))
    inputs = (np.array([89.0], np.float32), np.array([1e20], np.float32))
    graph = build.graph(log, root, producer=TORCH)
    values = [tensor.to_numpy() for tensor in run(graph, [Tensor.from_numpy(array) for array in inputs])]
    assert [float(value[0]) for value in values] == [np.inf, np.inf]
    simplified = recorded(graph, inputs, (np.array([89.0], np.float32), np.array([1e20], np.float32)))
    assert [output.verdict for output in compare_auto(simplified).outputs] == ["bug", "bug"]


def test_a_mask_of_large_negative_numbers() -> None:
    build = Builder()
    scores, mask = vector(build, "float32", 2), vector(build, "float32", 2)
    low = build.like("multiply", build.filled(mask, -1.0), build.filled(mask, 1e30))
    masked = build.like(
        "add", scores, build.like("multiply", low, build.like("subtract", build.filled(mask, 1.0), mask))
    )
    top = build.spread(build.reduce(masked, "maximum", 0), (2,), 0)
    (result,) = evaluated(
        build,
        build.like("subtract", masked, top),
        inputs=(np.array([0.7, 0.5], np.float32), np.ones(2, np.float32)),
    )
    assert result[0] == 0.0
    assert result[1] == np.float32(0.5) - np.float32(0.7)


def test_the_mean_of_a_million_halves_depends_on_the_accumulator() -> None:
    count = 1 << 20
    data = np.full(count, 1e-5, np.float16)
    means = {}
    for dtype in ("float16", "float32"):
        build = Builder()
        x = vector(build, "float16", count)
        total = build.reduce(x, "add", 0, accumulate=Accumulate(NAMED[dtype]))
        wide = build.convert(total, "float32")
        (value,) = evaluated(build, build.like("divide", wide, build.filled(wide, float(count))), inputs=(data,))
        means[dtype] = float(value)
    exact = float(np.float16(1e-5))
    # the float32 sum is rounded to float16 at the end; the float16 one stays where the next term is half a unit
    total = np.add.accumulate(data.astype(np.float32), dtype=np.float32)[-1]
    assert means["float32"] == float(np.float16(total)) / count
    assert abs(means["float32"] / exact - 1) < 0.02
    stalled = float(np.float32(means["float16"]) * count)
    assert stalled < exact * count / 100
    assert float(np.float16(stalled) + np.float16(1e-5)) == stalled


def test_a_cast_that_overflows_nothing_until_it_is_squared() -> None:
    build = Builder()
    x = vector(build, "float32", 1)
    half = build.convert(x, "float16")
    (value,) = evaluated(build, build.like("multiply", half, half), inputs=(np.array([5000.0], np.float32),))
    assert value[0] == np.float16(np.inf)


def test_a_fused_difference_of_equal_products() -> None:
    """exp(x*s - x*s) is 1 with rounded products; with one of them fused it is infinite: both are permitted."""
    build = Builder()
    x, s = vector(build, "float32", 1), vector(build, "float32", 1)
    first, second = build.like("multiply", x, s), build.like("multiply", x, s)
    graph = build.graph(build.like("exponential", build.like("subtract", first, second)), producer=TORCH)
    inputs = (np.array([1134139801600.0], np.float32), np.array([0.18033688], np.float32))
    (plain,) = run(graph, [Tensor.from_numpy(array) for array in inputs])
    assert plain.to_numpy()[0] == 1.0
    fused = Builder()
    a, b = vector(fused, "float32", 1), vector(fused, "float32", 1)
    rounded = fused.like("negate", fused.like("multiply", a, b))
    (value,) = evaluated(fused, fused.like("exponential", fused.like("fma", a, b, rounded)), inputs=inputs)
    # the rounding error of the product, which the fused one leaves over
    assert (
        Fraction(float(inputs[0][0])) * Fraction(float(inputs[1][0])) - Fraction(float(inputs[0][0] * inputs[1][0]))
        == 7916
    )
    assert value[0] == np.inf
    given = recorded(graph, inputs, (value,))
    assert compare_auto(given, policy="strict").verdict == "bug"
    assert compare_auto(given, policy="reorder").verdict == "reordering"
    wrong = recorded(graph, inputs, (np.array([-1.0], np.float32),))
    assert compare_auto(wrong, policy="loose").verdict == "bug"


def test_a_fully_masked_row_of_attention_is_nan_and_a_finite_mask_gives_equal_weights() -> None:
    build = Builder()
    x = build.input(TensorType((1, 4), NAMED["float32"]))
    infinite = build.like("add", x, build.filled(x, -np.inf))
    finite = build.like("add", x, build.filled(x, float(np.finfo(np.float32).min)))
    data = np.array([[0.1, 0.2, 0.3, 0.4]], np.float32)
    graph = build.graph(softmax(build, infinite, 1), softmax(build, finite, 1), producer=TORCH)
    nan, equal = (tensor.to_numpy() for tensor in run(graph, [Tensor.from_numpy(data)]))
    assert np.isnan(nan).all()
    np.testing.assert_array_equal(equal, np.full((1, 4), 0.25, np.float32))
    zeros = recorded(graph, (data,), (np.zeros((1, 4), np.float32), equal))
    assert [output.verdict for output in compare_auto(zeros).outputs] == ["bug", "identical"]


def test_float16_layer_norm_of_a_constant_row_divides_by_zero_where_epsilon_vanishes() -> None:
    build = Builder()
    x = build.input(TensorType((1, 8), NAMED["float16"]))
    (value,) = evaluated(build, layer_norm(build, x, 1, epsilon=1e-8), inputs=(np.full((1, 8), 3.0, np.float16),))
    assert np.float16(1e-8) == 0
    assert np.isnan(value).all()


def test_small_numbers_become_integers_before_they_become_truths() -> None:
    build = Builder()
    x = vector(build, "float32", 5)
    truth = build.convert(build.convert(x, "int32"), "bool")
    (value,) = evaluated(build, truth, inputs=(np.array([-0.2, -0.1, 0, 0.1, 0.2], np.float32),))
    assert not value.any()


def test_binary64_is_rounded_to_bfloat16_once() -> None:
    build = Builder()
    x = vector(build, "float64", 1)
    data = np.array([1 + 2.0**-8 + 2.0**-40])
    graph = build.graph(build.convert(x, "bfloat16"), producer=TORCH)
    (value,) = run(graph, [Tensor.from_numpy(data)])
    assert float(value.to_numpy()[0]) == 1.0078125
    twice = data.astype(np.float32).astype(ml_dtypes.bfloat16)
    assert float(twice[0]) == 1.0
    assert compare_auto(recorded(graph, (data,), (twice,)), policy="loose").verdict == "bug"


def test_a_quotient_times_its_divisor_is_rounded_twice() -> None:
    build = Builder()
    x = vector(build, "float32", 1)
    third = build.like("divide", x, build.filled(x, 0.75))
    back = build.like("add", build.like("multiply", third, build.filled(x, 0.75)), build.filled(x, 0.25))
    (value,) = evaluated(build, back, inputs=(np.array([-0.25], np.float32),))
    third_ = np.float32(-0.25) / np.float32(0.75)
    assert value[0] == third_ * np.float32(0.75) + np.float32(0.25)


def test_floor_division_of_negative_integers_rounds_down() -> None:
    """By its definition: the truncated quotient, one less where the signs differ and something remains."""
    build = Builder()
    a, b = vector(build, "int64", 4), vector(build, "int64", 4)
    quotient, rest = build.like("divide", a, b), build.like("remainder", a, b)
    zero, one = build.filled(a, 0), build.filled(a, 1)
    differs = build.compare(build.like("sign", rest), build.like("sign", b), "NE")
    some = build.compare(rest, zero, "NE")
    less = build.node("and", (differs, some), build.type(differs))
    floor = build.node("select", (less, build.like("subtract", quotient, one), quotient), build.type(a))
    x, y = np.array([-7, 7, -7, 7]), np.array([2, 2, -2, -2])
    (value,) = evaluated(build, floor, inputs=(x, y))
    assert value.tolist() == [-4, 3, 3, -4]


@pytest.mark.parametrize("word", [0x7F800000, 0xFF800000, 0x7FC12345, 0x80000000, 0x00000001, 0xFFA00001])
def test_constants_keep_their_words(word: int) -> None:
    build = Builder()
    array = np.array([word], np.uint32).view(np.float32)
    graph = build.graph(build.constant(array))
    (value,) = run(graph, [])
    assert value.words.tolist() == [word]
