"""The float64 kernels by name, with the bounds on their relative errors and the domains of their operands.

A kernel is a function of ``elementary.number.Number`` values, and so of a machine: it runs on NumPy arrays and is
compiled. It uses +, -, *, / and sqrt, which IEEE 754 fixes, fused multiply-add where the machine is fast at it, and
operations that are exact; no mathematics library. So a result may depend on whether the machine has fused multiply-add,
but never by more than the bound, which is proved for both in the docstring of each kernel. The bounds here are what is
proved, in units of u = 2**-53, rounded up.
"""

from __future__ import annotations

from tlir.floatlib.elementary.narrow import (
    angle,
    arc,
    bessel,
    beta,
    error,
    gamma,
    incomplete,
    incomplete_derivative,
    modified,
    normal,
    power,
    zeta,
)
from tlir.floatlib.elementary.narrow import exp as exponential
from tlir.floatlib.elementary.narrow import log as logarithm
from tlir.floatlib.elementary.narrow.outcome import Kernel
from tlir.floatlib.elementary.number import Number
from tlir.floatlib.soft.machine import Predicate

MAX_PRECISION = 24
MAX_EXPONENT = 500
"""Operands are 0.1... * 2**e with |e| <= 502, so squares and quotients stay inside float64's range."""

ULP = 2.0**-53
LAST = 2.0**-25
"""Half the distance between 1 and the 24-bit number below it."""


def _positive(x: Number) -> Predicate:
    return x > 0.0


def _above_minus_one(x: Number) -> Predicate:
    return x > -1.0


def _from_one(x: Number) -> Predicate:
    return x > 1.0 - LAST


def _up_to_one(x: Number) -> Predicate:
    return abs(x) < 1.0 + LAST


def _below_one(x: Number) -> Predicate:
    return abs(x) < 1.0


def _no_pole(x: Number) -> Predicate:
    """Not a negative integer, and no NaN."""
    m = x.m
    return m.either(x > -0.5, m.both(x < 0.0, m.negation(x.equals(x.rounded()))))


def _probability(p: Number) -> Predicate:
    return p.m.both(p > 0.0, p < 1.0)


def _has_power(x: Number, y: Number) -> Predicate:
    """Not where x < 0 and y is no integer."""
    m = x.m
    real = m.both(x.equals(x), y.equals(y))
    return m.both(real, m.either(m.negation(x < 0.0), y.equals(y.rounded())))


UNARY: dict[str, Kernel] = {
    "exponential": Kernel(exponential.exponential, 10 * ULP),
    "exponential_minus_one": Kernel(exponential.exponential_minus_one, 28 * ULP),
    "exp2": Kernel(exponential.exp2, 10 * ULP),
    "logistic": Kernel(exponential.logistic, 12 * ULP),
    "tanh": Kernel(exponential.tanh, 58 * ULP),
    "sinh": Kernel(exponential.sinh, 26 * ULP),
    "cosh": Kernel(exponential.cosh, 14 * ULP),
    "log": Kernel(logarithm.log, 20 * ULP, _positive),
    "log2": Kernel(logarithm.log2, 20 * ULP, _positive),
    "log10": Kernel(logarithm.log10, 20 * ULP, _positive),
    "log_plus_one": Kernel(logarithm.log_plus_one, 22 * ULP, _above_minus_one),
    "asinh": Kernel(logarithm.asinh, 28 * ULP),
    "acosh": Kernel(logarithm.acosh, 28 * ULP, _from_one, (2.0,)),
    "atanh": Kernel(logarithm.atanh, 28 * ULP, _below_one),
    "sine": Kernel(angle.sine, 94 * ULP, wide=angle.wide_sine),
    "cosine": Kernel(angle.cosine, 94 * ULP, wide=angle.wide_cosine),
    "tan": Kernel(angle.tan, 36 * ULP, wide=angle.wide_tan),
    "asin": Kernel(arc.asin, 34 * ULP, _up_to_one),
    "acos": Kernel(arc.acos, 16 * ULP, _up_to_one),
    "atan": Kernel(arc.atan, 74 * ULP),
    "erf": Kernel(error.erf, 140 * ULP),
    "erfc": Kernel(error.erfc, 30 * ULP),
    "erf_inv": Kernel(normal.erf_inv, 52 * ULP, _below_one),
    "lgamma": Kernel(gamma.lgamma, 44 * ULP),
    "digamma": Kernel(gamma.digamma, 30 * ULP, _no_pole),
    "bessel_i0": Kernel(modified.i0, 18 * ULP),
    "bessel_i1": Kernel(modified.i1, modified.I1_ERROR),
    "bessel_i0e": Kernel(modified.i0e, 8 * ULP),
    "bessel_i1e": Kernel(modified.i1e, modified.I1E_ERROR),
    "bessel_k0": Kernel(modified.k0, 30 * ULP, _positive),
    "bessel_k1": Kernel(modified.k1, 26 * ULP, _positive),
    "bessel_k0e": Kernel(modified.k0e, 40 * ULP, _positive),
    "bessel_k1e": Kernel(modified.k1e, 36 * ULP, _positive),
    "bessel_j0": Kernel(bessel.j0, 40 * ULP),
    "bessel_j1": Kernel(bessel.j1, 40 * ULP),
    "bessel_y0": Kernel(bessel.y0, 40 * ULP, _positive),
    "bessel_y1": Kernel(bessel.y1, 40 * ULP, _positive),
    "erfcx": Kernel(error.erfcx, 38 * ULP),
    "ndtri": Kernel(normal.ndtri, 55 * ULP, _probability, (0.25,)),
    "log_ndtr": Kernel(normal.log_ndtr, normal.LOG_NDTR_ERROR),
    "rsqrt": Kernel(power.rsqrt, 4 * ULP, _positive),
    "cbrt": Kernel(power.cbrt, 96 * ULP),
}

BINARY: dict[str, Kernel] = {
    "zeta": Kernel(zeta.zeta, 40 * ULP, zeta.zeta_inside, (2.5, 0.5)),
    "polygamma": Kernel(zeta.polygamma, 40 * ULP, zeta.polygamma_inside, (1.0, 0.5)),
    "igamma": Kernel(incomplete.igamma, 0.25, incomplete.gamma_inside, (0.5, 0.5), interleave=2),
    "igammac": Kernel(incomplete.igammac, 0.25, incomplete.gamma_inside, (0.5, 0.5), interleave=2),
    "igamma_grad_a": Kernel(
        incomplete_derivative.igamma_grad_a, 0.25, incomplete.gamma_inside, (0.5, 0.5), interleave=2
    ),
    "random_gamma_grad": Kernel(
        incomplete_derivative.random_gamma_grad, 0.25, incomplete.gamma_inside, (0.5, 0.5), interleave=2
    ),
    "log_add_exp": Kernel(normal.log_add_exp, 40 * ULP, fallback=(0.5, 0.5)),
    "atan2": Kernel(arc.atan2, 76 * ULP, fallback=(0.5, 0.5)),
    "hypot": Kernel(power.hypot, 4 * ULP, fallback=(0.5, 0.5)),
    "power": Kernel(power.power, 600 * power.POWER_SLOPE, _has_power, (0.5, 0.5)),
}

TERNARY: dict[str, Kernel] = {
    "regularized_incomplete_beta": Kernel(
        beta.regularized_incomplete_beta, 0.25, beta.beta_inside, (0.5, 0.5, 0.5), interleave=2
    ),
}

KERNELS = {**UNARY, **BINARY, **TERNARY}

WIDE_ERROR = 2.0**-43
"""Of the wide kernels, all of which are within pi/2 * (2**-44 + 2 u) + 30 u."""
