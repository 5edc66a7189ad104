"""Double-double operations against exact rationals, and what the tables of the kernels are said to be."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from tlir.floatlib.elementary.double import arc, circular, exponential, logarithm, root
from tlir.floatlib.elementary.double import error as error_family
from tlir.floatlib.elementary.double.arithmetic import (
    DOUBLE,
    Double,
    add,
    add_number,
    add_similar,
    divide,
    multiply,
    multiply_number,
    nearest_integer,
    normalized,
    square_root,
    two_product,
    two_sum,
)
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.soft.machine import NumpyMachine


class Fused(NumpyMachine):
    """A machine with a fused operation, of which the plain one is an exact emulation."""

    has_fma = True


MACHINES = [NumpyMachine(64), Fused(64)]


def _doubles(rng: np.random.Generator, m: NumpyMachine, size: int, positive: bool = False) -> Double:
    high = np.ldexp(rng.integers(1 << 52, 1 << 53, size).astype(float), rng.integers(-60, -44, size))
    if not positive:
        high = high * rng.choice([-1.0, 1.0], size)
    low = high * 2.0**-53 * rng.uniform(-1, 1, size)
    return normalized(Double(Number(m, high), Number(m, low)))


def _exact(x: Double) -> list[Fraction]:
    return [Fraction(a) + Fraction(b) for a, b in zip(x.hi.value.tolist(), x.lo.value.tolist(), strict=True)]


@pytest.mark.parametrize("m", MACHINES, ids=["plain", "fused"])
def test_double_operations_keep_their_bound(m: NumpyMachine) -> None:
    rng = np.random.default_rng(1)
    x, y = _doubles(rng, m, 2000), _doubles(rng, m, 2000)
    near = Double(-x.hi * (1 + 2.0**-40), x.lo)
    single = Double(y.hi, y.hi * 0.0)
    p, q = _doubles(rng, m, 2000, positive=True), _doubles(rng, m, 2000, positive=True)
    checks: list[tuple[Double, Double, Double, Callable[[Fraction, Fraction], Fraction]]] = [
        (add(x, y), x, y, lambda a, b: a + b),
        (add(x, near), x, near, lambda a, b: a + b),
        (add_number(x, y.hi), x, single, lambda a, b: a + b),
        (add_similar(p, q), p, q, lambda a, b: a + b),
        (multiply(x, y), x, y, lambda a, b: a * b),
        (multiply_number(x, y.hi), x, single, lambda a, b: a * b),
        (divide(x, y), x, y, lambda a, b: a / b),
    ]
    for result, left, right, function in checks:
        for got, a, b in zip(_exact(result), _exact(left), _exact(right), strict=True):
            want = function(a, b)
            assert abs(got - want) <= abs(want) * Fraction(DOUBLE)
    for got, a in zip(_exact(square_root(p)), _exact(p), strict=True):
        assert abs(got * got - a) <= a * Fraction(DOUBLE)


@pytest.mark.parametrize("m", MACHINES, ids=["plain", "fused"])
def test_exact_operations_are_exact(m: NumpyMachine) -> None:
    rng = np.random.default_rng(2)
    x = Number(m, np.ldexp(rng.integers(1 << 52, 1 << 53, 3000).astype(float), rng.integers(-200, 200, 3000)))
    y = Number(m, np.ldexp(-rng.integers(1 << 52, 1 << 53, 3000).astype(float), rng.integers(-200, 200, 3000)))
    for total, product, a, b in zip(
        _exact(two_sum(x, y)), _exact(two_product(x, y)), x.value.tolist(), y.value.tolist(), strict=True
    ):
        assert total == Fraction(a) + Fraction(b)
        assert product == Fraction(a) * Fraction(b)


def test_the_nearest_integer_and_its_word() -> None:
    m = NumpyMachine(64)
    x = np.array([0.0, -0.4, 0.6, -1.2, 511.49, -511.51, 2.0**30 + 0.3, -(2.0**30) - 0.7])
    value, word = nearest_integer(Number(m, x))
    assert value.value.tolist() == np.rint(x).tolist()
    assert (word.astype(np.uint32).view(np.int32)).tolist() == np.rint(x).tolist()


def _close(high: float, low: float, exact: arb, bits: int = 105) -> bool:
    previous, ctx.prec = ctx.prec, 400
    try:
        if exact == 0:
            return high == low == 0
        error = abs((arb(high) + arb(low)) / exact - 1)
        return bool(error < arb(2) ** -bits)
    finally:
        ctx.prec = previous


def test_tables_are_pairs_of_what_they_are_said_to_be() -> None:
    previous, ctx.prec = ctx.prec, 400
    try:
        tables = [
            (exponential.powers(), lambda j: (arb.const_log2() * j / 256).exp(), 256),
            (circular.sines(), lambda j: (arb.pi() * j / 1024).sin(), 513),
            (arc.angles(), lambda j: (arb(j) / 256).atan(), 257),
            (arc.arcsines(), lambda j: (arb(j) / 256).asin(), 183),
            (arc.cosines(), lambda j: (1 - (arb(j) / 256) ** 2).sqrt(), 183),
            (error_family.values(), lambda j: (arb(j) / 128).erf(), 769),
            (error_family.slopes(), lambda j: 2 / arb.pi().sqrt() * (-((arb(j) / 128) ** 2)).exp(), 769),
        ]
        for (highs, lows), function, count in tables:
            assert len(highs) == len(lows) == count
            for j in range(count):
                assert _close(highs[j], lows[j], function(j)), j
    finally:
        ctx.prec = previous


def test_reductions_take_exact_products() -> None:
    """Pieces have the bits that leave room for k, and their sums are the constants."""
    first, second, third = exponential.step()
    assert all((Fraction(piece) * 2**bits).denominator == 1 for piece, bits in ((first, 42), (second, 75)))
    assert abs(first) < 2.0**-8.5
    assert abs(second) < 2.0**-42
    assert abs(third) < 2.0**-75
    pieces = circular._steps()
    limits = [(2.0**-8.3, 40), (2.0**-40, 72), (2.0**-72, 104)]
    for piece, (limit, bits) in zip(pieces, limits, strict=False):
        assert abs(piece) < limit
        assert (Fraction(piece) * 2**bits).denominator == 1
    previous, ctx.prec = ctx.prec, 400
    try:
        for parts, exact, bits in (
            ((first, second, third), arb.const_log2() / 256, 118),
            (pieces, arb.pi() / 1024, 148),
        ):
            total = sum(map(Fraction, parts), Fraction(0))
            error = arb(total.numerator) / arb(total.denominator) / exact - 1
            assert abs(error) < arb(2) ** -bits
    finally:
        ctx.prec = previous


def test_cells_of_the_logarithm() -> None:
    """r = c z - 1 is exact and below 2**-8, sums start with the larger term, and r**3 is small beside the logarithm."""
    cells = logarithm.cells()
    for index in range(logarithm.CELLS):
        first, bits, digits = logarithm.cell(index)
        c = Fraction(cells.inverse[index])
        assert (c * 2**digits).denominator == 1
        # numbers of the cell are multiples of this unit, so is r, of 53 bits if it is below 2**53 units
        unit = Fraction(1, 2 ** (53 if first < 2**bits else 52)) / (1 if c == 1 else 2**digits)
        for z in (Fraction(first, 2**bits), Fraction(first + 1, 2**bits) - Fraction(1, 2**53)):
            r = c * z - 1
            assert abs(r) < Fraction(1, 256)
            assert abs(r) < 2**53 * unit
            assert c == 1 or abs(cells.high[index]) >= abs(r)
            if r and z != 1:
                value = abs(math.log1p(float(z - 1)))
                assert float(abs(r)) ** 3 <= 2.0**-15.9 * value
        assert (Fraction(cells.high[index]) * 2**42).denominator == 1
    assert cells.inverse[159] == cells.inverse[160] == 1.0


def test_the_start_of_the_cube_root() -> None:
    z = np.linspace(1, 2, 4001)
    start = np.polyval(root._cbrt_start()[::-1], z)
    assert np.abs(start * np.cbrt(z) - 1).max() < 0.00025


def test_the_bits_of_two_over_pi() -> None:
    words = circular._two_over_pi()
    total = sum(Fraction(word) * Fraction(2) ** (64 - 64 * i) for i, word in enumerate(words))
    previous, ctx.prec = ctx.prec, 1700
    try:
        rest = 1024 / arb.pi() - arb(total.numerator) / arb(total.denominator)
        assert 0 < rest < arb(2) ** -1340
    finally:
        ctx.prec = previous


def test_a_far_angle_is_reduced_as_exactly_as_stated() -> None:
    m = NumpyMachine(64)
    rng = np.random.default_rng(3)
    x = np.ldexp(rng.integers(1 << 52, 1 << 53, 500).astype(float), rng.integers(-52, 970, 500))
    # the multiples of pi/2 that binary64 numbers come nearest to
    x = np.concatenate([x, [float.fromhex("0x1.6ac5b262ca1ffp+849"), float.fromhex("0x1.951f2p+16")], -x[:50]])
    with np.errstate(all="ignore"):
        k, r = circular.reduce_far(Number(m, x))
    previous, ctx.prec = ctx.prec, 1400
    try:
        for operand, high, low, count in zip(
            x.tolist(), r.hi.value.tolist(), r.lo.value.tolist(), k.tolist(), strict=True
        ):
            steps = arb(operand) * 1024 / arb.pi()
            nearest = (steps - arb(high) * 1024 / arb.pi() + arb(0.5)).floor().unique_fmpz()
            assert nearest is not None
            assert (int(nearest) - int(count)) % 2048 == 0
            error = abs(arb(operand) - arb(nearest) * arb.pi() / 1024 - arb(high) - arb(low))
            assert error < arb(2) ** -125 + abs(arb(high)) * arb(2) ** -97
            assert abs(high) < 2.0**-8.33
    finally:
        ctx.prec = previous


def test_coefficients_of_the_tail() -> None:
    """Taylor coefficients of e**(x*x) erfc(x), from its derivatives 2 x w - 2/sqrt(pi) and 2 w + 2 x w'."""
    previous, ctx.prec = ctx.prec, 400
    try:
        for cell in range(0, error_family.TAIL_CELLS, 37):
            c = arb(error_family.center(cell))
            w = (c * c).exp() * c.erfc()
            slope = 2 * c * w - 2 / arb.pi().sqrt()
            for (highs, lows), exact in zip(error_family.scaled(), (w, slope, w + c * slope), strict=True):
                assert _close(highs[cell], lows[cell], exact)
    finally:
        ctx.prec = previous
