"""Special functions of real numbers: the exact value at the operands, rounded once to nearest even.

Definitions are those of the NIST Digital Library of Mathematical Functions; ends of domains as in SciPy and XLA.
"""

from __future__ import annotations

from tlir.ir.ops.base import Operation, elementwise, elementwise_constraints

_ROUNDED = "the exact value rounded once to nearest even; NaN for a NaN operand. "
_FLOAT = "a floating-point type"

_UNARY = {
    "bessel_i0": "The modified Bessel function I0: " + _ROUNDED + "±inf give inf.",
    "bessel_i1": "The modified Bessel function I1: " + _ROUNDED + "Zeros and infinities are kept.",
    "bessel_i0e": "e^-|x| I0(x): " + _ROUNDED + "±inf give 0.",
    "bessel_i1e": "e^-|x| I1(x): " + _ROUNDED + "A zero is kept with its sign; ±inf give ±0.",
    "bessel_j0": "The Bessel function J0: " + _ROUNDED + "±inf give 0.",
    "bessel_j1": "The Bessel function J1: " + _ROUNDED + "A zero is kept with its sign; ±inf give ±0.",
    "bessel_y0": "The Bessel function Y0: " + _ROUNDED + "±0 give -inf, inf gives 0; below zero NaN.",
    "bessel_y1": "The Bessel function Y1: " + _ROUNDED + "±0 give -inf, inf gives 0; below zero NaN.",
    "bessel_k0": "The modified Bessel function K0: " + _ROUNDED + "±0 give inf, inf gives 0; below zero NaN.",
    "bessel_k1": "The modified Bessel function K1: " + _ROUNDED + "±0 give inf, inf gives 0; below zero NaN.",
    "bessel_k0e": "e^x K0(x): " + _ROUNDED + "±0 give inf, inf gives 0; below zero NaN.",
    "bessel_k1e": "e^x K1(x): " + _ROUNDED + "±0 give inf, inf gives 0; below zero NaN.",
    "erfcx": "e^(x*x) erfc(x): " + _ROUNDED + "inf gives 0, -inf gives inf.",
    "ndtri": "The x below which the standard normal distribution has the probability given: "
    + _ROUNDED
    + "±0 give -inf, 1/2 gives 0, 1 gives inf; outside [0, 1] NaN.",
    "log_ndtr": "The logarithm of the standard normal distribution's probability below x: "
    + _ROUNDED
    + "inf gives -0, -inf gives -inf.",
}

_LIMIT = "Refused (TL0801) where enclosures do not decide: "


def _operation(name: str, operands: tuple[str, ...], meaning: str) -> Operation:
    constraints = elementwise_constraints(len(operands), _FLOAT)
    return Operation(name, "special", operands, meaning, _FLOAT, elementwise("float"), constraints)


OPERATIONS = (
    *(_operation(name, ("operand",), meaning) for name, meaning in _UNARY.items()),
    _operation(
        "polygamma",
        ("m", "x"),
        "The m-th derivative of digamma(x), for m > 0 (-1)^(m+1) m! zeta(m+1, x): "
        + _ROUNDED
        + "m = 0 is digamma. An m that is no integer from 0 gives NaN. At 0, the negative integers and -inf it is inf "
        "for odd m, NaN for even m > 0; inf gives 0, of the sign of the values before. "
        + _LIMIT
        + "an m of 2^14 or more, unless the result overflows or underflows.",
    ),
    _operation(
        "zeta",
        ("x", "q"),
        "The Hurwitz zeta function, the sum of (q + n)^-x over n from 0: "
        + _ROUNDED
        + "x = 1 gives inf, x < 1 NaN. At q = 0, the negative integers and -inf it is inf for even x, NaN for others; "
        "for other q below zero NaN unless x is an integer. q = inf gives 0; x = inf gives inf, 1 or 0 for a positive "
        "q below, at and above 1, and NaN for other q.",
    ),
    _operation(
        "igamma",
        ("a", "x"),
        "The regularized lower incomplete gamma function P(a, x): "
        + _ROUNDED
        + "NaN for negative a or x and for two zeros; otherwise x = inf and a = 0 give 1, x = 0 and a = inf give 0. "
        + _LIMIT
        + "a and x beyond 2^50 that are within some sqrt(a) of each other.",
    ),
    _operation(
        "igammac",
        ("a", "x"),
        "The regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x): "
        + _ROUNDED
        + "NaN for negative a or x and for two zeros; otherwise x = inf and a = 0 give 0, x = 0 and a = inf give 1. "
        + _LIMIT
        + "as igamma.",
    ),
    _operation(
        "igamma_grad_a",
        ("a", "x"),
        "The derivative of P(a, x) with respect to a: "
        + _ROUNDED
        + "NaN for a <= 0 and for negative x; otherwise x = 0 gives 0, and an infinite operand NaN. "
        + _LIMIT
        + "a or x of 2^12 or more, unless the result underflows.",
    ),
    _operation(
        "random_gamma_grad",
        ("a", "x"),
        "The derivative with respect to a of the sample x of a gamma distribution of shape a, at a fixed probability: "
        "-(dP/da) / (dP/dx) of P(a, x): "
        + _ROUNDED
        + "NaN for a <= 0 and for negative x; otherwise x = 0 gives 0, and an infinite operand NaN. "
        + _LIMIT
        + "a or x of 2^12 or more.",
    ),
    _operation(
        "regularized_incomplete_beta",
        ("a", "b", "x"),
        "The regularized incomplete beta function I_x(a, b): "
        + _ROUNDED
        + "NaN for negative a or b and for x outside [0, 1]. With a = 0 or b = inf all mass lies at 0: 1, but 0 for "
        "x = 0; with b = 0 or a = inf it lies at 1: 0, but 1 for x = 1; with both NaN. Otherwise x = 0 gives 0 and "
        "x = 1 gives 1. " + _LIMIT + "parameters beyond 2^50 near the transition.",
    ),
    _operation(
        "log_add_exp",
        ("lhs", "rhs"),
        "log(e^lhs + e^rhs): "
        + _ROUNDED
        + "inf if an operand is inf; with an operand of -inf it is the other operand.",
    ),
)
