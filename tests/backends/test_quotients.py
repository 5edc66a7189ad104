"""Quotients of complex numbers in kernels: the specification's words, ties and infinities included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lower_graphs import Builder, random_tensor

from tlir.backends.cpu import settle
from tlir.backends.cpu.device import Executable
from tlir.backends.cuda.host import HostExecutable
from tlir.backends.reference import evaluate
from tlir.ir.graph import Body, Graph
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, DType, TensorType, complex_of
from tlir.kernel.ir import Fallback
from tlir.passes.check.lowering import check_lowering
from tlir.passes.lower import lower

pytest.importorskip("llvmlite")

PARTS = [
    *("float32", "float64", "float16", "bfloat16", "tfloat32", "float8_e4m3fn", "float8_e5m2fnuz", "float6_e3m2fn"),
    "float4_e2m1fn",
]

SIZE = 150
"""Elements in all tests of one device, so that each format's kernels are compiled once."""


def quotients(dtype: DType, size: int) -> Body:
    builder = Builder(np.random.default_rng(0))
    type = TensorType((size,), dtype)
    x, y = builder.input(type), builder.input(type)
    nodes = [builder.add("divide", (x, y), type)]
    nodes += [builder.add("integer_pow", (y,), type, exponent=exponent) for exponent in (-1, -2)]
    return builder.body(nodes)


def same(executable: Executable, inputs: list[Tensor]) -> None:
    with np.errstate(all="ignore"):
        expected, results = evaluate(executable.body, inputs), executable.run(inputs)
    assert [a.same_words(b) for a, b in zip(expected, results, strict=True)] == [True] * len(expected)
    assert executable.statistics.reference == []


@pytest.mark.parametrize("name", PARTS)
def test_words_of_every_kind(name: str) -> None:
    body = quotients(complex_of(NAMED[name]), SIZE)
    random = np.random.default_rng(1)
    same(Executable(body), [random_tensor(random, type) for type in body.input_types])


def pairs(dtype: str, *values: Any) -> Tensor:
    return Tensor.from_numpy(np.array(values, dtype))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_ties_and_what_is_next_to_them(dtype: str) -> None:
    """Subnormal results half way between two numbers, by exact and by slightly different divisors; cancellation, and
    quotients that overflow."""
    part = np.float32 if dtype == "complex64" else np.float64
    tiny, small, great = np.finfo(part).smallest_subnormal, np.finfo(part).tiny, np.finfo(part).max
    rows = [
        (complex(3 * tiny, 5 * tiny), complex(2, 0)),
        (complex(3 * tiny, 5 * tiny), complex(2, tiny)),
        (complex(3 * tiny, 5 * tiny), complex(0, 2)),
        (complex(3 * small, tiny), complex(4, small)),
        (complex(1, 1), complex(1, -1)),
        (complex(3, 3), complex(3, 3)),
        (complex(1 + np.finfo(part).eps, 1), complex(1, 1 + np.finfo(part).eps)),
        (complex(great, great), complex(0.5, 0)),
        (complex(great, -great), complex(1, 1)),
        (complex(great, 1), complex(great, great)),
        (complex(tiny, 0), complex(great, tiny)),
        (complex(-0.0, -0.0), complex(2, 3)),
        (complex(-0.0, 0.0), complex(-2, 0.0)),
        (complex(0.0, 0.0), complex(0.0, 0.0)),
        (complex(1, 2), complex(0.0, -0.0)),
        (complex(np.inf, 1), complex(1, 2)),
        (complex(1, np.nan), complex(1, 2)),
        (complex(1, 2), complex(np.inf, -np.inf)),
    ]
    inputs = [pairs(dtype, *np.resize(side, SIZE)) for side in zip(*rows, strict=True)]
    same(Executable(quotients(NAMED[dtype], SIZE)), inputs)


def ordinary(dtype: str, size: int) -> list[Tensor]:
    random = np.random.default_rng(2)
    return [pairs(dtype, *(random.standard_normal(size) + 1j * random.standard_normal(size))) for _ in range(2)]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_ordinary_numbers_do_not_need_the_specification(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: Any) -> None:
        raise AssertionError("a quotient was not decided")

    body = quotients(NAMED[dtype], SIZE)
    executable = Executable(body)
    same(executable, ordinary(dtype, SIZE))
    monkeypatch.setattr(settle, "_complex", refused)
    executable.run(ordinary(dtype, SIZE))
    with pytest.raises(AssertionError, match="not decided"):
        executable.run([pairs(dtype, *[np.inf] * SIZE), pairs(dtype, *[1] * SIZE)])


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_host_build(dtype: str) -> None:
    same(HostExecutable(quotients(NAMED[dtype], 60)), ordinary(dtype, 60))


def shared(dtype: DType, op: str, rows: int, columns: int) -> Body:
    """An operation on a matrix and what all elements of a row share, a number given, and a constant, on either side."""
    builder = Builder(np.random.default_rng(3))
    whole, scalar = TensorType((rows, columns), dtype), TensorType((), dtype)
    x, column, number = (builder.input(type) for type in (whole, TensorType((rows,), dtype), scalar))
    constants = [builder.add("constant", (), scalar, value=random_tensor(builder.random, scalar)) for _ in range(2)]
    others = [builder.add("broadcast_in_dim", (column,), whole, broadcast_dimensions=(0,))]
    others += [builder.add("broadcast_in_dim", (y,), whole, broadcast_dimensions=()) for y in (number, *constants)]
    return builder.body([builder.add(op, pair, whole) for y in others for pair in ((x, y), (y, x))])


@pytest.mark.parametrize("op", ["divide", "power"])
@pytest.mark.parametrize("name", ["float32", "float64", "float16"])
def test_what_all_elements_share(name: str, op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body = shared(complex_of(NAMED[name]), op, 3, 37)
    inputs = [random_tensor(np.random.default_rng(4), type) for type in body.input_types]
    for count in ("1", "2"):
        monkeypatch.setenv("TLIR_THREADS", count)
        same(Executable(body), inputs)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_what_all_elements_share_on_a_host_build(dtype: str) -> None:
    body = shared(NAMED[dtype], "divide", 2, 17)
    same(HostExecutable(body), [random_tensor(np.random.default_rng(4), type) for type in body.input_types])


def test_the_lowering_is_checked() -> None:
    body = quotients(NAMED["complex64"], 3)
    assert check_lowering(Graph(body)).status == "passed"
    assert check_lowering(Graph(shared(NAMED["complex64"], "divide", 2, 3))).status == "passed"


@pytest.mark.parametrize("name", ["float128", "float8_e8m0fnu"])
def test_other_formats_are_left_to_the_reference(name: str) -> None:
    body = quotients(complex_of(NAMED[name]), 3)
    assert all(isinstance(step, Fallback) for step in lower(body).steps)
