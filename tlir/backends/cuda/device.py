"""Bodies run by generated CUDA kernels on a GPU, through CuPy.

Values stay on the GPU between kernels, and kernels follow each other without the processor waiting for them, except
behind one that may leave the rounding of an elementary function open. The iterations that do are run again by the
specification, and what has no kernel is evaluated by the reference; the statistics have both.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from tlir.backends.automatic import operations
from tlir.backends.cpu.device import REGION_COMPILED_FROM, Executable, Statistics, require_plain
from tlir.backends.cpu.script import written
from tlir.backends.cuda import nvrtc
from tlir.backends.cuda.function import Source
from tlir.backends.cuda.kept import machine_code
from tlir.backends.cuda.regions import run_regions
from tlir.backends.cuda.settling import all_of, marked, settle
from tlir.backends.cuda.source import Code, code, module
from tlir.backends.interpreter import run_launch
from tlir.backends.reference import evaluate_node
from tlir.backends.reference.layout import tail
from tlir.errors import UnsupportedError
from tlir.floatlib.soft import objects
from tlir.ir.graph import Body, Node, Ref
from tlir.ir.remember import remembered
from tlir.ir.tensor import Tensor, words_shape
from tlir.ir.types import DType, TensorType
from tlir.kernel.interpret import Elements, Integers
from tlir.kernel.ir import Fallback, Kernel, Launch

BLOCKS_PER_PROCESSOR = 16
"""Blocks of the grid for each of the GPU's processors, where there is work for so many."""

SINGLE_READS = 16
"""Reads of chosen elements of an array on the GPU before all of it is brought here."""


@lru_cache(maxsize=1)
def cupy() -> Any:
    """CuPy, where it, NVRTC and a GPU are there; otherwise UnsupportedError TL0802."""
    if find_spec("cupy") is None:
        raise _absent("the device gpu needs CuPy, which is not installed", "pip install 'tlir[gpu]'")
    try:
        import cupy as found
    except Exception as error:  # what its compiled modules raise depends on what they lack
        raise _absent(f"the device gpu needs CuPy, which does not load ({_first_line(error)})") from None
    try:
        count = found.cuda.runtime.getDeviceCount()
    except Exception as error:  # CuPy raises its own classes, of several modules
        raise _absent(f"there is no GPU that CUDA can use ({_first_line(error)})") from None
    if count < 1:
        raise _absent("there is no GPU that CUDA can use")
    if nvrtc.library() is None:
        raise _absent("the device gpu needs NVRTC, which is not installed", "pip install nvidia-cuda-nvrtc")
    return found


def _absent(text: str, hint: str | None = None) -> UnsupportedError:
    return UnsupportedError("TL0802", text, hint=hint)


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


@dataclass
class GpuStatistics(Statistics):
    """What a run did; ``first_transfer_seconds`` are those of the first run, which sends the constants too.
    ``settled`` counts the iterations of kernels that were run again by the specification."""

    first_transfer_seconds: float = 0.0
    settled: int = 0


@dataclass(frozen=True)
class GpuKernel:
    """The functions of a launch on the GPU in order, with their sources and the numbers of their arguments, and the
    arrays between them."""

    functions: tuple[tuple[Source, Any, tuple[int, ...]], ...]
    between: tuple[tuple[DType, int], ...]


class Remote:
    """Elements on the GPU as the kernel interpreter reads and writes them: those that are asked for are sent, and where
    that happens often (in a loop) all that a kernel only reads."""

    def __init__(self, cupy: Any, array: Any, written: bool) -> None:
        self.cupy, self.array = cupy, array
        self.left = None if written else SINGLE_READS
        self.here: Any = None

    def __getitem__(self, offsets: Integers) -> Elements:
        if self.here is not None:
            return np.asarray(self.here[offsets])
        if self.left is not None:
            self.left -= 1
            if not self.left:
                self.here = self.array.get()
        return np.asarray(self.array[self.cupy.asarray(offsets)].get())

    def __setitem__(self, offsets: Integers, elements: Elements) -> None:
        self.array[self.cupy.asarray(offsets)] = self.cupy.asarray(elements)


class GpuExecutable(Executable):
    """A body whose kernels are compiled together, once; other processes find the machine code on disk."""

    def __init__(self, body: Body) -> None:
        super().__init__(body)
        self.cupy = cupy()
        self._device = self.cupy.cuda.Device()
        start, before = time.perf_counter(), dict(objects.counts)
        made = {id(s.kernel): code(s.kernel) for s in self.program.steps if isinstance(s, Launch)}
        sources = [one for found in made.values() if isinstance(found, Code) for one, _ in found.sources]
        loaded = self._module(module(sources)) if sources else None
        self._kernels: dict[int, GpuKernel | str] = {}
        for key, found in made.items():
            if isinstance(found, Code) and loaded is not None:
                functions = [(one, loaded.get_function(one.name), numbers) for one, numbers in found.sources]
                self._kernels[key] = GpuKernel(tuple(functions), found.between)
            else:
                self._kernels[key] = str(found)
        self._once = GpuStatistics(
            lower_seconds=self.statistics.lower_seconds,
            compile_seconds=time.perf_counter() - start,
            cache_hits=objects.counts["hits"] - before["hits"],
            compiled=objects.counts["compiled"] - before["compiled"],
        )
        self.statistics = self._once
        self._constants: dict[Ref, Any] | None = None
        self._regions: dict[int, Body] = {}
        """Those that have run here, by their identity."""
        self._most = self._device.attributes["MultiProcessorCount"] * BLOCKS_PER_PROCESSOR
        self._nothing = self.cupy.zeros(1, np.uint32)

    def _module(self, text: str) -> Any:
        """The kernels' module, which CuPy loads from a file, and loads again for every device that it is used on."""
        self._folder = tempfile.TemporaryDirectory(prefix="tlir-gpu-", ignore_cleanup_errors=True)
        file = Path(self._folder.name) / "kernels.cubin"
        file.write_bytes(machine_code(text, int(self._device.compute_capability)))
        return self.cupy.RawModule(path=str(file))

    def compile(self, kernel: Kernel) -> GpuKernel | str:
        return self._kernels[id(kernel)]

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The outputs for inputs in the order of ``input_ids``. UnsupportedError TL0603 where the GPU's memory does not
        hold the values."""
        try:
            return self._run(inputs)
        except self.cupy.cuda.memory.OutOfMemoryError as error:
            raise UnsupportedError("TL0603", f"the GPU's memory does not hold the run ({_first_line(error)})") from None

    def _run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        once = self._once
        statistics = GpuStatistics(
            lower_seconds=once.lower_seconds,
            compile_seconds=once.compile_seconds,
            cache_hits=once.cache_hits,
            compiled=once.compiled,
            first_transfer_seconds=once.first_transfer_seconds,
        )
        first = self._constants is None
        arrays = self._on_arrays([self._sent(tensor, statistics) for tensor in inputs], statistics)
        results = [
            self._fetched(type, array, statistics) for type, array in zip(self.body.output_types, arrays, strict=True)
        ]
        if first:
            statistics.first_transfer_seconds = once.first_transfer_seconds = statistics.transfer_seconds
        self.statistics = statistics
        return results

    def _on_arrays(self, inputs: Sequence[Any], statistics: GpuStatistics) -> list[Any]:
        """The outputs' arrays on the GPU for those of the inputs."""
        if self._constants is None:
            self._constants = {ref: self._sent(tensor, statistics) for ref, tensor in self.program.constants.items()}
        values: dict[Ref, Any] = {**dict(zip(self.program.inputs, inputs, strict=True)), **self._constants}
        for number, step in enumerate(self.program.steps):
            if isinstance(step, Launch):
                self._on_gpu(number, step, values, statistics)
            elif isinstance(step, Fallback):
                node = self.body.nodes[step.node]
                results = self._without_kernel(node, [values[ref] for ref in node.inputs], statistics)
                values |= {Ref(node.id, k): array for k, array in enumerate(results)}
                statistics.reference.append((step.node, step.reason))
            else:
                values[step.value] = values[step.of].reshape(words_shape(self.program.types[step.value]))
            for ref in self._last[number]:
                values.pop(ref, None)
        return [values[ref] for ref in self.program.outputs]

    def _without_kernel(self, node: Node, operands: Sequence[Any], statistics: GpuStatistics) -> Sequence[Any]:
        """The results of a node that has no kernel: by the reference, but what is much work inside its regions here."""
        if node.regions and sum(map(operations, node.regions)) >= REGION_COMPILED_FROM:
            types = self.body.operand_types(node)

            def run(region: Body, arrays: Sequence[Any]) -> list[Any]:
                return self._inside(region, statistics)._on_arrays(arrays, statistics)

            return run_regions(node, types[0].dtype, operands, run, self.cupy.empty)
        types = self.body.operand_types(node)
        given = tuple(self._fetched(type, array, statistics) for type, array in zip(types, operands, strict=True))
        return [self._sent(tensor, statistics) for tensor in evaluate_node(node, given)]

    def _inside(self, region: Body, statistics: GpuStatistics) -> GpuExecutable:
        """The executable of a region, whose compilation counts as this one's."""
        found = executable(region)
        if id(region) not in self._regions:
            self._regions[id(region)] = region
            for name in ("lower_seconds", "compile_seconds", "cache_hits", "compiled"):
                for own in (self._once, statistics):
                    setattr(own, name, getattr(own, name) + getattr(found._once, name))
        return found

    def _on_gpu(self, number: int, launch: Launch, values: dict[Ref, Any], statistics: GpuStatistics) -> None:
        call = self._calls.get(number) or self.call(number, launch)
        outputs = written(launch)
        if not isinstance(call, str):
            for ref in outputs:
                type = self.program.types[ref]
                values[ref] = self.cupy.empty(words_shape(type), type.dtype.word_dtype)
            statistics.settled += self._launched(call.compiled, [values[ref] for ref, _ in call.arguments])
            statistics.kernels += 1
            statistics.fused += len(launch.kernel.nodes)
            statistics.bytes_moved += call.bytes
            return
        types = self.program.types
        known = {
            ref: self._fetched(types[ref], values[ref], statistics) for ref in launch.arguments if ref not in outputs
        }
        for ref, tensor in run_launch(launch, types, known).items():
            values[ref] = self._sent(tensor, statistics)
        statistics.reference += [(node, call) for node in launch.kernel.nodes]

    def _launched(self, kernel: GpuKernel, arrays: Sequence[Any]) -> int:
        """Runs a launch's functions; the number of iterations that were settled by the specification."""
        between = [self.cupy.empty(size * dtype.limbs, dtype.word_dtype) for dtype, size in kernel.between]
        everything = [*arrays, *between]
        settled = 0
        for made, function, numbers in kernel.functions:
            if made.total:
                settled += self._run_function(made, function, [everything[number] for number in numbers])
        return settled

    def _run_function(self, made: Source, function: Any, arrays: Sequence[Any]) -> int:
        blocks = made.blocks(self._most)
        undecided = self.cupy.zeros(made.marks, np.uint32) if made.may_leave_open else self._nothing
        before = {number: arrays[number].copy() for number in made.in_place}
        size = made.scratch_bytes(blocks)
        scratch = self.cupy.empty(size, np.uint8) if size else self._nothing
        function((blocks,), (made.threads,), (np.uint64(made.total), undecided, scratch, *arrays))
        # one that may leave a rounding open is waited for
        if not made.may_leave_open or not undecided[:1].get()[0]:
            return 0
        for number, array in before.items():
            arrays[number][...] = array
        iterations = all_of(made.kernel) if before else marked(np.asarray(undecided.get()))
        memory = {}
        outer = [buffer for buffer in made.kernel.buffers if buffer.role != "local"]
        for buffer, array in zip(outer, arrays, strict=True):
            elements = array.reshape((buffer.size, *tail(buffer.dtype)))
            memory[buffer] = Remote(self.cupy, elements, buffer.role == "output")
        settle(made.kernel, memory, iterations)
        return len(iterations)

    def _sent(self, tensor: Tensor, statistics: Statistics) -> Any:
        self._device.synchronize()
        start = time.perf_counter()
        array = self.cupy.asarray(np.asarray(tensor.words, order="C"))
        self._device.synchronize()
        statistics.transfer_seconds += time.perf_counter() - start
        return array

    def _fetched(self, type: TensorType, array: Any, statistics: Statistics) -> Tensor:
        # kernels that still run are no part of the transfer
        self._device.synchronize()
        start = time.perf_counter()
        words = np.asarray(array.get())
        statistics.transfer_seconds += time.perf_counter() - start
        return Tensor(type, words)


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
