"""``convert`` between every pair of dtypes, against exact fractions."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import exact
import pytest
from conformance import evaluate, evaluate_with_flags, tensor, words_of

from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, DType, TensorType, complex_of, parse_dtype

NAMES = [*NAMED, "complex<float16>", "complex<float8_e4m3fn>", "complex<float128>"]


def sample(dtype: DType, count: int) -> list[int]:
    """Words of one component: all of a small dtype, otherwise the ends, integers, their neighbours, and random ones."""
    if dtype.bits <= 6:
        return list(range(1 << dtype.bits))
    rng = random.Random(dtype.name)
    if dtype.is_integer:
        edges = [0, 1, (1 << dtype.bits) - 1, 1 << (dtype.bits - 1), (1 << (dtype.bits - 1)) - 1]
        return edges + [rng.getrandbits(dtype.bits) >> rng.randrange(dtype.bits) for _ in range(count)]
    fmt = dtype.float_format
    sign, top = exact.masks(fmt)[0], exact.top(fmt)
    words = [0, 1, 3, fmt.min_normal, top, min(top + 1, exact.masks(fmt)[1]), exact.canonical_nan(fmt)]
    # 2^k and its neighbours, for the k at which other formats and integers end
    for k in (-149, -133, -126, -24, -16, -14, -9, -6, -1, 0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128):
        power = exact.encode(fmt, Fraction(2) ** k)
        if 0 < power < top:
            words += [power - 1, power, power + 1, power + (1 << max(0, fmt.fraction_bits - 1))]
    words += [rng.randrange(top + 1) for _ in range(count)]
    one = fmt.bias << fmt.fraction_bits
    words += [min(top, one + rng.randrange(12 << fmt.fraction_bits)) for _ in range(count)]
    return [word | (sign * rng.getrandbits(1)) for word in words]


def elements(dtype: DType) -> list[tuple[int, ...]]:
    words = sample(dtype.component if dtype.is_complex else dtype, 12)
    if not dtype.is_complex:
        return [(word,) for word in words]
    return list(zip(words, words[1:] + words[:1], strict=True))


def is_nonzero(dtype: DType, word: int) -> bool:
    if dtype.is_float:
        return exact.decode(dtype.float_format, word) not in (0, "-0")
    return word != 0


def value_of(dtype: DType, word: int) -> exact.Number:
    if dtype.is_float:
        return exact.decode(dtype.float_format, word)
    return Fraction(word - (1 << dtype.bits) if dtype.is_signed and word >> (dtype.bits - 1) else word)


def to_real(source: DType, target: DType, word: int, rule: str) -> int:
    """The word of a float or integer dtype for a word of a real one."""
    number = value_of(source, word)
    if target.is_float:
        if source == target:
            return word
        return exact.encode(target.float_format, number)
    if number in ("nan", "inf", "-inf"):
        limits = {"nan": 0, "inf": greatest(target), "-inf": least(target)}
        truncated, outside = limits[str(number)], True
    else:
        truncated = exact.finite(number).__trunc__()
        outside = source.is_float and not least(target) <= truncated <= greatest(target)
    if rule == "indefinite" and source.is_float:
        if target.bits < 32:
            return to_real(source, parse_dtype("int32"), word, rule) % (1 << target.bits)
        return 1 << (target.bits - 1) if outside else truncated % (1 << target.bits)
    if source.is_float:
        truncated = min(max(truncated, least(target)), greatest(target))
    return truncated % (1 << target.bits)


def least(dtype: DType) -> int:
    return -(1 << (dtype.bits - 1)) if dtype.is_signed else 0


def greatest(dtype: DType) -> int:
    return (1 << (dtype.bits - dtype.is_signed)) - 1


def expected(source: DType, target: DType, element: tuple[int, ...], rule: str) -> tuple[int, ...]:
    if source == target:
        return element
    if target.is_bool:
        part = source.component
        return (int(any(is_nonzero(part, word) for word in element)),)
    if not target.is_complex:
        return (to_real(source.component, target, element[0], rule),)
    part = target.component
    words = element if source.is_complex else (element[0],)
    converted = tuple(to_real(source.component, part, word, rule) for word in words)
    return converted if source.is_complex else (*converted, exact.encode(part.float_format, Fraction(0)))


def operand_of(dtype: DType, given: list[tuple[int, ...]]) -> Tensor:
    return tensor(TensorType((len(given),), dtype), [word for element in given for word in element])


@pytest.mark.parametrize("source", NAMES)
def test_every_pair(source: str) -> None:
    source_dtype = parse_dtype(source)
    given = elements(source_dtype)
    operand = operand_of(source_dtype, given)
    for target in NAMES:
        dtype = parse_dtype(target)
        rules = ("saturate", "indefinite") if source_dtype.component.is_float and dtype.is_integer else ("saturate",)
        for rule in rules:
            result = evaluate("convert", [operand], TensorType((len(given),), dtype), {"out_of_range": rule})
            wanted = [word for element in given for word in expected(source_dtype, dtype, element, rule)]
            assert words_of(result) == wanted, (source, target, rule)


@pytest.mark.parametrize(
    ("source", "target"), [*itertools.product(["int64", "float64", "float128", "complex64"], NAMES[::5])]
)
def test_flags_change_no_word(source: str, target: str) -> None:
    operand = operand_of(parse_dtype(source), elements(parse_dtype(source)))
    type = TensorType(operand.shape, parse_dtype(target))
    with_flags, _ = evaluate_with_flags("convert", [operand], type)
    assert with_flags.same_words(evaluate("convert", [operand], type))


def test_every_dtype_converts_to_a_complex_over_it() -> None:
    for name, dtype in NAMED.items():
        if dtype.is_float:
            operand = operand_of(dtype, elements(dtype))
            result = evaluate("convert", [operand], TensorType(operand.shape, complex_of(dtype)))
            assert words_of(result)[::2] == words_of(operand), name


@pytest.mark.parametrize("name", ["float8_e4m3fn", "bfloat16", "float32", "float128", "complex64", "int2", "uint64"])
def test_iota_is_a_conversion(name: str) -> None:
    dtype = parse_dtype(name)
    result = evaluate("iota", [], TensorType((600,), dtype), {"iota_dimension": 0})
    counted = parse_dtype("uint16")
    wanted = [word for k in range(600) for word in expected(counted, dtype, (k,), "saturate")]
    assert words_of(result) == wanted
