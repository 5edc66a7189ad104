"""Kernels of few iterations and long loops as several kernels, of which the long ones have iterations enough; and
kernels of many rows, whose rows are computed one by one in the same parts.

The sum of a vector has one iteration: nothing for lanes to run along, nothing for threads to share. So the parts of
such a kernel (``tlir.kernel.cutting``) become kernels that run one after the other, and share temporary arrays.
"""

from __future__ import annotations

from math import prod

from tlir.kernel.cutting import Cutter, Stages, reads_outputs, work_of, works_in_place
from tlir.kernel.ir import Kernel
from tlir.kernel.patterns import as_contraction

FEWEST = 64
"""Iterations of a space that are enough for lanes and threads."""

LEAST_WORK = 1 << 15
"""Scalar operations of a kernel below which the launches would cost more than they save."""

LEAST_SPREAD = 1 << 12
"""Scalar operations that are worth a launch."""

LEAST_ROW_SPREAD = 1 << 8
"""Scalar operations of a row that are worth lanes."""

LARGEST_ROW = 1 << 18
"""Elements of the temporary arrays of a row, which should stay in the processor's caches."""

ORDERED = 8
"""How many times as many scalar operations a row must have as those of them that no lanes share."""


def staged(kernel: Kernel, threads: int = 2) -> Stages | None:
    """The kernel in stages, for a number of threads; None where it is better as it is."""
    iterations = prod(v.extent for v in kernel.space)
    if not 0 < iterations < FEWEST or work_of(kernel) < LEAST_WORK or _has_tiles(kernel):
        return None
    if reads_outputs(kernel) or works_in_place(kernel):
        return None
    cutter = Cutter(kernel, LEAST_SPREAD // iterations, alone=threads == 1)
    cutter.cut()
    return cutter.stages() if any(part.variables for part in cutter.parts) else None


def by_rows(kernel: Kernel) -> Stages | None:
    """The parts of one iteration of a kernel, whose temporary arrays are for that iteration alone; None where lanes do
    not help much inside an iteration."""
    if reads_outputs(kernel) or works_in_place(kernel):
        return None
    cutter = Cutter(kernel, LEAST_ROW_SPREAD, within=True)
    cutter.cut()
    ordered = sum(cutter.work(part) for part in cutter.parts if not part.variables)
    if all(not part.variables for part in cutter.parts) or ordered * ORDERED > work_of(kernel) // max(
        1, prod(v.extent for v in kernel.space)
    ):
        return None
    stages = cutter.stages()
    return stages if sum(size for _, size in stages.temporaries) <= LARGEST_ROW else None


def _has_tiles(kernel: Kernel) -> bool:
    contraction = as_contraction(kernel)
    if contraction is None:
        return False
    from tlir.backends.cpu.tile import suits

    return suits(contraction)


__all__ = ["Stages", "by_rows", "staged", "work_of"]
