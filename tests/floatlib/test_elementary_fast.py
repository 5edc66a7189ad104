"""The float64 kernels: their bounds, on machines with and without fused multiply-add, and the polynomials in them."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import gmpy2
import numpy as np
import pytest
from floatlib_elementary import exact_values, operands

from tlir.floatlib.elementary import evaluate
from tlir.floatlib.elementary.narrow import angle, arc, bessel, error, gamma, modified, normal, power
from tlir.floatlib.elementary.narrow import exp as exponential
from tlir.floatlib.elementary.narrow import log as logarithm
from tlir.floatlib.elementary.narrow.arrays import NAMES, applies, share_undecided
from tlir.floatlib.elementary.narrow.cells import Cells
from tlir.floatlib.elementary.narrow.fit import Fit, parts
from tlir.floatlib.elementary.narrow.kernels import BINARY, KERNELS, UNARY, WIDE_ERROR
from tlir.floatlib.elementary.narrow.loop import make_loop
from tlir.floatlib.elementary.narrow.outcome import Outcome
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.format import FORMATS, Format
from tlir.floatlib.soft import numpy_loop
from tlir.floatlib.soft.catalog import UNDECIDED
from tlir.floatlib.soft.machine import NumpyMachine

FLOAT32 = FORMATS["float32"]

FITS = {
    f"{module.__name__.rsplit('.', 1)[1]} {name}": value
    for module in (angle, arc, bessel, error, exponential, gamma, logarithm, modified, power)
    for name, value in vars(module).items()
    if isinstance(value, Fit)
}

CELLS = {
    f"{module.__name__.rsplit('.', 1)[1]} {name}": value
    for module in (bessel, gamma, modified, normal)
    for name, value in vars(module).items()
    if isinstance(value, Cells)
}


class FusedMachine(NumpyMachine):
    """NumPy with kernels that take fused multiply-add to be one instruction."""

    has_fma = True


MACHINES = {"fused": FusedMachine(64), "separate": NumpyMachine(64)}


def run(name: str, machine: NumpyMachine, columns: list[np.ndarray], wide: bool = False) -> Outcome:
    """The kernel's outcome; operands outside its domain are replaced."""
    kernel = KERNELS[name]
    numbers = [Number(machine, column) for column in columns]
    with np.errstate(all="ignore"):
        outcome = (kernel.wide if wide and kernel.wide else kernel.function)(*numbers)
    return outcome if isinstance(outcome, Outcome) else Outcome(outcome)


@pytest.mark.parametrize("name", FITS)
def test_polynomials_are_within_their_bounds(name: str) -> None:
    """By the theorem in ``Fit``, from balls over the whole ellipse; and the polynomials are what is bounded."""
    fit = FITS[name]
    assert fit.bound() <= fit.error
    from flint import acb, arb, ctx

    previous, ctx.prec = ctx.prec, 128
    try:
        for x in np.linspace(fit.low, fit.high, 41).tolist():
            place = (x - (fit.high + fit.low) / 2) / ((fit.high - fit.low) / 2) if fit.centred else x
            total = sum((arb(c) * arb(place) ** n for n, c in enumerate(fit.coefficients)), arb(0))
            exact = fit.function(acb(x)).real
            # the coefficients are rounded to float64, and so is ``place``
            assert abs(total - exact) < fit.error + 2.0**-50 * max(1.0, float(abs(exact)))
    finally:
        ctx.prec = previous


@pytest.mark.parametrize("name", CELLS)
def test_cells_are_within_their_bounds(name: str) -> None:
    """By the same theorem; and what machines compute beside the ends of cells and between is that near, and not much
    nearer everywhere."""
    from flint import acb, arb, ctx

    cells = CELLS[name]
    assert cells.bound() <= cells.error
    assert len(cells.cells()) == len(cells.rows[0])
    random = np.random.default_rng(1)
    middles, halves = np.array(cells.cells()).T
    places = np.concatenate([np.nextafter(middles - halves, np.inf), np.nextafter(middles + halves, 0), middles])
    chosen = random.integers(0, middles.size, 300)
    places = np.concatenate([places, middles[chosen] + halves[chosen] * random.uniform(-1, 1, chosen.size)])
    previous, ctx.prec = ctx.prec, 160
    try:
        for machine in MACHINES.values():
            worst = 0.0
            for x, value in zip(places.tolist(), cells.at(Number(machine, places)).value.tolist(), strict=True):
                exact = cells.function(acb(x)).real
                error = abs(arb(value) / exact - 1) if cells.relative else abs(arb(value) - exact)
                assert error < cells.error, x
                worst = max(worst, float(error))
            assert worst > cells.error / 1000
    finally:
        ctx.prec = previous


def test_sums_of_coefficients() -> None:
    """What the bounds of erf and cbrt take them to be."""
    magnitudes = [abs(c) for c in error.ERF_RATIO.coefficients]
    assert sum(magnitudes) < 1.14
    assert sum(sum(magnitudes[n:]) for n in range(len(magnitudes))) < 4.6
    assert sum(abs(c) for c in power.CBRT.coefficients) < 1.2
    assert sum(abs(c) for c in arc.ATAN_RATIO.coefficients) < 2.4


def test_parts_of_constants() -> None:
    for values, multiple in ((angle.PI_PARTS, 1), (angle.HALF_PI_PARTS, 2)):
        total = sum(Fraction(value) for value in values) * multiple
        with gmpy2.context(precision=300):
            assert abs(gmpy2.mpq(total) - gmpy2.const_pi()) < 2.0**-110
        first, second, _ = values
        assert first * 2 ** (29 + multiple) == int(first * 2 ** (29 + multiple))
        assert second * 2 ** (61 + multiple) == int(second * 2 ** (61 + multiple))
    with gmpy2.context(precision=200):
        high, low = parts(lambda: __import__("flint").arb.const_log2(), 40)
        assert abs(gmpy2.mpfr(high) + low - gmpy2.const_log2()) < 2.0**-92


def test_no_number_is_near_a_multiple_of_half_pi() -> None:
    """Up to 2**20: of 24 bits, nearer than 2**-32. Of pi/2 times every integer, the nearest number of 24 bits."""
    bits = 96
    with gmpy2.context(precision=300):
        scaled = int(gmpy2.floor(gmpy2.const_pi() / 2 * gmpy2.mpz(2) ** bits))
    high, low = scaled >> 64, scaled & (2**64 - 1)
    q = np.arange(1, 667545, dtype=np.uint64)  # 667544 pi/2 > 2**20
    # q pi/2 = whole + fraction / 2**64, whole < 2**53 in units of 2**-32
    carry = (q * np.uint64(low >> 32)) >> np.uint64(32)
    units = q * np.uint64(high) + carry
    length = np.floor(np.log2(units.astype(np.float64))).astype(np.int64)
    step = np.uint64(1) << (length - 23).astype(np.uint64)
    rest = units & (step - np.uint64(1))
    distance = np.minimum(rest, step - rest)
    assert int(distance.min()) >= 2  # in units of 2**-32, of which one may be lost


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", UNARY)
def test_error_is_below_the_bound(name: str, machine: str) -> None:
    """Results far outside every format that kernels serve are only meant to be outside; those that saturate are rounded
    to 24 bits as the exact ones are."""
    x = operands(np.random.default_rng(len(name)), 150 if machine == "fused" else 300)
    x = x[KERNELS[name].inside(Number(MACHINES[machine], x))]
    outcome = run(name, MACHINES[machine], [x])
    doubtful = np.broadcast_to(False if outcome.doubtful is None else outcome.doubtful, x.shape)
    values = np.asarray(outcome.value.value)
    widths = np.broadcast_to(np.nan if outcome.absolute is None else outcome.absolute.value, x.shape)
    compared = 0
    columns = (x[~doubtful], values[~doubtful], widths[~doubtful], exact_values(name, x[~doubtful]))
    for operand, result, width, exact in zip(*columns, strict=True):
        if gmpy2.is_infinite(exact):
            continue  # a pole, which the loop knows
        if exact == 0 or not 2.0**-570 < abs(exact) < 2.0**700:
            assert exact == result or (abs(result) < 2.0**-569 if abs(exact) < 1 else abs(result) > 2.0**600)
            continue
        limit = abs(exact) * KERNELS[name].error if np.isnan(width) else float(width)
        if name == "bessel_j1" and abs(operand) < modified.TINY:
            # on the side of x/2 on which the exact one is, and that near
            assert abs(result) < abs(operand) / 2
            limit = abs(exact) * 2.0**-49
        close = abs(gmpy2.mpfr(float(result)) - exact) <= limit
        # erf and tanh from some operand on: the same side of the last place as 1
        assert close or (name in ("erf", "tanh") and 1 > abs(result) > 1 - 2.0**-25 and abs(exact) > 1 - 2.0**-25), (
            name,
            operand,
        )
        compared += 1
    assert compared > 250


@pytest.mark.parametrize("name", [name for name in BINARY if "gamma" not in name or name == "polygamma"])
def test_error_of_two_operands(name: str) -> None:
    rng = np.random.default_rng(4)
    x = np.abs(rng.standard_normal(1500).astype(np.float32).astype(float)) * 2.0 ** rng.integers(-30, 30, 1500)
    y = rng.standard_normal(1500).astype(np.float32).astype(float) * 2.0 ** rng.integers(-3, 4, 1500)
    if name in ("zeta", "polygamma"):
        y = np.abs(y)
        x = np.rint(x) % 60 if name == "polygamma" else 1 + x % 200
    for machine in MACHINES.values():
        outcome = run(name, machine, [x, y])
        bound = KERNELS[name].error if outcome.error is None else outcome.error.value
        bounds = np.broadcast_to(bound, x.shape)
        widths = np.broadcast_to(0.0 if outcome.absolute is None else outcome.absolute.value, x.shape)
        columns = (exact_values(name, x, y), outcome.value.value, bounds.tolist(), widths.tolist())
        for exact, value, relative, width in zip(*columns, strict=True):
            if 2.0**-570 < abs(exact) < 2.0**600:
                assert abs(gmpy2.mpfr(float(value)) - exact) <= (width or abs(exact) * relative)


@pytest.mark.parametrize("name", [name for name, kernel in KERNELS.items() if kernel.wide])
def test_error_of_wide_kernels(name: str) -> None:
    rng = np.random.default_rng(9)
    x = np.ldexp(rng.integers(1 << 23, 1 << 24, 3000).astype(float), rng.integers(-23, 478, 3000))
    x[::2] *= -1
    outcome = run(name, MACHINES["separate"], [x], wide=True)
    kept = ~np.asarray(outcome.doubtful)
    assert kept.mean() > 0.99
    for value, exact in zip(np.asarray(outcome.value.value)[kept], exact_values(name, x[kept]), strict=True):
        assert abs(gmpy2.mpfr(float(value)) - exact) <= abs(exact) * WIDE_ERROR


def test_exact_results_are_recognised() -> None:
    """Where the exact result has 24 bits, and nowhere else, the outcome says so and has it."""
    machine = MACHINES["separate"]
    x, y = (part.ravel().astype(float) for part in np.meshgrid(np.arange(1, 60), np.arange(-17, 18)))
    for name, columns in {
        "power": [x, np.where(y == 0, 2.0, y)],  # the loop knows 1 for y = 0
        "hypot": [x, y + 20],
        "cbrt": [x**3 + (y == 0)],
        "log10": [10.0 ** np.minimum(x, 10) + (y == 0)],
        "log2": [x],
        "exp2": [y / 2],
        "rsqrt": [x * 4],
    }.items():
        outcome = run(name, machine, columns)
        marked = np.broadcast_to(outcome.exact, x.shape)
        for value, exact, is_exact in zip(
            outcome.exact_value.value, exact_values(name, *columns), marked.tolist(), strict=True
        ):
            short = exact == gmpy2.mpfr(float(exact)) and exact == float(np.float32(float(exact)))
            assert is_exact == short or (name == "log2" and exact == 0)
            if is_exact:
                assert exact == float(value)


@pytest.mark.parametrize("name", NAMES)
def test_little_is_left_undecided(name: str) -> None:
    rng = np.random.default_rng(5)
    count = len(KERNELS[name].fallback)
    columns = [(np.abs(rng.standard_normal(20000)) * 2 + 1e-3).astype(np.float32).view(np.uint32) for _ in range(count)]
    assert share_undecided(name, FLOAT32, *columns) < 2e-4
    assert share_undecided(name, FLOAT32, *(column[:0] for column in columns)) == 0


@pytest.mark.parametrize("name", UNARY)
def test_special_operands_are_decided(name: str) -> None:
    specials = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, -3.0, 2.0]
    words = np.resize(np.array(specials, np.float32), 4096).view(np.uint32)
    assert share_undecided(name, FLOAT32, words) == 0


@pytest.mark.parametrize("name", ["hypot", "power"])
def test_special_pairs_are_decided(name: str) -> None:
    specials = np.array([0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 2.0, 0.5, 3.0], np.float32)
    left, right = (part.ravel().view(np.uint32) for part in np.meshgrid(specials, specials))
    assert share_undecided(name, FLOAT32, left, right) == 0


def test_kernels_are_for_narrow_formats() -> None:
    assert applies("exponential", Format(8, 23))
    assert not applies("exponential", Format(8, 24))
    assert not applies("exponential", Format(11, 10))
    assert not applies("sqrt", FLOAT32)
    assert not applies("exponential", FORMATS["float64"])


@pytest.mark.parametrize("name", ["exponential", "log", "tanh", "sine", "erf"])
def test_undecided_elements_are_rounded_right(name: str) -> None:
    """The words next to midpoints, found as those that a bound of 2**-40 leaves undecided, against MPFR."""
    rng = np.random.default_rng(3)
    words = np.abs(rng.standard_normal(1 << 17) * 2).astype(np.float32).view(np.uint32)
    _, marks = numpy_loop.run(make_loop(name, FLOAT32, replace(KERNELS[name], error=2.0**-40)), (words,))
    hard = words[marks >= UNDECIDED]
    assert hard.size > 0
    results = evaluate(name, FLOAT32, np.resize(hard, max(hard.size, 64)))[: hard.size].view(np.float32)
    for exact, result in zip(exact_values(name, hard.view(np.float32).tolist()), results.tolist(), strict=True):
        with gmpy2.context(precision=24):
            assert float(gmpy2.mpfr(exact)) == result
