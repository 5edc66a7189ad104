"""Quotients and square roots of ``Uint`` values, a digit of many bits at a time.

Each digit is estimated in binary64, from the leading bits of the remainder and one reciprocal computed at the start,
and made a little too small on purpose: it is the right digit or one less. Nothing corrects it then. The remainder is
computed exactly, is twice as large as usual where the digit was one less, and the next digit, with one bit more, makes
up for it. Only the last digit needs a correction, by at most one.

All error bounds below are relative unless they say otherwise, and u = 2**-53 is what one binary64 operation adds.
"""

from __future__ import annotations

from tlir.floatlib.soft.machine import Machine, Predicate, Real, Word
from tlir.floatlib.soft.uint import Uint

QUOTIENT_DIGIT = 48
ROOT_DIGIT = 45
ROOT_START = 50
QUOTIENT_SHRINK = 1 - 2.0**-50
ROOT_START_SHRINK = 1 - 2.0**-51
ROOT_SHRINK = 1 - 2.0**-47


def _leading(x: Uint, bits: int) -> tuple[Real, int]:
    """The leading ``bits`` (at most 64) bits of the register of x in binary64, and how many bits were dropped below."""
    dropped = max(x.bits - bits, 0)
    part = x.right(dropped)
    m = x.m
    value = m.real_of(part.limbs[0])
    for k, limb in enumerate(part.limbs[1:], 1):
        # two limbs of 32 bits: both are exact in binary64, so only their sum rounds
        value = m.real_add(value, m.real_multiply(m.real_of(limb), m.real_constant(2.0 ** (m.bits * k))))
    return value, dropped


def _digits(bits: int, largest: int, m: Machine) -> list[int]:
    """``bits`` split into digits of about equal size; with one bit more each must fit a word."""
    count = -(-bits // min(largest, m.bits - 1))
    return [bits * (k + 1) // count - bits * k // count for k in range(count)]


def divide(numerator: Uint, divisor: Uint, fraction_bits: int) -> tuple[Uint, Predicate]:
    """floor(numerator * 2**fraction_bits / divisor) and whether there is a remainder, for numerator < 2 * divisor.

    The divisor's highest bit is set; the quotient has fraction_bits + 1 bits.

    One step takes a remainder R < 2 D to the digit q of k bits and one, with Q = R * 2**k / D < 2**(k + 1). D enters
    with its leading 53 bits, R with its leading 63:

    * above: leaving out the rest of D adds less than 2 u, the reciprocal, its product with the shrink factor, the
      conversion of R and the last product add u each; 6 u < 2**-50, so the estimate is at most Q.
    * below: the shrink factor takes 2**-50, the four roundings 4 u = 2**-51, the rest of R less than
      2**(k - 61) in absolute terms: Q - estimate < 2**(k + 1) * 1.5 * 2**-50 + 2**(k - 61) < 1 for k <= 48.

    So the estimate's integer part is floor(Q) or one less, and the new remainder is again less than 2 D.
    """
    own = numerator.quotient(divisor, fraction_bits)
    if own is not None:
        return own
    m = numerator.m
    lowered, dropped = _leading(divisor, 53)
    inverse = m.real_multiply(m.real_divide(m.real_constant(1.0), lowered), m.real_constant(QUOTIENT_SHRINK))
    width = divisor.bits + 1
    rest, quotient = numerator.resized(width), None
    for bits in _digits(fraction_bits, QUOTIENT_DIGIT, m):
        leading, below = _leading(rest, 63)
        scale = m.real_constant(2.0 ** (bits + below - dropped))
        digit = Uint(m, [m.truncate(m.real_multiply(m.real_multiply(leading, inverse), scale))], bits + 1)
        rest = rest.left(bits, width).minus(digit.times(divisor, width)).at_most(width)
        quotient = digit if quotient is None else quotient.left(bits).plus(digit, quotient.bits + bits)
    assert quotient is not None
    short = m.negation(rest.less(divisor))
    exact = m.either(rest.is_zero(), rest.equals(divisor))
    return quotient.plus_bit(short, fraction_bits + 1), m.negation(exact)


def square_root(radicand: Uint) -> tuple[Uint, Predicate]:
    """floor(sqrt(radicand)) and whether there is a remainder, for an even number of bits whose highest two are not both
    0.

    Of the leading 2 t bits N, t <= 50, binary64 gives the first t bits s of the root. N enters with its leading 62
    bits, and conversion, root and shrink factor (2**-51 = 4 u) round by u / 2, u and u: the estimate is at most
    sqrt(N), and less by less than 6.5 u + 2**-61, which is less than 0.82 for t = 50. So s is the root of N or one
    less, and the remainder R = N - s * s at most 4 s + 3.

    One step takes such an s, R to the next k bits. With A = s * 2**k and R' = R * 2**(2 k) + (the next 2 k bits of the
    radicand), the digit is floor(q) for q = sqrt(A * A + R') - A < 2**(k + 1), and the estimate R * 2**k / (2 s), where
    1 / s comes from the first t bits s0:

    * above: R' / (2 A) exceeds q by q / (2 A) < 1 / s, and 1 / s0 exceeds 1 / s by less than 2 / s0; the former is
      2**-49 in the first step, where the latter is 0, and negligible later, where the latter is 2**-48. Four
      roundings (reciprocal, shrink factor, conversion of R, last product) add 4 u = 2**-51. The shrink factor takes
      2**-47, so the estimate is at most q.
    * below: shrink factor and roundings take 2**(k + 1) * (2**-47 + 2**-51), the bits of R' and R that are left out
      2**(k - 50) and 2**(k - 60), in absolute terms: less than 1 for k <= 45.

    So the integer part of the estimate is the digit or one less, and the new s and R are such numbers again.
    """
    own = radicand.square_root()
    if own is not None:
        return own
    m = radicand.m
    size = radicand.bits // 2
    assert m.bits == 64 or size < m.bits, "the bounds are those of a first part of 50 bits, or of the whole root"
    known = min(size, ROOT_START, m.bits - 1)
    top = radicand.right(radicand.bits - 2 * known)
    leading, below = _leading(top, 62)
    estimate = m.real_multiply(m.real_sqrt(leading), m.real_constant(ROOT_START_SHRINK * 2.0 ** (below // 2)))
    first = m.truncate(estimate)
    root = Uint(m, [first], known)
    rest = top.low_limbs(known + 2).minus(root.times(root, known + 2)).at_most(known + 2)
    digits = _digits(size - known, ROOT_DIGIT, m)
    inverse = _root_inverse(m, first) if digits else None
    start = known
    for bits in digits:
        leading, below = _leading(rest, 62)
        scale = m.real_constant(2.0 ** (bits - 1 - (known - start) + below))
        digit = Uint(m, [m.truncate(m.real_multiply(m.real_multiply(leading, inverse), scale))], bits + 1)
        known += bits
        width = known + 2
        following = radicand.right(radicand.bits - 2 * known).low(2 * bits)
        brought = rest.left(2 * bits, width).merged(following.low_limbs(width))
        rest = brought.minus(root.left(bits + 1).merged(digit).times(digit, width)).at_most(width)
        root = root.left(bits).plus(digit, known)
    raised = root.left(1).less(rest)
    exact = m.either(rest.is_zero(), rest.equals(root.left(1).merged(Uint(m, [m.constant(1)], 1))))
    return root.plus_bit(raised, size), m.negation(exact)


def _root_inverse(m: Machine, root: Word) -> Real:
    return m.real_multiply(m.real_divide(m.real_constant(1.0), m.real_of(root)), m.real_constant(ROOT_SHRINK))
