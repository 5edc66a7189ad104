"""The error function and its complement in wide formats."""

from __future__ import annotations

import random
from importlib.util import find_spec
from math import log, sqrt

import pytest
from flint import arb, ctx
from floatlib_wide import assert_compiled_alike, undecided, worst_error

from tlir.floatlib.elementary.wide.circular import guarded
from tlir.floatlib.elementary.wide.error import end
from tlir.floatlib.elementary.wide.error_rows import CELLS, NEAR_ROWS, Rows, rows
from tlir.floatlib.elementary.wide.fixed import DIGIT
from tlir.floatlib.elementary.wide.work import Work, working_digits
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import round_exact
from tlir.floatlib.soft.machine import NumpyMachine

FORMATS = {
    "binary128": Format(15, 112),
    "binary256": Format(19, 236),
    "float64": Format(11, 52),
    "25 bits": Format(8, 24),
    "64 bits": Format(15, 63),
    "the largest exponents": Format(20, 99),
    "150 bits, small exponents": Format(5, 149),
}


def work(fmt: Format) -> Work:
    return guarded(Work(NumpyMachine(64), fmt, working_digits(fmt.precision)))


def table(fmt: Format) -> Rows:
    return rows(end(work(fmt)), work(fmt).point)


def number(fmt: Format, x: float) -> int:
    numerator, denominator = x.as_integer_ratio()
    return round_exact(fmt, 0, numerator, 1 - denominator.bit_length())[0]


def between(fmt: Format, rng: random.Random, low: float, high: float) -> int:
    """A number in [low, high) with all its bits."""
    scale = fmt.precision + 60
    units = int(low * 2**60) + rng.getrandbits(scale) * int((high - low) * 2**60) // (1 << scale)
    return round_exact(fmt, 0, (units << scale) + rng.getrandbits(scale), -60 - scale)[0]


def ordinary(fmt: Format, rng: random.Random, count: int) -> list[int]:
    """All sizes whose results are neither 0 nor 1 nor 2, both signs; the smallest operands; and the ends of rows."""
    # where erfc is the smallest number, and where erf is 1
    last, full = sqrt((fmt.precision - fmt.emin) * log(2)), sqrt((fmt.precision + 1) * log(2))
    words = [between(fmt, rng, 0.0, 0.5) for _ in range(count)] + [between(fmt, rng, 0.5, 4.0) for _ in range(count)]
    words += [between(fmt, rng, 0.5, full + 0.3) for _ in range(count)]
    words += [between(fmt, rng, 0.5, last) for _ in range(count)]
    words += [between(fmt, rng, 0.98 * last, 1.02 * last) for _ in range(count // 2)]
    for _ in range(count):
        field = rng.randint(max(fmt.emin, -2 * fmt.precision), -2) + fmt.bias
        words.append(field << fmt.fraction_bits | rng.getrandbits(fmt.fraction_bits))
    words += [rng.getrandbits(fmt.fraction_bits) >> rng.randrange(fmt.fraction_bits) | 1 for _ in range(count // 4)]
    half, scale = fmt.encode(0, 1, -1), table(fmt).scale
    # K / t - K is exact for powers of two among the ends of t's rows, sqrt(j/64) for squares among those of x*x
    exact = [half, *(number(fmt, x) for x in (1 / 8, 1 / 4, 3 / 8, scale, 3.0 * scale, 7.0 * scale))]
    ends = [number(fmt, scale * CELLS / rng.randrange(2, CELLS) - scale) for _ in range(6)]
    ends += [number(fmt, sqrt(rng.randrange(1, NEAR_ROWS) / CELLS)) for _ in range(6)]
    words += [word + d for word in exact + ends for d in (-1, 0, 1)]
    return [word ^ (rng.getrandbits(1) * fmt.sign_mask) for word in words]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_operands_of_all_sizes(name: str, kind: str) -> None:
    fmt, rng = FORMATS[kind], random.Random(name + kind)
    words = ordinary(fmt, rng, 40)
    words += [fmt.max_finite, fmt.lowest_finite, fmt.encode(0, 1, 4), fmt.encode(1, 1, 4), fmt.encode(0, 1, 12)]
    left = undecided(name, fmt, [(word,) for word in words])
    # erfc x for |x| just at half a last place of 1
    assert len(left) <= 2


@pytest.mark.parametrize("kind", ["binary128", "binary256", "float64", "150 bits, small exponents"])
@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_values_are_within_their_bound(name: str, kind: str) -> None:
    fmt, rng = FORMATS[kind], random.Random(kind)
    last = end(work(fmt))
    words = [word for word in ordinary(fmt, rng, 40) if fmt.magnitude(word) < fmt.encode(0, last, 0)]
    worst = worst_error(name, fmt, [(word,) for word in words])
    assert worst <= 1
    assert worst > 1e-4


@pytest.mark.parametrize("kind", ["binary128", "binary256", "25 bits"])
def test_polynomials_are_within_their_bound(kind: str) -> None:
    """Of half of erf(sqrt z)/sqrt z, and of e**(x*x) erfc(x)/t, at both ends of each row and inside."""
    fmt = FORMATS[kind]
    found = table(fmt)
    previous, ctx.prec = ctx.prec, DIGIT * work(fmt).point + 64
    try:
        columns = [entry.values() for entry in found.tables]
        ctx.prec = 12 * ctx.prec
        for row in range(found.count):
            for place in (0.0, 0.37, 0.999, 1.0):
                y = arb(place) / CELLS
                value, power = arb(0), arb(1)
                for column, lifted in zip(columns, found.lifted, strict=True):
                    value += power * (column[row] - (1 << found.lift if lifted else 0))
                    power *= y
                if row < NEAR_ROWS:
                    z = arb(row + 1) / CELLS - y
                    exact = z.sqrt().erf() / z.sqrt() if place < 1.0 or row else 2 / arb.pi().sqrt()
                else:
                    t = arb(found.first + row - NEAR_ROWS) / CELLS + y
                    x = found.scale / t - found.scale
                    exact = (x * x).exp() * x.erfc() / t
                error = abs(value - exact / 2)
                assert error < found.error + 2.0 ** -(DIGIT * work(fmt).point + 20), (row, place)
    finally:
        ctx.prec = previous


@pytest.mark.skipif(find_spec("llvmlite") is None, reason="needs llvmlite")
@pytest.mark.parametrize("kind", ["binary128", "25 bits"])
def test_compiled_loops_give_the_same(kind: str) -> None:
    fmt, rng = FORMATS[kind], random.Random(kind)
    assert fmt.inf is not None
    words = [*ordinary(fmt, rng, 80), 0, fmt.sign_mask, fmt.inf, fmt.inf | fmt.sign_mask, fmt.inf + 1, fmt.max_finite]
    assert_compiled_alike("erfc", fmt, [(word,) for word in words])
