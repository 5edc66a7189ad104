"""Circular functions in wide formats: angles of all sizes, and those nearest to multiples of pi/2."""

from __future__ import annotations

import random
from functools import cache
from importlib.util import find_spec

import pytest
from flint import arb, ctx
from floatlib_wide import assert_compiled_alike, undecided, worst_error

from tlir.floatlib.elementary.wide.circular import STEPS
from tlir.floatlib.elementary.wide.loop import applies
from tlir.floatlib.format import Format

NAMES = ("sine", "cosine", "tan")
FORMATS = {
    "binary128": Format(15, 112),
    "binary256": Format(19, 236),
    "float64": Format(11, 52),
    "the largest exponents": Format(20, 99),
    "30 bits": Format(8, 29),
    "150 bits, small exponents": Format(5, 149),
}


@cache
def _two_over_pi(bits: int) -> int:
    """floor(2**bits * 2/pi)."""
    previous, ctx.prec = ctx.prec, bits + 64
    try:
        floor = (arb(2) ** (bits + 1) / arb.pi()).floor().unique_fmpz()
    finally:
        ctx.prec = previous
    assert floor is not None
    return int(floor)


def _turns(fmt: Format, exponent: int, more: int) -> tuple[int, int]:
    """2**(exponent - fraction_bits) * 2/pi modulo 1, with ``more`` bits: numerator and bits."""
    known = fmt.emax + 4 * fmt.precision + 64 + more
    drop = known - more - (exponent - fmt.fraction_bits)
    return (_two_over_pi(known) >> drop) % (1 << more), more


def denominators(fmt: Format, exponent: int) -> list[int]:
    """Those of the convergents of ``_turns`` that are below 2**precision. A fraction nearest to an integer among all
    multiples by a number below a denominator is that of the denominator before it."""
    numerator, bits = _turns(fmt, exponent, 2 * fmt.precision + 64)
    a, b = 1 << bits, numerator
    before, q, found = 0, 1, []
    while q < 1 << fmt.precision and b:
        found.append(q)
        a, (quotient, b) = b, divmod(a, b)
        before, q = q, quotient * q + before
    return found


def hardest(fmt: Format, exponent: int) -> int:
    """The word of a number with that exponent whose angle is very near a multiple of pi/2."""
    q = denominators(fmt, exponent)[-1]
    while q < 1 << fmt.fraction_bits:
        q *= 2 if 2 * q >= 1 << fmt.fraction_bits else (1 << fmt.fraction_bits) // q
    return (exponent + fmt.bias) << fmt.fraction_bits | (q & fmt.fraction_mask)


def _random_words(fmt: Format, rng: random.Random, low: int, high: int, count: int) -> list[int]:
    words = []
    for _ in range(count):
        field = rng.randint(max(low, fmt.emin), min(high, fmt.emax)) + fmt.bias
        words.append(
            rng.getrandbits(1) << (fmt.width - 1) | field << fmt.fraction_bits | rng.getrandbits(fmt.fraction_bits)
        )
    return words


def _word_of_ball(fmt: Format, ball: arb) -> int:
    """The number of the format next below a ball's middle, which is normal and positive."""
    significand, exponent = (int(part) for part in ball.mid().man_exp())
    leading = significand.bit_length() + exponent - 1
    kept = significand >> (significand.bit_length() - fmt.precision)
    return (leading + fmt.bias) << fmt.fraction_bits | (kept & fmt.fraction_mask)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_angles_of_all_sizes(name: str, kind: str) -> None:
    fmt, rng = FORMATS[kind], random.Random(name + kind)
    assert applies(name, fmt)
    words = _random_words(fmt, rng, -14, 10, 150) + _random_words(fmt, rng, fmt.emin, -8, 30)
    words += _random_words(fmt, rng, 8, fmt.emax, 60) + _random_words(fmt, rng, fmt.emax, fmt.emax, 10)
    words += [fmt.max_finite_magnitude, fmt.max_finite_magnitude - 1]
    words += [rng.getrandbits(fmt.fraction_bits) >> rng.randrange(fmt.fraction_bits) for _ in range(20)]
    assert len(undecided(name, fmt, [(word,) for word in words])) <= 1


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_beside_multiples_of_a_quarter_turn(name: str, kind: str) -> None:
    """None is undecided, not even of the hardest."""
    fmt, rng = FORMATS[kind], random.Random(name + kind)
    exponents = [rng.randrange(fmt.emax + 1) for _ in range(40)] + [fmt.emax, fmt.emax - 1, 0, 1, 2, 3]
    words = [hardest(fmt, exponent) for exponent in exponents]
    words += [word ^ fmt.sign_mask for word in words[::4]] + [word + 1 for word in words[::4]]
    assert undecided(name, fmt, [(word,) for word in words]) == []


@pytest.mark.parametrize("name", NAMES)
def test_beside_the_ends_of_steps(name: str) -> None:
    fmt, rng = FORMATS["binary128"], random.Random(name)
    previous, ctx.prec = ctx.prec, 400
    try:
        balls = [arb.pi() * (2 * k + 1) / (4 * STEPS) for k in [*range(6), *range(508, 516), 1023]]
        balls += [arb.pi() * k / (2 * STEPS) for k in [1, 2, *rng.sample(range(3, 4096), 10), 256, 512, 768]]
        words = [_word_of_ball(fmt, ball) + d for ball in balls for d in (-1, 0, 1, 2)]
    finally:
        ctx.prec = previous
    near = (fmt.bias - 10) << fmt.fraction_bits  # from here on angles are reduced
    assert undecided(name, fmt, [(word,) for word in [*words, near - 1, near, near + 1]]) == []


@pytest.mark.parametrize("kind", ["binary128", "binary256", "float64", "30 bits"])
@pytest.mark.parametrize("name", NAMES)
def test_values_are_within_their_bound(name: str, kind: str) -> None:
    fmt, rng = FORMATS[kind], random.Random(kind)
    words = _random_words(fmt, rng, -13, 12, 150) + _random_words(fmt, rng, -40, 100, 50)
    words += [hardest(fmt, rng.randrange(fmt.emax)) for _ in range(10)]
    worst = worst_error(name, fmt, [(word,) for word in words])
    assert worst <= 1
    assert worst > 1e-5  # the bound means something


def _smallest(fmt: Format, exponents: range) -> float:
    """A bound below the distance, in quarter turns, of all angles with those exponents from whole quarter turns, in
    units of 2**-(precision + exponent_bits)."""
    smallest = 1.0
    for exponent in exponents:
        numerator, bits = _turns(fmt, exponent, 2 * fmt.precision + 64)
        q = denominators(fmt, exponent)[-1]
        rest = q * numerator % (1 << bits)
        distance = min(rest, (1 << bits) - rest) - q
        smallest = min(smallest, distance / (1 << (bits - fmt.precision - fmt.exponent_bits)))
    return smallest


@pytest.mark.parametrize(("kind", "step"), [("float64", 1), ("binary128", 16), ("30 bits", 1)])
def test_no_angle_is_nearer_to_a_multiple_than_the_reduction_keeps(kind: str, step: int) -> None:
    """``circular.reduce`` keeps precision + exponent_bits - 4 bits more than the working precision, of the fraction of
    a quarter turn's 256th."""
    fmt = FORMATS[kind]
    assert _smallest(fmt, range(-10, fmt.emax + 1, step)) * STEPS > 2.0**3


@pytest.mark.exhaustive
def test_no_angle_of_binary128_is_nearer() -> None:
    fmt = FORMATS["binary128"]
    assert _smallest(fmt, range(-10, fmt.emax + 1)) * STEPS > 2.0**3


def test_far_more_exponent_bits_have_no_kernel() -> None:
    """The table of 2/pi has a bit for each exponent."""
    assert not applies("sine", Format(21, 112))


@pytest.mark.skipif(find_spec("llvmlite") is None, reason="needs llvmlite")
@pytest.mark.parametrize("kind", ["binary128", "30 bits"])
def test_compiled_loops_give_the_same(kind: str) -> None:
    fmt, rng = FORMATS[kind], random.Random(kind)
    words = _random_words(fmt, rng, -14, 20, 300) + _random_words(fmt, rng, fmt.emin, fmt.emax, 300)
    words += [hardest(fmt, rng.randrange(fmt.emax)) for _ in range(20)] + [0, fmt.sign_mask, *specials(fmt)]
    for name in ("sine", "tan"):
        assert_compiled_alike(name, fmt, [(word,) for word in words])


def specials(fmt: Format) -> list[int]:
    """Infinities and NaN."""
    assert fmt.inf is not None
    return [fmt.inf, fmt.inf | fmt.sign_mask, fmt.inf + 1, fmt.inf | 1 << (fmt.fraction_bits - 1)]
