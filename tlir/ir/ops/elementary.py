"""Elementary and special functions: the exact value of the function at the operand, rounded once to nearest even.

Every function returns the correctly rounded result in every format. A complex function returns the principal value,
each part correctly rounded.
"""

from __future__ import annotations

from tlir.ir.ops.base import Operation, elementwise, elementwise_constraints

_ROUNDED = "the exact value rounded once to nearest even. "


def _operation(name: str, meaning: str, complex_too: bool, operands: tuple[str, ...] = ("operand",)) -> Operation:
    kinds = ("float", "complex") if complex_too else ("float",)
    words = "a floating-point or complex type" if complex_too else "a floating-point type"
    return Operation(
        name, "elementary", operands, meaning, words, elementwise(*kinds), elementwise_constraints(len(operands), words)
    )


_REAL_AND_COMPLEX = {
    "rsqrt": "1 / sqrt(x): " + _ROUNDED + "rsqrt(0) is inf, rsqrt(-0) is -inf, rsqrt(inf) is 0; below zero NaN.",
    "exponential": "e^x: " + _ROUNDED + "exp(-inf) is 0.",
    "exponential_minus_one": "e^x - 1: " + _ROUNDED + "A zero is kept with its sign; -inf gives -1.",
    "log": "The natural logarithm: " + _ROUNDED + "log(±0) is -inf, log(1) is 0; below zero NaN.",
    "log_plus_one": "log(1 + x): " + _ROUNDED + "A zero is kept with its sign; -1 gives -inf; below -1 NaN.",
    "logistic": "1 / (1 + e^-x): " + _ROUNDED + "-inf gives 0, inf gives 1.",
    "tanh": "The hyperbolic tangent: " + _ROUNDED + "A zero is kept with its sign; ±inf give ±1.",
    "sine": "The sine of an angle in radians: " + _ROUNDED + "A zero is kept with its sign; ±inf give NaN.",
    "cosine": "The cosine of an angle in radians: " + _ROUNDED + "±inf give NaN.",
    "tan": "The tangent of an angle in radians: " + _ROUNDED + "A zero is kept with its sign; ±inf give NaN.",
    "asin": "The arc sine in radians: " + _ROUNDED + "A zero is kept with its sign; outside [-1, 1] NaN.",
    "acos": "The arc cosine in radians: " + _ROUNDED + "acos(1) is 0; outside [-1, 1] NaN.",
    "atan": "The arc tangent in radians: " + _ROUNDED + "A zero is kept with its sign; ±inf give ±pi/2 rounded.",
    "sinh": "The hyperbolic sine: " + _ROUNDED + "Zeros and infinities are kept.",
    "cosh": "The hyperbolic cosine: " + _ROUNDED + "±inf give inf.",
    "asinh": "The inverse hyperbolic sine: " + _ROUNDED + "Zeros and infinities are kept.",
    "acosh": "The inverse hyperbolic cosine: " + _ROUNDED + "acosh(1) is 0; below 1 NaN.",
    "atanh": "The inverse hyperbolic tangent: " + _ROUNDED + "A zero is kept with its sign; ±1 give ±inf; beyond NaN.",
}

_REAL_ONLY = {
    "exp2": "2^x: " + _ROUNDED + "exp2(-inf) is 0.",
    "log2": "The logarithm to base 2: " + _ROUNDED + "log2(±0) is -inf; below zero NaN.",
    "log10": "The logarithm to base 10: " + _ROUNDED + "log10(±0) is -inf; below zero NaN.",
    "cbrt": "The real cube root: " + _ROUNDED + "Zeros and infinities are kept.",
    "erf": "The error function: " + _ROUNDED + "A zero is kept with its sign; ±inf give ±1.",
    "erfc": "1 - erf(x): " + _ROUNDED + "inf gives 0, -inf gives 2.",
    "erf_inv": "The y with erf(y) = x: " + _ROUNDED + "A zero is kept with its sign; ±1 give ±inf; beyond NaN.",
    "lgamma": "log|gamma(x)|: " + _ROUNDED + "inf at 0, at the negative integers and at ±inf; 0 at 1 and 2.",
    "digamma": "The derivative of log gamma(x): "
    + _ROUNDED
    + "digamma(±0) is ∓inf, NaN at the negative integers and at -inf; inf gives inf.",
}

OPERATIONS = (
    *(_operation(name, meaning, True) for name, meaning in _REAL_AND_COMPLEX.items()),
    *(_operation(name, meaning, False) for name, meaning in _REAL_ONLY.items()),
    _operation(
        "atan2",
        "The angle of the point (rhs, lhs), lhs the ordinate, in radians from -pi to pi: "
        + _ROUNDED
        + "Zeros and infinities as IEEE 754 atan2: the sign of lhs decides between 0 and -0 and between pi and -pi.",
        False,
        ("lhs", "rhs"),
    ),
    _operation(
        "hypot",
        "sqrt(lhs*lhs + rhs*rhs): " + _ROUNDED + "inf if either operand is infinite, even where the other is NaN.",
        False,
        ("lhs", "rhs"),
    ),
    Operation(
        "power",
        "elementary",
        ("lhs", "rhs"),
        "lhs to the power rhs. Floats: "
        + _ROUNDED
        + "Special cases as IEEE 754 pow: pow(x, ±0) and pow(1, y) are 1 even "
        "for NaN, pow(-1, ±inf) is 1, a negative finite base with a finite exponent that is not an integer gives NaN. "
        "Complex: the principal value of exp(rhs * log(lhs)), each part rounded once; x^0 is 1; 0^y is 0 for a "
        "positive real part of y, NaN otherwise. Integers wrap modulo 2^bits; a negative exponent gives 1 for base 1, "
        "±1 for base -1, 0 otherwise.",
        "an integer, floating-point or complex type",
        elementwise("int", "uint", "float", "complex"),
        elementwise_constraints(2, "an integer, floating-point or complex type"),
    ),
)
