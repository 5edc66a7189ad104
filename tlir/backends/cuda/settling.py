"""Iterations in which a function has left the rounding of an elementary function open, by the specification.

The function marks them in an array of 32-bit words: the first one is not 0 where there are any, and behind it there is
a bit for each iteration of the kernel's space, in row-major order. An iteration writes elements that no other one
writes and reads none that another one has written, so running the marked ones again, by the kernel interpreter with the
reference's evaluators, leaves every element with the reference's words. Arrays that are changed in place are put back
before.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlir.backends.interpreter import WordDomain
from tlir.ir.types import NAMED
from tlir.kernel.index import Index, Variable, from_value, unflatten, variable
from tlir.kernel.interpret import Integers, run_kernel
from tlir.kernel.ir import Block, Buffer, Kernel, Load, Loop, Value, results_of
from tlir.kernel.joining import mapped, replaced

INDEX = NAMED["int64"]


def marks(kernel: Kernel) -> int:
    """The words of the array of marks."""
    return 1 + -(-prod(v.extent for v in kernel.space) // 32)


def marked(words: NDArray[np.uint32]) -> Integers:
    """The numbers of the marked iterations, ascending."""
    places = np.flatnonzero(words[1:])
    bits = words[1:][places, None] >> np.arange(32, dtype=np.uint32) & 1
    row, bit = np.nonzero(bits)
    return np.asarray(places[row] * 32 + bit, np.int64)


def in_place(kernel: Kernel) -> tuple[int, ...]:
    """The numbers of the arrays that a kernel reads and writes, as stages do with what they leave to each other. Where
    iterations are run again they need what these have had before, and so all of them are."""
    loaded = {s.buffer for s in kernel.body.walk() if isinstance(s, Load)}
    outer = [buffer for buffer in kernel.buffers if buffer.role != "local"]
    return tuple(k for k, buffer in enumerate(outer) if buffer.role == "output" and buffer in loaded)


def all_of(kernel: Kernel) -> Integers:
    """The numbers of all iterations."""
    return np.arange(prod(v.extent for v in kernel.space))


def settle(kernel: Kernel, arrays: Mapping[Buffer, Any], iterations: Integers) -> None:
    """Runs these iterations of a kernel again on its arrays, which have ``size`` elements each."""
    chosen, picked = _picked(kernel, len(iterations))
    run_kernel(picked, {**arrays, chosen: iterations.view(np.uint64)}, WordDomain())


def _picked(kernel: Kernel, count: int) -> tuple[Buffer, Kernel]:
    """The kernel at ``count`` of its iterations, and the buffer that has their numbers."""
    chosen = Buffer("chosen", INDEX, count, "input")
    numbers, variables = [-1], [v.number for v in kernel.space]
    for statement in kernel.body.walk():
        numbers += [value.number for value in results_of(statement)]
        if isinstance(statement, Loop):
            numbers += [value.number for value in statement.parameters]
            variables.append(statement.variable.number)
        variables += [v.number for v in getattr(statement, "variables", ())]
    place, number = Variable(max(variables, default=0) + 1, count), Value(max(numbers) + 1, INDEX)
    shape = tuple(v.extent for v in kernel.space)
    own = dict(zip(kernel.space, unflatten(from_value(number, 0, prod(shape) - 1), shape), strict=True))

    def at_chosen(index: Index) -> Index:
        for before, by in own.items():
            index = replaced(index, before, by)
        return index

    body = mapped(kernel.body, at_chosen)
    body = Block((Load(number, chosen, variable(place)), *body.statements), body.results)
    return chosen, Kernel(kernel.name, (chosen, *kernel.buffers), (place,), body, kernel.nodes)
