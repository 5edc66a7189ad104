"""Bodies run by generated CUDA kernels on a GPU, through CuPy.

Values stay on the GPU between kernels. What has no kernel is evaluated by the reference, and so is a launch in which
the rounding of an elementary function was decided by no bound; the statistics name both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tlir.backends.cpu.device import Executable, Statistics, require_plain, written
from tlir.backends.cuda.function import Source
from tlir.backends.cuda.nvrtc import FLAGS
from tlir.backends.cuda.source import module, source
from tlir.backends.interpreter import run_launch
from tlir.backends.reference import evaluate_node
from tlir.errors import UnsupportedError
from tlir.ir.graph import Body, Ref
from tlir.ir.remember import remembered
from tlir.ir.tensor import Tensor, words_shape
from tlir.kernel.ir import Fallback, Kernel, Launch

BLOCKS_PER_PROCESSOR = 8
"""Blocks of the grid for each of the GPU's processors, where there is work for so many."""


@lru_cache(maxsize=1)
def cupy() -> Any:
    """CuPy, where it and a GPU are there; otherwise UnsupportedError TL0802."""
    try:
        import cupy as found
    except ImportError:
        raise UnsupportedError(
            "TL0802", "the device gpu needs CuPy, which is not installed", hint="pip install 'tlir[gpu]'"
        ) from None
    try:
        count = found.cuda.runtime.getDeviceCount()
    except Exception as error:  # CuPy raises its own classes, of several modules
        raise UnsupportedError("TL0802", f"there is no GPU that CUDA can use ({error})") from None
    if count < 1:
        raise UnsupportedError("TL0802", "there is no GPU that CUDA can use")
    return found


@dataclass(frozen=True)
class GpuKernel:
    """A kernel's source and its function on the GPU."""

    source: Source
    function: Any


class GpuExecutable(Executable):
    """A body whose kernels are compiled together, once; CuPy keeps what it compiled on disk."""

    def __init__(self, body: Body) -> None:
        super().__init__(body)
        self.cupy = cupy()
        made = {id(s.kernel): source(s.kernel) for s in self.program.steps if isinstance(s, Launch)}
        start = time.perf_counter()
        sources = [one for one in made.values() if isinstance(one, Source)]
        compiled = self.cupy.RawModule(code=module(sources), options=FLAGS) if sources else None
        self._kernels: dict[int, GpuKernel | str] = {}
        for key, one in made.items():
            if isinstance(one, Source) and compiled is not None:
                self._kernels[key] = GpuKernel(one, compiled.get_function(one.name))
            else:
                self._kernels[key] = str(one)
        self.statistics.compile_seconds = time.perf_counter() - start
        self._constants: dict[Ref, Any] | None = None
        self._processors = self.cupy.cuda.Device().attributes["MultiProcessorCount"]

    def compile(self, kernel: Kernel) -> GpuKernel | str:
        return self._kernels[id(kernel)]

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The outputs for inputs in the order of ``input_ids``."""
        statistics = Statistics(
            lower_seconds=self.statistics.lower_seconds, compile_seconds=self.statistics.compile_seconds
        )
        if self._constants is None:
            self._constants = {ref: self._sent(tensor, statistics) for ref, tensor in self.program.constants.items()}
        values: dict[Ref, Any] = {
            ref: self._sent(tensor, statistics) for ref, tensor in zip(self.program.inputs, inputs, strict=True)
        }
        values.update(self._constants)
        for number, step in enumerate(self.program.steps):
            if number in self._kept:
                values |= self._kept[number]
            elif isinstance(step, Launch):
                self._on_gpu(number, step, values, statistics)
                self.keep(number, step, values)
            elif isinstance(step, Fallback):
                node = self.body.nodes[step.node]
                results = evaluate_node(node, tuple(self._fetched(ref, values, statistics) for ref in node.inputs))
                values |= {Ref(node.id, k): self._sent(tensor, statistics) for k, tensor in enumerate(results)}
                statistics.reference.append((step.node, step.reason))
            else:
                values[step.value] = values[step.of].reshape(words_shape(self.program.types[step.value]))
            for ref in self._last[number]:
                values.pop(ref, None)
        results = tuple(self._fetched(ref, values, statistics) for ref in self.program.outputs)
        self.statistics = statistics
        return list(results)

    def _on_gpu(self, number: int, launch: Launch, values: dict[Ref, Any], statistics: Statistics) -> None:
        call = self._calls.get(number) or self.call(number, launch)
        outputs = written(launch)
        if not isinstance(call, str):
            for ref in outputs:
                type = self.program.types[ref]
                values[ref] = self.cupy.empty(words_shape(type), type.dtype.word_dtype)
            if self._launched(call.compiled, [values[ref] for ref, _ in call.arguments]):
                statistics.kernels += 1
                statistics.fused += len(launch.kernel.nodes)
                statistics.bytes_moved += call.bytes
                return
        reason = call if isinstance(call, str) else "the rounding of an elementary function is not decided on the GPU"
        known = {ref: self._fetched(ref, values, statistics) for ref in launch.arguments if ref not in outputs}
        for ref, tensor in run_launch(launch, self.program.types, known).items():
            values[ref] = self._sent(tensor, statistics)
        statistics.reference += [(node, reason) for node in launch.kernel.nodes]

    def _launched(self, kernel: GpuKernel, arrays: Sequence[Any]) -> bool:
        """Runs a kernel; whether all its results are certain."""
        total = kernel.source.total
        if not total:
            return True
        blocks = kernel.source.blocks(self._processors * BLOCKS_PER_PROCESSOR)
        undecided = self.cupy.zeros(1, np.uint32)
        scratch = self.cupy.empty(max(kernel.source.scratch_bytes(blocks), 1), np.uint8)
        kernel.function((blocks,), (kernel.source.threads,), (np.uint64(total), undecided, scratch, *arrays))
        return int(undecided.get()[0]) == 0

    def _sent(self, tensor: Tensor, statistics: Statistics) -> Any:
        start = time.perf_counter()
        array = self.cupy.asarray(np.asarray(tensor.words, order="C"))
        statistics.transfer_seconds += time.perf_counter() - start
        return array

    def _fetched(self, ref: Ref, values: dict[Ref, Any], statistics: Statistics) -> Tensor:
        start = time.perf_counter()
        words = np.asarray(values[ref].get())
        statistics.transfer_seconds += time.perf_counter() - start
        return Tensor(self.body.type_of(ref), words)


@remembered(16)
def executable(body: Body) -> GpuExecutable:
    """The executable of a body; the last few are remembered."""
    return GpuExecutable(body)


def evaluate(
    body: Body, inputs: Sequence[Tensor], *, observe: Callable[..., None] | None = None, flags: Any = None
) -> list[Tensor]:
    """As ``tlir.backends.cpu.device.evaluate``, on the GPU."""
    require_plain("gpu", observe, flags)
    return executable(body).run(inputs)
