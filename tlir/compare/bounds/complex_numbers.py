"""Bounds of complex numbers, whose parts have enclosures of their own in a last axis of two."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tlir.compare.bounds import intervals as iv
from tlir.compare.bounds.enclosure import UNSURE, Enclosure, Tags, certain
from tlir.compare.bounds.intervals import F64, Interval, Mask
from tlir.compare.bounds.step import Step

Rule = Callable[[Step], Enclosure]


def part(enclosure: Enclosure, k: int) -> Interval:
    return Interval(enclosure.lo[..., k], enclosure.hi[..., k])


def together(real: Interval, imag: Interval) -> Interval:
    return Interval(np.stack((real.lo, imag.lo), -1), np.stack((real.hi, imag.hi), -1))


def both(tag: Tags) -> Tags:
    """The flags of both parts for each of them."""
    joined = tag[..., 0] | tag[..., 1]
    if (tag > 3).any():
        first = np.where(tag[..., 0] > 3, tag[..., 0], tag[..., 1])
        joined = (first & ~np.uint32(3)) | (joined & np.uint32(3))
    return np.stack((joined, joined), -1)


def complex_multiply(step: Step) -> Enclosure:
    """Four products and two sums; a product may be added without being rounded."""
    fmt = step.dtype.float_format
    a, b = step.operands
    nan = np.zeros(a.lo.shape[:-1], np.bool_)

    def product(x: Interval, y: Interval) -> Interval:
        nonlocal nan
        exact, bad = iv.multiply(x, y)
        nan = nan | bad
        exact = Interval(iv.down(exact.lo), iv.up(exact.hi))
        return step.rounded(fmt, exact, unrounded=step.freedoms.fma)[0]

    def total(x: Interval, y: Interval) -> Interval:
        nonlocal nan
        exact, bad = iv.add(x, y)
        nan = nan | bad
        return step.rounded(fmt, Interval(iv.down(exact.lo), iv.up(exact.hi)))[0]

    real = total(product(part(a, 0), part(b, 0)), iv.negative(product(part(a, 1), part(b, 1))))
    imag = total(product(part(a, 0), part(b, 1)), product(part(a, 1), part(b, 0)))
    result = together(real, imag)
    tag = both(step.tags())
    tag = np.where(np.stack((nan, nan), -1), tag | np.uint32(1), tag)
    sure = (tag & UNSURE) == 0
    if step.freedoms.any:
        # integers and the like come out the same however they are combined
        small = np.maximum(np.abs(result.lo), np.abs(result.hi)) <= 1.0 / iv.limits(fmt).unit
        wholes = np.all(_whole(a) & _whole(b), axis=-1)
        sure = sure & (small & np.stack((wholes, wholes), -1))
    return step.enclosed(result, tag, sure)


def _whole(a: Enclosure) -> Mask:
    return np.asarray((a.lo == np.rint(a.lo)) & (np.abs(a.lo) < 1 << 20))


def modulus(a: Enclosure) -> Interval:
    """sqrt(re^2 + im^2) of the parts' intervals."""
    sizes = []
    for k in range(2):
        x = part(a, k)
        sizes.append(
            (np.where(iv.has_zero(x), 0.0, np.minimum(abs(x.lo), abs(x.hi))), np.maximum(abs(x.lo), abs(x.hi)))
        )
    return iv.widened(Interval(np.hypot(sizes[0][0], sizes[1][0]), np.hypot(sizes[0][1], sizes[1][1])))


def complex_norm(step: Step) -> Enclosure:
    """The modulus, in the accuracy of hypot."""
    from tlir.compare.bounds.elementary import spread

    fmt = step.dtype.float_format
    operand = step.operands[0]
    tag = both(step.tags())[..., 0]
    result, nan = spread(step, "hypot", fmt, modulus(operand))
    lo = np.maximum(result.lo, 0.0)
    sure = ((tag & UNSURE) == 0) if not step.freedoms.any else None
    return step.enclosed(Interval(lo, result.hi), np.where(nan, tag | np.uint32(1), tag), sure)


def normwise(name: str) -> Rule:
    """Functions whose error is only known relative to the modulus: around the reference's value where the operands are
    sure, unknown elsewhere."""

    def rule(step: Step) -> Enclosure:
        return around(step, name)

    return rule


def around(step: Step, name: str) -> Enclosure:
    known = certain(step.result)
    fmt = step.result.dtype.float_format
    _, ulps, _ = step.freedoms.ulps(name, fmt)
    sure = np.ones(step.result.shape, np.bool_)
    for operand in step.operands:
        unsure = operand.unsure
        sure = sure & ~(unsure.any(axis=-1) if operand.dtype.is_complex else unsure)
    sure = np.stack((sure, sure), -1)
    with np.errstate(all="ignore"):
        size = np.hypot(known.lo[..., 0], known.lo[..., 1])
    unit = iv.ulp(fmt, np.stack((size, size), -1))
    # four units of the modulus, or what the table says of the real function, whichever is more
    error = np.where(np.isfinite(unit), unit * max(8.0, 2 * ulps), np.inf)
    reason = step.reason("unbounded", f"how complex {name} changes with its operand is not bounded")
    tag = step.tags() if step.operands[0].dtype == step.result.dtype else known.tag
    tag = np.where(sure, known.tag, np.uint32(reason << 2) | np.uint32(3)) | (tag & np.uint32(0))
    close = Interval(known.lo - error, known.hi + error)
    lo = np.where(sure, np.where(np.isnan(known.lo), np.nan, close.lo), -np.inf)
    hi = np.where(sure, np.where(np.isnan(known.hi), np.nan, close.hi), np.inf)
    exact = sure if not step.freedoms.any else sure & (known.lo == 0) & (size[..., np.newaxis] == 0)
    return step.enclosed(Interval(lo, hi), np.asarray(tag, np.uint32), exact)


def complex_divide(step: Step) -> Enclosure:
    return around(step, "divide")


def _complex(step: Step) -> Enclosure:
    a, b = step.operands
    result = together(a.interval, b.interval)
    tag = np.stack((a.tag, b.tag), -1)
    return Enclosure(step.result, result.lo, result.hi, tag)


def _part(k: int) -> Rule:
    def rule(step: Step) -> Enclosure:
        a = step.operands[0]
        return Enclosure(step.result, a.lo[..., k], a.hi[..., k], a.tag[..., k])

    return rule


def _conjugate(step: Step) -> Enclosure:
    a = step.operands[0]
    imag = iv.negative(part(a, 1))
    result = together(part(a, 0), imag)
    return Enclosure(step.result, result.lo, result.hi, a.tag)


def both_parts(values: F64) -> F64:
    return np.stack((values, values), -1)


RULES: dict[str, Rule] = {"complex": _complex, "real": _part(0), "imag": _part(1), "conjugate": _conjugate}
