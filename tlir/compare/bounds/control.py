"""Regions: followed where every permitted execution takes the same way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tlir.backends.reference import integers
from tlir.compare.bounds import intervals as iv
from tlir.compare.bounds.enclosure import Enclosure
from tlir.compare.bounds.step import Step
from tlir.ir.tensor import Tensor, words_shape
from tlir.ir.types import TensorType

Rule = Callable[[Step], Sequence[Enclosure]]

OPEN_STEPS = 64
"""So many iterations of a loop are followed after the first one that only some executions make."""


def _while(step: Step) -> Sequence[Enclosure]:
    """As long as the reference goes on and executions cannot stop; where they may, the union of what they stop with."""
    condition, body = step.node.regions
    values = list(step.operands)
    stopped: list[Enclosure] | None = None
    reason = open_steps = 0
    while True:
        (going,) = step.run(condition, values)
        if going.hi == 0:
            break
        if going.lo == 0:
            reason = reason or step.reason("branch", "how often a loop runs")
            stopped = values if stopped is None else [union(a, b, reason) for a, b in zip(stopped, values, strict=True)]
        # once an end is open, the reference may have ended too, and cannot bound the number of steps any more
        open_steps += stopped is not None
        if open_steps > OPEN_STEPS:
            return [step.anything("how often a loop runs", k) for k in range(len(step.results))]
        values = step.run(body, values)
    if stopped is not None:
        values = [union(a, b, reason) for a, b in zip(stopped, values, strict=True)]
    return _own(step, values)


def _own(step: Step, values: Sequence[Enclosure]) -> Sequence[Enclosure]:
    """The enclosures with the node's own results as reference, which an iteration more or less may have replaced."""
    return [Enclosure(result, each.lo, each.hi, each.tag) for result, each in zip(step.results, values, strict=True)]


def union(a: Enclosure, b: Enclosure, reason: int) -> Enclosure:
    """What one or the other gives; with the reason where these do not meet."""
    together = iv.hull(a.interval, b.interval)
    flags = (a.tag | b.tag) & np.uint32(3)
    same = (a.lo == b.lo) & (a.hi == b.hi) & (flags == 0)
    old = np.where(a.tag > 3, a.tag, b.tag) & ~np.uint32(3)
    gap = (a.lo > b.hi) | (b.lo > a.hi)
    tag = flags | np.uint32(2) | np.where(gap & (old == 0), np.uint32(reason << 2), old)
    return Enclosure(a.tensor, together.lo, together.hi, np.where(same, flags, tag).astype(np.uint32))


def _case(step: Step) -> Sequence[Enclosure]:
    index, last = step.operands[0], len(step.node.regions) - 1
    given = list(step.operands[1:])
    own = int(integers.to_values(index.dtype, index.tensor.words))
    own = own if 0 <= own <= last else last
    values = step.run(step.node.regions[own], given)
    if index.all_sure or index.lo == index.hi:
        return values
    low, high = float(index.lo), float(index.hi)
    possible = {k for k in range(last + 1) if low <= k <= high}
    if low < 0 or high > last:
        possible.add(last)
    reason = step.reason("branch", "which branch is taken")
    for k in sorted(possible - {own}):
        others = step.run(step.node.regions[k], given)
        values = [union(a, b, reason) for a, b in zip(values, others, strict=True)]
    return _own(step, values)


def _scan(step: Step) -> Sequence[Enclosure]:
    consts, carries, length = (step.node.attrs[name] for name in ("num_consts", "num_carry", "length"))
    given, stacked = step.operands[:consts], step.operands[consts + carries :]
    carried: Sequence[Enclosure] = step.operands[consts : consts + carries]
    results = step.results[carries:]
    parts = [
        (np.zeros(shape), np.zeros(shape), np.zeros(shape, np.uint32))
        for shape in (result.shape + ((2,) if result.dtype.is_complex else ()) for result in results)
    ]
    steps = range(length - 1, -1, -1) if step.node.attrs.get("reverse", False) else range(length)
    for place in steps:
        slices = [at(x, place) for x in stacked]
        outputs = step.run(step.node.regions[0], [*given, *carried, *slices])
        carried = outputs[:carries]
        for (lo, hi, tag), output in zip(parts, outputs[carries:], strict=True):
            lo[place], hi[place], tag[place] = output.lo, output.hi, output.tag
    made = [Enclosure(result, *part) for result, part in zip(results, parts, strict=True)]
    return [*carried, *made]


def at(x: Enclosure, place: int) -> Enclosure:
    """One slice along the first axis."""
    type = TensorType(x.tensor.shape[1:], x.dtype)
    words = np.asarray(x.tensor.words[place], order="C").reshape(words_shape(type))
    return Enclosure(Tensor(type, words), np.asarray(x.lo[place]), np.asarray(x.hi[place]), np.asarray(x.tag[place]))


RULES: dict[str, Rule] = {"while": _while, "case": _case, "scan": _scan}
