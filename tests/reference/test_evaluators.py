"""Every operation has an evaluator, and works on scalars, on nothing, and on dtypes of every layout alike."""

from __future__ import annotations

import random

import numpy as np
import pytest
from conformance import evaluate, tensor, words_of

from tlir.backends.reference import EVALUATORS, REGION_EVALUATORS, SEVERAL
from tlir.ir.ops import OPERATIONS, Call
from tlir.ir.tensor import Tensor
from tlir.ir.types import BOOL, NAMED, DType, TensorType, parse_dtype

NOT_EVALUATED = {"input": "its value is given"}
"""Operations without an evaluator, and why."""


def test_every_operation_has_one_evaluator_or_a_reason() -> None:
    tables = (EVALUATORS, SEVERAL, REGION_EVALUATORS, NOT_EVALUATED)
    names = sorted(name for table in tables for name in table)
    assert names == sorted(OPERATIONS)


ELEMENTWISE = [
    name for name, operation in OPERATIONS.items() if operation.family in ("arithmetic", "logic", "complex_numbers")
]
DTYPES = ["bool", "int2", "uint4", "int8", "uint64", "float4_e2m1fn", "float8_e4m3fn", "float8_e5m2fnuz", "bfloat16"]
DTYPES += ["float16", "tfloat32", "float32", "float64", "float128", "float256", "complex64", "complex<float128>"]

ATTRS = {"integer_pow": {"exponent": 3}, "compare": {"comparison_direction": "EQ"}}


def result_type(op: str, operands: list[TensorType]) -> TensorType | None:
    """The type that the operation gives, None where it does not take these dtypes."""
    from tlir.ir.ops import Violation

    try:
        (type,) = OPERATIONS[op].rule(Call(tuple(operands), ATTRS.get(op, {}), (operands[0],)))
    except Violation:
        return None
    return type


def random_tensor(dtype: DType, shape: tuple[int, ...], seed: str) -> Tensor:
    type, rng = TensorType(shape, dtype), random.Random(seed)
    return tensor(type, [rng.getrandbits(dtype.bits) for _ in range(type.size * dtype.components)])


@pytest.mark.parametrize("name", DTYPES)
def test_a_scalar_is_a_vector_of_one(name: str) -> None:
    """Elementwise operations on shapes (6,), (3, 2), () and (0,) return the same words."""
    dtype = parse_dtype(name)
    tried = 0
    for op in ELEMENTWISE:
        dtypes = [dtype] * len(OPERATIONS[op].operands)
        if op == "select":
            dtypes[0] = BOOL
        operands = [random_tensor(part, (6,), f"{op}{name}{k}") for k, part in enumerate(dtypes)]
        type = result_type(op, [operand.type for operand in operands])
        if type is None:
            continue
        tried += 1
        whole = evaluate(op, operands, type, ATTRS.get(op))
        for shape in ((3, 2), (6, 1)):
            reshaped = [
                Tensor(TensorType(shape, x.dtype), x.words.reshape(shape + x.words.shape[1:])) for x in operands
            ]
            result = evaluate(op, reshaped, TensorType(shape, type.dtype), ATTRS.get(op))
            assert words_of(result) == words_of(whole), op
        for k in range(2):
            scalars = [Tensor(TensorType((), x.dtype), np.array(x.words[k])) for x in operands]
            result = evaluate(op, scalars, TensorType((), type.dtype), ATTRS.get(op))
            assert np.array_equal(result.words, whole.words[k]), op
        empty = [Tensor(TensorType((0,), x.dtype), x.words[:0]) for x in operands]
        assert evaluate(op, empty, TensorType((0,), type.dtype), ATTRS.get(op)).shape == (0,)
    assert tried >= 6


@pytest.mark.parametrize("source", DTYPES)
def test_scalars_convert_like_vectors(source: str) -> None:
    dtype = parse_dtype(source)
    operand = random_tensor(dtype, (3,), source)
    for target in DTYPES:
        whole = evaluate("convert", [operand], TensorType((3,), parse_dtype(target)))
        scalar = Tensor(TensorType((), dtype), np.array(operand.words[1]))
        result = evaluate("convert", [scalar], TensorType((), parse_dtype(target)))
        assert np.array_equal(result.words, whole.words[1]), target
        none = Tensor(TensorType((0,), dtype), operand.words[:0])
        assert evaluate("convert", [none], TensorType((0,), parse_dtype(target))).shape == (0,)


@pytest.mark.parametrize("name", [*NAMED, "complex<float128>"])
def test_reductions_of_every_dtype(name: str) -> None:
    """A sum or an extremum along an axis of one element or of none, to a scalar and to a vector."""
    dtype = parse_dtype(name)
    reducer = "maximum" if dtype.is_bool else "add"
    for shape, axes in (((3, 1), (1,)), ((1,), (0,)), ((), ()), ((0,), (0,)), ((2, 0), (1,))):
        kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
        operand = random_tensor(dtype, shape, name)
        result = evaluate("reduce", [operand], TensorType(kept, dtype), {"reducer": reducer, "dimensions": axes})
        assert result.shape == kept
