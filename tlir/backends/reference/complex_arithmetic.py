"""Complex quotients, square roots and signs: each part of the exact result rounded once.

Finite operands become integers with a common exponent, and each part an integer square root or quotient that reaches
below the last place of the result, with a sticky bit for what is left. They are computed element by element. Operands
that are not finite, and zeros, have rules of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import Any

import numpy as np

from tlir.backends.reference.invocation import FlagArray, FlagRecord, Invocation
from tlir.backends.reference.layout import join, parts
from tlir.errors import UnsupportedError
from tlir.floatlib import arrays, ordering
from tlir.floatlib.arithmetic import Result
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import NO_FLAGS, Flags, round_exact, round_quotient, zero_result
from tlir.floatlib.words import Mask, is_finite, is_zero, select, shape_of
from tlir.ir.tensor import Words
from tlir.ir.types import DType

MAX_SPREAD = 1 << 20
"""Largest difference of exponents whose integers are built; only formats of 20 exponent bits or more exceed it."""

PartsFunction = Callable[..., tuple[Result, Result]]


def divide(call: Invocation) -> Words:
    """The quotient of complex numbers, as the operation ``divide`` defines it."""
    lhs, rhs = call.words
    return divide_words(call.dtype, lhs, rhs, call.flags)


def divide_words(dtype: DType, lhs: Words, rhs: Words, flags: FlagRecord | None) -> Words:
    """The same for words of a complex dtype."""
    fmt = dtype.float_format
    (a, b), (c, d) = parts(dtype, lhs), parts(dtype, rhs)
    exact = is_finite(fmt, a) & is_finite(fmt, b) & is_finite(fmt, c) & is_finite(fmt, d)
    exact &= ~(is_zero(fmt, c) & is_zero(fmt, d))
    real, imag, raised = _by_elements(fmt, _exact_quotient, (a, b, c, d), exact)
    if not exact.all():
        # the formula everywhere, used where there is no exact quotient
        other_real, other_imag, other_raised = _formula_quotient(fmt, a, b, c, d)
        real, imag = select(fmt, exact, real, other_real), select(fmt, exact, imag, other_imag)
        raised = np.where(exact, raised, other_raised)
    return _finish(dtype, real, imag, raised, flags)


def sqrt(call: Invocation) -> Words:
    """The principal square root; infinities and NaN as C's csqrt (ISO C, annex G), imag with the sign that it had."""
    operands = parts(call.dtype, call.words[0])
    return _finish(call.dtype, *_by_elements(call.dtype.float_format, _root, operands), call.flags)


def sign(call: Invocation) -> Words:
    """x / |x|; 0 for 0; NaN in both parts where a part is NaN or infinite."""
    operands = parts(call.dtype, call.words[0])
    return _finish(call.dtype, *_by_elements(call.dtype.float_format, _sign, operands), call.flags)


def _finish(dtype: DType, real: Words, imag: Words, raised: FlagArray, flags: FlagRecord | None) -> Words:
    if flags is not None:
        flags.note(raised)
    return join(dtype, real, imag)


def _by_elements(
    fmt: Format, function: PartsFunction, operands: tuple[Words, ...], where: Mask | None = None
) -> tuple[Words, Words, FlagArray]:
    """Real words, imaginary words and flags of ``function`` applied to each element, or to those chosen."""
    real, imag = np.zeros_like(operands[0], order="C"), np.zeros_like(operands[0], order="C")
    raised = np.zeros(shape_of(fmt, operands[0]), np.uint8)
    chosen = np.ones(raised.shape, np.bool_) if where is None else where
    columns = [arrays.to_ints(fmt, operand[chosen]).tolist() for operand in operands]
    results = [function(fmt, *row) for row in zip(*columns, strict=True)]
    if results:
        real[chosen] = arrays.from_ints(fmt, [first[0] for first, _ in results])
        imag[chosen] = arrays.from_ints(fmt, [second[0] for _, second in results])
        raised[chosen] = [int(first[1] | second[1]) for first, second in results]
    return real, imag, raised


def _formula_quotient(fmt: Format, a: Words, b: Words, c: Words, d: Words) -> tuple[Words, Words, FlagArray]:
    """((a*c + b*d) / (c*c + d*d), (b*c - a*d) / (c*c + d*d)), one rounding per step."""
    raised = np.zeros(shape_of(fmt, a), np.uint8)

    def step(function: Any, x: Words, y: Words) -> Any:
        nonlocal raised
        result, flags = function(fmt, x, y, flags=True)
        raised = raised | flags
        return result

    norm = step(arrays.add, step(arrays.multiply, c, c), step(arrays.multiply, d, d))
    real = step(arrays.add, step(arrays.multiply, a, c), step(arrays.multiply, b, d))
    imag = step(arrays.subtract, step(arrays.multiply, b, c), step(arrays.multiply, a, d))
    return step(arrays.divide, real, norm), step(arrays.divide, imag, norm), raised


def _common(fmt: Format, x: int, y: int) -> tuple[int, int, int, int, int]:
    """(sign of x, sign of y, X, Y, e) with x = X * 2**e and y = Y * 2**e, for finite words."""
    sign_x, significand_x, exponent_x = fmt.decode(x)
    sign_y, significand_y, exponent_y = fmt.decode(y)
    if significand_x == 0:
        exponent_x = exponent_y
    if significand_y == 0:
        exponent_y = exponent_x
    exponent = min(exponent_x, exponent_y)
    if max(exponent_x, exponent_y) - exponent > MAX_SPREAD:
        raise UnsupportedError(
            "TL0801",
            f"the parts of a complex number of {fmt.name} have exponents more than {MAX_SPREAD} apart",
            hint="convert to a format with a narrower range",
        )
    signed_x = (-significand_x if sign_x else significand_x) << (exponent_x - exponent)
    signed_y = (-significand_y if sign_y else significand_y) << (exponent_y - exponent)
    return sign_x, sign_y, signed_x, signed_y, exponent


def _exact_quotient(fmt: Format, a: int, b: int, c: int, d: int) -> tuple[Result, Result]:
    sign_a, sign_b, x, y, exponent = _common(fmt, a, b)
    sign_c, sign_d, u, v, divisor_exponent = _common(fmt, c, d)
    norm = u * u + v * v

    def part(first: int, second: int, first_sign: int, second_sign: int) -> Result:
        total = first + second
        if total == 0:
            # the sign that the sum of the two products has: -0 only of two that are both -0
            return zero_result(fmt, first_sign & second_sign & (first == 0))
        return round_quotient(fmt, int(total < 0), abs(total), norm, exponent - divisor_exponent)

    real = part(x * u, y * v, sign_a ^ sign_c, sign_b ^ sign_d)
    return real, part(y * u, -x * v, sign_b ^ sign_c, 1 ^ sign_a ^ sign_d)


def _root(fmt: Format, a: int, b: int) -> tuple[Result, Result]:
    special = _special_root(fmt, a, b)
    if special is not None:
        return special
    _, sign_b, x, y, exponent = _common(fmt, a, b)
    return _half_root(fmt, 0, x, y, exponent), _half_root(fmt, sign_b, -x, y, exponent)


def _special_root(fmt: Format, a: int, b: int) -> tuple[Result, Result] | None:
    signaling = Flags.INVALID if fmt.is_signaling(a) or fmt.is_signaling(b) else NO_FLAGS
    nan = fmt.invalid_word, signaling
    zero_like_b = ordering.copysign(fmt, fmt.zero() if fmt.has_zero else fmt.invalid_word, b)
    if fmt.is_inf(b):
        return (ordering.absolute(fmt, b)[0], signaling), (b, NO_FLAGS)
    if fmt.is_inf(a):
        if fmt.is_nan(b):
            infinite = ordering.absolute(fmt, a)[0], signaling
            return (nan, infinite) if fmt.sign(a) else (infinite, nan)
        if fmt.sign(a):
            return (fmt.zero(), NO_FLAGS), ordering.copysign(fmt, a, b)
        return (a, NO_FLAGS), zero_like_b
    if fmt.is_nan(a) or fmt.is_nan(b):
        return nan, nan
    return None


def _half_root(fmt: Format, sign: int, x: int, y: int, exponent: int) -> Result:
    """sqrt((sqrt(x*x + y*y) + x) / 2 * 2**exponent) with a sign, rounded once.

    The floors are exact: floor(sqrt(s)) is isqrt(floor(s)), and floor((sqrt(m) + k) / 2) for integers m and k is
    floor((isqrt(m) + k) / 2)."""
    if y == 0 and x <= 0:
        return zero_result(fmt, sign)
    longest = max(x.bit_length(), y.bit_length())
    # a lower bound of log2 of the radicand; for x < 0 it is y*y / (2 * (sqrt(x*x + y*y) - x))
    bits = x.bit_length() - 1 if x > 0 else 2 * y.bit_length() - longest - 4
    if x == 0:
        bits = y.bit_length() - 2
    shift = max(0, 2 * (fmt.precision + 3) - bits)
    shift += (exponent - shift) & 1
    square = (x * x + y * y) << (2 * shift)
    hypotenuse = isqrt(square)
    twice = hypotenuse + (x << shift)
    root = isqrt(twice >> 1)
    exact = hypotenuse * hypotenuse == square and not twice & 1 and root * root == twice >> 1
    return round_exact(fmt, sign, root, (exponent - shift) // 2, not exact)


def _sign(fmt: Format, a: int, b: int) -> tuple[Result, Result]:
    if not fmt.is_finite(a) or not fmt.is_finite(b):
        raised = Flags.INVALID if fmt.is_signaling(a) or fmt.is_signaling(b) else NO_FLAGS
        if not fmt.is_nan(a) and not fmt.is_nan(b):
            raised = Flags.INVALID
        return (fmt.invalid_word, raised), (fmt.invalid_word, raised)
    sign_a, sign_b, x, y, _ = _common(fmt, a, b)
    if x == 0 and y == 0:
        return zero_result(fmt, 0), zero_result(fmt, 0)
    norm = x * x + y * y
    return _ratio(fmt, sign_a, abs(x), norm), _ratio(fmt, sign_b, abs(y), norm)


def _ratio(fmt: Format, sign: int, x: int, norm: int) -> Result:
    """x / sqrt(norm) with a sign, rounded once."""
    if x == 0:
        return zero_result(fmt, sign)
    shift = fmt.precision + 4 + max(0, norm.bit_length() // 2 - x.bit_length() + 1)
    scaled = (x * x) << (2 * shift)
    square, rest = divmod(scaled, norm)
    root = isqrt(square)
    return round_exact(fmt, sign, root, -shift, bool(rest) or root * root != square)
