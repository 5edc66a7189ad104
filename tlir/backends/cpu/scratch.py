"""How much memory a kernel takes beside its arrays, without compiling it."""

from __future__ import annotations

from tlir.backends.cpu.space import arrange, crosses_memory
from tlir.backends.cpu.stages import by_rows, staged
from tlir.ir.types import DType
from tlir.kernel.ir import Kernel


def scratch_bytes(kernel: Kernel, threads: int) -> int:
    """The bytes of temporary arrays, and of the local buffers of each of so many threads: one for every lane of a
    block. Packed factors of sums of products are not counted: ``tlir.backends.cpu.tile`` bounds them by a constant."""
    parts = staged(kernel, threads)
    if parts is None:
        return threads * _local(kernel)
    arrays = sum(_bytes(dtype, size) for dtype, size in parts.temporaries)
    return arrays + threads * max(_local(stage.kernel) for stage in parts.stages)


def _local(kernel: Kernel) -> int:
    each = sum(_bytes(buffer.dtype, buffer.size) for buffer in kernel.buffers if buffer.role == "local")
    if not each:
        return 0
    nest = arrange(kernel)
    if crosses_memory(nest) and (rows := by_rows(kernel)) is not None:
        return each + sum(_bytes(dtype, size) for dtype, size in rows.temporaries)
    return each * nest.lanes


def _bytes(dtype: DType, size: int) -> int:
    return size * dtype.limbs * dtype.word_dtype.itemsize
