"""The inverse error function in double-double arithmetic: a step of Newton's method. u = 2**-53."""

from __future__ import annotations

from flint import arb

from tlir.floatlib.elementary.double.arithmetic import Double, fast_two_sum, select, signed
from tlir.floatlib.elementary.double.error import erf, erfc
from tlir.floatlib.elementary.narrow.exp import exponential
from tlir.floatlib.elementary.narrow.fit import rounded
from tlir.floatlib.elementary.narrow.normal import inverse
from tlir.floatlib.elementary.number import Number

HALF_ROOT_PI = rounded(lambda: arb.pi().sqrt() / 2)


def erf_inv(x: Number) -> Double:
    """z, the binary64 kernel's value, is within 2**-45 of y, and y = z + (|x| - erf z) sqrt(pi)/2 e**(z*z) but for
    z (y - z)**2 and less: 2**-84 y, because z < 6.

    Below 1/2 erf z is within 2**-67.5 of itself. |x| - hi is exact, because they are that near, and the rest a number
    of 2**-45 |x|, of which 2**-53 is lost, and 60 u by its factor: 2**-92. An error of erf z counts erf y / (y erf' y),
    at most 1.17 times: 2**-67.27. Beyond, the same with erfc z, of 2**-67, and 1 - |x|, which is exact, counts at most
    1.17 times: 2**-66.77."""
    a = abs(x)
    t = 1.0 - a
    z = inverse(a, t)
    below, above = erf(z), erfc(z)
    near = a < 0.5
    rest = select(near, (a - below.hi) - below.lo, (above.hi - t) + above.lo)
    step = rest * (exponential(z * z) * HALF_ROOT_PI)
    return signed(fast_two_sum(z, step), x.sign)
