"""Quotients by a divisor that all lanes share: the algorithm for all pairs of short significands, and the device beside
NumPy's division."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from control_register import DENORMAL, UNDERFLOW, left_by, needs_register

from tlir.backends.cpu import device, divisors
from tlir.floatlib.format import FORMATS
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.tensor import Tensor
from tlir.ir.types import NAMED, TensorType


def rounded(value: Fraction, precision: int) -> Fraction:
    """To nearest even, without limits of the exponent."""
    if value == 0:
        return value
    exponent = 0
    while abs(value) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** (exponent - precision + 1)
    return round(value / unit) * unit


@pytest.mark.parametrize("precision", range(2, 8))
def test_algorithm(precision: int) -> None:
    """The steps, for all significands of a precision: the first quotient is next to the exact one, the remainder is a
    number of the format, and the second quotient is the exact one rounded."""
    last = 1 << (precision - 1)
    for b in (Fraction(n, last) for n in range(last, 2 * last)):
        inverse = rounded(1 / b, precision)
        residual = 1 - b * inverse
        assert residual == rounded(residual, precision)
        rest = rounded(residual * inverse, precision)
        for a in (Fraction(n, last) for n in range(last, 2 * last)):
            near = rounded(a * inverse + rounded(a * rest, precision), precision)
            unit = Fraction(1, last) * (1 if a >= b else Fraction(1, 2))
            assert abs(near - a / b) < unit
            remainder = a - near * b
            assert remainder == rounded(remainder, precision)
            assert rounded(near + remainder * inverse, precision) == rounded(a / b, precision)


def quotients(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a[rows, n] / b[rows, 1] by the device."""
    name = str(a.dtype)
    type, column = TensorType(a.shape, NAMED[name]), TensorType(b.shape, NAMED[name])
    nodes = (
        Node(0, "input", (), {}, (type,)),
        Node(1, "input", (), {}, (column,)),
        Node(2, "broadcast_in_dim", (Ref(1),), {"broadcast_dimensions": (0, 1)}, (type,)),
        Node(3, "divide", (Ref(0), Ref(2)), {}, (type,)),
    )
    kind = f"u{a.dtype.itemsize}"
    inputs = [Tensor(type, a.view(kind)), Tensor(column, b.view(kind))]
    (found,) = device.evaluate(Body(nodes, (0, 1), (Ref(3),)), inputs)
    return np.asarray(found.words).view(kind)


def expected(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        result = a / b
    result[np.isnan(result)] = np.nan
    return result.view(f"u{a.dtype.itemsize}")


def numbers(name: str, count: int, least: float, most: float, random: Any) -> np.ndarray:
    """Of both signs, with exponents between two and significands of many, few, and only ones as bits."""
    bits = FORMATS[name].fraction_bits
    significands = 1 + random.integers(0, 1 << bits, count) / 2.0**bits
    significands[::5] = 1 + random.integers(0, 16, significands[::5].size) / 16
    significands[1::5] = 2 - random.integers(1, 16, significands[1::5].size) / 2.0**bits
    signs = random.choice([-1.0, 1.0], count)
    return (signs * np.ldexp(significands, random.integers(least, most + 1, count))).astype(name)


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_words(name: str) -> None:
    """Ordinary dividends, ends of the ranges, and all that is outside them, in one row and in rows of each."""
    random, fmt = np.random.default_rng(0), FORMATS[name]
    ranges = divisors.RANGES[fmt]
    finite = np.finfo(name)
    special = [0.0, -0.0, finite.smallest_subnormal, finite.tiny, finite.max, np.inf, np.nan, 1.0, 3.0]
    special += [-x for x in special]
    ends = [np.ldexp(np.array(1.0, name), sign * ranges.divisor) for sign in (-1, 1)]
    ends += [np.nextafter(end, np.array(side, name)) for end in ends for side in (0, np.inf)]
    b = np.concatenate(
        [
            abs(numbers(name, 200, -3, 12, random)),
            abs(numbers(name, 100, -ranges.divisor, ranges.divisor, random)),
            numbers(name, 50, fmt.emin, fmt.emax - 1, random),
            np.array([*special, *ends], name),
        ]
    )[:, None]
    within = numbers(name, 1600, -20, 20, random)
    edges = [np.ldexp(1.0, sign * ranges.dividend) for sign in (-1, 1)]
    edges = [np.nextafter(np.array(edge, name), np.array(side, name)) for edge in edges for side in (0, np.inf, edge)]
    a = np.concatenate([within, numbers(name, 400, -ranges.dividend - 3, ranges.dividend + 2, random)])
    rare = np.concatenate([np.array([*special, *edges], name), numbers(name, 40, fmt.emin - 5, fmt.emax - 1, random)])
    mixed = random.permutation(np.concatenate([a[:300], rare]))
    for row in (a, rare, mixed, mixed[:17], within[:8], np.zeros(64, name), np.full(64, -0.0, name)):
        both = np.broadcast_to(row, (b.shape[0], row.size)).copy()
        np.testing.assert_array_equal(quotients(both, b), expected(both, b))


@needs_register
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_nothing_subnormal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Normal quotients of normal numbers of every order of size are made without subnormal numbers, which would take
    processors a hundred times as long."""
    monkeypatch.setenv("TLIR_THREADS", "1")
    random, fmt = np.random.default_rng(2), FORMATS[name]
    ranges = divisors.RANGES[fmt]
    # of the smallest dividends in the range, products with rests of rests are subnormal now and then
    passed_over = range(-ranges.dividend - 1, -ranges.dividend + 2 * fmt.precision + ranges.divisor)
    for divisor in (0, fmt.emin + 40, -60, 60, fmt.emax - 40):
        b = abs(numbers(name, 40, divisor, divisor + 1, random))[:, None]
        least, most = (max(fmt.emin, fmt.emin + divisor + 3), min(fmt.emax - 3, fmt.emax + divisor - 3))
        orders = [order for order in range(least, most, 10) if order not in passed_over]
        a = np.concatenate([numbers(name, 40, order, order + 1, random) for order in orders])
        both = np.broadcast_to(a, (b.shape[0], a.size)).copy()
        quotients(both, b)
        assert left_by(partial(quotients, both, b)) & (DENORMAL | UNDERFLOW) == 0


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_quotients_next_to_ties(name: str) -> None:
    """Dividends whose quotients are as near to the middle of two numbers as they can be: b (2m + 1) +- 1 units, where
    that has few enough bits, by the inverse of b modulo a power of two."""
    random, bits = np.random.default_rng(1), FORMATS[name].fraction_bits + 1
    rows, columns = [], []
    for _ in range(300):
        divisor = int(random.integers(1 << (bits - 2), 1 << (bits - 1))) * 2 + 1
        row = []
        for above in (1, -1):
            # the odd number of p + 1 bits whose product with b ends in p bits of zeros but for one unit
            for length in (bits, bits + 1):
                odd = above * pow(divisor, -1, 1 << length) % (1 << length)
                row.append((divisor * odd - above) >> length)
        rows.append([float(x) for x in row if x.bit_length() <= bits] * 8)
        columns.append(float(divisor))
    width = min(len(row) for row in rows)
    a = np.array([row[:width] for row in rows]).astype(name)
    b = np.array(columns).astype(name)[:, None]
    assert width >= 16
    np.testing.assert_array_equal(quotients(a, b), expected(a, b))
