"""The operations on arrays of words: what the evaluator calls.

Every function takes arrays of words (``words.word_dtype``; formats wider than 64 bits have a trailing axis of limbs),
which are broadcast against each other, and returns an array of words; with ``flags=True`` it returns (words, flags),
the flags as a uint8 array of ``rounding.Flags`` values of the shape of the elements. The words are those of the
specification (``arithmetic``, ``ordering``, ``convert``), whichever way computes them: ``implementation`` says which,
``native.NATIVE`` where it is the processor.

Native arithmetic needs gradual underflow and rounding to nearest: FloatEnvironmentError where the thread flushes
subnormal numbers or rounds in another direction.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tlir.floatlib import arithmetic, ordering, words
from tlir.floatlib.arithmetic import NEAREST_EVEN
from tlir.floatlib.array_conversions import convert, from_integer, to_integer
from tlir.floatlib.dispatch import (
    INTEGRAL,
    any_signaling,
    flag,
    implementation,
    infinite,
    layout,
    no_flags,
    rounded,
    run,
    specified,
    with_rounding,
)
from tlir.floatlib.format import Format
from tlir.floatlib.native import (
    NATIVE,
    FloatEnvironmentError,
    ensure_float_environment,
    from_carrier,
    is_native,
    to_carrier,
)
from tlir.floatlib.ordering import Relation
from tlir.floatlib.rounding import Flags, Rounding
from tlir.floatlib.soft import catalog, choice
from tlir.floatlib.soft.catalog import Kernel
from tlir.floatlib.soft.selection import DIRECTIONS
from tlir.floatlib.words import Words, from_ints, limbs, to_ints, word_dtype

__all__ = [
    "NATIVE",
    "FloatEnvironmentError",
    "absolute",
    "add",
    "compare",
    "convert",
    "copysign",
    "divide",
    "ensure_float_environment",
    "fma",
    "from_integer",
    "from_ints",
    "implementation",
    "limbs",
    "maximum",
    "maximum_number",
    "minimum",
    "minimum_number",
    "multiply",
    "negate",
    "next_after",
    "remainder_ieee",
    "remainder_truncated",
    "round_to_integral",
    "scale_b",
    "sqrt",
    "subtract",
    "to_integer",
    "to_ints",
    "word_dtype",
]


def add(fmt: Format, a: Words, b: Words, flags: bool = False, rounding: Rounding = NEAREST_EVEN) -> Any:
    """a + b, rounded once."""
    return rounded("add", fmt, (a, b), flags, rounding)


def subtract(fmt: Format, a: Words, b: Words, flags: bool = False, rounding: Rounding = NEAREST_EVEN) -> Any:
    """a - b, rounded once."""
    return rounded("subtract", fmt, (a, b), flags, rounding)


def multiply(fmt: Format, a: Words, b: Words, flags: bool = False, rounding: Rounding = NEAREST_EVEN) -> Any:
    """a * b, rounded once."""
    return rounded("multiply", fmt, (a, b), flags, rounding)


def divide(fmt: Format, a: Words, b: Words, flags: bool = False, rounding: Rounding = NEAREST_EVEN) -> Any:
    """a / b, rounded once."""
    return rounded("divide", fmt, (a, b), flags, rounding)


def sqrt(fmt: Format, a: Words, flags: bool = False, rounding: Rounding = NEAREST_EVEN) -> Any:
    """The square root, rounded once."""
    return rounded("sqrt", fmt, (a,), flags, rounding)


def fma(fmt: Format, a: Words, b: Words, c: Words, flags: bool = False, rounding: Rounding = NEAREST_EVEN) -> Any:
    """a * b + c, rounded once."""
    return rounded("fma", fmt, (a, b, c), flags, rounding)


def remainder_truncated(fmt: Format, a: Words, b: Words, flags: bool = False) -> Any:
    """a - b * trunc(a / b), exact: C's fmod."""
    a, b = words.broadcast(fmt, a, b)
    if not is_native(fmt, "remainder_truncated"):
        kernel = _remainder_kernel(fmt, flags)
        return specified("remainder_truncated", arithmetic.remainder_truncated, fmt, (a, b), flags, kernel)
    ensure_float_environment()
    with np.errstate(all="ignore"):
        result = from_carrier(fmt, np.fmod(to_carrier(fmt, a), to_carrier(fmt, b)))
    if not flags:
        return result
    nan = words.is_nan(fmt, a) | words.is_nan(fmt, b)
    invalid = any_signaling(fmt, a, b) | (~nan & (infinite(fmt, a) | words.is_zero(fmt, b)))
    return result, flag(invalid, Flags.INVALID)


def _remainder_kernel(fmt: Format, flags: bool) -> Kernel:
    if fmt.precision > 24:
        # it needs Arb, which takes long to load
        from tlir.floatlib.elementary.wide import remainder

        if remainder.applies(fmt):
            return remainder.loop(fmt, flags)
    return catalog.remainder_truncated(fmt, flags)


def remainder_ieee(fmt: Format, a: Words, b: Words, flags: bool = False) -> Any:
    """a - b * n for the integer n nearest to a / b, exact."""
    return specified("remainder_ieee", arithmetic.remainder_ieee, fmt, words.broadcast(fmt, a, b), flags)


def round_to_integral(fmt: Format, a: Words, rounding: Rounding = NEAREST_EVEN, flags: bool = False) -> Any:
    """The integer next to a in the direction of the rounding, with the sign of a."""
    words.shape_of(fmt, a)
    kernel = catalog.round_to_integral(fmt, rounding, flags)
    if not flags and rounding in INTEGRAL and is_native(fmt, "round_to_integral"):
        compiled = choice.run_compiled(kernel, (a,), "processor")
        if compiled is not None:
            return compiled[0]
        ensure_float_environment()
        with np.errstate(all="ignore"):
            return from_carrier(fmt, INTEGRAL[rounding](to_carrier(fmt, a)))
    function = partial(with_rounding, arithmetic.round_to_integral, rounding, fmt)
    with_flags = catalog.round_to_integral(fmt, rounding, True)
    return run(kernel, ("round_to_integral", rounding, fmt), function, fmt, fmt, (a,), with_flags)


def scale_b(fmt: Format, a: Words, n: int, flags: bool = False) -> Any:
    """a * 2**n, rounded once, for one integer n."""
    words.shape_of(fmt, a)
    # whatever is not zero over- or underflows alike beyond this
    far = fmt.emax - fmt.emin + 2 * fmt.precision + 2
    n = max(-far, min(far, n))

    def function(word: int) -> tuple[int, int]:
        return arithmetic.scale_b(fmt, word, n)

    kernels = [catalog.scale_b(fmt, n, flags=with_flags) for with_flags in (flags, True)]
    return run(kernels[0], ("scale_b", n, fmt), function, fmt, fmt, (a,), kernels[1])


# Selection and order


def minimum(fmt: Format, a: Words, b: Words, flags: bool = False) -> Any:
    """IEEE 754-2019 minimum: NaN wins, -0 is less than +0."""
    return _extremum("minimum", fmt, a, b, flags)


def maximum(fmt: Format, a: Words, b: Words, flags: bool = False) -> Any:
    """IEEE 754-2019 maximum: NaN wins, -0 is less than +0."""
    return _extremum("maximum", fmt, a, b, flags)


def minimum_number(fmt: Format, a: Words, b: Words, flags: bool = False) -> Any:
    """IEEE 754-2019 minimumNumber: a number wins over NaN."""
    return _extremum("minimum_number", fmt, a, b, flags)


def maximum_number(fmt: Format, a: Words, b: Words, flags: bool = False) -> Any:
    """IEEE 754-2019 maximumNumber: a number wins over NaN."""
    return _extremum("maximum_number", fmt, a, b, flags)


def _extremum(name: str, fmt: Format, a: Words, b: Words, flags: bool) -> Any:
    operands = tuple(words.broadcast(fmt, a, b))
    kernels = [catalog.extremum(name, fmt, with_flags) for with_flags in (flags, True)]
    function = partial(getattr(ordering, name), fmt)
    return run(kernels[0], (name, fmt), function, fmt, fmt, operands, kernels[1])


_RELATIONS: dict[str, tuple[Relation, ...]] = {
    "EQ": (Relation.EQ,),
    "NE": (Relation.LT, Relation.GT, Relation.UNORDERED),
    "LT": (Relation.LT,),
    "LE": (Relation.LT, Relation.EQ),
    "GT": (Relation.GT,),
    "GE": (Relation.GT, Relation.EQ),
}


def compare(fmt: Format, a: Words, b: Words, direction: str, flags: bool = False, signaling: bool = False) -> Any:
    """A Boolean array: whether a EQ, NE, LT, LE, GT or GE b, by value: -0 equals +0, and with NaN only NE is true. The
    quiet comparison raises INVALID for signaling NaN, the ``signaling`` one for every NaN. ValueError for another
    direction."""
    if direction not in DIRECTIONS:
        raise ValueError(f"the direction is one of {', '.join(DIRECTIONS)}, not {direction!r}")
    operands = tuple(words.broadcast(fmt, a, b))

    def function(x: int, y: int) -> tuple[int, int]:
        relation, raised = ordering.compare(fmt, x, y, signaling)
        return int(relation in _RELATIONS[direction]), raised

    kernels = [catalog.compare(fmt, direction, with_flags, signaling) for with_flags in (flags, True)]
    key = ("compare", direction, signaling, fmt)
    result = run(kernels[0], key, function, fmt, layout(2), operands, kernels[1])
    return (result[0].view(np.bool_), result[1]) if flags else result.view(np.bool_)


def next_after(fmt: Format, a: Words, b: Words, flags: bool = False) -> Any:
    """The neighbour of a in the direction of b, b where they are equal."""
    operands = tuple(words.broadcast(fmt, a, b))
    kernels = [catalog.next_after(fmt, with_flags) for with_flags in (flags, True)]
    function = partial(ordering.next_after, fmt)
    return run(kernels[0], ("next_after", fmt), function, fmt, fmt, operands, kernels[1])


# The sign bit


def negate(fmt: Format, a: Words, flags: bool = False) -> Any:
    """The sign bit flipped; see ``ordering.negate`` for formats without -0 and without a sign."""
    if not fmt.signed:
        kept = words.is_nan(fmt, a) | words.is_zero(fmt, a)
        result = words.select(fmt, kept, a, words.constant(fmt, fmt.invalid_word))
        return (result, flag(~kept, Flags.INVALID)) if flags else result
    result = _keep_unsigned_zero(fmt, a, a ^ words.constant(fmt, fmt.sign_mask))
    return (result, no_flags(fmt, result)) if flags else result


def absolute(fmt: Format, a: Words, flags: bool = False) -> Any:
    """The sign bit cleared."""
    result = _keep_unsigned_zero(fmt, a, words.magnitudes(fmt, a))
    return (result, no_flags(fmt, result)) if flags else result


def copysign(fmt: Format, a: Words, b: Words, flags: bool = False) -> Any:
    """a with the sign bit of b."""
    a, b = words.broadcast(fmt, a, b)
    sign = b & words.constant(fmt, fmt.sign_mask)
    result = _keep_unsigned_zero(fmt, a, words.magnitudes(fmt, a) | sign)
    return (result, no_flags(fmt, result)) if flags else result


def _keep_unsigned_zero(fmt: Format, a: Words, changed: Words) -> Words:
    """``a`` itself where it is the zero, or the NaN in the place of -0, of a format that has no -0."""
    if fmt.nans != "negative_zero":
        return np.asarray(changed)
    return words.select(fmt, words.equal(fmt, words.magnitudes(fmt, a), words.constant(fmt, 0)), a, changed)
