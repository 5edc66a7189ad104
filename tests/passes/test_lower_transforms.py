"""Fourier transforms in kernels: every way in which a length is divided among them, every kind, several axes; tables of
roots; the check of the lowering sees other roots and other orders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np
import pytest
from lower_graphs import Builder, random_tensor

from tlir.backends.interpreter import run_program
from tlir.backends.reference import evaluate
from tlir.errors import ArtifactError
from tlir.ir.graph import Body, Graph
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType
from tlir.kernel.ir import Apply, Block, Launch, Literal, Program, Statement
from tlir.kernel.parse import parse_program
from tlir.kernel.tables import table
from tlir.kernel.text import program_text
from tlir.kernel.verify import verify_program
from tlir.passes.check.lowering import check_lowering
from tlir.passes.lower import lower
from tlir.passes.lower.transforms import grouped, prime_factors

F32, C64 = NAMED["float32"], NAMED["complex64"]
KINDS = ("FFT", "IFFT", "RFFT", "IRFFT")


def transform(kind: str, batch: tuple[int, ...], *lengths: int) -> Body:
    b = Builder(np.random.default_rng(0))
    half = (*lengths[:-1], lengths[-1] // 2 + 1)
    given = TensorType((*batch, *(half if kind == "IRFFT" else lengths)), F32 if kind == "RFFT" else C64)
    result = TensorType((*batch, *(half if kind == "RFFT" else lengths)), F32 if kind == "IRFFT" else C64)
    return b.body([b.add("fft", (b.input(given),), result, fft_type=kind, fft_length=lengths)])


def checked(body: Body) -> Program:
    """The program, once the interpreter has found the reference's words, of special and ordinary operands."""
    random = np.random.default_rng(1)
    program = lower(body)
    verification = verify_program(program, body)
    assert verification.ok, verification.faults
    (type,) = body.input_types
    ordinary = random.standard_normal((*type.shape, 2)).astype(np.float32)
    array = ordinary.view(np.complex64)[..., 0] if type.dtype.is_complex else np.ascontiguousarray(ordinary[..., 0])
    with np.errstate(all="ignore"):
        for tensor in (random_tensor(random, type), Tensor.from_numpy(array)):
            assert run_program(program, body, [tensor])[0].same_words(evaluate(body, [tensor])[0])
    return program


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 9, 11, 13, 16, 17, 24, 27, 30, 32, 33, 44, 64, 121, 256])
def test_every_length(kind: str, length: int) -> None:
    checked(transform(kind, (2,), length))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lengths", [(1, 1), (1, 6), (6, 1), (4, 18), (11, 5), (2, 3, 4)])
def test_several_axes(kind: str, lengths: tuple[int, ...]) -> None:
    checked(transform(kind, (), *lengths))
    checked(transform(kind, (2, 2), *lengths))


def test_nothing() -> None:
    for kind in KINDS:
        checked(transform(kind, (0, 2), 8))


@pytest.mark.parametrize("n", [6, 8, 1000, 1024, 4096, 8192, 10007, 3 * 2**14])
def test_how_a_length_is_divided(n: int) -> None:
    runs = grouped(prime_factors(n))
    assert [factor for run in runs for factor in run] == sorted(prime_factors(n))
    assert prod(map(prod, runs)) == n
    assert all(len(run) == 1 or prod(run) <= (16 if n <= 4096 else 8) for run in runs)


def test_text_and_back() -> None:
    program = lower(transform("RFFT", (2,), 64))
    again = parse_program(program_text(program))
    assert again.tables == program.tables
    assert sorted(program.tables.values()) == ["cosine", "minus_sine"]
    assert again.steps == program.steps
    assert all(again.constants[ref].same_words(program.constants[ref]) for ref in program.tables)
    with pytest.raises(ArtifactError, match="TL0217"):
        parse_program(program_text(program).replace("= cosine", "= tangent"))


def test_tables() -> None:
    type = TensorType((1000,), NAMED["float64"])
    angles = 2 * np.pi * np.arange(1000) / 1000
    for name, values in (("cosine", np.cos(angles)), ("sine", np.sin(angles)), ("minus_sine", -np.sin(angles))):
        words = table(name, type).words.view(np.float64)
        np.testing.assert_allclose(words, values, rtol=0, atol=1e-14)
        assert not np.signbit(words[words == 0]).any()


@pytest.mark.parametrize(
    "body",
    [transform("FFT", (4096,), 2**20), transform("IRFFT", (9,), 20, 1000), transform("RFFT", (9,), 10007)],
    ids=["long", "two axes", "prime"],
)
def test_the_lowering_is_proven(body: Body) -> None:
    assert check_lowering(Graph(body)).status == "passed"


def other_roots(statement: Statement) -> Statement:
    if isinstance(statement, Literal) and statement.word == 0x3F3504F3:
        return replace(statement, word=0x3F3504F4)
    return statement


def other_order(statement: Statement) -> Statement:
    if isinstance(statement, Apply) and statement.op == "add":
        return replace(statement, operands=statement.operands[::-1])
    return statement


@pytest.mark.parametrize("change", [other_roots, other_order])
def test_another_sum_is_seen(change: Callable[[Statement], Statement]) -> None:
    body = transform("FFT", (2,), 8)
    program = lower(body)
    (launch,) = program.steps
    assert isinstance(launch, Launch)
    block = Block(tuple(map(change, launch.kernel.body.statements)))
    changed = replace(program, steps=(replace(launch, kernel=replace(launch.kernel, body=block)),))
    assert check_lowering(Graph(body), program).status == "passed"
    assert check_lowering(Graph(body), changed).status == "failed"


def test_a_table_that_is_wrong_is_seen() -> None:
    body = transform("FFT", (2,), 32)
    program = lower(body)
    (cosine, sine) = sorted(program.tables, key=lambda ref: program.tables[ref])
    exchanged = dict(program.constants) | {cosine: program.constants[sine], sine: program.constants[cosine]}
    assert check_lowering(Graph(body), program).status == "passed"
    assert check_lowering(Graph(body), replace(program, constants=exchanged)).status == "failed"
