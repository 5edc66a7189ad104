"""Fixed-point arithmetic against exact integers: every result within its own error and limit. And the rounding of a
value with its error against exact rounding of both ends."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from math import isqrt

import numpy as np
import pytest
from flint import arb

from tlir.floatlib.elementary.wide import quotient
from tlir.floatlib.elementary.wide.fixed import DIGIT, MASK, Fixed, choose, combination, of_bits, unit
from tlir.floatlib.elementary.wide.rounding import rounded
from tlir.floatlib.elementary.wide.series import count_terms, polynomial
from tlir.floatlib.elementary.wide.tables import ROUNDING, Table, constant
from tlir.floatlib.elementary.wide.work import Value
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import Flags, round_exact
from tlir.floatlib.soft.catalog import MAY_BE_EXACT, UNDECIDED
from tlir.floatlib.soft.machine import NumpyMachine
from tlir.floatlib.words import to_ints

M = NumpyMachine(64)
POINTS = (1, 2, 3, 5, 9)
COUNT = 60


def number(rng: random.Random, point: int, size: int, limit: float = 0.0) -> tuple[Fixed, list[int]]:
    """Random units, and all zeros and ones; with a limit, up to that."""
    top = int(Fraction(limit) * (1 << DIGIT * point)) if limit else (1 << DIGIT * size) - 1
    values = [rng.randrange(top + 1) for _ in range(COUNT)] + [0, top, min(1, top)]
    digits = [np.array([(v >> DIGIT * i) & MASK for v in values], dtype=np.uint64) for i in range(size)]
    return Fixed(M, digits, point, limit or float("inf")), values


def units(x: Fixed) -> list[int]:
    digits = [np.broadcast_to(d, COUNT + 3) for d in x.digits]
    assert all(int(d.max()) <= MASK for d in digits)
    return [sum(int(d[k]) << DIGIT * i for i, d in enumerate(digits)) for k in range(COUNT + 3)]


def agrees(x: Fixed, exact: list[Fraction]) -> float:
    """Asserts the result's bounds for exact values; the largest error in units."""
    worst = 0.0
    for got, value in zip(units(x), exact, strict=True):
        error = abs(got - value * (1 << DIGIT * x.point))
        assert error <= Fraction(x.error)
        assert Fraction(got, 1 << DIGIT * x.point) <= Fraction(x.limit)
        worst = max(worst, float(error))
    return worst


def value_of(v: int, point: int) -> Fraction:
    return Fraction(v, 1 << DIGIT * point)


@pytest.fixture(autouse=True)
def quiet() -> object:
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("point", POINTS)
def test_sums(point: int) -> None:
    rng = random.Random(point)
    (x, xs), (y, ys) = number(rng, point, point), number(rng, point + 1, point + 2)
    exact = [(value_of(a, point), value_of(b, point + 1)) for a, b in zip(xs, ys, strict=True)]
    assert agrees(x.plus(y), [a + b for a, b in exact]) == 0
    larger = [(max(p), min(p)) for p in exact]
    swapped = np.array([a < b for a, b in exact])
    assert agrees(x.minus_signed(y, swapped), [a - b for a, b in larger]) == 0
    difference, negative = x.difference(y)
    assert agrees(difference, [a - b for a, b in larger]) == 0
    assert list(negative) == list(swapped)
    assert list(x.less(y)) == list(swapped)
    z = x.plus(y)
    signs = np.array([rng.random() < 0.5 for _ in exact])
    turned = [a + b + (-b if s else b) for (a, b), s in zip(exact, signs, strict=True)]
    assert agrees(z.plus_signed(y, signs), turned) == 0
    assert agrees(z.minus(x), [b for _, b in exact]) == 0
    # x + y - (y - x), or x + y + (y - x)
    both = combination([([(z, False)], None), ([(y, False), (x, True)], signs)], 8.0 * 2**DIGIT)
    wanted = [2 * a if s else 2 * b for (a, b), s in zip(exact, signs, strict=True)]
    assert agrees(both, wanted) == 0
    assert agrees(choose(signs, x, y), [a if s else b for (a, b), s in zip(exact, signs, strict=True)]) == 0


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("other", POINTS)
def test_products(point: int, other: int) -> None:
    rng = random.Random(point * 100 + other)
    (x, xs), (y, ys) = number(rng, point, point), number(rng, other, other)
    exact = [value_of(a, point) * value_of(b, other) for a, b in zip(xs, ys, strict=True)]
    for wanted in (1, point, max(point, other), point + other, point + other + 1):
        result = x.times(y, wanted)
        worst = agrees(result, exact)
        assert (worst == 0) == (result.error == 0) or result.error < 1.5
    z, zs = number(rng, point, point + 1)
    sums = [e + value_of(c, point) for e, c in zip(exact, zs, strict=True)]
    agrees(x.times_plus(y, z), sums)
    one = constant(M, 1, point)
    agrees(x.from_minus(y, one, 1.0), [1 - e for e in exact])
    agrees(x.square(point), [value_of(a, point) ** 2 for a in xs])


@pytest.mark.parametrize("point", POINTS)
def test_errors_of_operands_are_carried(point: int) -> None:
    """Operands that stand for other numbers, as far away as they say."""
    rng = random.Random(point)
    (x, xs), (y, ys) = number(rng, point, point), number(rng, point, point)
    x, y = x.known(5.0), y.known(3.0)
    for dx, dy in ((5, 3), (-5, -3), (5, -3)):
        exact = [(value_of(a + dx, point), value_of(b + dy, point)) for a, b in zip(xs, ys, strict=True)]
        agrees(x.times(y, point), [a * b for a, b in exact])
        agrees(x.plus(y), [a + b for a, b in exact])
        agrees(x.square(point), [a * a for a, _ in exact])
        agrees(x.doubled(3), [8 * a for a, _ in exact])
        agrees(x.halved(3), [a / 8 for a, _ in exact])
        agrees(x.to(point + 1), [a for a, _ in exact])
        if point > 1:
            agrees(x.to(point - 1), [a for a, _ in exact])


@pytest.mark.parametrize("point", POINTS)
def test_shifts(point: int) -> None:
    rng = random.Random(point)
    x, xs = number(rng, point, point)
    counts = np.array([rng.randrange(DIGIT * point) for _ in xs], dtype=np.uint64)
    exact = [value_of(a, point) / 2 ** int(c) for a, c in zip(xs, counts, strict=True)]
    agrees(x.right_by(counts, DIGIT * point), exact)
    zeros = [DIGIT * point - a.bit_length() for a in xs]
    assert [int(z) for z in x.leading_zeros()] == zeros
    up = np.array([min(z, 50) for z in zeros], dtype=np.uint64)
    moved = units(x.left_by(up, 50))
    assert moved == [a << int(c) for a, c in zip(xs, up, strict=True)]
    assert units(of_bits(x.bits(), 0, point, point)) == xs
    assert units(of_bits(x.bits(), -7, point, point)) == [a >> 7 for a in xs]
    assert units(of_bits(x.bits(), 41, point, point + 2)) == [a << 41 for a in xs]
    assert [bool(z) for z in x.is_zero()] == [a == 0 for a in xs]


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_leading_digits_as_a_real_number(size: int) -> None:
    rng = random.Random(size)
    for limit in (0.0, 5.0, 1.5, 0.9):
        x, xs = number(rng, size, size + 1, limit)
        got = np.broadcast_to(x.real(), len(xs))
        dropped = max(0, x.size - (3 if limit else 2))
        for value, real in zip(xs, got, strict=True):
            exact = value_of(value, size)
            assert Fraction(float(real)) <= exact * (1 + Fraction(1, 1 << 53))
            rest = Fraction(1 << DIGIT * dropped, 1 << DIGIT * size) if dropped else 0
            assert Fraction(float(real)) >= exact * (1 - Fraction(1, 1 << 53)) - rest


ROOTS: dict[str, tuple[Callable[[Fixed, int], Fixed], Fraction, Callable[[Fraction], Fraction]]] = {
    "reciprocal": (quotient.reciprocal, Fraction(49, 100), lambda x: 1 / (4 * x)),
    "inverse_root": (quotient.inverse_root, Fraction(1, 4), lambda x: _root(1 / (16 * x))),
    "square_root": (quotient.square_root, Fraction(1, 4), lambda x: _root(x / 16)),
}


def _root(x: Fraction) -> Fraction:
    bits = 1000
    return Fraction(isqrt((x.numerator << 2 * bits) // x.denominator), 1 << bits)


@pytest.mark.parametrize("name", ROOTS)
@pytest.mark.parametrize("point", [2, 3, 5, 9])
def test_quotients_and_roots(name: str, point: int) -> None:
    function, least, exact = ROOTS[name]
    rng = random.Random(name)
    low = -int(-least * (1 << DIGIT * point) // 1)
    for high, limit in ((1, 1 - 2.0**-60), (Fraction(13, 10), 1.3)):
        top = int(high * (1 << DIGIT * point)) - 1
        values = [rng.randrange(low, top + 1) for _ in range(COUNT)] + [low, top, low + 1]
        size = point if high == 1 else point + 1
        digits = [np.array([(v >> DIGIT * i) & MASK for v in values], dtype=np.uint64) for i in range(size)]
        result = function(Fixed(M, digits, point, limit), point)
        assert agrees(result, [exact(value_of(v, point)) for v in values]) > 0.01 * result.error


@pytest.mark.parametrize("alternating", [False, True])
@pytest.mark.parametrize("point", [2, 3, 5, 9])
def test_polynomials(point: int, alternating: bool) -> None:
    rng = random.Random(point)
    x, xs = number(rng, point, point, 2.0**-11)
    count, rest = count_terms(x.limit, point, lambda k: 1 / (k + 1))
    assert rest < unit(point) / 8
    coefficients = [Fraction(1, k + 1) for k in range(count)]
    signs = np.array([rng.random() < 0.5 for _ in xs])
    exact = []
    for value, sign in zip(xs, signs, strict=True):
        z = value_of(value, point) * (-1 if alternating or sign else 1)
        # far more terms than the kernel takes
        exact.append(sum((z**k / (k + 1) for k in range(count + 8)), Fraction(0)))
    if alternating:
        result = polynomial(x, coefficients, point, alternating=True)
    else:
        result = polynomial(x, coefficients, point, negative=signs)
    agrees(result.with_error(rest), exact)


def test_constants_and_tables_are_the_nearest_numbers() -> None:
    log2 = Fraction("0.693147180559945309417232121458176568")
    assert units(constant(M, arb.const_log2, 2)) == [round(log2 * 2**60)] * (COUNT + 3)
    assert constant(M, Fraction(3, 4), 3).error == 0
    assert constant(M, Fraction(1, 3), 3).error == ROUNDING
    table = Table(lambda: [arb(k).sqrt() for k in range(5)])
    entry = table.entry(M, np.arange(COUNT + 3, dtype=np.uint64) % np.uint64(5), 4)
    agrees(entry, [_root(Fraction(k % 5)) for k in range(COUNT + 3)])


FORMATS = [Format(15, 112), Format(5, 29), Format(8, 24), Format(11, 52)]


@pytest.mark.parametrize("fmt", FORMATS, ids=str)
@pytest.mark.parametrize("exact", [False, True])
def test_decided_words_are_those_of_both_ends(fmt: Format, exact: bool) -> None:
    """Values of all exponents, many of them beside midpoints and beside numbers of the format."""
    rng = random.Random(str(fmt))
    point = -(-(fmt.precision + 12) // DIGIT)
    width = DIGIT * point
    count, error = 3000, 37.0
    values, exponents = [], []
    for _ in range(count):
        zeros = rng.randrange(4)
        value = rng.getrandbits(width - zeros) | 1 << (width - zeros - 1)
        drop = width - zeros - fmt.precision - rng.randrange(-1, 3)
        if drop > 7 and rng.random() < 0.7:  # near a multiple of a quarter, half or whole last place
            value = max(1, (value >> drop << drop) + rng.randrange(-90, 90))
        values.append(min(value, (1 << width) - 1))
        edges = [0, fmt.emin, fmt.emax, fmt.emin - fmt.precision, fmt.emin - fmt.precision // 2]
        exponents.append(rng.choice(edges) + rng.randrange(-3, 4))
    signs = np.array([rng.random() < 0.5 for _ in values])
    digits = [np.array([(v >> DIGIT * i) & MASK for v in values], dtype=np.uint64) for i in range(point)]
    significand = Fixed(M, digits, point, error=error)
    words = np.array(exponents, dtype=np.int64).view(np.uint64)
    result = rounded(M, fmt, Value(signs, significand, words, zeros=None), exact, flags=True)
    bare = rounded(M, fmt, Value(signs, significand, words, zeros=5), exact, flags=False)
    got = to_ints(fmt, np.stack(result.word.limbs, -1) if len(result.word.limbs) > 1 else result.word.limbs[0])
    decided = 0
    for k, (value, exponent, sign) in enumerate(zip(values, exponents, signs, strict=True)):
        scale = exponent - width
        low = round_exact(fmt, int(sign), max(value - int(error), 0), scale)
        high = round_exact(fmt, int(sign), value + int(error), scale)
        mark = int(result.flags[k])
        assert (bare.flags[k] == UNDECIDED) or low[0] == high[0] == int(got[k])
        if mark & UNDECIDED:
            continue
        decided += 1
        assert low[0] == high[0] == int(got[k])
        if not mark & MAY_BE_EXACT:
            for ends in (low, high):
                assert mark == int(ends[1] | Flags.INEXACT) or not ends[1], (hex(value), exponent)
    assert decided > count // 4
