"""Kernels of the inverse error function and of the normal distribution. Errors are counted in units of u = 2**-53.

``INVERSE``: erf_inv(1 - t) / (1 - t) on 192 cells of t between 2**-24 and 1, within 50 u. y = erf_inv x has only
positive derivatives at 0, because y' = sqrt(pi)/2 e**(y*y); so its series has no negative coefficients, and |erf_inv z|
<= erf_inv |z|. In an ellipse about a cell, the quotient is largest at the least t therefore.
"""

from __future__ import annotations

from flint import acb

from tlir.floatlib.elementary.narrow.cells import Cells
from tlir.floatlib.elementary.number import Number


def _inverse_ratio(t: acb) -> acb:
    """Of a real t."""
    x = 1 - t.real
    return acb(x.erfinv() / x)


INVERSE = Cells(_inverse_ratio, 2.0**-24, 1.0, 3, 9, 50 * 2.0**-53)


def erf_inv(x: Number) -> Number:
    """x times the quotient at t = 1 - |x|, which is exact for |x| >= 1/2. Below, it has an error of u, at t = 1 of 2 u
    (the last cell ends before it), and the quotient's derivative is less than a third of it: 50 u + u + u."""
    return x * INVERSE.at(1.0 - abs(x))
