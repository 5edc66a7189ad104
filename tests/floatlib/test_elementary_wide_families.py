"""Exponentials, logarithms, hyperbolic functions, powers and roots in wide formats against MPFR, and what the kernels
give before it is rounded against Arb."""

from __future__ import annotations

import random
from fractions import Fraction
from importlib.util import find_spec

import numpy as np
import pytest
from elementary_hardest import FOUND, PUBLISHED
from flint import arb, ctx
from floatlib_wide import ARB, MPFR, evaluated, undecided, worst_error

from tlir.floatlib.elementary.scalar import elementary
from tlir.floatlib.elementary.wide import area, exponential, hyperbolic, inverse_error, logarithm, power, root, sums
from tlir.floatlib.elementary.wide.fixed import MASK
from tlir.floatlib.elementary.wide.functions import FUNCTIONS
from tlir.floatlib.elementary.wide.loop import loop
from tlir.floatlib.elementary.wide.work import Operand, Work, working_digits
from tlir.floatlib.format import Format
from tlir.floatlib.soft import numpy_loop
from tlir.floatlib.soft.catalog import MAY_BE_EXACT, UNDECIDED
from tlir.floatlib.soft.machine import NumpyMachine
from tlir.floatlib.soft.uint import Uint
from tlir.floatlib.words import from_ints, limbs, to_ints

FAMILIES = (exponential, hyperbolic, logarithm, area, power, root, inverse_error, sums)
NAMES = tuple(name for family in FAMILIES for name in family.FUNCTIONS)
FORMATS = {
    "binary128": Format(15, 112),
    "binary256": Format(19, 236),
    "64 bits of precision": Format(15, 63),
    "25 bits": Format(8, 24),
    "129 bits, large exponents": Format(20, 128),
    "150 bits, small exponents": Format(5, 149),
}

FLOAT64 = Format(11, 52)

GROWING = ("exponential", "exponential_minus_one", "exp2", "sinh", "cosh", "power")

Row = tuple[int, ...]


def _word(fmt: Format, exponent: int, fraction: int, sign: int = 0) -> int:
    exponent = max(min(exponent, fmt.emax), fmt.emin)
    return sign << (fmt.width - 1) | (exponent + fmt.bias) << fmt.fraction_bits | fraction & fmt.fraction_mask


def _words(fmt: Format, rng: random.Random, count: int) -> list[int]:
    """Numbers of ordinary exponents, beside one, beside powers of two, and beside the ends of the logarithm's cells."""
    bits = fmt.fraction_bits
    words = [_word(fmt, rng.randrange(-20, 12), rng.getrandbits(bits), rng.getrandbits(1)) for _ in range(count)]
    words += [_word(fmt, rng.randint(fmt.emin, fmt.emax), rng.getrandbits(bits)) for _ in range(count // 4)]
    one = fmt.encode(0, 1, 0)
    for _ in range(count // 2):
        step = 1 << rng.randrange(bits)
        words += [one + step + rng.randrange(-2, 3), one - step + rng.randrange(-2, 3)]
        words.append(_word(fmt, rng.randrange(-40, 8), 0) + rng.randrange(-2, 3) | rng.getrandbits(1) << fmt.width - 1)
        words.append(_word(fmt, rng.choice([-1, 0, 0, 3]), rng.randrange(256) << bits - 8) + rng.randrange(-2, 3))
    return words


def _rows(name: str, fmt: Format, count: int) -> list[Row]:
    rng = random.Random(name + str(fmt))
    words = _words(fmt, rng, count)
    if FUNCTIONS[name].operands == 1:
        return [(word,) for word in words]
    others = _words(fmt, rng, count)
    rng.shuffle(others)
    return list(zip(words, others, strict=True))


def _inside(name: str, fmt: Format, rows: list[Row]) -> list[Row]:
    """The rows whose value the kernel computes."""
    m, function = NumpyMachine(64), FUNCTIONS[name]
    operands = []
    for column in zip(*rows, strict=True):
        words = from_ints(fmt, list(column))
        parts = [words[..., k] for k in range(limbs(fmt))] if limbs(fmt) > 1 else [words.astype(np.uint64)]
        operands.append(Operand(m, fmt, Uint(m, parts, fmt.width)))
    work = Work(m, fmt, working_digits(fmt.precision))
    outside = np.zeros(len(rows), dtype=bool)
    for here, _ in function.cases(work, *operands):
        outside |= here
    one = fmt.encode(0, 1, 0)
    ones = {one | (fmt.sign_mask if sign else 0) for sign in function.ones}
    kept = [row for row, out in zip(rows, outside, strict=True) if not (out or ones & set(row) or 0 in row)]
    # a value beyond all numbers has too many bits for an oracle, and a power may give any such value for it
    kept = [row for row in kept if max(_leading(fmt, word) for word in row) < 30]
    if name == "log_add_exp":
        kept = [row for row in kept if max(_leading(fmt, word) for word in row) < 10]
    if name == "power":
        kept = [row for row in kept if _leading(fmt, row[1]) + abs(_leading(fmt, row[0])).bit_length() < 4]
    return kept


def _leading(fmt: Format, word: int) -> int:
    return fmt.decode(word)[2] + fmt.decode(word)[1].bit_length()


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", [name for name in NAMES if name in MPFR])
def test_words_and_flags_are_those_of_mpfr(name: str, kind: str) -> None:
    fmt = FORMATS[kind]
    rows = _rows(name, fmt, 40)
    if name in GROWING:
        # others are beyond MPFR's exponents
        rows = [row for row in rows if max(_leading(fmt, word) for word in row) < 24]
    # beside one, series of few terms come as near to midpoints as their next term
    assert len(undecided(name, fmt, rows)) <= len(rows) // 10


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_values_are_within_their_bound(name: str, kind: str) -> None:
    assert name in ARB
    fmt = FORMATS[kind]
    with np.errstate(all="ignore"):
        rows = _inside(name, fmt, _rows(name, fmt, 40))
        value = evaluated(name, fmt, rows)
        worst = worst_error(name, fmt, rows)
    assert worst <= 1
    assert worst > (1e-10 if name == "power" else 1e-6)  # the bound means something
    digits = [np.broadcast_to(d, len(rows)) for d in value.significand.digits]
    assert all(int(d.max()) <= MASK for d in digits)
    units = [sum(int(d[k]) << 30 * i for i, d in enumerate(digits)) for k in range(len(rows))]
    if value.zeros is not None:
        assert max(30 * len(digits) - u.bit_length() for u in units) <= value.zeros


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["binary128", "binary256", "25 bits"])
def test_ordinary_operands_are_decided(name: str, kind: str) -> None:
    fmt, rng = FORMATS[kind], random.Random(name)
    low = 0 if name == "acosh" else -9
    high = 0 if name in ("atanh", "erf_inv") else 4
    columns = []
    for _ in range(FUNCTIONS[name].operands):
        words = [_word(fmt, rng.randrange(low, high), rng.getrandbits(fmt.fraction_bits)) for _ in range(600)]
        columns.append(from_ints(fmt, words))
    _, marks = numpy_loop.run(loop(name, fmt), tuple(columns))
    assert marks is not None
    assert not marks.any()


@pytest.mark.parametrize(("name", "operands"), [(name, operands) for name, *operands in PUBLISHED + FOUND])
def test_hardest_operands_of_float64_are_decided(name: str, operands: list[str]) -> None:
    fmt = FLOAT64
    row = tuple(int(np.float64(float.fromhex(text)).view(np.uint64)) for text in operands)
    words, marks = numpy_loop.run(loop(name, fmt, True), tuple(np.array([word], dtype=np.uint64) for word in row))
    assert marks is not None
    assert (int(words[0]), int(marks[0])) == elementary(name, fmt, *row)


def test_exact_values_are_marked_or_have_no_flags() -> None:
    fmt = FORMATS["binary128"]

    def number(value: int, exponent: int = 0) -> int:
        return fmt.encode(int(value < 0), abs(value), exponent)

    rows = [
        ("exp2", (number(-30),), number(1, -30)),
        ("log2", (number(1, 77),), number(77)),
        ("log10", (number(10**20),), number(20)),
        ("rsqrt", (number(1, -40),), number(1, 20)),
        ("cbrt", (number(-(12345**3)),), number(-12345)),
        ("hypot", (number(5), number(-12)), number(13)),
        ("power", (number(-3), number(35)), number(-(3**35))),
        ("power", (number(25), number(-1, -1)), None),
        ("power", (number(81), number(3, -2)), number(27)),
    ]
    for name, operands, result in rows:
        words, marks = numpy_loop.run(loop(name, fmt, True), tuple(from_ints(fmt, [word]) for word in operands))
        assert marks is not None
        if result is None:
            assert marks[0] == 1
        else:
            assert to_ints(fmt, words)[0] == result
            assert marks[0] & MAY_BE_EXACT
        words, marks = numpy_loop.run(loop(name, fmt, False), tuple(from_ints(fmt, [word]) for word in operands))
        assert marks is not None
        assert marks[0] == 0


def test_a_value_on_a_midpoint_is_undecided() -> None:
    """3**72 has 115 bits, of which the last two are 01, and (2**112 + 1) 3 has 114 bits."""
    fmt = FORMATS["binary128"]
    base = fmt.encode(0, (1 << 57) - 1, 0)
    square = ((1 << 57) - 1) ** 2
    assert square.bit_length() == fmt.precision + 1
    assert square % 2
    words = tuple(from_ints(fmt, [word]) for word in (base, fmt.encode(0, 2, 0)))
    for flags in (False, True):
        _, marks = numpy_loop.run(loop("power", fmt, flags), words)
        assert marks is not None
        assert marks[0] == UNDECIDED


@pytest.mark.skipif(find_spec("llvmlite") is None, reason="needs llvmlite")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("exponential", "binary256"),
        ("log_plus_one", "binary128"),
        ("cbrt", "25 bits"),
        ("power", "64 bits of precision"),
    ],
)
def test_compiled_loops_give_the_same(name: str, kind: str) -> None:
    from tlir.floatlib.soft import llvm

    fmt = FORMATS[kind]
    rows = _rows(name, fmt, 40)
    rows += [tuple(reversed(row)) for row in rows]
    columns = tuple(from_ints(fmt, list(column)) for column in zip(*rows, strict=True))
    kernel = loop(name, fmt, True)
    words, marks = numpy_loop.run(kernel, columns)
    compiled, compiled_marks = llvm.run(kernel, columns)
    assert np.array_equal(words, compiled)
    assert np.array_equal(marks, compiled_marks)


@pytest.mark.parametrize("kind", ["binary128", "binary256", "129 bits, large exponents"])
@pytest.mark.parametrize("name", ["exponential", "exponential_minus_one", "logistic", "exp2"])
def test_beside_the_ends_of_steps(name: str, kind: str) -> None:
    """Numbers next to multiples of log(2)/65536, or of 1/65536, up to the largest."""
    fmt, rng = FORMATS[kind], random.Random(name + kind)
    steps = [*range(1, 6), 255, 256, 257, 65535, 65536, 65537, *(rng.getrandbits(20) + 1 for _ in range(20))]
    steps += [rng.randrange(1, fmt.emax << 16) for _ in range(20)]
    previous, ctx.prec = ctx.prec, 600
    try:
        unit = arb(1) if name == "exp2" else arb.const_log2()
        words = []
        for k in steps:
            significand, exponent = (int(part) for part in (unit * k / 65536).mid().man_exp())
            length = significand.bit_length()
            shift = length - fmt.precision
            kept = significand >> shift if shift > 0 else significand << -shift
            words.append(_word(fmt, length + exponent - 1, kept))
    finally:
        ctx.prec = previous
    rows = [((word + d) | sign,) for word in words for d in (-1, 0, 1, 2) for sign in (0, fmt.sign_mask)]
    kernel = loop(name, fmt, False)
    results, marks = numpy_loop.run(kernel, (from_ints(fmt, [word for (word,) in rows]),))
    assert marks is not None
    assert not marks.any()
    for row, result in zip(rows, to_ints(fmt, results), strict=True):
        assert result == elementary(name, fmt, *row)[0], hex(row[0])


def test_the_cells_of_logarithms() -> None:
    """1 + r = c d f is at least 1 and at most 1 + ``SMALL`` in all cells of f and of c f."""
    assert logarithm.COARSE_BITS + logarithm.FINE_BITS == 30
    for i, c in enumerate(logarithm.COARSE):
        # c f in units of 2**-9 2**-11, from the lower end to the upper end of the cell
        low, high = c * (256 + i), c * (256 + i + 1)
        scale = 1 << 9 + logarithm.COARSE_BITS
        first, last = low * (1 << 16) // scale, (high - 1) * (1 << 16) // scale
        assert first >= logarithm.FIRST
        assert last - logarithm.FIRST < len(logarithm.FINE)
        for j in range(first, last + 1):
            d = logarithm.FINE[j - logarithm.FIRST]
            ends = [max(low, -(-j * scale >> 16)), min(high, (j + 1) * scale >> 16)]
            for y in ends:
                rest = Fraction(y * d, scale << logarithm.FINE_BITS) - 1
                assert 0 <= rest <= Fraction(logarithm.SMALL)
