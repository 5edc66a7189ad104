"""Operations that look at the fields of a word, where a field lies in two of its limbs or ends with one, and formats
that have two names."""

from __future__ import annotations

import numpy as np
import pytest
from lower_graphs import Builder, from_ints_of, special_words

from tlir.backends.cpu.device import Executable
from tlir.backends.cuda.host import HostExecutable
from tlir.backends.reference import evaluate
from tlir.floatlib.format import Format
from tlir.ir.tensor import Tensor
from tlir.ir.types import BOOL, NAMED, DType, TensorType, complex_of

pytest.importorskip("llvmlite")

FORMATS = [
    *(Format(15, fraction_bits) for fraction_bits in (48, 49, 55, 62, 63, 64, 112, 113, 120, 127, 128)),
    *(Format(15, fraction_bits) for fraction_bits in (239, 240, 250, 255, 256, 300, 383, 639)),
    *(Format(30, fraction_bits) for fraction_bits in (33, 34, 60, 63, 97, 98, 120)),
]


def test_numbers_are_finite_and_have_signs_wherever_the_exponent_lies() -> None:
    builder = Builder(np.random.default_rng(0))
    nodes, inputs = [], []
    for fmt in FORMATS:
        dtype = DType(str(fmt), "float", fmt.width, fmt)
        largest = fmt.max_finite_magnitude
        words = [*special_words(dtype), largest - 1, fmt.sign_mask | largest - 1, largest ^ 1 << fmt.fraction_bits]
        type = TensorType((len(words),), dtype)
        x = builder.input(type)
        inputs.append(Tensor(type, from_ints_of(dtype, words)))
        finite = builder.add("is_finite", (x,), TensorType(type.shape, BOOL))
        signs = [builder.add(op, (x,), type) for op in ("negate", "abs", "sign")]
        nodes += [finite, *signs, builder.add("copysign", (signs[1], x), type)]
    body = builder.body(nodes)
    with np.errstate(all="ignore"):
        expected = evaluate(body, inputs)
    for executable in (Executable(body), HostExecutable(body)):
        for ref, want, result in zip(body.outputs, expected, executable.run(inputs), strict=True):
            assert want.same_words(result), body.nodes[ref.node]
        assert executable.statistics.reference == []


def test_the_reference_says_what_the_exponent_says() -> None:
    for fmt in FORMATS:
        dtype = DType(str(fmt), "float", fmt.width, fmt)
        words = special_words(dtype)
        builder = Builder(np.random.default_rng(0))
        type = TensorType((len(words),), dtype)
        body = builder.body([builder.add("is_finite", (builder.input(type),), TensorType(type.shape, BOOL))])
        (result,) = evaluate(body, [Tensor(type, from_ints_of(dtype, words))])
        ones = (1 << fmt.exponent_bits) - 1
        assert result.words.tolist() == [word >> fmt.fraction_bits & ones != ones for word in words], fmt


def test_words_are_kept_between_two_names_of_a_format() -> None:
    builder = Builder(np.random.default_rng(0))
    nodes, inputs, kept = [], [], []
    for name in ("float8_e4m3fn", "float16", "bfloat16", "float32", "float64", "float128", "float256", "float300"):
        dtype = NAMED.get(name) or DType(name, "float", 300, Format(15, 284))
        other = DType("another", "float", dtype.bits, dtype.format)
        words = special_words(dtype)
        for source, target, each in ((dtype, other, 1), (other, dtype, 1), (complex_of(other), complex_of(dtype), 2)):
            type = TensorType((len(words) // each,), source)
            column = from_ints_of(dtype, words[: len(words) // each * each])
            whole = column.reshape(-1, 2, *column.shape[1:]) if each == 2 else column
            inputs.append(Tensor(type, np.array(whole, order="C")))
            result = TensorType(type.shape, target)
            nodes.append(builder.add("convert", (builder.input(type),), result))
            kept.append(Tensor(result, inputs[-1].words))
    body = builder.body(nodes)
    for results in (evaluate(body, inputs), Executable(body).run(inputs), HostExecutable(body).run(inputs)):
        for ref, want, result in zip(body.outputs, kept, results, strict=True):
            assert want.same_words(result), body.nodes[ref.node]
