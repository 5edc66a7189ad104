"""Fixed-point kernels of elementary functions against MPFR and Arb."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from flint import arb, ctx
from floatlib_mpfr import expected, to_mpfr

from tlir.floatlib.arb import Dyadic
from tlir.floatlib.elementary.wide.fixed import DIGIT
from tlir.floatlib.elementary.wide.functions import FUNCTIONS
from tlir.floatlib.elementary.wide.loop import loop
from tlir.floatlib.elementary.wide.work import Operand, Value, Work, working_digits
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import Rounding
from tlir.floatlib.soft import numpy_loop
from tlir.floatlib.soft.catalog import MAY_BE_EXACT, UNDECIDED
from tlir.floatlib.soft.machine import NumpyMachine
from tlir.floatlib.soft.uint import Uint
from tlir.floatlib.words import from_ints, limbs, to_ints

MPFR: dict[str, Callable[..., Any]] = {
    "sine": lambda c, x: c.sin(x),
    "cosine": lambda c, x: c.cos(x),
    "tan": lambda c, x: c.tan(x),
    "asin": lambda c, x: c.asin(x),
    "acos": lambda c, x: c.acos(x),
    "atan": lambda c, x: c.atan(x),
    "atan2": lambda c, y, x: c.atan2(y, x),
    "erf": lambda c, x: c.erf(x),
    "erfc": lambda c, x: c.erfc(x),
    "exponential": lambda c, x: c.exp(x),
    "exponential_minus_one": lambda c, x: c.expm1(x),
    "exp2": lambda c, x: c.exp2(x),
    "sinh": lambda c, x: c.sinh(x),
    "cosh": lambda c, x: c.cosh(x),
    "tanh": lambda c, x: c.tanh(x),
    "log": lambda c, x: c.log(x),
    "log2": lambda c, x: c.log2(x),
    "log10": lambda c, x: c.log10(x),
    "log_plus_one": lambda c, x: c.log1p(x),
    "asinh": lambda c, x: c.asinh(x),
    "acosh": lambda c, x: c.acosh(x),
    "atanh": lambda c, x: c.atanh(x),
    "rsqrt": lambda c, x: c.rec_sqrt(x),
    "cbrt": lambda c, x: c.cbrt(x),
    "hypot": lambda c, x, y: c.hypot(x, y),
    "power": lambda c, x, y: c.pow(x, y),
}
ARB: dict[str, Callable[..., arb]] = {
    "sine": arb.sin,
    "cosine": arb.cos,
    "tan": arb.tan,
    "asin": arb.asin,
    "acos": arb.acos,
    "atan": arb.atan,
    "atan2": arb.atan2,
    "erf": arb.erf,
    "erfc": arb.erfc,
    "erf_inv": arb.erfinv,
    "log_add_exp": lambda x, y: (x.exp() + y.exp()).log(),
    "exponential": arb.exp,
    "exponential_minus_one": arb.expm1,
    "exp2": lambda x: (x * arb.const_log2()).exp(),
    "logistic": lambda x: 1 / (1 + (-x).exp()),
    "sinh": arb.sinh,
    "cosh": arb.cosh,
    "tanh": arb.tanh,
    "log": arb.log,
    "log2": lambda x: x.log() / arb.const_log2(),
    "log10": lambda x: x.log() / arb(10).log(),
    "log_plus_one": arb.log1p,
    "asinh": arb.asinh,
    "acosh": arb.acosh,
    "atanh": arb.atanh,
    "rsqrt": lambda x: 1 / x.sqrt(),
    "cbrt": lambda x: x.sgn() * abs(x).root(3),
    "hypot": lambda x, y: (x * x + y * y).sqrt(),
    "power": lambda x, y: (abs(x).log() * y).exp(),
}


def undecided(name: str, fmt: Format, rows: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The rows of words that the kernel leaves undecided; the words and flags of all others are asserted to be those of
    MPFR."""
    columns = tuple(from_ints(fmt, list(column)) for column in zip(*rows, strict=True))
    words, marks = numpy_loop.run(loop(name, fmt, True), columns)
    assert marks is not None
    left = []
    for row, word, mark in zip(rows, to_ints(fmt, words), marks, strict=True):
        if mark & UNDECIDED:
            left.append(row)
            continue
        if mark & MAY_BE_EXACT:
            assert FUNCTIONS[name].exact
            mark = None
        operands = [to_mpfr(fmt, x) for x in row]
        right, raised = expected(fmt, Rounding.NEAREST_EVEN, lambda c: MPFR[name](c, *operands))  # noqa: B023
        assert int(word) == right, (name, fmt, [hex(x) for x in row])
        assert mark is None or int(mark) == int(raised), (name, fmt, [hex(x) for x in row])
    return left


def assert_compiled_alike(name: str, fmt: Format, rows: list[tuple[int, ...]]) -> None:
    """The compiled loop gives the words and marks that NumPy's gives, with flags and without."""
    from tlir.floatlib.soft import llvm

    columns = tuple(from_ints(fmt, list(column)) for column in zip(*rows, strict=True))
    for flags in (False, True):
        kernel = loop(name, fmt, flags)
        words, marks = numpy_loop.run(kernel, columns)
        compiled, compiled_marks = llvm.run(kernel, columns)
        assert marks is not None
        assert compiled_marks is not None
        assert np.array_equal(words, compiled)
        assert np.array_equal(marks, compiled_marks)


def evaluated(name: str, fmt: Format, rows: list[tuple[int, ...]]) -> Value:
    """What the kernel gives for the rows of words, before it is rounded."""
    work = Work(NumpyMachine(64), fmt, working_digits(fmt.precision))
    operands = []
    for column in zip(*rows, strict=True):
        words = from_ints(fmt, list(column))
        parts = [words[..., k] for k in range(limbs(fmt))] if limbs(fmt) > 1 else [words.astype(np.uint64)]
        operands.append(Operand(work.m, fmt, Uint(work.m, parts, fmt.width)))
    value: Value = FUNCTIONS[name].evaluate(work, *operands)
    return value


def worst_error(name: str, fmt: Format, rows: list[tuple[int, ...]]) -> float:
    """The largest error of the kernel's values, by Arb, as a share of the bound that they carry."""
    value = evaluated(name, fmt, rows)
    count = len(rows)
    significand = value.significand
    digits = [np.broadcast_to(d, count) for d in significand.digits]
    exponents = np.broadcast_to(value.exponent, count).astype(np.uint64).view(np.int64)
    signs = np.broadcast_to(value.sign, count)
    near = np.broadcast_to(False if value.near is None else value.near, count)
    worst, previous = 0.0, ctx.prec
    try:
        for i, row in enumerate(rows):
            units = sum(int(d[i]) << (DIGIT * k) for k, d in enumerate(digits))
            numbers = [Dyadic(*fmt.decode(word)) for word in row]
            ctx.prec = 6 * fmt.precision + 200 + max(0, numbers[0].leading)
            operands = [number.to_arb() for number in numbers]
            exact = ARB[name](*operands) * (-1 if signs[i] else 1)
            exact *= arb((1, DIGIT * significand.point - int(exponents[i])))
            error = (exact - units) / arb(value.near_error if near[i] else significand.error)
            assert error.rad() < 1e-3
            worst = max(worst, float(error.abs_upper()))
    finally:
        ctx.prec = previous
    return worst
