"""Kernels of few long rows as several launches, so that a whole GPU works on a row.

One block cannot keep a GPU busy. The parts of a kernel whose space is small (``tlir.kernel.cutting``: the blocks of
``blocked(n)``, the runs of a ``pairwise`` sum, elementwise iterations, runs of steps of an operation that may be
regrouped) become kernels with more iterations, and leave arrays to the ordered rest between. Operations and their order
stay those of the kernel.
"""

from __future__ import annotations

from math import prod

from tlir.kernel.cutting import Cutter, Stage, Stages, reads_outputs, works_in_place
from tlir.kernel.ir import Kernel

FEW_ROWS = 512
"""Rows up to which a block for each leaves processors without work."""

LONG = 1 << 15
"""Scalar operations of a row from which a part is worth a launch, and steps of a loop that may be regrouped."""

SEGMENTS = 1 << 10
"""Runs of steps of a loop that may be regrouped, each along memory."""


def staged(kernel: Kernel) -> Stages:
    """The kernel as one or more launches."""
    whole = reads_outputs(kernel) or works_in_place(kernel)
    if 0 < prod(v.extent for v in kernel.space) <= FEW_ROWS and not whole:
        cutter = LaunchCutter(kernel, LONG)
        cutter.cut()
        if any(part.variables for part in cutter.parts):
            return cutter.stages()
    outer = sum(buffer.role != "local" for buffer in kernel.buffers)
    return Stages((Stage(kernel, tuple(range(outer))),), ())


class LaunchCutter(Cutter):
    """Cuts for blocks of threads, which read a run of steps together."""

    def grouped(self, extent: int) -> tuple[int, int, int, int]:
        if extent < LONG:
            return 0, 0, 0, extent
        return SEGMENTS, extent // SEGMENTS, 1, extent % SEGMENTS
