"""Quotients and roots at the operands that make an estimated digit wrong: all ones, digits at both ends, squares."""

from __future__ import annotations

import random
from math import isqrt
from typing import Any

import numpy as np
import pytest
from floatlib_soft import ints_of

from tlir.floatlib.soft import division
from tlir.floatlib.soft.machine import NumpyMachine
from tlir.floatlib.soft.uint import Uint, limb_count

PRECISIONS = [(32, 1), (32, 2), (32, 4), (32, 8), (32, 11), (32, 14), (32, 24), (64, 24), (64, 40), (64, 46), (64, 47),
              (64, 48), (64, 49), (64, 50), (64, 51), (64, 52), (64, 53), (64, 54), (64, 61), (64, 62), (64, 63),
              (64, 64), (64, 65), (64, 80), (64, 96), (64, 97), (64, 113), (64, 127), (64, 128), (64, 129), (64, 143),
              (64, 151), (64, 191), (64, 237), (64, 400)]  # fmt: skip


def uint_of(machine: NumpyMachine, values: list[int], bits: int) -> Uint:
    mask = (1 << machine.bits) - 1
    limbs = [
        np.array([(value >> (machine.bits * k)) & mask for value in values], dtype=machine.type)
        for k in range(limb_count(machine, bits))
    ]
    return Uint(machine, limbs, bits)


def values_of(x: Uint, count: int) -> list[int]:
    limbs = [np.broadcast_to(limb, (count,)).tolist() for limb in x.limbs]
    return [sum(limb << (x.m.bits * k) for k, limb in enumerate(row)) for row in zip(*limbs, strict=True)]


def significands(bits: int, rng: random.Random) -> list[int]:
    """Numbers with the highest of ``bits`` bits set: ends, runs of ones and zeros, single bits, random."""
    top = 1 << (bits - 1)
    values = {top, 2 * top - 1, top + 1 if bits > 1 else top, max(2 * top - 2, top)}
    for _ in range(60):
        run, other = rng.randrange(bits), rng.randrange(bits)
        values |= {top | ((1 << run) - 1), (2 * top - 1) ^ ((1 << run) - 1) | top, top | 1 << run}
        values |= {top | rng.getrandbits(bits), top | (((1 << run) - 1) << other) & (top - 1)}
        # the leading 53 bits decide the estimate: what follows them is all ones or all zeros
        if bits > 53:
            head = (top | rng.getrandbits(bits)) >> (bits - 53)
            values |= {head << (bits - 53), (head << (bits - 53)) | ((1 << (bits - 53)) - 1)}
    return sorted(value & (2 * top - 1) | top for value in values)


@pytest.mark.parametrize(("word", "precision"), PRECISIONS)
def test_quotients(word: int, precision: int) -> None:
    rng = random.Random(precision)
    machine = NumpyMachine(word)
    fraction_bits = precision + 2
    pool = significands(precision, rng)
    pairs = [(rng.choice(pool), rng.choice(pool)) for _ in range(4000)]
    limit = 1 << precision
    for divisor in [rng.choice(pool) for _ in range(1500)]:
        # numerators for which the quotient is just at, above and below an integer with runs of zeros and ones in it
        quotient = limit // 2 | rng.getrandbits(precision) & ~((1 << rng.randrange(precision + 1)) - 1)
        quotient = rng.choice([quotient, quotient | ((1 << rng.randrange(precision)) - 1)])
        numerator = quotient * divisor >> (precision - 1)
        pairs += [(n, divisor) for n in (numerator, numerator + 1, numerator - 1) if limit // 2 <= n < limit]
    pairs = [(n, d) for n, d in pairs if n < 2 * d]
    numerators, divisors = (list(column) for column in zip(*pairs, strict=True))
    with np.errstate(all="ignore"):
        quotient_uint, inexact = division.divide(
            uint_of(machine, numerators, precision), uint_of(machine, divisors, precision), fraction_bits
        )
    want = [divmod(n << fraction_bits, d) for n, d in pairs]
    assert values_of(quotient_uint, len(pairs)) == [q for q, _ in want]
    assert np.broadcast_to(inexact, (len(pairs),)).tolist() == [r != 0 for _, r in want]


@pytest.mark.parametrize(("word", "precision"), PRECISIONS)
def test_square_roots(word: int, precision: int) -> None:
    rng = random.Random(precision)
    machine = NumpyMachine(word)
    size = precision + 2
    least, limit = 1 << (2 * size - 2), 1 << (2 * size)
    roots = significands(size, rng) + [(1 << size) - 1 - k for k in range(20)]
    values = [v for root in roots for v in (root**2 - 1, root**2, root**2 + 1, root * (root + 1), root**2 + 2 * root)]
    # radicands as square_root gets them from significands, and any others
    values += [s << (2 * size - precision - k) for s in significands(precision, rng) for k in (0, 1)]
    values += [rng.randrange(least, limit) for _ in range(2000)]
    values = [value for value in values if least <= value < limit]
    with np.errstate(all="ignore"):
        root_uint, inexact = division.square_root(uint_of(machine, values, 2 * size))
    assert values_of(root_uint, len(values)) == [isqrt(value) for value in values]
    assert np.broadcast_to(inexact, (len(values),)).tolist() == [isqrt(value) ** 2 != value for value in values]


@pytest.mark.parametrize(("word", "precision"), [(64, 113), (64, 64), (64, 237), (32, 11)])
@pytest.mark.parametrize("push", [-1, 1])
def test_the_bounds_leave_room_for_rounding_errors_of_either_sign(word: int, precision: int, push: int) -> None:
    """Every binary64 result moved by one unit in the last place: the same digits come out."""

    class Pushed(NumpyMachine):
        def real_divide(self, x: Any, y: Any) -> Any:
            return np.nextafter(x / y, push * np.inf)

        def real_sqrt(self, x: Any) -> Any:
            return np.nextafter(np.sqrt(x), push * np.inf)

    rng = random.Random(precision)
    machine = Pushed(word)
    pool = significands(precision, rng)
    pairs = [(rng.choice(pool), rng.choice(pool)) for _ in range(4000)]
    pairs = [(n, d) for n, d in pairs if n < 2 * d]
    numerators, divisors = (list(column) for column in zip(*pairs, strict=True))
    with np.errstate(all="ignore"):
        quotient, _ = division.divide(
            uint_of(machine, numerators, precision), uint_of(machine, divisors, precision), precision + 2
        )
        assert values_of(quotient, len(pairs)) == [(n << (precision + 2)) // d for n, d in pairs]
        values = [rng.randrange(1 << (2 * precision + 2), 1 << (2 * precision + 4)) for _ in range(2000)]
        root, _ = division.square_root(uint_of(machine, values, 2 * precision + 4))
    assert values_of(root, len(values)) == [isqrt(value) for value in values]


def test_ints_of_limbs() -> None:
    assert ints_of(128, np.array([[1, 2]], dtype=np.uint64)) == [1 + 2 * 2**64]
