"""Inverse trigonometric functions in wide formats."""

from __future__ import annotations

import random
from importlib.util import find_spec

import pytest
from floatlib_wide import assert_compiled_alike, undecided, worst_error

from tlir.floatlib.elementary.wide.arc import STEPS
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import round_exact

FORMATS = {
    "binary128": Format(15, 112),
    "binary256": Format(19, 236),
    "float64": Format(11, 52),
    "30 bits": Format(8, 29),
    "64 bits": Format(15, 63),
    "150 bits, small exponents": Format(5, 149),
}
Rows = list[tuple[int, ...]]


def random_word(fmt: Format, rng: random.Random, low: int, high: int) -> int:
    field = rng.randint(max(low, fmt.emin), min(high, fmt.emax)) + fmt.bias
    fraction = rng.getrandbits(fmt.fraction_bits)
    if rng.randrange(4) == 0:
        fraction = fraction >> rng.randrange(fmt.fraction_bits)
    return rng.getrandbits(1) << (fmt.width - 1) | field << fmt.fraction_bits | fraction


def subnormal(fmt: Format, rng: random.Random) -> int:
    return rng.getrandbits(1) << (fmt.width - 1) | (rng.getrandbits(fmt.fraction_bits) >> rng.randrange(10)) | 1


def inside_unit(fmt: Format, rng: random.Random, count: int) -> Rows:
    """Numbers in (-1, 1) of ordinary and of tiny size, and close to ±1 and to ±sqrt(1/2)."""
    one = fmt.encode(0, 1, 0)
    words = [random_word(fmt, rng, -12, -1) for _ in range(count)]
    words += [random_word(fmt, rng, fmt.emin, -10) for _ in range(count // 4)]
    words += [subnormal(fmt, rng) for _ in range(count // 8)]
    words += [one - 1 - (rng.getrandbits(fmt.fraction_bits) >> rng.randrange(fmt.fraction_bits)) for _ in range(count)]
    words += [one - 1 - n for n in range(8)]
    root = round_exact(fmt, 0, int("16A09E667F3BCC908B2FB1366EA957D3E3ADEC17512775099DA2F590B0667322A", 16), -257)[0]
    words += [root + d for d in range(-3, 4)]
    return [(word ^ (rng.getrandbits(1) * fmt.sign_mask),) for word in words]


def step_ends(fmt: Format, rng: random.Random) -> list[int]:
    """Numbers at and beside (2 j + 1)/512 and j/256, the ends and the middles of the table's cells."""
    places = [(2 * j + 1, -9) for j in (0, 1, 2, 127, 254, 255)] + [(j, -8) for j in (1, 2, 3, 128, 255, 256)]
    places += [(2 * rng.randrange(STEPS) + 1, -9) for _ in range(6)]
    return [round_exact(fmt, 0, n, e)[0] + d for n, e in places for d in (-1, 0, 1)]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", ["asin", "acos"])
def test_asin_and_acos(name: str, kind: str) -> None:
    fmt, rng = FORMATS[kind], random.Random(name + kind)
    one = fmt.encode(0, 1, 0)
    rows = inside_unit(fmt, rng, 60) + [(word,) for word in step_ends(fmt, rng) if word < one]
    rows += [(one | sign,) for sign in (0, fmt.sign_mask)] + [(one + 1,), (one + 1 | fmt.sign_mask,), (fmt.max_finite,)]
    assert len(undecided(name, fmt, rows)) <= 1


@pytest.mark.parametrize("kind", FORMATS)
def test_atan(kind: str) -> None:
    fmt, rng = FORMATS[kind], random.Random(kind)
    words = [random_word(fmt, rng, -12, 12) for _ in range(100)] + step_ends(fmt, rng)
    words += [random_word(fmt, rng, fmt.emin, fmt.emax) for _ in range(60)]
    words += [subnormal(fmt, rng) for _ in range(20)] + [fmt.max_finite, fmt.lowest_finite]
    words += [fmt.encode(0, 1, 0) + d for d in range(-3, 4)]
    assert len(undecided("atan", fmt, [(word,) for word in words])) <= 1


def pairs(fmt: Format, rng: random.Random, count: int) -> Rows:
    """Operands of like and of unlike size, of all quadrants, with quotients at the ends of cells, and equal ones."""
    rows: Rows = []
    for _ in range(count):
        exponent = rng.randint(fmt.emin + 12, fmt.emax - 12)
        near = [random_word(fmt, rng, exponent - 10, exponent + 10) for _ in range(2)]
        rows += [(near[0], near[1]), (near[0], near[0] ^ (rng.getrandbits(1) * fmt.sign_mask))]
        rows.append((random_word(fmt, rng, fmt.emin, fmt.emax), random_word(fmt, rng, fmt.emin, fmt.emax)))
        rows.append((subnormal(fmt, rng), subnormal(fmt, rng)))
        rows.append((subnormal(fmt, rng), random_word(fmt, rng, -5, 5)))
    one = fmt.encode(0, 1, 0)
    rows += [(y, x) for end in step_ends(fmt, rng) for y, x in ((end, one), (one, end), (end, one | fmt.sign_mask))]
    return rows


@pytest.mark.parametrize("kind", FORMATS)
def test_atan2(kind: str) -> None:
    """Only where the quotient is halfway between two subnormal numbers, and the angle next to it, is one left out."""
    fmt, rng = FORMATS[kind], random.Random(kind)
    left = undecided("atan2", fmt, pairs(fmt, rng, 30))
    for y, x in left:
        quotient = fmt.decode(y)[1] << fmt.precision + 2, fmt.decode(x)[1]
        assert quotient[0] % quotient[1] == 0, (hex(y), hex(x))


@pytest.mark.parametrize("kind", ["binary128", "binary256", "float64", "30 bits"])
@pytest.mark.parametrize("name", ["asin", "acos", "atan", "atan2"])
def test_values_are_within_their_bound(name: str, kind: str) -> None:
    fmt, rng = FORMATS[kind], random.Random(kind)
    if name == "atan2":
        rows = [row for row in pairs(fmt, rng, 30) if all(not fmt.is_zero(word) for word in row)]
    elif name == "atan":
        rows = [(random_word(fmt, rng, -12, 12),) for _ in range(150)]
        rows += [(random_word(fmt, rng, fmt.emin, fmt.emax),) for _ in range(50)]
    else:
        rows = inside_unit(fmt, rng, 60)
    worst = worst_error(name, fmt, rows)
    assert worst <= 1
    assert worst > 1e-4


@pytest.mark.skipif(find_spec("llvmlite") is None, reason="needs llvmlite")
@pytest.mark.parametrize("kind", ["binary128", "30 bits"])
def test_compiled_loops_give_the_same(kind: str) -> None:
    fmt, rng = FORMATS[kind], random.Random(kind)
    assert fmt.inf is not None
    rows = pairs(fmt, rng, 60)
    rows += [(y, x) for y in (0, fmt.inf, fmt.inf + 1, fmt.sign_mask) for x in (0, fmt.inf, 1, fmt.sign_mask)]
    assert_compiled_alike("atan2", fmt, rows)
    rows = [*inside_unit(fmt, rng, 100), (0,), (fmt.inf,), (fmt.inf + 1,), (fmt.max_finite,)]
    assert_compiled_alike("acos", fmt, rows)
