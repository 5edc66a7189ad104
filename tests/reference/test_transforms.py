"""Fourier transforms: words against a recursion on scalars with its own rounding, values against NumPy's."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import gmpy2
import numpy as np
import pytest
from conformance import evaluate, evaluate_with_flags, tensor, words_of
from exact import add, decode, divide, encode, multiply

from tlir.floatlib.elementary.special.roots import root_words, roots_of_unity
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.rounding import Flags
from tlir.ir.tensor import Tensor
from tlir.ir.types import TensorType, parse_dtype

Pair = tuple[int, int]
FLOATS = ["float8_e5m2", "float16", "bfloat16", "float32", "float64", "float128"]


def root(fmt: Format, j: int, n: int, sign: int) -> Pair:
    """exp(sign 2 pi i j / n), each part by MPFR far beyond the format and rounded once; zeros are +0."""
    with gmpy2.context(precision=400):
        angle = 2 * gmpy2.const_pi() * sign * (j % n) / n
        parts = [gmpy2.cos(angle), gmpy2.sin(angle)]
        return tuple(encode(fmt, Fraction(0) if abs(part) < 1e-60 else fraction(part)) for part in parts)  # type: ignore


def fraction(x: Any) -> Fraction:
    significand, exponent = x.as_mantissa_exp()
    return Fraction(int(significand)) * Fraction(2) ** int(exponent)


def product(fmt: Format, x: Pair, y: Pair) -> Pair:
    (a, b), (c, d) = x, y
    negated = multiply(fmt, multiply(fmt, b, d), encode(fmt, Fraction(-1)))
    return add(fmt, multiply(fmt, a, c), negated), add(fmt, multiply(fmt, a, d), multiply(fmt, b, c))


def recursion(fmt: Format, x: Sequence[Pair], sign: int) -> list[Pair]:
    """The definition, element by element."""
    n = len(x)
    if n == 1:
        return list(x)
    p = next(f for f in range(2, n + 1) if n % f == 0)
    inner = [recursion(fmt, x[r::p], sign) for r in range(p)]
    result = []
    for k in range(n):
        total = inner[0][k % (n // p)]
        for r in range(1, p):
            term = product(fmt, root(fmt, r * k, n, sign), inner[r][k % (n // p)])
            total = (add(fmt, total[0], term[0]), add(fmt, total[1], term[1]))
        result.append(total)
    return result


def pairs(words: Sequence[int]) -> list[Pair]:
    return list(zip(words[::2], words[1::2], strict=True))


def complex_type(name: str, *shape: int) -> TensorType:
    return TensorType(
        shape, parse_dtype({"float32": "complex64", "float64": "complex128"}.get(name, f"complex<{name}>"))
    )


def run(kind: str, lengths: tuple[int, ...], operand: Any, result: Any) -> np.ndarray:
    given, wanted = Tensor.from_numpy(np.asarray(operand)), Tensor.from_numpy(np.asarray(result))
    return evaluate("fft", [given], wanted.type, {"fft_type": kind, "fft_length": lengths}).to_numpy()


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 8, 9, 12])
def test_words_are_those_of_the_recursion(name: str, n: int) -> None:
    rng = np.random.default_rng(n)
    type = complex_type(name, n)
    fmt = type.dtype.float_format
    words = [encode(fmt, Fraction(float(x))) for x in rng.normal(size=2 * n)]
    for kind, sign in (("FFT", -1), ("IFFT", 1)):
        expected = [word for pair in recursion(fmt, pairs(words), sign) for word in pair]
        if kind == "IFFT":
            expected = [divide(fmt, word, encode(fmt, Fraction(n))) for word in expected]
        given = evaluate("fft", [tensor(type, words)], type, {"fft_type": kind, "fft_length": (n,)})
        assert words_of(given) == expected


@pytest.mark.parametrize("n", [1, 2, 5, 6, 8])
def test_real_transforms_are_halves_of_complex_ones(n: int) -> None:
    rng = np.random.default_rng(n)
    name, half = "float32", n // 2 + 1
    fmt, real = FORMATS[name], TensorType((n,), parse_dtype(name))
    words = [encode(fmt, Fraction(float(x))) for x in rng.normal(size=n)]
    whole = recursion(fmt, [(word, 0) for word in words], -1)
    attrs = {"fft_type": "RFFT", "fft_length": (n,)}
    given = evaluate("fft", [tensor(real, words)], complex_type(name, half), attrs)
    assert pairs(words_of(given)) == whole[:half]
    spectrum = pairs([encode(fmt, Fraction(float(x))) for x in rng.normal(size=2 * half)])
    extended = [
        (spectrum[k][0], 0 if 2 * k in (0, n) else spectrum[k][1])
        if k < half
        else (spectrum[n - k][0], spectrum[n - k][1] ^ fmt.sign_mask)
        for k in range(n)
    ]
    expected = [divide(fmt, x, encode(fmt, Fraction(n))) for x, _ in recursion(fmt, extended, 1)]
    flat = [word for pair in spectrum for word in pair]
    attrs["fft_type"] = "IRFFT"
    assert words_of(evaluate("fft", [tensor(complex_type(name, half), flat)], real, attrs)) == expected


@pytest.mark.parametrize("n", [1, 2, 7, 16, 30, 97, 128, 360])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_values_are_numpys(n: int, dtype: Any) -> None:
    rng = np.random.default_rng(n)
    x = (rng.normal(size=(3, n)) + 1j * rng.normal(size=(3, n))).astype(dtype)
    error = 2 * np.finfo(dtype).eps * np.sqrt(n)
    wide = x.astype(np.complex128)
    for kind, function in (("FFT", np.fft.fft), ("IFFT", np.fft.ifft)):
        want = function(wide)
        got = run(kind, (n,), x, x)
        assert np.abs(got - want).max() <= error * np.abs(want).max()
    want = np.fft.rfft(wide.real)
    got = run("RFFT", (n,), x.real, want.astype(dtype))
    assert np.abs(got - want).max() <= error * np.abs(want).max()
    want = np.fft.irfft(wide[:, : n // 2 + 1], n)
    got = run("IRFFT", (n,), x[:, : n // 2 + 1], want.astype(x.real.dtype))
    assert np.abs(got - want).max() <= error * np.abs(want).max()


@pytest.mark.parametrize("lengths", [(5,), (6, 5), (4, 6, 5), (2, 4, 6, 5)])
def test_several_axes(lengths: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    axes = tuple(range(-len(lengths), 0))
    real = rng.normal(size=(2, 4, 6, 5))
    x = real + 1j * rng.normal(size=real.shape)
    half = x[..., :3]
    for kind, operand, want in (
        ("FFT", x, np.fft.fftn(x, axes=axes)),
        ("IFFT", x, np.fft.ifftn(x, axes=axes)),
        ("RFFT", real, np.fft.rfftn(real, axes=axes)),
        ("IRFFT", half, np.fft.irfftn(half, s=lengths, axes=axes)),
    ):
        got = run(kind, lengths, operand, want)
        assert np.abs(got - want).max() <= 1e-14 * np.abs(want).max()


def test_the_last_axis_comes_first() -> None:
    """Words of two axes: those of single ones, one after the other, and divided once at the end."""
    rng = np.random.default_rng(5)
    x = (rng.normal(size=(3, 6)) + 1j * rng.normal(size=(3, 6))).astype(np.complex64)
    rows = run("FFT", (6,), x, x)
    columns = run("FFT", (3,), rows.T.copy(), rows.T.copy()).T
    np.testing.assert_array_equal(run("FFT", (3, 6), x, x), columns)
    other = run("FFT", (6,), *(run("FFT", (3,), x.T.copy(), x.T.copy()).T.copy(),) * 2)
    assert (other != columns).any()
    inverse = run("IFFT", (3, 6), x, x)
    rows = run("IFFT", (6,), x, x) * np.float32(6)
    assert np.abs(inverse - np.fft.ifft2(x)).max() < 1e-6
    assert np.abs(run("IFFT", (3,), rows.T.copy(), rows.T.copy()).T / 6 - inverse).max() < 1e-6


@pytest.mark.parametrize("name", FLOATS)
def test_roots_of_unity_are_the_nearest(name: str) -> None:
    fmt = FORMATS[name]
    for n in (1, 2, 3, 4, 5, 8, 12, 24, 31, 100):
        words = roots_of_unity(fmt, n)
        assert list(words) == [root(fmt, j, n, 1) for j in range(n)]
        assert all(decode(fmt, word) != "-0" for pair in words for word in pair)


@pytest.mark.parametrize("name", ["float32", "float64", "float16"])
@pytest.mark.parametrize("n", [255, 256, 997, 1000, 1024])
def test_many_roots_are_those_found_one_by_one(name: str, n: int) -> None:
    cosines, sines = root_words(FORMATS[name], n)
    assert list(zip(cosines.tolist(), sines.tolist(), strict=True)) == list(roots_of_unity(FORMATS[name], n))


def test_roots_of_a_long_transform() -> None:
    fmt, n = FORMATS["float64"], 1 << 18
    cosines, sines = root_words(fmt, n)
    for j in [0, 1, n // 12, n // 4 - 1, n // 4, n // 2 + 3, n - 1, *range(5, n, 9973)]:
        assert (int(cosines[j]), int(sines[j])) == root(fmt, j, n, 1)


def test_flags_are_those_of_each_transform() -> None:
    """One transform of the batch overflows, one rounds, one is exact."""
    type = complex_type("float32", 3, 2)
    fmt = FORMATS["float32"]
    rows = [(fmt.max_finite, 0, fmt.max_finite, 0), (encode(fmt, Fraction(1)), 0, 1, 0), (0, 0, 0, 0)]
    operand = tensor(type, [word for row in rows for word in row])
    _, flags = evaluate_with_flags("fft", [operand], type, {"fft_type": "FFT", "fft_length": (2,)})
    assert flags == [Flags.OVERFLOW | Flags.INEXACT] * 2 + [Flags.INEXACT] * 2 + [0] * 2


def test_infinities_and_nothing() -> None:
    x = np.array([np.inf, 1], np.complex64)
    assert np.isnan(run("FFT", (2,), np.array([1, np.inf], np.complex64), x)).all()
    empty = np.zeros((0, 4), np.complex64)
    assert run("FFT", (4,), empty, empty).shape == (0, 4)
