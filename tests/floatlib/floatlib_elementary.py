"""What the tests of the elementary kernels share: MPFR's functions by our names, and operands."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import gmpy2
import numpy as np
import scipy.special
from flint import arb, ctx
from floatlib_mpfr import unbounded

from tlir.floatlib.format import Format
from tlir.floatlib.words import word_dtype


def _erfc_inv(t: Any) -> Any:
    """Of 0 < t <= 1, by Newton's method from SciPy's value."""
    y = gmpy2.mpfr(scipy.special.erfcinv(float(t)))
    for _ in range(5):
        y += (gmpy2.erfc(y) - t) * gmpy2.sqrt(gmpy2.const_pi()) / 2 * gmpy2.exp(y * y)
    return y


def _erf_inv(x: Any) -> Any:
    """By the inverse of erfc, or, where that would lose digits, as it is."""
    if abs(x) >= 1:
        return gmpy2.inf() * (1 if x > 0 else -1) if abs(x) == 1 else gmpy2.nan()
    if abs(x) > 0.9:
        return _erfc_inv(1 - abs(x)) * (1 if x > 0 else -1)
    y = gmpy2.mpfr(scipy.special.erfinv(float(x)))
    for _ in range(5):
        y -= (gmpy2.erf(y) - x) * gmpy2.sqrt(gmpy2.const_pi()) / 2 * gmpy2.exp(y * y)
    return y


def _ndtri(p: Any) -> Any:
    upper = _erf_inv(2 * p - 1) if p > 0.1 else -_erfc_inv(2 * p)
    return gmpy2.sqrt(gmpy2.mpfr(2)) * upper


def _log_add_exp(x: Any, y: Any) -> Any:
    return max(x, y) + gmpy2.log1p(gmpy2.exp(-abs(x - y)))


def _scaled_erfc(x: arb) -> arb:
    return (x * x).hypgeom_u(arb(0.5), arb(0.5)) / arb.pi().sqrt()


def _erfcx(x: arb) -> arb:
    return _scaled_erfc(x) if x > 0 else (x * x).exp() * x.erfc()


def _log_ndtr(x: arb) -> arb:
    w, square = _scaled_erfc(abs(x) / arb(2).sqrt()), x * x / 2
    return (w / 2).log() - square if x < 0 else (-w / 2 * (-square).exp()).log1p()


def _scaled_k(x: arb, order: int) -> arb:
    half = arb(order) + arb(0.5)
    return arb.pi().sqrt() * (2 * x) ** order * (2 * x).hypgeom_u(half, 2 * half)


def _by_arb(
    function: Callable[..., Any], largest: float = math.inf, bits: int = 1200, least: float | None = None
) -> Callable[..., Any]:
    """For what MPFR has not, by Arb; beyond ``largest`` and below ``least`` (the negative of it unless given), where
    the value is outside every format, the value there."""
    lowest = -largest if least is None else least

    def value(*operands: Any) -> Any:
        previous, ctx.prec = ctx.prec, bits
        try:
            ball = function(*(arb(float(max(min(x, largest), lowest))) for x in operands))
            if not ball.is_finite():
                return gmpy2.nan() if ball.is_nan() else gmpy2.inf()
            assert ball.rel_accuracy_bits() > 150
            significand, exponent = ball.mid().man_exp()
        finally:
            ctx.prec = previous
        return (
            gmpy2.mul_2exp(gmpy2.mpfr(int(significand)), int(exponent))
            if exponent >= 0
            else gmpy2.div_2exp(gmpy2.mpfr(int(significand)), -int(exponent))
        )

    return value


MPFR: dict[str, Callable[..., Any]] = {
    "exponential": gmpy2.exp,
    "exponential_minus_one": gmpy2.expm1,
    "exp2": gmpy2.exp2,
    "log": gmpy2.log,
    "log_plus_one": gmpy2.log1p,
    "log2": gmpy2.log2,
    "log10": gmpy2.log10,
    "logistic": lambda x: 1 / (1 + gmpy2.exp(-x)),
    "tanh": gmpy2.tanh,
    "sinh": gmpy2.sinh,
    "cosh": gmpy2.cosh,
    "asinh": gmpy2.asinh,
    "acosh": gmpy2.acosh,
    "atanh": gmpy2.atanh,
    "sine": gmpy2.sin,
    "cosine": gmpy2.cos,
    "tan": gmpy2.tan,
    "asin": gmpy2.asin,
    "acos": gmpy2.acos,
    "atan": gmpy2.atan,
    "erf": gmpy2.erf,
    "erfc": gmpy2.erfc,
    "erf_inv": _erf_inv,
    "lgamma": lambda x: gmpy2.lgamma(x)[0],
    "digamma": gmpy2.digamma,
    "bessel_i0": _by_arb(lambda x: x.bessel_i(arb(0)), 2000.0),
    "bessel_i1": _by_arb(lambda x: x.bessel_i(arb(1)), 2000.0),
    "bessel_i0e": _by_arb(lambda x: abs(x).bessel_i(arb(0), True)),
    "bessel_i1e": _by_arb(lambda x: abs(x).bessel_i(arb(1), True) * x.sgn()),
    "bessel_k0": _by_arb(lambda x: _scaled_k(x, 0) * (-x).exp(), 2000.0, 320),
    "bessel_k1": _by_arb(lambda x: _scaled_k(x, 1) * (-x).exp(), 2000.0, 320),
    "bessel_k0e": _by_arb(lambda x: _scaled_k(x, 0), bits=320),
    "bessel_k1e": _by_arb(lambda x: _scaled_k(x, 1), bits=320),
    "bessel_j0": gmpy2.j0,
    "bessel_j1": gmpy2.j1,
    "bessel_y0": gmpy2.y0,
    "bessel_y1": gmpy2.y1,
    "erfcx": _by_arb(_erfcx, bits=400, least=-2000.0),
    "ndtri": _ndtri,
    "log_ndtr": _by_arb(_log_ndtr, 2000.0, 400, -math.inf),
    "log_add_exp": _log_add_exp,
    "zeta": _by_arb(lambda s, q: s.zeta(q), bits=400),
    "polygamma": _by_arb(
        lambda n, x: x.digamma() if n == 0 else (n + 1).zeta(x) * (n + 1).gamma() * -(n * arb.pi()).cos(), bits=400
    ),
    "rsqrt": gmpy2.rec_sqrt,
    "cbrt": gmpy2.cbrt,
    "atan2": gmpy2.atan2,
    "hypot": gmpy2.hypot,
    "power": lambda x, y: x**y,
}


def exact_values(name: str, *columns: Sequence[float]) -> list[Any]:
    """The function by MPFR with 200 bits."""
    with unbounded(200):
        return [MPFR[name](*(gmpy2.mpfr(x) for x in row)) for row in zip(*columns, strict=True)]


def operands(rng: np.random.Generator, count: int) -> np.ndarray:
    """Numbers of 24 bits: all exponents that kernels take, and many near the boundaries between their cases."""
    exponents = np.concatenate([rng.integers(-490, 490, count), rng.integers(-12, 12, 3 * count)])
    values = np.ldexp(rng.integers(1 << 23, 1 << 24, exponents.size).astype(float), exponents - 24)
    edges = np.array([0.125, 0.25, 0.5, 0.70710678, 0.75, 0.875, 1.0, 1.41421356, 2.0, 4.0, 10.0, 20.0, 0.34657359,
                      1.0397208, np.pi / 4, np.pi / 2, np.pi, 3 * np.pi, 600.0, 2.0**20])  # fmt: skip
    near = np.concatenate([edges.astype(np.float32) * np.float32(1 + k * 2.0**-23) for k in range(-4, 5)]).astype(float)
    values = np.concatenate([values, near])
    return np.concatenate([values, -values])


def float32_rows(name: str, operand_count: int, count: int, seed: int = 11) -> list[np.ndarray]:
    """Words of float32: random ones, moderate numbers, small integers and halves, and all pairs of special words."""
    rng = np.random.default_rng(seed + len(name))
    edges = np.array([0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F800001, 1, 0x80000001, 0x007FFFFF,
                      0x00800000, 0x3F800000, 0xBF800000, 0x3F7FFFFF, 0x3F800001, 0x40000000, 0xC0400000, 0x3F000000,
                      0x7F7FFFFF, 0xFF7FFFFF], np.uint32)  # fmt: skip
    columns = []
    for k in range(operand_count):
        special = np.repeat(edges, edges.size) if k else np.tile(edges, edges.size if operand_count > 1 else 1)
        moderate = (rng.standard_normal(count) * 4).astype(np.float32)
        small = (rng.integers(-20, 21, count) / 2).astype(np.float32)
        parts = [rng.integers(0, 1 << 32, count, dtype=np.uint32), moderate.view(np.uint32), small.view(np.uint32)]
        columns.append(np.concatenate([*parts, special]))
    return columns


def all_words(fmt: Format) -> np.ndarray:
    return np.arange(1 << fmt.width).astype(word_dtype(fmt))
