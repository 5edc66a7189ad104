"""The specification of comparisons, minimum and maximum, neighbours and the operations on the sign bit.

None of these rounds. Where a result is one of the operands its word is kept.
"""

from __future__ import annotations

from enum import IntEnum

from tlir.floatlib.arithmetic import Result, nan_result
from tlir.floatlib.format import Format
from tlir.floatlib.rounding import NO_FLAGS, Flags, infinity_word


class Relation(IntEnum):
    """How two values compare; exactly one holds."""

    LT = -1
    EQ = 0
    GT = 1
    UNORDERED = 2


def ordinal(fmt: Format, word: int) -> int:
    """A number that orders words that are not NaN as their values; both zeros are 0. Neighbours differ by one, except
    across the missing zero of a signed format without one."""
    magnitude = fmt.magnitude(word) + (0 if fmt.subnormals else 1)
    return -magnitude if fmt.sign(word) else magnitude


def compare(fmt: Format, a: int, b: int, signaling: bool = False) -> tuple[Relation, Flags]:
    """The relation of a to b: -0 equals +0, NaN is unordered. The quiet comparison raises INVALID for a signaling NaN,
    the signaling one for every NaN."""
    if fmt.is_nan(a) or fmt.is_nan(b):
        raised = signaling or fmt.is_signaling(a) or fmt.is_signaling(b)
        return Relation.UNORDERED, Flags.INVALID if raised else NO_FLAGS
    x, y = ordinal(fmt, a), ordinal(fmt, b)
    return Relation((x > y) - (x < y)), NO_FLAGS


def total_order(fmt: Format, a: int, b: int) -> bool:
    """IEEE 754's totalOrder: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN, signaling NaN nearer to the infinities. A
    NaN in the place of -0 counts as positive."""
    return _total_key(fmt, a) <= _total_key(fmt, b)


def _total_key(fmt: Format, word: int) -> int:
    if fmt.nans == "negative_zero" and fmt.is_nan(word):
        return fmt.magnitude_mask + 1
    magnitude = fmt.magnitude(word)
    return -magnitude - 1 if fmt.sign(word) else magnitude


def minimum(fmt: Format, a: int, b: int) -> Result:
    """IEEE 754-2019 minimum: a NaN operand gives the canonical NaN, and -0 is less than +0."""
    if fmt.is_nan(a) or fmt.is_nan(b):
        return nan_result(fmt, a, b)
    return (a if _total_key(fmt, a) <= _total_key(fmt, b) else b), NO_FLAGS


def maximum(fmt: Format, a: int, b: int) -> Result:
    """IEEE 754-2019 maximum: a NaN operand gives the canonical NaN, and +0 is greater than -0."""
    if fmt.is_nan(a) or fmt.is_nan(b):
        return nan_result(fmt, a, b)
    return (a if _total_key(fmt, a) >= _total_key(fmt, b) else b), NO_FLAGS


def minimum_number(fmt: Format, a: int, b: int) -> Result:
    """IEEE 754-2019 minimumNumber: the number when one operand is NaN; INVALID if that is signaling."""
    return _one_number(fmt, a, b) or minimum(fmt, a, b)


def maximum_number(fmt: Format, a: int, b: int) -> Result:
    """IEEE 754-2019 maximumNumber: the number when one operand is NaN; INVALID if that is signaling."""
    return _one_number(fmt, a, b) or maximum(fmt, a, b)


def _one_number(fmt: Format, a: int, b: int) -> Result | None:
    if fmt.is_nan(a) == fmt.is_nan(b):
        return None
    return (b if fmt.is_nan(a) else a), nan_result(fmt, a, b)[1]


def next_up(fmt: Format, a: int) -> Result:
    """The least word greater than a; of -min_subnormal it is -0, of both zeros min_subnormal.

    Above the largest number follows ``rounding.infinity_word``: infinity, or NaN in a format that has only that; in a
    format with neither the largest number stays. INVALID only for a signaling NaN, as for IEEE 754's nextUp."""
    if fmt.is_nan(a):
        return nan_result(fmt, a)
    magnitude = fmt.magnitude(a)
    if not fmt.sign(a):
        if magnitude < fmt.max_finite_magnitude:
            return magnitude + 1, NO_FLAGS
        return (a if fmt.is_inf(a) else infinity_word(fmt, 0)), NO_FLAGS
    if magnitude > 0:
        return (fmt.zero(1) if magnitude == 1 and fmt.subnormals else a - 1), NO_FLAGS
    return fmt.min_subnormal, NO_FLAGS  # from -0, or from the smallest negative number where there is no zero


def next_down(fmt: Format, a: int) -> Result:
    """The greatest word less than a, the mirror image of ``next_up``. An unsigned format's least number stays."""
    if fmt.is_nan(a):
        return nan_result(fmt, a)
    magnitude = fmt.magnitude(a)
    if fmt.sign(a):
        if magnitude < fmt.max_finite_magnitude:
            return a + 1, NO_FLAGS
        return (a if fmt.is_inf(a) else infinity_word(fmt, 1)), NO_FLAGS
    if magnitude > 0:
        return magnitude - 1, NO_FLAGS
    return (fmt.sign_mask | fmt.min_subnormal if fmt.signed else a), NO_FLAGS


def next_after(fmt: Format, a: int, b: int) -> Result:
    """The neighbour of a in the direction of b, and b itself when they are equal (so -0 toward +0 is +0)."""
    if fmt.is_nan(a) or fmt.is_nan(b):
        return nan_result(fmt, a, b)
    x, y = ordinal(fmt, a), ordinal(fmt, b)
    if x == y:
        return b, NO_FLAGS
    return next_up(fmt, a) if x < y else next_down(fmt, a)


def negate(fmt: Format, a: int) -> Result:
    """The word with its sign bit flipped, of NaN too. A zero without a negative and a NaN in the place of -0 stay as
    they are. In an unsigned format a number above zero has no negative: INVALID."""
    if not fmt.signed:
        if fmt.is_nan(a) or fmt.is_zero(a):
            return a, NO_FLAGS
        return fmt.invalid_word, Flags.INVALID
    if fmt.nans == "negative_zero" and fmt.magnitude(a) == 0:
        return a, NO_FLAGS
    return a ^ fmt.sign_mask, NO_FLAGS


def absolute(fmt: Format, a: int) -> Result:
    """The word with its sign bit cleared, of NaN too; a NaN in the place of -0 stays as it is."""
    if fmt.nans == "negative_zero" and fmt.is_nan(a):
        return a, NO_FLAGS
    return fmt.magnitude(a), NO_FLAGS


def copysign(fmt: Format, a: int, b: int) -> Result:
    """The word of a with the sign bit of b, NaN included on both sides. A zero without a negative, a NaN in the place
    of -0 and every word of an unsigned format stay as they are."""
    if fmt.nans == "negative_zero" and fmt.magnitude(a) == 0:
        return a, NO_FLAGS
    return fmt.magnitude(a) | (b & fmt.sign_mask), NO_FLAGS
